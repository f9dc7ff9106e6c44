"""Machines that say how sure they are: Gaussian processes for numbers and classes, relevance vectors."""

from mercer.bayes.classifier import GaussianProcessClassifier
from mercer.bayes.regressor import GaussianProcessRegressor
from mercer.bayes.relevance import RelevanceVectorRegressor

__all__ = ["GaussianProcessClassifier", "GaussianProcessRegressor", "RelevanceVectorRegressor"]
