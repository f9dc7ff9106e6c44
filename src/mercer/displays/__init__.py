"""Pictures of machines; they need the extra ``plot``."""

from mercer.displays.courses import ConvergenceDisplay, ConvergenceRecord, TraceDisplay
from mercer.displays.decision import DecisionDisplay
from mercer.displays.decision_pairs import DecisionPairsDisplay
from mercer.displays.explanation import ExplanationDisplay, PartialDependenceDisplay
from mercer.displays.paths import CompressionDisplay, CPathDisplay, RidgePathDisplay
from mercer.displays.predictions import IntervalDisplay, ReliabilityDisplay
from mercer.displays.samples import GramDisplay, MarginDisplay, SlackDisplay
from mercer.displays.tuning import TuningDisplay

__all__ = [
    "CPathDisplay",
    "CompressionDisplay",
    "ConvergenceDisplay",
    "ConvergenceRecord",
    "DecisionDisplay",
    "DecisionPairsDisplay",
    "ExplanationDisplay",
    "GramDisplay",
    "IntervalDisplay",
    "MarginDisplay",
    "PartialDependenceDisplay",
    "ReliabilityDisplay",
    "RidgePathDisplay",
    "SlackDisplay",
    "TraceDisplay",
    "TuningDisplay",
]
