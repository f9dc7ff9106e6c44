"""Every error that rows of a linear machine declare counts: products and combinations off by known amounts."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from mercer.certificates.linear import certify_linear
from mercer.places.ball import Ball
from mercer.problems.linear_problem import LinearProblem
from mercer.samples.arrays import gamma


@dataclass
class DeclaredRows:
    """Rows X whose products are off by `shift`, and whose combination X'β is off by `away`, as they say."""

    X: np.ndarray
    shift: float = 0.0
    away: float | np.ndarray = 0.0
    told: float = 0.0
    origin: float = 0.0

    @property
    def n(self):
        return len(self.X)

    @property
    def d(self):
        return self.X.shape[1]

    @property
    def squared_lengths(self):
        return (self.X**2).sum(axis=1)

    def product_bound(self, w, b):
        return Ball(self.X @ w + b + self.shift, np.full(self.n, self.told))

    def combination(self, beta, limit=0.0):
        hi = self.X.T @ beta + self.away
        return hi, np.zeros(self.d), float(np.linalg.norm(np.broadcast_to(self.away, self.d)))


def hinge(p, C, bias):
    lower, upper = np.minimum(p * C, 0.0), np.maximum(p * C, 0.0)
    return LinearProblem(p, lower, upper, np.zeros(len(p)), np.zeros(len(p)), bias)


@pytest.mark.parametrize("away", [-0.5, -0.1, 0.1, 0.5])
def test_the_error_of_the_combination_is_in_the_dual_value(away):
    """One sample x = 1: D(β) = β − ½β²."""
    problem, beta = hinge(np.ones(1), 2.0, 0.0), np.ones(1)
    proof = certify_linear(problem, DeclaredRows(np.ones((1, 1)), away=away), np.ones(1), 0.0, beta)
    assert proof.dual <= 0.5


def test_the_error_of_the_combination_is_in_the_violation():
    """w seems to be the combination, and is 2 away from it: ½‖w − X'β‖², as a share of the primal value."""
    problem, rows = hinge(np.ones(1), 2.0, 0.0), DeclaredRows(np.full((1, 1), 0.25), away=2.0)
    proof = certify_linear(problem, rows, np.array([2.5]), 0.0, np.full(1, 2.0))
    primal = 0.5 * 2.5**2 + 2 * (1 - 0.625)
    assert proof.violation >= 2.0 / primal * (1 - 1e-12)


def test_the_error_of_the_combination_is_in_what_moving_costs():
    """β = (3/2, −2) has to become (2, −2), the optimum of 2a − ½a² for a ≤ 2, along a slope at X'β and not at w."""
    p, C = np.array([1.0, -1.0]), np.array([4.0, 2.0])
    problem, rows = hinge(p, C, np.inf), DeclaredRows(np.array([[1.0], [0.0]]), away=-0.5)
    proof = certify_linear(problem, rows, np.ones(1), 0.0, np.array([1.5, -2.0]))
    assert proof.dual <= 2.0


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_rounding_of_a_bias_of_rows_that_are_not_centred(sign):
    """f = b − ⟨w, c⟩ + … with a centre of length 1e12 is off by a few roundings of that."""
    off = 0.9 * gamma(4) * 1e12
    rows = DeclaredRows(np.ones((1, 1)), shift=sign * off, origin=1e12)
    proof = certify_linear(hinge(np.ones(1), 2.0, 0.0), rows, np.ones(1), 0.0, np.ones(1))
    assert proof.primal >= 0.5
    proof = certify_linear(hinge(-np.ones(1), 2.0, 0.0), rows, np.ones(1), 0.0, -np.ones(1))
    assert proof.primal >= 0.5 + 2 * 2.0


def test_the_rounding_of_residuals_is_in_the_violation():
    """p − f = 1e16 + 1 and 1e16 − 1, of which float64 has only the second."""
    problem = LinearProblem(np.full(2, 1e16), np.full(2, -1.0), np.full(2, 1.0), np.zeros(2), np.zeros(2), np.inf)
    X, w = np.array([[-1.0], [1.0]]), np.ones(1)
    assert 1e16 + 1 == 1e16
    proof = certify_linear(problem, DeclaredRows(X), w, 0.0, np.zeros(2))
    assert proof.violation >= 2.0


def test_the_rounding_of_the_sums_is_in_the_primal_value_and_the_gap():
    """‖w‖² of 2⁵⁴ and terms just below 2, each lost beside it, and no losses; then losses of 2⁵⁴ + 4999 and no norm."""
    w = np.full(128, 1.414)
    w[0] = 2.0**27
    rows = DeclaredRows(np.zeros((1, 128)))
    proof = certify_linear(hinge(np.full(1, -1e-300), 1e-300, 0.0), rows, w, 0.0, np.zeros(1))
    assert Fraction(proof.primal) >= sum(Fraction(v) ** 2 for v in w.tolist()) / 2
    n = 5000
    p = np.ones(n)
    p[0] = 2.0**54
    problem = LinearProblem(p, np.zeros(n), np.ones(n), np.zeros(n), np.zeros(n), 0.0)
    proof = certify_linear(problem, DeclaredRows(np.zeros((n, 1))), np.zeros(1), 0.0, np.zeros(n))
    assert Fraction(proof.primal) >= 2**54 + n - 1
    assert Fraction(proof.gap) >= 2**54 + n - 1  # the dual value of β = 0 is 0
