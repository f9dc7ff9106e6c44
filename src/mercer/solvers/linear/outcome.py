"""What the solvers of linear machines hand on: a point on the way, and the outcome of a solve."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.arrays import Floats
from mercer.solution import StopReason


@dataclass(frozen=True, eq=False)
class Point:
    """(w, b) and the dual variables β they were found with, the steps or passes so far, and why the solver left it."""

    w: Floats
    b: float
    beta: Floats
    steps: int = 0
    reason: StopReason = "converged"


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """w, b and β, the steps or passes they took, why it stopped, and which method it was and why.

    A joint multi-class machine has a row of w and an entry of b per class, and a column of β.
    """

    w: Floats
    b: float | Floats
    beta: Floats
    steps: int
    stop_reason: StopReason
    solver: str
