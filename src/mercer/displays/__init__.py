"""Pictures of machines; they need the extra ``plot``."""

from mercer.displays.c_path import CPathDisplay
from mercer.displays.compression import CompressionDisplay
from mercer.displays.convergence import ConvergenceDisplay, ConvergenceRecord
from mercer.displays.decision import DecisionDisplay
from mercer.displays.decision_pairs import DecisionPairsDisplay
from mercer.displays.explanation import ExplanationDisplay
from mercer.displays.gram import GramDisplay
from mercer.displays.intervals import IntervalDisplay
from mercer.displays.margin import MarginDisplay, SlackDisplay
from mercer.displays.partial_dependence import PartialDependenceDisplay
from mercer.displays.reliability import ReliabilityDisplay
from mercer.displays.ridge_path import RidgePathDisplay
from mercer.displays.trace import TraceDisplay
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
