"""Block decomposition with a proof: solve and certify, and continue from the certificate's numbers until it is good."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mercer.arrays import Floats
from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import NEGLIGIBLE_SHARE, PROOF, LastSums, certificate_of, certify, coarse_pass
from mercer.gram.block_buffer import BlockBuffer
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Report, Solution, Stop
from mercer.solvers.block_steps import INNER_STEPS
from mercer.solvers.dual.decomposition import (
    decompose,
    is_one_block,
    line_of,
    pair_steps,
    rounding_floor,
    solve_one_block,
)
from mercer.solvers.dual.start import starting_point
from mercer.solvers.in_time import GRACE_SECONDS, in_time
from mercer.solvers.proof_time import ProofTime
from mercer.solvers.refine import Refinement, holding

_NO_PASS = "one pass over the kernel values of a first guess takes longer. Raise max_time, or use fewer samples"

# Let pair steps update at least this many gradients (about 1 ms) before trying another method.
_FEWEST_CHANGES = 2_000_000

# From β, u = Kβ if it is known, the precision of kernel values, a stop, and whether variables may be dropped.
Inner = Callable[[Floats, Floats | None, Any, Stop, bool], Solution]


def solve_certified(
    problem: DualProblem,
    gram: Gram,
    stop: Stop,
    start: Floats | None = None,
    report: Report | None = None,
    *,
    shrinking: bool = True,
) -> tuple[Solution, Certificate]:
    """A solution whose certificate says that `stop` is met, or why it is not."""
    if not _is_small(problem, gram, stop):
        inner = partial(_decomposed, problem, gram, report, is_one_block(problem, gram))
        return refined(problem, gram, stop, start, inner, shrinking)
    first = starting_point(problem, gram) if start is None else start
    solution, certificate = _at_once(problem, gram, stop, first, report)
    if certificate is not None:
        return solution, certificate
    # What pair steps alone did not settle, or not to the last digit.
    inner, steps = partial(_decomposed, problem, gram, report, False), solution.steps
    solution, certificate = refined(problem, gram, stop.after(steps), solution.beta, inner, shrinking)
    return replace(solution, steps=steps + solution.steps), certificate


def _is_small(problem: DualProblem, gram: Gram, stop: Stop) -> bool:
    """Whether no precision but float64 is worth while, one block holds all variables, and no time limit is to be kept.

    A fit of a hundred samples takes less time in the core than in the Python around it, so there is as little as
    possible of that.
    """
    return (
        stop.deadline == math.inf
        and gram.precisions == (np.float64,)
        and gram.positive_definite == "yes"
        and is_one_block(problem, gram)
    )


def _at_once(
    problem: DualProblem, gram: Gram, stop: Stop, start: Floats, report: Report | None
) -> tuple[Solution, Certificate | None]:
    """A small problem's solution and, where it meets `stop`, its certificate; without one it is a better start.

    K depends on the samples alone, and pair steps only read it, so it serves for both. What the steps know of u and the
    gradient is thrown away: u = Kβ is summed anew, and its bounds count the roundings of every value and of the sums.
    """
    samples, places = gram.prepared(np.arange(gram.n), np.float64, whole=True)
    beta = start.copy()
    if samples is None:
        return Solution(beta, 0, "stalled"), None
    K = BlockBuffer(samples)(places, gram.diagonal)
    gram.evaluations += len(places) ** 2
    u = _times(K, problem.row_coefficients(beta, gram.n)) if beta.any() else np.zeros(gram.n)
    if report is not None:
        report(partial(line_of, problem, beta, u, stop.done, math.inf), math.nan)
    h = problem.gradient(beta, u) if beta.any() else problem.p
    most = max(INNER_STEPS * len(beta), _FEWEST_CHANGES // max(1, len(beta)))
    steps, reason = pair_steps(problem, gram, K, h, beta, stop, most, math.inf)
    if reason != "converged":
        return Solution(beta, steps, "stalled"), None
    coefficients = problem.row_coefficients(beta, gram.n)
    # In which order NumPy adds is its own affair; sums with zero are exact.
    u, error = _times(K, coefficients), gram.errors(coefficients, in_any_order=int(np.count_nonzero(coefficients)))
    if error.max(initial=0.0) > NEGLIGIBLE_SHARE * stop.tol:  # some rows have to be computed in another way
        certificate, u = certify(problem, gram, beta, stop.tol)
    else:
        certificate = certificate_of(problem, beta, u, PROOF["yes"], "float64", error)
    return Solution(beta, steps, "converged", u=u), certificate if stop.met(certificate) else None


def _times(K: Any, coefficients: Floats) -> Floats:
    """Kβ without a second matrix, and without the threads that BLAS starts."""
    return np.asarray(np.einsum("ij,j->i", K, coefficients))


def refined(
    problem: DualProblem, gram: Gram, stop: Stop, start: Floats | None, inner: Inner, shrinking: bool
) -> tuple[Solution, Certificate]:
    """Call a solver without proof, `inner`, until the certificate of its solution is good."""
    beta: Floats = starting_point(problem, gram) if start is None else start
    u: Floats | None = None
    proof, last = ProofTime(gram, stop), LastSums()
    stop = replace(stop, proof_seconds=proof)
    precisions: Sequence[Any] = gram.precisions
    if len(precisions) > 1:
        precisions = holding(precisions, _size_of_sums(problem, gram))
    ask = Refinement(stop, precisions, shrinking, partial(rounding_floor, gram, problem))
    while True:
        limit: AbstractContextManager[None] = nullcontext()
        if u is None and beta.any() and proof(beta) > stop.before_proof(beta).seconds:
            # The solver would begin with a pass for u that is as long as the certificate's.
            solution = Solution(beta, 0, "max_time", whole=False)
            if start is None and stop.alone:
                limit = in_time(stop, _NO_PASS, GRACE_SECONDS)
        else:
            solution = inner(beta, u, ask.precision, ask.asked, ask.shrinking)
        beta, begun = solution.beta, time.monotonic()
        with limit:
            certificate, u = certify(problem, gram, beta, ask.asked.tol, last)
        proof.took(time.monotonic() - begun, beta)
        reason = ask.judge(solution, certificate)
        if reason is not None:
            return replace(solution, steps=ask.steps, stop_reason=reason, u=u), certificate


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
    report: Report | None,
    one_block: bool,
    beta: Floats,
    u: Floats | None,
    precision: Any,
    stop: Stop,
    shrinking: bool,
) -> Solution:
    """Block decomposition, continued on all variables if the certificate that follows will be expensive."""
    begun = 0
    prepared: tuple[Any, Any] = (None, None)
    if one_block:
        prepared = gram.prepared(np.arange(gram.n), precision, whole=True)
    if prepared[0] is not None:
        whole = solve_one_block(problem, gram, prepared, beta, u, stop, report)
        if whole.stop_reason != "stalled":
            return whole
        beta, begun = whole.beta, whole.steps
        u, stop = u if begun == 0 else None, stop.after(begun)
    field = gram.field(problem, beta, u, precision)
    first = decompose(field, stop, report, shrinking)
    first = replace(first, steps=begun + first.steps)
    over = first.stop_reason in ("max_iter", "max_time")
    if first.whole or over or coarse_pass(gram):
        return first
    # In the solver's precision it is cheaper to find out whether the certificate can be good.
    field.unshrink()
    rest = decompose(field, stop.after(first.steps - begun), report, shrinking)
    return replace(rest, steps=first.steps + rest.steps)
