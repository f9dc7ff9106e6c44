"""Errors that a feature space declares to the certificate of stochastic descent, and a kernel matrix to its sizes."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from certificates.test_error_terms import SIGNS, Declared, matrix
from mercer.certificates.descent import _certified
from mercer.certificates.kernel_weights import certify_machine
from mercer.places.ball import Ball
from mercer.problems.classification import soft_margin


@dataclass
class DeclaredSpace:
    """Orthonormal samples; outputs and squares are off by 0.1, each in one direction, and say so."""

    outputs: float
    squares: float
    positive_definite: str = "yes"

    def combine(self, beta):
        return Ball(beta.copy(), np.zeros_like(beta))

    def outputs_bound(self, w):
        return Ball(w.value + 0.1 * self.outputs, np.full_like(w.value, 0.1))

    def square_bound(self, w, outputs):
        return Ball(float(w.value @ w.value) + 0.1 * self.squares, 0.1)


@pytest.mark.parametrize("outputs", [-1.0, 1.0])
@pytest.mark.parametrize("squares", [-1.0, 1.0])
@pytest.mark.parametrize("w", [0.5, 3.0])
def test_values_of_a_descent(w, squares, outputs):
    """One sample: P = ½w² + C max(0, 1 − w), and D(α) = α − ½α² ≤ 3/8 for α ≤ C = ½."""
    half = np.full(1, 0.5)
    proof = _certified(DeclaredSpace(outputs, squares), np.ones(1), half, np.full(1, w), half)
    assert proof.primal >= 0.5 * w * w + 0.5 * max(0.0, 1 - w)
    assert proof.dual <= 0.375


@pytest.mark.parametrize("outputs", [-1.0, 1.0])
@pytest.mark.parametrize("squares", [-1.0, 1.0])
@pytest.mark.parametrize("start", [(2.0, 1.0), (2.0, *[1.0] * 10)])
def test_the_violation_of_a_descent(start, squares, outputs):
    """α is the start times Σα/‖v‖², with ‖v‖² as it is told, and its slopes are 1 − α."""
    start = np.array(start)
    n, told = len(start), start @ start + 0.1 * squares
    proof = _certified(DeclaredSpace(outputs, squares), np.ones(n), np.full(n, 4.0), np.zeros(n), start)
    slopes = 1 - start * start.sum() / told
    assert proof.violation >= np.abs(slopes).max() - 1e-12


class ExactSpace(DeclaredSpace):
    """Orthonormal samples without any error; an indefinite kernel has squares below 0."""

    def outputs_bound(self, w):
        return Ball(w.value + self.outputs, np.zeros_like(w.value))

    def square_bound(self, w, outputs):
        return Ball(self.squares * float(w.value @ w.value), 0.0)


@pytest.mark.parametrize("f", [-(2.0**54), -(2.0**-54)])
def test_the_rounding_of_residuals_of_a_descent(f):
    """1 − f is rounded to less than it is, where the one number or the other is much larger."""
    proof = _certified(ExactSpace(f, 0.0), np.ones(1), np.ones(1), np.zeros(1), np.zeros(1))
    assert Fraction(proof.kkt["primal feasibility"]) >= 1 - Fraction(f)


def test_the_rounding_of_losses_of_a_descent():
    """2⁵³ and 3000 times 0.9, of which a sum one after another has the first number."""
    C = np.full(3001, 0.9)
    C[0] = 2.0**53
    zeros = np.zeros(3001)
    proof = _certified(ExactSpace(0.0, 0.0), np.ones(3001), C, zeros, zeros)
    assert Fraction(proof.primal) >= 2**53 + 3000 * Fraction(0.9)


def test_an_indefinite_kernel_has_no_dual_value_above_the_primal_one():
    """‖v‖² = −‖α‖² makes Σα − ½‖v‖² larger than ½‖w‖² and no losses."""
    proof = _certified(ExactSpace(2.0, -1.0, "no"), np.ones(1), np.ones(1), np.zeros(1), np.ones(1))
    assert proof.dual <= proof.primal


@pytest.mark.parametrize("sign", SIGNS)
def test_sizes_of_a_sum_of_kernels(sign):
    K, y = matrix(6), np.where(np.arange(6) % 2, 1.0, -1.0)
    beta = y * np.linspace(0.1, 0.6, 6)
    _, _, s = certify_machine(soft_margin(y, np.ones(6)).without_bias(), [Declared(K, 0.05, sign)], beta, np.ones(1))
    assert s.low[0] <= beta @ K @ beta <= s.high[0]
