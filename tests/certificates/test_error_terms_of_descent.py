"""Errors that a feature space declares to the certificate of stochastic descent, and a kernel matrix to its sizes."""

from dataclasses import dataclass

import numpy as np
import pytest

from certificates.test_error_terms import SIGNS, Declared, matrix
from mercer.certificates.descent import _certified
from mercer.certificates.kernel_weights import machine_proof
from mercer.gram.ball import Ball
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


@pytest.mark.parametrize("sign", SIGNS)
def test_sizes_of_a_sum_of_kernels(sign):
    K, y = matrix(6), np.where(np.arange(6) % 2, 1.0, -1.0)
    beta = y * np.linspace(0.1, 0.6, 6)
    _, _, s = machine_proof(soft_margin(y, np.ones(6)).without_bias(), [Declared(K, 0.05, sign)], beta, np.ones(1))
    assert s.low[0] <= beta @ K @ beta <= s.high[0]
