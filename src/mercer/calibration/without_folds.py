"""Decision values of samples left out, from the solution on all of them.

A fold's problem is the whole one with the prices of its held-out samples at zero. Its start is the whole solution
without their coefficients, which is nearly right, so that only a few coefficients move; u = Kβ follows by the rows of
those that did, and is the held-out samples' f but for b. Pairs of classes are many small problems: those of all
folds are solved in one call. A fold's solution has the tolerance of the machine, and no certificate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.arrays import Floats, Indices, sums_by
from mercer.calibration.telling import FoldLines
from mercer.data.labels import plane_coefficients
from mercer.fitting.fit import Fit
from mercer.fitting.pair_tasks import PairTasks
from mercer.problems.dual_problem import DualProblem
from mercer.selection.folds import shares
from mercer.solution import Stop
from mercer.solvers.dual.decomposition import decompose
from mercer.solvers.dual.pairs import Layout, fitting_pairs, solve_together

Splits = list[tuple[Indices, Indices]]


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
        found = _pairs(left, whole, row, tests)
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
        for tasks, test in zip(left, tests, strict=True):
            test = test[row[test] >= 0]
            stop = replace(whole.limits.stop, tol=task.unit * whole.limits.stop.tol)
            f = _without(tasks[k].problem, place, beta, u, stop)
            if f is None:
                return None
            here = test[at[row[test]] >= 0]
            out[here, k] = f[at[row[here]]]
            if k == len(left[0]) - 1:
                lines.done()
    return out


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
    _, b = problem.violation_and_offsets(found, problem.gradient(found, u))
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


def _pairs(left: list[PairTasks], whole: Fit, row: Indices, tests: list[Indices]) -> Floats | None:
    """The same for pairs of classes, in one call; None where it leaves one of them unsolved."""
    layout, n_folds = left[0].layout, len(left)
    if len(fitting_pairs(left[0].problem, layout)) < layout.n:
        return None
    # The folds of a pair come one after another, so that they find its kernel values.
    pairs = np.repeat(layout.pairs.reshape(-1, 2), n_folds, axis=0)
    blocks = np.split(layout.members, layout.starts[1:-1])
    every = Layout.of(blocks, pairs)
    place = np.arange(layout.offsets[-1] * n_folds).reshape(n_folds, -1)  # of a fold's variables, fold after fold
    order = np.concatenate(
        [place[:, a:b].ravel() for a, b in zip(layout.offsets[:-1], layout.offsets[1:], strict=True)]
    )
    parts = {
        name: np.concatenate([getattr(tasks.problem, name) for tasks in left])[order]
        for name in ("p", "lower", "upper", "d", "group")
    }
    problem = DualProblem(**parts, row=np.arange(len(order)), totals=left[0].problem.totals)
    gram = whole.gram()
    if not gram.fused:
        return None
    found = solve_together(problem, every, gram, whole.limits.stop, whole.limits.n_threads)
    if found is None or not found.solved.all():
        return None
    b = found.certificates.b
    f = found.u + (np.repeat(b[:, 0], np.diff(every.offsets)) if b.shape[1] else 0.0)
    by_fold = np.empty_like(f)
    by_fold[order] = f
    sample = layout.rows
    which = np.repeat(np.arange(layout.n), np.diff(layout.offsets))
    out = np.full((whole.n, layout.n), np.nan)
    for values, test in zip(by_fold.reshape(n_folds, -1), tests, strict=True):
        table = np.full((len(whole.merged.y), layout.n), np.nan)
        table[sample, which] = values
        here = test[row[test] >= 0]
        out[here] = table[row[here]]
    return out
