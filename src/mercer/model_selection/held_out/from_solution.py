"""Decision values of samples left out, from the solution on all of them.

A fold's problem is the whole one with the penalties of its held-out samples at zero. Its start is the whole solution
without their coefficients, which is nearly right, so that only a few coefficients move. Pairs of classes are many small
problems: those of all folds are solved in one call. Every solution of every fold is certified from its coefficients
alone, and the u = Kβ of that certificate is the held-out samples' f but for b. Where a certificate does not prove what
the machine's `tol` asks for, and no further step helps, all folds are fitted again as any other machine is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.certificates.dual import certify_dual
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.task import PairTasks, map_side_by_side
from mercer.model_selection.held_out.folds import Splits, shares
from mercer.places import Gram
from mercer.places.host.stored_gram import StoredField, StoredGram
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, Indices, is_sparse, rounded_sums_by
from mercer.samples.labels import plane_coefficients
from mercer.solvers.dual.certified import SOLVED_SHARE, STORED_STEPS, solve_certified
from mercer.solvers.dual.pairs import fitting_pairs, solve_folds_together
from mercer.solvers.solution import Stop

# Up to this many rows a stored K takes less time than the rows and blocks that each fold would compute again.
_STORED_ROWS = 6000


def values_from_solution(
    machine: Any, X: Any, y: Any, weight: Floats | None, splits: Splits, done: Callable[[int], None]
) -> Floats | None:
    """A row for each sample, a column for each plane; NaN where it is on neither side of the plane, or has no weight.

    None where the machine's problems are not of this kind, or one of them was not solved. `done` is told of folds.
    """
    reader = clone(machine).set_params(solver="decomposition") if hasattr(machine, "solver") else machine
    if shares(reader) is not None or reader.slack != "l1":  # a penalty of zero is a ridge without end
        return None
    if machine.kernel_.accepts != "gram":
        reader.set_params(kernel=machine.kernel_)
    whole = Fit.of(reader, X, y, weight)
    row = np.full(whole.n, -1)  # samples of weight zero are not there
    row[whole.merged.rows] = whole.merged.member
    left = []
    for train, _ in splits:
        own = whole.weight * np.bincount(train, minlength=whole.n)  # a fold may train on fewer rows, or on some twice
        kept = rounded_sums_by(whole.merged.member, own[whole.merged.rows], len(whole.merged.y))
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
        rows = np.arange(gram.n) if task.part is None else task.part
        place = gram if len(rows) == gram.n else gram.view(rows)
        at = np.full(gram.n, -1)
        at[rows] = np.arange(len(rows))
        stop = replace(whole.limits.stop, tol=task.unit * whole.limits.stop.tol)
        problems = [tasks[k].problem for tasks in left]
        beta = _coefficients(machine, whole, row, k)[rows]
        for f, test in zip(_values_of_folds(problems, place, beta, stop), tests, strict=True):
            if f is None:
                return None
            here = test[at[row[test]] >= 0]
            out[here, k] = f[at[row[here]]]
            if k == len(left[0]) - 1:
                done(1)
    return out


def _values_of_folds(problems: list[DualProblem], gram: Gram, beta: Floats, stop: Stop) -> Iterable[Floats | None]:
    """f of all rows for the problem of each fold, from the solution β on all samples.

    Rows without a coefficient far from the margin hardly ever get one. So K is stored on the others alone, for all
    folds, and what that leaves of a problem goes on with all rows. Far is twice the margin and, as samples left out
    move f more where few coefficients are at their bounds, farther by the share of those that are free.
    """
    first, u = problems[0], gram.product(beta, dtype=gram.precisions[0])
    used = (beta != 0) & (first.lower < first.upper)
    bounded = used & ((beta <= first.lower) | (beta >= first.upper))
    far = 1.0 + max(1.0, 0.5 * int(used.sum()) / max(1, int(bounded.sum())))
    near = np.flatnonzero((beta != 0) | (first.p * (u + _offset(first, beta, u)) < far))
    size = 2 * len(near) ** 2 * np.dtype(gram.precisions[0]).itemsize
    if not gram.concurrent or first.twins or len(near) > _STORED_ROWS or size > gram.budget:
        starts: Iterable[Floats] = (_without_held_out(problem, beta) for problem in problems)
    else:
        field = StoredField(StoredGram.plain(gram.view(near)), np.arange(len(near)), proven=False)
        field.move(first.some(near), beta[near])
        solve, n_threads = partial(_solved_on_stored, field, near, beta, stop), min(stop.n_threads, len(problems))
        starts = map_side_by_side(solve, problems, n_threads) if n_threads > 1 else map(solve, problems)
    return (_certified_values(problem, gram, start, stop) for problem, start in zip(problems, starts, strict=True))


def _solved_on_stored(whole: StoredField, near: Indices, beta: Floats, stop: Stop, problem: DualProblem) -> Floats:
    """β of a fold's problem after pair steps on the rows that are stored."""
    field, part, after = whole.copy(), problem.some(near), _without_held_out(problem, beta)
    field.move(part, after[near])
    most = min(STORED_STEPS * len(near), stop.max_iter)
    after[near] = field.pair_steps(part, SOLVED_SHARE * stop.tol, most, stop.seconds)[0]
    return after


def _certified_values(problem: DualProblem, gram: Gram, start: Floats, stop: Stop) -> Floats | None:
    """f of all rows for a fold's problem, from a β that is near its solution, or is it already.

    None where no certificate proves what `stop` asks for, because a limit or rounding ended the solve.
    """
    certificate, u = certify_dual(problem, gram.proof, start, stop.tol)
    if not stop.met(certificate):
        solution, certificate = solve_certified(problem, gram, stop, start)
        if not stop.met(certificate) or solution.u is None:
            return None
        u = solution.u
    return np.asarray(u + certificate.b[0] if certificate.b else u)


def _offset(problem: DualProblem, beta: Floats, u: Floats) -> float:
    b = problem.violation_and_offsets(beta, problem.gradient(beta, u))[1]
    return float(b[0]) if len(b) else 0.0


def _without_held_out(problem: DualProblem, beta: Floats) -> Floats:
    """β inside the bounds, with the sum that it must have: as few others as possible are lowered for that.

    `nearest_feasible` alone would lower all free ones: then u moves by many rows (spam at C = 1: a sixth more time).
    """
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
    """The values for all pairs of classes, in one call; None where it leaves one of them unsolved, or unproven."""
    layout, gram = left[0].layout, whole.gram()
    if len(fitting_pairs(left[0].problem, layout, is_sparse(whole.X))) < layout.n:
        return None
    bounds = np.stack([t.problem.lower for t in left]), np.stack([t.problem.upper for t in left])
    ends = enumerate(pairwise(layout.offsets.tolist()))
    beta = np.concatenate([_coefficients(machine, whole, row, k)[layout.rows[a:b]] for k, (a, b) in ends])
    limits = whole.limits
    solved = solve_folds_together(left[0].problem, bounds, layout, gram, beta, limits.stop, limits.n_threads)
    if solved is None:
        return None
    # A sample is in as many pairs as any other.
    own = np.argsort(layout.rows, kind="stable").reshape(len(whole.merged.y), -1)
    which = np.repeat(np.arange(layout.n), np.diff(layout.offsets))
    out = np.full((whole.n, layout.n), np.nan)
    for fold, test in zip(solved, tests, strict=True):
        b = fold.certificates.b
        values = fold.u + np.repeat(b[:, 0], np.diff(layout.offsets)) if b.shape[1] else fold.u
        variables = own[row[test]]
        out[test[:, None], which[variables]] = values[variables]
    return out
