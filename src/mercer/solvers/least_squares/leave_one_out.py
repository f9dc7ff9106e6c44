"""Leave-one-out residuals, GCV, norms and degrees of freedom for every λ, from what a decomposition says of it.

H is the matrix that maps W^½y to W^½f. A row of weight w holds w units, each with leverage H_ii/w. Without one unit (or
without the row, where its weight is less) its residual is (y_i − f_i)/(1 − v_i H_ii/w_i), v_i = min(1, w_i).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer.arrays import Floats
from mercer.problems.least_squares import LeastSquares

# The residuals of the λ that are looked at together take about this many bytes.
_BLOCK_BYTES = 64 << 20

# Shown leave-one-out residuals, rows × λ × outputs, of some λ, it returns a number for each.
Judge = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class PathValues:
    """One row per λ."""

    loo_errors: Floats  # λ × outputs: weighted mean of squared leave-one-out residuals
    gcv: Floats  # λ × outputs
    norms: Floats  # λ × outputs: ‖f‖ in the kernel's space
    dof: Floats  # λ: trace of H
    judged: Floats  # λ: what `judge` made of the leave-one-out residuals


@dataclass(frozen=True, eq=False)
class Share:
    """What a decomposition says of some λ."""

    residuals: Floats  # distinct samples × λ × outputs: W^½(y − f)
    free: Floats  # distinct samples × λ: 1 − H_ii
    norms: Floats  # λ × outputs
    dof: Floats  # λ


class PathFit(ABC):
    """A decomposed problem, which answers for every λ."""

    solver: str

    def __init__(self, problem: LeastSquares) -> None:
        self.problem, self.root = problem, np.sqrt(problem.total)

    @abstractmethod
    def at(self, lams: Floats) -> Share:
        """What every λ needs, for some of them."""

    @abstractmethod
    def coefficients(self, lam: float) -> Floats:
        """C of the distinct samples at one λ; at λ = 0 the solution of least norm."""

    @abstractmethod
    def correction(self, lam: float, R: Floats) -> Floats:
        """What to add to C where it leaves the residual R."""

    @abstractmethod
    def directions(self, lam: float) -> tuple[int, bool]:
        """How many eigenvalues of S + λI are more than rounding, and whether one of them is negative."""

    def path(self, lams: Floats, judge: Judge | None = None) -> PathValues:
        """Everything for all λ. `judge` is shown the leave-one-out residuals of some λ at a time."""
        problem = self.problem
        n_rows, q, L = len(problem.weight), problem.n_outputs, len(lams)
        errors, gcv, norms = np.empty((L, q)), np.empty((L, q)), np.empty((L, q))
        judged, dof = np.zeros(L), np.empty(L)
        step = max(1, _BLOCK_BYTES // (8 * n_rows * q))
        weight, mass, member = problem.weight, problem.mass, problem.member
        deviation = problem.Y - problem.mean[member]
        part = np.minimum(weight, 1.0) / problem.total[member]
        for start in range(0, L, step):
            some = slice(start, min(L, start + step))
            share = self.at(lams[some])
            norms[some], dof[some] = share.norms, share.dof
            residual = (share.residuals / self.root[:, None, None])[member] + deviation[:, None, :]
            gcv[some] = np.einsum("i,ilq->lq", weight, residual**2) / mass
            with np.errstate(divide="ignore", invalid="ignore"):  # nothing is free where λ is far below rounding
                gcv[some] /= ((mass - dof[some]) / mass)[:, None] ** 2
                residual /= ((1.0 - part)[:, None] + part[:, None] * share.free[member])[:, :, None]
            residual[np.isnan(residual)] = np.inf
            errors[some] = np.einsum("i,ilq->lq", weight, residual**2) / mass
            if judge is not None:
                judged[some] = judge(residual)
        return PathValues(errors, np.where(np.isnan(gcv), np.inf, gcv), norms, dof, judged)

    def loo_residuals(self, lam: float) -> Floats:
        """Rows × outputs: each row's residual at the fit without one unit of its weight."""
        seen: list[Floats] = []

        def look(residual: Floats) -> Floats:
            seen.append(residual[:, 0, :].copy())
            return np.zeros(1)

        self.path(np.array([lam]), look)
        return seen[0]
