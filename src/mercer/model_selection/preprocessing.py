"""What comes before the machine: a Pipeline's other steps, or what a Tabular makes of a table, fitted to some rows."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, RegressorMixin, is_regressor
from sklearn.pipeline import Pipeline

from mercer.model_selection.grids import prefix_and_machine
from mercer.tables.estimator import Tabular


class Steps:
    """Everything before the machine of an estimator that is not fitted yet, and is used up here."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        self._fitted: list[Any] = []
        self.machine = prefix_and_machine(estimator)[1]
        self.unit = 0.0, 1.0  # the values of y that are 0 for the machine, and 1 more

    @staticmethod
    def refusal(estimator: Any) -> str | None:
        """Why the machine's samples cannot be made without fitting it, or None if they can."""
        while isinstance(estimator, Pipeline | Tabular):
            if type(estimator) not in (Pipeline, Tabular):
                return f"{type(estimator).__name__} may fit and predict in a way of its own, and is fitted fold by fold"
            if isinstance(estimator, Tabular) and estimator.missing != "impute":
                return f"missing={estimator.missing!r} leaves rows out of training, so that it is fitted fold by fold"
            estimator = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator.estimator
        return None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit all of it to training samples; returns them as the machine sees them."""
        estimator = self._estimator
        while isinstance(estimator, Pipeline | Tabular):
            if isinstance(estimator, Tabular):
                step, estimator = estimator, estimator.estimator
                step.set_params(estimator=_NoNumbers() if is_regressor(self.machine) else _Nothing())
                step.fit(X, y, sample_weight)
                self.unit = step.target_mean_, step.target_scale_
                X = step.encode(X)
                self._fitted.append(step.encode)
            else:
                step, estimator = estimator[:-1], estimator.steps[-1][1]
                if len(step):
                    X = step.fit_transform(X, self.target(y))
                    # One by one: a Pipeline asks its last step whether it is fitted, and some have nothing to fit.
                    self._fitted += [one.transform for _, one in step.steps if one not in (None, "passthrough")]
        return X

    def transform(self, X: Any) -> Any:
        """Other samples as the machine sees them."""
        for step in self._fitted:
            X = step(X)
        return X

    def target(self, y: Any) -> Any:
        """y in the machine's unit."""
        return y if y is None or self.unit == (0.0, 1.0) else (y - self.unit[0]) / self.unit[1]


class _Nothing(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Learns nothing: a Tabular with this in the machine's place learns what its columns hold."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        return self


class _NoNumbers(RegressorMixin, _Nothing):  # type: ignore[misc]  # scikit-learn is untyped
    """Learns nothing either, as a regressor, whose y a Tabular standardises."""
