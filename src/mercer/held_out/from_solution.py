"""Decision values of samples left out, from the solution on all of them.

A fold's problem is the whole one with the prices of its held-out samples at zero. Its start is the whole solution
without their coefficients, which is nearly right, so that only a few coefficients move; u = Kβ follows by the rows of
those that did, and is the held-out samples' f but for b. Pairs of classes are many small problems: those of all
folds are solved in one call. A fold's solution has the tolerance of the machine, and no certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.arrays import Floats, Indices, is_sparse, sums_by
from mercer.data.labels import plane_coefficients
from mercer.fitting.pipeline.fit import Fit
from mercer.fitting.pipeline.pair_tasks import PairTasks
from mercer.fitting.pipeline.side_by_side import map_side_by_side
from mercer.gram import Gram
from mercer.gram.stored_gram import StoredField, StoredGram
from mercer.held_out.folds import Splits, shares
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Stop
from mercer.solvers.block_steps import INNER_STEPS
from mercer.solvers.dual.certified import SOLVED_SHARE
from mercer.solvers.dual.decomposition import decompose
from mercer.solvers.dual.pairs import fitting_pairs, solve_folds_together

# Up to this many rows a stored K takes less time than the rows and blocks that each fold would compute again.
_STORED_ROWS = 6000
# Rows this far outside the margin, in its own unit, are not stored.
_NEAR_MARGIN = 1.0


def values_from_solution(
    machine: Any, X: Any, y: Any, weight: Floats | None, splits: Splits, done: Callable[[int], None]
) -> Floats | None:
    """A row for each sample, a column for each plane; NaN where it is on neither side of the plane, or has no weight.

    None where the machine's problems are not of this kind, or one of them was not solved. `done` is told of folds.
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
    tests = [test[row[test] >= 0] for _, test in splits]
    if isinstance(left[0], PairTasks):
        found = _pairs(machine, left, whole, row, tests)
        if found is not None:
            done(len(splits))
            return found
    out = np.full((whole.n, len(left[0])), np.nan)
    gram = whole.gram()
    for k, task in enumerate(left[0]):
        rows = np.arange(gram.n) if task.rows is None else task.rows
        place = gram if len(rows) == gram.n else gram.view(rows)
        at = np.full(gram.n, -1)
        at[rows] = np.arange(len(rows))
        stop = replace(whole.limits.stop, tol=task.unit * whole.limits.stop.tol)
        problems = [tasks[k].problem for tasks in left]
        beta = _coefficients(machine, whole, row, k)[rows]
        for f, test in zip(_without_each(problems, place, beta, stop), tests, strict=True):
            if f is None:
                return None
            here = test[at[row[test]] >= 0]
            out[here, k] = f[at[row[here]]]
            if k == len(left[0]) - 1:
                done(1)
    return out


def _without_each(problems: list[DualProblem], gram: Gram, beta: Floats, stop: Stop) -> Iterable[Floats | None]:
    """f of all rows for each problem, from a solution without their bounds of zero.

    Rows without a coefficient far from the margin hardly ever get one. So K is stored on the others alone, for all
    problems, and what that leaves of a problem goes on with all rows.
    """
    u = gram.product(beta, dtype=gram.precisions[0])
    whole = beta, u
    near = np.flatnonzero((beta != 0) | (problems[0].p * _with_offset(problems[0], *whole) < 1.0 + _NEAR_MARGIN))
    size = 2 * len(near) ** 2 * np.dtype(gram.precisions[0]).itemsize
    if not gram.concurrent or problems[0].twins or len(near) > _STORED_ROWS or size > gram.budget:
        none = np.arange(0)
        starts: Iterable[Any] = ((_without_held_out(problem, beta), none, u[none]) for problem in problems)
    else:
        field = StoredField(StoredGram.plain(gram.view(near)), np.arange(len(near)))
        field.move(problems[0].some(near), beta[near])
        without, n_threads = partial(_without_stored, field, near, beta, stop), min(stop.n_threads, len(problems))
        starts = map_side_by_side(without, problems, n_threads) if n_threads > 1 else map(without, problems)
    return (_without(problem, gram, whole, start, stop) for problem, start in zip(problems, starts, strict=True))


def _without_stored(
    whole: StoredField, near: Indices, beta: Floats, stop: Stop, problem: DualProblem
) -> tuple[Floats, Indices, Floats]:
    """β of a problem after pair steps on the rows that are stored, these rows, and their u."""
    field, part, after = whole.copy(), problem.some(near), _without_held_out(problem, beta)
    field.move(part, after[near])
    most = min(INNER_STEPS * len(near), stop.max_iter)
    after[near] = field.pair_steps(part, SOLVED_SHARE * stop.tol, most, stop.seconds)[0]
    return after, near, field.u


def _without(
    problem: DualProblem,
    gram: Gram,
    whole: tuple[Floats, Floats],
    start: tuple[Floats, Indices, Floats],
    stop: Stop,
) -> Floats | None:
    """f of all rows for a problem, from a start whose u is known on some rows, and from another β with all of its u.

    None where a limit or rounding ended it: an ordinary fit then says so.
    """
    (before, u), (beta, known, known_u), precision = whole, start, gram.precisions[0]
    others = np.setdiff1d(np.arange(gram.n), known, assume_unique=True)
    u = u.copy()
    u[known] = known_u
    u[others] += gram.product(beta - before, others if len(known) else None, precision)
    if problem.violation(beta, problem.gradient(beta, u)) <= stop.tol:
        return _with_offset(problem, beta, u)
    field = gram.field(problem, beta, u, precision)
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


def _without_held_out(problem: DualProblem, beta: Floats) -> Floats:
    """β inside the bounds, with the sum that it must have: as few others as possible are lowered for that."""
    beta = np.clip(beta, problem.lower, problem.upper)
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
    """The values for all pairs of classes, in one call; None where it leaves one of them unsolved."""
    layout, gram = left[0].layout, whole.gram()
    if len(fitting_pairs(left[0].problem, layout, is_sparse(whole.X))) < layout.n:
        return None
    bounds = np.stack([t.problem.lower for t in left]), np.stack([t.problem.upper for t in left])
    ends = enumerate(pairwise(layout.offsets.tolist()))
    beta = np.concatenate([_coefficients(machine, whole, row, k)[layout.rows[a:b]] for k, (a, b) in ends])
    limits = whole.limits
    f = solve_folds_together(left[0].problem, bounds, layout, gram, beta, limits.stop, limits.n_threads)
    if f is None:
        return None
    # A sample is in as many pairs as any other.
    own = np.argsort(layout.rows, kind="stable").reshape(len(whole.merged.y), -1)
    which = np.repeat(np.arange(layout.n), np.diff(layout.offsets))
    out = np.full((whole.n, layout.n), np.nan)
    for values, test in zip(f, tests, strict=True):
        variables = own[row[test]]
        out[test[:, None], which[variables]] = values[variables]
    return out
