"""Chunking: solve on as many samples at a time as the memory budget holds (Vapnik; Igel, sec. 4.3).

    repeat
    1. take the support vectors and the worst violators among the other samples, as many as fit;
    2. maximise the dual over them, with all other variables fixed;
    3. update u = Kβ in a pass over the data

The chunk's problem is again a DualProblem: its p and its totals include the contributions of the fixed variables. If a
chunk cannot hold all support vectors, this is decomposition with very large blocks, and still converges to the optimum.
Samples are prepared for the core one chunk at a time.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.places.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, Indices, Precision, inner
from mercer.solvers.block_steps import StallWatch
from mercer.solvers.dual.certified import solve_and_refine, solve_certified
from mercer.solvers.solution import Solution, Stop, StopReason

# A chunk is solved to this share of the current violation: steps on it are cheaper than a pass over the data.
_INNER_SHARE = 0.1
# Chunks in a row without a measurable gain of the dual value before the loop gives up.
_PATIENCE = 3


def solve_by_chunks(
    problem: DualProblem,
    gram: Gram,
    stop: Stop,
    start: Floats | None = None,
    *,
    shrinking: bool = True,
    size: int | None = None,
) -> tuple[Solution, Certificate]:
    """Solve by chunks of at most `size` rows, by default as many as the Gram matrix's budget holds, and certify."""
    size = gram.chunk_rows if size is None else size
    size = max(size, 4 * len(problem.totals) + 2)  # the worst pair of every group must fit
    if size >= gram.n:
        return solve_certified(problem, gram, stop, start, shrinking=shrinking)
    gram = gram.streamed()
    return solve_and_refine(problem, gram, stop, start, partial(_chunk_by_chunk, problem, gram, size), shrinking)


def _chunk_by_chunk(
    problem: DualProblem,
    gram: Gram,
    size: int,
    beta: Floats,
    u: Floats | None,
    dtype: Precision,
    stop: Stop,
    shrinking: bool,
) -> Solution:
    """Solve chunks until the running violation is at most `stop.tol`, or a limit is reached (an `InnerSolver`)."""
    beta = beta.copy()
    u = gram.product(problem.row_coefficients(beta, gram.n), dtype=dtype) if u is None else u.copy()
    steps, watch = 0, StallWatch()
    while True:
        # 1. Measure the violation on all variables, and stop if it is small enough.
        h, selector = problem.gradient(beta, u), problem.working_set_selector(beta, u)
        selector.choose(np.arange(problem.n_variables))
        violation, tops, bottoms = selector.ends()
        stop_before_proof = stop.before_proof(beta)
        stop_reason: StopReason | None = "converged" if violation <= stop.tol else None
        reason = stop_reason or stop_before_proof.limit(steps) or ("stalled" if watch.idle >= _PATIENCE else None)
        if reason is not None:
            return Solution(beta, steps, reason)
        # 2. Choose the chunk, and make its problem with the other variables fixed.
        worst = selector.working_set(tops, bottoms, np.arange(0), min(size, problem.n_variables))
        rows = _choose_rows(problem, beta, worst, size)
        inner_stop = replace(
            stop_before_proof.after(steps), tol=max(_INNER_SHARE * violation, 0.5 * stop.tol), gap_tol=np.inf
        )
        chunk = np.flatnonzero(np.isin(problem.row, rows))
        chunk_gram = gram.copied(rows, gram.budget // 2)
        old_coefficients = problem.row_coefficients(beta.copy(), gram.n)
        u_of_others = u[rows] - chunk_gram.product(old_coefficients[rows])
        chunk_problem = problem.restricted(chunk, rows, beta, u_of_others)
        # 3. Solve it, and update u = Kβ on all rows.
        solution, _ = solve_certified(chunk_problem, chunk_gram, inner_stop, beta[chunk], shrinking=shrinking)
        change = solution.beta - beta[chunk]
        beta[chunk] = solution.beta
        assert solution.u is not None
        u[rows] = u_of_others + solution.u
        other_rows = np.setdiff1d(np.arange(gram.n), rows, assume_unique=True)
        u[other_rows] += gram.product(problem.row_coefficients(beta, gram.n) - old_coefficients, other_rows, dtype)
        # The dual is quadratic: it grows by the step times the mean of the gradients before and after.
        watch.record_gain(inner(change, 0.5 * (h + problem.gradient(beta, u))[chunk]))
        steps += max(1, solution.steps)


def _choose_rows(problem: DualProblem, beta: Floats, worst: Indices, size: int) -> Indices:
    """Return the rows of the next chunk: support vectors, free ones first, and worst violators (at least a quarter)."""
    up, low = problem.movable(beta)
    support = np.flatnonzero(beta)
    support = support[np.argsort(~(up & low)[support], kind="stable")]
    n_worst = max(2 * len(problem.totals), 1, size // 4, size - len(support))
    chunk_rows = problem.row[np.concatenate([worst[:n_worst], support, worst[n_worst:]])]
    _, first = np.unique(chunk_rows, return_index=True)
    return np.sort(chunk_rows[np.sort(first)][:size])
