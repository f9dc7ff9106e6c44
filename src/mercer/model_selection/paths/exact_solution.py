"""The exact solution of every problem of a machine, from the one that the machine has or an ordinary fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer._core import Homotopy
from mercer.estimators.fitting.families.dual_machine import DualMachine
from mercer.estimators.fitting.families.kernel_weights import KernelWeights
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Flags, Floats, Indices, sums_by
from mercer.solvers.homotopy import KernelRows, settled

# How precisely a problem is solved before its exact solution is looked for.
_ROUGH_TOL = 1e-3
# A coefficient this near to its bound, as a share of the largest one, is on it.
_ON_BOUND = 1e-10


@dataclass(frozen=True, eq=False)
class ExactSolution:
    """A problem, the merged samples it is about, and its exact solution: the active set, β and h = p − Kβ − dβ."""

    problem: DualProblem
    rows: Indices
    K: KernelRows
    homotopy: Homotopy
    beta: Floats
    h: Floats

    @property
    def b(self) -> float:
        """The b that a fit would choose: where no β is free, the middle of its interval."""
        return chosen_b(self.problem, self.beta, self.h, np.ones(len(self.h), dtype=np.bool_))[0]

    @property
    def f(self) -> Floats:
        """f of each variable's sample."""
        return np.asarray(self.problem.p - self.h - self.problem.d * self.beta + self.b)


def chosen_b(problem: DualProblem, beta: Floats, h: Floats, among: Flags) -> tuple[float, bool]:
    """b from some of the variables: the mean of h over the free ones or, without any, the middle of its interval; and
    whether it is the only one."""
    if len(problem.totals) == 0:
        return 0.0, True
    near = _ON_BOUND * float(np.abs(beta).max(initial=0.0))
    up, low = among & (beta < problem.upper - near), among & (beta > problem.lower + near)
    if (up & low).any():
        return float(h[up & low].mean()), True
    ends = [end for end in (h[up].max(initial=-np.inf), h[low].min(initial=np.inf)) if np.isfinite(end)]
    return float(np.mean(ends)) if ends else 0.0, False


def exact_solutions(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Fit, list[ExactSolution]]:
    """Read the samples and solve every problem exactly; a fitted `model` also says where to begin."""
    if not isinstance(model, DualMachine):
        if hasattr(model, "best_estimator_"):
            raise TypeError(
                f"leaving samples out is of one machine, and {type(model).__name__} is a search; give the machine that "
                "it chose, its best_estimator_"
            )
        raise TypeError(
            f"{type(model).__name__} is no machine with support vectors; use one such as SVC or SVR, or for least "
            "squares RLSRegressorCV, whose loo_residuals_ are exact"
        )
    if isinstance(model, KernelWeights) and not _is_fitted(model):
        raise TypeError(f"{type(model).__name__} has no kernel before it has learnt its weights; fit it first")
    machine = clone(model)
    fit = Fit.of(machine, X, y, sample_weight)
    if _is_fitted(model):  # what the fit chose from its data stays as it was
        fit = replace(fit, kernel=model.kernel_)
    gram = fit.gram()
    if gram.positive_definite == "no":
        raise ValueError(f"{fit.kernel!r} is not positive definite on these samples, so there is no exact solution")
    found = []
    tasks = machine._tasks(fit)
    for task in tasks:
        problem = task.problem
        if not isinstance(problem, DualProblem) or _is_other(problem):
            raise ValueError(
                f"leaving samples out needs a problem with at most one b, finite bounds and Σβ = 0, which {machine!r} "
                "has not; use SVC or SVR with a finite C, and multiclass 'ovo' or 'ovr'"
            )
        rows = np.arange(gram.n) if task.rows is None else task.rows
        place = gram if len(rows) == gram.n and task.blocks is None else gram.view(rows)
        start = _start(model, fit, problem) if len(tasks) == 1 else None
        limits = replace(fit.limits.stop, tol=_ROUGH_TOL)
        rough = task.solve(problem, place, limits, start)[0]
        K = KernelRows(place)
        exact = settled(problem, K, rough.beta)
        beta = exact.beta(exact.t)
        found.append(ExactSolution(problem, rows, K, exact, beta, exact.gradient(exact.t, beta)))
    return fit, found


def _is_other(problem: DualProblem) -> bool:
    """Return whether there are several b, a sum that depends on the samples, or an infinite bound."""
    bounds = np.maximum(np.abs(problem.lower), np.abs(problem.upper))[problem.d == 0]
    return len(problem.totals) > 1 or bool(problem.totals.any()) or not np.isfinite(bounds).all()


def _start(model: Any, fit: Fit, problem: DualProblem) -> Floats | None:
    """The coefficients of a fitted machine, if they are those of as many samples."""
    if not _is_fitted(model) or model.shape_fit_[0] != fit.n or problem.twins:
        return None
    return problem.nearest_feasible(merged_duals(model, fit))


def merged_duals(model: Any, fit: Fit) -> Floats:
    """β of the merged samples, of a machine with one problem that was fitted on these."""
    merged, own = fit.merged, np.zeros(fit.n)
    own[model.support_] = model.dual_coef_[0]
    return sums_by(merged.member, own[merged.rows], len(merged.y))


def _is_fitted(model: Any) -> bool:
    return hasattr(model, "_expansion_")
