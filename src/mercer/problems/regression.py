"""The dual problems of regression machines, which minimise ½‖w‖² + Σ C_i·loss(r_i) with r_i = y_i − f(x_i).

    ε-insensitive       max(0, |r| − ε)                        two variables per sample, p = y ∓ ε, [0, C] and [−C, 0]
    squared, ε          ½ max(0, |r| − ε)²                     the same p, half-lines, d = 1/C
    Huber, threshold δ  ½r² up to |r| = δ, then δ(|r| − δ/2)   [−Cδ, Cδ], d = 1/C
    quantile τ          τr for r > 0, (τ − 1)r for r < 0       [(τ − 1)C, τC]
    expectile τ         ½τr² for r > 0, ½(1 − τ)r² for r < 0   two variables, half-lines, d = 1/(Cτ) and 1/(C(1 − τ))
    ν-SVR               ε-insensitive, with νΣC·ε added, and   p = y twice, boxes as for ε; Σβ of each copy is ±νΣC/2
                        minimised over ε too

The two variables of a sample (twins) share a row of K, so the second one costs no kernel values; f depends on their sum
only. ν-SVR has one b per copy: b = (b₁ + b₂)/2 and ε = (b₁ − b₂)/2.
"""

from __future__ import annotations

import numpy as np

from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, rounded_sum


def epsilon_insensitive(y: Floats, C: Floats, epsilon: float) -> DualProblem:
    """Build the dual of the ε-insensitive loss: errors cost their excess over `epsilon`."""
    return _twins(y - epsilon, y + epsilon, C)


def squared_epsilon_insensitive(y: Floats, C: Floats, epsilon: float) -> DualProblem:
    """Build the dual of the squared ε-insensitive loss: errors cost half the square of their excess over `epsilon`."""
    return _twins(y - epsilon, y + epsilon, np.full(len(y), np.inf), np.tile(1.0 / C, 2))


def expectile(y: Floats, C: Floats, tau: float) -> DualProblem:
    """Build the dual of the expectile loss: half the squared error, weighted τ above f and 1 − τ below."""
    d = np.concatenate([1.0 / (C * tau), 1.0 / (C * (1.0 - tau))])
    return _twins(y, y, np.full(len(y), np.inf), d)


def huber(y: Floats, C: Floats, delta: float) -> DualProblem:
    """Build the dual of Huber's loss: quadratic up to the threshold `delta`, linear beyond."""
    return _single(y, -C * delta, C * delta, 1.0 / C)


def quantile(y: Floats, C: Floats, tau: float) -> DualProblem:
    """Build the dual of the pinball loss, whose minimiser is the τ-quantile."""
    return _single(y, C * (tau - 1.0), C * tau, np.zeros(len(y)))


def nu_tube(y: Floats, C: Floats, nu: float) -> DualProblem:
    """Build the dual of ν-SVR: the tube's width is chosen so that about a fraction ν of the samples lies outside."""
    mass = 0.5 * nu * rounded_sum(C)
    group = np.repeat(np.array([0, 1], dtype=np.int32), len(y))
    return _twins(y, y, C, group=group, totals=np.array([mass, -mass]))


def _single(p: Floats, lower: Floats, upper: Floats, d: Floats) -> DualProblem:
    """Build a problem with one variable per sample, and Σβ = 0."""
    n = len(p)
    return DualProblem.of_rows(p, lower, upper, d, np.zeros(n, dtype=np.int32), np.zeros(1))


def _twins(
    p_up: Floats,
    p_down: Floats,
    bound: Floats,
    d: Floats | None = None,
    group: np.ndarray | None = None,
    totals: Floats | None = None,
) -> DualProblem:
    """Build a problem with two variables per sample, one that pulls f up and one that pulls it down."""
    n = len(bound)
    zero, row = np.zeros(n), np.arange(n)
    problem = DualProblem(
        p=np.concatenate([p_up, p_down]),
        lower=np.concatenate([zero, -bound]),
        upper=np.concatenate([bound, zero]),
        d=np.zeros(2 * n) if d is None else d,
        row=np.concatenate([row, row]),
        group=np.zeros(2 * n, dtype=np.int32) if group is None else group,
        totals=np.zeros(1) if totals is None else totals,
    )
    problem.twins = problem.tiled = True  # known, so that the cached properties need not compare the rows
    return problem
