"""Base class of calibrated classifiers and regressors, which learn from held-out samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitting.pipeline.class_spec import DeclaresState
from mercer.estimators.fitting.pipeline.state import NestedEstimator, Text, expect, fitted
from mercer.estimators.fitting.reports.notebook import ShowsCertificate
from mercer.estimators.fitting.wrapper_mixin import ModelMethods
from mercer.model_selection.held_out.folds import Splits
from mercer.model_selection.held_out.machines import copy_fitted, decision_values, fit_positive_weights, issue_warnings
from mercer.runtime.errors import GuessWarning, Warned, collect_warnings
from mercer.runtime.refitting import adopt_fit, blank_copy
from mercer.samples.arrays import Floats, Indices
from mercer.samples.engine import EngineSamples, on_host, to_engine
from mercer.tables.frame import part_of

HELD_OUT = "held-out"


class Calibrated(ModelMethods, ShowsCertificate, MetaEstimatorMixin, DeclaresState, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Base class of estimators that train a machine on all samples and learn its calibration from held-out samples.

    Subclasses define `_default`, the class of the machine if `estimator` is None; `_check_parameters`, which raises for
    parameters that `fit` cannot use; and `_learn`.
    """

    _FITTED = fitted(estimator_=NestedEstimator(methods=("predict",), required=True), _unproven_=Text())

    _default: ClassVar[Any]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the machine on all samples, and calibrate it on held-out samples of folds.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training samples.
        y : array of shape (n_samples,)
            Targets.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples, in training and in calibration. A weight of k counts as k samples of the same fold;
            a sample of weight 0 counts nowhere.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        model, is_frozen = clone(self._estimator_or_default()), isinstance(self.estimator, FrozenEstimator)
        if is_frozen:
            return self._calibrate(model, X, y, sample_weight, HELD_OUT)
        with collect_warnings() as fit_warnings:
            fit_positive_weights(model, X, y, sample_weight)
        return self._calibrate(model, X, y, sample_weight, self.cv, fit_warnings)

    def calibrate_fitted(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Calibrate the fitted `estimator`; `machine.calibrate` calls this."""
        check_is_fitted(self.estimator)
        if hasattr(X, "columns") and not isinstance(to_engine(X), EngineSamples):
            # Check the names of the columns by one row; samples of folds have no names.
            decision_values(self.estimator, part_of(X, np.arange(min(1, len(X)))))
        return self._calibrate(self.estimator, X, y, sample_weight, self.cv)

    def without_guarantee(self, reason: str) -> Self:
        """Make `guarantee_` state that nothing is proven, for the given reason."""
        check_is_fitted(self)
        self._unproven_ = reason
        return self

    def _calibrate(
        self, model: Any, X: Any, y: Any, sample_weight: Any, cv: Any, fit_warnings: Iterable[Warned] | None = None
    ) -> Self:
        """Learn the calibration of a fitted model; if that fails, this estimator stays unchanged.

        A warning that several folds repeat is issued once. With `fit_warnings`, those of the fit to all samples, the
        guesses about columns in single folds are left out.
        """
        learner = blank_copy(self)
        with collect_warnings() as fold_warnings:
            learner._learn(copy_fitted(model), X, y, sample_weight, cv)
        if fit_warnings is not None:
            guess_free = [warning for warning in fold_warnings if not issubclass(warning[1], GuessWarning)]
            issue_warnings([*fit_warnings, *guess_free])
        else:
            issue_warnings(fold_warnings)
        return adopt_fit(self, learner)

    def _parameters_to_save(self) -> dict[str, Any]:
        """Return the parameters, without those that a fitted estimator no longer needs."""
        params = super()._parameters_to_save()
        if "estimator_" in vars(self):
            params["estimator"] = None  # estimator_ has the same parameters
        if not isinstance(params["cv"], int | str):
            params["cv"] = 5  # a splitter is needed only for another fit
        return params

    def _check_saved_parameters(self) -> None:
        expect(isinstance(self.cv, int | str) or hasattr(self.cv, "split"), "cv must be a number or a string")

    def _learn(self, model: Any, X: Any, y: Any, sample_weight: Any, cv: Any) -> None:
        """Set the fitted attributes from a fitted model."""
        raise NotImplementedError

    def _estimator_or_default(self) -> Any:
        """Return the estimator to calibrate, as given or a default one."""
        return self._default() if self.estimator is None else self.estimator

    def _inner_model(self) -> Any:
        return getattr(self, "estimator_", self._estimator_or_default())

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), self._estimator_or_default().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.pairwise = inner.input_tags.sparse, inner.input_tags.pairwise
        return tags


def expect_numbers(values: Any, name: str, length: int | None) -> None:
    """Raise ModelFormatError unless `values` is a list of `length` numbers; None means any length."""
    expect(values.ndim == 1 and length in (None, len(values)), f"{name} must be a list of {length or ''} numbers")


def expect_weight(model: Any, name: str, length: int) -> None:
    """Raise ModelFormatError unless the model has no weights, or `length` positive ones."""
    weight = vars(model).get(name)
    if weight is not None:
        expect_numbers(weight, name, length)
        expect(bool((weight > 0).all()), f"{name} must be above 0")


def expect_starts(value: Any, count: int, end: int) -> None:
    """Raise ModelFormatError unless the starts of `count` groups rise from 0 to `end`."""
    expect_numbers(value, "starts", count + 1)
    is_valid = int(value[0]) == 0 and int(value[-1]) == end and all(a <= b for a, b in pairwise(value.tolist()))
    expect(is_valid, f"starts must rise from 0 to {end}")


def one_target(y: Any, model: Any) -> Any:
    """Return y as an array on the host with one target for each sample; raise ValueError if there are more."""
    y = on_host(y)
    shape = np.asarray(y).shape if isinstance(y, list | tuple) else getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"calibrating {type(model).__name__}: y has {shape[1]} columns, but calibration takes one target; "
            "calibrate one model for each column of y"
        )
    return column_or_1d(y, warn=True)


def weighted_splits(cv: Any, weight: Floats, split: Callable[[Indices], Splits]) -> Splits:
    """Return folds of the samples with positive weight; no fold trains on a sample of weight 0.

    `split` makes folds of the samples with given indices. A user's splitter may depend on these indices, and is
    therefore given all samples.
    """
    rows = np.flatnonzero(weight > 0)
    if len(rows) == len(weight) or not isinstance(cv, int | np.integer | None):
        return [(train[weight[train] > 0], test) for train, test in split(np.arange(len(weight)))]
    return [(rows[train], rows[test]) for train, test in split(rows)]
