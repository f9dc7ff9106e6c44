"""Decision values of held-out samples, computed from the solution on all samples.

A fold's problem is the whole problem with C = 0 for its held-out samples. Its solver starts from the whole solution
without their coefficients, which is nearly optimal, so that few coefficients change. Pairs of classes are many small
problems: those of all folds are solved in one call. Every solution is certified from its coefficients alone, and u = Kβ
of that certificate is f − b of the held-out samples. If a certificate does not reach the machine's `tol` and no further
step helps, all folds are fitted from scratch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import certify_several
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
    """Return held-out decision values, a row for each sample and a column for each decision function.

    A value is NaN if the sample has no weight, or belongs to neither class of the decision function. Return None if the
    solution on all samples is not a start for the folds, or if a problem was not solved. `done` is called with the
    number of finished folds.
    """
    reader = clone(machine).set_params(solver="decomposition") if hasattr(machine, "solver") else machine
    if reason_not_shared(reader) is not None or reader.slack != "l1":  # with slack="l2", C = 0 is an infinite ridge
        return None
    if machine.kernel_.accepts != "gram":
        reader.set_params(kernel=machine.kernel_)
    # 1. State the problems of each fold: those of all samples, in which held-out samples have weight 0.
    fit = Fit.of(reader, X, y, weight)
    row = np.full(fit.n, -1)  # merged sample of each of the caller's rows; −1 for samples of weight zero
    row[fit.merged.rows] = fit.merged.member
    fold_tasks = []
    for train, _ in splits:
        weight = fit.weight * np.bincount(train, minlength=fit.n)  # a fold may drop rows, or repeat them
        merged_weight = rounded_sums_by(fit.merged.member, weight[fit.merged.rows], len(fit.merged.y))
        fold_tasks.append(reader._tasks(replace(fit, merged=replace(fit.merged, weight=merged_weight))))
    tests = [test[row[test] >= 0] for _, test in splits]
    # 2. Solve all pairs of classes in one call, if there are pairs.
    if isinstance(fold_tasks[0], PairTasks):
        values = _values_of_pairs(machine, fold_tasks, fit, row, tests)
        if values is not None:
            done(len(splits))
            return values
    # 3. Otherwise solve problem by problem, each in all folds.
    out = np.full((fit.n, len(fold_tasks[0])), np.nan)
    gram = fit.gram()
    for k, task in enumerate(fold_tasks[0]):
        rows = np.arange(gram.n) if task.part is None else task.part
        task_gram = gram if len(rows) == gram.n else gram.view(rows)
        index_in_task = np.full(gram.n, -1)
        index_in_task[rows] = np.arange(len(rows))
        stop = replace(fit.limits.stop, tol=task.unit * fit.limits.stop.tol)
        problems = [tasks[k].problem for tasks in fold_tasks]
        beta = _coefficients(machine, fit, row, k)[rows]
        for f, test in zip(_values_of_folds(problems, task_gram, beta, stop), tests, strict=True):
            if f is None:
                return None
            members = test[index_in_task[row[test]] >= 0]
            out[members, k] = f[index_in_task[row[members]]]
            if k == len(fold_tasks[0]) - 1:
                done(1)
    return out


def _values_of_folds(problems: list[DualProblem], gram: Gram, beta: Floats, stop: Stop) -> Iterable[Floats | None]:
    """Return f of all rows for the problem of each fold, starting from the solution β on all samples.

    Rows with β = 0 and a large margin y f hardly ever become support vectors. So the first steps of every fold use the
    other rows only, whose K is stored once, and the last steps use all rows. The certificates of all folds are computed
    from the same kernel values.
    """
    # 1. Choose a start for each fold, and compute u = Kβ of all of them together.
    first, precision = problems[0], gram.precisions[0]
    starts = [_fold_start(problem, beta) for problem in problems]
    u, *start_us = np.ascontiguousarray(gram.products(np.column_stack([beta, *starts]), dtype=precision).T)
    folds = [_FoldStart(*fold) for fold in zip(problems, starts, start_us, strict=True)]
    # 2. Store K of the rows that may become support vectors.
    large_margin = _large_margin(beta, gram.diagonal)
    rows = np.flatnonzero((beta != 0) | ~(first.p * (u + _offset(first, beta, u)) >= large_margin))
    n_bytes = 2 * len(rows) ** 2 * np.dtype(precision).itemsize
    if not gram.concurrent or first.twins or len(rows) > _STORED_ROWS or n_bytes > gram.budget:
        return (_values_from(fold, gram, stop) for fold in folds)
    stored = StoredGram.plain(gram.view(rows))
    # 3. Solve the folds on the stored rows, and certify them together.
    solve, n_threads = partial(_solve_on_stored, stored, rows, stop), min(stop.n_threads, len(problems))
    solutions = map_in_threads(solve, folds, n_threads) if n_threads > 1 else list(map(solve, folds))
    proofs = certify_several(problems, gram.proof, solutions, stop.tol)
    # 4. Where a certificate does not meet `stop`, continue on all rows.
    return (
        _values_of(u, certificate)
        if stop.met(certificate)
        else _values_from(_FoldStart(problem, solution, u), gram, stop)
        for problem, solution, (certificate, u) in zip(problems, solutions, proofs, strict=True)
    )


def _large_margin(beta: Floats, diagonal: Floats) -> float:
    """Return the margin y f of the solution β from which samples hardly ever become support vectors of a fold.

    With m the median of |β_i| k(x_i, x_i) over the support vectors, it is 1 + max(0.5, 0.6 √m): f changes more when
    samples with larger coefficients are held out. On mixture, spam, letter, usps and mnist with C from 0.01 to 10 no
    sample had a larger one, with C = 100 and 1,000 a few had.
    """
    size = np.abs(beta[beta != 0]) * diagonal[beta != 0]
    return 1.0 + max(0.5, 0.6 * math.sqrt(float(np.median(size)))) if len(size) else 1.5


class _FoldStart(NamedTuple):
    """Start of a fold: its problem, a feasible β, and u = Kβ."""

    problem: DualProblem
    beta: Floats
    u: Floats


def _solve_on_stored(stored: StoredGram, rows: Indices, stop: Stop, fold: _FoldStart) -> Floats:
    """Return β of a fold's problem after pair steps on the stored rows."""
    field = StoredField(stored, np.arange(len(rows)), proven=False)
    problem, beta = fold.problem.take(rows), fold.beta.copy()
    field.place(problem, beta[rows], fold.u[rows])
    max_steps = min(STORED_STEPS * len(rows), stop.max_iter)
    beta[rows] = field.pair_steps(problem, SOLVED_SHARE * stop.tol, max_steps, stop.seconds)[0]
    return beta


def _values_from(fold: _FoldStart, gram: Gram, stop: Stop) -> Floats | None:
    """Return f of all rows for a fold's problem; None if it is not solved."""
    solution, certificate = solve_certified(fold.problem, gram, stop, fold.beta, start_u=fold.u)
    return _values_of(solution.u, certificate) if stop.met(certificate) else None


def _values_of(u: Floats | None, certificate: Certificate) -> Floats | None:
    """Return f = u + b of all rows; None if the solver returned no u."""
    return None if u is None else np.asarray(u + certificate.b[0] if certificate.b else u)


def _offset(problem: DualProblem, beta: Floats, u: Floats) -> float:
    """Return b of the solution β with u = Kβ; 0 without a free bias."""
    b = problem.violation_and_offsets(beta, problem.gradient(beta, u))[1]
    return float(b[0]) if len(b) else 0.0


def _fold_start(problem: DualProblem, beta: Floats) -> Floats:
    """Return a feasible start for a fold: β clipped to its bounds, then lowered to its totals in few coefficients.

    `nearest_feasible` alone would lower all free coefficients, and u would change by many rows of K (spam at C = 1: a
    sixth more time).
    """
    beta = np.clip(beta, problem.lower, problem.upper)
    for g, total in enumerate(problem.totals):
        members = np.flatnonzero((problem.group == g) & (beta != 0))
        excess = float(beta[members].sum()) - total
        same_sign = members[np.sign(beta[members]) == np.sign(excess)]
        by_size = same_sign[np.argsort(-np.abs(beta[same_sign]), kind="stable")]
        size = np.abs(beta[by_size])
        decrease = np.minimum(size, np.maximum(0.0, abs(excess) - (np.cumsum(size) - size)))
        beta[by_size] -= np.sign(excess) * decrease
    return problem.nearest_feasible(beta) if len(problem.totals) else beta


def _coefficients(machine: Any, fit: Fit, row: Indices, k: int) -> Floats:
    """Return β of the merged samples in decision function k, or zeros if the machine was trained on other samples."""
    out = np.zeros(len(fit.merged.y))
    if machine.shape_fit_[0] == fit.n and len(machine.support_):
        beta = plane_coefficients(machine.dual_coef_, machine.n_support_, fit.target.pairs, k)
        np.add.at(out, row[machine.support_], beta)
    return out


def _values_of_pairs(
    machine: Any, fold_tasks: list[PairTasks], fit: Fit, row: Indices, tests: list[Indices]
) -> Floats | None:
    """Solve all pairs of classes in all folds by one call, and return their held-out values.

    Return None if a pair is not solved or not proven. `row` holds the merged sample of each of the caller's rows, and
    `tests` the held-out rows of each fold.
    """
    layout, gram = fold_tasks[0].layout, fit.gram()
    if len(solvable_pairs(fold_tasks[0].problem, layout, is_sparse(fit.X))) < layout.n:
        return None
    bounds = (
        np.stack([tasks.problem.lower for tasks in fold_tasks]),
        np.stack([tasks.problem.upper for tasks in fold_tasks]),
    )
    ends = enumerate(pairwise(layout.offsets.tolist()))
    beta = np.concatenate([_coefficients(machine, fit, row, k)[layout.rows[a:b]] for k, (a, b) in ends])
    limits = fit.limits
    fold_results = solve_pair_folds(fold_tasks[0].problem, bounds, layout, gram, beta, limits.stop, limits.n_threads)
    if fold_results is None:
        return None
    # All samples are in the same number of pairs.
    variables_of = np.argsort(layout.rows, kind="stable").reshape(len(fit.merged.y), -1)
    pair_of = np.repeat(np.arange(layout.n), np.diff(layout.offsets))
    out = np.full((fit.n, layout.n), np.nan)
    for fold, test in zip(fold_results, tests, strict=True):
        b = fold.certificates.b
        values = fold.u + np.repeat(b[:, 0], np.diff(layout.offsets)) if b.shape[1] else fold.u
        variables = variables_of[row[test]]
        out[test[:, None], pair_of[variables]] = values[variables]
    return out
