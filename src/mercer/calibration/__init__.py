"""Probabilities, sets of classes and intervals for machines that are trained to decide."""

from mercer.calibration.classifier import CalibratedClassifier, calibrate_classifier
from mercer.calibration.regressor import CalibratedRegressor, calibrate_regressor

__all__ = ["CalibratedClassifier", "CalibratedRegressor", "calibrate_classifier", "calibrate_regressor"]
