"""Sizes of blocks, and rounds that a device takes between two looks at it: the numbers of every loop over blocks.

`decompose` (solvers/dual/decomposition.py) decides how large a block is and how precisely it is solved, on a block's K
in the host's memory or by rounds on a device that holds K, u and β. Searches on a stored K take rounds of the same
sizes without `decompose`.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import NamedTuple, Protocol

# Variables (samples, for the joint machines) of a block, if the problem has more than one block.
BLOCK = 1024
# The share of a block that may come from the last one. Rounds on a device keep half of it too (rounds.py).
KEPT_SHARE = 0.5
# A block is solved to this share of the current violation, in at most this many steps per variable.
INNER_SHARE = 0.3
INNER_STEPS = 20
# A block with more than this share of free variables leaves no place for new ones. Its size is doubled, up to the
# largest, and it is solved to a smaller share of the violation, because most of its variables change little (letter at
# C=100: 89 outer steps with 1,024 variables, 15 with more).
_CROWDED_SHARE = 0.6
_CROWDED_INNER_SHARE = 0.1
_LARGEST_BLOCK = 3072
# Rounds on a device between two looks, after a few of them.
_UNSEEN_ROUNDS = 8


@dataclass(eq=False)
class BlockSize:
    """Number of variables of a block, the largest that memory allows, and the share of the violation to solve it to."""

    size: int
    largest: int
    share: float = INNER_SHARE

    def double_if_crowded(self, free: int) -> None:
        """Double the block if too many of its variables are free."""
        if free > _CROWDED_SHARE * self.size:
            self.size, self.share = min(2 * self.size, _LARGEST_BLOCK, self.largest), _CROWDED_INNER_SHARE


class Rounds(NamedTuple):
    """Result of some rounds on a device."""

    steps: int  # pair steps in all of them
    violation: float  # before the last one
    free: int  # free variables of the last block
    enough: bool  # whether so many were taken that variables should be dropped before the next


class TakesRounds(Protocol):
    """A solve that may take rounds on a device: a block is chosen, solved, and u brought up to date, all there."""

    def rounds(self, count: int, size: int, share: float, least: float, most: int) -> Rounds | None:
        """Take `count` rounds without a wait between them; None where this solve takes none, or none any more.

        Each solves a block of about `size` variables to this share of the violation, or to `least`, in at most `most`
        steps per variable. β and u stay on the device until `settle`.
        """

    def settle(self) -> None:
        """Bring β and u back, if they are on the device."""


def take_rounds(
    place: TakesRounds, block: BlockSize, tol: float, most: int, deadline: float = math.inf
) -> tuple[int, float]:
    """Let a device take rounds while they pay, and return the pair steps and the violation before the last round.

    They end at a violation, a number of steps, a deadline on time.monotonic's clock, or where it is time to drop
    variables. Without a deadline no clock is read: the same start ends in the same bits, however fast the device is.
    """
    taken, violation, count = 0, math.inf, 1
    while (found := place.rounds(count, block.size, block.share, 0.5 * tol, INNER_STEPS)) is not None:
        taken, violation, count = taken + found.steps, found.violation, min(2 * count, _UNSEEN_ROUNDS)
        block.double_if_crowded(found.free)
        if violation <= tol or taken >= most or found.enough:
            break
        if deadline < math.inf and time.monotonic() >= deadline:
            break
    place.settle()
    return taken, violation
