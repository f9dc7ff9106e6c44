"""What every solver of least squares needs and returns: memory, counted before it is asked for; the solution."""

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
    """A Cholesky factor of n rows: the matrix, and the core's panels beside it."""
    return int(np.dtype(dtype).itemsize * (n * (n + 32) + 2 * 320 * n))


def spectrum_bytes(n: int) -> int:
    """The eigenvalues of an n × n matrix: the matrix, its eigenvectors, and LAPACK's work space."""
    return 8 * n * (3 * n + 64)


def linear_spectrum_bytes(n: int, d: int) -> int:
    """The singular values of n samples of d features: two n × d matrices and four d × d ones."""
    return 8 * (2 * n * d + 4 * d * d)


def covariance_bytes(d: int) -> int:
    """Sums over samples of d features: the covariance, its factor, and a copy while that is made."""
    return 24 * d * d


def memory_error(what: str, needed: float, budget: float, instead: str = REMEDY) -> MemoryError:
    """The error for what would not fit."""
    return MemoryError(
        f"{what} needs {needed / 1e6:,.0f} MB, but a fit may use {budget / 1e6:,.0f} MB: raise cache_size (which is "
        f"limited to half of this machine's memory), or use {instead}"
    )


@dataclass(frozen=True, eq=False)
class LeastSquaresSolution:
    """Coefficients C of the distinct samples or weights W of the features, b, and how they were found.

    Where the system is singular to rounding, directions were `dropped` and the solution is that of least norm.
    `indefinite` says that this solve found K to be so.
    """

    b: Floats
    solver: str
    rank: int
    C: Floats | None = None
    W: Floats | None = None
    beta: Floats | None = None  # of the rows; λ = 0 leaves it undefined
    sums: Sums | None = None
    precision: str = "float64"  # of the factor
    dropped: int = 0
    indefinite: bool = False
    steps: int = 1
    stop_reason: StopReason = "converged"


# What every solver of least squares returns.
Proven = tuple[LeastSquaresSolution, Certificate]


def residual_share(problem: LeastSquares, C: Floats, b: Floats, U: Floats, errors: Floats) -> tuple[Floats, float]:
    """Y − U − λW⁻¹C − 1b', U = KC being known up to `errors`; and how many times the bound on its rounding it is.

    A light sample counts like a heavy one: in a sum with weights, what is left of it would not be seen.
    """
    Y, ridged = problem.mean, (problem.lam / problem.total)[:, None] * C
    R = Y - U - ridged - b
    floor = errors + gamma(4) * (np.abs(Y) + np.abs(U) + np.abs(ridged) + np.abs(b))
    return R, float(np.max(np.abs(R) / np.maximum(floor, np.finfo(float).tiny)))
