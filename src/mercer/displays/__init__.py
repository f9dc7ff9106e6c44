"""Pictures of machines; they need the extra ``plot``."""

from mercer.displays.courses import ConvergenceDisplay, ConvergenceRecord
from mercer.displays.decision import DecisionDisplay
from mercer.displays.explanation import ExplanationDisplay, PartialDependenceDisplay
from mercer.displays.paths import PathDisplay
from mercer.displays.predictions import IntervalDisplay, ReliabilityDisplay
from mercer.displays.samples import GramDisplay, MarginDisplay
from mercer.displays.tuning import TuningDisplay

__all__ = [
    "ConvergenceDisplay",
    "ConvergenceRecord",
    "DecisionDisplay",
    "ExplanationDisplay",
    "GramDisplay",
    "IntervalDisplay",
    "MarginDisplay",
    "PartialDependenceDisplay",
    "PathDisplay",
    "ReliabilityDisplay",
    "TuningDisplay",
]
