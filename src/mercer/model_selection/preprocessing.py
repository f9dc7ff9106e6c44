"""The steps before the machine of a Pipeline or a Tabular, fitted to the training rows of a fold."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, RegressorMixin, is_regressor
from sklearn.pipeline import Pipeline

from mercer.model_selection.grids import prefix_and_machine
from mercer.tables.estimator import Tabular


class Preprocessing:
    """The steps before the machine of a Pipeline or a Tabular, which `fit` fits in place."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        self._transforms: list[Any] = []
        self.machine = prefix_and_machine(estimator)[1]
        self.unit = 0.0, 1.0  # mean and scale: y = mean + scale · the machine's target

    @staticmethod
    def refusal(estimator: Any) -> str | None:
        """Return why the steps cannot be fitted without the machine, or None if they can."""
        while isinstance(estimator, Pipeline | Tabular):
            if type(estimator) not in (Pipeline, Tabular):
                return f"{type(estimator).__name__} may override fit or predict, and is fitted fold by fold"
            if isinstance(estimator, Tabular) and estimator.missing != "impute":
                return f"missing={estimator.missing!r} drops training rows, and is fitted fold by fold"
            estimator = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator.estimator
        return None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit all steps to training samples, and return these samples as the machine sees them."""
        estimator = self._estimator
        while isinstance(estimator, Pipeline | Tabular):
            if isinstance(estimator, Tabular):
                step, estimator = estimator, estimator.estimator
                step.set_params(estimator=_EmptyRegressor() if is_regressor(self.machine) else _EmptyEstimator())
                step.fit(X, y, sample_weight)
                self.unit = step.target_mean_, step.target_scale_
                X = step.encode(X)
                self._transforms.append(step.encode)
            else:
                step, estimator = estimator[:-1], estimator.steps[-1][1]
                if len(step):
                    X = step.fit_transform(X, self.target(y))
                    # One transformation per step: a Pipeline refuses a last step that has nothing to fit.
                    self._transforms += [part.transform for _, part in step.steps if part not in (None, "passthrough")]
        return X

    def transform(self, X: Any) -> Any:
        """Transform other samples by the fitted steps."""
        for transform in self._transforms:
            X = transform(X)
        return X

    def target(self, y: Any) -> Any:
        """Convert y to the scale of the machine's targets."""
        return y if y is None or self.unit == (0.0, 1.0) else (y - self.unit[0]) / self.unit[1]


class _EmptyEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """An estimator that learns nothing: a Tabular around it only learns its encodings."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        return self


class _EmptyRegressor(RegressorMixin, _EmptyEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A regressor that learns nothing: a Tabular around it also standardises y."""
