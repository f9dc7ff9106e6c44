"""What every solver of least squares returns beside its certificate."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.arrays import Floats
from mercer.gram.sums import Sums
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
