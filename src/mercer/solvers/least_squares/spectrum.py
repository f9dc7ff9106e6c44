"""The eigenvalues and eigenvectors of least squares, from which every λ can be answered.

In the scaled unknowns z = W^-½ c, the problem (K + λW⁻¹)c + 1b = y, 1'c = 0 is

    (S + λI) z = ỹ,   S = P W^½ K W^½ P,   ỹ = P W^½ y,   P = I − uu',  u = √w/‖√w‖   (P = I without bias)

so that S = QΛQᵀ answers for all λ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

from mercer.arrays import Floats, is_sparse
from mercer.gram.gram import Gram
from mercer.gram.linear_gram import float64_strips
from mercer.problems.least_squares import LeastSquares
from mercer.solution import Stop
from mercer.solvers.in_time import expect_in_time

# The row sums of a matrix are taken over strips of about this many bytes.
_BLOCK_BYTES = 64 << 20
_ENDLESS = Stop(tol=0.0, max_iter=1)


@dataclass(frozen=True, eq=False)
class Eigensystem:
    """Λ and Q of the scaled and, with a bias, centred matrix; `right` leads back to weights of features."""

    values: Floats
    basis: Floats  # distinct samples × directions, orthonormal columns
    unit: Floats | None  # u, with a bias
    least: float  # smaller eigenvalues are rounding
    right: Floats | None = None  # features × directions: w = right (√Λ ∘ a/(Λ + λ)), for a linear kernel

    @property
    def whole(self) -> bool:
        """Whether the basis spans everything (but u)."""
        return bool(self.basis.shape[1] == self.basis.shape[0] - (self.unit is not None))

    @property
    def rank(self) -> int:
        """Eigenvalues that are more than rounding."""
        return int((np.abs(self.values) > self.least).sum())


def rounding(values: Floats, n: int) -> float:
    """The size below which an eigenvalue of an n × n matrix is rounding."""
    return float(n * np.finfo(np.float64).eps * np.abs(values).max(initial=0.0))


def scaled_matrix(gram: Gram, problem: LeastSquares) -> Floats:
    """W^½KW^½, which is the caller's to change."""
    S = np.ascontiguousarray(gram.full(np.float64))
    if not np.isfinite(S.sum()):
        raise FloatingPointError(
            f"{gram.kernel!r} produced values beyond float64's range; scale the features, or lower its parameters"
        )
    root = np.sqrt(problem.total)
    if (root != 1.0).any():
        S *= root[:, None]
        S *= root
    return S


def spectrum_of(gram: Gram, problem: LeastSquares, stop: Stop = _ENDLESS) -> Eigensystem:
    """The decomposition of S for any kernel; O(n³), once. TimeoutError if that cannot be done in time."""
    S = scaled_matrix(gram, problem)
    u = None
    if problem.bias:
        u = np.sqrt(problem.total)
        u /= np.linalg.norm(u)
        m = S @ u
        m -= 0.5 * (u @ m) * u
        add_outer(S, -1.0, u, m)
        add_outer(S, -1.0, m, u)
        # u itself is moved above every other eigenvalue and then dropped: what remains is orthogonal to it.
        add_outer(S, 2.0 * max(_largest_row_sum(S), 1e-300), u, u)
    # S is symmetric: its transpose is the same matrix in the order LAPACK wants, and is overwritten.
    eigh = partial(scipy.linalg.eigh, overwrite_a=True, check_finite=False, driver="evd")
    expect_in_time(stop, S.T, eigh)
    values, Q = eigh(S.T)
    if u is not None:
        values, Q = values[:-1], Q[:, :-1]
    if gram.positive_definite == "yes":
        values = np.maximum(values, 0.0)
    return Eigensystem(values, Q, u, rounding(values, len(Q)))


def linear_spectrum_of(X: Any, scale: float, problem: LeastSquares, stop: Stop = _ENDLESS) -> Eigensystem:
    """The eigensystem of K = scale·XXᵀ with fewer features than samples: economy SVD of W^½(X − 1x̄'), O(nd²).

    A sparse X stays sparse until it is multiplied by the d eigenvectors of its covariance.
    """
    root = np.sqrt(problem.total)
    norm = float(np.linalg.norm(root))
    centre = np.zeros(X.shape[1])
    if problem.bias:
        centre = np.asarray(X.T @ problem.total).ravel() / norm**2
    if is_sparse(X):
        weighted = X.astype(np.float64).multiply(root[:, None]).tocsr()
        cov = (weighted.T @ weighted).toarray() - norm**2 * np.outer(centre, centre)
        eigh = partial(scipy.linalg.eigh, overwrite_a=True, check_finite=False)
        expect_in_time(stop, cov, eigh)
        values, V = eigh(cov)
        least = rounding(values, X.shape[0])
        keep = values > least
        values, V = values[keep], V[:, keep]
        U = (weighted @ V - np.outer(root, centre @ V)) / np.sqrt(values)
    else:
        A = np.empty(X.shape)
        for rows, part in float64_strips(X):
            A[rows] = root[rows, None] * (part - centre)
        svd = partial(scipy.linalg.svd, full_matrices=False, overwrite_a=True, check_finite=False)
        expect_in_time(stop, A, svd)
        U, s, Vt = svd(A)
        smallest = max(A.shape) * np.finfo(np.float64).eps * s.max(initial=0.0)
        least, keep = float(smallest) ** 2, s > smallest
        U, values, V = U[:, keep], s[keep] ** 2, Vt[keep].T
    unit = root / norm if problem.bias else None
    return Eigensystem(scale * values, U, unit, scale * least, V * np.sqrt(scale))


def lams_from(spectrum: Eigensystem, count: int) -> Floats:
    """GURLS's range: from the largest eigenvalue down to the smallest, but to no less than what float64 resolves.

    GURLS stops at 200√eps for a matrix whose diagonal is about 1; here that is relative to the mean of the diagonal.
    For a linear kernel whose smallest eigenvalue is clearly more than rounding, as that of a few features in different
    units, the range goes on to an n-th of it: there λ shrinks no direction by more than its share of one sample.
    """
    values = spectrum.values
    top = float(values.max(initial=0.0))
    if not top > np.finfo(np.float64).tiny:
        return np.geomspace(1e-6, 1.0, count)
    least_above = float(values[values > spectrum.least].min())
    mean = float(np.sum(values)) / len(spectrum.basis)
    low = lowest_of_range(top, mean, lambda floor, high: min(high, max(floor, least_above)))
    share = least_above / len(spectrum.basis)
    if spectrum.right is not None and share >= spectrum.least:
        low = min(low, share)
    return np.geomspace(low, top, count)


def lowest_of_range(top: float, mean: float, least_between: Callable[[float, float], float]) -> float:
    """Where the range of λ begins, given the largest and the mean eigenvalue.

    `least_between` gives the least eigenvalue that is more than rounding, or what is nearest to it between two numbers.
    """
    floor, high = 200 * np.sqrt(np.finfo(np.float64).eps) * mean, 1e-8 * top
    return float(min(floor if floor >= high else least_between(floor, high), top / 10))


def add_outer(S: Floats, factor: float, x: Floats, y: Floats) -> None:
    """S += factor · xy' in place, for contiguous rows."""
    scipy.linalg.blas.dger(factor, y, x, a=S.T, overwrite_a=True)


def _largest_row_sum(S: Floats) -> float:
    step = max(1, _BLOCK_BYTES // (8 * len(S)))
    return max(float(np.abs(S[i : i + step]).sum(axis=1).max()) for i in range(0, len(S), step))
