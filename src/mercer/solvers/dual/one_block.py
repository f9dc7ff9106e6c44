"""A problem that fits into one block: K is computed once, and pair steps on all variables solve it in one call.

The loop of mercer.solvers.dual.decomposition does the same in its first step. Its state, which a small problem does not
need, takes longer than the steps.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from mercer import _core
from mercer.arrays import Floats
from mercer.certificates.dual import certificate_of
from mercer.gram.block_buffer import BlockBuffer
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Report, Solution, Stop, StopReason
from mercer.solvers.block_steps import INNER_STEPS, largest_block, overflow, running_words

# Up to this many variables the whole problem is one block, which is faster up to this size (letter, spam, usps).
ONE_BLOCK_VARIABLES = 2500

_ENDS: dict[str, StopReason] = {"converged": "converged", "max_seconds": "max_time"}


def is_one_block(problem: DualProblem, gram: Gram) -> bool:
    """Whether one block has room for all variables, and the core computes it."""
    return problem.n_variables <= min(ONE_BLOCK_VARIABLES, largest_block(gram)) and gram.fused


def solve_block(
    problem: DualProblem,
    gram: Gram,
    beta: Floats,
    u: Floats | None,
    precision: object,
    stop: Stop,
    report: Report | None,
) -> Solution:
    """From β, and u = Kβ if it is known; where pair steps did not settle it, the reason is "stalled"."""
    samples, places = gram.prepared(np.arange(gram.n), precision, whole=True)
    if samples is None:
        return Solution(beta, 0, "stalled")
    violation = np.inf
    if beta.any():
        u = gram.product(problem.row_coefficients(beta, gram.n), dtype=precision) if u is None else u
        h = problem.gradient(beta, u)
        violation = problem.violation(beta, h)
    else:
        h = problem.p
    if report is not None:
        words = partial(_words, problem, beta, np.zeros(gram.n) if u is None else u, stop.done)
        report(words, stop.times_tol(violation) if violation < np.inf else np.nan)
    if violation <= stop.tol:
        return Solution(beta, 0, "converged")
    left = stop.before_proof(beta)
    limit = left.limit(0)
    if limit is not None:
        return Solution(beta, 0, limit)
    diagonal = gram.diagonal
    if problem.twins:
        places, diagonal = places[problem.row], diagonal[problem.row]
    try:
        with _core.TimeLimit(left.seconds):
            K = BlockBuffer(samples)(places, diagonal)
    except _core.OutOfTime:
        return Solution(beta, 0, "max_time")
    gram.evaluations += len(places) ** 2
    after = beta.copy()
    steps, _, reason = _core.smo(
        K,
        h,
        after,
        problem.lower,
        problem.upper,
        problem.d,
        problem.group,
        0.5 * stop.tol,
        min(INNER_STEPS * len(after), stop.max_iter),
        left.seconds,
    )
    if reason == "nonfinite":
        raise overflow(gram, np.abs(problem.upper - problem.lower))
    return Solution(after, steps, _ENDS.get(reason, "stalled"))


def _words(problem: DualProblem, beta: Floats, u: Floats, steps: int) -> str:
    """A line about where the steps begin."""
    found = certificate_of(problem, beta, u, "stationarity", "float64", np.zeros(len(u)))
    return running_words(steps, int(np.count_nonzero(beta)), found.violation, found.gap, shrunk=False)
