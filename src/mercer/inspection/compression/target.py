"""Functions to be compressed (all outputs of a machine, without b), and spans of few vectors in feature space.

With K_ZZ = LLᵀ, the coordinates of φ(x) in the span of Z are L⁻¹k(Z, x). Inner products of such coordinates equal those
of the projections, so that a linear machine on them has ‖w'‖² in feature space as its regulariser.
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
    """Span of φ(z) for vectors z ∈ Z, under a kernel with fitted parameters."""

    kernel: Kernel
    vectors: Any

    @cached_property
    def factor(self) -> Floats:
        """Cholesky factor L of K_ZZ, with jitter on the diagonal if it is needed."""
        return cholesky_factor(self.kernel(self.vectors))

    def coordinates(self, X: Any) -> Floats:
        """Return the coordinates L⁻¹k(Z, x) of samples in the span, a row for each."""
        out = np.empty((n_samples(X), len(self.factor)))
        for block in row_blocks(len(out), 16 * len(self.factor)):
            K = self.kernel(rows_between(X, block), self.vectors)
            out[block] = linalg.solve_triangular(self.factor, K.T, lower=True, check_finite=False).T
        return out

    def coordinates_from_values(self, values: Floats) -> Floats:
        """Return the coordinates of projected functions from their values at Z, a column for each function."""
        return np.asarray(linalg.solve_triangular(self.factor, values, lower=True, check_finite=False))

    def coefficients(self, coordinates: Floats) -> Floats:
        """Return the coefficients on Z of functions with these coordinates, a column for each function."""
        coefficients = linalg.solve_triangular(self.factor, coordinates, lower=True, trans="T", check_finite=False)
        return np.ascontiguousarray(coefficients)


def cholesky_factor(K: Floats) -> Floats:
    """Return the Cholesky factor L of a kernel matrix, with as little jitter on the diagonal as it needs."""
    factor = ridge_factor(K, rounding_shares(10, 1e-4), 1, unit=K.diagonal())
    if factor is None:
        raise np.linalg.LinAlgError("the kernel matrix of these vectors is not positive definite")
    return np.tril(factor.L)


@dataclass(frozen=True, eq=False)
class TargetFunctions:
    """Functions f_o = Σ_j β_jo k(x_j, ·) to be represented by fewer vectors, one for each output o."""

    expansion: Expansion

    def values(self, X: Any) -> Floats:
        """Evaluate f_o at samples, one column for each output.

        The values are computed by the same kernel code as the matrix of a span: if that matrix is nearly singular,
        values with other rounding errors lead to a worse projection.
        """
        expansion = self.expansion
        out = np.zeros((n_samples(X), len(expansion.b)))
        for block in row_blocks(n_samples(X), 8 * self.n):
            K = expansion.kernel(rows_between(X, block), expansion.vectors)
            out[block] = K @ expansion.coefficients
        return out

    def single_output(self, output: int) -> TargetFunctions:
        """Return the function of one output, with the vectors that it uses."""
        expansion = self.expansion
        column = dense(expansion.coefficients[:, [output]])
        support = np.flatnonzero(column[:, 0])
        vectors = take(expansion.vectors, support)
        return TargetFunctions(
            replace(expansion, vectors=vectors, coefficients=column[support], b=expansion.b[[output]])
        )

    @property
    def n(self) -> int:
        """Number of vectors."""
        return n_samples(self.expansion.vectors)

    @cached_property
    def values_at_vectors(self) -> Floats:
        """Values of f_o at the vectors."""
        return self.values(self.expansion.vectors)

    @cached_property
    def squared_norms(self) -> Floats:
        """Squared norm ‖f_o‖² of the function of each output o."""
        table = dense(self.expansion.coefficients)
        return np.asarray(np.maximum(np.einsum("ij,ij->j", table, self.values_at_vectors), 0.0))

    @property
    def movable(self) -> bool:
        """True if vectors can be moved by gradient: they are dense numbers, and k is differentiable everywhere."""
        expansion = self.expansion
        are_dense_vectors = expansion.kernel.accepts == "vectors" and not is_sparse(expansion.vectors)
        return are_dense_vectors and expansion.kernel.differentiable == "yes"

    def projection(self, span: Span) -> Floats:
        """Return the coordinates of the projections Pf_o onto a span, one column for each output."""
        return span.coordinates_from_values(self.values(span.vectors))

    def squared_error(self, coordinates: Floats) -> Floats:
        """Return ‖f_o − Pf_o‖² for projections with these coordinates, accurate to the rounding of ‖f_o‖²."""
        return np.asarray(np.maximum(self.squared_norms - np.einsum("ij,ij->j", coordinates, coordinates), 0.0))


def in_float64(X: Any) -> Any:
    """Convert rows of float32 to float64; return rows of any other type unchanged."""
    return X.astype(np.float64) if getattr(X, "dtype", None) == np.float32 else X
