"""Names of mercer.calibration and their modules."""

from .classifier import CalibratedClassifier as CalibratedClassifier
from .coupling import couple as couple
from .regressor import CalibratedRegressor as CalibratedRegressor
