"""The proof of kernel weights at any coefficients and weights, good or bad, against a hundred digits."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from mercer.certificates.kernel_weights import INSIDE, OPTIMAL, WeightsProblem, certify_kernel_weights, certify_machine
from mercer.kernels import Precomputed
from mercer.places import gram_for
from mercer.places.ball import Ball
from mercer.problems.classification import soft_margin
from reference import kernel_weights


@pytest.mark.parametrize("norm", [1.0, 1.001, 1.5, 2.0, 40.0, np.inf])
@pytest.mark.parametrize("length", [0.3, 1.0, 7.0])
def test_it_holds_for_weights_inside_and_outside_of_their_ball(norm, length):
    rng = np.random.default_rng(int(100 * length))
    n = 10
    matrices = []
    for size in (1.0, 1e-6, 1e5):
        F = rng.normal(size=(n, 4))
        matrices.append(size * (F @ F.T))
    matrices = [(K + K.T) / 2 for K in matrices]
    scales = np.array([K.diagonal().mean() for K in matrices])
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    problem = soft_margin(y, np.full(n, 3.0))
    for trial in range(4):
        weights = rng.uniform(size=3) * (rng.uniform(size=3) < 0.8) + 1e-3
        weights = length * weights / np.linalg.norm(weights, norm) / scales
        beta = problem.nearest_feasible(y * rng.uniform(size=n) * 10.0 ** rng.integers(-8, 2))
        grams = [gram_for(Precomputed(), K) for K in matrices]
        proof, _, s = certify_machine(problem, grams, beta, weights, exact=bool(trial % 2))
        found = certify_kernel_weights(proof, WeightsProblem(norm, scales), weights, s)
        task = (
            lambda c: mpmath.fsum(int(sign) * x for sign, x in zip(y, c, strict=True)),
            lambda f: mpmath.fsum(3 * max(mpmath.mpf(0), 1 - int(sign) * x) for sign, x in zip(y, f, strict=True)),
            range(n),
        )
        primal, dual = kernel_weights.values([task], matrices, norm, scales, [beta], proof.b, weights)
        b_sum = mpmath.mpf(proof.b[0]) * mpmath.fsum(mpmath.mpf(float(one)) for one in beta)
        assert primal <= found.primal
        assert dual - abs(b_sum) >= found.dual or dual >= found.dual
        assert primal - dual <= found.gap
        if length <= 1:
            assert found.gap <= float(primal - dual) * (1 + 1e-9) + 1e-9 * float(primal)
        outside = np.linalg.norm(scales * weights, norm) - 1
        assert found.kkt[INSIDE] == pytest.approx(max(outside, 0.0), abs=1e-12)
        assert 0 <= found.kkt[OPTIMAL] <= found.violation


def test_coefficients_of_copies_widen_it_enough():
    rng = np.random.default_rng(0)
    problem = WeightsProblem(1.5, np.array([1.0, 2.0, 0.5]))
    F = [rng.normal(size=(6, 3)) for _ in range(3)]
    beta, weights = rng.normal(size=6), np.array([0.0, 0.0, 1e-3])
    machines = certify_machine(
        soft_margin(np.sign(beta), np.full(6, 9.0)), [gram_for(Precomputed(), np.eye(6))], beta, weights[:1]
    )[0]

    def extra(coefficients, moved=None):
        s = np.array([np.sum((one.T @ coefficients) ** 2) for one in F])
        return certify_kernel_weights(machines, problem, weights, Ball(s, np.zeros(3)), moved).gap

    for size in (1e-9, 1e-3, 1.0):
        delta = size * beta  # the direction in which all s_m grow most
        moved = np.array([np.linalg.norm(one.T @ delta) for one in F])
        assert extra(beta + delta) <= extra(beta, moved) * (1 + 1e-12)
        assert extra(beta, moved) > extra(beta)


@pytest.mark.parametrize("missed", [2.0**-50, 1e-9, 1e-3])
def test_the_sizes_are_those_of_the_feasible_point_beside_the_coefficients(missed):
    """β = (a + τ, −a): sizes of (a, −a) and (a + τ, −a − τ), and a dual value not above the optimum, in fractions.

    With (1, −1)K_m(1, −1)' = 4 and 5, p = 1 and bounds 9 and 2/5 the optimum is 2a − 5a²/2 = 2/5 at a = 2/5. At the
    weights (1, 0) sample 1 alone can take the sum, which K_1 is all about.
    """
    matrices = [np.diag([4.0, 0.0]), np.diag([0.0, 5.0])]
    problem = soft_margin(np.array([1.0, -1.0]), np.array([9.0, 0.4]))
    beta = np.array([0.4 + missed, -0.4])
    grams, weights = [gram_for(Precomputed(), K).proof for K in matrices], np.array([1.0, 0.0])
    proof, _, s = certify_machine(problem, grams, beta, weights)
    for a in map(Fraction, (-beta[1], beta[0])):
        for m, size in enumerate((4 * a * a, 5 * a * a)):
            assert Fraction(s.low[m]) <= size <= Fraction(s.high[m])
    assert Fraction(certify_kernel_weights(proof, WeightsProblem(1.0, np.ones(2)), weights, s).dual) <= Fraction(2, 5)


def test_what_overflows_proves_nothing():
    problem = WeightsProblem(2.0, np.ones(2))
    machines = certify_machine(
        soft_margin(np.array([1.0, -1.0]), np.ones(2)), [gram_for(Precomputed(), np.eye(2))], np.zeros(2), np.ones(1)
    )[0]
    for value in (np.inf, np.nan):
        found = certify_kernel_weights(machines, problem, np.full(2, 0.5), Ball(np.array([1.0, value]), np.zeros(2)))
        assert found.gap == found.violation == np.inf
        found = certify_kernel_weights(
            machines, problem, np.array([1.0, 0.0]), Ball(np.ones(2), np.array([0.0, value]))
        )
        assert found.gap == found.violation == np.inf


def test_errors_that_a_sum_in_floats_drops_are_in_the_squares():
    """c'u = 0 where u is known up to 1 and up to 2⁻⁵³ seven times: floats lose some of these beside 1."""
    error = np.array([1.0, *[2.0**-53] * 7])
    value, off = Ball(np.zeros(8), error).inner(np.ones(8))
    assert value == 0.0
    assert Fraction(off) >= sum(map(Fraction, error.tolist()))
