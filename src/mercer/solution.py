"""What a solver is asked for, whom it tells on the way, and what it returns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from mercer.arrays import Floats
from mercer.gram.field import Field
from mercer.gram.joint_field import JointField

StopReason = Literal["converged", "rounding floor", "max_iter", "max_time", "stalled", "no margin"]


@dataclass(frozen=True)
class Stop:
    """When to stop: a violation to reach, a relative gap to reach as well, and limits that always hold."""

    tol: float
    max_iter: int
    gap_tol: float = math.inf
    deadline: float = math.inf  # on time.monotonic's clock


# Told before every outer step: the field, the steps so far, the violation. It may raise to abandon the fit.
Report = Callable[[Field | JointField, int, float], None]


@dataclass(frozen=True, eq=False)
class Solution:
    """A feasible β, the steps it took and why it stopped, and the u = Kβ of its certificate where there is one.

    β and u have a column per class for the joint multi-class machines.

    Where not the `whole` problem was active at the end, the stop speaks of the active part: the certificate's pass over
    all rows tells whether a variable that was dropped has to come back.
    """

    beta: Floats
    steps: int
    stop_reason: StopReason
    whole: bool = True
    u: Floats | None = None
