"""Block decomposition: the one loop that trains every machine with one or two variables per sample.

    β ← feasible;  repeat: take the worst violators with half of the last set, solve the problem restricted to them by
    sequential minimal optimisation, bring u = Kβ up to date; until the violation is at most tol  (Igel, Alg. 4.1)

The loop drives a Field and sees neither kernels nor data. Small problems are one block: the same loop, once around.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from mercer import _core
from mercer.arrays import Floats, inner
from mercer.certificates.dual import gap_terms
from mercer.gram.field import Field
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Report, Solution, Stop, StopReason
from mercer.solvers.dual.newton import climb_face

# Below this many variables the whole problem is one block: a full matrix wins up to there (letter, spam, usps).
_ONE_BLOCK = 2500
_BLOCK = 1024
_KEEP = 0.5
# A block full of free variables leaves no room for new ones: it grows, and is solved more closely, since what it holds
# is mostly settled (letter at C=100: 89 outer steps with 1,024, 15 with more).
_CROWDED = 0.6
_CROWDED_SHARE = 0.1
_LARGEST_BLOCK = 3072
# Blocks of a few variables gain so little that a stall is seen where there is none; this one takes 2 kB.
_SMALLEST_BLOCK = 16
# How far below the current violation a block is solved, and how many steps it may take before the rest is looked at.
_INNER_SHARE = 0.3
_INNER_STEPS = 20
# Blocks in a row that pair steps may leave unsolved before Newton steps are tried: those cost as much as a block does,
# and in a block that new variables will change they are wasted (letter at C=100: 0.34 s with 0, 0.27 s with 2).
_STUCK = 2
# Outer steps in a row without a measurable gain of the dual value before the loop gives up.
_PATIENCE = 5
_WINDOW = 100
# A violation this many times above the noise of a single gradient can still be its doing: pairs of gradients are
# compared, and the errors of steps add up.
FLOOR = 100


def decompose(field: Field, stop: Stop, report: Report | None = None, shrinking: bool = True) -> Solution:
    """Move the field until its running violation is at most `stop.tol`, or a limit is met."""
    problem, gram = field.problem, field.gram
    largest = max(_SMALLEST_BLOCK, math.isqrt(gram.budget // 32))  # a block may take a quarter of the budget
    q, share = min(problem.n_variables if problem.n_variables <= _ONE_BLOCK else _BLOCK, largest), _INNER_SHARE
    steps, stuck, watch = 0, 0, StallWatch(whole=q == problem.n_variables)
    while True:
        violation = field.violation()[0]
        if report is not None:
            report(partial(_words, field, steps, violation))
        if violation <= stop.tol:
            return Solution(field.beta, steps, "converged", not field.shrunk)
        stalled = watch.stalled(violation, rounding_noise(gram, problem, field.beta))
        limit: StopReason | None = stop.limit(steps) or ("stalled" if stalled else None)
        if limit == "stalled" and field.shrunk:
            # Perhaps what was dropped would move again: it stays from now on.
            field.unshrink()
            shrinking, watch = False, StallWatch(whole=False)
            continue
        if limit is not None:
            return Solution(field.beta, steps, limit, not field.shrunk)

        J = field.violators(q, _KEEP)
        K, h, d, before = field.block(J), field.gradient(J), problem.d[J], field.beta[J]
        after = before.copy()
        taken, _, reason = _core.smo(
            K,
            h,
            after,
            problem.lower[J],
            problem.upper[J],
            d,
            problem.group[J],
            max(share * violation if len(J) < problem.n_variables else 0.0, 0.5 * stop.tol),
            min(_INNER_STEPS * len(J), stop.max_iter - steps),
            stop.seconds,
        )
        if reason == "nonfinite":
            raise FloatingPointError(
                f"the gradient became non-finite: kernel values up to {gram.diagonal.max():.3g} overflow together with "
                f"bounds up to {np.abs(problem.upper - problem.lower).max():.3g}. Scale the features or lower C"
            )
        steps += taken
        if reason == "converged" and len(J) == problem.n_variables:
            return Solution(after, steps, "converged")
        stuck = stuck + 1 if reason in ("max_steps", "stalled") else 0
        if stuck > _STUCK or reason == "stalled":
            delta = after - before
            after = climb_face(problem, J, K, h - K @ delta - d * delta, after, gram.n_threads)
        field.move(J, after)
        # The dual is quadratic: it grew by the step times the mean of the gradients before and after.
        watch.gained(inner(after - before, 0.5 * (h + field.gradient(J))))
        if len(J) < problem.n_variables:
            free = int(((after > problem.lower[J]) & (after < problem.upper[J])).sum())
            if free > _CROWDED * q:
                q, share = min(2 * q, _LARGEST_BLOCK, largest), _CROWDED_SHARE
            if shrinking:
                field.shrink()


def _words(field: Field, steps: int, violation: float) -> str:
    """How far the loop is, for people."""
    problem, beta = field.problem, field.beta
    h = problem.gradient(beta, field.u)
    _, b = problem.violation_and_offsets(beta, h)
    _, terms = gap_terms(problem, beta, h - (b[problem.group] if len(b) else 0.0))
    return running_words(steps, int(np.count_nonzero(beta)), violation, float(terms.sum()), field.shrunk)


def running_words(steps: int, support: int, violation: float, gap: float, shrunk: bool) -> str:
    """A line about a running solve; while variables are dropped the gap is about right, because their rows lag."""
    return (
        f"{steps:>10,} steps  {support:>7,} support vectors  violation {violation:.3e}  "
        f"gap {'~' if shrunk else ' '}{gap:.3e}"
    )


def rounding_noise(gram: Gram, problem: DualProblem, beta: Floats) -> float:
    """What float64 leaves uncertain in a gradient: terms of u_i add up to at most √K_ii Σ_j √K_jj |β_j|."""
    length = np.sqrt(np.abs(gram.diagonal))
    size = float(length.max()) * inner(length[problem.row], np.abs(beta)) + float(np.abs(problem.p).max())
    return float(np.finfo(float).eps) * size


def rounding_floor(gram: Gram, problem: DualProblem, beta: Floats) -> float:
    """How large a violation at β rounding alone can feign."""
    return FLOOR * rounding_noise(gram, problem, beta)


class StallWatch:
    """Gives up after a few outer steps without any gain, or more of them without a smaller violation.

    The second is for rounding that feigns gains: steps go round in circles, each of which looks like an increase. Near
    the floor of rounding some steps are enough to tell, elsewhere the gains of a window must be next to nothing.
    """

    def __init__(self, whole: bool) -> None:
        self._whole = whole  # every step sees all variables, so that the violation must fall
        self._total = self._gain_since = 0.0
        self._idle = self._age = self._near = 0
        self._best = math.inf

    def gained(self, gain: float) -> None:
        self._idle = 0 if gain > np.finfo(float).eps * self._total else self._idle + 1
        self._total += max(gain, 0.0)
        self._gain_since += max(gain, 0.0)

    def stalled(self, violation: float, noise: float) -> bool:
        self._age += 1
        if violation < 0.9 * self._best:
            self._best, self._age, self._gain_since = violation, 0, 0.0
        near = self._best <= FLOOR * noise
        self._near += near
        at_floor = near and (self._age >= 4 * _PATIENCE or self._near >= 2 * _WINDOW)
        circling = self._age >= _WINDOW and (self._whole or self._gain_since <= 1e-12 * self._total)
        return violation <= noise or at_floor or circling or self._idle >= _PATIENCE
