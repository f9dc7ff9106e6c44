"""Regressors with prediction intervals of a chosen probability, from residuals of held-out samples.

Jackknife+ and CV+ (Barber, Candès, Ramdas, Tibshirani 2021): with f₋ᵢ trained without sample i, or without its fold,
and Rᵢ = |yᵢ − f₋ᵢ(xᵢ)|, the interval at x goes from the ⌊α(n + 1)⌋-th smallest of f₋ᵢ(x) − Rᵢ to the
⌈(1 − α)(n + 1)⌉-th smallest of f₋ᵢ(x) + Rᵢ. If one sample is left out at a time, it contains y with probability at
least 1 − 2α for any distribution of the samples, with folds 1 − 2α − √(2/n), and in practice nearly 1 − α. With samples
that the machine was not trained on, f is the same for all i, and the probability is at least 1 − α. `guarantee_` states
what is proven.

A sample of weight k counts as k samples of the same fold, and the new sample as one.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Final

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from mercer.calibration.calibrated import (
    HELD_OUT,
    Calibrated,
    expect_numbers,
    expect_weight,
    one_target,
    weighted_splits,
)
from mercer.calibration.leave_one_out_functions import LeaveOneOutFunctions
from mercer.calibration.libsvm_laws import laplace_scale
from mercer.calibration.symmetry import order_dependence
from mercer.calibration.weighted_ranks import are_counts, lower_ends, upper_ends
from mercer.estimators import SVR, RLSRegressor
from mercer.estimators.fitting.families.kernel_weights import MultipleKernelMachine
from mercer.estimators.fitting.mixins import ScoresR2
from mercer.estimators.fitting.pipeline.dataclass_spec import OneOf
from mercer.estimators.fitting.pipeline.fit import read_samples
from mercer.estimators.fitting.pipeline.state import (
    Array,
    AttributeSpec,
    IndexArray,
    KernelExpansion,
    check_vectors,
    expect,
    fitted,
)
from mercer.model_selection.held_out.folds import calibration_splits
from mercer.model_selection.held_out.leave_one_out import FunctionsLeftOut, refuse_one_sample
from mercer.model_selection.held_out.machines import (
    FoldProgress,
    fold_machines,
    issue_warnings,
    machine_of,
    search_names,
    without_names,
)
from mercer.runtime.errors import collect_warnings
from mercer.runtime.parameters import one_of
from mercer.runtime.threads import effective_n_threads
from mercer.samples import checks
from mercer.samples.arrays import Floats, freeze, n_samples, row_blocks
from mercer.samples.checks import check_same_length
from mercer.samples.engine import like_input, on_host, to_engine
from mercer.tables.frame import part_of
from mercer.tables.unwrap import unwrap

LEAVE_ONE_OUT = "leave-one-out"

_LEARNT_KERNEL: Final = (
    "the kernel's parameters were computed from all samples, including those left out; with fixed numbers at least "
    "1 − 2 alpha"
)


@dataclass(frozen=True)
class _Folds(AttributeSpec):
    """Spec of the machines of all folds with their training rows; without folds, the machine itself and None."""

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        return {name: [list(pair) for pair in value if pair[1] is not None]}

    def from_plain(self, name: str, parts: dict[str, Any], model: Any) -> Any:
        """Build the attribute's value from what a file stores for it."""
        folds = parts[name]
        are_pairs = isinstance(folds, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in folds)
        expect(are_pairs and all(hasattr(pair[0], "predict") for pair in folds), "a fold is a machine and its rows")
        return [(machine, rows) for machine, rows in folds] or [(model.estimator_, None)]

    def check(self, name: str, value: Any, model: Any) -> None:
        """Raise ModelFormatError unless the training rows of every fold are indices of samples."""
        # Samples of weight 0 have row numbers, but no residuals.
        spec = IndexArray(None if hasattr(model, "_weight_") else "residuals_")
        for _, rows in value:
            if rows is not None:
                spec.check("the rows of a fold", rows, model)


@dataclass(eq=False, repr=False)
class CalibratedRegressor(ScoresR2, Calibrated):
    """A regressor trained on all samples, with prediction intervals from the residuals of held-out samples.

    `model.calibrate(X, y)` makes one from a fitted machine.

    Parameters
    ----------
    estimator : a regressor, optional
        Regressor to calibrate; None means SVR(). It may be the last step of a Pipeline, or inside `mercer.tabular` or a
        search: all of it is fitted again in every fold, and the search is repeated. A FrozenEstimator, which was
        trained on other samples, is not fitted again; its predictions are used without folds.
    cv : int, splitter or "leave-one-out", default=5
        Folds that hold out every sample once. "leave-one-out" is exact: `RLSRegressor` computes all n functions from
        one inverse (memory for n² numbers), `SVR` by removing each support vector.
    verbose : bool, default=False
        Whether to print a line after each fold.

    Attributes
    ----------
    estimator_ : estimator
        The machine, trained on all samples.
    residuals_ : array of shape (n_samples,)
        |y − f(x)| of each sample by the machine that did not train on it, without samples of weight 0.
    guarantee_ : str
        Statement that is proven about `predict_interval`.

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

    _FITTED = fitted(
        residuals_=Array(None, required=True),
        _folds_=_Folds(required=True),
        _without_=IndexArray(required=True),
        _functions_=OneOf(LeaveOneOutFunctions, FunctionsLeftOut, or_none=True, required=True),
        _weight_=Array(None),
    )

    estimator: Any = None
    cv: Any = 5
    _: KW_ONLY
    verbose: bool = False

    _default = SVR

    def _check_parameters(self) -> None:
        if self.cv == HELD_OUT:
            raise ValueError("cv='held-out' is for fitted machines: use model.calibrate(X, y, cv='held-out')")

    def _learn(self, machine: Any, X: Any, y: Any, sample_weight: Any, cv: Any) -> None:
        """Compute the held-out residuals of a fitted machine, with the functions of the intervals."""
        X = to_engine(X)
        y = one_target(y, machine_of(machine)).astype(np.float64)
        check_same_length(X, y)
        weight = checks.weights(on_host(sample_weight), len(y))
        has_weight = weight > 0
        self.estimator_ = machine
        if isinstance(cv, str):
            one_of("cv", cv, (HELD_OUT, LEAVE_ONE_OUT), "a number of folds, a splitter of scikit-learn")
        self._folds_: list[tuple[Any, Any]] = [(machine, None)]
        self._without_ = np.zeros(int(has_weight.sum()), dtype=np.intp)
        self._functions_: LeaveOneOutFunctions | FunctionsLeftOut | None = None
        if cv == HELD_OUT:
            self.residuals_ = np.abs(y - _predictions(machine, X))[has_weight]
        elif cv == LEAVE_ONE_OUT:
            self._functions_ = _leave_one_out_functions(machine, X, y, None if sample_weight is None else weight)
            self.residuals_ = np.abs(self._functions_.residuals)
            if not _has_fixed_kernel(machine_of(machine)):
                self._unproven_ = _LEARNT_KERNEL
        else:
            self._learn_folds(machine, X, y, None if sample_weight is None else weight)
        self._record_order_dependence(cv)
        if (weight != 1).any():
            self._weight_ = freeze(weight[has_weight])
        checks.copy_columns(machine, self)

    def _record_order_dependence(self, cv: Any) -> None:
        """Record why jackknife+ and CV+ prove nothing, if the fit may depend on the order of the samples.

        The reason is stored, since the parameters that it depends on may be changed later.
        """
        if cv == HELD_OUT or "_unproven_" in vars(self):
            return
        n_train = max((len(rows) for _, rows in self._folds_ if rows is not None), default=len(self.residuals_))
        reason, searches = order_dependence(self.estimator_, n_train), search_names(self.estimator_)
        if searches:
            self._unproven_ = f"{searches[0]} searches with its own folds, which depend on the order of the samples"
        elif reason is not None:
            self._unproven_ = reason

    def _learn_folds(self, machine: Any, X: Any, y: Floats, weight: Floats | None) -> None:
        """Fit the machine without each fold, and compute the residuals of the held-out samples."""
        mass = np.ones(len(y)) if weight is None else weight
        splits = weighted_splits(self.cv, mass, lambda rows: calibration_splits(check_cv(self.cv), y[rows], self.cv))
        n = np.count_nonzero(mass)
        if any(np.count_nonzero(mass[np.union1d(train, test)]) < n for train, test in splits):
            self._unproven_ = "a fold does not train on all samples that it does not hold out"
        elif any(len(np.unique(train)) < len(train) for train, _ in splits):
            self._unproven_ = "a fold trains on a sample more than once"
        residuals, fold = np.full(len(y), np.nan), np.zeros(len(y), dtype=np.intp)
        self._folds_ = []
        progress = FoldProgress(self.verbose, len(splits))
        for k, (fold_model, test, test_X) in enumerate(fold_machines(machine, X, y, weight, splits)):
            residuals[test] = np.abs(y[test] - _predictions(fold_model, test_X))
            fold[test] = k
            self._folds_.append((unwrap(fold_model).rewrap(unwrap(fold_model).machine), splits[k][0]))
            progress.done()
        self.residuals_, self._without_ = residuals[mass > 0], fold[mass > 0]

    def _check_fitted(self) -> None:
        """Raise ModelFormatError if attributes that were read from a file do not fit together."""
        n, functions = len(self.residuals_), self._functions_
        expect_weight(self, "_weight_", n)
        # `_without_` holds the index of the fold in which each sample is held out.
        expect_numbers(self._without_, "the fold of each sample", n)
        IndexArray(len(self._folds_)).check("the fold of each sample", self._without_, self)
        if functions is None:
            return
        expect_numbers(functions.residuals, "residuals", n)
        if isinstance(functions, FunctionsLeftOut):
            expansion = functions.expansion
            KernelExpansion().check("functions", expansion, self.estimator_)
            expect_numbers(functions.output, "the function of each sample", n)
            IndexArray(len(expansion.b)).check("the function of each sample", functions.output, self)
            return
        expect_numbers(functions.c, "c", n)
        expect(functions.inverse.shape in ((n, n), (n + 1, n + 1)), "the inverse must be square")
        if functions.kernel.accepts == "gram":
            expect(functions.vectors is None, "a precomputed kernel has no vectors")
        else:
            check_vectors("the vectors", functions.vectors, n, getattr(self.estimator_, "n_features_in_", None))

    def _complete_fitted(self) -> None:
        """Set the attributes that a file does not contain."""
        self.estimator = self.estimator_
        if isinstance(self._functions_, FunctionsLeftOut):  # a file does not choose the number of threads
            threads = effective_n_threads(getattr(self.estimator_, "n_jobs", None))
            self._functions_ = replace(self._functions_, n_threads=threads)

    @like_input
    def predict(self, X: Any) -> Floats:
        """Predict by the machine that was trained on all samples."""
        check_is_fitted(self)
        machine, X = without_names(self, X)
        values: Floats = machine.predict(X)
        return values

    @property
    def laplace_scale_(self) -> float:
        """Scale σ of a Laplace law of the errors, as in LIBSVM's -b 1: the mean of `residuals_` without outliers."""
        check_is_fitted(self)
        return laplace_scale(self.residuals_, self._weights())

    @property
    def guarantee_(self) -> str:
        """Statement that is proven about `predict_interval`, or "none" and the reason."""
        check_is_fitted(self)
        if "_unproven_" in vars(self):
            return f"none: {self._unproven_}; in practice about 1 − alpha"
        weight = self._weights()
        # Folds that hold out a sample of positive weight: `_without_` names the fold of each sample.
        n_folds = len(np.unique(self._without_))
        exchangeable = "if the samples and the new one are exchangeable"
        if not are_counts(weight):
            return "none: fractional weights do not count samples; in practice about 1 − alpha"
        if self._functions_ is None and self._folds_[0][0] is self.estimator_:
            return f"the target is inside with probability at least 1 − alpha, {exchangeable}"
        if weight is not None:
            return "none: a sample of weight k is held out with all its k copies; in practice about 1 − alpha"
        if self._functions_ is not None:
            if not _has_fixed_kernel(machine_of(self.estimator_)):  # older files do not record it
                return f"none: {_LEARNT_KERNEL}; in practice about 1 − alpha"
            n_folds = len(self.residuals_)
        if n_folds == len(self.residuals_):
            return f"the target is inside with probability at least 1 − 2 alpha (jackknife+), {exchangeable}"
        return (
            f"the target is inside with probability at least 1 − 2 alpha − √(2/{len(self.residuals_)}) (CV+), "
            f"{exchangeable}, and the folds are of equal size and were made without looking at the samples"
        )

    def _weights(self) -> Floats | None:
        """Return the weight of each residual; None if all are 1."""
        weight: Floats | None = vars(self).get("_weight_")
        return None if weight is None or bool((weight == 1).all()) else weight

    def predict_interval(self, X: Any, alpha: float = 0.1, method: str = "conformal") -> tuple[Floats, Floats]:
        """Return the ends of an interval that contains the target with probability about 1 − alpha; see `guarantee_`.

        An end is infinite if there are too few samples for alpha. method="laplace" gives the interval of LIBSVM's
        Laplace law of the errors instead, f(x) ± σ ln(1/alpha), which is as reliable as that law.
        """
        check_is_fitted(self)
        if not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha={alpha!r} must be between 0 and 1: the share of targets that may be missed")
        if one_of("method", method, ("conformal", "laplace")) == "laplace":
            f, half_width = self.predict(X), self.laplace_scale_ * math.log(1.0 / alpha)
            return f - half_width, f + half_width
        machine, X = without_names(self, X)
        if machine_of(machine) is machine:
            X = read_samples(machine, X, getattr(machine, "kernel_", None), reset=False)
        residuals, weight = self.residuals_, self._weights()
        if self._functions_ is None and self._folds_[0][0] is self.estimator_:
            f = machine.predict(X)  # rounding keeps the order: f + (k-th residual) is the k-th value of f + residuals
            return (
                f + float(lower_ends(-residuals[None], weight, alpha)[0]),
                f + float(upper_ends(residuals[None], weight, alpha)[0]),
            )
        n, rows = len(residuals), _num_samples(X) if hasattr(X, "iloc") else n_samples(X)
        low, high = np.empty(rows), np.empty(rows)
        with collect_warnings() as fold_warnings:
            for block in row_blocks(rows, (16 if weight is None else 48) * n):
                values = self._left_out_values(part_of(X, np.arange(block.start, block.stop)))
                low[block] = lower_ends(values - residuals, weight, alpha)
                high[block] = upper_ends(values + residuals, weight, alpha)
        issue_warnings(fold_warnings)
        return low, high

    def _left_out_values(self, X: Any) -> Floats:
        """Return f₋ᵢ(x), a row for each x and a column for each i."""
        if self._functions_ is not None:
            return self._functions_(X)
        precomputed = get_tags(self.estimator_).input_tags.pairwise
        values = [machine.predict(X[:, train] if precomputed else X) for machine, train in self._folds_]
        return np.column_stack(values)[:, self._without_]


def _predictions(machine: Any, X: Any) -> Floats:
    """Return one prediction for each sample; raise ValueError if the machine predicts several."""
    values: Floats = np.asarray(machine.predict(X))
    if values.ndim > 1:
        raise ValueError(
            f"calibrating {type(machine_of(machine)).__name__}: it predicts an array of shape {values.shape}, but "
            "intervals need one number for each sample; calibrate a QuantileSVR with one quantile, quantiles=0.5 (not "
            "a list), or use two of its quantiles as an interval"
        )
    return values


def _leave_one_out_functions(machine: Any, X: Any, y: Floats, weight: Floats | None) -> Any:
    """Return all leave-one-out functions; raise ValueError for machines without exact ones, such as searches."""
    unwrapped = unwrap(machine)
    inner, name = machine if unwrapped.steps else unwrapped.machine, type(machine).__name__
    searches = search_names(machine)
    if searches or isinstance(inner, MultipleKernelMachine):
        reason = f"{searches[0]} chooses its parameters" if searches else f"{name} learns its kernel weights"
        raise ValueError(
            f"cv='leave-one-out' is not available: {reason} from all targets, including those left out; use a number "
            "of folds, or sklearn.model_selection.LeaveOneOut(), which learn them again for each fold"
        )
    if not isinstance(inner, RLSRegressor | SVR):
        raise ValueError(
            f"cv='leave-one-out' is for RLSRegressor and SVR, not {name}; use a number of folds, or "
            "sklearn.model_selection.LeaveOneOut()"
        )
    if weight is not None and not weight.all():
        if inner.kernel_.accepts == "gram":
            raise ValueError(
                "cv='leave-one-out' with a precomputed kernel needs positive weights; remove the rows and columns of "
                "samples of weight 0 from the matrix"
            )
        rows = np.flatnonzero(weight)
        X, y, weight = part_of(X, rows), y[rows], weight[rows]
    refuse_one_sample(len(y))
    functions: Any = LeaveOneOutFunctions if isinstance(inner, RLSRegressor) else FunctionsLeftOut
    return functions.of(inner, X, y, weight)


def _has_fixed_kernel(machine: Any) -> bool:
    """Return whether the kernel's parameters are numbers given by the user."""
    kernel = machine._kernel()
    return bool(kernel.accepts == "gram" or kernel.bound)
