"""Decision values of held-out samples, computed from the solution on all samples.

A fold's problem is the whole problem with C = 0 for its held-out samples. Its solver starts from the whole solution
without their coefficients, which is nearly optimal, so that few coefficients change. Pairs of classes are many small
problems: those of all folds are solved in one call. Every solution is certified from its coefficients alone, and u = Kβ
of that certificate is f − b of the held-out samples. If a certificate does not reach the machine's `tol` and no further
step helps, all folds are fitted from scratch.
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
from mercer.estimators.fitting.pipeline.task import PairTasks, map_in_threads
from mercer.model_selection.held_out.folds import Splits, reason_not_shared
from mercer.places import Gram
from mercer.places.host.stored_gram import StoredField, StoredGram
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, Indices, is_sparse, rounded_sums_by
from mercer.samples.labels import plane_coefficients
from mercer.solvers.dual.certified import SOLVED_SHARE, STORED_STEPS, solve_certified
from mercer.solvers.dual.pairs import solvable_pairs, solve_pair_folds
from mercer.solvers.solution import Stop

# Up to this many rows, storing K takes less time than computing rows and blocks again for each fold.
_STORED_ROWS = 6000


def values_from_solution(
    machine: Any, X: Any, y: Any, weight: Floats | None, splits: Splits, done: Callable[[int], None]
) -> Floats | None:
    """Return held-out decision values, a row for each sample and a column for each plane.

    A value is NaN if the sample is on neither side of the plane or has no weight. Return None if the machine's problems
    are not of this kind, or if one of them was not solved. `done` is called with the number of finished folds.
    """
    reader = clone(machine).set_params(solver="decomposition") if hasattr(machine, "solver") else machine
    if reason_not_shared(reader) is not None or reader.slack != "l1":  # with slack="l2", C = 0 is an infinite ridge
        return None
    if machine.kernel_.accepts != "gram":
        reader.set_params(kernel=machine.kernel_)
    whole = Fit.of(reader, X, y, weight)
    row = np.full(whole.n, -1)  # −1 for samples of weight zero
    row[whole.merged.rows] = whole.merged.member
    left = []
    for train, _ in splits:
        weight = whole.weight * np.bincount(train, minlength=whole.n)  # a fold may drop rows, or repeat them
        kept = rounded_sums_by(whole.merged.member, weight[whole.merged.rows], len(whole.merged.y))
        left.append(reader._tasks(replace(whole, merged=replace(whole.merged, weight=kept))))
    tests = [test[row[test] >= 0] for _, test in splits]
    if isinstance(left[0], PairTasks):
        values = _values_of_pairs(machine, left, whole, row, tests)
        if values is not None:
            done(len(splits))
            return values
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
    """Return f of all rows for the problem of each fold, starting from the solution β on all samples.

    Rows with β = 0 far from the margin hardly ever become support vectors. So K is stored for the other rows only, for
    all folds, and the remaining steps use all rows. Far means twice the margin, and more if few coefficients are at
    their bounds, since f then changes more when samples are held out.
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
        field.move(first.take(near), beta[near])
        solve, n_threads = partial(_solve_on_stored, field, near, beta, stop), min(stop.n_threads, len(problems))
        starts = map_in_threads(solve, problems, n_threads) if n_threads > 1 else map(solve, problems)
    return (_certified_values(problem, gram, start, stop) for problem, start in zip(problems, starts, strict=True))


def _solve_on_stored(whole: StoredField, near: Indices, beta: Floats, stop: Stop, problem: DualProblem) -> Floats:
    """Return β of a fold's problem after pair steps on the stored rows."""
    field, part, after = whole.copy(), problem.take(near), _without_held_out(problem, beta)
    field.move(part, after[near])
    most = min(STORED_STEPS * len(near), stop.max_iter)
    after[near] = field.pair_steps(part, SOLVED_SHARE * stop.tol, most, stop.seconds)[0]
    return after


def _certified_values(problem: DualProblem, gram: Gram, start: Floats, stop: Stop) -> Floats | None:
    """Return f of all rows for a fold's problem, starting from a β near its solution.

    Return None if the certificate does not meet `stop`, because a limit or rounding ended the solve.
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
    """Return β clipped to the bounds of a fold, with its required totals; as few coefficients as possible are lowered.

    `nearest_feasible` alone would lower all free ones, and u would change by many rows (spam at C = 1: a sixth more
    time).
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
    """Return β of the merged samples in plane k, or zeros if the machine was trained on other samples."""
    out = np.zeros(len(whole.merged.y))
    if machine.shape_fit_[0] == whole.n and len(machine.support_):
        beta = plane_coefficients(machine.dual_coef_, machine.n_support_, whole.target.pairs, k)
        np.add.at(out, row[machine.support_], beta)
    return out


def _values_of_pairs(
    machine: Any, left: list[PairTasks], whole: Fit, row: Indices, tests: list[Indices]
) -> Floats | None:
    """Return the held-out values of all pairs of classes, by one call; None if a pair is not solved or not proven."""
    layout, gram = left[0].layout, whole.gram()
    if len(solvable_pairs(left[0].problem, layout, is_sparse(whole.X))) < layout.n:
        return None
    bounds = np.stack([t.problem.lower for t in left]), np.stack([t.problem.upper for t in left])
    ends = enumerate(pairwise(layout.offsets.tolist()))
    beta = np.concatenate([_coefficients(machine, whole, row, k)[layout.rows[a:b]] for k, (a, b) in ends])
    limits = whole.limits
    solved = solve_pair_folds(left[0].problem, bounds, layout, gram, beta, limits.stop, limits.n_threads)
    if solved is None:
        return None
    # All samples are in the same number of pairs.
    variables_of = np.argsort(layout.rows, kind="stable").reshape(len(whole.merged.y), -1)
    which = np.repeat(np.arange(layout.n), np.diff(layout.offsets))
    out = np.full((whole.n, layout.n), np.nan)
    for fold, test in zip(solved, tests, strict=True):
        b = fold.certificates.b
        values = fold.u + np.repeat(b[:, 0], np.diff(layout.offsets)) if b.shape[1] else fold.u
        variables = variables_of[row[test]]
        out[test[:, None], which[variables]] = values[variables]
    return out
