"""Error terms of the certificate of β with a given bias, each of which decides one of these claims, in fractions."""

from fractions import Fraction

import numpy as np
import pytest

from certificates.test_error_terms import Declared
from mercer.certificates.given_bias import certify_with_bias
from mercer.problems.classification import soft_margin
from mercer.problems.dual_problem import DualProblem

U = Fraction(1, 2**53)


def made(p, lower, upper, total=0.0):
    n = len(p)
    numbers = (np.array(values, dtype=float) for values in (p, lower, upper))
    return DualProblem(*numbers, np.zeros(n), np.arange(n), np.zeros(n, dtype=np.int32), np.array([total]))


def primal(problem, K, beta, b, missed=0.0):
    gram = Declared(np.array(K, dtype=float), 0.0, "up")
    return Fraction(certify_with_bias(problem, gram, np.array(beta, dtype=float), np.array([b]), (), missed).primal)


def value(problem, K, beta, b):
    """½β'Kβ + Σ max over t of (p − b − u)t + b·total, in fractions."""
    beta, b = [Fraction(c) for c in beta], Fraction(b)
    u = [sum(Fraction(k) * c for k, c in zip(row, beta, strict=True)) for row in K]
    ends = zip(problem.p.tolist(), problem.lower.tolist(), problem.upper.tolist(), u, strict=True)
    losses = [max((Fraction(p) - b - v) * Fraction(t) for t in (low, high)) for p, low, high, v in ends]
    energy = sum(c * v for c, v in zip(beta, u, strict=True))
    return energy / 2 + sum(losses) + b * Fraction(float(problem.totals[0]))


def test_the_difference_of_target_and_bias_is_rounded():
    """p − b = 1 + ε/2 is rounded to 1, which u = 1 cancels, and the loss is 2⁶⁰ times what is left."""
    problem, K = made([-9.0, 1.0], [0.0, 0.0], [1.0, 2.0**60]), [[1.0, 1.0], [1.0, 1.0]]
    assert primal(problem, K, [1.0, 0.0], -(2.0**-53)) >= value(problem, K, [1.0, 0.0], -(2.0**-53))


def test_a_total_is_known_up_to_its_roundings():
    """Without a kernel and a loss the value is b·total, and the caller's total is up to 16 roundings larger."""
    problem = made([0.0], [0.0], [1.0], 0.7)
    assert primal(problem, [[0.0]], [0.0], 0.3) >= Fraction(0.3) * Fraction(0.7) * (1 + 16 * U)


@pytest.mark.parametrize("missed", [0.5, 2.0**-24])
@pytest.mark.parametrize("bound", [2.0**-10, 4.0])
def test_a_longer_w(missed, bound):
    """½β² at β = 1, inside of its box or not, and with no loss: β may be larger by a share."""
    problem = made([-99.0], [0.0], [bound])
    assert primal(problem, [[1.0]], [1.0], 0.0, missed) >= value(problem, [[1.0]], [1 + missed], 0.0)


@pytest.mark.parametrize("missed", [0.5, 2.0**-24])
def test_losses_of_samples_that_w_leaves(missed):
    """A sample opposite to the only one with a coefficient has a loss that grows with it."""
    problem, K = made([-99.0, 1.0], [0.0, 0.0], [2.0**-10, 2.0**20]), [[1.0, -1.0], [-1.0, 1.0]]
    assert primal(problem, K, [1.0, 0.0], 0.0, missed) >= value(problem, K, [1 + missed, 0.0], 0.0)


@pytest.mark.parametrize("missed", [0.5, 2.0**-24])
def test_a_bias_that_differs_by_a_share(missed):
    """Without a kernel: a loss that begins at b, and b·total."""
    for problem, b in ((made([1.0], [0.0], [3.0]), 1.0), (made([0.0], [0.0], [0.25], 3.0), 1.0)):
        for other in (1 - missed, 1 + missed):
            assert primal(problem, [[0.0]], [0.0], b, missed) >= value(problem, [[0.0]], [0.0], other)


@pytest.mark.parametrize("seed", range(40))
def test_values_are_rounded(seed):
    """Random numbers of many sizes, of which a share is all that counts."""
    rng = np.random.default_rng(seed)
    problem = made([0.3], [0.0], [float(rng.uniform(1, 2))])
    missed = float(rng.uniform(1, 2) * 2.0**30)
    assert primal(problem, [[0.0]], [0.0], 0.3, missed) >= value(
        problem, [[0.0]], [0.0], Fraction(0.3) * (1 - Fraction(missed))
    )


def test_residuals_are_those_of_the_given_bias():
    """At β = 0 with b = 5 the second sample's gradient is −1 − 5; the best b leaves 1."""
    problem = soft_margin(np.array([1.0, -1.0]), np.ones(2))
    gram, zero = Declared(np.zeros((2, 2)), 0.0, "up"), np.zeros(2)
    assert certify_with_bias(problem, gram, zero, np.array([5.0]), (zero,)).kkt["primal feasibility"] >= 6.0
