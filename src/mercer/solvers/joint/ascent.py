"""Block ascent for the joint multi-class machines.

    repeat
    1. stop if the violation is at most tol;
    2. choose the block: the samples that violate most and half of the last block;
    3. solve the problem restricted to it by exact steps on one sample after the other;
    4. update u = Kβ

A step changes all multipliers of one sample at once (Crammer and Singer 2001; Keerthi et al. 2008). The block's kernel
matrix is stored, so a step costs one row of it for each class that changed. As for the other machines, the certificate
decides when to stop, and not the numbers that the solver updates.
"""

from __future__ import annotations

import dataclasses
import math
import time
from functools import partial

import numpy as np

from mercer import _core
from mercer.certificates.certificate import Certificate
from mercer.certificates.joint import certify_joint
from mercer.places.gram import Gram, JointField
from mercer.places.host.blocks import BLOCK, INNER_SHARE, INNER_STEPS, KEPT_SHARE
from mercer.problems.multiclass import JointProblem
from mercer.samples.arrays import Floats
from mercer.solvers.block_steps import FLOOR, StallWatch, largest_block, overflow_error, progress_line
from mercer.solvers.deadline import ProofTime
from mercer.solvers.joint.newton import newton_on_joint_face
from mercer.solvers.joint.rebalance import rebalanced
from mercer.solvers.refine import Refinement, sufficient_precisions
from mercer.solvers.solution import Solution, Stop

# Up to this many samples the whole problem is one block.
_ONE_BLOCK_SAMPLES = 3000
# Largest number of rounds of the method of multipliers. After a round that leaves more than `_SLOW_SHARE` of the sums,
# the penalty is multiplied by the inverse of that share.
_ROUNDS = 60
_SLOW_SHARE = 0.25


def solve_joint(
    problem: JointProblem, gram: Gram, stop: Stop, start: Floats | None = None, *, shrinking: bool = True
) -> tuple[Solution, Certificate]:
    """Solve a joint multi-class problem by block ascent, and certify the solution (iterative refinement)."""
    beta: Floats = np.zeros((problem.n, problem.n_classes)) if start is None else start
    u = np.zeros_like(beta) if not beta.any() else certify_joint(problem, gram.proof, beta)[1]
    proof = ProofTime(gram, stop)
    stop = dataclasses.replace(stop, proof_seconds=proof)
    with np.errstate(over="ignore"):
        size = float(problem.C.max()) * gram.n * max(1.0, float(np.abs(gram.diagonal).max(initial=0.0)))
    precisions = sufficient_precisions(gram.precisions, size)
    refinement = Refinement(stop, precisions, shrinking, lambda beta: FLOOR * _noise(gram, problem, beta))
    while True:
        field = gram.joint_field(problem, beta, u, refinement.precision)
        solution = (ascend_balanced if problem.balanced else ascend)(field, refinement.next_stop, refinement.shrinking)
        beta, problem = problem.within_bounds(solution.beta), field.problem
        start_time = time.monotonic()
        certificate, u = certify_joint(problem, gram.proof, beta, refinement.next_stop.tol)
        proof.record(time.monotonic() - start_time, beta)
        reason = refinement.judge(solution, certificate)
        if reason is not None:
            return dataclasses.replace(
                solution, beta=beta, steps=refinement.steps, stop_reason=reason, u=u
            ), certificate


def ascend_balanced(field: JointField, stop: Stop, shrinking: bool) -> Solution:
    """Ascend with free biases, by the method of multipliers; at the end the field's problem holds its b.

    Σ_i β_ik = 0 is enforced by a multiplier b_k and a penalty ½μ(Σ_i β_ik)², which is the kernel k + μ; after each
    ascent b_k grows by μΣ_i β_ik (Bertsekas, Constrained Optimization and Lagrange Multiplier Methods, ch. 2). The
    excess at the end of an ascent is already that of the new b, so only the remaining sums have to be removed.
    """
    problem = field.problem
    diagonal = np.abs(field.gram.diagonal)
    with np.errstate(over="ignore"):
        total_C = min(max(float(problem.C.sum()), 1e-300), 1e300)
    least = 1.0 / total_C  # with a smaller diagonal, even all multipliers at their bounds give |f| < 1
    penalty, largest = max(float(diagonal.mean()), least), max(float(diagonal.max()), least)
    steps, tol, b, last_excess_change = 0, max(0.5 * stop.tol, 0.1), problem.offsets(field.beta), math.inf
    for rounds in range(1, _ROUNDS + 1):
        # 1. Maximise the penalised dual at the present multipliers b.
        field.set_problem(dataclasses.replace(problem, shift=penalty, b=b, balanced=False))
        inner_stop = dataclasses.replace(stop.after(steps), tol=tol)
        solution = ascend(field, inner_stop, shrinking)
        steps += solution.steps
        # 2. Update the multipliers, and stop if the sums are small enough.
        #    `excess_change` is the change of the excess if the sums are removed.
        excess_change = largest * float(np.abs(solution.beta.sum(axis=0)).max())
        b = field.problem.offsets(solution.beta)
        has_settled = tol <= 0.5 * stop.tol and excess_change <= 0.1 * stop.tol
        if has_settled or solution.stop_reason != "converged" or rounds == _ROUNDS:
            break
        # 3. Raise the penalty if the sums fell too little, and lower the tolerance.
        if excess_change > _SLOW_SHARE * last_excess_change:
            penalty *= 1 / _SLOW_SHARE
        last_excess_change = excess_change
        # The sums are only as accurate as the ascent, so the ascent needs the smaller tolerance.
        tol = max(0.02 * stop.tol, min(0.3 * tol, 0.3 * excess_change))
    # 4. Move the rest of the sums between classes, so that β is feasible.
    field.set_problem(dataclasses.replace(problem, b=b - b.mean()))
    e = problem.excess(field.u, b)
    return Solution(rebalanced(problem, solution.beta, e, 0.5 * stop.tol), steps, solution.stop_reason)


def ascend(field: JointField, stop: Stop, shrinking: bool) -> Solution:
    """Move the field until its running violation is at most `stop.tol`, or a limit is reached."""
    problem, gram = field.problem, field.gram
    q = min(problem.n if problem.n <= _ONE_BLOCK_SAMPLES else BLOCK, largest_block(gram))
    steps, watch = 0, StallWatch()
    while True:
        # 1. Measure the violation; stop if it is small enough on all samples, or at a limit.
        violation = field.violation()
        stop.report_progress(partial(_progress_line, field, stop.done + steps, violation), stop.ratio_to_tol(violation))
        if violation <= stop.tol:
            if not field.shrunk:
                return Solution(field.beta, steps, "converged")
            field.unshrink()
            continue
        remaining = stop.before_proof(field.beta)
        limit = remaining.limit(steps) or watch.verdict(violation, _noise(gram, problem, field.beta))
        if limit == "stalled" and field.shrunk:
            field.unshrink()
            shrinking, watch = False, StallWatch()
            continue
        if limit is not None:
            return Solution(field.beta, steps, limit)  # the certificate computes u itself

        # 2. Choose the block and take steps on its samples.
        J = field.violators(q, KEPT_SHARE)
        old_beta, e = field.beta[J], field.excess(J)
        new_beta = old_beta.copy()
        goal = max(INNER_SHARE * violation if len(J) < problem.n else 0.0, 0.5 * stop.tol)
        constants = (problem.y[J], problem.C[J], problem.shared, problem.shift)
        limits = (goal, min(INNER_STEPS * len(J), stop.max_iter - steps), remaining.seconds)
        n_steps, _, reason = _core.joint(field.block(J), e, new_beta, *constants, *limits)
        if reason == "nonfinite":
            raise overflow_error(gram, problem.C)
        steps += n_steps
        if reason == "max_seconds":
            beta = field.beta.copy()
            beta[J] = new_beta
            return Solution(beta, steps, "max_time")
        # 3. Take Newton steps on the free multipliers if the steps were slow.
        if reason in ("max_steps", "stalled"):
            change = new_beta - old_beta
            new_e = e + field.block(J) @ change + problem.shift * change.sum(axis=0)
            new_beta = newton_on_joint_face(
                problem, J, field.block(J), new_e, new_beta, stop.n_threads, 3 * largest_block(gram) // 4
            )
        # 4. Move the field.
        field.move(J, new_beta)
        # The dual is quadratic: it grows by the step times the mean of the gradients before and after.
        watch.record_gain(-0.5 * float(np.sum((new_beta - old_beta) * (e + field.excess(J)))))
        if shrinking and len(J) < problem.n:
            field.shrink(violation)


def _progress_line(field: JointField, steps: int, violation: float) -> str:
    """Return the progress line of the ascent; `field` holds β and u = Kβ."""
    terms = field.problem.gap_terms(field.beta, field.problem.excess(field.u, field.b))
    support = int(np.count_nonzero(field.beta.any(axis=1)))
    return progress_line(steps, support, violation, float(terms.sum()), field.shrunk)


def _noise(gram: Gram, problem: JointProblem, beta: Floats) -> float:
    """Return the rounding error of an excess in float64: the terms of u_ik add up to at most √K_ii Σ_j √K_jj |β_jk|."""
    length = np.sqrt(np.abs(gram.diagonal) + problem.shift)
    size = float(length.max()) * float((length @ np.abs(beta)).max()) + 1.0
    return float(np.finfo(float).eps) * size
