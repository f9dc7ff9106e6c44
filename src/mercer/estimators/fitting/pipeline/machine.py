"""The one fit and predict pipeline of every estimator: samples in, problems solved and certified, a machine out.

    fit = Fit.of(...)            samples, labels, weights, limits; merged; the kernel bound
    tasks = machine._tasks(fit)  problems, and the solver each wants
    solve_tasks(...)             solutions and proofs
    machine._conclude(...)       fitted attributes

`fit` works on a copy of the estimator and hands over everything it learnt at its end, so a fit that fails or is
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
from mercer.estimators.fitting.pipeline.fit import Fit, ended_late, read_samples
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
from mercer.samples.arrays import Data, Floats, Indices, Weights, are_strings, freeze, is_sparse
from mercer.samples.checks import copy_columns
from mercer.samples.engine import report_of
from mercer.samples.matrices import column_spreads


@dataclass(frozen=True, eq=False)
class CompressionRecord:
    """Numbers of a compression; arrays have one for each output."""

    n_before: int  # vectors of the original
    removed: int  # of which were removed without an error but rounding
    moved: bool  # whether positions were found by gradient
    retrained: bool
    error: Floats  # at least ‖w − w'‖
    b_change: Floats  # |b − b'|
    lengths: Floats  # at least Σ |β_j| √k(x_j, x_j) of the original
    at_vectors: Floats  # at least |⟨w − w', φ(z)⟩| at the vectors z that are kept: about zero for a projection

    def check(self, name: str) -> None:
        """An error for numbers that no compression has."""
        for part in ("error", "b_change", "lengths", "at_vectors"):
            if not (getattr(self, part) >= 0).all():
                raise ModelFormatError(f"{name}.{part} must not be negative")
        if self.removed > self.n_before:
            raise ModelFormatError(f"{name}.removed must be at most n_before")


# From this many sub-problems per thread on they are solved side by side, each on one thread; fewer share the threads.
_TASKS_PER_THREAD = 4


@dataclass(frozen=True, eq=False)
class Training:
    """Whose callbacks watch a training, what the last one left to start from, whether this one leaves it too, and
    whether its solutions are made exact."""

    watched_by: Any
    before: WarmStart | None = None
    keeps: bool = False
    exact: bool = False


# What the fit of a machine leaves that is solved and certified.
CERTIFIED = fitted(
    intercept_=Array("outputs", required=True),
    certificate_=Proof(),
    converged_=Flag(),
    stop_reason_=Text(),
    n_iter_=Count(several=True),
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


# Values of parameters that many machines have.
KernelChoice = str | Kernel | Callable[..., Any]
ClassWeight = Mapping[Any, float] | str | None
RandomState = int | np.random.RandomState | None


@dataclass(eq=False, repr=False)
class Machine(SuggestsParameters, CallbackSupport, DeclaresState, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """The pipeline that all estimators share; each adds its parameters, its tasks and its conclusions."""

    _FITTED = fitted(fit_report_=Unsaved())

    _: KW_ONLY
    verbose: bool = False
    n_jobs: int | None = None

    # --- what a machine provides -----------------------------------------------------------------------------------

    # f is this many times the expansion's output, less k(x, x) if it says so: the one place for the unit of f.
    _DECISION_FACTOR: ClassVar[float] = 1.0
    _SUBTRACTS_DIAGONAL: ClassVar[bool] = False
    # The name of f where `decision_function` answers something else; tools that speak of f then say it.
    _DECISION_NAME: ClassVar[str] = ""

    # What `max_iter=-1` stands for, unless it depends on the samples.
    _default_steps: ClassVar[int | None] = None

    def _check_parameters(self) -> None:
        """Refuse parameters that no data could make right."""

    def _read(self, y: ArrayLike | None) -> tuple[Indices | None, Any]:
        """One code per sample, equal where two samples may be merged (None: all of them), and what else was learnt
        from y: nothing by a machine without targets."""
        return None, None

    def _weigh(self, target: Any, codes: Indices, weight: Floats) -> tuple[Floats, Any]:
        """The weights that samples are merged with, and the target with what the weights add to it."""
        return weight, target

    def _tasks(self, fit: Fit) -> Tasks[Any]:
        """The problems to solve."""
        raise NotImplementedError

    def _starts(self, fit: Fit, tasks: Tasks[Any], before: WarmStart | None) -> list[Any]:
        """Where each solve begins; None leaves it to the solver."""
        return [None] * len(tasks)

    def _solve(self, fit: Fit, tasks: Tasks[Any], progress: Progress, starts: list[Any]) -> tuple[Fit, Solutions[Any]]:
        """What was found, and the fit that it is about: a machine may choose its kernel while it learns."""
        return fit, solve_tasks(tasks, fit, progress, starts, self._side_by_side(fit, len(tasks)))

    def _conclude(self, fit: Fit, solved: Solutions[Any]) -> None:
        """Fitted attributes beyond those every machine has."""
        raise NotImplementedError

    def _remarks(self, fit: Fit, solved: Solutions[Any]) -> list[tuple[str, type[Warning]]]:
        """What else the user should be told after the fit, and as which warning."""
        return []

    def _merges(self, X: Data, budget: int) -> bool:
        """Whether identical samples are joined, which copies them; else they stay as they are and where they are."""
        return True

    def _max_steps(self, n: int) -> int:
        """What `max_iter=-1` stands for with n samples."""
        return max(10_000_000, 100 * n) if self._default_steps is None else self._default_steps

    def _side_by_side(self, fit: Fit, n_tasks: int) -> int:
        """How many tasks are solved at a time."""
        n_threads = fit.limits.n_threads
        return n_threads if n_tasks >= _TASKS_PER_THREAD * n_threads > _TASKS_PER_THREAD else 1

    @property
    def _constant_feature(self) -> bool:
        """Whether the bias is the weight of a feature that is 1 everywhere, so that problems are solved with k + 1."""
        return bool(vars(self).get("bias") in REGULARIZED)

    # --- the pipeline ----------------------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Data, y: ArrayLike | None, sample_weight: Weights = None) -> Self:
        """Train on samples X with targets y.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            A list of strings for a string kernel; the square kernel matrix for a precomputed one.
        y : array of shape (n_samples,)
            What to learn of each sample.
        sample_weight : array of shape (n_samples,), optional
            A weight counts like that many repetitions of its sample; 0 leaves the sample out.

        Returns
        -------
        self
        """
        warm = bool(vars(self).get("warm_start"))
        before = vars(self).get("_memory_") if warm else None
        return self._become(self._trained(X, y, sample_weight, Training(self, before, keeps=warm)))

    def _trained(self, X: Data, y: ArrayLike | None, sample_weight: Weights, training: Training) -> Self:
        """A trained copy of this estimator."""
        trained, max_time = blank_copy(self), vars(self).get("max_time")
        if max_time is None:
            trained._train(trained._input(X, y, sample_weight), y, training)
        else:
            with ended_late(X, max_time):
                trained._train(trained._input(X, y, sample_weight), y, training)
        return trained

    def _become(self, trained: Self) -> Self:
        _expect_finite(trained)
        for name, value in vars(trained).items():  # freeze_fitted, without its calls: a small fit counts them
            if name[-1] == "_" and type(value) is np.ndarray and value.flags.writeable:
                value.setflags(write=False)
        return adopt_fit(self, trained)

    def _train(self, fit: Fit, y: ArrayLike | None, training: Training, starts: list[Any] | None = None) -> None:
        tasks = self._tasks(fit).exactly() if training.exact else self._tasks(fit)
        progress = Progress(training.watched_by, bool(getattr(self, "verbose", False)), len(tasks), fit.X, y)
        starts = self._starts(fit, tasks, training.before) if starts is None else starts
        fit, solved = self._solve(fit, tasks, progress, starts)
        self.__dict__.update(report_of(fit.X) | ({} if fit.kernel is None else {"kernel_": fit.kernel}))
        self._record_end(solved)
        self._conclude(fit, solved)
        if training.keeps:
            self._keep(fit, solved)
        for message, category in self._remarks(fit, solved):
            warn_user(message, category)
        if not self.converged_:
            self._warn_early(self._unfinished(fit.X))
        progress.close(fit.X, y, self)

    def _input(self, X: Data, y: ArrayLike | None, sample_weight: Weights) -> Fit:
        """What to train on; a machine may take other things than samples."""
        return Fit.of(self, X, y, sample_weight)

    def _warn_early(self, reached: str) -> None:
        """Tell the user that training stopped early, and what it reached."""
        warn_user(reached, ConvergenceWarning)

    def _record_end(self, solved: Solutions[Any]) -> None:
        """What every fit says about its end."""
        self.certificate_ = solved.certificate
        # A limit that the user set is what he can change, whatever else ended other sub-problems.
        reasons = solved.reasons
        limit = "max_time" if "max_time" in reasons else "max_iter" if "max_iter" in reasons else None
        reason = limit or next(iter(reasons), "converged")
        # A gap that is not a finite number proves nothing: its terms are beyond float64.
        finite = reason != "converged" or math.isfinite(self.certificate_.gap)
        self.stop_reason_ = reason if finite else "rounding floor"
        self.converged_ = self.stop_reason_ == "converged"
        self.n_iter_: Any = freeze(solved.steps)

    def _keep(self, fit: Fit, solved: Solutions[Any]) -> None:
        """What a later training can start from."""

    @property
    def function_(self) -> Any:
        """f as an element of the kernel's space, a `mercer.rkhs.Function`; a list of them for several outputs."""
        from mercer.inspection.rkhs import functions_of

        check_is_fitted(self)
        return functions_of(self)

    def _decision(self, X: Data) -> Floats:
        """The expansion's outputs at X, one column each."""
        return self._values(self._to_decide(X))

    def _to_decide(self, X: Data) -> Any:
        """X as samples that the expansion can be evaluated at."""
        check_is_fitted(self)
        expansion: Expansion = self._expansion_
        read = read_samples(self, X, expansion.kernel, reset=False)
        if expansion.columns is not None and read.shape[1] < expansion.n_columns:  # n_features_in_ refuses more
            raise ValueError(
                f"X has {read.shape[1]} columns, but a precomputed kernel needs the values between the new samples "
                f"and all training samples, of which there are at least {expansion.n_columns}"
            )
        return read

    def _values(self, X: Data) -> Floats:
        """The expansion's outputs at samples that were read."""
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
        """Set parameters, also those of a kernel object: `kernel__gamma`."""
        _refuse_parts_of_a_name(params.get("kernel", vars(self).get("kernel")), params)
        super().set_params(**params)
        return self

    def _kernel(self) -> Kernel | None:
        """The kernel as an object of our own, not yet bound to data; a linear machine has none."""
        return kernel_of(vars(self)) if "kernel" in vars(self) else None

    def _unfinished(self, X: Data) -> str:
        """What a fit that stopped early reached, and what to do about it."""
        found, reason = self.certificate_, self.stop_reason_
        tol = getattr(self, "tol", None)
        asked = f"tol={tol:g}" if tol is not None else f"gap_tol={getattr(self, 'gap_tol', None)}"
        text = (
            f"{type(self).__name__} stopped before {asked} ({reason}): violation {found.violation:.3g}, gap "
            f"{found.gap:.3g}, {found.relative_gap:.1e} of the dual value. "
        )
        price = "lower C, " if hasattr(self, "C") else "raise lam, " if hasattr(self, "lam") else ""
        if reason == "rounding floor":
            return text + f"float64 cannot resolve less here; {price}raise tol or scale the features"
        if reason in ("max_iter", "max_time"):
            text += f"Raise {reason}, or help convergence: "
        ratio = _scale_ratio(X)
        if ratio > 100:
            return text + f"the features' scales differ by a factor of {ratio:.1e}; standardise them"
        return text + f"{price}raise tol or scale the features"


def kernel_of(parameters: Mapping[str, Any]) -> Kernel:
    """The kernel that parameters of a machine stand for, not yet bound to data: an object that nobody else has."""
    kernel = parameters["kernel"]
    inner = {name: value for name, value in parameters.items() if name.startswith("kernel__")}
    _refuse_parts_of_a_name(kernel, inner)
    if isinstance(kernel, Kernel):
        own: Kernel = clone(kernel)
        own.set_params(**{name.removeprefix("kernel__"): value for name, value in inner.items()})
        return own
    given = {name: parameters[name] for name in ("degree", "gamma", "coef0") if name in parameters}
    return as_kernel(kernel, **given)


def _refuse_parts_of_a_name(kernel: Any, params: Mapping[str, Any]) -> None:
    inner = next((name for name in params if name.startswith("kernel__")), None)
    if inner is not None and isinstance(kernel, str):
        raise ValueError(
            f"{inner} is a parameter of a kernel object, but kernel={kernel!r} is a name: set "
            f"{inner.removeprefix('kernel__')} itself, or give an object such as kernel=mercer.kernels.Gaussian()"
        )


def trained_on(machine: Machine, fit: Fit, starts: list[Any]) -> Any:
    """A copy of a machine trained on samples that were read already, each of its problems from a start."""
    trained = blank_copy(machine)
    copy_columns(machine, trained)
    trained._train(fit, fit.y, Training(machine), starts)
    _expect_finite(trained)
    return trained


def _expect_finite(model: Machine) -> None:
    """Refuse a fit whose coefficients are not finite numbers."""
    fitted = vars(model)
    values = {name: fitted[name] for name in ("coef_", "dual_coef_", "intercept_") if name in fitted}
    if "_expansion_" in fitted:
        values["expansion"] = fitted["_expansion_"].coefficients
    for name, value in values.items():
        if not np.isfinite(value.data if is_sparse(value) else value).all():
            raise FloatingPointError(
                f"{type(model).__name__} overflowed: its {name} is not finite. The features, the targets, the weights "
                "or their price (C or 1/lam) are too large or too small together; scale them"
            )


def _scale_ratio(X: Any) -> float:
    """The largest standard deviation of a feature over the smallest that is not zero."""
    if are_strings(X):
        return 1.0
    spread = column_spreads(X)
    spread = spread[spread > 0]
    return float(spread.max() / spread.min()) if len(spread) else 1.0
