"""Probabilities, sets of classes and intervals for machines that are trained to decide."""

from typing import TYPE_CHECKING

from mercer.runtime.on_demand import on_demand

__all__ = ["CalibratedClassifier", "CalibratedRegressor", "couple"]

if TYPE_CHECKING:
    from mercer.calibration.classifier import CalibratedClassifier
    from mercer.calibration.coupling import couple
    from mercer.calibration.regressor import CalibratedRegressor
else:
    _HOMES = {
        "CalibratedClassifier": "mercer.calibration.classifier",
        "CalibratedRegressor": "mercer.calibration.regressor",
        "couple": "mercer.calibration.coupling",
    }
    __getattr__, __dir__ = on_demand(__name__, _HOMES)
