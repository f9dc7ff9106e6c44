"""From the solutions of dual problems to coefficients: of the merged samples for prediction, of the caller's rows for
reading.

Twins of a sample count as their sum. Copies of a sample share its coefficient in proportion to their weights; a
coefficient at its bound goes exactly onto each copy's own bound. A certificate claims no more than is true of the
coefficients of copies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.certificates.certificate import Certificate
from mercer.certificates.copies import Lacking, Variables, allowing_for_copies, joint_allowing_for_copies
from mercer.certificates.joint import published_residuals
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.task import Solutions
from mercer.places.expansion import Expansion
from mercer.places.host.rows import weight_vectors
from mercer.problems.dual_problem import DualProblem
from mercer.problems.multiclass import JointProblem
from mercer.samples.arrays import Floats, Indices, freeze, host, sums_by
from mercer.samples.coefficient_table import Table
from mercer.samples.exact_parts import exact_parts, lacking, worth_exactness
from mercer.samples.merging import Merged

if TYPE_CHECKING:
    from mercer.estimators.fitting.pipeline.machine import Machine


@dataclass(frozen=True, eq=False)
class Bounds:
    """The box of a sample of weight 1 in each task, factor·[−below, above]: numbers, or arrays that broadcast to
    (merged samples, tasks)."""

    above: Any
    below: Any
    factor: Any = 1.0


# Asked for only where samples were merged.
Box = Callable[[], Bounds]


def merged_table(merged: Merged, solved: Solutions[DualProblem]) -> Table:
    """β of every merged sample (row) in every task (column)."""
    columns = solved.columns
    return Table.of_columns(columns.coefficients, columns.rows, columns.row_ends, len(merged.y))


def own_table(table: Table, fit: Fit, box: Box, ridge: Callable[[], float] = lambda: 0.0) -> Table:
    """β of the caller's rows that have weight in every task; d of a merged sample is at most `ridge`."""
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


def _entries_of(table: Table, own: Table, member: Indices) -> Indices:
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
    entry, exact = _entries_of(table, own, merged.member), None
    if ridge > 0:
        exact = worth_exactness(fit.diagonal, ridge / merged.share, merged.member)[table.rows]
    return exact_parts(table.data, shares, entry, exact)


def expansion_of(fit: Fit, coefficients: Any, b: Floats, used: Indices | None = None) -> Expansion:
    """f on the merged samples `used` (None: all), each with a row of coefficients, dense or CSR."""
    assert fit.kernel is not None
    merged = fit.merged
    return Expansion(
        kernel=fit.kernel,
        vectors=None if fit.precomputed else host(merged.X) if used is None else host(merged.samples, used),
        coefficients=coefficients,
        b=b,
        columns=None if not fit.precomputed else merged.first if used is None else merged.first[used],
        n_columns=fit.n if fit.precomputed else 0,
    )


def table_expansion(fit: Fit, table: Table, used: Indices, b: Floats) -> Expansion:
    """f from the coefficients of all merged samples (rows) for every output (column)."""
    return expansion_of(fit, table.take(used).matrix(), b, used)


def conclude_support(model: Machine, fit: Fit, order: Indices) -> None:
    """What every machine says about its support vectors, the caller's rows `order` of those that have weight."""
    rows = fit.merged.rows[order]
    model.support_ = freeze(rows.astype(np.int32))
    model.support_vectors_ = freeze(np.empty((0, 0)) if fit.precomputed else host(fit.X, rows))
    model.shape_fit_ = fit.X.shape if hasattr(fit.X, "shape") else (len(fit.X),)


def weight_vector(model: Machine) -> Any:
    """w, one row per output, dense whatever the samples are; only for a linear kernel."""
    check_is_fitted(model)
    recipe = model.kernel_.recipe()
    if recipe is None or not recipe.linear:
        raise AttributeError(f"coef_ exists only for a linear kernel, and this one is {model.kernel_!r}")
    expansion: Expansion = model._expansion_
    return freeze(np.ascontiguousarray(recipe.scale * weight_vectors(expansion.vectors, expansion.coefficients).T))


def allow_for_copies(
    machine: Machine,
    fit: Fit,
    solved: Solutions[DualProblem],
    tables: tuple[Table, Table],
    scales: Floats | None = None,
) -> None:
    """Let `certificate_` hold for the coefficients of the caller's rows too, and `converged_` follow it.

    `tables` are those of the merged samples and of the caller's rows; `scales` are factors on the solutions'
    coefficients that they have already, one for each task.
    """
    if fit.merged.unique:
        return
    off = _lacking(fit, solved, *tables)
    if not (off.sums.any() or off.curved.any()):
        return
    columns = solved.columns
    starts = columns.variables[:-1]
    factor: Any = 1.0 if scales is None else np.repeat(scales, np.diff(columns.variables))
    at = Variables(
        starts, solved.p, factor * columns.lower, factor * columns.upper, solved.d, factor * columns.beta,
        fit.gram().proof.reach[columns.samples],
    )  # fmt: skip
    _conclude_certificate(machine, fit, solved, allowing_for_copies(machine.certificate_, off, at))


def allow_for_joint_copies(
    machine: Machine, fit: Fit, solved: Solutions[JointProblem], tables: tuple[Table, Table], C: Floats
) -> None:
    """Let the certificate of a joint machine hold for the caller's rows too; its tables have a column for each class.

    `C` is that of each merged sample, for a weight of 1.
    """
    if fit.merged.unique:
        return
    table, own = tables
    apart, n_classes = lacking(table.data, own.data, _entries_of(table, own, fit.merged.member)), table.n_columns
    problem, beta, merged = solved[0].task.problem, solved[0].solution.beta, fit.merged
    r = np.sqrt(fit.gram().proof.reach ** 2 * (1 + 1e-15) + problem.shift) * (1 + 1e-15)
    sums, lengths = (sums_by(table.indices, values, n_classes) for values in (apart, apart * r[table.rows]))
    bounds = C[merged.member] * merged.own_weight
    residuals = published_residuals(own.toarray(), problem.y[merged.member], bounds, problem.shared)
    off = Lacking(sums, lengths, np.zeros(n_classes))
    found = joint_allowing_for_copies(machine.certificate_, off, problem, beta, r, residuals)
    _conclude_certificate(machine, fit, solved, found)


def _conclude_certificate(machine: Machine, fit: Fit, solved: Solutions[Any], found: Certificate) -> None:
    """A machine whose certificate no longer meets what was asked for has not converged."""
    machine.certificate_ = found
    stop = fit.limits.stop
    met = all(
        math.isfinite(part.gap) and replace(stop, tol=stop.tol * one.task.unit).met(part)
        for part, one in zip(found.parts or (found,), solved, strict=True)
    )
    if machine.converged_ and not met:
        machine.stop_reason_, machine.converged_, machine.fit_status_ = "rounding floor", False, 1


def _lacking(fit: Fit, solved: Solutions[DualProblem], table: Table, own: Table) -> Lacking:
    """What the coefficients of copies lack of those of their samples."""
    merged, n_tasks = fit.merged, table.n_columns
    entry = _entries_of(table, own, merged.member)
    apart = lacking(table.data, own.data, entry)
    curved = np.zeros(n_tasks)
    if not apart.any() and not solved.largest_ridge:
        return Lacking(curved, curved, curved)
    if solved.largest_ridge:  # d is in inverse proportion to the weight
        of_one = np.maximum.reduceat(solved.d * merged.weight[solved.columns.samples], solved.columns.variables[:-1])
        moved = np.abs(own.data - table.data[entry] * merged.share[own.rows]) / merged.own_weight[own.rows]
        np.maximum.at(curved, own.indices, of_one[own.indices] * moved)
    r = fit.gram().proof.reach[table.rows]
    return Lacking(sums_by(table.indices, apart, n_tasks), sums_by(table.indices, apart * r, n_tasks), curved)
