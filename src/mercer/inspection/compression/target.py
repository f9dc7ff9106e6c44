"""The functions that fewer vectors are to represent, all outputs of a machine without b, and the span of few vectors.

With K_ZZ = LLᵀ, the coordinates of φ(x) in the span of Z are L⁻¹k(Z, x): inner products of such coordinates are those
of the projections, so that a linear machine on them has ‖w'‖² of the kernel's space as its regulariser.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg

from mercer.kernels import Kernel
from mercer.places.expansion import Expansion
from mercer.samples.arrays import Floats, is_sparse, n_samples, row_blocks, rows_between, take
from mercer.samples.matrices import dense
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


@dataclass(frozen=True, eq=False)
class Target:
    """f_o = Σ_j β_jo k(x_j, ·) for every output o."""

    expansion: Expansion

    def values(self, X: Any) -> Floats:
        """f_o at samples, one column for each output.

        The kernel computes them itself, as it does the matrix of a span: where that is nearly singular, values that
        round otherwise lead to a worse projection.
        """
        expansion = self.expansion
        out = np.zeros((n_samples(X), len(expansion.b)))
        for some in row_blocks(n_samples(X), 8 * self.n):
            K = expansion.kernel(rows_between(X, some), expansion.vectors)
            out[some] = K @ expansion.coefficients
        return out

    def one(self, output: int) -> Target:
        """One of the functions, on the vectors that it uses."""
        expansion = self.expansion
        column = dense(expansion.coefficients[:, [output]])
        used = np.flatnonzero(column[:, 0])
        own = replace(expansion, vectors=take(expansion.vectors, used), coefficients=column[used])
        return Target(replace(own, b=expansion.b[[output]]))

    @property
    def n(self) -> int:
        return n_samples(self.expansion.vectors)

    @cached_property
    def own_values(self) -> Floats:
        """f_o at the vectors themselves."""
        return self.values(self.expansion.vectors)

    @cached_property
    def squares(self) -> Floats:
        """‖f_o‖²."""
        table = dense(self.expansion.coefficients)
        return np.asarray(np.maximum(np.einsum("ij,ij->j", table, self.own_values), 0.0))

    @property
    def movable(self) -> bool:
        """Whether vectors can be moved: they are numbers, not mostly zeros, and k has a derivative everywhere."""
        expansion = self.expansion
        plain = expansion.kernel.accepts == "vectors" and not is_sparse(expansion.vectors)
        return plain and expansion.kernel.differentiable == "yes"

    def projection(self, span: Span) -> Floats:
        """The coordinates of the functions' projections, one column for each output."""
        return span.coordinates_of(self.values(span.vectors))

    def left(self, coordinates: Floats) -> Floats:
        """‖f_o − Pf_o‖², to rounding of ‖f_o‖²."""
        return np.asarray(np.maximum(self.squares - np.einsum("ij,ij->j", coordinates, coordinates), 0.0))


def in_float64(X: Any) -> Any:
    """Rows of float32 as float64, others as they are."""
    return X.astype(np.float64) if getattr(X, "dtype", None) == np.float32 else X
