"""From the solutions of dual problems to coefficients: of the merged samples for prediction, of the caller's rows for
reading.

Twins of a sample count as their sum. Copies of a sample share its coefficient in proportion to their weights; a
coefficient at its bound goes exactly onto each copy's own bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.arrays import Floats, Indices, freeze, is_sparse, take
from mercer.data.merging import Merged
from mercer.expansion import Expansion
from mercer.fitting.machine import Solved
from mercer.kernels import Kernel


@dataclass(frozen=True, eq=False)
class Bounds:
    """The box of a sample of weight 1 in each task, factor·[−below, above]: numbers, or arrays that broadcast to
    (merged samples, tasks)."""

    above: Any
    below: Any
    factor: Any = 1.0


def merged_table(merged: Merged, solved: list[Solved]) -> sp.csr_array:
    """β of every merged sample (row) in every task (column)."""
    beta = np.concatenate([s.task.problem.row_coefficients(s.solution.beta, len(s.task.rows)) for s in solved])
    used = np.flatnonzero(beta)
    rows = np.concatenate([s.task.rows for s in solved])[used]
    task = np.repeat(np.arange(len(solved)), [len(s.task.rows) for s in solved])[used]
    return sp.csr_array((beta[used], (rows, task)), shape=(len(merged.y), len(solved)))


def own_table(table: sp.csr_array, merged: Merged, bounds: Bounds) -> sp.csr_array:
    """The same for the caller's rows that have weight."""
    own = table[merged.member]
    row = np.repeat(np.arange(own.shape[0]), np.diff(own.indptr))
    sample, task = merged.member[row], own.indices
    above, below, factor = (
        np.broadcast_to(part, table.shape)[sample, task] for part in (bounds.above, bounds.below, bounds.factor)
    )
    bound = np.where(own.data > 0, above, below) * factor
    bounded = np.abs(own.data) == bound * merged.weight[sample]
    with np.errstate(invalid="ignore"):
        own_bound = np.sign(own.data) * (bound * merged.own_weight[row])
    own.data = np.where(bounded, own_bound, own.data * merged.share[row])
    return own


def expansion_of(kernel: Kernel, merged: Merged, table: sp.csr_array, used: Indices, b: Floats, X: Any) -> Expansion:
    """f on the merged samples `used`; X is what the caller trained on."""
    precomputed = kernel.accepts == "gram"
    return Expansion(
        kernel=kernel,
        vectors=None if precomputed else take(merged.X, used),
        coefficients=table[used].toarray() if len(b) == 1 else table[used],
        b=b,
        columns=merged.rows[used] if precomputed else None,
        n_columns=len(X) if precomputed else 0,
    )


def conclude_support(model: Any, merged: Merged, own: sp.csr_array, order: Indices, X: Any) -> None:
    """What every machine says about its support vectors, the caller's rows `order` of those that have weight."""
    precomputed = model.kernel_.accepts == "gram"
    rows = merged.rows[order]
    model.support_ = freeze(rows.astype(np.int32))
    model.support_vectors_ = freeze(np.empty((0, 0)) if precomputed else take(X, rows))
    model.fit_status_ = int(not model.converged_)
    model.shape_fit_ = X.shape if hasattr(X, "shape") else (len(X),)


def conclude_outputs(model: Any, merged: Merged, solved: list[Solved], bounds: Bounds, b: Floats, X: Any) -> None:
    """The fitted attributes of a machine without classes: one output per task, a row of `dual_coef_` each."""
    table = merged_table(merged, solved)
    model.intercept_ = freeze(b)
    model._expansion_ = expansion_of(model.kernel_, merged, table, np.flatnonzero(np.diff(table.indptr)), b, X)
    own = own_table(table, merged, bounds)
    order = np.flatnonzero(np.diff(own.indptr))
    conclude_support(model, merged, own, order, X)
    model.n_support_ = freeze(np.array([len(order)], dtype=np.int32))
    model.dual_coef_ = freeze(np.ascontiguousarray(own[order].toarray().T))


def bias_of(solved: Solved, bias: Any) -> float:
    """b of one task: its equality's multiplier; without one zero, or Σβ where it is a feature with the constant 1."""
    if solved.certificate.b:
        return solved.certificate.b[0]
    return float(solved.solution.beta.sum()) if bias == "regularized" else 0.0


def weight_vector(model: Any) -> Any:
    """w, one row per output, dense whatever the samples are; only for a linear kernel."""
    recipe = model.kernel_.recipe()
    if recipe is None or not recipe.linear:
        raise AttributeError(f"coef_ exists only for a linear kernel, and this one is {model.kernel_!r}")
    expansion: Expansion = model._expansion_
    w = expansion.coefficients.T @ expansion.vectors
    return freeze((w.toarray() if is_sparse(w) else np.asarray(w)) * recipe.scale)
