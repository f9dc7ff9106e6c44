"""Block decomposition: the loop over working sets, for machines with one or two variables per sample.

    start from a feasible β, then repeat  (Igel, Alg. 4.1)
    1. stop if the violation is at most tol;
    2. choose the working set: the worst violators and half of the last set;
    3. solve the problem restricted to it by sequential minimal optimisation;
    4. update u = Kβ, and drop variables that stay at their bounds (shrinking)

The loop works on a Field and uses neither kernels nor data. A small problem is one block, solved in one pass. Where a
pass over all rows is expensive, working sets are nested: a large one is chosen, and the same loop solves the problem on
it by smaller blocks, with all other variables fixed. A field on a device may take several rounds between two checks
(`run_device_rounds`), with the block sizes chosen here.

Other loops over working sets: solver="chunking" (chunking.py) keeps all support vectors in its chunks, and solves and
certifies each chunk by this loop. Searches on a stored K take pair steps (`Float32Matrix.steps`), and on a device
`run_device_rounds` without this loop, since they drop no variables. The joint machines ascend by blocks of samples
(solvers/joint/).
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from mercer import _core
from mercer.certificates.dual import certificate_of
from mercer.places.ball import Ball
from mercer.places.gram import BoundedProducts, Field, Gram
from mercer.places.host.blocks import BLOCK, INNER_STEPS, KEPT_SHARE, BlockSize, run_device_rounds
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, Indices, Precision, Values, inner
from mercer.solvers.block_steps import FLOOR, StallWatch, largest_block, overflow_error, progress_line
from mercer.solvers.dual.newton import newton_on_face
from mercer.solvers.refine import has_progressed
from mercer.solvers.solution import Solution, Stop, StopReason

# Up to this many variables the whole problem is one block, which is faster (letter, spam, usps).
_ONE_BLOCK_VARIABLES = 2500
# A nested set is solved to this share of the violation. A smaller one saves few rounds and costs kernel values: mixture
# 50,000 (benchmarks/nested_sets.py) takes 7 rounds with 0.3, 9 with 0.5, 11 with 0.6, and 1.05, 1.00 and 0.96 of the
# values of single blocks.
_NESTED_SHARE = 0.5
# The smallest block, for slow kernel values and a `max_time` that leaves no time for a larger one.
_FEWEST_VARIABLES = 32
# Number of blocks in a row that pair steps may leave unsolved before Newton steps are tried. Newton steps are wasted if
# the next block contains new variables.
_UNSOLVED_BLOCKS = 2
# Pair steps per variable before a Newton step on a block of all active variables, doubled if the last Newton step did
# not help (letter at C=100: 147,000 pair steps without Newton steps, 53,000 with two of them).
_STEPS_BEFORE_NEWTON = 3
# Pair steps on one block update at least this many gradients, about 1 ms, before another method is tried.
_FEWEST_CHANGES = 2_000_000
# A factorisation of n variables takes as long as n²/200 pair steps on them (AVX2: 18 ms for 1,584).
_NEWTON_STEPS_SHARE = 1 / 200


def decompose(field: Field, stop: Stop, shrinking: bool = True) -> Solution:
    """Move the field until its running violation is at most `stop.tol`, or a limit is reached.

    If the Gram matrix asks for nested working sets (`outer_rows`), the function calls itself on each of them.
    """
    problem, gram = field.problem, field.gram
    n, largest, outer = problem.n_variables, largest_block(gram), gram.outer_rows
    is_nested = 0 < outer < n
    block = BlockSize(min(n if n <= _ONE_BLOCK_VARIABLES else BLOCK, largest), largest)
    if is_nested:
        block = BlockSize(outer, outer, _NESTED_SHARE)
    steps, watch, blocks = 0, StallWatch(sees_all=block.size == n), _Blocks(field)
    noise = RoundingNoise(gram, problem, field.beta)
    while True:
        # 1. Measure the violation; stop if it is small enough, or at a limit.
        violation = field.violation()[0]
        if stop.report is not None:
            state = field.beta, field.u, stop.done + steps, violation, field.shrunk
            stop.report(partial(dual_progress_line, problem, *state), stop.ratio_to_tol(violation))
        if violation <= stop.tol:
            return Solution(field.beta, steps, "converged", not field.shrunk)
        remaining = stop.before_proof(field.beta)
        limit = remaining.limit(steps) or watch.verdict(violation, noise.size)
        if limit == "stalled" and field.shrunk:
            # The dropped variables may be able to move again: from now on none is dropped.
            field.unshrink()
            shrinking, watch = False, StallWatch()
            continue
        if limit is not None:
            return Solution(field.beta, steps, limit, not field.shrunk)
        # 2. Let a field on a device take several rounds by itself, if it can.
        device_steps = (
            0
            if is_nested
            else run_device_rounds(field, block, stop.tol, remaining.max_iter - steps, remaining.deadline)[0]
        )
        if device_steps:
            steps, watch = steps + device_steps, StallWatch(sees_all=block.size == n)
            noise.restart(field.beta)
            if shrinking:
                field.shrink()
            continue

        # 3. Choose the working set J and solve the problem restricted to it.
        J = field.violators(_block_in_time(block.size, stop, remaining), KEPT_SHARE)
        J = np.sort(J) if is_nested else J  # a nested problem needs its rows in order
        all_active = len(J) == len(field.active)  # all active variables: no later block will differ
        goal = max(0.0 if all_active else block.share * violation, 0.5 * stop.tol)
        h, old_beta = field.gradient(J), field.beta[J]
        if is_nested:
            inner_stop = _inner_stop(stop.after(steps), goal, field.beta, J)
            block_solution = decompose(field.inner_field(J), inner_stop, shrinking)
        else:
            block_solution = blocks.solve(J, h, violation, replace(remaining.after(steps), tol=goal), all_active)
        steps, new_beta = steps + block_solution.steps, block_solution.beta
        if block_solution.stop_reason == "converged" and len(J) == n:
            return replace(block_solution, steps=steps)
        # 4. Move the field: β on J, and u = Kβ. At the deadline β is enough, since the certificate computes u itself.
        if block_solution.stop_reason == "max_time":
            return Solution(_replace_values(field.beta, J, new_beta), steps, "max_time", not field.shrunk)
        if stop.deadline < math.inf:
            remaining = stop.before_proof(_replace_values(field.beta, J, new_beta))
        try:
            with _core.TimeLimit(remaining.seconds):
                field.move(J, new_beta)
        except _core.OutOfTime:
            return Solution(_replace_values(field.beta, J, new_beta), steps, "max_time", not field.shrunk)
        noise.update(J, old_beta, new_beta)
        # The dual is quadratic: it grows by the step times the mean of the gradients before and after.
        watch.record_gain(inner(new_beta - old_beta, 0.5 * (h + field.gradient(J))))
        # 5. Enlarge blocks that are full of free variables, and drop variables at their bounds.
        if len(J) < n:
            if not is_nested:
                block.double_if_crowded(int(((new_beta > problem.lower[J]) & (new_beta < problem.upper[J])).sum()))
            if shrinking:
                field.shrink()


def _inner_stop(stop: Stop, tol: float, beta: Floats, J: Indices) -> Stop:
    """Return the stopping rule of the problem on J, with time left to certify the variables outside J too."""
    return replace(
        stop.before_proof(_replace_values(beta, J, 0.0)), tol=tol, proof_seconds=stop.proof_seconds, report=None
    )


def _replace_values(beta: Floats, J: Indices, values: Floats | float) -> Floats:
    """Return a copy of β with these values on J."""
    beta = beta.copy()
    beta[J] = values
    return beta


class _Blocks:
    """Solver of the problems on working sets, whose K is stored: pair steps, and a Newton step where these are slow."""

    def __init__(self, field: Field) -> None:
        self._field = field
        self._steps, self._n_unsolved = 0, 0  # pair steps so far, and blocks in a row that they left unsolved
        self._steps_before_newton, self._last_violation = _STEPS_BEFORE_NEWTON, math.inf

    def solve(self, J: Indices, h: Floats, violation: float, stop: Stop, all_active: bool) -> Solution:
        """Solve for β on J, where the gradient is h.

        `all_active` is True if J holds all active variables.
        """
        field, problem = self._field, self._field.problem
        old_beta, d = field.beta[J], problem.d[J]
        new_beta = old_beta.copy()
        try:
            with _core.TimeLimit(stop.seconds):
                K = field.block(J)
        except _core.OutOfTime:
            return Solution(old_beta, 0, "max_time")
        # 1. Pair steps (sequential minimal optimisation).
        most_steps = (self._steps_before_newton if all_active and self._steps else INNER_STEPS) * len(J)
        box = (problem.lower[J], problem.upper[J], d, problem.group[J])
        limits = (stop.tol, min(most_steps, stop.max_iter), stop.seconds)
        steps, violation_left, reason = _core.smo(K, h, new_beta, *box, *limits)
        if reason == "nonfinite":
            raise overflow_error(field.gram, np.abs(problem.upper - problem.lower))
        self._steps += steps
        if reason == "max_seconds":
            return Solution(new_beta, steps, "max_time")
        self._n_unsolved = self._n_unsolved + 1 if reason in ("max_steps", "stalled") else 0
        if self._n_unsolved == 0:
            return Solution(new_beta, steps, "converged" if reason == "converged" else "stalled")
        # 2. A Newton step on the free variables, if pair steps left the block unsolved and are slow.
        is_slow = all_active and _is_slow(steps, violation, violation_left, stop.tol, len(J))
        if is_slow or self._n_unsolved > _UNSOLVED_BLOCKS or reason == "stalled":
            if not has_progressed(violation_left, self._last_violation):
                self._steps_before_newton = min(2 * self._steps_before_newton, INNER_STEPS)
            self._last_violation = violation_left
            change = d * (new_beta - old_beta)
            _core.add_table(change, K, new_beta - old_beta, stop.n_threads)
            new_beta = newton_on_face(problem, J, K, h - change, new_beta, stop.n_threads)
        return Solution(new_beta, steps, "stalled")


def _block_in_time(q: int, stop: Stop, remaining: Stop) -> int:
    """Return a block size of at most q whose certificate fits into the time that is left."""
    if stop.deadline < math.inf and stop.proof_seconds is not None:
        while q > _FEWEST_VARIABLES and stop.proof_seconds(np.ones(q)) > remaining.seconds:
            q //= 2
    return q


def _is_slow(steps: int, start_violation: float, violation_left: float, target: float, size: int) -> bool:
    """Return whether pair steps, at their rate so far, would take longer to the target violation than a Newton step."""
    if not 0 < target < violation_left < start_violation:  # no progress, or a target of zero
        return target < violation_left
    if start_violation / violation_left == 1.0:  # neighbouring numbers, whose quotient is rounded to 1
        return True
    return (
        steps * math.log(violation_left / target) / math.log(start_violation / violation_left)
        > _NEWTON_STEPS_SHARE * size**2
    )


def is_one_block(problem: DualProblem, gram: Gram) -> bool:
    """Return whether all variables fit into one block, the Gram matrix is concurrent, and twins are in row order."""
    if problem.n_variables > min(_ONE_BLOCK_VARIABLES, largest_block(gram)) or not gram.concurrent:
        return False
    return not problem.twins or (problem.tiled and problem.n_variables == 2 * gram.n)


def solve_one_block(
    problem: DualProblem, gram: Gram, K: Values | None, beta: Floats, u: Floats | None, precision: Precision, stop: Stop
) -> Solution:
    """Solve a problem that is one block (`is_one_block`) by pair steps on the whole of K.

    The start is β, with u = Kβ if it is known; K is computed if it is None. If pair steps do not solve the problem, the
    stop reason is "stalled", and `decompose` continues from there.
    """
    # 1. Measure the violation of the start, and stop if it is small enough, or at a limit.
    violation = math.inf
    if beta.any():
        u = gram.product(problem.row_coefficients(beta, gram.n), dtype=precision) if u is None else u
        selector = problem.working_set_selector(beta, u)
        selector.choose(np.arange(len(beta)))  # all variables are active
        violation = selector.ends()[0]
    h = problem.p if u is None else problem.gradient(beta, u)
    if stop.report is not None:
        start = np.zeros(gram.n) if u is None else u
        goal_ratio = stop.ratio_to_tol(violation) if violation < math.inf else math.nan
        stop.report(partial(dual_progress_line, problem, beta, start, stop.done, violation), goal_ratio)
    if violation <= stop.tol:
        return Solution(beta, 0, "converged")
    remaining = stop.before_proof(beta)
    limit = remaining.limit(0)
    if limit is not None:
        return Solution(beta, 0, limit)
    # 2. Compute K, unless it is given.
    try:
        if K is None:
            with _core.TimeLimit(remaining.seconds):
                K = gram.full(precision)
    except _core.OutOfTime:
        return Solution(beta, 0, "max_time")
    # 3. Pair steps on all variables.
    new_beta = beta.copy()
    most_steps = max(INNER_STEPS * len(new_beta), _FEWEST_CHANGES // max(1, len(new_beta)))
    box = (problem.lower, problem.upper, problem.d, problem.group)
    limits = (0.5 * stop.tol, min(most_steps, stop.max_iter), remaining.seconds)
    steps, _, reason = _core.smo(K, h, new_beta, *box, *limits, problem.twins)
    if reason == "nonfinite":
        raise overflow_error(gram, np.abs(problem.upper - problem.lower))
    ends: dict[str, StopReason] = {"converged": "converged", "max_seconds": "max_time"}
    return Solution(new_beta, steps, ends.get(reason, "stalled"))


def dual_progress_line(
    problem: DualProblem, beta: Floats, u: Floats, steps: int, violation: float, shrunk: bool = False
) -> str:
    """Return the progress line of a solve at β and u = Kβ."""
    no_errors = np.zeros(len(u))  # no error bounds: these numbers are shown, not proven
    estimate = certificate_of(problem, beta, Ball(u, no_errors), no_errors, "stationarity", "float64")
    shown_violation = violation if violation < math.inf else estimate.violation
    return progress_line(steps, int(np.count_nonzero(beta)), shown_violation, estimate.gap, shrunk)


class RoundingNoise:
    """Rounding error of a gradient in float64: the terms of u_i add up to at most √K_ii Σ_j √K_jj |β_j|."""

    def __init__(self, gram: BoundedProducts, problem: DualProblem, beta: Floats) -> None:
        lengths = np.sqrt(np.abs(gram.diagonal))
        self._sizes = float(lengths.max()) * lengths[problem.row]
        self._target = float(np.abs(problem.p).max())
        self.restart(beta)

    def restart(self, beta: Floats) -> None:
        """Compute the rounding error for another β."""
        self._terms = inner(self._sizes, np.abs(beta)) + self._target

    def update(self, J: Indices, old_beta: Floats, new_beta: Floats) -> None:
        """Update the rounding error after a change of β on J."""
        self._terms += inner(self._sizes[J], np.abs(new_beta) - np.abs(old_beta))

    @property
    def size(self) -> float:
        """Upper bound on the rounding error of every gradient entry."""
        return float(np.finfo(float).eps) * self._terms


def rounding_floor(gram: BoundedProducts, problem: DualProblem, beta: Floats) -> float:
    """Return the largest violation at β that may be caused by rounding alone."""
    proven = gram.errors(problem.row_coefficients(beta, gram.n), level=gram.levels[-1])
    return max(FLOOR * RoundingNoise(gram, problem, beta).size, 4 * float(proven.max(initial=0.0)))
