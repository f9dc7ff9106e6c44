"""What a machine claims where rows were given several times: no more than is true of the coefficients of copies."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import Floats, sums_by
from mercer.certificates.copies import Lacking, Variables, allowing_for_copies
from mercer.certificates.reach import roots
from mercer.data.table import Table
from mercer.exact_parts import lacking
from mercer.fitting.coefficients import entries_of
from mercer.fitting.fit import Fit
from mercer.fitting.task import Solutions


def allow_for_copies(
    machine: Any,
    fit: Fit,
    solved: Solutions,
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
    starts = solved.variables[:-1]
    factor: Any = 1.0 if scales is None else np.repeat(scales, np.diff(solved.variables))
    at = Variables(
        starts, solved.p, factor * solved.lower, factor * solved.upper, solved.d, factor * solved.beta,
        roots(fit.gram())[solved.samples],
    )  # fmt: skip
    machine.certificate_ = allowing_for_copies(machine.certificate_, off, at)
    parts = machine.certificate_.parts or (machine.certificate_,)
    stop = fit.limits.stop
    met = all(
        math.isfinite(part.gap) and replace(stop, tol=stop.tol * one.task.unit).met(part)
        for part, one in zip(parts, solved, strict=True)
    )
    if machine.converged_ and not met:
        machine.stop_reason_, machine.converged_, machine.fit_status_ = "rounding floor", False, 1


def _lacking(fit: Fit, solved: Solutions, table: Table, own: Table) -> Lacking:
    """What the coefficients of copies lack of those of their samples."""
    merged, n_tasks = fit.merged, table.n_columns
    entry = entries_of(table, own, merged.member)
    apart = lacking(table.data, own.data, entry)
    curved = np.zeros(n_tasks)
    if not apart.any() and not solved.largest_ridge:
        return Lacking(curved, curved, curved)
    if solved.largest_ridge:  # d is in inverse proportion to the weight
        of_one = np.maximum.reduceat(solved.d * merged.weight[solved.samples], solved.variables[:-1])
        moved = np.abs(own.data - table.data[entry] * merged.share[own.rows]) / merged.own_weight[own.rows]
        np.maximum.at(curved, own.indices, of_one[own.indices] * moved)
    r = roots(fit.gram())[table.rows]
    return Lacking(sums_by(table.indices, apart, n_tasks), sums_by(table.indices, apart * r, n_tasks), curved)
