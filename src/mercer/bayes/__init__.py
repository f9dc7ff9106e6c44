"""Machines that say how sure they are: Gaussian processes for numbers and classes, relevance vectors."""

from typing import TYPE_CHECKING

from mercer.runtime.on_demand import on_demand

__all__ = ["GaussianProcessClassifier", "GaussianProcessRegressor", "RelevanceVectorRegressor"]

if TYPE_CHECKING:
    from mercer.bayes.classifier import GaussianProcessClassifier
    from mercer.bayes.regressor import GaussianProcessRegressor
    from mercer.bayes.relevance import RelevanceVectorRegressor
else:
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "GaussianProcessClassifier": "mercer.bayes.classifier",
            "GaussianProcessRegressor": "mercer.bayes.regressor",
            "RelevanceVectorRegressor": "mercer.bayes.relevance",
        },
    )
