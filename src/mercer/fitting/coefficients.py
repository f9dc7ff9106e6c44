"""From the solutions of dual problems to coefficients: of the merged samples for prediction, of the caller's rows for
reading.

Twins of a sample count as their sum. Copies of a sample share its coefficient in proportion to their weights; a
coefficient at its bound goes exactly onto each copy's own bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Floats, Indices, freeze, take
from mercer.data.merging import Merged
from mercer.data.table import Table
from mercer.exact_parts import exact_parts, worth_exactness
from mercer.expansion import Expansion
from mercer.fitting.fit import Fit
from mercer.fitting.pair_tasks import Joined
from mercer.gram.linear_rows import weight_vectors


@dataclass(frozen=True, eq=False)
class Bounds:
    """The box of a sample of weight 1 in each task, factor·[−below, above]: numbers, or arrays that broadcast to
    (merged samples, tasks)."""

    above: Any
    below: Any
    factor: Any = 1.0


# Asked for only where samples were merged.
Box = Callable[[], Bounds]


def merged_table(merged: Merged, found: Joined) -> Table:
    """β of every merged sample (row) in every task (column)."""
    return Table.of_columns(found.coefficients, found.rows, found.row_ends, len(merged.y))


def own_table(table: Table, fit: Fit, box: Box, ridge: Callable[[], float] = lambda: 0.0) -> Table:
    """β of the caller's rows that have weight, in every task; d of a merged sample is at most `ridge`."""
    merged = fit.merged
    own = table.take(merged.member)
    if merged.unique:  # every bound is its own
        return own
    row, bounds = own.rows, box()
    sample, task = merged.member[row], own.indices
    above, below, factor = (_cells(part, sample, task) for part in (bounds.above, bounds.below, bounds.factor))
    bound = np.where(own.data > 0, above, below) * factor
    size, whole = np.abs(own.data), bound * merged.weight[sample]
    with np.errstate(invalid="ignore"):
        own_bound = np.sign(own.data) * (bound * merged.own_weight[row])
    shared = _split(table, own, fit, ridge(), bool(np.isinf(bound).all()))
    # Rounding takes no share past a bound that its sample is within.
    past = (size < whole) & (np.abs(shared) > np.abs(own_bound))
    return own.with_data(np.where((size == whole) | past, own_bound, shared))


def entries_of(table: Table, own: Table, member: Indices) -> Indices:
    """Where `table` has what the entries of the caller's rows are shares of."""
    place = member[own.rows] * table.n_columns + own.indices
    return np.searchsorted(table.rows * table.n_columns + table.indices, place)


def _cells(part: Any, sample: Indices, task: Indices) -> Any:
    """What broadcasting to (merged samples, tasks) would put at these places."""
    if np.ndim(part) == 0:
        return part
    if np.ndim(part) == 1 or part.shape[0] == 1:
        part = part.ravel()
        return part[task] if len(part) > 1 else part
    return part[sample, task] if part.shape[1] > 1 else part[sample, 0]


def _split(table: Table, own: Table, fit: Fit, ridge: float, unbounded: bool) -> Floats:
    """The coefficients of copies, which add up to that of their sample where no bound is near."""
    merged, row = fit.merged, own.rows
    shares = np.asarray(own.data * merged.share[row])
    if ridge == 0 and not unbounded:  # a small copy near its own bound must stay as near to it
        return shares
    entry, exact = entries_of(table, own, merged.member), None
    if ridge > 0:
        exact = worth_exactness(diagonal_of(fit), ridge / merged.share, merged.member)[table.rows]
    return exact_parts(table.data, shares, entry, exact)


def diagonal_of(fit: Fit) -> Floats:
    """k(x, x) of the merged samples."""
    assert fit.kernel is not None
    merged = fit.merged
    if fit.precomputed:
        return np.asarray(fit.X.diagonal()[merged.first], dtype=np.float64)
    return np.asarray(fit.kernel.diag(merged.X))


def expansion_of(fit: Fit, coefficients: Any, b: Floats, used: Indices | None = None) -> Expansion:
    """f on the merged samples `used` (None: all), each with a row of coefficients, dense or CSR."""
    assert fit.kernel is not None
    merged = fit.merged
    return Expansion(
        kernel=fit.kernel,
        vectors=None if fit.precomputed else merged.X if used is None else take(merged.X, used),
        coefficients=coefficients,
        b=b,
        columns=None if not fit.precomputed else merged.first if used is None else merged.first[used],
        n_columns=fit.n if fit.precomputed else 0,
    )


def table_expansion(fit: Fit, table: Table, used: Indices, b: Floats) -> Expansion:
    """f from the coefficients of all merged samples (rows) for every output (column)."""
    return expansion_of(fit, table.take(used).matrix(), b, used)


def conclude_support(model: Any, fit: Fit, order: Indices) -> None:
    """What every machine says about its support vectors, the caller's rows `order` of those that have weight."""
    rows = fit.merged.rows[order]
    model.support_ = freeze(rows.astype(np.int32))
    model.support_vectors_ = freeze(np.empty((0, 0)) if fit.precomputed else take(fit.X, rows))
    model.shape_fit_ = fit.X.shape if hasattr(fit.X, "shape") else (len(fit.X),)


def weight_vector(model: Any) -> Any:
    """w, one row per output, dense whatever the samples are; only for a linear kernel."""
    recipe = model.kernel_.recipe()
    if recipe is None or not recipe.linear:
        raise AttributeError(f"coef_ exists only for a linear kernel, and this one is {model.kernel_!r}")
    expansion: Expansion = model._expansion_
    return freeze(np.ascontiguousarray(recipe.scale * weight_vectors(expansion.vectors, expansion.coefficients).T))
