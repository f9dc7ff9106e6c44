"""Machines that say how sure they are: Gaussian processes for numbers and classes, relevance vectors."""

from mercer.estimators.gaussian_process.classifier import GaussianProcessClassifier
from mercer.estimators.gaussian_process.regressor import GaussianProcessRegressor
from mercer.estimators.gaussian_process.relevance import RelevanceVectorRegressor

__all__ = ["GaussianProcessClassifier", "GaussianProcessRegressor", "RelevanceVectorRegressor"]
