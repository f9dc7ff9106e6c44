"""Which training samples are free and which are bounded in each of a machine's problems, and what that leaves to b."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mercer.arrays import Flags, Floats, freeze
from mercer.data.merging import Merged
from mercer.data.table import Table
from mercer.fitting.pair_tasks import Joined
from mercer.fitting.task import Solved

FREE: Final = 1
BOUNDED: Final = 2
_BOUNDED_TWIN = 4  # the marks of twins are added, and two free ones must not look like a bounded one


def dual_status(merged: Merged, solved: Sequence[Solved], n: int) -> Any:
    """FREE or BOUNDED for the caller's rows that take part in a problem (column), of n rows."""
    found = Joined(solved)
    used = np.flatnonzero(found.beta)
    sample = found.samples[used]
    column = np.repeat(np.arange(len(solved)), np.diff(found.variables))[used]
    marks = np.where(_free(found)[used], 1, _BOUNDED_TWIN)
    by_sample = Table.of(marks, sample, column, (len(merged.y) + 1, len(solved)))
    # Twins in use count once, as free if one of them is. Model files hold CSR matrices of floating-point numbers.
    by_sample = by_sample.with_data(np.where(by_sample.data % _BOUNDED_TWIN == 0, BOUNDED, FREE).astype(np.float32))
    place = np.full(n, len(merged.y))  # rows of weight zero are an empty last one
    place[merged.rows] = merged.member
    return freeze(by_sample.take(place).csr())


def free_and_bounded(machine: Any) -> tuple[int, int] | None:
    """How many support vectors of a fitted machine are free in some problem, and how many are bounded in all.

    None where the fit did not tell: of a joint machine, or of a model that another program trained.
    """
    status: Any = getattr(machine, "_standing_", None)
    if status is None:
        return None
    free = int(((status[machine.support_] == FREE).sum(axis=1) > 0).sum())
    return free, len(machine.support_) - free


def n_bounded(machine: Any, k: int) -> int:
    """How many samples are bounded in problem k of a fitted machine."""
    return int((machine._standing_[:, [k]] == BOUNDED).sum())


def bias_intervals(solved: Sequence[Solved]) -> Floats:
    """The interval of optimal b of each problem in which no variable is free, NaN for the others."""
    ends = np.full((len(solved), 2), np.nan)
    found = Joined(solved)
    starts, h = found.variables[:-1], found.gradient
    told = (np.add.reduceat(_free(found), starts, dtype=np.intp) == 0) & (found.equalities == 1)
    tops = np.maximum.reduceat(np.where(found.beta < found.upper, h, -np.inf), starts)
    bottoms = np.minimum.reduceat(np.where(found.beta > found.lower, h, np.inf), starts)
    ends[told] = np.column_stack([tops, bottoms])[told]
    return np.asarray(freeze(ends))


def _free(found: Joined) -> Flags:
    """Which variables of all problems, one after another, are strictly between their bounds."""
    return np.asarray((found.beta > found.lower) & (found.beta < found.upper))
