"""Block decomposition with a proof: solve and certify, and continue from the certificate's numbers until it is good."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import NEGLIGIBLE_SHARE, PROOF, LastSums, certificate_of, certify_dual, coarse_pass
from mercer.places.ball import Ball
from mercer.places.gram import Gram, Provable
from mercer.places.host.stored_gram import StoredField
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, Precision, Values, gamma, inner
from mercer.solvers.deadline import GRACE_SECONDS, ProofTime, in_time
from mercer.solvers.dual.decomposition import decompose, is_one_block, rounding_floor, solve_one_block
from mercer.solvers.refine import Refinement, holding
from mercer.solvers.solution import Solution, Stop, StopReason
from mercer.solvers.solver import Solver

_NO_PASS = "one pass over the kernel values of a first guess takes longer. Raise max_time, or use fewer samples"

# The share of tol that steps on a stored K leave: the rest covers the rounding errors that the certificate adds.
SOLVED_SHARE = 0.85
# Pair steps per variable on a stored K before another solver takes over, whose blocks would be computed anew: spam with
# C up to 10,000 needs at most 20.
STORED_STEPS = 100
# A gap above the first share of the dual value, more than the second of which is rounding of stored values in β'Kβ, is
# worth rows with a coefficient in float64: the losses of these rows have as much again.
_WIDE_SHARE, _ROUNDING_SHARE = 1e-3, 0.25

# The number of pilot samples, and the number of rows from which on they save time (one-class on usps: half of it).
_PILOT_ROWS = 256
_ROWS_FOR_PILOTS = 3000

# From β, u = Kβ if it is known, the precision of kernel values, a stop, and whether variables may be dropped.
Inner = Callable[[Floats, Floats | None, Precision, Stop, bool], Solution]


def solve_certified(
    problem: DualProblem, gram: Gram, stop: Stop, start: Floats | None = None, *, shrinking: bool = True
) -> tuple[Solution, Certificate]:
    """A solution whose certificate says that `stop` is met, or why it is not."""
    one_block, steps = is_one_block(problem, gram), 0
    known = gram.precisions == (np.float64,) and gram.positive_definite == "yes"
    if one_block and known and gram.proof is gram and stop.deadline == math.inf:
        start = _starting_point(problem, gram) if start is None else start
        solution, certificate = _at_once(problem, gram, stop, start)
        if certificate is not None:
            return solution, certificate
        # What pair steps alone did not settle, or not to the last digit.
        start, steps, one_block = solution.beta, solution.steps, False
    inner = partial(_decomposed, problem, gram, one_block)
    solution, certificate = refined(problem, gram, stop.after(steps), start, inner, shrinking)
    return replace(solution, steps=steps + solution.steps), certificate


def _at_once(problem: DualProblem, gram: Gram, stop: Stop, start: Floats) -> tuple[Solution, Certificate | None]:
    """A small problem's solution and, where it meets `stop`, its certificate; without one it is a better start.

    A fit of a hundred samples takes less time in the core than in the Python around it, so there is little of that: K
    in float64 serves for the steps and for the certificate. It depends on the samples alone, and steps only read it.
    What they know of u is thrown away: u = Kβ is summed anew, and its bounds count the roundings of every value.
    """
    K = gram.full(np.float64)
    u = _times(K, problem.row_coefficients(start, gram.n)) if start.any() else None
    solution = solve_one_block(problem, gram, K, start, u, np.float64, stop)
    if solution.stop_reason != "converged":
        return solution, None
    coefficients = problem.row_coefficients(solution.beta, gram.n)
    u, reach = _times(K, coefficients), gram.reach
    # In which order NumPy adds is its own affair; sums with zero are exact.
    summed = gamma(int(np.count_nonzero(coefficients))) * inner(reach, np.abs(coefficients))
    error = gram.errors(coefficients) + summed * reach
    if error.max(initial=0.0) > NEGLIGIBLE_SHARE * stop.tol:  # some rows have to be computed in another way
        certificate, u = certify_dual(problem, gram, solution.beta, stop.tol)
    else:
        certificate = certificate_of(problem, solution.beta, Ball(u, error), reach, PROOF["yes"], "float64")
    return replace(solution, u=u), certificate if stop.met(certificate) else None


def _times(K: Values, coefficients: Floats) -> Floats:
    """Kβ without a second matrix, and without the threads that BLAS starts."""
    return np.asarray(np.einsum("ij,j->i", K, coefficients))


def solve_stored(problem: DualProblem, field: StoredField, stop: Stop, finish: Solver) -> tuple[Solution, Certificate]:
    """A solution on a stored K and its proof, from where the field's last problem ended.

    `finish` takes over where pair steps make too little progress, or end with a certificate that is not good enough.
    """
    start, inner = field.start(problem), partial(_stored_steps, problem, field)
    solution, certificate = refined(problem, field.gram, stop, start, inner, False, field)
    if not stop.met(certificate) and stop.limit(solution.steps) is None:
        steps = solution.steps
        solution, certificate = finish(problem, field.gram, stop.after(steps), solution.beta)
        field.move(problem, solution.beta)
        return replace(solution, steps=solution.steps + steps), certificate
    coefficients = problem.row_coefficients(solution.beta, field.n)
    errors = field.e[field.rows]
    rounding = np.abs(coefficients) @ errors > _ROUNDING_SHARE * certificate.gap
    if rounding and certificate.relative_gap > _WIDE_SHARE:
        coarse = (coefficients != 0) & (errors > 2 * field.errors(coefficients))
        field.sharpen(field.rows[np.flatnonzero(coarse)])
        sharper = certify_dual(problem, field, solution.beta, stop.tol)[0]
        certificate = min(certificate, sharper, key=lambda one: one.gap)
    return solution, certificate


def _stored_steps(
    problem: DualProblem,
    field: StoredField,
    beta: Floats,
    u: Floats | None,
    precision: Precision,
    stop: Stop,
    shrinking: bool,
) -> Solution:
    """Pair steps from where the field is. Those that settled nothing end as a limit would: another solver goes on."""
    most = min(STORED_STEPS * problem.n_variables, stop.max_iter)
    beta, steps, reason = field.pair_steps(problem, SOLVED_SHARE * stop.tol, most, stop.seconds)
    ends: dict[str, StopReason] = {"converged": "converged", "stalled": "stalled", "max_seconds": "max_time"}
    return Solution(beta, steps, ends.get(reason, "max_iter"))


def refined(
    problem: DualProblem,
    gram: Gram,
    stop: Stop,
    start: Floats | None,
    inner: Inner,
    shrinking: bool,
    proof: Provable | None = None,
) -> tuple[Solution, Certificate]:
    """A solution by a solver without proof, `inner`, called until its certificate is good.

    A `proof` that has u = Kβ at hand may stand in for that of the Gram, from which the sums of one certificate are kept
    for the next.
    """
    beta: Floats = _starting_point(problem, gram) if start is None else start
    u: Floats | None = None
    last = LastSums() if proof is None else None
    precisions: Sequence[Precision] = gram.precisions if proof is None else (np.float64,)
    proof, seconds = gram.proof if proof is None else proof, ProofTime(gram, stop)
    stop = replace(stop, proof_seconds=seconds)
    if len(precisions) > 1:
        precisions = holding(precisions, _size_of_sums(problem, gram))
    ask = Refinement(stop, precisions, shrinking, partial(rounding_floor, proof, problem))
    while True:
        limit: AbstractContextManager[None] = nullcontext()
        if u is None and beta.any() and seconds(beta) > stop.before_proof(beta).seconds:
            # The solver would begin with a pass for u that is as long as the certificate's.
            solution = Solution(beta, 0, "max_time", whole=False)
            if start is None and stop.alone:
                limit = in_time(stop, _NO_PASS, GRACE_SECONDS)
        else:
            solution = inner(beta, u, ask.precision, ask.asked, ask.shrinking)
        # What is certified, and kept, is feasible; a field that has u at hand has seen to that.
        if last is not None and not problem.keeps_sums(solution.beta):
            solution = replace(solution, beta=problem.nearest_feasible(solution.beta))
        beta, begun = solution.beta, time.monotonic()
        with limit:
            certificate, u = certify_dual(problem, proof, beta, ask.asked.tol, last)
        seconds.took(time.monotonic() - begun, beta)
        reason = ask.judge(solution, certificate)
        if reason is not None:
            return replace(solution, steps=ask.steps, stop_reason=reason, u=u), certificate


def _starting_point(problem: DualProblem, gram: Gram) -> Floats:
    """A feasible β: zero, or with the totals on the variables that should be large.

    A machine whose equalities have totals (one-class, SVDD, ν-machines) cannot start from zero, and an arbitrary start
    has most of its coefficients on the wrong variables. So the totals are first spread over a few pilot samples. The
    gradient there tells which variables should grow, and these get the totals.
    """
    if not problem.totals.any() or gram.n <= _ROWS_FOR_PILOTS:
        return problem.feasible_start()
    pilot = np.isin(problem.row, np.linspace(0, gram.n - 1, _PILOT_ROWS).astype(np.intp))
    spread = np.zeros(problem.n_variables)
    for g, total in enumerate(problem.totals):
        here = pilot & (problem.group == g)
        bound = problem.upper[here] if total > 0 else problem.lower[here]
        if bound.sum() != 0 and np.isfinite(bound).all():
            spread[here] = bound * (total / bound.sum())
    u = gram.product(problem.row_coefficients(spread, gram.n), dtype=gram.precisions[0])
    return problem.feasible_start(problem.p - u[problem.row])


def _size_of_sums(problem: DualProblem, gram: Gram) -> float:
    """About the most that the targets, the bounds, and sums of kernel values with coefficients at their bounds are."""
    with np.errstate(over="ignore"):
        bounds = np.abs(np.concatenate([problem.lower, problem.upper]))
        bound = float(bounds[np.isfinite(bounds)].max(initial=0.0))
        sums = bound * gram.n * max(1.0, float(np.abs(gram.diagonal).max(initial=0.0)))
        return max(sums, float(np.abs(problem.p).max(initial=0.0)) * gram.n)


def _decomposed(
    problem: DualProblem,
    gram: Gram,
    one_block: bool,
    beta: Floats,
    u: Floats | None,
    precision: Precision,
    stop: Stop,
    shrinking: bool,
) -> Solution:
    """Block decomposition, continued on all variables if the certificate that follows will be expensive."""
    begun = 0
    if one_block:
        block = solve_one_block(problem, gram, None, beta, u, precision, stop)
        if block.stop_reason != "stalled":
            return block
        beta, begun = block.beta, block.steps
        u, stop = u if begun == 0 else None, stop.after(begun)
    field = gram.field(problem, beta, u, precision)
    first = decompose(field, stop, shrinking)
    first = replace(first, steps=begun + first.steps)
    over = first.stop_reason in ("max_iter", "max_time")
    if first.whole or over or coarse_pass(gram.proof):
        return first
    # In the solver's precision it is cheaper to find out whether the certificate can be good.
    field.unshrink()
    rest = decompose(field, stop.after(first.steps - begun), shrinking)
    return replace(rest, steps=first.steps + rest.steps)
