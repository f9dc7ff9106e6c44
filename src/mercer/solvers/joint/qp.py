"""The joint multi-class machines by an independent solver of quadratic programs, for small problems and as a check.

    minimise  ½ Σ_k β_k'(K + shift)β_k − Σ_i β_{i,y_i}    subject to  Σ_k β_ik = 0,  and Σ_i β_ik = 0 with free biases
    Crammer–Singer  β_{i,y_i} ≤ C_i, all others ≤ 0        Weston–Watkins  −C_i ≤ β_ik ≤ 0 for k ≠ y_i

The multipliers of the last sums are the biases. One of these sums follows from the others, and is left out.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from mercer.arrays import Flags, Floats
from mercer.certificates.certificate import Certificate
from mercer.certificates.joint import certify_joint
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import QuadraticProgram
from mercer.problems.multiclass import JointProblem
from mercer.solution import Report, Solution, Stop
from mercer.solvers.dual.qp import refusal
from mercer.solvers.joint.rebalance import rebalanced
from mercer.solvers.qp_packages import DEFAULT, solve_program
from mercer.solvers.solver import refuses


@refuses(lambda problem, gram: refusal(problem.n * problem.n_classes, gram))
def solve_joint_by_qp(
    problem: JointProblem,
    gram: Gram,
    stop: Stop,
    start: Floats | None = None,
    report: Report | None = None,
    *,
    package: str = DEFAULT,
    shrinking: bool = True,
) -> tuple[Solution, Certificate]:
    """The solution that a package finds, and our certificate of it; packages use neither a start nor shrinking."""
    shape = (problem.n, problem.n_classes)
    beta: Floats = np.zeros(shape) if start is None else start
    if report is not None:
        report(lambda: f"{package} on {problem.n * problem.n_classes:,} variables")
    limit = stop.limit(0)
    if limit is not None:
        certificate, u = certify_joint(problem, gram, beta, stop.tol)
        return Solution(beta, 0, limit, u=u), certificate
    unit = float(np.median(problem.C))
    program = _program(problem, gram.block(np.arange(gram.n), np.arange(gram.n)), unit)
    found = solve_program(package, program, stop)
    x = np.where(found.at_upper, program.upper, np.where(found.at_lower, program.lower, found.x))
    beta = _within_bounds(
        problem, np.where(np.isfinite(x), unit * x, 0.0).reshape(shape), found.at_upper.reshape(shape)
    )
    if problem.balanced:
        b = np.concatenate([found.b[problem.n :], [0.0]])
        problem = dataclasses.replace(problem, b=np.where(np.isfinite(b), b, 0.0) - b[np.isfinite(b)].mean())
        _, u = certify_joint(problem, gram, beta, stop.tol)
        beta = rebalanced(problem, beta, problem.excess(u, problem.offsets(beta)), 0.5 * stop.tol)
    certificate, u = certify_joint(problem, gram, beta, stop.tol)
    return Solution(beta, found.steps, found.verdict(stop.met(certificate)), u=u), certificate


def _within_bounds(problem: JointProblem, beta: Floats, at_upper: Flags) -> Floats:
    """β inside its bounds, where samples whose multipliers use up what they share use up all of it."""
    own = np.arange(problem.n), problem.y
    alpha = np.maximum(-beta, 0.0)
    alpha[own] = 0.0
    total = alpha.sum(axis=1)
    spent = at_upper[own] & (total > 0) & problem.shared
    alpha[spent] *= (problem.C[spent] / total[spent])[:, None]
    return problem.within_bounds(-alpha)


def _program(problem: JointProblem, K: Floats, unit: float) -> QuadraticProgram:
    """The problem for x = β/unit, the classes of a sample side by side."""
    n, m = problem.n, problem.n_classes
    own = np.arange(n), problem.y
    C = problem.C[:, None] / unit
    lower: Any = np.full((n, m), -np.inf) if problem.shared else np.repeat(-C, m, axis=1)
    upper: Any = np.zeros((n, m))
    lower[own], upper[own] = -np.inf, C[:, 0] if problem.shared else np.inf
    q = np.zeros((n, m))
    q[own] = -1.0
    P = np.asarray(np.kron(unit * (K + problem.shift), np.eye(m)), dtype=np.float64)
    sums = [np.kron(np.eye(n), np.ones((1, m)))]
    if problem.balanced:
        sums.append(np.kron(np.ones((1, n)), np.eye(m)[:-1]))
    A = np.vstack(sums)
    return QuadraticProgram(P, q.ravel(), A, np.zeros(len(A)), lower.ravel(), upper.ravel())
