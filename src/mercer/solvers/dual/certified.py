"""Block decomposition with a certificate: solve, certify, and continue from the certified u until `stop` is met."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import NEGLIGIBLE_SHARE, PROOF, LastSums, certificate_of, certify_dual, has_float32_pass
from mercer.places.ball import Ball
from mercer.places.gram import BoundedProducts, Gram
from mercer.places.host.stored_gram import StoredField
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, Precision, Values, gamma, inner
from mercer.solvers.block_steps import overflow_error
from mercer.solvers.deadline import GRACE_SECONDS, ProofTime, enforce_deadline
from mercer.solvers.dual.decomposition import decompose, is_one_block, rounding_floor, solve_one_block
from mercer.solvers.refine import Refinement, sufficient_precisions
from mercer.solvers.solution import Solution, Stop, StopReason
from mercer.solvers.solver import Solver

_NO_PASS = "one pass over the kernel values of the starting point takes longer. Raise max_time, or use fewer samples"

# Steps on a stored K aim at this share of tol; the rest covers the rounding errors that the certificate adds.
SOLVED_SHARE = 0.85
# Pair steps per variable on a stored K before another solver takes over, which has to compute its blocks again: spam
# with C up to 10,000 needs at most 20.
STORED_STEPS = 100
# If the gap exceeds _WIDE_SHARE of the dual value, and rounding of stored values in β'Kβ exceeds _ROUNDING_SHARE of the
# gap, the rows with a nonzero coefficient are computed again in float64; the losses of these rows contain the same
# rounding error once more.
_WIDE_SHARE, _ROUNDING_SHARE = 1e-3, 0.25

# Number of pilot samples, and the number of rows above which they save time (one-class on usps: half of it).
_PILOT_ROWS = 256
_ROWS_FOR_PILOTS = 3000

# Function of β, u = Kβ if known, the precision of kernel values, a stopping rule, and whether shrinking is allowed.
InnerSolver = Callable[[Floats, Floats | None, Precision, Stop, bool], Solution]


def solve_certified(
    problem: DualProblem,
    gram: Gram,
    stop: Stop,
    start: Floats | None = None,
    *,
    start_u: Floats | None = None,
    shrinking: bool = True,
) -> tuple[Solution, Certificate]:
    """Solve a dual problem by block decomposition and certify the solution.

    `start_u` is u = Kβ at the start, if it is known in the first of the Gram's precisions.
    """
    one_block, steps = is_one_block(problem, gram), 0
    only_float64 = gram.precisions == (np.float64,) and gram.positive_definite == "yes"
    if one_block and only_float64 and gram.proof is gram and stop.deadline == math.inf:
        start = _starting_point(problem, gram) if start is None else start
        solution, certificate = _solve_as_one_block(problem, gram, stop, start)
        if certificate is not None:
            return solution, certificate
        # Pair steps alone did not reach the goal: decomposition continues from their β.
        start, start_u, steps, one_block = solution.beta, None, solution.steps, False
    inner = partial(_solve_by_decomposition, problem, gram, one_block)
    solution, certificate = solve_and_refine(problem, gram, stop.after(steps), start, inner, shrinking, u=start_u)
    return replace(solution, steps=steps + solution.steps), certificate


def _solve_as_one_block(
    problem: DualProblem, gram: Gram, stop: Stop, start: Floats
) -> tuple[Solution, Certificate | None]:
    """Solve a small problem as one block; return the solution and, if it meets `stop`, its certificate.

    Without a certificate the solution is a start for another solver. For a hundred samples the Python code takes longer
    than the core, so this function is short: one float64 matrix K serves for the steps and for the certificate. The
    steps only read K, and their u is not used: u = Kβ is summed again, with error bounds that count every rounding.
    """
    K = gram.full(np.float64)
    u = _product(K, problem.row_coefficients(start, gram.n)) if start.any() else None
    solution = solve_one_block(problem, gram, K, start, u, np.float64, stop)
    if solution.stop_reason != "converged":
        return solution, None
    coefficients = problem.row_coefficients(solution.beta, gram.n)
    u, entry_bounds = _product(K, coefficients), gram.entry_bounds
    # A bound for any order of summation in NumPy; adding zeros is exact.
    sum_rounding = gamma(int(np.count_nonzero(coefficients))) * inner(entry_bounds, np.abs(coefficients))
    error = gram.errors(coefficients) + sum_rounding * entry_bounds
    if error.max(initial=0.0) > NEGLIGIBLE_SHARE * stop.tol:  # some rows need a sharper computation
        certificate, u = certify_dual(problem, gram, solution.beta, stop.tol)
    else:
        certificate = certificate_of(problem, solution.beta, Ball(u, error), entry_bounds, PROOF["yes"], "float64")
    return replace(solution, u=u), certificate if stop.met(certificate) else None


def _product(K: Values, coefficients: Floats) -> Floats:
    """Return Kβ without a copy of K and without BLAS threads."""
    return np.asarray(np.einsum("ij,j->i", K, coefficients))


def solve_stored(problem: DualProblem, field: StoredField, stop: Stop, finish: Solver) -> tuple[Solution, Certificate]:
    """Solve a dual problem on a stored K, starting from the solution of the field's last problem, and certify.

    `finish` takes over if pair steps make too little progress, or end with a certificate that does not meet `stop`.
    """
    start, inner = field.start(problem), partial(_stored_steps, problem, field)
    solution, certificate = solve_and_refine(problem, field.gram, stop, start, inner, False, field)
    if not stop.met(certificate) and stop.limit(solution.steps) is None:
        steps = solution.steps
        solution, certificate = finish(problem, field.gram, stop.after(steps), solution.beta)
        field.move(problem, solution.beta)
        return replace(solution, steps=solution.steps + steps), certificate
    coefficients = problem.row_coefficients(solution.beta, field.n)
    errors = field.e[field.rows]
    rounding_matters = np.abs(coefficients) @ errors > _ROUNDING_SHARE * certificate.gap
    if rounding_matters and certificate.relative_gap > _WIDE_SHARE:
        is_coarse = (coefficients != 0) & (errors > 2 * field.errors(coefficients))
        field.sharpen(field.rows[np.flatnonzero(is_coarse)])
        sharper_certificate = certify_dual(problem, field, solution.beta, stop.tol)[0]
        certificate = min(certificate, sharper_certificate, key=lambda candidate: candidate.gap)
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
    """Take pair steps from the field's β (an `InnerSolver`).

    Too many steps end with the reason "max_iter", and another solver continues.
    """
    max_steps = min(STORED_STEPS * problem.n_variables, stop.max_iter)
    beta, steps, reason = field.pair_steps(problem, SOLVED_SHARE * stop.tol, max_steps, stop.seconds)
    ends: dict[str, StopReason] = {"converged": "converged", "stalled": "stalled", "max_seconds": "max_time"}
    return Solution(beta, steps, ends.get(reason, "max_iter"))


def solve_and_refine(
    problem: DualProblem,
    gram: Gram,
    stop: Stop,
    start: Floats | None,
    inner: InnerSolver,
    shrinking: bool,
    proof: BoundedProducts | None = None,
    u: Floats | None = None,
) -> tuple[Solution, Certificate]:
    """Call the solver `inner`, which certifies nothing, until the certificate of its solution is good (`Refinement`).

    `u` is Kβ at the start, if the caller knows it. `proof` computes u = Kβ with error bounds. By default it is that of
    the Gram matrix, and the sums of one certificate are kept for the next.
    """
    beta: Floats = _starting_point(problem, gram) if start is None else start
    last = LastSums() if proof is None else None
    precisions: Sequence[Precision] = gram.precisions if proof is None else (np.float64,)
    proof, seconds = gram.proof if proof is None else proof, ProofTime(gram, stop)
    stop = replace(stop, proof_seconds=seconds)
    if len(precisions) > 1:
        precisions = sufficient_precisions(precisions, _size_of_sums(problem, gram))
    refinement = Refinement(stop, precisions, shrinking, partial(rounding_floor, proof, problem))
    while True:
        limit: AbstractContextManager[None] = nullcontext()
        if u is None and beta.any() and seconds(beta) > stop.before_proof(beta).seconds:
            # 1. No time for the solver, whose first pass for u takes as long as the certificate: certify β as it is.
            solution = Solution(beta, 0, "max_time", all_active=False)
            if start is None and stop.only_problem:
                limit = enforce_deadline(stop, _NO_PASS, GRACE_SECONDS)
        else:
            # 2. Solve from β and the certified u.
            solution = inner(beta, u, refinement.precision, refinement.next_stop, refinement.shrinking)
        # 3. Make β feasible; a given `proof` comes with a field that keeps β feasible itself.
        if last is not None and not problem.keeps_sums(solution.beta):
            if not np.isfinite(np.abs(solution.beta).sum()):
                raise overflow_error(gram, np.abs(problem.upper - problem.lower))
            solution = replace(solution, beta=problem.nearest_feasible(solution.beta))
        beta, start_time = solution.beta, time.monotonic()
        # 4. Certify, and decide whether to return to the solver.
        with limit:
            certificate, u = certify_dual(problem, proof, beta, refinement.next_stop.tol, last)
        seconds.record(time.monotonic() - start_time, beta)
        reason = refinement.judge(solution, certificate)
        if reason is not None:
            return replace(solution, steps=refinement.steps, stop_reason=reason, u=u), certificate


def _starting_point(problem: DualProblem, gram: Gram) -> Floats:
    """Return a feasible β: zero, or with the totals on the variables that should be large.

    A machine with nonzero totals in its equalities (one-class, SVDD, ν-machines) cannot start from zero, and an
    arbitrary start has most of its coefficients on the wrong variables. So the totals are first spread over a few pilot
    samples. The gradient there shows which variables should grow, and these get the totals.
    """
    if not problem.totals.any() or gram.n <= _ROWS_FOR_PILOTS:
        return problem.feasible_start()
    pilot = np.isin(problem.row, np.linspace(0, gram.n - 1, _PILOT_ROWS).astype(np.intp))
    spread = np.zeros(problem.n_variables)
    for g, total in enumerate(problem.totals):
        in_pilot = pilot & (problem.group == g)
        bound = problem.upper[in_pilot] if total > 0 else problem.lower[in_pilot]
        if bound.sum() != 0 and np.isfinite(bound).all():
            spread[in_pilot] = bound * (total / bound.sum())
    u = gram.product(problem.row_coefficients(spread, gram.n), dtype=gram.precisions[0])
    return problem.feasible_start(problem.p - u[problem.row])


def _size_of_sums(problem: DualProblem, gram: Gram) -> float:
    """Return a rough upper bound on the targets, the bounds, and the sums u = Kβ with coefficients at their bounds."""
    with np.errstate(over="ignore"):
        bounds = np.abs(np.concatenate([problem.lower, problem.upper]))
        bound = float(bounds[np.isfinite(bounds)].max(initial=0.0))
        sums = bound * gram.n * max(1.0, float(np.abs(gram.diagonal).max(initial=0.0)))
        return max(sums, float(np.abs(problem.p).max(initial=0.0)) * gram.n)


def _solve_by_decomposition(
    problem: DualProblem,
    gram: Gram,
    one_block: bool,
    beta: Floats,
    u: Floats | None,
    precision: Precision,
    stop: Stop,
    shrinking: bool,
) -> Solution:
    """Solve by block decomposition (an `InnerSolver`).

    If the certificate is expensive, a solution with shrunk variables is first continued on all variables.
    """
    first_steps = 0
    if one_block:
        block = solve_one_block(problem, gram, None, beta, u, precision, stop)
        if block.stop_reason != "stalled":
            return block
        beta, first_steps = block.beta, block.steps
        u, stop = u if first_steps == 0 else None, stop.after(first_steps)
    field = gram.field(problem, beta, u, precision)
    first = decompose(field, stop, shrinking)
    first = replace(first, steps=first_steps + first.steps)
    limit_reached = first.stop_reason in ("max_iter", "max_time")
    if first.all_active or limit_reached or has_float32_pass(gram.proof):
        return first
    # Checking the dropped variables in the solver's precision is cheaper than a certificate that fails.
    field.unshrink()
    second = decompose(field, stop.after(first.steps - first_steps), shrinking)
    return replace(second, steps=first.steps + second.steps)
