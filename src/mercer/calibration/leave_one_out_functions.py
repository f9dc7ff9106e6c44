"""All n functions of least squares that leave one sample out, from one inverse.

c and b solve [K + λW⁻¹, 1; 1', 0] [c; b] = [y; 0]. With M the inverse of this matrix, the function without sample i is

    f₋ᵢ(x) = f(x) − (cᵢ / Mᵢᵢ) (M [k_x; 1])ᵢ,      and   yᵢ − f₋ᵢ(xᵢ) = cᵢ / Mᵢᵢ.

Without a bias the last row and column are not there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from mercer.arrays import Floats, megabytes, n_samples
from mercer.data import samples
from mercer.fitting.fit import read_samples
from mercer.kernels import Kernel


@dataclass(frozen=True, eq=False)
class LeaveOneOutFunctions:
    """The functions, with what they share."""

    kernel: Kernel
    vectors: Any  # None for a precomputed kernel, whose columns are the samples
    inverse: Floats
    c: Floats
    b: float
    residuals: Floats

    @classmethod
    def of(cls, machine: Any, X: Any, y: Floats, sample_weight: Any) -> LeaveOneOutFunctions:
        """From a trained RLSRegressor and its training samples."""
        n, lam = n_samples(X), float(machine.lam)
        if lam <= 0:
            raise ValueError("cv='leave-one-out' needs lam > 0: the interpolant's system is singular; use folds")
        need = 3 * 8 * (n + 1) ** 2
        if need > machine.cache_size * 1e6:
            raise MemoryError(
                f"leaving out each of {n} samples takes about {megabytes(need)}, but "
                f"cache_size={machine.cache_size:g} allows less; use a number of folds, or raise cache_size"
            )
        weight = samples.weights(sample_weight, n)
        if not (weight > 0).all():
            raise ValueError("cv='leave-one-out' needs positive weights; leave samples without weight out")
        X = read_samples(machine, X, machine.kernel_, reset=False)
        precomputed = machine.kernel_.accepts == "gram"
        size = n + bool(machine.bias)
        A = np.zeros((size, size))
        A[:n, :n] = X if precomputed else machine.kernel_(X, X)
        A[np.arange(n), np.arange(n)] += lam / weight
        A[n:, :n] = A[:n, n:] = 1.0
        inverse = np.asarray(lu_solve(lu_factor(A, overwrite_a=True), np.eye(size)))
        target = np.append(y, np.zeros(size - n))
        solution = inverse @ target
        c = solution[:n]
        residuals = c / np.diag(inverse)[:n]
        return cls(machine.kernel_, None if precomputed else X, inverse, c, float(solution[n:].sum()), residuals)

    def __call__(self, X: Any) -> Floats:
        """A row for each x, a column for each sample left out."""
        k = np.asarray(X if self.vectors is None else self.kernel(X, self.vectors), dtype=np.float64)
        f = k @ self.c + self.b
        if len(self.inverse) > len(self.c):
            k = np.column_stack([k, np.ones(len(k))])
        return f[:, None] - (k @ self.inverse[:, : len(self.c)]) * self.residuals
