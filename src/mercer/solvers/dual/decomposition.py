"""Block decomposition: the loop over working sets of machines with one or two variables per sample.

    β ← feasible;  repeat: take the worst violators and half of the last set, solve the problem restricted to them by
    sequential minimal optimisation, update u = Kβ; until the violation is at most tol  (Igel, Alg. 4.1)

The loop works on a Field and sees neither kernels nor data. A small problem is one block, solved in one pass. Where a
pass over all rows has a price of its own, working sets are nested: a large one is chosen, and the loop solves the
problem on it, with all others held, by blocks of its own. A field on a device may take several rounds between two looks
(`take_rounds`), with blocks of the sizes that are decided here.

Other loops over working sets: solver="chunking" (chunking.py) keeps all support vectors in its chunks, and solves each
with a proof, by this loop. Searches on a stored K take pair steps (`Rounded.steps`), and on a device `take_rounds`
without this loop, since they drop no variables. The joint machines ascend by blocks of samples (solvers/joint/).
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from mercer import _core
from mercer.certificates.dual import certificate_of
from mercer.places.ball import Ball
from mercer.places.gram import Field, Gram, Provable
from mercer.places.host.blocks import BLOCK, INNER_STEPS, KEPT_SHARE, BlockSize, take_rounds
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, Indices, Precision, Values, inner
from mercer.solvers.block_steps import FLOOR, StallWatch, largest_block, overflow, running_words
from mercer.solvers.dual.newton import climb_face
from mercer.solvers.refine import progressed
from mercer.solvers.solution import Solution, Stop, StopReason

# Up to this many variables the whole problem is one block, which is faster up to this size (letter, spam, usps).
_ONE_BLOCK_VARIABLES = 2500
# A nested set is solved to this share of the violation. A smaller one saves few rounds and costs kernel values: mixture
# 50,000 (benchmarks/nested_sets.py) takes 7 rounds with 0.3, 9 with 0.5, 11 with 0.6, and 1.05, 1.00 and 0.96 of the
# values of single blocks.
_NESTED_SHARE = 0.5
# The smallest block, where slow kernel values and `max_time` leave no time for a larger one.
_FEWEST_VARIABLES = 32
# Blocks in a row that pair steps may leave unsolved before Newton steps are tried, which are wasted in a block that new
# variables will change. Where a block holds all active variables, none will: there pair steps take at most this many
# per variable before a Newton step, and twice as many if the last one did not help (letter at C=100: 147,000 pair
# steps without Newton steps, 53,000 with two of them).
_UNSOLVED_BLOCKS = 2
_STEPS_BEFORE_NEWTON = 3
# Pair steps on one block update at least this many gradients, about 1 ms, before another method is tried.
_FEWEST_CHANGES = 2_000_000
# A factorisation of n variables takes as long as n²/200 pair steps on them (AVX2: 18 ms for 1,584).
_NEWTON_STEPS_SHARE = 1 / 200


def decompose(field: Field, stop: Stop, shrinking: bool = True) -> Solution:
    """Move the field until its running violation is at most `stop.tol`, or a limit is reached.

    Where the Gram asks for larger working sets than one block, this loop also solves the problem on each of them.
    """
    problem, gram = field.problem, field.gram
    n, largest, outer = problem.n_variables, largest_block(gram), gram.outer_rows
    nested = 0 < outer < n
    block = BlockSize(min(n if n <= _ONE_BLOCK_VARIABLES else BLOCK, largest), largest)
    if nested:
        block = BlockSize(outer, outer, _NESTED_SHARE)
    steps, watch, blocks = 0, StallWatch(sees_all=block.size == n), _Blocks(field)
    noise = RoundingNoise(gram, problem, field.beta)
    while True:
        violation = field.violation()[0]
        if stop.report is not None:
            reached = field.beta, field.u, stop.done + steps, violation, field.shrunk
            stop.report(partial(line_of, problem, *reached), stop.times_tol(violation))
        if violation <= stop.tol:
            return Solution(field.beta, steps, "converged", not field.shrunk)
        left = stop.before_proof(field.beta)
        limit = left.limit(steps) or watch.verdict(violation, noise.size)
        if limit == "stalled" and field.shrunk:
            # Perhaps the dropped variables could move again: from now on none is dropped.
            field.unshrink()
            shrinking, watch = False, StallWatch()
            continue
        if limit is not None:
            return Solution(field.beta, steps, limit, not field.shrunk)
        alone = 0 if nested else take_rounds(field, block, stop.tol, left.max_iter - steps, left.deadline)[0]
        if alone:
            steps, watch = steps + alone, StallWatch(sees_all=block.size == n)
            noise.restart(field.beta)
            if shrinking:
                field.shrink()
            continue

        J = field.violators(_block_in_time(block.size, stop, left), KEPT_SHARE)
        J = np.sort(J) if nested else J  # the rows of a problem of its own are in order
        everything = len(J) == len(field.active)  # no other variable can be chosen, so there is nothing to wait for
        goal = max(0.0 if everything else block.share * violation, 0.5 * stop.tol)
        h, before = field.gradient(J), field.beta[J]
        if nested:
            asked = _inner_stop(stop.after(steps), goal, field.beta, J)
            found = decompose(field.inside(J), asked, shrinking)
        else:
            found = blocks.solve(J, h, violation, replace(left.after(steps), tol=goal), everything)
        steps, after = steps + found.steps, found.beta
        if found.stop_reason == "converged" and len(J) == n:
            return replace(found, steps=steps)
        # Where time runs out, the certificate needs neither u nor the field.
        if found.stop_reason == "max_time":
            return Solution(_with(field.beta, J, after), steps, "max_time", not field.shrunk)
        if stop.deadline < math.inf:
            left = stop.before_proof(_with(field.beta, J, after))
        try:
            with _core.TimeLimit(left.seconds):
                field.move(J, after)
        except _core.OutOfTime:
            return Solution(_with(field.beta, J, after), steps, "max_time", not field.shrunk)
        noise.moved(J, before, after)
        # The dual is quadratic: it grows by the step times the mean of the gradients before and after.
        watch.gained(inner(after - before, 0.5 * (h + field.gradient(J))))
        if len(J) < n:
            if not nested:
                block.double_if_crowded(int(((after > problem.lower[J]) & (after < problem.upper[J])).sum()))
            if shrinking:
                field.shrink()


def _inner_stop(stop: Stop, tol: float, beta: Floats, J: Indices) -> Stop:
    """The limits of the problem on J: its proof is that of all variables, so the others' share is kept back as well."""
    return replace(stop.before_proof(_with(beta, J, 0.0)), tol=tol, proof_seconds=stop.proof_seconds, report=None)


def _with(beta: Floats, J: Indices, values: Floats | float) -> Floats:
    """β with other values on J."""
    beta = beta.copy()
    beta[J] = values
    return beta


class _Blocks:
    """The problems on working sets whose K is stored: pair steps, and a Newton step where these are slow."""

    def __init__(self, field: Field) -> None:
        self._field = field
        self._steps, self._unsolved = 0, 0  # pair steps so far, and blocks in a row that they left unsolved
        self._before_newton, self._reached = _STEPS_BEFORE_NEWTON, math.inf

    def solve(self, J: Indices, h: Floats, violation: float, stop: Stop, everything: bool) -> Solution:
        """β on J, where the gradient is h; whether J is `everything` that could be chosen."""
        field, problem = self._field, self._field.problem
        before, d = field.beta[J], problem.d[J]
        after = before.copy()
        try:
            with _core.TimeLimit(stop.seconds):
                K = field.block(J)
        except _core.OutOfTime:
            return Solution(before, 0, "max_time")
        most = (self._before_newton if everything and self._steps else INNER_STEPS) * len(J)
        box = (problem.lower[J], problem.upper[J], d, problem.group[J])
        limits = (stop.tol, min(most, stop.max_iter), stop.seconds)
        taken, left_over, reason = _core.smo(K, h, after, *box, *limits)
        if reason == "nonfinite":
            raise overflow(field.gram, np.abs(problem.upper - problem.lower))
        self._steps += taken
        if reason == "max_seconds":
            return Solution(after, taken, "max_time")
        self._unsolved = self._unsolved + 1 if reason in ("max_steps", "stalled") else 0
        if self._unsolved == 0:
            return Solution(after, taken, "converged" if reason == "converged" else "stalled")
        slow = everything and _is_slow(taken, violation, left_over, stop.tol, len(J))
        if slow or self._unsolved > _UNSOLVED_BLOCKS or reason == "stalled":
            if not progressed(left_over, self._reached):
                self._before_newton = min(2 * self._before_newton, INNER_STEPS)
            self._reached = left_over
            change = d * (after - before)
            _core.add_table(change, K, after - before, stop.n_threads)
            after = climb_face(problem, J, K, h - change, after, stop.n_threads)
        return Solution(after, taken, "stalled")


def _block_in_time(q: int, stop: Stop, left: Stop) -> int:
    """At most q variables, so few that the proof of what they add ends in the time that is left."""
    if stop.deadline < math.inf and stop.proof_seconds is not None:
        while q > _FEWEST_VARIABLES and stop.proof_seconds(np.ones(q)) > left.seconds:
            q //= 2
    return q


def _is_slow(taken: int, before: float, after: float, target: float, size: int) -> bool:
    """Whether pair steps at their present pace would take longer to the target than a Newton step."""
    if not 0 < target < after < before:  # nothing was gained, or it can never be enough
        return target < after
    if before / after == 1.0:  # neighbours: their quotient is rounded
        return True
    return taken * math.log(after / target) / math.log(before / after) > _NEWTON_STEPS_SHARE * size**2


def is_one_block(problem: DualProblem, gram: Gram) -> bool:
    """Whether one block has room for all variables, computes quickly, and has twins in the order of their rows."""
    if problem.n_variables > min(_ONE_BLOCK_VARIABLES, largest_block(gram)) or not gram.concurrent:
        return False
    return not problem.twins or (problem.tiled and problem.n_variables == 2 * gram.n)


def solve_one_block(
    problem: DualProblem, gram: Gram, K: Values | None, beta: Floats, u: Floats | None, precision: Precision, stop: Stop
) -> Solution:
    """What `decompose` does first with such a problem, without the field that it does not need.

    From β, and u = Kβ if it is known; K is computed unless it is at hand. Where pair steps did not settle it, the
    reason is "stalled", and `decompose` goes on from there.
    """
    violation = math.inf
    if beta.any():
        u = gram.product(problem.row_coefficients(beta, gram.n), dtype=precision) if u is None else u
        active = problem.chooser(beta, u)
        active.choose(np.arange(len(beta)))
        violation = active.ends()[0]
    h = problem.p if u is None else problem.gradient(beta, u)
    if stop.report is not None:
        start = np.zeros(gram.n) if u is None else u
        missed = stop.times_tol(violation) if violation < math.inf else math.nan
        stop.report(partial(line_of, problem, beta, start, stop.done, violation), missed)
    if violation <= stop.tol:
        return Solution(beta, 0, "converged")
    left = stop.before_proof(beta)
    limit = left.limit(0)
    if limit is not None:
        return Solution(beta, 0, limit)
    try:
        if K is None:
            with _core.TimeLimit(left.seconds):
                K = gram.full(precision)
    except _core.OutOfTime:
        return Solution(beta, 0, "max_time")
    after = beta.copy()
    most = max(INNER_STEPS * len(after), _FEWEST_CHANGES // max(1, len(after)))
    box = (problem.lower, problem.upper, problem.d, problem.group)
    limits = (0.5 * stop.tol, min(most, stop.max_iter), left.seconds)
    steps, _, reason = _core.smo(K, h, after, *box, *limits, problem.twins)
    if reason == "nonfinite":
        raise overflow(gram, np.abs(problem.upper - problem.lower))
    ends: dict[str, StopReason] = {"converged": "converged", "max_seconds": "max_time"}
    return Solution(after, steps, ends.get(reason, "stalled"))


def line_of(problem: DualProblem, beta: Floats, u: Floats, steps: int, violation: float, shrunk: bool = False) -> str:
    """A line about how far a solve is."""
    nothing = np.zeros(len(u))  # these numbers are shown, not proven
    found = certificate_of(problem, beta, Ball(u, nothing), nothing, "stationarity", "float64")
    told = violation if violation < math.inf else found.violation
    return running_words(steps, int(np.count_nonzero(beta)), told, found.gap, shrunk)


class RoundingNoise:
    """The rounding error of a gradient in float64: the terms of u_i add up to at most √K_ii Σ_j √K_jj |β_j|."""

    def __init__(self, gram: Provable, problem: DualProblem, beta: Floats) -> None:
        lengths = np.sqrt(np.abs(gram.diagonal))
        self._sizes = float(lengths.max()) * lengths[problem.row]
        self._target = float(np.abs(problem.p).max())
        self.restart(beta)

    def restart(self, beta: Floats) -> None:
        """At another β."""
        self._terms = inner(self._sizes, np.abs(beta)) + self._target

    def moved(self, J: Indices, before: Floats, after: Floats) -> None:
        """β changed on J."""
        self._terms += inner(self._sizes[J], np.abs(after) - np.abs(before))

    @property
    def size(self) -> float:
        return float(np.finfo(float).eps) * self._terms


def rounding_floor(gram: Provable, problem: DualProblem, beta: Floats) -> float:
    """The largest violation at β that may be rounding alone."""
    proven = gram.errors(problem.row_coefficients(beta, gram.n), level=gram.levels[-1])
    return max(FLOOR * RoundingNoise(gram, problem, beta).size, 4 * float(proven.max(initial=0.0)))
