"""Decision values of samples left out, from the solution on all of them.

A fold's problem is the whole one with the prices of its held-out samples at zero. Its start is the whole solution
without their coefficients, which is nearly right, so that only a few coefficients move; u = Kβ follows by the rows of
those that did, and is the held-out samples' f but for b. Pairs of classes are many small problems: those of all
folds are solved in one call. A fold's solution has the tolerance of the machine, and no certificate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer import _core
from mercer.arrays import Floats, Indices, is_sparse, sums_by
from mercer.calibration.telling import FoldLines
from mercer.data.labels import plane_coefficients
from mercer.fitting.pipeline.fit import Fit
from mercer.fitting.pipeline.pair_tasks import PairTasks
from mercer.fitting.pipeline.side_by_side import map_side_by_side
from mercer.problems.dual_problem import DualProblem
from mercer.selection.folds import shares
from mercer.solution import Stop
from mercer.solvers.block_steps import INNER_STEPS
from mercer.solvers.dual.decomposition import decompose
from mercer.solvers.dual.pairs import Layout, fitting_pairs, solve_folds_together

Splits = list[tuple[Indices, Indices]]

# Up to this many samples all of K takes less time than the rows and blocks that each fold would compute again.
_STORED_ROWS = 6000


def values_without_folds(
    machine: Any, X: Any, y: Any, weight: Floats | None, splits: Splits, lines: FoldLines
) -> Floats | None:
    """A row for each sample, a column for each plane; NaN where it is on neither side of the plane, or has no weight.

    None where the machine's problems are not of this kind, or one of them was not solved.
    """
    reader = clone(machine).set_params(solver="decomposition") if hasattr(machine, "solver") else machine
    if shares(reader) is not None or reader.slack != "l1":  # a price of zero is a ridge without end
        return None
    if machine.kernel_.accepts != "gram":
        reader.set_params(kernel=machine.kernel_)
    whole = Fit.of(reader, X, y, weight)
    row = np.full(whole.n, -1)  # samples of weight zero are not there
    row[whole.merged.rows] = whole.merged.member
    left = []
    for _, test in splits:
        own = np.array(whole.weight)
        own[test] = 0.0
        kept = sums_by(whole.merged.member, own[whole.merged.rows], len(whole.merged.y))
        left.append(reader._tasks(replace(whole, merged=replace(whole.merged, weight=kept))))
    tests = [test for _, test in splits]
    if isinstance(left[0], PairTasks):
        found = _pairs(machine, left, whole, row, tests)
        if found is not None:
            lines.done(len(splits))
            return found
    out = np.full((whole.n, len(left[0])), np.nan)
    gram = whole.gram()
    for k, task in enumerate(left[0]):
        rows = np.arange(gram.n) if task.rows is None else task.rows
        place = gram if len(rows) == gram.n else gram.view(rows)
        beta = _coefficients(machine, whole, row, k)[rows]
        u = place.product(beta, dtype=place.precisions[0])
        at = np.full(gram.n, -1)
        at[rows] = np.arange(len(rows))
        stop = replace(whole.limits.stop, tol=task.unit * whole.limits.stop.tol)
        problems = [tasks[k].problem for tasks in left]
        for f, test in zip(_without_each(problems, place, beta, u, stop), tests, strict=True):
            if f is None:
                return None
            test = test[row[test] >= 0]
            here = test[at[row[test]] >= 0]
            out[here, k] = f[at[row[here]]]
            if k == len(left[0]) - 1:
                lines.done()
    return out


def _without_each(
    problems: list[DualProblem], gram: Any, beta: Floats, u: Floats, stop: Stop
) -> Iterable[Floats | None]:
    """f of all rows for each problem, as `_without` has it; where K is small it is made once, for all of them."""
    simple = gram.fused and not problems[0].twins
    if not simple or gram.n > _STORED_ROWS or 2 * gram.n**2 * np.dtype(gram.precisions[0]).itemsize > gram.budget:
        return (_without(problem, gram, beta, u, stop) for problem in problems)
    K = gram.full(gram.precisions[0])
    without = partial(_without_stored, K, beta, u, stop)
    if gram.n_threads == 1:
        return map(without, problems)
    return map_side_by_side(without, problems, min(gram.n_threads, len(problems)))


def _without_stored(K: Any, beta: Floats, u: Floats, stop: Stop, problem: DualProblem) -> Floats | None:
    """The same on a K that is stored."""
    found = _balanced(problem, np.clip(beta, problem.lower, problem.upper))
    moved = np.flatnonzero(found != beta)
    u = u + (found - beta)[moved] @ K[moved]
    fixed = (problem.lower, problem.upper, problem.d, problem.group)
    limits = (stop.tol, min(INNER_STEPS * len(beta), stop.max_iter), stop.seconds)
    reason = _core.solve_stored(K, np.arange(len(beta)), problem.p, found, u, *fixed, *limits)[2]
    return _with_offset(problem, found, u) if reason == "converged" else None


def _without(problem: DualProblem, gram: Any, beta: Floats, u: Floats, stop: Stop) -> Floats | None:
    """f of all rows for a problem some of whose bounds are zero, from a solution without these bounds and its u.

    None where a limit or rounding ended it: an ordinary fit then says so.
    """
    precision = gram.precisions[0]
    start = _balanced(problem, np.clip(beta, problem.lower, problem.upper))
    field = gram.field(problem, start, u + gram.product(start - beta, dtype=precision), precision)
    reached = decompose(field, stop, None, True)
    if reached.stop_reason != "converged":
        return None
    found = reached.beta
    field.unshrink()
    u = field.u + gram.product(found - field.beta, dtype=precision)  # a block of all variables leaves u behind
    return _with_offset(problem, found, u)


def _with_offset(problem: DualProblem, beta: Floats, u: Floats) -> Floats:
    b = problem.violation_and_offsets(beta, problem.gradient(beta, u))[1]
    return np.asarray(u + b[0] if len(b) else u)


def _balanced(problem: DualProblem, beta: Floats) -> Floats:
    """β with the sum that it must have, by lowering as few coefficients as possible; each has its row of K."""
    for g, total in enumerate(problem.totals):
        members = np.flatnonzero(problem.group == g)
        excess = float(beta[members].sum()) - total
        heavy = members[np.sign(beta[members]) == np.sign(excess)]
        heavy = heavy[np.argsort(-np.abs(beta[heavy]), kind="stable")]
        size = np.abs(beta[heavy])
        taken = np.minimum(size, np.maximum(0.0, abs(excess) - (np.cumsum(size) - size)))
        beta[heavy] -= np.sign(excess) * taken
    return problem.nearest_feasible(beta) if len(problem.totals) else beta


def _coefficients(machine: Any, whole: Fit, row: Indices, k: int) -> Floats:
    """β of the merged samples in plane k, if the machine was trained on these samples; else zeros, which will do."""
    out = np.zeros(len(whole.merged.y))
    if machine.shape_fit_[0] == whole.n and len(machine.support_):
        own = plane_coefficients(machine.dual_coef_, machine.n_support_, whole.target.pairs, k)
        np.add.at(out, row[machine.support_], own)
    return out


def _pairs(machine: Any, left: list[PairTasks], whole: Fit, row: Indices, tests: list[Indices]) -> Floats | None:
    """The same for pairs of classes, in one call; None where it leaves one of them unsolved."""
    layout, gram = left[0].layout, whole.gram()
    if not gram.fused or len(fitting_pairs(left[0].problem, layout, is_sparse(whole.X))) < layout.n:
        return None
    bounds = np.stack([t.problem.lower for t in left]), np.stack([t.problem.upper for t in left])
    beta, limits = _pair_coefficients(machine, whole, row, layout), whole.limits
    f = solve_folds_together(left[0].problem, bounds, layout, gram, beta, limits.stop, limits.n_threads)
    if f is None:
        return None
    # A sample is in as many pairs as any other.
    own = np.argsort(layout.rows, kind="stable").reshape(len(whole.merged.y), -1)
    which = np.repeat(np.arange(layout.n), np.diff(layout.offsets))
    out = np.full((whole.n, layout.n), np.nan)
    for values, test in zip(f, tests, strict=True):
        here = test[row[test] >= 0]
        variables = own[row[here]]
        out[here[:, None], which[variables]] = values[variables]
    return out


def _pair_coefficients(machine: Any, whole: Fit, row: Indices, layout: Layout) -> Floats:
    """β of every variable of a layout of pairs, as `_coefficients` has it for one plane."""
    beta = np.zeros(layout.offsets[-1])
    if machine.shape_fit_[0] != whole.n or len(machine.support_) == 0:
        return beta
    for k, (a, b) in enumerate(pairwise(layout.offsets.tolist())):
        beta[a:b] = _coefficients(machine, whole, row, k)[layout.rows[a:b]]
    return beta
