"""Plots of models, drawn with matplotlib (the extra ``plot``)."""

from mercer.inspection.displays.convergence import ConvergenceDisplay, ConvergenceRecord
from mercer.inspection.displays.decision import DecisionDisplay
from mercer.inspection.displays.explanation import ExplanationDisplay, PartialDependenceDisplay
from mercer.inspection.displays.paths import PathDisplay
from mercer.inspection.displays.predictions import IntervalDisplay, ReliabilityDisplay
from mercer.inspection.displays.samples import GramDisplay, MarginDisplay
from mercer.inspection.displays.tuning import TuningDisplay

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
