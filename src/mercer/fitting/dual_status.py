"""Which training samples are free and which are bounded in each of a machine's problems, and what that leaves to b."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mercer.arrays import Flags, Floats, freeze
from mercer.data.merging import Merged
from mercer.data.table import Table
from mercer.fitting.pair_tasks import Joined

FREE: Final = 1
BOUNDED: Final = 2
_BOUNDED_TWIN = 4  # the marks of twins are added, and two free ones must not look like a bounded one


def dual_status(merged: Merged, found: Joined, n: int) -> Any:
    """FREE or BOUNDED for the caller's rows that take part in a problem (column), of n rows."""
    used = np.flatnonzero(found.beta)
    marks = np.where(found.free[used], 1, _BOUNDED_TWIN)
    column = found.variable_tasks[used]
    by_sample = Table.of(marks, found.samples[used], column, (len(merged.y) + 1, len(found)))
    # Twins in use count once, as free if one of them is. Model files hold CSR matrices of floating-point numbers.
    by_sample = by_sample.with_data(np.where(by_sample.data % _BOUNDED_TWIN == 0, BOUNDED, FREE).astype(np.float32))
    place = np.full(n, len(merged.y))  # rows of weight zero are an empty last one
    place[merged.rows] = merged.member
    return freeze(by_sample.take(place).csr())


def free_vectors(machine: Any) -> Flags | None:
    """Which support vectors of a fitted machine are free in some problem.

    None where the fit did not tell: of a joint machine, or of a model that another program trained.
    """
    status: Any = getattr(machine, "_standing_", None)
    if status is None:
        return None
    return np.asarray((status[machine.support_] == FREE).sum(axis=1) > 0).ravel()


def free_and_bounded(machine: Any) -> tuple[int, int] | None:
    """How many support vectors are free in some problem, and how many are bounded in all; None as above."""
    free = free_vectors(machine)
    return None if free is None else (int(free.sum()), int((~free).sum()))


def n_bounded(machine: Any, k: int) -> int:
    """How many samples are bounded in problem k of a fitted machine."""
    return int((machine._standing_[:, [k]] == BOUNDED).sum())


def bias_intervals(found: Joined) -> Floats:
    """The interval of optimal b of each problem in which no variable is free, NaN for the others."""
    ends = np.full((len(found), 2), np.nan)
    starts = found.variables[:-1]
    told = (np.add.reduceat(found.free, starts, dtype=np.intp) == 0) & (found.equalities == 1)
    if not told.any():
        return np.asarray(freeze(ends))
    h = found.gradient
    tops = np.maximum.reduceat(np.where(found.beta < found.upper, h, -np.inf), starts)
    bottoms = np.minimum.reduceat(np.where(found.beta > found.lower, h, np.inf), starts)
    ends[told] = np.column_stack([tops, bottoms])[told]
    return np.asarray(freeze(ends))
