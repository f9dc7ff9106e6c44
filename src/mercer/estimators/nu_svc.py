"""ν-support vector classification: ν bounds the share of margin errors, in place of a price C."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mercer.certificates.hulls import in_scale_of_f
from mercer.estimators.fitting.families.dual_machine import expect_squares
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

# "auto": this ν where it is feasible, else 0.99 of the largest feasible one.
_USUAL_NU = 0.5


@shared_docs
@dataclass(eq=False, repr=False)
class NuSVC(PairwiseClassifier):
    """ν-support vector classification, exact and certified.

    Finds the nearest points of the two classes' reduced convex hulls, in which no sample counts for more than 2/(νW)
    times its weight: minimises ½‖w‖² + Σ w_i max(0, ρ − y_i f(x_i)) − νWρ over w, b and ρ, through its dual, then
    divides by ρ. Where ρ > 0, at most the share ν of the weight are margin errors, at least that share are support
    vectors, and the solution is that of `SVC` with C = 1/ρ = `equivalent_C_`. A drop-in for scikit-learn's NuSVC.

    There is no `class_weight`: ν demands the same mass νW/2 of each class, so a factor on a class has no meaning here
    (scikit-learn accepts one and ignores it). Use `SVC` for that.

    Parameters
    ----------
    nu : float or "auto", default="auto"
        Above 0 and at most 2·min(n₊, n₋)/n (in weights) for every pair of classes; more is refused. So is a ν so
        small that the reduced hulls meet, where ρ = 0 and no f is left. "auto" stands for 0.5; for pairs where that is
        infeasible for 0.99 of the largest feasible value, and where it is too small for the smallest useful one, with a
        warning; `nu_` records it. Where no ν is useful, f is constant, also with a warning.
    %(kernel)s
    decision_function_shape, break_ties : str, bool
        As in `SVC`.
    %(dual parameters)s

    Attributes
    ----------
    nu_ : float, or array of one for each pair of classes
        ν that was used.
    equivalent_C_ : float, or array of one for each pair of classes
        C of the `SVC` with the same solution.
    %(dual attributes)s
    classes_, class_weight_
        As in scikit-learn.

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
        weight, target = super()._weigh(target, codes, weight)
        # Before any kernel is evaluated: an infeasible ν is known from the labels.
        self._check_feasible(target, codes, weight)
        return weight, target

    def _check_feasible(self, target: Classes, codes: Indices, weight: Floats) -> None:
        for pair in target.pairs:
            rows, y = target.sides(pair, codes)
            largest = largest_nu(y, weight[rows])
            if self.nu != "auto" and float(self.nu) > largest * (1 + 1e-12):
                raise ValueError(
                    f"nu={self.nu!r} is infeasible: at most 2·min(n₊, n₋)/n = {largest:.6g} for the labels "
                    f"{target.name(pair)}; lower nu, use nu='auto', or use SVC"
                )

    def _remarks(self, fit: Fit, solved: Solutions[DualProblem]) -> list[tuple[str, type[Warning]]]:
        if self.nu != "auto":
            return []
        told: list[tuple[str, type[Warning]]] = []
        nus, constant = np.atleast_1d(self.nu_), np.atleast_1d(self.equivalent_C_) == 0
        if constant.any():
            names = ", ".join(fit.target.name(fit.target.pairs[k]) for k in np.flatnonzero(constant)[:3])
            told.append(
                (
                    f"no nu keeps the reduced hulls of {names}{', …' if constant.sum() > 3 else ''} apart in feature "
                    "space, so that f is constant there, for the class with more weight; use another kernel, or SVC",
                    UserWarning,
                )
            )
        for why, changed in (
            ("infeasible for labels as unequal as these", (nus < _USUAL_NU * (1 - 1e-12)) & ~constant),
            (
                "too small, because the classes' reduced hulls meet in feature space",
                (nus > _USUAL_NU * (1 + 1e-12)) & ~constant,
            ),
        ):
            taken = [
                f"{nus[k]:.4g} for {fit.target.name(fit.target.pairs[k])}" for k in np.flatnonzero(changed & ~constant)
            ]
            if taken:
                text = (
                    f"nu={_USUAL_NU} is {why}, so nu='auto' took {', '.join(taken[:3])}"
                    f"{', …' if len(taken) > 3 else ''} (`nu_`); give nu to choose another"
                )
                told.append((text, UserWarning))
        return told

    def _nu_of(self, y: Floats, weight: Floats) -> float:
        largest = largest_nu(y, weight)
        if self.nu == "auto":
            return _USUAL_NU if largest >= _USUAL_NU else 0.99 * largest
        return min(float(self.nu), largest)

    def _tasks(self, fit: Fit) -> Tasks[DualProblem]:
        tasks = []
        expect_squares(fit.merged.weight)
        for pair in fit.target.pairs:
            rows, y = fit.target.sides(pair, fit.merged.y)
            weight = fit.merged.weight[rows]
            problem = reduced_hulls(y, weight, self._nu_of(y, weight))
            solve = self._solver_around(partial(solve_hulls, reduced=True))
            tasks.append(Task(fit.target.name(pair), problem, solve, rows))
        return Tasks(tasks)

    def _record_end(self, solved: Solutions[DualProblem]) -> None:
        """The certificate is told in the scale of f, after the division by ρ."""
        scaled = [replace(s, certificate=in_scale_of_f(s.certificate, _rho(s))) for s in solved]
        super()._record_end(Solutions.of(scaled))

    def _conclude(self, fit: Fit, solved: Solutions[DualProblem]) -> None:
        if "no margin" in solved.reasons:
            solved = Solutions.of(
                [self._raised(one, fit) if one.solution.stop_reason == "no margin" else one for one in solved]
            )
            self._record_end(solved)
        rho = np.array([_rho(s) for s in solved])
        b = np.array([rho_and_b(s.certificate.b)[1] for s in solved]) / rho
        for k in np.flatnonzero(np.isinf(rho)).tolist():
            b[k] = self._heavier(solved[k])
        masses = [fit.merged.weight[s.task.rows].sum() for s in solved]
        totals = [2.0 * s.task.problem.totals[0] for s in solved]
        self.nu_ = _one_or_all(np.array(totals) / np.array(masses))
        self.equivalent_C_ = _one_or_all(1.0 / rho)
        self._conclude_pairs(fit, solved, lambda: Bounds(1.0, 1.0), b, 1.0 / rho)

    def _heavier(self, one: Solved[DualProblem]) -> float:
        """±1, the label of the class with more weight: f of a pair that nothing tells apart."""
        problem = one.task.problem
        return 1.0 if problem.upper.sum() >= -problem.lower.sum() else -1.0

    def _raised(self, one: Solved[DualProblem], fit: Fit) -> Solved[DualProblem]:
        """A pair whose reduced hulls meet, solved again at the smallest useful ν, or the error that tells this ν.

        Where no ν is useful, "auto" leaves w = 0.
        """
        problem, part = one.task.problem, fit.gram().view(one.task.rows)
        weight, y = problem.upper - problem.lower, np.where(problem.upper > 0, 1.0, -1.0)

        def at(nu: float) -> Solved[DualProblem]:
            raised = reduced_hulls(y, weight, nu)
            solution, certificate = one.task.solve(raised, part, fit.limits.stop)
            return Solved(replace(one.task, problem=raised), solution, certificate)

        given, largest = 2.0 * problem.totals[0] / weight.sum(), largest_nu(y, weight)
        text = (
            f"nu={given:.6g} is too small for {one.task.name}: the classes' reduced hulls meet in feature space, so "
            "that ρ = 0 and no f is left. "
        )
        if part.positive_definite == "no" and self.nu != "auto":
            raise ValueError(
                f"nu={given:.6g} found no f for {one.task.name}: the solver ended where ‖w‖² = β'Kβ is zero or below, "
                "so that ρ = 0. K is indefinite, so that this is no proof that reduced hulls meet, and another solver "
                "may end elsewhere. Raise nu, use SVC, or a positive semi-definite kernel"
            )
        best = at(largest)
        if best.solution.stop_reason == "no margin":
            if self.nu == "auto":
                nothing = np.zeros(len(y))
                return replace(best, solution=replace(best.solution, beta=nothing, u=nothing, stop_reason="converged"))
            raise ValueError(
                text + f"They meet even at the largest feasible nu = {largest:.6g}: use another kernel or SVC"
            )
        low, high = given, largest
        while high - low > 1e-3 * high:  # three digits of the smallest ν that is useful
            middle = 0.5 * (low + high)
            found = at(middle)
            if found.solution.stop_reason == "no margin":
                low = middle
            else:
                high, best = middle, found
        if self.nu != "auto":
            raise ValueError(
                text + f"The smallest useful nu is {high:.4g} (up to {largest:.4g} is feasible); raise nu, or use SVC"
            )
        return best

    def _check_parameters(self) -> None:
        if self.nu != "auto":
            share("nu", self.nu, "it bounds the share of margin errors; 'auto' chooses", whole=True)
        super()._check_parameters()


def _one_or_all(values: Floats) -> Any:
    """A number for two classes, so that it can be given to another machine."""
    return float(values[0]) if len(values) == 1 else freeze(values)


def _rho(solved: Solved[DualProblem]) -> float:
    """ρ of a pair, infinite for w = 0; where a limit came before it was positive, the ½‖w‖² of hulls of mass 1."""
    if not solved.solution.beta.any():
        return np.inf
    rho, mass = rho_and_b(solved.certificate.b)[0], float(solved.task.problem.totals[0])
    return rho if rho > 0 else -solved.certificate.dual / mass or 1.0
