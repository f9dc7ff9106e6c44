"""What block decomposition and the joint machines' block ascent share.

How much memory a block may take, when a loop gives up, what it reports, and the error if numbers overflow.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from mercer.places.gram import Gram
from mercer.samples.arrays import Floats
from mercer.solvers.solution import Words

# Smaller blocks gain so little that the loop would wrongly take that for a stall; a block of 16 takes 2 kB.
_SMALLEST_BLOCK = 16
# A loop gives up after this many outer steps in a row without a measurable gain of the dual value.
_PATIENCE_STEPS = 5
# The number of outer steps over which small gains are judged.
_WINDOW_STEPS = 100
# A violation of up to this many rounding errors of one gradient may be rounding alone: pairs of gradients are compared,
# and the errors of steps add up.
FLOOR = 100


def largest_block(gram: Gram) -> int:
    """The largest number of variables whose block takes at most a quarter of the memory budget."""
    return max(_SMALLEST_BLOCK, math.isqrt(gram.budget // 32))


def running_words(steps: int, support: int, violation: float, gap: float, shrunk: bool) -> str:
    """A line about a running solve; the gap is approximate (~) while variables are dropped, as their u is outdated."""
    line = (
        f"{support:>7,} support vectors  violation {violation:.3e}  gap {'~' if shrunk else ' '}{gap:.3e}  "
        f"{steps:>10,} steps"
    )
    return Words.of(line, violation, gap)


def overflow(gram: Gram, bounds: Floats) -> FloatingPointError:
    """The error where a gradient is no longer a finite number."""
    if not np.isfinite(bounds).all() and gram.positive_definite != "yes":
        return unbounded_dual()
    return FloatingPointError(
        f"the gradient became non-finite: kernel values up to {gram.diagonal.max():.3g} overflow together with "
        f"bounds up to {bounds.max():.3g}. Scale the features or lower C"
    )


def unbounded_dual() -> FloatingPointError:
    """The error where coefficients without a bound grow for ever, since K with the loss's curvature is indefinite."""
    return FloatingPointError(
        "the dual problem is unbounded: a squared slack or loss puts no bound on a coefficient, only 1/C on the "
        "diagonal of K, and K with that is still indefinite, so that the objective grows for ever. Lower C until the "
        "diagonal outweighs the smallest eigenvalue (check_kernel finds it), use a slack or loss that is not squared, "
        "or a positive semi-definite kernel"
    )


class StallWatch:
    """Gives up after a few outer steps without any gain, or after more of them without a smaller violation.

    The second rule is for rounding errors that look like gains while steps go round in circles. Near the rounding floor
    a few steps decide; elsewhere the gains of a whole window must be negligible.
    """

    def __init__(self, sees_all: bool = False) -> None:
        self._sees_all = sees_all  # every step includes all variables, so that the violation must fall
        self._total = self._gain_since = 0.0
        self._age = self._near = 0
        self._best = math.inf
        self.idle = 0  # steps in a row without a gain

    def gained(self, gain: float) -> None:
        self.idle = 0 if gain > np.finfo(float).eps * self._total else self.idle + 1
        self._total += max(gain, 0.0)
        self._gain_since += max(gain, 0.0)

    def verdict(self, violation: float, noise: float) -> Literal["stalled"] | None:
        """To be called once before every outer step; `noise` is the rounding error of a gradient."""
        self._age += 1
        if violation < 0.9 * self._best:
            self._best, self._age, self._gain_since = violation, 0, 0.0
        near = self._best <= FLOOR * noise
        self._near += near
        at_floor = near and (self._age >= 4 * _PATIENCE_STEPS or self._near >= 2 * _WINDOW_STEPS)
        circling = self._age >= _WINDOW_STEPS and (self._sees_all or self._gain_since <= 1e-12 * self._total)
        return "stalled" if violation <= noise or at_floor or circling or self.idle >= _PATIENCE_STEPS else None
