"""Exact solutions of all dual problems of a machine, starting from its own solution or an ordinary fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer._core import Homotopy
from mercer.estimators.fitting.families.dual_machine import DualMachine
from mercer.estimators.fitting.families.kernel_weights import MultipleKernelMachine
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Flags, Floats, Indices, sums_by
from mercer.solvers.homotopy import KernelRows, solve_exactly

# Tolerance of the ordinary solution from which the exact one is computed.
_ROUGH_TOL = 1e-3
# A coefficient counts as bounded within this distance, relative to the largest coefficient.
_ON_BOUND = 1e-10


@dataclass(frozen=True, eq=False)
class ExactSolution:
    """A dual problem, its merged samples, and its exact solution: the active set, β and h = p − Kβ − dβ."""

    problem: DualProblem
    rows: Indices
    K: KernelRows
    homotopy: Homotopy
    beta: Floats
    h: Floats

    @property
    def b(self) -> float:
        """Bias that a fit would choose: the middle of its interval if no β is free."""
        return choose_b(self.problem, self.beta, self.h, np.ones(len(self.h), dtype=np.bool_))[0]

    @property
    def f(self) -> Floats:
        """Decision value f of each variable's sample."""
        return np.asarray(self.problem.p - self.h - self.problem.d * self.beta + self.b)


def choose_b(problem: DualProblem, beta: Floats, h: Floats, counted: Flags) -> tuple[float, bool]:
    """Return b and whether it is unique, from the variables in the mask `counted`.

    b is the mean of h over the free variables or, if none is free, the middle of the interval of optimal b.
    """
    if len(problem.totals) == 0:
        return 0.0, True
    up, low = _movable(problem, beta)
    free = counted & up & low
    if free.any():
        return float(h[free].mean()), True
    ends = _ends(h, counted & up, counted & low)
    return float(np.mean(ends)) if ends else 0.0, False


def b_interval(problem: DualProblem, beta: Floats, h: Floats) -> list[float]:
    """Return the finite ends of the interval of optimal b; they are equal up to rounding if a β is free."""
    return _ends(h, *_movable(problem, beta))


def _movable(problem: DualProblem, beta: Floats) -> tuple[Flags, Flags]:
    """Return masks of the variables that can increase, and of those that can decrease."""
    tolerance = _ON_BOUND * float(np.abs(beta).max(initial=0.0))
    return beta < problem.upper - tolerance, beta > problem.lower + tolerance


def _ends(h: Floats, up: Flags, low: Flags) -> list[float]:
    """Return the largest h that can increase and the smallest that can decrease, if there are such variables."""
    return [end for end in (float(h[up].max(initial=-np.inf)), float(h[low].min(initial=np.inf))) if np.isfinite(end)]


def exact_solutions(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Fit, list[ExactSolution]]:
    """Read the samples and solve every problem exactly, starting from the solution of `model` if it is fitted."""
    if not isinstance(model, DualMachine):
        if hasattr(model, "best_estimator_"):
            raise TypeError(
                f"leaving samples out is for machines, not for the search {type(model).__name__}; pass the "
                "machine that it chose, its best_estimator_"
            )
        raise TypeError(
            f"{type(model).__name__} has no support vectors; use a machine such as SVC or SVR, or for least squares "
            "RLSRegressorCV, whose loo_residuals_ are exact"
        )
    if isinstance(model, MultipleKernelMachine) and not _is_fitted(model):
        raise TypeError(f"{type(model).__name__} has no kernel before it is fitted; fit it first")
    machine = clone(model)
    fit = Fit.of(machine, X, y, sample_weight)
    if _is_fitted(model):  # keep the kernel parameters that the fit computed from its data
        fit = replace(fit, kernel=model.kernel_)
    gram = fit.gram()
    if gram.positive_definite == "no":
        raise ValueError(f"{fit.kernel!r} is not positive definite on these samples, so there is no exact solution")
    solutions = []
    tasks = machine._tasks(fit)
    for task in tasks:
        problem = task.problem
        if not isinstance(problem, DualProblem) or _is_unsupported(problem):
            raise ValueError(
                f"{machine!r} is not supported: leaving samples out needs at most one b, finite bounds and Σβ = 0; use "
                "SVC or SVR with a finite C, and multiclass 'ovo' or 'ovr'"
            )
        rows = np.arange(gram.n) if task.rows is None else task.rows
        task_gram = gram if len(rows) == gram.n and task.blocks is None else gram.view(rows)
        start = _start(model, fit, problem) if len(tasks) == 1 else None
        limits = replace(fit.limits.stop, tol=_ROUGH_TOL)
        rough_solution = task.solve(problem, task_gram, limits, start)[0]
        K = KernelRows(task_gram)
        exact = solve_exactly(problem, K, rough_solution.beta)
        beta = exact.beta(exact.t)
        solutions.append(ExactSolution(problem, rows, K, exact, beta, exact.gradient(exact.t, beta)))
    return fit, solutions


def _is_unsupported(problem: DualProblem) -> bool:
    """Return whether the problem has several b, a nonzero total, or an infinite bound."""
    bounds = np.maximum(np.abs(problem.lower), np.abs(problem.upper))[problem.d == 0]
    return len(problem.totals) > 1 or bool(problem.totals.any()) or not np.isfinite(bounds).all()


def _start(model: Any, fit: Fit, problem: DualProblem) -> Floats | None:
    """Return the coefficients of a fitted machine as a start, if it has the same number of samples."""
    if not _is_fitted(model) or model.shape_fit_[0] != fit.n or problem.twins:
        return None
    return problem.nearest_feasible(merged_duals(model, fit))


def merged_duals(model: Any, fit: Fit) -> Floats:
    """Return β of the merged samples for a machine with one problem that was fitted to these samples."""
    merged, beta = fit.merged, np.zeros(fit.n)
    beta[model.support_] = model.dual_coef_[0]
    return sums_by(merged.member, beta[merged.rows], len(merged.y))


def _is_fitted(model: Any) -> bool:
    return hasattr(model, "_expansion_")
