"""How much optimality is violated, and which variables a block step should change.

Inside a group, a feasible β is optimal exactly if no variable that may grow (`up`) has a larger gradient h than one
that may shrink (`low`); the largest such difference is the violation (Igel, sec. 4.3.1). A working set takes the worst
of both sides alternately (sec. 4.3.2, for blocks). Without groups there is no b, and h is compared with zero.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mercer.arrays import Flags, Floats, Indices


def violation(
    h: Floats,
    up: Flags,
    low: Flags,
    group: NDArray[np.int32],
    n_groups: int,
    error: Floats | float = 0.0,
) -> tuple[float, Floats, Floats]:
    """The largest violation, and per group the largest h that may grow and the smallest that may shrink.

    With an `error` of h, the worst that it can make of them.
    """
    upper, lower = (h, h) if isinstance(error, float) and error == 0.0 else (h + error, h - error)
    if n_groups == 1:
        top, bottom = float(upper[up].max(initial=-np.inf)), float(lower[low].min(initial=np.inf))
        return _not_negative(top - bottom), np.array([top]), np.array([bottom])
    if n_groups == 0:
        top = float(upper[up].max(initial=0.0))
        bottom = float(lower[low].min(initial=0.0))
        return _not_negative(float(np.maximum(top, -bottom))), np.array([top]), np.array([bottom])
    tops = np.full(n_groups, -np.inf)
    bottoms = np.full(n_groups, np.inf)
    for g in range(n_groups):
        member = group == g
        tops[g] = upper[up & member].max(initial=-np.inf)
        bottoms[g] = lower[low & member].min(initial=np.inf)
    return _not_negative(float(np.max(tops - bottoms))), tops, bottoms


def _not_negative(x: float) -> float:
    """x or 0, whichever is larger; a gradient that is not a number may violate by any amount."""
    return max(x, 0.0) if x == x else math.inf


def working_set(h: Floats, up: Flags, low: Flags, group: NDArray[np.int32], n_groups: int, size: int) -> Indices:
    """Positions of at most `size` variables that could take part in an improving step, worst first."""
    _, tops, bottoms = violation(h, up, low, group, n_groups)
    if n_groups == 0:
        gain = np.maximum(np.where(up, h, -np.inf), np.where(low, -h, -np.inf))
        return _top(gain, gain > 0, size)
    ranked = []
    for g in range(n_groups):
        member = group == g
        ranked.append(_top(h, up & member & (h > bottoms[g]), size))
        ranked.append(_top(-h, low & member & (h < tops[g]), size))
    table = np.full((max(len(r) for r in ranked), len(ranked)), -1, dtype=np.intp)
    for k, r in enumerate(ranked):
        table[: len(r), k] = r
    order = table[table >= 0]  # row by row: one from each list in turn
    _, first = np.unique(order, return_index=True)
    return order[np.sort(first)][:size]


def _top(score: Floats, eligible: Flags, size: int) -> Indices:
    """The `size` eligible positions of largest score, best first, ties by index."""
    candidates = np.flatnonzero(eligible)
    if len(candidates) > size:
        part = np.argpartition(-score[candidates], size - 1)[:size]
        candidates = np.sort(candidates[part])
    return candidates[np.argsort(-score[candidates], kind="stable")]
