"""Probabilities, sets of classes and intervals for machines that are trained to decide."""

from typing import TYPE_CHECKING

from mercer.runtime.on_demand import on_demand

__all__ = ["CalibratedClassifier", "CalibratedRegressor", "calibrate_classifier", "calibrate_regressor", "couple"]

if TYPE_CHECKING:
    from mercer.calibration.classifier import CalibratedClassifier, calibrate_classifier
    from mercer.calibration.coupling import couple
    from mercer.calibration.regressor import CalibratedRegressor, calibrate_regressor
else:
    _HOMES = dict.fromkeys(__all__, "mercer.calibration.classifier") | {
        "CalibratedRegressor": "mercer.calibration.regressor",
        "calibrate_regressor": "mercer.calibration.regressor",
        "couple": "mercer.calibration.coupling",
    }
    __getattr__, __dir__ = on_demand(__name__, _HOMES)
