"""Why a machine predicts what it does: Shapley values, gradients, partial dependence, and the vectors that decide."""

from mercer.explain.explanation import Explanation
from mercer.explain.gradients import gradient_importance
from mercer.explain.partial_dependence import PartialDependence, partial_dependence
from mercer.explain.reasons import Reasons, reasons
from mercer.explain.shapley import explain

__all__ = [
    "Explanation",
    "PartialDependence",
    "Reasons",
    "explain",
    "gradient_importance",
    "partial_dependence",
    "reasons",
]
