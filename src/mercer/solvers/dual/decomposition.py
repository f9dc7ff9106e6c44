"""Block decomposition: the one loop that trains every machine with one or two variables per sample.

    β ← feasible;  repeat: take the worst violators and half of the last set, solve the problem restricted to them by
    sequential minimal optimisation, update u = Kβ; until the violation is at most tol  (Igel, Alg. 4.1)

The loop works on a Field and sees neither kernels nor data. A small problem is one block, solved in one pass.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from mercer import _core
from mercer.arrays import Floats, inner
from mercer.certificates.dual import certificate_of
from mercer.gram.field import Field
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Report, Solution, Stop
from mercer.solvers.block_steps import (
    BLOCK,
    FLOOR,
    INNER_SHARE,
    INNER_STEPS,
    KEPT_SHARE,
    StallWatch,
    largest_block,
    overflow,
    running_words,
)
from mercer.solvers.dual.newton import climb_face
from mercer.solvers.dual.one_block import ONE_BLOCK_VARIABLES

# A block with more than this share of free variables has no room for new ones. Its size is doubled, up to the largest,
# and it is solved to a smaller share of the violation, because most of its variables change little (letter at C=100:
# 89 outer steps with 1,024 variables, 15 with more).
_CROWDED_SHARE = 0.6
_CROWDED_INNER_SHARE = 0.1
_LARGEST_BLOCK = 3072
# Blocks in a row that pair steps may leave unsolved before Newton steps are tried. Those cost as much as a block, and
# are wasted in a block that new variables will change (letter at C=100: 0.34 s with 0, 0.27 s with 2).
_UNSOLVED_BLOCKS = 2


def decompose(field: Field, stop: Stop, report: Report | None = None, shrinking: bool = True) -> Solution:
    """Move the field until its running violation is at most `stop.tol`, or a limit is reached."""
    problem, gram = field.problem, field.gram
    n, largest = problem.n_variables, largest_block(gram)
    q, share = min(n if n <= ONE_BLOCK_VARIABLES else BLOCK, largest), INNER_SHARE
    steps, stuck, watch = 0, 0, StallWatch(sees_all=q == n)
    noise = RoundingNoise(gram, problem)
    while True:
        violation = field.violation()[0]
        if report is not None:
            report(partial(_words, field, stop.done + steps, violation), stop.times_tol(violation))
        if violation <= stop.tol:
            return Solution(field.beta, steps, "converged", not field.shrunk)
        left = stop.before_proof(field.beta)
        limit = left.limit(steps) or watch.verdict(violation, noise(field.beta))
        if limit == "stalled" and field.shrunk:
            # Perhaps the dropped variables could move again: from now on none is dropped.
            field.unshrink()
            shrinking, watch = False, StallWatch()
            continue
        if limit is not None:
            return Solution(field.beta, steps, limit, not field.shrunk)

        J = field.violators(q, KEPT_SHARE)
        try:
            with _core.TimeLimit(left.seconds):
                K = field.block(J)
        except _core.OutOfTime:
            return Solution(field.beta, steps, "max_time", not field.shrunk)
        h, d, before = field.gradient(J), problem.d[J], field.beta[J]
        after = before.copy()
        everything = len(J) == len(field.active)  # no other variable can be chosen, so there is nothing to wait for
        taken, _, reason = _core.smo(
            K,
            h,
            after,
            problem.lower[J],
            problem.upper[J],
            d,
            problem.group[J],
            max(0.0 if everything else share * violation, 0.5 * stop.tol),
            min(INNER_STEPS * len(J), stop.max_iter - steps),
            left.seconds,
        )
        if reason == "nonfinite":
            raise overflow(gram, np.abs(problem.upper - problem.lower))
        steps += taken
        if reason == "converged" and len(J) == n:
            return Solution(after, steps, "converged")
        if reason == "max_seconds":  # the certificate does not need u
            beta = field.beta.copy()
            beta[J] = after
            return Solution(beta, steps, "max_time", not field.shrunk)
        stuck = stuck + 1 if reason in ("max_steps", "stalled") else 0
        if stuck > _UNSOLVED_BLOCKS or reason == "stalled":
            delta = after - before
            after = climb_face(problem, J, K, h - K @ delta - d * delta, after, gram.n_threads)
        field.move(J, after)
        # The dual is quadratic: it grows by the step times the mean of the gradients before and after.
        watch.gained(inner(after - before, 0.5 * (h + field.gradient(J))))
        if len(J) < n:
            free = int(((after > problem.lower[J]) & (after < problem.upper[J])).sum())
            if free > _CROWDED_SHARE * q:
                q, share = min(2 * q, _LARGEST_BLOCK, largest), _CROWDED_INNER_SHARE
            if shrinking:
                field.shrink()


def _words(field: Field, steps: int, violation: float) -> str:
    """A line about how far the loop is."""
    beta, u = field.beta, field.u
    running = certificate_of(field.problem, beta, u, "stationarity", "float64", np.zeros(len(u)))
    return running_words(steps, int(np.count_nonzero(beta)), violation, running.gap, field.shrunk)


class RoundingNoise:
    """The rounding error of a gradient in float64: the terms of u_i add up to at most √K_ii Σ_j √K_jj |β_j|."""

    def __init__(self, gram: Gram, problem: DualProblem) -> None:
        lengths = np.sqrt(np.abs(gram.diagonal))
        self._sizes = float(lengths.max()) * lengths[problem.row]
        self._target = float(np.abs(problem.p).max())

    def __call__(self, beta: Floats) -> float:
        return float(np.finfo(float).eps) * (inner(self._sizes, np.abs(beta)) + self._target)


def rounding_floor(gram: Gram, problem: DualProblem, beta: Floats) -> float:
    """The largest violation at β that may be rounding alone."""
    proven = gram.errors(problem.row_coefficients(beta, gram.n), level=gram.levels[-1])
    return max(FLOOR * RoundingNoise(gram, problem)(beta), 4 * float(proven.max(initial=0.0)))
