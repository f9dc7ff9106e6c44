"""Splitting of numbers into parts that add up to them exactly, so that copies of a sample count as much as the sample.

A float64 total is an integer multiple of a power of two. Parts that are rounded to multiples of the same power add up
without rounding, and so the difference from the total is exact too; it is added to one of the parts.
"""

from __future__ import annotations

import numpy as np

from mercer import _core
from mercer.samples.arrays import Flags, Floats, Indices, sums_by


def exact_parts(totals: Floats, parts: Floats, group: Indices, exact: Flags | None = None) -> Floats:
    """Return the parts, each changed by a few roundings of its total, such that those of group g add up to totals[g].

    This is impossible if all parts of a group are much larger than their total: then the sum is as close to the total
    as the precision of the parts allows. A single part becomes the total. Groups that are not `exact` keep their parts.
    """
    n = len(totals)
    if len(parts) == 0:
        return parts
    order = np.lexsort((np.abs(parts), group))
    firsts = np.flatnonzero(np.diff(group[order], prepend=-1))
    present_groups = group[order[firsts]]
    smallest, largest = order[firsts], order[np.append(firsts[1:], len(order)) - 1]
    sizes = np.zeros(n)  # used in place of totals that are 0
    sizes[present_groups] = np.abs(parts[largest])
    grid = np.spacing(np.where(totals == 0, sizes, np.abs(totals)))[group]
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.rint(parts / grid)
        rounded_parts = np.where(np.abs(steps) < 2.0**53, steps * grid, parts)
        differences = (totals - sums_by(group, rounded_parts, n))[present_groups]
    corrected_part = np.where(np.abs(parts[largest]) <= np.abs(totals[present_groups]), largest, smallest)
    rounded_parts[corrected_part] += np.where(np.isfinite(differences), differences, 0.0)
    if exact is not None:
        rounded_parts = np.where(exact[group], rounded_parts, parts)
    is_single = smallest == largest
    rounded_parts[smallest[is_single]] = totals[present_groups[is_single]]
    return rounded_parts


def sum_error_bounds(totals: Floats, parts: Floats, group: Indices) -> Floats:
    """Return bounds on |totals[g] − sum of the parts of group g|, for parts that have the sign of their total.

    The bound is 0 if the parts add up exactly, unless they are very many or very unequal.
    """
    return _core.sum_error_bounds(totals, np.ascontiguousarray(parts), group)


def needs_exact_sum(diagonal: Floats, ridge: Floats, group: Indices) -> Flags:
    """Return for each group whether a rounding error in its sum would do more harm than one in its parts.

    An error in the sum changes f by k(x, x) times the error, an error in a part changes the gradient of that copy by
    d = `ridge` times the error.
    """
    largest = np.zeros(len(diagonal))
    np.maximum.at(largest, group, ridge)
    return np.asarray(np.abs(diagonal) >= largest)
