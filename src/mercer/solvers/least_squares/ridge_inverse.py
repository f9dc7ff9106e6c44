"""(X̃'WX̃ + λI)⁻¹ with the features scaled to equal length first, so that their units change nothing but rounding.

    X̃'WX̃ + λI = S A S,   S = diag of √(X̃'WX̃ + λI)_jj,   A has the diagonal 1

A is factored by Cholesky's method. Where it is singular to rounding, the triangular factor of the rows [W^½X̃; λ^½ I]S⁻¹
themselves takes over: its singular values resolve what their squares do not. Only directions that are rounding even
there are dropped: the loss does not depend on them, so that the solution is the one of least norm.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from mercer.arrays import Floats, is_sparse
from mercer.solvers.ridge_factor import Factor, ridge_factor

_EPS = float(np.finfo(np.float64).eps)


class RidgeInverse:
    """The inverse of one X̃'WX̃ + λI, by the first way that resolves it; `rank` counts the directions kept."""

    def __init__(self, xx: Floats, lam: float, n_threads: int, rows: Any = None) -> None:
        """`rows` yields (X̃, w) in pieces, where the samples are at hand."""
        d = len(xx)
        diagonal = np.abs(xx.diagonal()) + lam
        self._unit = np.divide(1.0, np.sqrt(diagonal), out=np.zeros(d), where=diagonal > 0)
        self.rank = d
        A = xx * self._unit[:, None] * self._unit
        self._factor: Factor | None = None
        if d and diagonal.min() > 0:
            factor = ridge_factor(A, (0.0,), n_threads, diagonal=np.ones(d))
            # The squared ratio bounds the reciprocal of the condition number from above.
            if factor is not None and (np.diagonal(factor.L).min() / np.diagonal(factor.L).max()) ** 2 > d * _EPS:
                self._factor = factor
                return
        if rows is not None:
            R = _triangle(rows, self._unit, lam)
            _, singular, Vt = scipy.linalg.svd(R, check_finite=False)
            values, V, least = singular**2, Vt.T, (d * _EPS) ** 2
        else:
            np.fill_diagonal(A, diagonal * self._unit**2)
            values, V = scipy.linalg.eigh(A, check_finite=False)
            least = d * _EPS
        keep = values > least * values.max(initial=0.0)
        self._values, self._vectors = values[keep], V[:, keep]
        self._null = scipy.linalg.qr(self._unit[:, None] * V[:, ~keep], mode="economic", check_finite=False)[0]
        empty = self._unit == 0
        self._null = self._null[:, : int((~keep).sum() - empty.sum())] if empty.any() else self._null
        self.rank = int(keep.sum())

    def __call__(self, B: Floats) -> Floats:
        unit = self._unit[:, None]
        if self._factor is not None:
            return unit * self._factor.solve(unit * B)
        V = self._vectors
        W = unit * (V @ ((V.T @ (unit * B)) / self._values[:, None]))
        return np.asarray(W - self._null @ (self._null.T @ W))


def _triangle(rows: Any, unit: Floats, lam: float) -> Floats:
    """R of a QR decomposition of [W^½X̃; λ^½ I] times the diagonal `unit`, over pieces of a few times d rows."""
    d = len(unit)
    R = np.diag(np.sqrt(lam) * unit)
    for part, weight in rows():
        for start in range(0, part.shape[0], 2 * d + 64):
            some = slice(start, start + 2 * d + 64)
            dense = part[some].toarray() if is_sparse(part) else part[some]
            R = scipy.linalg.qr(
                np.vstack([R, np.sqrt(weight[some])[:, None] * dense * unit]), mode="r", check_finite=False
            )[0][:d]
    return np.asarray(R)
