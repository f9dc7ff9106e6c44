"""Linear algebra on the host for every Gram: Cholesky factors, all of K, eigenvectors, and a test for indefiniteness.

Rows and columns are scaled to a unit diagonal before a matrix is factored, so that neither the scale of K nor the size
of d changes the result by more than rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.linalg

from mercer import _core
from mercer.places.eigenpairs import leading
from mercer.places.gram import Gram
from mercer.places.host.stored_gram import HostFloat32Matrix, float32_matrix_of
from mercer.places.rounding import DOUBLE
from mercer.runtime.long_calls import check_decomposition_time
from mercer.samples.arrays import Floats, Indices, Precision, Values, add_gram, mirror, row_blocks

# Number of roundings in a kernel value: a short inner sum and the final function (mercer.places.rounding).
_VALUE_ROUNDINGS = 32
LANDMARKS_OVERFLOWED = "the kernel matrix of the landmarks overflowed; scale the features or the kernel"


@dataclass(frozen=True, eq=False)
class CholeskyFactor:
    """Cholesky factor L with LLᵀ = D⁻¹AD⁻¹, where D² is A's diagonal; the upper triangle of L is not used."""

    L: Values
    diagonal: Floats
    n_threads: int

    @classmethod
    def of(cls, A: Values, diagonal: Floats, n_threads: int) -> CholeskyFactor | None:
        """Factor A in place, with `diagonal` in place of A's own; None if A is not positive definite."""
        if not diagonal.min(initial=np.inf) > 0 or not np.isfinite(diagonal).all():
            return None
        inverse_root = 1.0 / np.sqrt(diagonal)
        for rows in row_blocks(len(A), 8 * len(A)):
            A[rows] *= inverse_root[rows, None]
            A[rows] *= inverse_root
        np.einsum("ii->i", A)[...] = 1.0
        # Cholesky's method fails for infinite entries too.
        return None if _core.cholesky(A, n_threads) >= 0 else cls(A, diagonal, n_threads)

    @property
    def pivots(self) -> Floats:
        return np.asarray(np.sqrt(self.diagonal) * np.diagonal(self.L))

    def solve(self, R: Floats) -> Floats:
        """Return A⁻¹R; columns of R are divided by their largest entry to fit the precision of the factor."""
        inverse_root = 1.0 / np.sqrt(self.diagonal)[:, None]
        R = inverse_root * R
        size = np.abs(R).max(axis=0, initial=0.0)
        size[size == 0] = 1.0
        Z = np.ascontiguousarray(R / size, dtype=self.L.dtype)
        _core.cholesky_solve(self.L, Z, self.n_threads)
        return np.asarray(inverse_root * np.asarray(Z, dtype=np.float64) * size)


def factor_of(gram: Gram, d: Floats, dtype: Precision = np.float64, n_threads: int = 1) -> CholeskyFactor | None:
    """Factor K + diag(d) on the host (`Gram.factor`)."""
    return CholeskyFactor.of(gram.full(dtype), gram.diagonal + d, n_threads)


def jitters(K_diagonal: Floats) -> Iterator[float]:
    """Yield the jitters to try on the kernel matrix of landmarks, from this diagonal; raise ValueError after the last.

    The smallest one is a bound on the rounding errors in K, as an operator norm. With less, a factor of a nearly
    singular K may exist, but rounding errors dominate its directions of small eigenvalues, and with them the
    coefficients there and the bounds that a certificate can prove.
    """
    size = max(float(np.abs(K_diagonal).max(initial=0.0)), np.finfo(float).tiny)
    jitter = max(len(K_diagonal), 10) * _VALUE_ROUNDINGS * DOUBLE * size
    while jitter <= 1e-3 * size:
        yield jitter
        jitter *= 10
    raise ValueError(
        "the kernel matrix of the landmarks is not positive semi-definite: no ridge up to a thousandth of its diagonal "
        "makes it so. Use a positive definite kernel"
    )


def jittered_factor(K: Floats, n_threads: int = 1) -> tuple[Floats, float]:
    """Return the Cholesky factor of K + jitter·I for the kernel matrix of landmarks, and the jitter.

    The factor is lower, with zeros above the diagonal. K is not changed.
    """
    if not np.isfinite(K).all():
        raise FloatingPointError(LANDMARKS_OVERFLOWED)
    for jitter in jitters(K.diagonal()):
        L = np.array(K, order="C")
        np.einsum("ii->i", L)[...] += jitter
        if _core.cholesky(L, n_threads) < 0:
            break
    return np.tril(L), jitter


@dataclass(frozen=True, eq=False)
class HostLandmarkFactor:
    """A `LandmarkFactor` on the host: the lower factors L of K_JJ, and H of I + L⁻¹(A − K_JJ)L⁻ᵀ."""

    L: Floats
    H: Floats

    @classmethod
    def of(cls, L: Floats, lower: Floats, n_threads: int) -> HostLandmarkFactor:
        """Build the factors from L and the lower triangle of L⁻¹(A − K_JJ)L⁻ᵀ, which is overwritten."""
        np.einsum("ii->i", lower)[...] += 1.0
        if _core.cholesky(lower, n_threads) >= 0:
            raise FloatingPointError(LANDMARKS_OVERFLOWED)
        return cls(L, np.tril(lower))

    def solve(self, R: Floats) -> Floats:
        """Return A⁻¹R by the factors L and H."""
        whitened_R = scipy.linalg.solve_triangular(self.L, R, lower=True, check_finite=False)
        solved = scipy.linalg.cho_solve((self.H, True), whitened_R, check_finite=False)
        return np.asarray(scipy.linalg.solve_triangular(self.L, solved, lower=True, trans="T", check_finite=False))


def landmark_factor_of(gram: Gram, landmarks: Indices, weight: Floats, n_threads: int = 1) -> HostLandmarkFactor:
    """Factor K_JJ + K_nJᵀ diag(weight) K_nJ on the host (`Gram.landmark_factor`)."""
    L, _ = jittered_factor(gram.block(landmarks, landmarks), n_threads)
    lower, used = np.zeros(L.shape), np.flatnonzero(weight)
    for block in row_blocks(len(used), 8 * len(landmarks)):
        add_whitened(lower, L, gram.block(used[block], landmarks), weight[used[block]])
    return HostLandmarkFactor.of(L, lower, n_threads)


def add_whitened(lower: Floats, L: Floats, K: Floats, weight: Floats) -> None:
    """Add FᵀWF with F = KL⁻ᵀ to the lower triangle of `lower`, for a block K of rows.

    Whitening a sum KᵀWK afterwards would multiply its rounding errors by the condition number of LLᵀ.
    """
    F = scipy.linalg.solve_triangular(L, K.T, lower=True, check_finite=False).T
    add_gram(lower, np.sqrt(weight)[:, None] * F)


@dataclass(frozen=True, eq=False)
class HostFloat64Matrix:
    """A `Float64Matrix` on the host: all values in one array, and the diagonal as the Gram computes it."""

    K: Floats
    diagonal: Floats
    n_threads: int

    @property
    def extremes(self) -> tuple[float, float]:
        return float(self.K.min()), float(self.K.max())

    def column(self, j: int, rows: Indices | None = None) -> Floats:
        return np.array(self.K[j] if rows is None else self.K[j, rows])  # K is symmetric

    def products(self, C: Floats, columns: Indices | None = None) -> Floats:
        """Return K @ C, or K[:, columns] @ C."""
        n, q = len(self.K), C.shape[1]
        if columns is not None:
            sums = np.zeros((q, n))
            for block in row_blocks(len(columns), 8 * n):
                sums += C[block].T @ self.K[columns[block]]
            return sums.T
        out = np.zeros((n, q))
        if q == 1:
            _core.add_table(out[:, 0], self.K, np.ascontiguousarray(C[:, 0]), self.n_threads)
            return out
        for block in row_blocks(n, 8 * n):
            out[block] = self.K[block] @ C
        return out

    def factor(self, d: Floats, rows: Indices | None = None) -> CholeskyFactor | None:
        """Factor K[rows, rows] + diag(d), by default for all rows; None if it is not positive definite."""
        diagonal = (self.diagonal if rows is None else self.diagonal[rows]) + d
        A = np.empty((len(d), len(d)))
        for block in row_blocks(len(A), 8 * len(A)):
            A[block] = self.K[block] if rows is None else self.K[np.ix_(rows[block], rows)]
        return CholeskyFactor.of(A, diagonal, self.n_threads)

    def leading(
        self, scale: Floats, k: int | None, centre: Floats | None = None, subtracted: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return the k largest eigenvalues of S(K̃ − diag(subtracted))S and eigenvectors (`Float64Matrix.leading`)."""
        K, n = self.K, len(self.K)
        S = np.empty_like(K)
        means = np.zeros(n) if centre is None else self.products(centre[:, None])[:, 0]
        grand_mean = 0.0 if centre is None else float(centre @ means)
        for rows in row_blocks(n, 8 * n):
            np.subtract(K[rows], means[rows, None] - grand_mean, out=S[rows])
            S[rows] -= means
            if subtracted is not None:
                S[rows, rows].flat[:: rows.stop - rows.start + 1] -= subtracted[rows]
            S[rows] *= scale
            S[rows] *= scale[rows, None]
        mirror(S)
        return leading(S, k)


def float64_matrix_of(gram: Gram, n_threads: int = 1) -> HostFloat64Matrix:
    """Compute all of K in float64 on the host (`Gram.float64_matrix`)."""
    return HostFloat64Matrix(gram.full(np.float64), gram.diagonal, n_threads)


@dataclass(frozen=True, eq=False)
class Eigenvectors:
    """An `Eigensystem` on the host: eigenvalues in increasing order, and a column of Q for each."""

    values: Floats
    Q: Floats

    def coordinates(self, R: Floats) -> Floats:
        return np.asarray(self.Q.T @ R)

    def combined(self, A: Floats) -> Floats:
        return np.asarray(self.Q @ A)

    def squared(self, A: Floats) -> Floats:
        """Return (Q∘Q)A: sums of the squares in each row of Q."""
        out = np.empty((len(self.Q), A.shape[1]))
        for rows in row_blocks(len(out), 8 * self.Q.shape[1]):
            out[rows] = self.Q[rows] ** 2 @ A
        return out


def eigenvectors_of(gram: Gram, scale: Floats, centred: bool, deadline: float = math.inf) -> Eigenvectors:
    """Decompose K on the host (`Gram.eigh`)."""
    S = np.ascontiguousarray(gram.full(np.float64))
    if not np.isfinite(S.sum()):
        raise FloatingPointError(
            f"{gram.kernel!r} produced values beyond float64's range; scale the features, or lower its parameters"
        )
    if (scale != 1.0).any():
        S *= scale[:, None]
        S *= scale
    if centred:
        u = scale / np.linalg.norm(scale)
        m = S @ u
        m -= 0.5 * (u @ m) * u
        _add_outer(S, -1.0, u, m)
        _add_outer(S, -1.0, m, u)
        # The eigenvalue of u is raised above all others, so that u comes last and is dropped.
        norm_bound = max(float(np.abs(S[rows]).sum(axis=1).max()) for rows in row_blocks(len(S), 8 * len(S)))
        _add_outer(S, 2.0 * max(norm_bound, 1e-300), u, u)
    # S is symmetric: its transpose is the same matrix in LAPACK's memory order, and is overwritten.
    eigh = partial(scipy.linalg.eigh, overwrite_a=True, check_finite=False, driver="evd")
    check_decomposition_time(deadline, S.T, eigh)
    values, Q = eigh(S.T)
    return Eigenvectors(values[:-1], Q[:, :-1]) if centred else Eigenvectors(values, Q)


class HostAlgebra:
    """The methods of a Gram that need all of K on the host: factors, eigenvectors and values.

    An engine's Gram without its own versions inherits them; they call its `full` and `block`.
    """

    def factor(self: Gram, d: Floats, dtype: Precision = np.float64, n_threads: int = 1) -> CholeskyFactor | None:
        return factor_of(self, d, dtype, n_threads)

    def landmark_factor(self: Gram, landmarks: Indices, weight: Floats, n_threads: int = 1) -> HostLandmarkFactor:
        return landmark_factor_of(self, landmarks, weight, n_threads)

    def float64_matrix(self: Gram, n_threads: int = 1) -> HostFloat64Matrix:
        return float64_matrix_of(self, n_threads)

    def eigh(self: Gram, scale: Floats, centred: bool, deadline: float = math.inf) -> Eigenvectors:
        return eigenvectors_of(self, scale, centred, deadline)

    def float32_matrix(self: Gram) -> HostFloat32Matrix:
        return float32_matrix_of(self)


def _add_outer(S: Floats, factor: float, x: Floats, y: Floats) -> None:
    """Add factor · xy' to S in place; the rows of S are contiguous."""
    scipy.linalg.blas.dger(factor, y, x, a=S.T, overwrite_a=True)


def has_negative_direction(gram: Gram) -> bool:
    """Return whether a principal minor of rows spread over the samples has a negative eigenvalue."""
    negative = np.flatnonzero(gram.diagonal < 0)
    spread = np.linspace(0, gram.n - 1, min(gram.n, 200)).astype(np.intp)
    rows = np.unique(np.concatenate([negative[:1], spread]))
    K = gram.block(rows, rows)
    K = 0.5 * (K + K.T)
    # The ridge is larger than any rounding error: Cholesky's method fails only if K has a negative eigenvalue.
    K[np.diag_indices(len(K))] += 1e-8 * max(1e-300, float(np.abs(K).max())) * len(K)
    return _core.cholesky(K, 1) >= 0
