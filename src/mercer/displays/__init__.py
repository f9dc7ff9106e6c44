"""Pictures of machines; they need the extra ``plot``."""

from mercer.displays.c_path import CPathDisplay
from mercer.displays.compression import CompressionDisplay
from mercer.displays.decision import DecisionDisplay
from mercer.displays.ridge_path import RidgePathDisplay
from mercer.displays.tuning import TuningDisplay

__all__ = ["CPathDisplay", "CompressionDisplay", "DecisionDisplay", "RidgePathDisplay", "TuningDisplay"]
