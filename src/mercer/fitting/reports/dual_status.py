"""Which training samples are free and which are bounded in each of a machine's problems, and what that leaves to b."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from mercer import _core
from mercer.arrays import Flags, Floats, freeze, is_sparse
from mercer.data.merging import Merged
from mercer.data.table import Table
from mercer.fitting.pipeline.task import Solutions

if TYPE_CHECKING:
    from mercer.fitting.pipeline.machine import Machine

# As the core marks them.
FREE: Final = 1
BOUNDED: Final = 2


def dual_status(merged: Merged, solved: Solutions, n: int) -> Table:
    """FREE or BOUNDED for the caller's rows that take part in a problem (column), of n rows; of twins, FREE counts."""
    place = merged.member
    if len(place) < n:
        place = np.full(n, len(merged.y))  # rows of weight zero are an empty last one
        place[merged.rows] = merged.member
    where = solved.samples, solved.variables, len(merged.y) + 1, place
    return Table(*_core.status_by_rows(solved.beta, solved.lower, solved.upper, *where), len(solved))


def free_vectors(machine: Machine) -> Flags | None:
    """Which support vectors of a fitted machine are free in some problem.

    None where the fit did not tell: of a joint machine, or of a model that another program trained.
    """
    status: Any = getattr(machine, "_standing_", None)
    if status is None:
        return None
    return np.asarray((status[machine.support_] == FREE).sum(axis=1) > 0).ravel()


def free_and_bounded(machine: Machine) -> tuple[int, int] | None:
    """How many support vectors are free in some problem, and how many are bounded in all; None as above."""
    free = free_vectors(machine)
    return None if free is None else (int(free.sum()), int((~free).sum()))


def status_in(machine: Machine, k: int) -> NDArray[np.int8]:
    """0, FREE or BOUNDED for every training sample in problem k of a fitted machine."""
    status = machine._standing_[:, [k]]
    return np.asarray(status.toarray() if is_sparse(status) else status).ravel().astype(np.int8)


def n_bounded(machine: Machine, k: int) -> int:
    """How many samples are bounded in problem k of a fitted machine."""
    return int((status_in(machine, k) == BOUNDED).sum())


def bias_intervals(solved: Solutions, status: Table) -> Floats:
    """The interval of optimal b of each problem in which no variable is free, NaN for the others."""
    ends, told = np.full((len(solved), 2), np.nan), np.ones(len(solved), dtype=bool)
    told[status.indices[status.data == FREE]] = False
    if told.any():
        told &= solved.equalities == 1
    if not told.any():
        return np.asarray(freeze(ends))
    starts, h = solved.variables[:-1], solved.gradient
    above, below = solved.beta > solved.lower, solved.beta < solved.upper
    tops = np.maximum.reduceat(np.where(below, h, -np.inf), starts)
    bottoms = np.minimum.reduceat(np.where(above, h, np.inf), starts)
    ends[told] = np.column_stack([tops, bottoms])[told]
    return np.asarray(freeze(ends))
