"""The span of a few vectors in the kernel's space: coordinates, projections, and the machine's functions in them.

With K_ZZ = LLᵀ, the coordinates of φ(x) in the span are L⁻¹k(Z, x): inner products of such coordinates are those of the
projections, so that a linear machine on them has ‖w'‖² of the kernel's space as its regulariser.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg

from mercer.arrays import Floats, n_samples, row_blocks, rows_between
from mercer.kernels import Kernel
from mercer.solvers.ridge_factor import ridge_factor, rounding_shares


@dataclass(frozen=True, eq=False)
class Span:
    """Vectors Z, under a kernel that has its parameters as numbers."""

    kernel: Kernel
    vectors: Any

    @cached_property
    def factor(self) -> Floats:
        """L, of K_ZZ or of K_ZZ with a little more on its diagonal."""
        return factor_of(self.kernel(self.vectors))

    def coordinates(self, X: Any) -> Floats:
        """L⁻¹k(Z, x), a row for each sample."""
        out = np.empty((n_samples(X), len(self.factor)))
        for some in row_blocks(len(out), 16 * len(self.factor)):
            K = self.kernel(rows_between(X, some), self.vectors)
            out[some] = linalg.solve_triangular(self.factor, K.T, lower=True, check_finite=False).T
        return out

    def coordinates_of(self, values: Floats) -> Floats:
        """The coordinates of the projections of functions, a column each, from their values at Z."""
        return np.asarray(linalg.solve_triangular(self.factor, values, lower=True, check_finite=False))

    def coefficients(self, coordinates: Floats) -> Floats:
        """The coefficients on Z of functions with these coordinates."""
        solved = linalg.solve_triangular(self.factor, coordinates, lower=True, trans="T", check_finite=False)
        return np.ascontiguousarray(solved)


def factor_of(K: Floats) -> Floats:
    """Cholesky's L of a kernel matrix, with as little jitter as it takes."""
    factor = ridge_factor(K, rounding_shares(10, 1e-4), 1, unit=K.diagonal())
    if factor is None:
        raise np.linalg.LinAlgError("these vectors have no positive definite kernel matrix")
    return np.tril(factor.L)
