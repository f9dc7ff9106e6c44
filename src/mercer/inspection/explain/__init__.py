"""Explain predictions: Shapley values, gradients, partial dependence, and the support vectors that decide."""

from mercer.inspection.explain.partial_dependence import gradient_importance, partial_dependence
from mercer.inspection.explain.reasons import reasons
from mercer.inspection.explain.shapley import Explanation, explain

__all__ = [
    "Explanation",
    "explain",
    "gradient_importance",
    "partial_dependence",
    "reasons",
]
