"""Pictures of machines; they need the extra ``plot``."""

from mercer.displays.c_path import CPathDisplay
from mercer.displays.decision import DecisionDisplay
from mercer.displays.explanation import ExplanationDisplay
from mercer.displays.partial_dependence import PartialDependenceDisplay
from mercer.displays.ridge_path import RidgePathDisplay
from mercer.displays.trace import TraceDisplay
from mercer.displays.tuning import TuningDisplay

__all__ = [
    "CPathDisplay",
    "DecisionDisplay",
    "ExplanationDisplay",
    "PartialDependenceDisplay",
    "RidgePathDisplay",
    "TraceDisplay",
    "TuningDisplay",
]
