"""Every error that a Gram matrix declares counts for any loss and penalty: claims that one sign of it makes false."""

from fractions import Fraction

import numpy as np
import pytest

from certificates.test_error_terms import Declared, matrix
from mercer.certificates.representer import _corner_terms, _enclosing_balls, certify_representer
from mercer.problems.losses import EpsilonInsensitive, Squared
from mercer.problems.penalties import PENALTIES
from mercer.problems.representer import RepresenterProblem

SUBOPTIMALITY = "primal value above the optimum"
# So far from y, and with so small a weight, a squared loss is linear: its gradient is −1 wherever f is.
FAR = 1e9


def linear_loss(n, lam, penalty):
    loss = Squared()
    unit = abs(float(loss.gradient(np.full(1, FAR), np.zeros(1))[0]))
    return RepresenterProblem(np.full(n, FAR), np.full(n, 1 / unit), loss, lam, False, PENALTIES[penalty])


@pytest.mark.parametrize("sign", ["up", "down", *range(4)])
def test_a_solution_that_is_optimal_for_values_that_are_off(sign):
    """c solves the equations of f̂ = Kc + e: how far it is from the optimum of Kc is second order in e."""
    K, lam, y = matrix(6, seed=4), 0.3, np.random.default_rng(5).normal(size=6)
    gram = Declared(K, 0.2, sign)
    error = gram.product_bound(np.zeros(6)).value
    scale = float(Squared().gradient(np.zeros(1), np.ones(1))[0])
    A = scale * K + 2 * lam * np.eye(6)
    c, best = np.linalg.solve(A, scale * (y - error)), np.linalg.solve(A, scale * y)

    def value(c):
        return float(Squared().value(y, K @ c).sum()) + lam * c @ K @ c

    problem = RepresenterProblem(y, np.ones(6), Squared(), lam, False, PENALTIES["squared_norm"])
    proof = certify_representer(problem, gram, c, 0.0)
    assert value(c) - value(best) > 1e-4
    assert proof.kkt[SUBOPTIMALITY] >= value(c) - value(best)


class SecondProductOff(Declared):
    """The first product is exact, and all others are off by `size`."""

    def product_bound(self, c, rows=None, level=None):
        self.told.append(1)
        if len(self.told) == 1:
            return Declared(self.K, 0.0, "up").product_bound(c)
        return super().product_bound(c)


def test_the_length_of_the_gradient_is_known_up_to_an_error():
    """Linear losses −Σf: P − P* = ‖G‖²/4λ, where G = −1 + 2λc by coefficients."""
    K, lam, c = matrix(6, seed=4), 0.5, np.linspace(0.1, 0.4, 6)
    proof = certify_representer(linear_loss(6, lam, "squared_norm"), SecondProductOff(K, 0.3, "against β"), c, 0.0)
    G = 2 * lam * c - 1
    assert proof.kkt[SUBOPTIMALITY] >= G @ K @ G / (4 * lam) * (1 - 1e-6)


def test_the_slope_along_f_is_known_up_to_an_error():
    """Linear losses −Σf and λ‖f‖ with λ above ‖G‖: the optimum is f = 0, and P − P* = λ‖f‖ − Σf."""
    K, c = matrix(6, seed=4), np.full(6, -1e-6)
    lam = 2 * np.sqrt(K.sum())
    proof = certify_representer(linear_loss(6, lam, "norm"), Declared(K, 0.01, "up"), c, 0.0)
    f = K @ c
    assert proof.kkt[SUBOPTIMALITY] >= lam * np.sqrt(c @ f) - f.sum()


def test_the_slope_of_the_penalty_is_known_up_to_an_error():
    """c is stationary if ‖f‖² = c'(Kc + e), and misses −1 + λc/‖f‖ = 0 with the true one."""
    K, size = matrix(6, seed=4), 0.1
    S = K.sum()
    lam = 2 * np.sqrt(S)
    t = 6 * size / (lam**2 - S)
    proof = certify_representer(linear_loss(6, lam, "norm"), Declared(K, size, "up"), np.full(6, t), 0.0)
    assert proof.violation >= abs(lam / np.sqrt(S) - 1) * (1 - 1e-6)


@pytest.mark.parametrize("penalty", ["squared_norm", "norm"])
def test_a_loss_far_smaller_than_the_rounding_of_its_target(penalty):
    """f(x_1) = 2⁻⁶⁶ is just outside the tube around y_1 = −ε; y_1 − f(x_1) rounds to −ε, where the loss is 0."""
    K = np.array([[1.0, 2.0**-66], [2.0**-66, 1.0]])
    loss, y = EpsilonInsensitive(0.1), np.array([-0.1, 1.0])
    problem = RepresenterProblem(y, np.ones(2), loss, 1e-40, False, PENALTIES[penalty])
    proof = certify_representer(problem, Declared(K, 0.0, "up"), np.array([0.0, 1.0]), 0.0)
    assert 2.0**-66 < proof.primal < 2.0**-65


def test_excess_over_epsilon_is_as_right_as_float64_can_be():
    rng = np.random.default_rng(0)
    y = rng.normal(size=20_000) * 10.0 ** rng.integers(-9, 9, 20_000)
    epsilon = 0.1
    f = y + np.where(rng.random(len(y)) < 0.5, -epsilon, epsilon) * (1 + 2.0 ** -rng.integers(1, 70, len(y)))
    loss = EpsilonInsensitive(epsilon)
    value, gradient = loss.value(y, f), loss.gradient(y, f)
    for i in range(len(y)):
        difference = Fraction(f[i]) - Fraction(y[i])
        truth = max(abs(difference) - Fraction(epsilon), Fraction(0))
        assert abs(Fraction(value[i]) - truth) <= truth * Fraction(3, 2**53)
        assert gradient[i] == (0 if truth == 0 else 1 if difference > 0 else -1)


class Steps:
    """max(−10⁴(r + 8), sr, 10⁴(r − 8)) of r = f − y: the slope is s = 10⁻⁶ between two corners."""

    kind = "regression"
    slope = 1e-6 - 5e-18

    def value(self, y, f):
        return np.maximum(np.maximum(-1e4 * (f - y + 8), self.slope * (f - y)), 1e4 * (f - y - 8))

    def gradient(self, y, f):
        return np.where(f - y < -8, -1e4, np.where(f - y > 8, 1e4, self.slope))


def test_the_entry_that_takes_the_rest_of_a_sum_counts_with_it():
    """Σg is off by rounding, and one g takes the rest: it is below the slope around f then, and t at the corner below.

    With g_i = ws − δ, f = 7 and t = −8, the term is w(ℓ(f) − ℓ(t)) − g(f − t) = 15δ.
    """
    weight, y, f = np.array([1e3, 1.0, 1.0]), np.zeros(3), np.array([7.0, 8.0, -8.0])
    problem = RepresenterProblem(y, weight, Steps(), 1.0, True, PENALTIES["squared_norm"])
    reach = np.full(3, 1e-12)
    slopes = _enclosing_balls(problem.gradient(f - reach), problem.gradient(f + reach))
    rng, seen = np.random.default_rng(0), 0
    for large in rng.uniform(500, 1000, 60):
        dual, terms = _corner_terms(problem, f, reach, slopes, np.array([1e-3, large, -(large + 1e-3)]))
        exact = [Fraction(value) for value in dual.value.tolist()]
        below = Fraction(1e3) * Fraction(Steps.slope) - (exact[0] - sum(exact))
        if dual.error[0] > 0 and below > 0:
            seen += 1
            assert Fraction(terms[0]) >= 15 * below
    assert seen > 5


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_distance_to_a_corner_counts_the_error_of_f(sign):
    """|f − y| with f = ∓0.3 up to 0.2, and g = ±0.5 at t = 0: the term may be (0.5 + 1)(0.3 + 0.2)."""
    f, reach = sign * np.array([-0.3 + 1e-9, 0.3]), np.full(2, 0.2)
    problem = RepresenterProblem(np.zeros(2), np.ones(2), EpsilonInsensitive(), 1.0, False, PENALTIES["norm"])
    slopes = _enclosing_balls(problem.gradient(f - reach), problem.gradient(f + reach))
    terms = _corner_terms(problem, f, reach, slopes, sign * np.array([0.5, 1.0]))[1]
    assert terms[0] >= 1.5 * (0.5 - 1e-8)


def test_a_term_of_a_corner_is_a_violation():
    """g = −2λc is stationary, and only its distance from the subgradients ±1 shows that c is not optimal."""
    K, c = matrix(6, seed=4), np.full(6, 0.01)
    problem = RepresenterProblem(
        np.full(6, 9.0), np.ones(6), EpsilonInsensitive(), 0.5, False, PENALTIES["squared_norm"]
    )
    proof = certify_representer(problem, Declared(K, 0.0, "up"), c, 0.0, g=-c)
    assert proof.kkt["stationarity"] < 1e-12
    assert proof.violation >= (1 - 0.01) * (9 - (K @ c).max()) * (1 - 1e-9)
