"""ν-support vector classification, in which ν bounds the fraction of margin errors instead of a penalty C."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mercer.certificates.hulls import divide_nu_certificate
from mercer.estimators.fitting.families.dual_machine import check_weight_range
from mercer.estimators.fitting.families.pairwise import PairwiseClassifier
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.state import Number, fitted
from mercer.estimators.fitting.pipeline.task import Solutions, Solved, Task, Tasks
from mercer.estimators.fitting.reports.coefficients import Bounds
from mercer.problems.classification import largest_nu, reduced_hulls, rho_and_b
from mercer.problems.dual_problem import DualProblem
from mercer.runtime.parameters import share
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Floats, Indices, freeze
from mercer.samples.labels import Classes
from mercer.solvers.dual.hulls import solve_hulls

# ν of nu="auto" if it is feasible; else 0.99 of the largest feasible ν is used.
_DEFAULT_NU = 0.5


@shared_docs
@dataclass(eq=False, repr=False)
class NuSVC(PairwiseClassifier):
    """ν-support vector classification with a certificate of optimality.

    Computes the nearest points of the reduced convex hulls of the two classes, in which no sample counts for more than
    2/(νW) times its weight: minimises ½‖w‖² + Σ w_i max(0, ρ − y_i f(x_i)) − νWρ over w, b and ρ by solving the dual
    problem, and divides the solution by ρ. If ρ > 0, at most the fraction ν of the weight are margin errors, at least
    that fraction belongs to support vectors, and the solution is that of `SVC` with C = 1/ρ = `equivalent_C_`. It is a
    drop-in replacement for scikit-learn's NuSVC.

    There is no `class_weight`: ν requires the same mass νW/2 of each class, so that a factor on a class has no effect
    (scikit-learn accepts one and ignores it). Use `SVC` for class weights.

    Parameters
    ----------
    nu : float or "auto", default="auto"
        Upper bound on the fraction of margin errors and lower bound on the fraction of support vectors. It must be
        above 0 and at most 2·min(n₊, n₋)/n (in weights) for every pair of classes. A ValueError is also raised if ν is
        so small that the reduced hulls intersect, since then ρ = 0 and f vanishes. "auto" means 0.5. For pairs for
        which 0.5 is infeasible it means 0.99 of the largest feasible value, and for pairs for which 0.5 is too small,
        the smallest useful value, with a warning; `nu_` records the values. If no ν is useful, f is constant, also with
        a warning.
    %(kernel)s
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Shape of `decision_function` with several classes.
    break_ties : bool, default=False
        Whether `predict` breaks ties of the vote by the decision values, as in scikit-learn.
    %(dual parameters)s

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Class labels.
    class_weight_ : array of shape (n_classes,)
        Ones, for compatibility with scikit-learn.
    nu_ : float, or array with one value for each pair of classes
        Value of ν that was used.
    equivalent_C_ : float, or array with one value for each pair of classes
        Penalty C of the `SVC` with the same solution.
    %(dual attributes)s

    See Also
    --------
    SVC : Classification with the penalty C as parameter.
    NuSVR : The corresponding regressor.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NuSVC(nu=0.2).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.99
    """

    _FITTED = fitted(
        nu_=Number(per_output=True),
        equivalent_C_=Number(per_output=True),
    )

    nu: float | str = "auto"

    def _weigh(self, target: Any, codes: Indices, weight: Floats) -> tuple[Floats, Any]:
        """Return the weights, after a check that ν is feasible for all pairs of classes."""
        weight, target = super()._weigh(target, codes, weight)
        self._check_feasible(target, codes, weight)  # needs only the labels, and so comes before any kernel evaluation
        return weight, target

    def _check_feasible(self, target: Classes, codes: Indices, weight: Floats) -> None:
        """Raise ValueError if ν is above its largest feasible value for a pair of classes."""
        for pair in target.pairs:
            rows, y = target.sides(pair, codes)
            largest = largest_nu(y, weight[rows])
            if self.nu != "auto" and float(self.nu) > largest * (1 + 1e-12):
                raise ValueError(
                    f"nu={self.nu!r} is infeasible: at most 2·min(n₊, n₋)/n = {largest:.6g} for the labels "
                    f"{target.name(pair)}; lower nu, use nu='auto', or use SVC"
                )

    def _remarks(self, fit: Fit, solved: Solutions[DualProblem]) -> list[tuple[str, type[Warning]]]:
        """Return warnings about pairs of classes for which nu="auto" did not use its usual ν."""
        if self.nu != "auto":
            return []
        remarks: list[tuple[str, type[Warning]]] = []
        nus, is_constant = np.atleast_1d(self.nu_), np.atleast_1d(self.equivalent_C_) == 0
        if is_constant.any():
            names = ", ".join(fit.target.name(fit.target.pairs[k]) for k in np.flatnonzero(is_constant)[:3])
            remarks.append(
                (
                    f"no nu keeps the reduced hulls of {names}{', …' if is_constant.sum() > 3 else ''} apart in "
                    "feature space, so that f is constant and predicts the class with more weight; use another "
                    "kernel, or SVC",
                    UserWarning,
                )
            )
        for reason, is_changed in (
            ("infeasible for labels as unequal as these", nus < _DEFAULT_NU * (1 - 1e-12)),
            ("too small, because the classes' reduced hulls meet in feature space", nus > _DEFAULT_NU * (1 + 1e-12)),
        ):
            pairs = np.flatnonzero(is_changed & ~is_constant)
            values = [f"{nus[k]:.4g} for {fit.target.name(fit.target.pairs[k])}" for k in pairs]
            if values:
                text = (
                    f"nu={_DEFAULT_NU} is {reason}, so nu='auto' took {', '.join(values[:3])}"
                    f"{', …' if len(values) > 3 else ''} (`nu_`); give nu to choose another"
                )
                remarks.append((text, UserWarning))
        return remarks

    def _nu_of(self, y: Floats, weight: Floats) -> float:
        """Return `nu` for a pair of classes with labels y = ±1, or the largest feasible ν if that is smaller."""
        largest = largest_nu(y, weight)
        if self.nu == "auto":
            return _DEFAULT_NU if largest >= _DEFAULT_NU else 0.99 * largest
        return min(float(self.nu), largest)

    def _tasks(self, fit: Fit) -> Tasks[DualProblem]:
        """Return the problems to solve, with their solvers."""
        tasks = []
        check_weight_range(fit.merged.weight)
        for pair in fit.target.pairs:
            rows, y = fit.target.sides(pair, fit.merged.y)
            weight = fit.merged.weight[rows]
            problem = reduced_hulls(y, weight, self._nu_of(y, weight))
            solve = self._nested_solver(partial(solve_hulls, reduced=True))
            tasks.append(Task(fit.target.name(pair), problem, solve, rows))
        return Tasks(tasks)

    def _record_end(self, solved: Solutions[DualProblem]) -> None:
        """Record the end of the fit with the certificate in the scale of f, after the division by ρ."""
        scaled = [replace(s, certificate=divide_nu_certificate(s.certificate, _rho(s))) for s in solved]
        super()._record_end(Solutions.of(scaled))

    def _conclude(self, fit: Fit, solved: Solutions[DualProblem]) -> None:
        """Set the fitted attributes, with every solution divided by ρ."""
        if "no margin" in solved.reasons:
            solved = Solutions.of(
                [
                    self._solve_at_smallest_nu(pair, fit) if pair.solution.stop_reason == "no margin" else pair
                    for pair in solved
                ]
            )
            self._record_end(solved)
        rho = np.array([_rho(s) for s in solved])
        b = np.array([rho_and_b(s.certificate.b)[1] for s in solved]) / rho
        for k in np.flatnonzero(np.isinf(rho)).tolist():
            b[k] = self._majority_label(solved[k])
        masses = [fit.merged.weight[s.task.rows].sum() for s in solved]
        totals = [2.0 * s.task.problem.totals[0] for s in solved]
        self.nu_ = _number_or_array(np.array(totals) / np.array(masses))
        self.equivalent_C_ = _number_or_array(1.0 / rho)
        self._conclude_pairs(fit, solved, lambda: Bounds(1.0, 1.0), b, 1.0 / rho)

    def _majority_label(self, solved: Solved[DualProblem]) -> float:
        """Return ±1, the label of the class with more weight; it is f of a pair of classes that no ν separates."""
        problem = solved.task.problem
        return 1.0 if problem.upper.sum() >= -problem.lower.sum() else -1.0

    def _solve_at_smallest_nu(self, pair: Solved[DualProblem], fit: Fit) -> Solved[DualProblem]:
        """Find the smallest useful ν of a pair whose reduced hulls intersect, and return the solution there.

        Raise ValueError unless nu="auto". If no ν is useful, the solution is w = 0.
        """
        problem, gram = pair.task.problem, fit.gram().view(pair.task.rows)
        weight, y = problem.upper - problem.lower, np.where(problem.upper > 0, 1.0, -1.0)

        def solve_at(nu: float) -> Solved[DualProblem]:
            nu_problem = reduced_hulls(y, weight, nu)
            solution, certificate = pair.task.solve(nu_problem, gram, fit.limits.stop)
            return Solved(replace(pair.task, problem=nu_problem), solution, certificate)

        nu, largest = 2.0 * problem.totals[0] / weight.sum(), largest_nu(y, weight)
        text = (
            f"nu={nu:.6g} is too small for {pair.task.name}: the classes' reduced hulls meet in feature space, so "
            "that ρ = 0 and f vanishes. "
        )
        if gram.positive_definite == "no" and self.nu != "auto":
            raise ValueError(
                f"nu={nu:.6g} found no f for {pair.task.name}: the solver ended where ‖w‖² = β'Kβ is zero or below, "
                "so that ρ = 0. K is indefinite, so that this is no proof that reduced hulls meet, and another solver "
                "may end elsewhere. Raise nu, use SVC, or a positive semi-definite kernel"
            )
        best = solve_at(largest)
        if best.solution.stop_reason == "no margin":
            if self.nu == "auto":
                zero = np.zeros(len(y))
                return replace(best, solution=replace(best.solution, beta=zero, u=zero, stop_reason="converged"))
            raise ValueError(
                text + f"They meet even at the largest feasible nu = {largest:.6g}: use another kernel or SVC"
            )
        low, high = nu, largest
        while high - low > 1e-3 * high:  # three digits of the smallest ν that is useful
            middle = 0.5 * (low + high)
            solved = solve_at(middle)
            if solved.solution.stop_reason == "no margin":
                low = middle
            else:
                high, best = middle, solved
        if self.nu != "auto":
            raise ValueError(
                text + f"The smallest useful nu is {high:.4g} (up to {largest:.4g} is feasible); raise nu, or use SVC"
            )
        return best

    def _check_parameters(self) -> None:
        if self.nu != "auto":
            share("nu", self.nu, "it bounds the fraction of margin errors; 'auto' chooses one", whole=True)
        super()._check_parameters()


def _number_or_array(values: Floats) -> Any:
    """Return a float for a single pair of classes, which users can pass to another machine, else an array."""
    return float(values[0]) if len(values) == 1 else freeze(values)


def _rho(solved: Solved[DualProblem]) -> float:
    """Return ρ of a pair, infinite for w = 0.

    If a limit ended the fit before ρ > 0, ½‖w‖² divided by the total weight of a hull takes its place.
    """
    if not solved.solution.beta.any():
        return np.inf
    rho, mass = rho_and_b(solved.certificate.b)[0], float(solved.task.problem.totals[0])
    return rho if rho > 0 else -solved.certificate.dual / mass or 1.0
