"""Bayesian machines: Gaussian process regression and classification, and relevance vector regression."""

from mercer.estimators.gaussian_process.classifier import GaussianProcessClassifier
from mercer.estimators.gaussian_process.regressor import GaussianProcessRegressor
from mercer.estimators.gaussian_process.relevance import RelevanceVectorRegressor

__all__ = ["GaussianProcessClassifier", "GaussianProcessRegressor", "RelevanceVectorRegressor"]
