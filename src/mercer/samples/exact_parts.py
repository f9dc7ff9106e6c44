"""Parts of a number that add up to it exactly, so that copies of a sample weigh as much as the sample.

A total of 53 bits is a whole multiple of a small power of two. Parts that are rounded to multiples of the same power
are exact as well, and so is what they lack together, which one of them takes.
"""

from __future__ import annotations

import numpy as np

from mercer.samples.arrays import Flags, Floats, Indices, sums_by

# Up to _FEW multiples of _FINER·x, each at most x, add up without rounding in float64.
_FEW, _FINER = 2**13, 2.0**-40


def exact_parts(totals: Floats, parts: Floats, group: Indices, exact: Flags | None = None) -> Floats:
    """The parts, each moved by a few roundings of its total, so that those of group g add up to totals[g].

    This is impossible where all parts of a group are much larger than their total: their sum then stays as close to it
    as their own rounding allows. A part that is alone becomes the total. Groups that are not `exact` keep their parts.
    """
    n = len(totals)
    if len(parts) == 0:
        return parts
    order = np.lexsort((np.abs(parts), group))
    firsts = np.flatnonzero(np.diff(group[order], prepend=-1))
    present = group[order[firsts]]
    smallest, largest = order[firsts], order[np.append(firsts[1:], len(order)) - 1]
    of_zero = np.zeros(n)
    of_zero[present] = np.abs(parts[largest])
    grid = np.spacing(np.where(totals == 0, of_zero, np.abs(totals)))[group]
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.rint(parts / grid)
        rounded = np.where(np.abs(steps) < 2.0**53, steps * grid, parts)
        lacking = (totals - sums_by(group, rounded, n))[present]
    takes = np.where(np.abs(parts[largest]) <= np.abs(totals[present]), largest, smallest)
    rounded[takes] += np.where(np.isfinite(lacking), lacking, 0.0)
    if exact is not None:
        rounded = np.where(exact[group], rounded, parts)
    alone = smallest == largest
    rounded[smallest[alone]] = totals[present[alone]]
    return rounded


def lacking(totals: Floats, parts: Floats, group: Indices) -> Floats:
    """A bound on how far the parts of group g, which have the sign of totals[g], are from adding up to it.

    Zero where they add up exactly, unless parts are very many or very unequal: multiples of one power of two are added
    without rounding, first those of their total's last bits, then those of a much smaller one.
    """
    n, count = len(totals), np.bincount(group, minlength=len(totals))
    grid = 4 * np.spacing(np.abs(totals))[group]
    coarse = np.rint(parts / grid) * grid
    rest = parts - coarse
    fine = np.rint(rest / (_FINER * grid)) * (_FINER * grid)
    missing = np.abs(totals - sums_by(group, coarse, n) - sums_by(group, fine, n))
    left = sums_by(group, np.abs(rest - fine), n) + np.where(count <= _FEW, 0.0, sums_by(group, np.abs(fine), n))
    return np.asarray(missing * (1 + 1e-15) + left * (1 + 1e-9))


def worth_exactness(diagonal: Floats, ridge: Floats, group: Indices) -> Flags:
    """For each group whether a sum that is off by a rounding would do more harm than parts that are.

    The first moves f by k(x, x) times that, the second a copy's gradient by its own d = `ridge`.
    """
    largest = np.zeros(len(diagonal))
    np.maximum.at(largest, group, ridge)
    return np.asarray(np.abs(diagonal) >= largest)
