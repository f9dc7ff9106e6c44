"""Pictures of machines; they need the extra ``plot``."""

from mercer.displays.decision import DecisionDisplay
from mercer.displays.ridge_path import RidgePathDisplay
from mercer.displays.tuning import TuningDisplay

__all__ = ["DecisionDisplay", "RidgePathDisplay", "TuningDisplay"]
