"""A duality gap for stochastic subgradient descent: the dual point that its visits make, and the proof.

The dual of ½‖w‖² + Σ C_iξ_i without bias, C_i = p_i/λ, is: maximise Σα − ½‖Σ α_iy_iφ(x_i)‖² over 0 ≤ α_i ≤ C_i.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import Floats, Indices, inner
from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import PROOF, certify_pair
from mercer.problems.classification import soft_margin
from mercer.solvers.pegasos import Space


class Trail:
    """How often each row was visited and how often it violated its margin, in the later part of the steps."""

    def __init__(self, n: int, machines: int) -> None:
        self.counts = np.zeros((machines, n), dtype=np.int64)
        self._visits = np.zeros(n, dtype=np.int64)
        self._marks: list[tuple[int, Any, Any]] = [(0, self.counts.copy(), self._visits.copy())]

    def visit(self, draws: Indices, t: int) -> None:
        """Some epochs are over, after step t; the first end of one past a power of two is kept as a mark."""
        self._visits += np.bincount(draws, minlength=len(self._visits))
        if t.bit_length() > self._marks[-1][0].bit_length():
            self._marks.append((t, self.counts.copy(), self._visits.copy()))
        while len(self._marks) > 1 and 2 * self._marks[1][0] <= t:
            self._marks.pop(0)

    def share(self, machine: int, otherwise: Floats) -> Floats:
        """Of its visits, the share at which a row violated; `otherwise` for rows without a visit."""
        _, counts, visits = self._marks[0]
        visited = self._visits - visits
        share = (self.counts[machine] - counts[machine]) / np.maximum(visited, 1)
        return np.where(visited > 0, share, otherwise)


def certify_descent(
    space: Space, signs: Floats, probability: Floats, w: Floats, trail: Trail, lam: float, positive_definite: str
) -> Certificate:
    """The gap between w and a dual point made of the visits, for every machine.

    In the mean of many steps row i pulls with y_i times the share of its visits at which it violated: α_i = C_i · share
    lies in the box [0, C_i] by its nature, and near the optimum where the steps have settled. Its best multiple in the
    box is taken.
    """
    parts = []
    for k, y in enumerate(signs):
        problem = soft_margin(y, probability / lam)
        n = problem.n_variables
        problem = replace(problem, group=np.full(n, -1, dtype=np.int32), totals=np.zeros(0))
        f = space.outputs(w[k])
        share = trail.share(k, (y * f < 1.0).astype(np.float64))
        beta = y * share * (probability / lam)
        v = space.combine(beta)
        u = space.outputs(v)
        energy = inner(beta, u)
        if energy > 0:
            best = min(inner(y, beta) / energy, 1.0 / share.max())
            beta, v, u = np.clip(best * beta, problem.lower, problem.upper), best * v, best * u
        between = space.square(w[k] - v, f - u)
        square = space.square(w[k], f)
        parts.append(certify_pair(problem, beta, u, f, square, between, PROOF[positive_definite]))
    return Certificate.total(parts)
