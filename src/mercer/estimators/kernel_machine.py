"""Kernel machines with any convex loss: the representer theorem as something one can run."""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length

from mercer.arrays import Floats, Indices, freeze, take
from mercer.certificates.certificate import Certificate
from mercer.data import samples
from mercer.data.labels import class_weights, read_labels
from mercer.data.merging import Merged, merge
from mercer.data.targets import numbers
from mercer.errors import INDEFINITE, NonPSDKernelWarning
from mercer.expansion import Expansion
from mercer.fitting.kinds import Array, BoundKernel, Function, Labels, fitted
from mercer.fitting.limits import physical_memory
from mercer.fitting.machine import Machine, Training
from mercer.fitting.overflow import proven
from mercer.fitting.telling import Progress
from mercer.gram import gram_for
from mercer.losses import Hinge, Huber, Kind, Logistic, Loss, Squared, SquaredHinge, check_derivatives
from mercer.parameters import iterations, positive
from mercer.problems.representer import RepresenterProblem
from mercer.solution import Stop
from mercer.solvers.hinge import solve_hinge
from mercer.solvers.representer import solve_representer
from mercer.threads import effective_n_threads

_LOSSES: dict[Kind, tuple[str, ...]] = {
    "classification": ("logistic", "squared_hinge", "hinge", "squared"),
    "regression": ("squared", "huber"),
}


_NAMED: dict[str, Loss] = {
    "logistic": Logistic(),
    "squared_hinge": SquaredHinge(),
    "hinge": Hinge(),
    "squared": Squared(),
}


class _KernelMachine(Machine):
    """What the classifier and the regressor share."""

    FITTED = fitted(
        kernel_=BoundKernel(required=True),
        _expansion_=Function(required=True),
        dual_coef_=Array("outputs", None),
    )

    _kind: Kind

    def _learn(self, y: Any) -> tuple[Indices, Floats]:
        """One code per sample, equal where two may be merged, and the targets, one column per problem."""
        raise NotImplementedError

    # --- training --------------------------------------------------------------------------------------------------

    def _train(self, X: Any, y: Any, sample_weight: Any, training: Training) -> None:
        kernel = self._kernel()
        lam = positive("lam", self.lam, "without a price on ‖f‖² there is no unique minimiser")
        loss = self._loss()
        X = self._samples(X, kernel, reset=True)
        stop, budget, n_threads = self._limits(0)
        check_consistent_length(X, y)
        codes, Y = self._learn(y)
        weight = samples.weights(sample_weight, len(codes))
        if not weight.any():
            raise ValueError("all sample weights are zero; at least one sample must count")
        self._weigh_classes(codes, weight)
        merged = merge(X, codes, weight, identical=kernel.mergeable, n_threads=n_threads)
        first = np.empty(len(merged.weight), dtype=np.intp)
        first[merged.member[::-1]] = merged.rows[::-1]
        Y = Y[first]
        given = kernel.accepts == "gram"
        if given:
            gram = gram_for(
                kernel, merged.X if len(merged.rows) == len(X) else merged.X[:, merged.rows], budget, n_threads
            )
        else:
            kernel = kernel.bind(merged.X, merged.weight)
            gram = gram_for(kernel, merged.X, budget, n_threads)
        if not gram.looks_positive_definite():
            warnings.warn(INDEFINITE.format(kernel=kernel), NonPSDKernelWarning, stacklevel=4)
        if not _is_own(loss):
            check_derivatives(loss, Y.ravel())
        progress = Progress(training.watched_by, bool(self.verbose), Y.shape[1], X, y)
        solve = solve_hinge if isinstance(loss, Hinge) else solve_representer
        solutions, certificates = [], []
        for k in range(Y.shape[1]):
            problem = RepresenterProblem(np.ascontiguousarray(Y[:, k]), merged.weight, loss, lam, bool(self.bias))
            report = progress.begin(f"output {k}" if Y.shape[1] > 1 else "")
            solution, certificate = solve(problem, gram, stop, None, report)
            solutions.append(solution)
            certificates.append(certificate)
            progress.end()

        self.kernel_ = kernel
        self.certificate_ = Certificate.total(certificates)
        reasons = [s.stop_reason for s in solutions]
        reason = next((reason for reason in reasons if reason != "converged"), "converged")
        self.stop_reason_ = proven(reason, self.certificate_)
        self.converged_ = self.stop_reason_ == "converged"
        self.n_iter_ = freeze(np.array([max(1, s.steps) for s in solutions], dtype=np.int64))
        C = np.column_stack([s.c for s in solutions])
        self.intercept_ = freeze(np.array([s.b for s in solutions]))
        self.dual_coef_ = freeze(np.ascontiguousarray(self._in_rows(C, merged, len(codes)).T))
        used = np.flatnonzero((C != 0).any(axis=1))
        self._expansion_ = Expansion(
            kernel=kernel,
            vectors=None if given else take(merged.X, used),
            coefficients=np.ascontiguousarray(C[used]),
            b=self.intercept_,
            columns=first[used] if given else None,
            n_columns=len(codes) if given else 0,
        )
        if not self.converged_:
            warnings.warn(self._unfinished(X), ConvergenceWarning, stacklevel=4)
        progress.close(X, y)

    def _in_rows(self, C: Floats, merged: Merged, n: int) -> Floats:
        """Coefficients of the caller's rows: copies share theirs in proportion to weight."""
        out = np.zeros((n, C.shape[1]))
        out[merged.rows] = merged.share[:, None] * C[merged.member]
        return out

    def _weigh_classes(self, codes: Indices, weight: Floats) -> None:
        """Refuse weights that leave a class empty."""

    def _loss(self) -> Loss:
        """The loss as an object."""
        loss = self.loss
        if isinstance(loss, str):
            if loss not in _LOSSES[self._kind]:
                names = ", ".join(map(repr, _LOSSES[self._kind]))
                raise ValueError(
                    f"loss={loss!r} is none of {names}; a loss of your own is an object with value(y, f), "
                    f"gradient(y, f) and curvature(y, f)"
                )
            if loss == "huber":
                return Huber(positive("delta", self.delta, "it is where the Huber loss turns linear"))
            return _NAMED[loss]
        missing = [name for name in ("value", "gradient", "curvature") if not callable(getattr(loss, name, None))]
        if missing:
            raise TypeError(
                f"loss={loss!r} has no {' and no '.join(missing)}: a loss is a name or an object with value(y, f), "
                "gradient(y, f) and curvature(y, f), which take and return arrays"
            )
        return loss  # type: ignore[no-any-return]  # the user's object

    def _limits(self, n: int) -> tuple[Stop, int, int]:
        seconds = math.inf if self.max_time is None else positive("max_time", self.max_time, "None means no limit")
        stop = Stop(
            tol=positive("tol", self.tol),
            max_iter=iterations("max_iter", self.max_iter, 200),
            deadline=time.monotonic() + seconds,
        )
        megabytes = positive("cache_size", self.cache_size, "it is the memory for a fit in MB")
        return stop, int(min(megabytes * 1e6, physical_memory() / 2)), effective_n_threads(self.n_jobs)

    def _unfinished(self, X: Any) -> str:
        certificate = self.certificate_
        text = (
            f"{type(self).__name__} stopped before tol={self.tol:g} ({self.stop_reason_}): gap {certificate.gap:.3g}, "
            f"{certificate.relative_gap:.1e} of the dual value. "
        )
        if self.stop_reason_ == "rounding floor":
            return text + "float64 cannot resolve less here; raise tol or lam"
        return text + f"Raise {self.stop_reason_}, or help convergence: raise lam or tol, or scale the features"


_SHARED = """
    kernel : str, Kernel or callable, default="rbf"
        As for `SVC`.
    degree, gamma, coef0
        Parameters of the named kernels; a kernel object has its own.
    bias : bool, default=True
        Whether f has a constant b, which is not penalised.
    tol : float, default=1e-6
        Relative duality gap to reach.
    cache_size : float, default=1000
        Memory in MB that a fit may use beyond the data. Where three matrices of n_samples² numbers fit, Newton systems
        are factorised; otherwise they are solved by preconditioned conjugate gradients.
    verbose : bool, default=False
        Print a line a second.
    max_iter : int, default=-1
        Limit on Newton steps; −1 stands for 200.
    max_time : float, optional
        Limit in seconds. A fit that meets a limit warns, returns what it has, and says so in `stop_reason_`.
    n_jobs : int, optional
        Threads; None uses as many as BLAS would.

    Attributes
    ----------
    certificate_ : Certificate
        Primal and dual value of Σ w_i ℓ(y_i, f(x_i)) + λ‖f‖², their gap and the residual of 2λc + wℓ′ = 0, recomputed
        after training. For a loss of one's own it is a proof if that is convex. Several classes are its `parts`.
    converged_ : bool
    stop_reason_ : str
        "converged", "rounding floor", "max_iter" or "max_time"; for the hinge also "stalled".
    dual_coef_ : array of shape (n_outputs, n_samples)
        c, with f(x) = Σ_j c_j k(x_j, x) + b.
    intercept_ : array of shape (n_outputs,)
    n_iter_ : array of shape (n_outputs,)
    kernel_ : Kernel
        The kernel with its parameters as numbers.
    n_features_in_, feature_names_in_
        As in scikit-learn.
"""


class KernelMachineRegressor(RegressorMixin, _KernelMachine):  # type: ignore[misc]  # scikit-learn is untyped
    __doc__ = f"""Regression with any convex loss.

    Minimises Σ w_i ℓ(y_i, f(x_i)) + λ‖f‖² over the kernel's function space. By the representer theorem the minimiser is
    f(x) = Σ_j c_j k(x_j, x) + b, and Newton's method finds it.

    Parameters
    ----------
    loss : {{"squared", "huber"}} or object, default="huber"
        (y − f)², or ½(y − f)² up to a distance of `delta` and linear beyond; or an object with value(y, f),
        gradient(y, f) and curvature(y, f) (see `mercer.losses`).
    lam : float, default=1.0
        λ > 0, the price of ‖f‖².
    delta : float, default=1.0
        Where the Huber loss turns linear.{_SHARED}
    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelMachineRegressor
    >>> X = np.linspace(-3, 3, 61)[:, None]
    >>> y = np.sinc(X[:, 0])
    >>> y[10] = 50.0
    >>> model = KernelMachineRegressor("huber", lam=1e-2, delta=0.1, gamma=1.0).fit(X, y)
    >>> bool(np.abs(model.predict(X) - np.sinc(X[:, 0])).max() < 0.2)
    True
    """

    FITTED = fitted(intercept_=Array(1, required=True))

    _kind = "regression"

    def __init__(
        self,
        loss: Any = "huber",
        lam: float = 1.0,
        *,
        delta: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        bias: bool = True,
        tol: float = 1e-6,
        cache_size: float = 1000,
        verbose: bool = False,
        max_iter: int = -1,
        max_time: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.lam = lam
        self.delta = delta
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.bias = bias
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs

    def predict(self, X: Any) -> Floats:
        """f(x) for every sample."""
        return np.asarray(self._decision(X)[:, 0])

    def _learn(self, y: Any) -> tuple[Indices, Floats]:
        y = numbers(y)
        return np.unique(y, return_inverse=True)[1], y[:, None]


def _gives_probabilities(estimator: Any) -> bool:
    if estimator.loss == "logistic" or callable(getattr(estimator.loss, "probability", None)):
        return True
    raise AttributeError(
        f"predict_proba needs a loss that models probabilities, and loss={estimator.loss!r} does not; use 'logistic'"
    )


class KernelMachineClassifier(ClassifierMixin, _KernelMachine):  # type: ignore[misc]  # scikit-learn is untyped
    __doc__ = f"""Classification with any convex loss of the margin, one class against all others for several.

    Minimises Σ w_i ℓ(y_i, f(x_i)) + λ‖f‖² with y_i = ±1 over the kernel's function space. By the representer theorem
    the minimiser is f(x) = Σ_j c_j k(x_j, x) + b. The hinge goes to the dual solver of `SVC`, with C = 1/(2λ); every
    other loss is minimised by Newton's method.

    Parameters
    ----------
    loss : {{"logistic", "squared_hinge", "hinge", "squared"}} or object, default="logistic"
        log(1 + exp(−yf)), max(0, 1 − yf)², max(0, 1 − yf) or (y − f)²; or an object with value(y, f), gradient(y, f)
        and curvature(y, f) (see `mercer.losses`). The logistic loss gives `predict_proba`.
    lam : float, default=1.0
        λ > 0, the price of ‖f‖².{_SHARED}
    classes_ : array of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelMachineClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelMachineClassifier("logistic", lam=0.01).fit(X, y)
    >>> model.predict_proba(X).shape
    (150, 3)
    >>> model.score(X, y) > 0.95
    True
    """

    FITTED = fitted(classes_=Labels(required=True))

    _kind = "classification"

    def __init__(
        self,
        loss: Any = "logistic",
        lam: float = 1.0,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        bias: bool = True,
        tol: float = 1e-6,
        cache_size: float = 1000,
        verbose: bool = False,
        max_iter: int = -1,
        max_time: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.lam = lam
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.bias = bias
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs

    def decision_function(self, X: Any) -> Floats:
        """f(x) for two classes; for more, one column per class."""
        values = self._decision(X)
        return np.asarray(values[:, 0]) if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """The class of each sample; for f(x) = 0 the second of two."""
        values = self._decision(X)
        winner = (values[:, 0] >= 0).astype(np.intp) if len(self.classes_) == 2 else np.argmax(values, axis=1)
        return np.asarray(self.classes_[winner])

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def predict_proba(self, X: Any) -> Floats:
        """P(class) for each sample; with several classes, each one's own against all others, scaled to add up to 1."""
        f = self._decision(X)
        loss: Any = self._loss()  # available_if lets only losses with a probability come here
        P = np.column_stack([loss.probability(column) for column in f.T])
        if len(self.classes_) == 2:
            return np.column_stack([1.0 - P, P])
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    def _learn(self, y: Any) -> tuple[Indices, Floats]:
        labels, codes = read_labels(y)
        self.classes_ = freeze(labels)
        k = len(labels)
        if k == 2:
            return codes, np.where(codes == 1, 1.0, -1.0)[:, None]
        return codes, np.where(codes[:, None] == np.arange(k), 1.0, -1.0)

    def _weigh_classes(self, codes: Indices, weight: Floats) -> None:
        class_weights(None, self.classes_, codes, weight)


def KernelMachine(loss: Any = "logistic", lam: float = 1.0, **parameters: Any) -> Any:
    """The kernel machine of a loss: minimises Σ w_i ℓ(y_i, f(x_i)) + λ‖f‖².

    Parameters
    ----------
    loss : {"logistic", "squared_hinge", "hinge", "squared", "huber"} or object
        The first three make a `KernelMachineClassifier`, the last two a `KernelMachineRegressor`. An object says which
        by its attribute `kind`, "classification" or "regression"; `mercer.losses` describes what else it needs.
    lam : float, default=1.0
    **parameters
        Of the class that is made.

    Returns
    -------
    KernelMachineClassifier or KernelMachineRegressor

    Examples
    --------
    >>> from mercer import KernelMachine
    >>> KernelMachine("huber", lam=0.1)
    KernelMachineRegressor(lam=0.1)
    """
    kind: Any = "regression" if isinstance(loss, str) and loss in ("squared", "huber") else "classification"
    if not isinstance(loss, str):
        kind = getattr(loss, "kind", None)
        if kind not in _LOSSES:
            raise ValueError(
                f"loss={loss!r} must say by an attribute kind = 'classification' or 'regression' what it is for; or "
                "use KernelMachineClassifier or KernelMachineRegressor"
            )
    if kind == "regression":
        return KernelMachineRegressor(loss, lam, **parameters)
    return KernelMachineClassifier(loss, lam, **parameters)


def _is_own(loss: Any) -> bool:
    return type(loss) in (Squared, Huber, Logistic, SquaredHinge, Hinge)
