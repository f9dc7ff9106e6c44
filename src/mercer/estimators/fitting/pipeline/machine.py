"""The fit and predict pipeline that all estimators share.

    1. fit = Fit.of(...)            read samples, labels, weights and limits; merge samples; bind the kernel
    2. tasks = machine._tasks(fit)  build the problems, each with its solver
    3. solve_tasks(...)             compute solutions and certificates
    4. machine._conclude(...)       set the fitted attributes

`fit` works on a copy of the estimator and takes over the fitted attributes at the end, so a fit that fails or is
interrupted leaves the estimator as it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitting.pipeline.class_spec import DeclaresState, freeze_fitted
from mercer.estimators.fitting.pipeline.fit import Fit, engine_time_limit, read_samples
from mercer.estimators.fitting.pipeline.reporting import CallbackSupport, Progress, warn_user, with_callbacks
from mercer.estimators.fitting.pipeline.state import (
    Array,
    Count,
    Flag,
    Proof,
    Record,
    Text,
    Unsaved,
    fitted,
)
from mercer.estimators.fitting.pipeline.task import Solutions, Tasks, solve_tasks
from mercer.estimators.fitting.pipeline.warm_start import WarmStart
from mercer.kernels import Kernel
from mercer.kernels.names import as_kernel, kernel_accepts
from mercer.places.expansion import Expansion
from mercer.runtime.errors import ModelFormatError
from mercer.runtime.parameters import REGULARIZED, SuggestsParameters
from mercer.runtime.refitting import adopt_fit, blank_copy
from mercer.runtime.threads import effective_n_threads
from mercer.samples.arrays import Data, Floats, Indices, Weights, are_strings, is_sparse
from mercer.samples.checks import copy_columns
from mercer.samples.engine import report_of
from mercer.samples.matrices import column_spreads


@dataclass(frozen=True, eq=False)
class CompressionRecord:
    """Figures of a compression; arrays have one entry per output."""

    n_before: int  # vectors of the original
    removed: int  # vectors removed exactly, up to rounding
    moved: bool  # True if vectors were moved by gradient steps
    retrained: bool
    error: Floats  # upper bound on ‖w − w'‖
    b_change: Floats  # |b − b'|
    lengths: Floats  # upper bound on Σ |β_j| √k(x_j, x_j) of the original
    at_vectors: Floats  # upper bound on |⟨w − w', φ(z)⟩| at the kept vectors z: about zero for a projection

    def check(self, name: str) -> None:
        """Raise ModelFormatError for figures that no compression can have."""
        for part in ("error", "b_change", "lengths", "at_vectors"):
            if not (getattr(self, part) >= 0).all():
                raise ModelFormatError(f"{name}.{part} must not be negative")
        if self.removed > self.n_before:
            raise ModelFormatError(f"{name}.removed must be at most n_before")


# With at least this many sub-problems per thread, they are solved concurrently, each on one thread; otherwise one after
# another, each on all threads.
_TASKS_PER_THREAD = 4


@dataclass(frozen=True, eq=False)
class FitOptions:
    """Options of one fit: callbacks, warm start, whether to keep the state, and whether to polish the solutions."""

    watched_by: Any  # estimator whose callbacks watch the fit
    warm_start: WarmStart | None = None  # state of the previous fit
    keep_state: bool = False  # whether to keep the state for the next fit
    exact: bool = False  # whether solutions are made exact to rounding


# Fitted attributes of every machine whose problems are solved and certified.
CERTIFIED = fitted(
    intercept_=Array("outputs", required=True),
    certificate_=Proof(),
    converged_=Flag(),
    stop_reason_=Text(),
    n_iter_=Count(or_array=True),
    _compression_=Record(
        CompressionRecord,
        n_before=Count(),
        removed=Count(),
        moved=Flag(),
        retrained=Flag(),
        error=Array("outputs"),
        b_change=Array("outputs"),
        lengths=Array("outputs"),
        at_vectors=Array("outputs"),
    ),
    _original_certificate_=Proof(needs="_compression_"),
)


# Types of parameters that many machines have.
KernelChoice = str | Kernel | Callable[..., Any]
ClassWeight = Mapping[Any, float] | str | None
RandomState = int | np.random.RandomState | None


@dataclass(eq=False, repr=False)
class Machine(SuggestsParameters, CallbackSupport, DeclaresState, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Base class of all estimators: the pipeline, to which subclasses add parameters, tasks and fitted attributes."""

    _FITTED = fitted(fit_report_=Unsaved())

    _: KW_ONLY
    verbose: bool = False
    n_jobs: int | None = None

    # --- hooks of subclasses ---------------------------------------------------------------------------------------

    # f is this factor times the output of the expansion, minus k(x, x) if so declared; nothing else scales f.
    _DECISION_FACTOR: ClassVar[float] = 1.0
    _SUBTRACTS_DIAGONAL: ClassVar[bool] = False
    # Name of f in messages, if `decision_function` returns something other than f.
    _DECISION_NAME: ClassVar[str] = ""

    # Meaning of `max_iter=-1`, unless it depends on the samples.
    _default_steps: ClassVar[int | None] = None

    def _check_parameters(self) -> None:
        """Raise for parameters that are invalid whatever the data."""

    def _read(self, y: ArrayLike | None) -> tuple[Indices | None, Any]:
        """Return a code for each sample and the target read from y.

        Samples may be merged if their codes are equal; None allows it for all samples. A machine without targets
        returns None twice.
        """
        return None, None

    def _weigh(self, target: Any, codes: Indices, weight: Floats) -> tuple[Floats, Any]:
        """Return the sample weights for merging, and the target, completed by what depends on the weights."""
        return weight, target

    def _tasks(self, fit: Fit) -> Tasks[Any]:
        """Return the problems to solve, with their solvers."""
        raise NotImplementedError

    def _starts(self, fit: Fit, tasks: Tasks[Any], last_state: WarmStart | None) -> list[Any]:
        """Return a starting point for each task; None leaves the choice to the solver."""
        return [None] * len(tasks)

    def _solve(self, fit: Fit, tasks: Tasks[Any], progress: Progress, starts: list[Any]) -> tuple[Fit, Solutions[Any]]:
        """Solve the tasks; return the solutions and their fit, whose kernel may have been chosen on the way."""
        return fit, solve_tasks(tasks, fit, progress, starts, self._side_by_side(fit, len(tasks)))

    def _conclude(self, fit: Fit, solved: Solutions[Any]) -> None:
        """Set the fitted attributes that only this kind of machine has."""
        raise NotImplementedError

    def _remarks(self, fit: Fit, solved: Solutions[Any]) -> list[tuple[str, type[Warning]]]:
        """Return further messages for the user after the fit, each with its category of warning."""
        return []

    def _merges(self, X: Data, budget: int) -> bool:
        """Return True if identical samples are to be merged, which copies the samples."""
        return True

    def _max_steps(self, n: int) -> int:
        """Return the meaning of `max_iter=-1` for n samples."""
        return max(10_000_000, 100 * n) if self._default_steps is None else self._default_steps

    def _side_by_side(self, fit: Fit, n_tasks: int) -> int:
        """Return the number of tasks that are solved concurrently."""
        n_threads = fit.limits.n_threads
        return n_threads if n_tasks >= _TASKS_PER_THREAD * n_threads > _TASKS_PER_THREAD else 1

    @property
    def _constant_feature(self) -> bool:
        """True if the bias is the weight of a constant feature, so that problems are solved with the kernel k + 1."""
        return bool(vars(self).get("bias") in REGULARIZED)

    # --- the pipeline ----------------------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Data, y: ArrayLike | None, sample_weight: Weights = None) -> Self:
        """Fit the machine to samples and targets.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training samples: a list of strings for a string kernel, the square kernel matrix for a precomputed one.
        y : array of shape (n_samples,)
            Target values: class labels for a classifier, numbers for a regressor.
        sample_weight : array of shape (n_samples,), optional
            Sample weights. A weight is equivalent to that many repetitions of the sample; 0 leaves the sample out.

        Returns
        -------
        self
            Fitted estimator.
        """
        has_warm_start = bool(vars(self).get("warm_start"))
        last_state = vars(self).get("_memory_") if has_warm_start else None
        return self._adopt(self._fit_copy(X, y, sample_weight, FitOptions(self, last_state, keep_state=has_warm_start)))

    def _fit_copy(self, X: Data, y: ArrayLike | None, sample_weight: Weights, options: FitOptions) -> Self:
        """Return a fitted copy of this estimator."""
        trained_copy, max_time = blank_copy(self), vars(self).get("max_time")
        if max_time is None:
            trained_copy._train(trained_copy._input(X, y, sample_weight), y, options)
        else:
            with engine_time_limit(X, max_time):
                trained_copy._train(trained_copy._input(X, y, sample_weight), y, options)
        return trained_copy

    def _adopt(self, trained: Self) -> Self:
        """Take over the fitted attributes of a copy, checked and made read-only."""
        _check_and_freeze(trained)
        return adopt_fit(self, trained)

    def _train(self, fit: Fit, y: ArrayLike | None, options: FitOptions, starts: list[Any] | None = None) -> None:
        """Run steps 2 to 4 of the pipeline on this estimator and warn if it has not converged."""
        tasks = self._tasks(fit).with_exact_solutions() if options.exact else self._tasks(fit)
        progress = Progress(options.watched_by, bool(getattr(self, "verbose", False)), len(tasks), fit.X, y)
        starts = self._starts(fit, tasks, options.warm_start) if starts is None else starts
        fit, solved = self._solve(fit, tasks, progress, starts)
        self.__dict__.update(report_of(fit.X) | ({} if fit.kernel is None else {"kernel_": fit.kernel}))
        self._record_end(solved)
        self._conclude(fit, solved)
        if options.keep_state:
            self._keep_state(fit, solved)
        for message, category in self._remarks(fit, solved):
            warn_user(message, category)
        if not self.converged_:
            self._warn_early(self._early_stop_message(fit.X))
        progress.close(fit.X, y, self)

    def _input(self, X: Data, y: ArrayLike | None, sample_weight: Weights) -> Fit:
        """Return the input of the fit; subclasses may accept other things than samples."""
        return Fit.of(self, X, y, sample_weight)

    def _warn_early(self, message: str) -> None:
        """Warn with this message that training stopped early."""
        warn_user(message, ConvergenceWarning)

    def _record_end(self, solved: Solutions[Any]) -> None:
        """Set `certificate_`, `stop_reason_`, `converged_` and `n_iter_`."""
        self.certificate_ = solved.certificate
        # A limit takes precedence over other reasons, since the user can change it.
        reasons = solved.reasons
        limit = "max_time" if "max_time" in reasons else "max_iter" if "max_iter" in reasons else None
        reason = limit or next(iter(reasons), "converged")
        # A gap that is not finite proves nothing: its terms exceed float64.
        is_proven = reason != "converged" or math.isfinite(self.certificate_.gap)
        self.stop_reason_ = reason if is_proven else "rounding floor"
        self.converged_ = self.stop_reason_ == "converged"
        self.n_iter_: Any = solved.steps

    def _keep_state(self, fit: Fit, solved: Solutions[Any]) -> None:
        """Store the state from which a later fit can start."""

    @property
    def function_(self) -> Any:
        """Function f as an element of the kernel's space, a `mercer.rkhs.Function`; a list for several outputs."""
        from mercer.inspection.rkhs import functions_of

        check_is_fitted(self)
        return functions_of(self)

    def _decision(self, X: Data) -> Floats:
        """Return the outputs of the expansion at X, one column per output."""
        return self._values(self._read_new_samples(X))

    def _read_new_samples(self, X: Data) -> Any:
        """Return X checked and converted to samples at which the expansion can be evaluated."""
        if "_expansion_" not in vars(self):  # the check itself takes a tenth of a prediction of one row
            check_is_fitted(self)
        expansion: Expansion = self._expansion_
        samples = read_samples(self, X, expansion.kernel, reset=False)
        if expansion.columns is not None and samples.shape[1] < expansion.n_columns:  # n_features_in_ refuses more
            raise ValueError(
                f"X has {samples.shape[1]} columns, but a precomputed kernel needs the values between the new samples "
                f"and all training samples, which are at least {expansion.n_columns}"
            )
        return samples

    def _values(self, X: Data) -> Floats:
        """Return the outputs of the expansion at samples from `_read_new_samples`."""
        expansion: Expansion = self._expansion_
        return expansion(X, effective_n_threads(getattr(self, "n_jobs", None)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        freeze_fitted(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        accepts = kernel_accepts(self.kernel) if hasattr(self, "kernel") else "vectors"
        tags.input_tags.sparse = accepts == "vectors"
        tags.input_tags.pairwise = accepts == "gram"
        tags.input_tags.string = accepts == "sequences"
        tags.input_tags.two_d_array = accepts != "sequences"
        return tags

    # --- parameters ------------------------------------------------------------------------------------------------

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        # scikit-learn reads the signature again at every get_params, set_params and clone: 0.5 ms each.
        names: list[str] = super()._get_param_names()
        return names

    def set_params(self, **params: Any) -> Self:
        """Set the parameters of this estimator.

        Parameters
        ----------
        **params : dict
            Estimator parameters, and parameters of a kernel object in the form `kernel__gamma`.

        Returns
        -------
        self
            Estimator instance.
        """
        refuse_kernel_parameters(params.get("kernel", vars(self).get("kernel")), params)
        super().set_params(**params)
        return self

    def _kernel(self) -> Kernel | None:
        """Return the kernel as an unbound kernel object; None for a linear machine."""
        return kernel_of(vars(self)) if "kernel" in vars(self) else None

    def _early_stop_message(self, X: Data) -> str:
        """Return the message for a fit that stopped early: the accuracy reached, and advice."""
        proof, reason = self.certificate_, self.stop_reason_
        tol = getattr(self, "tol", None)
        goal = f"tol={tol:g}" if tol is not None else f"gap_tol={getattr(self, 'gap_tol', None)}"
        text = (
            f"{type(self).__name__} stopped before {goal} ({reason}): violation {proof.violation:.3g}, gap "
            f"{proof.gap:.3g}, {proof.relative_gap:.1e} of the dual value. "
        )
        advice = "lower C, " if hasattr(self, "C") else "raise lam, " if hasattr(self, "lam") else ""
        if reason == "rounding floor":
            return text + f"float64 cannot resolve less here; {advice}raise tol or scale the features"
        if reason in ("max_iter", "max_time"):
            text += f"Raise {reason}, or help convergence: "
        ratio = _scale_ratio(X)
        if ratio > 100:
            return text + f"the features' scales differ by a factor of {ratio:.1e}; standardise them"
        return text + f"{advice}raise tol or scale the features"


def kernel_of(parameters: Mapping[str, Any]) -> Kernel:
    """Return a new kernel object for the parameters of a machine, not yet bound to data."""
    kernel = parameters["kernel"]
    if isinstance(kernel, Kernel):
        copy: Kernel = clone(kernel)
        marked = {name: value for name, value in parameters.items() if name.startswith("kernel__")}
        copy.set_params(**{name.removeprefix("kernel__"): value for name, value in marked.items()})
        return copy
    options = {name: parameters[name] for name in ("degree", "gamma", "coef0") if name in parameters}
    return as_kernel(kernel, **options)


def refuse_kernel_parameters(kernel: Any, params: Mapping[str, Any]) -> None:
    """Raise ValueError for parameters `kernel__…` of a kernel that is given by name."""
    kernel_parameter = next((name for name in params if name.startswith("kernel__")), None)
    if kernel_parameter is not None and isinstance(kernel, str):
        raise ValueError(
            f"{kernel_parameter} is a parameter of a kernel object, but kernel={kernel!r} is a name: set "
            f"{kernel_parameter.removeprefix('kernel__')} itself, or give an object such as "
            "kernel=mercer.kernels.Gaussian()"
        )


def fit_copy_on(machine: Machine, fit: Fit, starts: list[Any]) -> Any:
    """Return a copy of a machine fitted to samples that were read before, with a starting point for each problem."""
    trained_copy = blank_copy(machine)
    copy_columns(machine, trained_copy)
    trained_copy._train(fit, fit.y, FitOptions(machine), starts)
    _check_and_freeze(trained_copy)
    return trained_copy


def _check_and_freeze(model: Machine) -> None:
    """Make the fitted arrays read-only; raise FloatingPointError if coefficients of a fit are not finite."""
    attributes = vars(model)
    values = {name: attributes[name] for name in ("coef_", "dual_coef_", "intercept_") if name in attributes}
    if "_expansion_" in attributes:
        values["expansion"] = attributes["_expansion_"].coefficients
    for name, value in values.items():
        if not np.isfinite(value.data if is_sparse(value) else value).all():
            raise FloatingPointError(
                f"{type(model).__name__} overflowed: its {name} is not finite. The features, the targets, the weights "
                "or the penalty (C or 1/lam) are too large or too small together; scale them"
            )
    for name, value in attributes.items():  # freeze_fitted inlined, since its calls take time in a small fit
        if name[-1] == "_" and type(value) is np.ndarray:
            value.setflags(write=False)


def _scale_ratio(X: Any) -> float:
    """Return the ratio of the largest to the smallest nonzero standard deviation of the features."""
    if are_strings(X):
        return 1.0
    spread = column_spreads(X)
    spread = spread[spread > 0]
    return float(spread.max() / spread.min()) if len(spread) else 1.0
