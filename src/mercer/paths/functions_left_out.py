"""All n functions of a machine that leave one sample out, exactly: those of leave-one-out as functions of x."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Floats, Indices, megabytes, sums_by
from mercer.expansion import Expansion
from mercer.fitting.reports.coefficients import expansion_of
from mercer.paths.left_out import removals
from mercer.paths.settlement import settlements


@dataclass(frozen=True, eq=False)
class FunctionsLeftOut:
    """The functions, one output for each that differs from the others."""

    expansion: Expansion
    output: Indices  # the output without each of the caller's rows
    residuals: Floats  # y_i − f₋ᵢ(x_i)
    n_threads: int

    @classmethod
    def of(cls, machine: Any, X: Any, y: Floats, sample_weight: Any) -> FunctionsLeftOut:
        """From a trained machine of one output and its training samples."""
        fit, (one,) = settlements(machine, X, y, sample_weight)
        n, own = len(one.rows), np.zeros(fit.n)
        moved = int(np.isin(fit.merged.member, one.problem.row[np.flatnonzero(one.beta)]).sum())
        need = 8 * n * (moved + 1)
        if need > machine.cache_size * 1e6:
            raise MemoryError(
                f"leaving out each of {moved} support vectors takes {megabytes(need)}, but "
                f"cache_size={machine.cache_size:g} allows less; use a number of folds, or raise cache_size"
            )
        if len(fit.merged.rows) < fit.n:
            raise ValueError("cv='leave-one-out' needs positive weights; leave samples without weight out")
        output = np.zeros(fit.n, dtype=np.intp)
        coefficients, offsets = [sums_by(one.problem.row, one.beta, n)], [one.b]
        for found in removals(fit, one):
            beta, h, b, _ = found.solved()
            v = found.variables[0]
            own[found.row] = found.problem.p[v] - h[v] - found.problem.d[v] * beta[v] + b
            if found.moved:
                output[found.row] = len(offsets)
                coefficients.append(sums_by(one.problem.row, beta, n))
                offsets.append(b)
        table = np.column_stack(coefficients)
        # A regularised b is the weight of a constant feature.
        each_b = np.asarray(table.sum(axis=0) if fit.constant else offsets, dtype=np.float64)
        used = np.flatnonzero(table.any(axis=1))
        expansion = expansion_of(fit, np.ascontiguousarray(table[used]), each_b, used)
        return cls(expansion, output, y - own, fit.limits.n_threads)

    def __call__(self, X: Any) -> Floats:
        """A row for each x, a column for each sample left out."""
        return np.asarray(self.expansion(X, self.n_threads)[:, self.output])
