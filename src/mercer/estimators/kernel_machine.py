"""Kernel machines with any convex loss: the representer theorem as something one can run."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from mercer.estimators.fitting.families.classifier import OneAgainstRest
from mercer.estimators.fitting.families.regressor import Regressor
from mercer.estimators.fitting.mixins import ClassifierMethods, MachineMethods
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.machine import CERTIFIED, KernelChoice, Machine
from mercer.estimators.fitting.pipeline.state import Array, BoundKernel, Function, Text, fitted
from mercer.estimators.fitting.pipeline.task import Solutions, Task, Tasks
from mercer.estimators.fitting.reports.coefficients import expansion_of
from mercer.problems.losses import (
    Hinge,
    Huber,
    Kind,
    Logistic,
    Loss,
    Squared,
    SquaredHinge,
    check_derivatives,
    is_known_convex,
)
from mercer.problems.penalties import PENALTIES, Own, Penalty, SquaredNorm, check_penalty, is_known_penalty
from mercer.problems.representer import RepresenterProblem
from mercer.runtime.available import available_if
from mercer.runtime.parameters import integer, not_negative, one_of, positive, share
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Data, Floats, freeze
from mercer.samples.engine import like_input
from mercer.samples.exact_parts import exact_parts
from mercer.samples.labels import signs
from mercer.solvers.pegasos.iterates import validation_part
from mercer.solvers.representer import Watch, solve_representer

_LOSSES: dict[Kind, dict[str, type[Loss]]] = {
    "classification": {"logistic": Logistic, "squared_hinge": SquaredHinge, "hinge": Hinge, "squared": Squared},
    "regression": {"squared": Squared, "huber": Huber},
}


@dataclass(eq=False, repr=False)
class RepresentedMachine(MachineMethods, Machine):
    """f(x) = Σ_j c_j k(x_j, x) + b, with a coefficient for every sample: what the representer theorem says."""

    _FITTED = fitted(
        CERTIFIED,
        kernel_=BoundKernel(required=True),
        _expansion_=Function(required=True),
        dual_coef_=Array("outputs", None),
    )

    _: KW_ONLY
    max_time: float | None = None
    kernel: KernelChoice = "rbf"
    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0
    tol: float = 1e-6
    cache_size: float = 1000
    max_iter: int = -1

    def _side_by_side(self, fit: Fit, n_tasks: int) -> int:
        return 1  # each of them takes the whole budget for its Newton matrix

    def _conclude_coefficients(self, fit: Fit, C: Floats, b: Floats) -> None:
        """From a column of coefficients of the merged samples, and one b, for each output."""
        merged, own = fit.merged, np.zeros((fit.n, C.shape[1]))
        # Copies of a sample share its coefficient in proportion to their weights.
        for k, c in enumerate(C.T):
            own[merged.rows, k] = exact_parts(c, merged.share * c[merged.member], merged.member)
        self.intercept_, self.dual_coef_ = freeze(b), freeze(np.ascontiguousarray(own.T))
        used = np.flatnonzero((C != 0).any(axis=1))
        self._expansion_ = expansion_of(fit, np.ascontiguousarray(C[used]), self.intercept_, used)


@dataclass(eq=False, repr=False)
class _KernelMachine(RepresentedMachine):
    """What the classifier and the regressor share."""

    _default_steps = 200  # of Newton's method

    _FITTED = fitted(validation_loss_=Array("outputs", None))

    loss: str | Loss = "logistic"
    lam: float = 1.0
    _: KW_ONLY
    penalty: str | Penalty = "squared_norm"
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 2
    rise: float = 0.05
    bias: bool = True

    _kind: ClassVar[Kind]

    def _targets(self, fit: Fit) -> Floats:
        """The targets of the merged samples, one column per problem."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        positive("lam", self.lam, "without a price on ‖f‖² there is no unique minimiser")
        if not isinstance(self.bias, bool | np.bool_):
            raise TypeError(f"bias={self.bias!r} must be True or False")
        share("validation_fraction", self.validation_fraction)
        integer("n_iter_no_change", self.n_iter_no_change, 1, "so many steps are averaged")
        not_negative("rise", self.rise)
        loss, penalty = self._read_loss(), self._read_penalty()
        joint = hasattr(loss, "combine")
        if isinstance(loss, Hinge) and (self.early_stopping or type(penalty) is not SquaredNorm):
            raise ValueError(
                "loss='hinge' is solved in the dual of ‖f‖², and has no other penalty and no early stopping here; take "
                "'squared_hinge', or PegasosSVC for early stopping"
            )
        if self.early_stopping and (joint or type(penalty) is not SquaredNorm):
            why = (
                "this loss is of all samples" if joint else "steps for other penalties than 'squared_norm' are no path"
            )
            raise ValueError(f"early_stopping leaves samples out and ends the steps, but {why}; set it to False")

    def _read_penalty(self) -> Penalty:
        """The penalty as an object."""
        if isinstance(self.penalty, str):
            return PENALTIES[one_of("penalty", self.penalty, tuple(PENALTIES))]
        if not isinstance(self.penalty, Penalty):
            raise TypeError(
                f"penalty={self.penalty!r} must be {' or '.join(map(repr, PENALTIES))}, or an object with value(r) and "
                "derivative(r) of r = ‖f‖"
            )
        return self.penalty if is_known_penalty(self.penalty) else Own(self.penalty)

    def _read_loss(self) -> Loss:
        """The loss as an object."""
        loss, known = self.loss, _LOSSES[self._kind]
        if isinstance(loss, str):
            if loss not in known:
                raise ValueError(
                    f"loss={loss!r} is none of {', '.join(map(repr, known))}; a loss of your own is an object with "
                    f"value(y, f), gradient(y, f) and curvature(y, f)"
                )
            if loss == "huber":
                return Huber(positive("delta", self.delta, "it is where the Huber loss turns linear"))
            return known[loss]()
        missing = [name for name in ("value", "gradient", "curvature") if not callable(getattr(loss, name, None))]
        if missing:
            raise TypeError(
                f"loss={loss!r} has no {' and no '.join(missing)}: a loss is a name or an object with value(y, f), "
                "gradient(y, f) and curvature(y, f), which take and return arrays"
            )
        return loss

    def _merges(self, X: Data, budget: int) -> bool:
        return not hasattr(self._read_loss(), "combine")  # such a loss may speak of the caller's rows

    def _tasks(self, fit: Fit) -> Tasks[RepresenterProblem]:
        loss, penalty, Y = self._read_loss(), self._read_penalty(), self._targets(fit)
        if isinstance(penalty, Own):
            check_penalty(penalty)
        problem = RepresenterProblem(Y[:, 0], fit.merged.weight, loss, float(self.lam), bool(self.bias), penalty)
        problems = [replace(problem, y=np.ascontiguousarray(y)) for y in Y.T]
        if hasattr(loss, "combine"):
            problems = [_combined(one, loss.combine(one.y)) for one in problems]
        if not is_known_convex(loss):
            check_derivatives(loss, np.concatenate([one.y for one in problems]))
        names = [f"output {k}" for k in range(len(problems))] if len(problems) > 1 else [""]
        return Tasks(self._task(name, problem) for name, problem in zip(names, problems, strict=True))

    def _task(self, name: str, problem: RepresenterProblem) -> Task[RepresenterProblem]:
        if not self.early_stopping:
            return Task(name, problem, solve_representer)
        # The order of merged samples is chance already, so that the part depends on the data alone.
        held_out, weight = validation_part(0, len(problem.y), self.validation_fraction), problem.weight.copy()
        if len(np.unique(np.delete(problem.y, held_out))) < (2 if self._kind == "classification" else 1):
            raise ValueError(
                f"with early_stopping {len(held_out)} of {len(problem.y)} distinct samples are left out, and the rest "
                "lacks a class, or is nothing at all; lower validation_fraction"
            )
        watch = Watch(held_out, weight[held_out], int(self.n_iter_no_change), float(self.rise))
        weight[held_out] = 0.0
        return Task(name, replace(problem, weight=weight), partial(solve_representer, watch=watch))

    def _conclude(self, fit: Fit, solved: Solutions[RepresenterProblem]) -> None:
        self.n_iter_ = freeze(np.maximum(1, self.n_iter_))
        if self.early_stopping:
            self.converged_ = self.stop_reason_ in ("converged", "early stopping")
            losses = [s.solution.validation_losses for s in solved]
            every = np.full((len(losses), max(map(len, losses))), np.nan)
            for row, own in zip(every, losses, strict=True):
                row[: len(own)] = own
            self.validation_loss_ = freeze(every)
        coefficients = np.column_stack([s.solution.c for s in solved])
        self._conclude_coefficients(fit, coefficients, np.array([s.solution.b for s in solved]))


def _combined(problem: RepresenterProblem, of: tuple[Any, Any]) -> RepresenterProblem:
    """The problem of a loss of Af, with the targets of its rows."""
    A, n = sparse.csr_array(of[0]), len(problem.y)
    z = np.asarray(of[1], dtype=np.float64)
    if A.shape != (len(z), n) or z.ndim != 1 or not len(z) or not (np.isfinite(z).all() and np.isfinite(A.data).all()):
        raise ValueError(
            f"loss.combine(y) must return a finite sparse matrix with a column for each of the {n} samples, and a "
            f"finite target for each of its rows, at least one; their shapes are {A.shape} and {z.shape}"
        )
    if not (problem.weight == 1).all():
        raise ValueError("this loss is of all samples together and takes no sample_weight; weigh the rows of its A")
    if problem.bias and abs(A).sum() and np.abs(A.sum(axis=1)).max() > 0:
        raise ValueError(
            "a loss of sums of values has no b here, unless all are differences, which no b changes: set bias=False"
        )
    return replace(problem, y=z, weight=np.ones(len(z)), bias=False, combine=A)


@shared_docs
@dataclass(eq=False, repr=False)
class KernelMachineRegressor(Regressor, _KernelMachine):
    """Regression with any convex loss.

    Minimises Σ w_i ℓ(y_i, f(x_i)) + λΩ(‖f‖) over the kernel's function space, Ω(‖f‖) = ‖f‖² if not said otherwise. By
    the representer theorem the minimiser is f(x) = Σ_j c_j k(x_j, x) + b, and Newton's method finds it.

    Parameters
    ----------
    loss : {"squared", "huber"} or object, default="huber"
        (y − f)², or ½(y − f)² up to a distance of `delta` and linear beyond; or an object with value(y, f),
        gradient(y, f) and curvature(y, f) (see `mercer.losses`).
    lam : float, default=1.0
        λ > 0, the price of the penalty.
    delta : float, default=1.0
        Where the Huber loss turns linear.
    %(representer parameters)s

    Attributes
    ----------
    %(representer attributes)s

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

    _kind = "regression"

    loss: str | Loss = "huber"
    _: KW_ONLY
    delta: float = 1.0

    def _targets(self, fit: Fit) -> Floats:
        return np.asarray(fit.target[fit.merged.first][:, None])


def _gives_probabilities(estimator: Any) -> bool:
    loss = _fitted_loss(estimator)
    if loss == "logistic" or callable(getattr(loss, "probability", None)):
        return True
    raise AttributeError(
        f"predict_proba needs a loss that models probabilities, and loss={loss!r} does not; use 'logistic', or "
        "calibrate the machine"
    )


def _fitted_loss(estimator: Any) -> Any:
    """The loss of the last fit, whatever the parameter has been set to since."""
    return getattr(estimator, "_loss_", estimator.loss)


@shared_docs
class KernelMachineClassifier(ClassifierMethods, OneAgainstRest, _KernelMachine):
    """Classification with any convex loss of the margin, one class against all others for several.

    Minimises Σ w_i ℓ(y_i, f(x_i)) + λ‖f‖² with y_i = ±1 over the kernel's function space. By the representer theorem
    the minimiser is f(x) = Σ_j c_j k(x_j, x) + b. The hinge goes to the dual solver of `SVC`, with C = 1/(2λ); every
    other loss is minimised by Newton's method.

    Parameters
    ----------
    loss : {"logistic", "squared_hinge", "hinge", "squared"} or object, default="logistic"
        log(1 + exp(−yf)), max(0, 1 − yf)², max(0, 1 − yf) or (y − f)²; or an object with value(y, f), gradient(y, f)
        and curvature(y, f) (see `mercer.losses`). The logistic loss gives `predict_proba`.
    lam : float, default=1.0
        λ > 0, the price of the penalty.
    %(representer parameters)s

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    rkhs_norm_ : float, or array of shape (n_outputs,)
        ‖f − b‖ in the kernel's function space.
    %(representer attributes)s

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

    _FITTED = fitted(_loss_=Text())

    _kind = "classification"

    def _targets(self, fit: Fit) -> Floats:
        return signs(fit.merged.y, len(fit.target.labels))

    def _conclude(self, fit: Fit, solved: Solutions[RepresenterProblem]) -> None:
        super()._conclude(fit, solved)
        self.classes_, self._loss_ = freeze(fit.target.labels), self.loss

    @available_if(_gives_probabilities)
    @like_input
    def predict_proba(self, X: Data) -> Floats:
        """P(class) for each sample; with several classes, each one's own against all others, scaled to add up to 1.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`.
        """
        f, loss = self._decision(X), _fitted_loss(self)
        probability = Logistic().probability if isinstance(loss, str) else loss.probability
        P = np.column_stack([probability(column) for column in f.T])
        if len(self.classes_) == 2:
            return np.column_stack([1.0 - P, P])
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    @available_if(_gives_probabilities)
    @like_input
    def predict_log_proba(self, X: Data) -> Floats:
        """The logarithms of `predict_proba`.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`.
        """
        return np.asarray(np.log(self.predict_proba(X)))


def KernelMachine(loss: Any = "logistic", lam: float = 1.0, **parameters: Any) -> Any:
    """The kernel machine of a loss: minimises Σ w_i ℓ(y_i, f(x_i)) + λ‖f‖².

    Parameters
    ----------
    loss : {"logistic", "squared_hinge", "hinge", "squared", "huber"} or object
        The first three make a `KernelMachineClassifier`, the last two a `KernelMachineRegressor`. An object says which
        by its attribute `kind`, "classification" or "regression"; `mercer.losses` describes what else it needs.
    lam : float, default=1.0
        λ, the price of ‖f‖².
    **parameters : parameters of the class
        Of the one that is made.

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
