"""Parts that block decomposition and the joint machines' block ascent share.

These are the size of a block that fits into memory, the detection of a stalled loop, progress lines, and errors for
overflow.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from mercer.places.gram import Gram
from mercer.samples.arrays import Floats
from mercer.solvers.solution import ProgressLine

# Smaller blocks gain so little that the loop would wrongly take that for a stall; a block of 16 takes 2 kB.
_SMALLEST_BLOCK = 16
# A loop gives up after this many outer steps in a row without a measurable gain of the dual value.
_PATIENCE_STEPS = 5
# Number of outer steps over which small gains are judged.
_WINDOW_STEPS = 100
# A violation of up to this many rounding errors of one gradient may be rounding alone: pairs of gradients are compared,
# and the errors of steps add up.
FLOOR = 100


def largest_block(gram: Gram) -> int:
    """Return the largest number of variables whose block takes at most a quarter of the memory budget."""
    return max(_SMALLEST_BLOCK, math.isqrt(gram.budget // 32))


def progress_line(steps: int, support: int, violation: float, gap: float, shrunk: bool) -> str:
    """Return the progress line of a running solve.

    The gap is approximate (~) while the problem is shrunk, because u of the removed variables is not updated.
    """
    line = (
        f"{support:>7,} support vectors  violation {violation:.3e}  gap {'~' if shrunk else ' '}{gap:.3e}  "
        f"{steps:>10,} steps"
    )
    return ProgressLine.of(line, violation, gap)


def overflow_error(gram: Gram, bounds: Floats) -> FloatingPointError:
    """Return the error for a gradient that is not finite."""
    if not np.isfinite(bounds).all() and gram.positive_definite != "yes":
        return unbounded_dual_error()
    return FloatingPointError(
        f"the gradient became non-finite: kernel values up to {gram.diagonal.max():.3g} overflow together with "
        f"bounds up to {bounds.max():.3g}. Scale the features or lower C"
    )


def unbounded_dual_error() -> FloatingPointError:
    """Return the error for an unbounded dual: no bounds on the coefficients, and K + diag d is indefinite."""
    return FloatingPointError(
        "the dual problem is unbounded: a squared slack or loss does not bound the coefficients but adds 1/C to the "
        "diagonal of K, and the sum is still indefinite, so the objective grows without limit. Lower C until the "
        "diagonal outweighs the smallest eigenvalue (check_kernel finds it), use a slack or loss that is not squared, "
        "or a positive semi-definite kernel"
    )


class StallWatch:
    """Detector of a stalled loop: a few outer steps without any gain, or many steps without a smaller violation.

    The second rule catches steps that cycle while rounding errors look like gains. Close to the rounding errors of a
    gradient it applies after a few steps; elsewhere the gains of a whole window of steps must be negligible.
    """

    def __init__(self, sees_all: bool = False) -> None:
        self._sees_all = sees_all  # every step includes all variables, so that the violation must fall
        self._total_gain = self._recent_gain = 0.0
        self._steps_since_best = self._steps_at_floor = 0
        self._best_violation = math.inf
        self.idle = 0  # steps in a row without a gain

    def record_gain(self, gain: float) -> None:
        """Record by how much an outer step raised the dual value."""
        self.idle = 0 if gain > np.finfo(float).eps * self._total_gain else self.idle + 1
        self._total_gain += max(gain, 0.0)
        self._recent_gain += max(gain, 0.0)

    def verdict(self, violation: float, noise: float) -> Literal["stalled"] | None:
        """Return "stalled" or None; call it once before every outer step.

        `noise` is the rounding error of a gradient.
        """
        self._steps_since_best += 1
        if violation < 0.9 * self._best_violation:
            self._best_violation, self._steps_since_best, self._recent_gain = violation, 0, 0.0
        near_floor = self._best_violation <= FLOOR * noise
        self._steps_at_floor += near_floor
        at_floor = near_floor and (
            self._steps_since_best >= 4 * _PATIENCE_STEPS or self._steps_at_floor >= 2 * _WINDOW_STEPS
        )
        goes_in_circles = self._steps_since_best >= _WINDOW_STEPS and (
            self._sees_all or self._recent_gain <= 1e-12 * self._total_gain
        )
        return "stalled" if violation <= noise or at_floor or goes_in_circles or self.idle >= _PATIENCE_STEPS else None
