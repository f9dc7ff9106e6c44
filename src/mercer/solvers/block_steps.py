"""What the two loops over blocks share, block decomposition and the joint machines' block ascent.

The sizes of blocks, when a loop gives up, what it says on the way, and the error where numbers overflow.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from mercer.arrays import Floats
from mercer.gram.gram import Gram

# Variables (samples, for the joint machines) of a block, where the problem is more than one.
BLOCK = 1024
# Blocks of a few variables gain so little that a stall is seen where there is none; this one takes 2 kB.
_SMALLEST_BLOCK = 16
# The share of a block that may come from the last one.
KEPT_SHARE = 0.5
# A block is solved to this share of the current violation, in at most this many steps per variable: then the rest of
# the problem is looked at.
INNER_SHARE = 0.3
INNER_STEPS = 20
# Outer steps in a row without a measurable gain of the dual value before a loop gives up, and the number of them over
# which gains are judged.
_PATIENCE = 5
_WINDOW = 100
# A violation this many times above the noise of a single gradient can still be its doing: pairs of gradients are
# compared, and the errors of steps add up.
FLOOR = 100


def largest_block(gram: Gram) -> int:
    """The most variables whose block takes a quarter of the memory budget."""
    return max(_SMALLEST_BLOCK, math.isqrt(gram.budget // 32))


def running_words(steps: int, support: int, violation: float, gap: float, shrunk: bool) -> str:
    """A line about a running solve; while variables are dropped the gap is about right, because their rows lag."""
    return (
        f"{steps:>10,} steps  {support:>7,} support vectors  violation {violation:.3e}  "
        f"gap {'~' if shrunk else ' '}{gap:.3e}"
    )


def overflow(gram: Gram, bounds: Floats) -> FloatingPointError:
    """The error where a gradient is no longer a finite number."""
    return FloatingPointError(
        f"the gradient became non-finite: kernel values up to {gram.diagonal.max():.3g} overflow together with "
        f"bounds up to {bounds.max():.3g}. Scale the features or lower C"
    )


class StallWatch:
    """Gives up after a few outer steps without any gain, or more of them without a smaller violation.

    The second is for rounding that feigns gains: steps go round in circles, each of which looks like an increase. Near
    the floor of rounding some steps are enough to tell, elsewhere the gains of a window must be next to nothing.
    """

    def __init__(self, sees_all: bool = False) -> None:
        self._sees_all = sees_all  # every step sees all variables, so that the violation must fall
        self._total = self._gain_since = 0.0
        self._age = self._near = 0
        self._best = math.inf
        self.idle = 0  # steps in a row without a gain

    def gained(self, gain: float) -> None:
        self.idle = 0 if gain > np.finfo(float).eps * self._total else self.idle + 1
        self._total += max(gain, 0.0)
        self._gain_since += max(gain, 0.0)

    def verdict(self, violation: float, noise: float) -> Literal["stalled"] | None:
        """To be asked once before every outer step; `noise` is what rounding leaves uncertain in a gradient."""
        self._age += 1
        if violation < 0.9 * self._best:
            self._best, self._age, self._gain_since = violation, 0, 0.0
        near = self._best <= FLOOR * noise
        self._near += near
        at_floor = near and (self._age >= 4 * _PATIENCE or self._near >= 2 * _WINDOW)
        circling = self._age >= _WINDOW and (self._sees_all or self._gain_since <= 1e-12 * self._total)
        return "stalled" if violation <= noise or at_floor or circling or self.idle >= _PATIENCE else None
