"""Coefficients from the solutions of dual problems: of merged samples for prediction, of the caller's rows for reports.

Twin variables of a sample are added up. Copies of a sample share its coefficient in proportion to their weights; a
coefficient at its bound puts each copy exactly at its bound. The certificate is widened so that it also holds for the
coefficients of the copies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.certificates.certificate import Certificate
from mercer.certificates.copies import CopyErrors, Variables, widen_for_copies, widen_joint_for_copies
from mercer.certificates.joint import row_residuals
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.task import Solutions
from mercer.places.expansion import Expansion
from mercer.places.host.rows import weight_vectors
from mercer.problems.dual_problem import DualProblem
from mercer.problems.multiclass import JointProblem
from mercer.samples.arrays import Floats, Indices, freeze, host, sums_by
from mercer.samples.coefficient_table import CoefficientTable
from mercer.samples.exact_parts import exact_parts, needs_exact_sum, sum_error_bounds
from mercer.samples.merging import Merged

if TYPE_CHECKING:
    from mercer.estimators.fitting.pipeline.machine import Machine


@dataclass(frozen=True, eq=False)
class Bounds:
    """Box factor·[−below, above] of a sample of weight 1 in each task.

    The parts are numbers, or arrays that broadcast to (merged samples, tasks).
    """

    above: Any
    below: Any
    factor: Any = 1.0


# Function that returns the bounds of all tasks; it is called only if samples were merged.
Box = Callable[[], Bounds]


def merged_table(merged: Merged, solved: Solutions[DualProblem]) -> CoefficientTable:
    """Return β of every merged sample (row) in every task (column)."""
    columns = solved.columns
    return CoefficientTable.of_columns(columns.coefficients, columns.rows, columns.row_ends, len(merged.y))


def caller_table(
    table: CoefficientTable, fit: Fit, box: Box, ridge: Callable[[], float] = lambda: 0.0
) -> CoefficientTable:
    """Return β of the caller's rows with weight in every task; d of a merged sample is at most `ridge`."""
    merged = fit.merged
    by_row = table.take(merged.member)
    if merged.unique:  # no copies, so that nothing has to be shared
        return by_row
    row, bounds = by_row.rows, box()
    sample, task = merged.member[row], by_row.indices
    bound = _entries_at(bounds.above, sample, task)
    if bounds.below is not bounds.above:
        bound = np.where(by_row.data > 0, bound, _entries_at(bounds.below, sample, task))
    bound = bound * _entries_at(bounds.factor, sample, task)
    size, sample_bound = np.abs(by_row.data), bound * merged.weight[sample]
    with np.errstate(invalid="ignore"):
        row_bound = np.sign(by_row.data) * (bound * merged.input_weight[row])
    shared_table = _split_coefficients(table, by_row, fit, ridge(), bool(np.isinf(bound).all()))
    # A copy must not leave its bound by rounding if its sample is within the bound.
    beyond_bound = (size < sample_bound) & (np.abs(shared_table) > np.abs(row_bound))
    return by_row.with_data(np.where((size == sample_bound) | beyond_bound, row_bound, shared_table))


def _entries_at(part: Any, sample: Indices, task: Indices) -> Any:
    """Return the entries at these indices of `part` broadcast to (merged samples, tasks)."""
    if getattr(part, "ndim", 0) == 0:
        return part
    if part.ndim == 1 or part.shape[0] == 1:
        part = part.ravel()
        return part[task] if len(part) > 1 else part
    return part[sample, task] if part.shape[1] > 1 else part[sample, 0]


def _split_coefficients(
    table: CoefficientTable, by_row: CoefficientTable, fit: Fit, ridge: float, unbounded: bool
) -> Floats:
    """Return the coefficients of copies; their sum is that of their sample, up to rounding if only bounds limit it."""
    merged, row = fit.merged, by_row.rows
    shares = np.asarray(by_row.data * merged.share[row])
    if ridge == 0 and not unbounded:  # a copy must stay as close to its bound as its sample is
        return shares
    table_entry, exact = by_row.source, None
    assert table_entry is not None
    if ridge > 0:
        exact = needs_exact_sum(fit.diagonal, ridge / merged.share, merged.member)[table.rows]
    return exact_parts(table.data, shares, table_entry, exact)


def expansion_of(fit: Fit, coefficients: Any, b: Floats, used: Indices | None = None) -> Expansion:
    """Return f as an expansion in the merged samples `used` (None: all), with a row of coefficients for each."""
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


def table_expansion(fit: Fit, table: CoefficientTable, used: Indices, b: Floats) -> Expansion:
    """Return f as an expansion, from the coefficients of all merged samples (rows) for every output (column)."""
    return expansion_of(fit, table.take(used).matrix(), b, used)


def conclude_support(model: Machine, fit: Fit, order: Indices) -> None:
    """Set the attributes of the support vectors, which are the caller's rows with weight at the indices `order`."""
    rows = fit.merged.rows[order]
    model.support_ = rows.astype(np.int32)
    model.support_vectors_ = freeze(np.empty((0, 0)) if fit.precomputed else host(fit.X, rows))
    model.shape_fit_ = fit.X.shape if hasattr(fit.X, "shape") else (len(fit.X),)


def weight_vector(model: Machine) -> Any:
    """Return w with one row per output, always dense; raise AttributeError unless the kernel is linear."""
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
    tables: tuple[CoefficientTable, CoefficientTable],
    scales: Floats | None = None,
) -> None:
    """Widen `certificate_` so that it holds for the coefficients of the caller's rows too, and update `converged_`.

    `tables` hold the coefficients of the merged samples and of the caller's rows. `scales`, one factor per task on the
    solutions' coefficients, are already applied to the tables.
    """
    if fit.merged.unique:
        return
    errors = _copy_errors(fit, solved, *tables)
    if not (errors.sums.any() or errors.curved.any()):
        return
    columns = solved.columns
    starts = columns.variables[:-1]
    factor: Any = 1.0 if scales is None else np.repeat(scales, np.diff(columns.variables))
    variables = Variables(
        starts, solved.p, factor * columns.lower, factor * columns.upper, solved.d, factor * columns.beta,
        fit.gram().proof.entry_bounds[columns.samples],
    )  # fmt: skip
    _conclude_certificate(machine, fit, solved, widen_for_copies(machine.certificate_, errors, variables))


def allow_for_joint_copies(
    machine: Machine,
    fit: Fit,
    solved: Solutions[JointProblem],
    tables: tuple[CoefficientTable, CoefficientTable],
    C: Floats,
) -> None:
    """Widen the certificate of a joint machine so that it holds for the caller's rows too.

    `tables` hold the coefficients of the merged samples and of the caller's rows, with a column for each class. `C` is
    the penalty of each merged sample, for a weight of 1.
    """
    if fit.merged.unique:
        return
    (table, by_row), n_classes = tables, tables[0].n_columns
    assert by_row.source is not None
    sum_errors = sum_error_bounds(table.data, by_row.data, by_row.source)
    problem, beta, merged = solved[0].task.problem, solved[0].solution.beta, fit.merged
    r = np.sqrt(fit.gram().proof.entry_bounds ** 2 * (1 + 1e-15) + problem.shift) * (1 + 1e-15)
    sums, lengths = (sums_by(table.indices, values, n_classes) for values in (sum_errors, sum_errors * r[table.rows]))
    bounds = C[merged.member] * merged.input_weight
    residuals = row_residuals(by_row.toarray(), problem.y[merged.member], bounds, problem.shared)
    errors = CopyErrors(sums, lengths, np.zeros(n_classes))
    certificate = widen_joint_for_copies(machine.certificate_, errors, problem, beta, r, residuals)
    _conclude_certificate(machine, fit, solved, certificate)


def _conclude_certificate(machine: Machine, fit: Fit, solved: Solutions[Any], certificate: Certificate) -> None:
    """Set `certificate_`, and `converged_` to False if it no longer meets the requested accuracy."""
    machine.certificate_ = certificate
    stop = fit.limits.stop
    meets_tol = all(
        math.isfinite(part.gap) and replace(stop, tol=stop.tol * result.task.unit).met(part)
        for part, result in zip(certificate.parts or (certificate,), solved, strict=True)
    )
    if machine.converged_ and not meets_tol:
        machine.stop_reason_, machine.converged_, machine.fit_status_ = "rounding floor", False, 1


def _copy_errors(
    fit: Fit, solved: Solutions[DualProblem], table: CoefficientTable, by_row: CoefficientTable
) -> CopyErrors:
    """Return bounds on the errors of the coefficients of copies, compared with those of their samples."""
    merged, n_tasks, entry = fit.merged, table.n_columns, by_row.source
    assert entry is not None
    sum_errors = sum_error_bounds(table.data, by_row.data, entry)
    ridge_sums = np.zeros(n_tasks)
    if not sum_errors.any() and not solved.largest_ridge:
        return CopyErrors(ridge_sums, ridge_sums, ridge_sums)
    if solved.largest_ridge:  # d is in inverse proportion to the weight
        unit_ridge = np.maximum.reduceat(
            solved.d * merged.weight[solved.columns.samples], solved.columns.variables[:-1]
        )
        change = np.abs(by_row.data - table.data[entry] * merged.share[by_row.rows]) / merged.input_weight[by_row.rows]
        np.maximum.at(ridge_sums, by_row.indices, unit_ridge[by_row.indices] * change)
    r = fit.gram().proof.entry_bounds[table.rows]
    return CopyErrors(
        sums_by(table.indices, sum_errors, n_tasks), sums_by(table.indices, sum_errors * r, n_tasks), ridge_sums
    )
