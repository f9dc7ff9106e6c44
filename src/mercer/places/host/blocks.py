"""Block sizes and tolerances of every loop over blocks, and the loop that runs rounds on a device.

`decompose` (solvers/dual/decomposition.py) decides how large a block is and how precisely it is solved: on the host,
with K of the block in memory, or by rounds on a device that holds K, u and β. Searches on a stored K run rounds of the
same sizes without `decompose`.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import NamedTuple, Protocol

# Variables (samples, for the joint machines) of a block, if the problem has more than one block.
BLOCK = 1024
# Fraction of a block that may come from the previous one. Rounds on a device keep half of it too (rounds.py).
KEPT_SHARE = 0.5
# A block is solved to this fraction of the current violation, in at most this many steps per variable.
INNER_SHARE = 0.3
INNER_STEPS = 20
# A block with more than this fraction of free variables has no capacity for new ones. Its size is doubled, up to the
# largest, and it is solved to a smaller fraction of the violation, because most of its variables change little (letter
# at C=100: 89 outer steps with 1,024 variables, 15 with more).
_CROWDED_SHARE = 0.6
_CROWDED_INNER_SHARE = 0.1
_LARGEST_BLOCK = 3072
# Largest number of rounds on a device before the host reads their result; the number grows from 1 by doubling.
_UNSEEN_ROUNDS = 8


@dataclass(eq=False)
class BlockSize:
    """Number of variables of a block, the most that memory allows, and the relative tolerance of its solve."""

    size: int
    largest: int
    share: float = INNER_SHARE

    def double_if_crowded(self, free: int) -> None:
        """Double the block if too many of its variables are free."""
        if free > _CROWDED_SHARE * self.size:
            self.size, self.share = min(2 * self.size, _LARGEST_BLOCK, self.largest), _CROWDED_INNER_SHARE


class RoundsResult(NamedTuple):
    """Result of rounds on a device."""

    steps: int  # pair steps in all rounds
    violation: float  # violation before the last round
    free: int  # free variables of the last block
    should_shrink: bool  # True if variables should be dropped before the next round


class DeviceSolve(Protocol):
    """A solve that may run rounds on a device: each one chooses a block, solves it and brings u up to date there."""

    def run_rounds(self, count: int, size: int, share: float, min_tol: float, max_steps: int) -> RoundsResult | None:
        """Run `count` rounds without waiting between them; return None if this solve runs no rounds, or no more.

        Each solves a block of about `size` variables to the fraction `share` of the violation, or to `min_tol`, in at
        most `max_steps` steps per variable. β and u stay on the device until `copy_to_host`.
        """

    def copy_to_host(self) -> None:
        """Copy β and u back to the host if they are on the device."""


def run_device_rounds(
    solve: DeviceSolve, block: BlockSize, tol: float, max_steps: int, deadline: float = math.inf
) -> tuple[int, float]:
    """Run rounds on a device while they pay, and return the pair steps and the violation before the last round.

    Rounds end at a violation of `tol`, after `max_steps` steps, at a deadline on time.monotonic's clock, or when
    variables should be dropped. Without a deadline no clock is read: the same start ends in the same bits, however fast
    the device is.
    """
    n_steps, violation, count = 0, math.inf, 1
    while (result := solve.run_rounds(count, block.size, block.share, 0.5 * tol, INNER_STEPS)) is not None:
        n_steps, violation, count = n_steps + result.steps, result.violation, min(2 * count, _UNSEEN_ROUNDS)
        block.double_if_crowded(result.free)
        if violation <= tol or n_steps >= max_steps or result.should_shrink:
            break
        if deadline < math.inf and time.monotonic() >= deadline:
            break
    solve.copy_to_host()
    return n_steps, violation
