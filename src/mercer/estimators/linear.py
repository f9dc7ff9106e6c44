"""Linear machines for text and tall data, with an unpenalised bias and a certificate, and their path over C."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from mercer.certificates.certificate import Certificate
from mercer.estimators.fitting.families.classifier import OneAgainstRest
from mercer.estimators.fitting.families.dual_machine import target_unit
from mercer.estimators.fitting.families.linear_machine import (
    LinearMachine,
    bias_feature,
    linear_solver,
    seed_of,
    warn_of_early_stops,
)
from mercer.estimators.fitting.families.regressor import Regressor, Remarks, remarks_on_scale
from mercer.estimators.fitting.mixins import ClassifierMethods
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.machine import ClassWeight
from mercer.estimators.fitting.pipeline.reporting import Progress
from mercer.estimators.fitting.pipeline.state import Array, Predicate, fitted
from mercer.estimators.fitting.pipeline.task import Solutions, Task, Tasks
from mercer.estimators.fitting.reports.dual_margins import parameter_at_fit
from mercer.problems.linear_problem import LinearProblem, epsilon_insensitive, hinge
from mercer.problems.multiclass import JointProblem
from mercer.runtime.parameters import not_negative, one_of, positive
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Data, Floats, Weights, freeze
from mercer.samples.labels import Classes, Pair, class_pairs, signs
from mercer.samples.matrices import squared_lengths
from mercer.solvers.linear.joint import solve_joint_linear
from mercer.solvers.linear.referee import LinearSolution

_HINGES = ("squared_hinge", "hinge")
_TUBES = ("epsilon_insensitive", "squared_epsilon_insensitive")
_DUALS = (True, False, "auto")
_MULTICLASS_KEY = "multi_class"  # key of `multiclass` in `_trained_as_`, as in the first model files
_MULTICLASS = ("ovr", "crammer-singer", "crammer_singer")


def _is_fit_record(value: Any, _: Any) -> bool:
    """Return True if a value read from a file can be the attribute `_trained_as_`, the parameters of a fit."""
    return isinstance(value, dict) and value.keys() == {_MULTICLASS_KEY} and value[_MULTICLASS_KEY] in _MULTICLASS


@shared_docs
@dataclass(eq=False, repr=False)
class LinearSVC(ClassifierMethods, OneAgainstRest, LinearMachine):
    """Linear support vector classification with a certificate of optimality.

    Minimises ½‖w‖² + Σ C_i loss(y_i f(x_i)) with f(x) = w'x + b and loss = max(0, 1 − y f), or its square. With the
    squared hinge the error term is C·Σξ², as in LIBLINEAR and scikit-learn's LinearSVC (not C/2·Σξ²). Several classes
    are trained one against the rest.

    Parameters
    ----------
    C : float, default=1.0
        Penalty for slack. The penalty C_i of a sample is C times its weight times the weight of its class.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        Loss: max(0, 1 − y f)² or max(0, 1 − y f).
    %(linear bias)s
    tol : float or None, default=1e-4
        Largest remaining violation of the optimality conditions; None means no such requirement.
    %(linear solver)s
    multiclass : {"ovr", "crammer-singer"}, default="ovr"
        Strategy for several classes: one against the rest, or the joint machine of Crammer and Singer, which minimises
        ½Σ‖w_k‖² + Σ C_i max_k (1 − [k = y_i] + f_k(x_i) − f_{y_i}(x_i)). The joint machine ignores `loss` and `solver`,
        is trained by dual coordinate descent, and needs bias="regularized" or False. For two classes f_1 − f_0 is kept.
        scikit-learn's spelling "crammer_singer" means the same.
    %(class_weight)s
    penalty : "l2", default="l2"
        Penalty ½‖w‖². scikit-learn's "l1" is not available.
    dual : bool or "auto", default="auto"
        Accepted for compatibility with scikit-learn and ignored: the solution is the same. See `solver`.
    %(linear limits)s

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Class labels.
    class_weight_ : array of shape (n_classes,)
        Factor on C for each class.
    coef_ : array of shape (1 or n_classes, n_features)
        Weights of the features.
    intercept_ : array of shape (1 or n_classes,)
        Constants b of the decision functions.
    rkhs_norm_ : float, or array of shape (n_classes,)
        Norm ‖w‖.
    certificate_ : Certificate
        Primal and dual value, gap and violation, recomputed in float64 after training; `parts` has one for each class.
    converged_ : bool
        Whether the requested accuracy was reached.
    stop_reason_ : str
        Reason why training ended: "converged", "rounding floor", "stalled", "max_iter" or "max_time".
    solver_ : str
        Algorithm used, and why it was chosen.
    n_iter_ : int
        Largest number of Newton steps or passes over the data among the classes.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features seen during `fit`, if they are all strings.

    See Also
    --------
    SVC : Support vector classification with any kernel.
    LinearSVR : Linear support vector regression.
    linear_path : LinearSVC for many values of C.
    PegasosSVC : Stochastic training for very many samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVC().fit(X, y)
    >>> model.coef_.shape
    (3, 4)
    >>> model.certificate_.relative_gap < 1e-6
    True
    """

    _FITTED = fitted(
        coef_=Array("outputs", "features", required=True),
        class_weight_=Array("classes"),
        _trained_as_=Predicate(must="be the multiclass of a fit", holds=_is_fit_record),
    )

    C: float = 1.0
    _: KW_ONLY
    loss: str = "squared_hinge"
    multiclass: str = "ovr"
    class_weight: ClassWeight = None
    penalty: str = "l2"

    _FOREIGN_PARAMETERS = MappingProxyType(
        {**LinearMachine._FOREIGN_PARAMETERS, "multi_class": "it is multiclass here, as in SVC"}
    )
    _RENAMED_PARAMETERS = MappingProxyType({"multi_class": "multiclass"})

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_of("loss", self.loss, _HINGES)
        if self.penalty != "l2":
            raise ValueError(f"penalty={self.penalty!r} is not available: the penalty is always ½‖w‖² ('l2')")
        one_of("dual", self.dual, _DUALS)
        one_of("multiclass", self.multiclass, _MULTICLASS)
        if self._joint and bias_feature(self) == math.inf:
            raise ValueError(
                f"bias={self.bias!r}, an unpenalised bias, is not available with multiclass={self.multiclass!r}; "
                "use bias='regularized' or bias=False"
            )

    def _max_steps(self, n: int) -> int:
        return 2**40 if self._joint else super()._max_steps(n)

    @property
    def _joint(self) -> bool:
        """True if one joint problem covers all classes."""
        return bool(self.multiclass != "ovr")

    def _tasks(self, fit: Fit) -> Tasks[LinearProblem | JointProblem]:
        """Return the problems to solve, with their solvers."""
        target: Classes = fit.target
        if self._joint:
            B, C = bias_feature(self), _sample_penalties(fit, self.C)
            problem = JointProblem(fit.merged.y, C, len(target.labels), shared=True, shift=B * B)
            solve = partial(
                solve_joint_linear, seed=seed_of(self, fit), shrinking=bool(self.shrinking), gram=fit.gram_of_rows
            )
            return Tasks([Task("", problem, solve, place=fit.rows)])
        return self._linear_tasks(fit, [target.name(pair) for pair in target.pairs], hinge_problems(self, fit, self.C))

    def _conclude(self, fit: Fit, solved: Solutions[LinearProblem | JointProblem]) -> None:
        """Set the fitted attributes that only this kind of machine has."""
        self._trained_as_ = {_MULTICLASS_KEY: self.multiclass}
        w, b = self._conclude_linear(fit, solved)
        self.classes_, self.class_weight_ = freeze(fit.target.labels), freeze(fit.target.factor)
        if self._joint and len(self.classes_) == 2:
            w, b = w[1:] - w[:1], b[1:] - b[:1]
        self.coef_, self.intercept_ = freeze(w), freeze(b)

    @property
    def _joint_planes(self) -> bool:
        return len(self.classes_) > 2 and parameter_at_fit(self, _MULTICLASS_KEY, "ovr") != "ovr"

    def _planes(self) -> list[Pair]:
        return class_pairs(len(self.classes_)) if self._joint_planes else super()._planes()

    def _plane_norms(self) -> Floats:
        if not self._joint_planes:
            return super()._plane_norms()
        pairs = class_pairs(len(self.classes_))
        return np.array([float(np.linalg.norm(self.coef_[first] - self.coef_[second])) for first, second in pairs])


def hinge_problems(machine: LinearSVC, fit: Fit, C: float) -> list[LinearProblem]:
    """Return a problem for each decision function, with the machine's loss and bias."""
    penalties = _sample_penalties(fit, C)
    sides = np.ascontiguousarray(signs(fit.merged.y, len(fit.target.labels)).T)
    return [hinge(side, penalties, bias_feature(machine), machine.loss == "squared_hinge") for side in sides]


def _sample_penalties(fit: Fit, C: Any) -> Floats:
    """Return C_i, the product of C, the weight of the class and the weight of the sample."""
    return np.asarray(positive("C", C) * fit.target.factor[fit.merged.y] * fit.merged.weight)


@shared_docs
@dataclass(eq=False, repr=False)
class LinearSVR(Regressor, LinearMachine):
    """Linear support vector regression with a certificate of optimality.

    Minimises ½‖w‖² + Σ C_i max(0, |y_i − f(x_i)| − ε) with f(x) = w'x + b, or with the square of the loss. With the
    squared loss the error term is C·Σξ², as in LIBLINEAR and scikit-learn's LinearSVR.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half-width ε of the tube within which errors are not penalised.
    C : float, default=1.0
        Penalty for errors. The penalty C_i of a sample is C times its weight.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        Loss: max(0, |y − f| − ε), or its square.
    %(linear bias)s
    tol : float or None, default=1e-4
        Largest remaining violation of the optimality conditions, relative to the standard deviation of y if that is
        below 1; None means no such requirement.
    %(linear solver)s
    dual : bool or "auto", default="auto"
        Accepted for compatibility with scikit-learn and ignored: the solution is the same. See `solver`.
    %(linear limits)s

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights of the features.
    intercept_ : array of shape (1,)
        Constant b.
    certificate_ : Certificate
        Primal and dual value, gap and violation, recomputed in float64 after training.
    converged_ : bool
        Whether the requested accuracy was reached.
    stop_reason_ : str
        Reason why training ended: "converged", "rounding floor", "stalled", "max_iter" or "max_time".
    solver_ : str
        Algorithm used, and why it was chosen.
    n_iter_ : int
        Number of Newton steps or passes over the data.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features seen during `fit`, if they are all strings.

    See Also
    --------
    SVR : Support vector regression with any kernel.
    LinearSVC : Linear support vector classification.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from mercer import LinearSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LinearSVR(C=100).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.48
    """

    _FITTED = fitted(coef_=Array("features", required=True))

    _: KW_ONLY
    epsilon: float = 0.0
    C: float = 1.0
    loss: str = "epsilon_insensitive"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_of("loss", self.loss, _TUBES)
        one_of("dual", self.dual, _DUALS)
        not_negative("epsilon", self.epsilon, "it is half the width of the tube")

    def _tasks(self, fit: Fit) -> Tasks[LinearProblem]:
        """Return the problems to solve, with their solvers."""
        y, C = fit.target[fit.merged.first], positive("C", self.C) * fit.merged.weight
        is_squared = self.loss == "squared_epsilon_insensitive"
        problem = epsilon_insensitive(y, C, float(self.epsilon), bias_feature(self), is_squared)
        return self._linear_tasks(fit, [""], [problem], target_unit(y, fit.merged.weight))

    def _conclude(self, fit: Fit, solved: Solutions[LinearProblem]) -> None:
        """Set the fitted attributes that only this kind of machine has."""
        w, b = self._conclude_linear(fit, solved)
        self.coef_, self.intercept_ = freeze(w[0]), freeze(b)

    def _remarks(self, fit: Fit, solved: Solutions[LinearProblem]) -> Remarks:
        """Return warnings if C or ε does not match the scale of y."""
        task, solution = solved[0].task, solved[0].solution
        return remarks_on_scale(
            self,
            task.problem.p,
            solution.beta,
            (task.problem.lower, task.problem.upper),
            np.arange(len(solution.beta)),
            lambda: float(np.median(task.problem.upper) * np.median(squared_lengths(fit.X))),
            lambda: fit.rows(centred=task.problem.exact_bias).product(solution.w),
        )

    @property
    def rkhs_norm_(self) -> float:
        """Norm ‖w‖ of the weights."""
        check_is_fitted(self)
        return float(np.linalg.norm(self.coef_))


@dataclass(frozen=True, eq=False)
class LinearPath:
    """Solutions of `LinearSVC` for increasing values of C.

    Attributes
    ----------
    C : array of shape (n_points,)
        Values of C, in increasing order.
    coef : array of shape (n_points, n_features)
        Weights w for each C.
    intercept : array of shape (n_points,)
        Constant b for each C.
    gap : array of shape (n_points,)
        Duality gap relative to the dual value, for each C.
    certificates : tuple of Certificate
        Certificate for each C.
    stop_reasons : tuple of str
        "converged", or the limit that ended the fit, for each C.

    Examples
    --------
    See `linear_path`.
    """

    C: Floats
    coef: Floats
    intercept: Floats
    gap: Floats
    certificates: tuple[Certificate, ...]
    stop_reasons: tuple[str, ...] = ()

    def __repr__(self) -> str:
        n, d = self.coef.shape
        values = f"{n} values of C from {self.C[0]:.3g} to {self.C[-1]:.3g}"
        return f"LinearPath({values}, {d} features, gap <= {self.gap.max():.1e})"


@shared_docs
def linear_path(
    X: Data, y: ArrayLike, *, Cs: Sequence[float], sample_weight: Weights = None, **options: Any
) -> LinearPath:
    """Fit `LinearSVC` for each value of C, starting from the solution for the previous value.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Training samples.
    y : array of shape (n_samples,)
        Class labels, of two classes.
    Cs : sequence of float
        Values of C, used in increasing order.
    %(given twice)s
    **options : parameters of LinearSVC
        Parameters of `LinearSVC` other than C.

    Returns
    -------
    LinearPath
        Solutions, with an entry for each C in increasing order in every attribute: ``C``; ``coef``, an array of shape
        (n_points, n_features), and ``intercept``: w and b; ``gap``, the duality gap relative to the dual value;
        ``certificates``; and ``stop_reasons``, "converged" or the limit that ended the fit at this C.

    See Also
    --------
    LinearSVC : Linear support vector classification for a single C.
    svm_path : Exact path of `SVC` over C, with any kernel.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mercer import linear_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = linear_path(X, y, Cs=[0.01, 0.1, 1.0])
    >>> path.coef.shape
    (3, 30)
    >>> bool((path.gap < 1e-6).all())
    True
    """
    machine = LinearSVC(**options)
    values = np.unique([positive("Cs", C) for C in Cs])
    if len(values) == 0:
        raise ValueError("Cs is empty; give at least one C")
    fit = Fit.of(machine, X, y, sample_weight)
    if len(fit.target.labels) != 2:
        raise ValueError(
            f"linear_path takes two classes, but y has {len(fit.target.labels)}; use (y == label) for one of them"
        )
    solve, rows, stop = linear_solver(machine, fit), fit.rows(), fit.limits.stop
    progress = Progress(None, bool(machine.verbose), len(values), fit.X, y)
    solutions: list[tuple[LinearSolution, Certificate]] = []
    start: LinearSolution | None = None
    for k, C in enumerate(values):
        if solutions:
            previous = solutions[-1][0]
            # Dual variables are scaled with C, so that those at their upper bound stay there.
            start = replace(previous, beta=previous.beta * float(C / values[k - 1]))
        (problem,) = hinge_problems(machine, fit, float(C))
        solutions.append(solve(problem, rows, replace(stop, report=progress.begin(f"C={C:g}")), start))
        progress.end()
    warn_of_early_stops(values, solutions)
    return LinearPath(
        C=freeze(values),
        coef=freeze(fit.to_all_columns(np.array([solution.w for solution, _ in solutions]))),
        intercept=freeze(np.array([solution.b for solution, _ in solutions])),
        gap=freeze(np.array([certificate.relative_gap for _, certificate in solutions])),
        certificates=tuple(certificate for _, certificate in solutions),
        stop_reasons=tuple(solution.stop_reason for solution, _ in solutions),
    )
