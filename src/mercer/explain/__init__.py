"""Why a machine predicts what it does: Shapley values, gradients, partial dependence, and the vectors that decide."""

from mercer.explain.partial_dependence import gradient_importance, partial_dependence
from mercer.explain.reasons import reasons
from mercer.explain.shapley import Explanation, explain

__all__ = [
    "Explanation",
    "explain",
    "gradient_importance",
    "partial_dependence",
    "reasons",
]
