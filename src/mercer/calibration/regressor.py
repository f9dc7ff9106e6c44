"""Regressors with intervals that hold a new target with a chosen probability, from residuals of samples left out.

Jackknife+ and CV+ (Barber, Candès, Ramdas, Tibshirani 2021): with f₋ᵢ trained without sample i, or without its fold,
and Rᵢ = |yᵢ − f₋ᵢ(xᵢ)|, the interval at x goes from the ⌊α(n + 1)⌋-th smallest of f₋ᵢ(x) − Rᵢ to the
⌈(1 − α)(n + 1)⌉-th smallest of f₋ᵢ(x) + Rᵢ. Leaving out one sample at a time it holds y with probability at least
1 − 2α whatever the law of the samples (less √(2/n) with folds), and in practice nearly 1 − α. With samples that the
machine was not trained on, f is the same for all i, and the probability at least 1 − α.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.model_selection import check_cv
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from mercer.arrays import Floats, n_samples, row_blocks
from mercer.calibration.calibrated import HELD_OUT, Calibrated
from mercer.calibration.leave_one_out_functions import LeaveOneOutFunctions
from mercer.calibration.libsvm_laws import laplace_scale
from mercer.data import samples
from mercer.data.samples import check_same_length
from mercer.engine import on_host, placed
from mercer.estimators import SVR, RLSRegressor
from mercer.fitting.pipeline.fit import read_samples
from mercer.fitting.pipeline.machine import answers_as_asked, score_of_regressor
from mercer.held_out.folds import splits_of
from mercer.held_out.leave_one_out import FunctionsLeftOut
from mercer.held_out.machines import FoldLines, fold_machines, machine_of, without_names
from mercer.parameters import one_of
from mercer.tables.asked import ask
from mercer.tables.frame import part_of

LEAVE_ONE_OUT = "leave-one-out"


class CalibratedRegressor(RegressorMixin, Calibrated):  # type: ignore[misc]  # scikit-learn is untyped
    """A regressor trained on all samples, with intervals from the residuals of samples that were left out.

    `model.calibrate(X, y)` makes one of a machine that is fitted already.

    Parameters
    ----------
    estimator : a regressor, optional
        What is calibrated; SVR() unless told. It may be the last step of a Pipeline, all of which is fitted again in
        every fold, or stand in `mercer.tabular`; of a FrozenEstimator, which was trained on other samples, the
        predictions are taken as they are.
    cv : int, splitter or "leave-one-out", default=5
        Folds that leave every sample out once. "leave-one-out" is exact: `RLSRegressor` finds all n functions from one
        inverse (memory for n² numbers), `SVR` by removing each support vector.
    verbose : bool, default=False
        A line for each fold that is done.

    Attributes
    ----------
    estimator_ : the machine, trained on all samples
    residuals_ : array of shape (n_samples,)
        |y − f(x)| of each sample by the machine that did not train on it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RLSRegressor
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.cos(40 * X[:, 0])
    >>> model = RLSRegressor(lam=0.1).fit(X, y).calibrate(X, y, cv="leave-one-out")
    >>> low, high = model.predict_interval(X, alpha=0.1)
    >>> bool(np.mean((low <= y) & (y <= high)) > 0.85)
    True
    """

    score = score_of_regressor
    _default = SVR

    def __init__(self, estimator: Any = None, cv: Any = 5, *, verbose: bool = False) -> None:
        self.estimator, self.cv, self.verbose = estimator, cv, verbose

    def _check_parameters(self) -> None:
        if self.cv == HELD_OUT:
            raise ValueError("cv='held-out' is for machines that are fitted already: use model.calibrate(X, y, cv=...)")

    def _learn(self, machine: Any, X: Any, y: Any, sample_weight: Any, cv: Any) -> None:
        X, sample_weight = placed(X), on_host(sample_weight)
        y = column_or_1d(on_host(y), warn=True).astype(np.float64)
        asked = ask(machine)
        check_same_length(X, y)
        self.estimator_ = machine
        if isinstance(cv, str):
            one_of("cv", cv, (HELD_OUT, LEAVE_ONE_OUT))
        self._folds_: list[tuple[Any, Any]] = [(machine, None)]
        self._without_ = np.zeros(len(y), dtype=np.intp)
        self._functions_: LeaveOneOutFunctions | FunctionsLeftOut | None = None
        if cv == HELD_OUT:
            self.residuals_ = np.abs(y - machine.predict(X))
        elif cv == LEAVE_ONE_OUT:
            inner = machine if asked.steps else asked.machine
            if not isinstance(inner, RLSRegressor | SVR):
                raise ValueError(
                    f"cv='leave-one-out' is for RLSRegressor and SVR, not {type(machine).__name__}; use a number of "
                    "folds, or sklearn.model_selection.LeaveOneOut()"
                )
            way: Any = LeaveOneOutFunctions if isinstance(inner, RLSRegressor) else FunctionsLeftOut
            self._functions_ = way.of(inner, X, y, sample_weight)
            self.residuals_ = np.abs(self._functions_.residuals)
        else:
            self._learn_folds(machine, X, y, sample_weight)
        samples.copy_columns(machine, self)

    def _learn_folds(self, machine: Any, X: Any, y: Floats, sample_weight: Any) -> None:
        weight = None if sample_weight is None else np.asarray(sample_weight)
        splits = splits_of(check_cv(self.cv), y, self.cv)
        self._folds_, self.residuals_ = [], np.full(len(y), np.nan)
        lines = FoldLines(self.verbose, len(splits))
        for k, (part, test, rest) in enumerate(fold_machines(machine, X, y, weight, splits)):
            self.residuals_[test] = np.abs(y[test] - part.predict(rest))
            self._without_[test] = k
            self._folds_.append((part, splits[k][0]))
            lines.done()

    def predict(self, X: Any) -> Floats:
        """The machine's own prediction."""
        check_is_fitted(self)
        machine, X = without_names(self, X)
        values: Floats = machine.predict(X)
        return values

    @property
    def laplace_scale_(self) -> float:
        """σ of a Laplace law of the errors, as LIBSVM's -b 1 has it: the mean of `residuals_` but for outliers."""
        check_is_fitted(self)
        return laplace_scale(self.residuals_)

    def predict_interval(self, X: Any, alpha: float = 0.1, method: str = "conformal") -> tuple[Floats, Floats]:
        """The ends of an interval that holds the target with probability of about 1 − alpha; see this module's text.

        An end is infinite where the samples are too few for alpha. method="laplace" gives the interval of LIBSVM's
        law of the errors instead, f(x) ± σ ln(1/alpha), which holds as often as that law is right.
        """
        check_is_fitted(self)
        if not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha={alpha!r} must be between 0 and 1: the share of targets that may be missed")
        if one_of("method", method, ("conformal", "laplace")) == "laplace":
            f, half = self.predict(X), self.laplace_scale_ * math.log(1.0 / alpha)
            return f - half, f + half
        machine, X = without_names(self, X)
        if machine_of(machine) is machine:
            X = read_samples(machine, X, getattr(machine, "kernel_", None), reset=False)
        n, rows = len(self.residuals_), _num_samples(X) if hasattr(X, "iloc") else n_samples(X)
        below, above = math.floor(alpha * (n + 1)), math.ceil((1 - alpha) * (n + 1))
        low, high = np.full(rows, -np.inf), np.full(rows, np.inf)
        for some in row_blocks(rows, 16 * n):
            values = self._left_out(part_of(X, np.arange(some.start, some.stop)))
            if below >= 1:
                low[some] = np.partition(values - self.residuals_, below - 1, axis=1)[:, below - 1]
            if above <= n:
                high[some] = np.partition(values + self.residuals_, above - 1, axis=1)[:, above - 1]
        return low, high

    def _left_out(self, X: Any) -> Floats:
        """f₋ᵢ(x), a row for each x and a column for each i."""
        if self._functions_ is not None:
            return self._functions_(X)
        if self._folds_[0][0] is self.estimator_:
            return np.repeat(self.predict(X)[:, None], len(self.residuals_), axis=1)
        precomputed = get_tags(self.estimator_).input_tags.pairwise
        parts = [part.predict(X[:, train] if precomputed else X) for part, train in self._folds_]
        return np.column_stack(parts)[:, self._without_]


answers_as_asked(CalibratedRegressor)
