"""What every solver of least squares returns beside its certificate, and what is left of its residuals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.arrays import Floats, gamma
from mercer.gram.sums import Sums
from mercer.problems.least_squares import LeastSquares
from mercer.solution import StopReason


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


def residual_share(problem: LeastSquares, C: Floats, b: Floats, U: Floats, errors: Floats) -> tuple[Floats, float]:
    """Y − U − λW⁻¹C − 1b', U = KC being known up to `errors`; and how many times the bound on its rounding it is.

    A light sample counts like a heavy one: in a sum with weights, what is left of it would not be seen.
    """
    Y, ridged = problem.mean, (problem.lam / problem.total)[:, None] * C
    R = Y - U - ridged - b
    floor = errors + gamma(4) * (np.abs(Y) + np.abs(U) + np.abs(ridged) + np.abs(b))
    return R, float(np.max(np.abs(R) / np.maximum(floor, np.finfo(float).tiny)))
