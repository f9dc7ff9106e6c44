"""Errors of least squares, and of the coefficients of copies: claims that one sign of an error makes false."""

from fractions import Fraction

import numpy as np
import pytest

from certificates.test_error_terms import Declared
from mercer.certificates.certificate import Certificate, kkt_residuals
from mercer.certificates.copies import CopyErrors, widen_joint_for_copies
from mercer.certificates.least_squares import certify_outputs
from mercer.certificates.weights import certify_weights
from mercer.kernels import Linear
from mercer.places import gram_for
from mercer.problems.least_squares import LeastSquares
from mercer.problems.multiclass import JointProblem


def at_zero(sign, side=1.0):
    """The proof of β = 0 for targets 1 to 3, or −1 to −3, where f = 0 is known up to 1/4."""
    y, zero = side * np.array([[1.0], [2.0], [3.0]]), np.zeros((3, 1))
    U = np.full((3, 1), 0.25 if sign == "up" else -0.25)
    problem = LeastSquares(y, np.ones(3), np.arange(3), 3, False, 0.5)
    return certify_outputs(problem, Declared(np.eye(3), 0.25, sign), zero, U, np.full((3, 1), 0.25), zero)


def test_errors_of_f_are_in_the_losses():
    """P(0) = Σy²/2λ."""
    for sign in ("up", "down"):
        proof = at_zero(sign)
        assert proof.primal >= 14.0


def test_errors_of_f_are_in_the_violation_of_either_sign():
    for sign in ("up", "down"):
        assert at_zero(sign).violation >= 3.0
        assert at_zero(sign, -1.0).violation >= 3.0


def test_coefficients_of_rows_that_add_up_to_others():
    """y − f − λβ is 0 where f has C, and β is not C: P(f_β) − P* = ½(1 + 1/λ)(β − β*)² for k = y = 1."""
    lam = 0.1
    problem, best = LeastSquares(np.ones((1, 1)), np.ones(1), np.arange(1), 1, False, lam), 1 / (1 + lam)
    for off in (-0.1, 0.1):
        beta = np.full((1, 1), best + off)
        C = 1 - lam * beta
        proof = certify_outputs(problem, Declared(np.eye(1), 0.0, "up"), beta, C, np.zeros((1, 1)), C)
        assert proof.kkt["primal value above the optimum"] >= 0.5 * (1 + 1 / lam) * off**2


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_weights_that_are_off_by_a_step_of_one_feature(scale, bias):
    """P(w, b) = w²/(2 scale) + Σ(y − wx − b)²/2λ is a parabola in fractions; the bound has no room below it."""
    x, y, lam = np.array([1.0, 2.0, 4.0, 8.0]), np.array([3.0, 5.0, 8.0, 18.0]), 0.25
    problem = LeastSquares(y[:, None], np.ones(4), np.arange(4), 4, bias, lam)
    linear = gram_for(scale * Linear(), x[:, None]).linear

    def primal(w, b):
        losses = sum((Fraction(t) - w * Fraction(s) - b) ** 2 for s, t in zip(x.tolist(), y.tolist(), strict=True))
        return w**2 / Fraction(2 * scale) + losses / Fraction(2 * lam)

    mean, height = (Fraction(float(v.mean())) if bias else Fraction(0) for v in (x, y))
    pairs = [(Fraction(s) - mean, Fraction(t) - height) for s, t in zip(x.tolist(), y.tolist(), strict=True)]
    best = sum(s * t for s, t in pairs) / (sum(s * s for s, _ in pairs) + Fraction(lam / scale))
    optimum = primal(best, height - best * mean)
    for step, lift in ((0.5, 0.0), (-0.25, 0.0), (0.125, 0.5)):
        w = float(best) + step
        b = float(height - Fraction(w) * mean) + lift if bias else 0.0
        _, proof = certify_weights(problem, linear, np.full((1, 1), w), np.full(1, b), None, linear.sums(problem))
        lost, above = primal(Fraction(w), Fraction(b)) - optimum, proof.kkt["primal value above the optimum"]
        assert lost <= Fraction(above)
        assert lift or Fraction(above) <= lost * Fraction(1.001)


def test_coefficients_of_copies_of_a_joint_machine():
    """Without a kernel D = Σβ of the labels, of which copies lack 1/8."""
    problem, beta = JointProblem(np.zeros(2, dtype=np.intp), np.ones(2), 2, shared=True), np.array([[1.0, -1.0]] * 2)
    whole = Certificate(2.0, 2.0, 0.0, 0.0, kkt_residuals(0.0, 0.0, 0.0, 0.0), "optimality", b=(0.0, 0.0))
    lacking = CopyErrors(np.array([0.125, 0.125]), np.zeros(2), np.zeros(2))
    proof = widen_joint_for_copies(whole, lacking, problem, beta, np.zeros(2), (0.0, 0.0))
    assert proof.dual <= 2 - 0.125
    assert proof.kkt["dual feasibility: equality"] >= 0.125
