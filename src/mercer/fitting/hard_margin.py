"""What the hard margin adds to a classifier: no slack, so that it may not exist, and then the evidence.

One sample with both labels is found before any kernel is evaluated. Everything else is decided by the nearest points of
the two classes' hulls (mercer.solvers.dual.hulls).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mercer.arrays import Floats, Indices
from mercer.data.merging import Merged, clashes
from mercer.errors import NotSeparableError
from mercer.fitting.task import Solved
from mercer.problems.classification import rho_and_b
from mercer.solvers.dual.hulls import distance_of


def refuse_both_labels(merged: Merged, n_threads: int) -> None:
    """Raise if one sample carries two labels: no function separates it from itself."""
    groups = clashes(merged.X, merged.y, n_threads)
    if groups:
        rows = [merged.rows[np.isin(merged.member, group)] for group in groups]
        raise NotSeparableError(
            f"C=inf, the hard margin, does not exist: rows {rows[0][:6].tolist()} hold the same sample with different "
            f"labels{f', and so do {len(rows) - 1} other groups of rows' if len(rows) > 1 else ''}. Use a finite C, or "
            "clean the labels",
            rows=rows,
        )


def canonical(merged: Merged, solved: Sequence[Solved], largest: float) -> tuple[Floats, Floats]:
    """ρ and b of each task, or the error that says why there is no margin; `largest` is max k(x, x)."""
    for one in solved:
        found = distance_of(one.task.problem, largest, one.certificate)
        if found.meet or found.below <= 0.0:
            raise _no_margin(merged, one, (0.5 * math.sqrt(found.below), 0.5 * math.sqrt(found.above)), found.meet)
    rho = np.array([-one.certificate.dual for one in solved])  # ½‖w‖²: right to the gap, not to the violation
    b = np.array([rho_and_b(one.certificate.b)[1] for one in solved])
    return rho, b


def _no_margin(merged: Merged, one: Solved, bounds: tuple[float, float], meet: bool) -> NotSeparableError:
    beta, name = one.solution.beta, one.task.name
    sides = tuple(_combination(merged, one.task.rows, np.maximum(side * beta, 0.0)) for side in (1.0, -1.0))
    sizes = " and ".join(str(len(rows)) for rows, _ in sides)
    if meet:
        text = (
            f"C=inf, the hard margin, does not exist for {name}: no margin above {bounds[1]:.3g}, which is what "
            f"rounding leaves of none. Convex combinations of {sizes} samples of the two classes meet in feature space "
            "(`combinations` of this error). Use a finite C, or a richer kernel"
        )
    else:
        text = (
            f"C=inf, the hard margin: whether {name} can be separated is undecided ({one.solution.stop_reason}): the "
            f"margin lies between {bounds[0]:.3g} and {bounds[1]:.3g}. Raise max_iter or max_time, or use a finite C"
        )
    return NotSeparableError(text, "not separable" if meet else "undecided", bounds, sides)


def _combination(merged: Merged, rows: Indices, weight: Floats) -> tuple[Indices, Floats]:
    """The caller's first row of each merged sample that takes part, and its weight."""
    part = np.flatnonzero(weight)
    return merged.first[rows[part]], weight[part] / weight.sum()
