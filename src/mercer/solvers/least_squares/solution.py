"""Solution of least squares, and the memory that the solvers need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from mercer.certificates.certificate import Certificate
from mercer.places.sums import Sums
from mercer.problems.least_squares import LeastSquares
from mercer.samples.arrays import Floats, gamma
from mercer.solvers.solution import StopReason

REMEDY = "a smaller subsample, NystromRLS, or a linear kernel"


def factor_bytes(n: int, dtype: DTypeLike) -> int:
    """Bytes for a Cholesky factor of n rows: the matrix, and the panels of the core."""
    return int(np.dtype(dtype).itemsize * (n * (n + 32) + 2 * 320 * n))


def spectrum_bytes(n: int) -> int:
    """Bytes for the eigenvalues of an n × n matrix: the matrix, its eigenvectors, and LAPACK's work space."""
    return 8 * n * (3 * n + 64)


def linear_spectrum_bytes(n: int, d: int) -> int:
    """Bytes for the singular values of n samples with d features: two n × d matrices and four d × d ones."""
    return 8 * (2 * n * d + 4 * d * d)


def covariance_bytes(d: int) -> int:
    """Bytes for the covariance of d features: the matrix, its factor, and a copy during the factorisation."""
    return 24 * d * d


def memory_error(purpose: str, needed: float, budget: float, remedy: str = REMEDY) -> MemoryError:
    """Return the error for data that exceed the memory budget."""
    return MemoryError(
        f"{purpose} needs {needed / 1e6:,.0f} MB, but a fit may use {budget / 1e6:,.0f} MB: raise cache_size (which is "
        f"limited to half of the host's memory), or use {remedy}"
    )


@dataclass(frozen=True, eq=False)
class LeastSquaresSolution:
    """Solution of least squares: coefficients C of the distinct samples or weights W of the features, and b.

    If the system is singular to rounding, `dropped` is the number of dropped directions, and the solution is that of
    least norm. `indefinite` is True if this solve found a negative eigenvalue of K.
    """

    b: Floats
    solver: str
    rank: int
    C: Floats | None = None
    W: Floats | None = None
    beta: Floats | None = None  # dual variables of the rows; undefined at λ = 0
    sums: Sums | None = None
    precision: str = "float64"  # precision of the factor
    dropped: int = 0
    indefinite: bool = False
    steps: int = 1
    stop_reason: StopReason = "converged"


# Return type of every solver for least squares.
Proven = tuple[LeastSquaresSolution, Certificate]


def residual_share(problem: LeastSquares, C: Floats, b: Floats, U: Floats, errors: Floats) -> tuple[Floats, float]:
    """Return the residual Y − U − λW⁻¹C − 1b' and its largest ratio to the bound on its rounding error.

    U = KC is known up to `errors`. The ratio is a maximum over the samples, so that a sample of small weight counts as
    much as the others.
    """
    Y, ridge_part = problem.mean, (problem.lam / problem.total)[:, None] * C
    R = Y - U - ridge_part - b
    floor = errors + gamma(4) * (np.abs(Y) + np.abs(U) + np.abs(ridge_part) + np.abs(b))
    return R, float(np.max(np.abs(R) / np.maximum(floor, np.finfo(float).tiny)))
