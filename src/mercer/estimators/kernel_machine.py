"""Kernel machines with any convex loss, whose minimiser has the form given by the representer theorem."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from mercer.estimators.fitting.families.classifier import OneAgainstRest
from mercer.estimators.fitting.families.regressor import Regressor
from mercer.estimators.fitting.mixins import ClassifierMethods, MachineMethods
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.machine import CERTIFIED, KernelChoice, Machine
from mercer.estimators.fitting.pipeline.state import Array, BoundKernel, KernelExpansion, Text, fitted
from mercer.estimators.fitting.pipeline.task import Solutions, Task, Tasks
from mercer.estimators.fitting.reports.coefficients import expansion_of
from mercer.problems.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Kind,
    Logistic,
    Loss,
    Pinball,
    Squared,
    SquaredHinge,
    check_derivatives,
    has_corners,
    is_known_convex,
)
from mercer.problems.penalties import PENALTIES, Penalty, SquaredNorm, UserPenalty, check_penalty, is_known_penalty
from mercer.problems.representer import RepresenterProblem
from mercer.runtime.available import available_if
from mercer.runtime.parameters import integer, not_negative, one_of, positive, share
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Data, Floats, freeze
from mercer.samples.engine import like_input
from mercer.samples.exact_parts import exact_parts
from mercer.samples.labels import signs
from mercer.solvers.pegasos.iterates import validation_part
from mercer.solvers.representer import ValidationMonitor, solve_representer

_LOSSES: dict[Kind, dict[str, type[Loss]]] = {
    "classification": {"logistic": Logistic, "squared_hinge": SquaredHinge, "hinge": Hinge, "squared": Squared},
    "regression": {
        "squared": Squared,
        "huber": Huber,
        "absolute": EpsilonInsensitive,
        "epsilon_insensitive": EpsilonInsensitive,
        "pinball": Pinball,
    },
}


@dataclass(eq=False, repr=False)
class RepresenterMachine(MachineMethods, Machine):
    """Base class of machines f(x) = Σ_j c_j k(x_j, x) + b with a coefficient for every sample (representer theorem)."""

    _FITTED = fitted(
        CERTIFIED,
        kernel_=BoundKernel(required=True),
        _expansion_=KernelExpansion(required=True),
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
        return 1  # each task takes the whole memory budget for its Newton matrix

    def _conclude_coefficients(self, fit: Fit, C: Floats, b: Floats) -> None:
        """Set the fitted attributes from coefficients of the merged samples (a column per output) and b."""
        merged, by_row = fit.merged, np.zeros((fit.n, C.shape[1]))
        # Copies of a sample share its coefficient in proportion to their weights.
        for k, c in enumerate(C.T):
            by_row[merged.rows, k] = exact_parts(c, merged.share * c[merged.member], merged.member)
        self.intercept_, self.dual_coef_ = freeze(b), freeze(np.ascontiguousarray(by_row.T))
        used = np.flatnonzero((C != 0).any(axis=1))
        self._expansion_ = expansion_of(fit, np.ascontiguousarray(C[used]), self.intercept_, used)


@dataclass(eq=False, repr=False)
class _KernelMachine(RepresenterMachine):
    """Base class of `KernelMachineClassifier` and `KernelMachineRegressor`."""

    _default_steps = 200  # steps of Newton's method
    _FOREIGN_PARAMETERS = MappingProxyType({"fit_intercept": "it is bias here, and bias=False leaves b out"})

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
        """Return the targets of the merged samples, one column per problem."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        positive("lam", self.lam, "without a penalty on ‖f‖² there is no unique minimiser")
        if not isinstance(self.bias, bool | np.bool_):
            raise TypeError(f"bias={self.bias!r} must be True or False")
        share("validation_fraction", self.validation_fraction)
        integer("n_iter_no_change", self.n_iter_no_change, 1, "it is the number of steps that are averaged")
        not_negative("rise", self.rise)
        loss, penalty = self._read_loss(), self._read_penalty()
        is_joint = hasattr(loss, "combine")  # a loss of several samples at once
        if is_joint and has_corners(loss):
            raise ValueError(
                f"a loss of several samples at once needs a curvature, and loss={self.loss!r} has corners; use a "
                "smooth one, or RankSVM for the hinge of pairs"
            )
        if self.early_stopping and has_corners(loss):
            raise ValueError(
                f"early_stopping needs a loss with a curvature, and loss={self.loss!r} has corners; use "
                "'squared_hinge' or 'huber', or PegasosSVC"
            )
        if self.early_stopping and (is_joint or type(penalty) is not SquaredNorm):
            case = "with a loss of several samples at once" if is_joint else "with other penalties than 'squared_norm'"
            raise ValueError(f"early_stopping is not available {case}; set it to False")

    def _read_penalty(self) -> Penalty:
        """Return the penalty as an object."""
        if isinstance(self.penalty, str):
            return PENALTIES[one_of("penalty", self.penalty, tuple(PENALTIES))]
        if not isinstance(self.penalty, Penalty):
            raise TypeError(
                f"penalty={self.penalty!r} must be {' or '.join(map(repr, PENALTIES))}, or an object with value(r) and "
                "derivative(r) of r = ‖f‖"
            )
        return self.penalty if is_known_penalty(self.penalty) else UserPenalty(self.penalty)

    def _read_loss(self) -> Loss:
        """Return the loss as an object."""
        loss, losses = self.loss, _LOSSES[self._kind]
        if isinstance(loss, str):
            if loss not in losses:
                raise ValueError(
                    f"loss={loss!r} is none of {', '.join(map(repr, losses))}; a user-defined loss is an object with "
                    f"value(y, f) and gradient(y, f), and curvature(y, f) if it is smooth"
                )
            return self._named_loss(loss)
        missing = [name for name in ("value", "gradient") if not callable(getattr(loss, name, None))]
        if missing:
            raise TypeError(
                f"loss={loss!r} has no {' and no '.join(missing)}: a loss is a name or an object with value(y, f) and "
                "gradient(y, f), and curvature(y, f) if it is smooth, which take and return arrays"
            )
        return loss

    def _named_loss(self, name: str) -> Loss:
        """Return the loss of this name, with its parameters."""
        return _LOSSES[self._kind][name]()

    def _merges(self, X: Data, budget: int) -> bool:
        return not hasattr(self._read_loss(), "combine")  # `combine` may refer to the caller's rows

    def _tasks(self, fit: Fit) -> Tasks[RepresenterProblem]:
        """Return the problems to solve, with their solvers."""
        loss, penalty, Y = self._read_loss(), self._read_penalty(), self._targets(fit)
        if isinstance(penalty, UserPenalty):
            check_penalty(penalty)
        problem = RepresenterProblem(Y[:, 0], fit.merged.weight, loss, float(self.lam), bool(self.bias), penalty)
        problems = [replace(problem, y=np.ascontiguousarray(y)) for y in Y.T]
        if hasattr(loss, "combine"):
            problems = [_combined_problem(problem, loss.combine(problem.y)) for problem in problems]
        if not is_known_convex(loss):
            check_derivatives(loss, np.concatenate([problem.y for problem in problems]))
        names = [f"output {k}" for k in range(len(problems))] if len(problems) > 1 else [""]
        return Tasks(self._task(name, problem) for name, problem in zip(names, problems, strict=True))

    def _task(self, name: str, problem: RepresenterProblem) -> Task[RepresenterProblem]:
        """Return the task of one output, with a validation set if `early_stopping` is set."""
        if not self.early_stopping:
            return Task(name, problem, solve_representer)
        # The order of merged samples is random already; with a fixed seed the choice depends on the data alone.
        held_out, weight = validation_part(0, len(problem.y), self.validation_fraction), problem.weight.copy()
        if len(np.unique(np.delete(problem.y, held_out))) < (2 if self._kind == "classification" else 1):
            raise ValueError(
                f"early_stopping holds out {len(held_out)} of {len(problem.y)} distinct samples, so that none, or "
                "none of some class, remain to train on; lower validation_fraction"
            )
        watch = ValidationMonitor(held_out, weight[held_out], int(self.n_iter_no_change), float(self.rise))
        weight[held_out] = 0.0
        return Task(name, replace(problem, weight=weight), partial(solve_representer, watch=watch))

    def _conclude(self, fit: Fit, solved: Solutions[RepresenterProblem]) -> None:
        """Set the fitted attributes that only this kind of machine has."""
        self.n_iter_ = freeze(np.maximum(1, self.n_iter_))
        if self.early_stopping:
            self.converged_ = self.stop_reason_ in ("converged", "early stopping")
            losses = [s.solution.validation_losses for s in solved]
            table = np.full((len(losses), max(map(len, losses))), np.nan)
            for row, values in zip(table, losses, strict=True):
                row[: len(values)] = values
            self.validation_loss_ = freeze(table)
        coefficients = np.column_stack([s.solution.c for s in solved])
        self._conclude_coefficients(fit, coefficients, np.array([s.solution.b for s in solved]))


def _combined_problem(problem: RepresenterProblem, combination: tuple[Any, Any]) -> RepresenterProblem:
    """Return the problem with the loss of (z, Af), where `combination` is (A, z) and f the values at the samples."""
    A, n = sparse.csr_array(combination[0]), len(problem.y)
    z = np.asarray(combination[1], dtype=np.float64)
    if A.shape != (len(z), n) or z.ndim != 1 or not len(z) or not (np.isfinite(z).all() and np.isfinite(A.data).all()):
        raise ValueError(
            f"loss.combine(y) must return a finite sparse matrix with a column for each of the {n} samples, and a "
            f"finite target for each of its rows, at least one; their shapes are {A.shape} and {z.shape}"
        )
    if not (problem.weight == 1).all():
        raise ValueError("a loss of several samples at once takes no sample_weight; weight the rows of its A instead")
    if problem.bias and abs(A).sum() and np.abs(A.sum(axis=1)).max() > 0:
        raise ValueError(
            "a loss of sums of values of f is minimised without b, unless all are differences, in which b cancels: set "
            "bias=False"
        )
    return replace(problem, y=z, weight=np.ones(len(z)), bias=False, combine=A)


@shared_docs
@dataclass(eq=False, repr=False)
class KernelMachineRegressor(Regressor, _KernelMachine):
    """Kernel regression with any convex loss and a certificate of optimality.

    Minimises Σ w_i ℓ(y_i, f(x_i)) + λΩ(‖f‖) over the function space of the kernel, with Ω(‖f‖) = ‖f‖² by default. By
    the representer theorem the minimiser is f(x) = Σ_j c_j k(x_j, x) + b; it is computed by Newton's method.

    Parameters
    ----------
    loss : {"squared", "huber", "absolute", "epsilon_insensitive", "pinball"} or object, default="huber"
        Loss: (y − f)²; ½(y − f)² up to |y − f| = `delta` and linear beyond; |y − f|; max(0, |y − f| − `epsilon`);
        `tau`·(y − f) below y and (1 − `tau`)(f − y) above; or an object with methods value(y, f) and gradient(y, f),
        and curvature(y, f) if it has no corners (see `mercer.losses`).
    lam : float, default=1.0
        Regularisation strength λ > 0, the factor of the penalty.
    delta : float, default=1.0
        Threshold of the Huber loss, above which it is linear.
    epsilon : float, default=0.1
        Largest error that costs nothing with the ε-insensitive loss.
    tau : float, default=0.5
        Level of the pinball loss, whose minimiser is the τ-quantile.
    %(representer parameters)s

    Attributes
    ----------
    %(representer attributes)s

    See Also
    --------
    KernelMachineClassifier : The corresponding classifier.
    KernelMachine : Either of them, according to the loss.
    RLSRegressor : Faster training for the squared loss.

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
    epsilon: float = 0.1
    tau: float = 0.5

    def _named_loss(self, name: str) -> Loss:
        delta = positive("delta", self.delta, "it is where the Huber loss turns linear")
        epsilon = not_negative("epsilon", self.epsilon, "it is half the width of the tube")
        tau = share("tau", self.tau)
        if name == "huber":
            return Huber(delta)
        if name == "epsilon_insensitive":
            return EpsilonInsensitive(epsilon)
        if name == "pinball":
            return Pinball(tau)
        return super()._named_loss(name)

    def _targets(self, fit: Fit) -> Floats:
        return np.asarray(fit.target[fit.merged.first][:, None])


def _gives_probabilities(estimator: Any) -> bool:
    """Return True if the loss models probabilities; raise AttributeError otherwise."""
    loss = _fitted_loss(estimator)
    if loss == "logistic" or callable(getattr(loss, "probability", None)):
        return True
    raise AttributeError(
        f"predict_proba needs a loss that models probabilities, and loss={loss!r} does not; use 'logistic', or "
        "the method calibrate"
    )


def _fitted_loss(estimator: Any) -> Any:
    """Return the loss of the last fit or, before any fit, the parameter."""
    return getattr(estimator, "_loss_", estimator.loss)


@shared_docs
class KernelMachineClassifier(ClassifierMethods, OneAgainstRest, _KernelMachine):
    """Kernel classification with any convex loss of the margin and a certificate of optimality.

    Minimises Σ w_i ℓ(y_i, f(x_i)) + λ‖f‖² with y_i = ±1 over the function space of the kernel. By the representer
    theorem the minimiser is f(x) = Σ_j c_j k(x_j, x) + b. The hinge loss with λ‖f‖² is minimised by the dual solver of
    `SVC`, with C = 1/(2λ), any other loss by Newton's method. Several classes are trained one against the rest.

    Parameters
    ----------
    loss : {"logistic", "squared_hinge", "hinge", "squared"} or object, default="logistic"
        Loss: log(1 + exp(−yf)), max(0, 1 − yf)², max(0, 1 − yf) or (y − f)²; or an object with methods value(y, f) and
        gradient(y, f), and curvature(y, f) if it has no corners (see `mercer.losses`). The logistic loss provides
        `predict_proba`.
    lam : float, default=1.0
        Regularisation strength λ > 0, the factor of the penalty.
    %(representer parameters)s

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Class labels.
    rkhs_norm_ : float, or array of shape (n_outputs,)
        Norm ‖f − b‖ in the function space of the kernel.
    %(representer attributes)s

    See Also
    --------
    KernelMachineRegressor : The corresponding regressor.
    KernelMachine : Either of them, according to the loss.
    GaussianProcessClassifier : Logistic classification that averages over the posterior of f.

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
        """Set the fitted attributes that only this kind of machine has."""
        super()._conclude(fit, solved)
        self.classes_, self._loss_ = freeze(fit.target.labels), self.loss

    @available_if(_gives_probabilities)
    @like_input
    def predict_proba(self, X: Data) -> Floats:
        """Predict class probabilities.

        With several classes, the probabilities of each class against the rest are scaled to add up to 1.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probability of each class, in the order of `classes_`.
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
        """Predict the logarithms of the class probabilities.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Log-probability of each class, in the order of `classes_`.
        """
        return np.asarray(np.log(self.predict_proba(X)))


def KernelMachine(loss: Any = "logistic", lam: float = 1.0, **parameters: Any) -> Any:
    """Return the unfitted kernel machine for a loss, which minimises Σ w_i ℓ(y_i, f(x_i)) + λ‖f‖².

    Parameters
    ----------
    loss : str or object
        Loss. "logistic", "squared_hinge" and "hinge" give a `KernelMachineClassifier`, "squared", "huber", "absolute",
        "epsilon_insensitive" and "pinball" a `KernelMachineRegressor`. A loss object has an attribute `kind`,
        "classification" or "regression"; `mercer.losses` describes its methods.
    lam : float, default=1.0
        Regularisation strength λ, the factor of ‖f‖².
    **parameters : parameters of the class
        Further parameters of the estimator.

    Returns
    -------
    KernelMachineClassifier or KernelMachineRegressor
        Unfitted estimator.

    See Also
    --------
    KernelMachineClassifier : Kernel classification with any convex loss.
    KernelMachineRegressor : Kernel regression with any convex loss.

    Examples
    --------
    >>> from mercer import KernelMachine
    >>> KernelMachine("huber", lam=0.1)
    KernelMachineRegressor(lam=0.1)
    """
    kind: Any = "regression" if isinstance(loss, str) and loss in _LOSSES["regression"] else "classification"
    if not isinstance(loss, str):
        kind = getattr(loss, "kind", None)
        if kind not in _LOSSES:
            raise ValueError(
                f"loss={loss!r} must have an attribute kind, 'classification' or 'regression'; or use "
                "KernelMachineClassifier or KernelMachineRegressor"
            )
    if kind == "regression":
        return KernelMachineRegressor(loss, lam, **parameters)
    return KernelMachineClassifier(loss, lam, **parameters)
