"""Each error term that coefficients of copies add to a certificate decides one of these claims."""

from fractions import Fraction

import numpy as np
import pytest

from mercer.certificates.certificate import BOX, EQUALITY, Certificate, kkt_residuals
from mercer.certificates.copies import (
    CopyErrors,
    Variables,
    widen_for_copies,
    widen_joint_for_copies,
    widen_outputs_for_copies,
)
from mercer.problems.least_squares import LeastSquares
from mercer.problems.multiclass import JointProblem

OUTWARD, ABOVE = "primal feasibility", "primal value above the optimum"
U = Fraction(1, 2**53)


def whole(value=0.0, gap=0.0, violation=0.0, b=(0.0,)):
    return Certificate(value, value, gap, violation, kkt_residuals(0.0, 0.0, violation, 0.0), "optimality", b=b)


def one(p=0.0, beta=0.0, upper=1.0, d=0.0, r=1.0):
    """One variable with 0 ≤ β ≤ upper."""
    return Variables(np.zeros(1, dtype=np.intp), *(np.array([v]) for v in (p, 0.0, upper, d, beta, r)))


def lacking(delta=0.0, length=0.0, curved=0.0):
    return CopyErrors(np.array([delta]), np.array([length]), np.array([curved]))


def test_a_loss_at_outputs_that_moved():
    """C = 8 and f off by ¼·2: primal is larger by 4."""
    assert widen_for_copies(whole(), lacking(1.0, 0.25), one(upper=8.0, r=2.0)).primal >= 4.0


def test_an_energy_of_coefficients_that_moved():
    """½(β + δ)² for β = 8 and δ = ¼, without a loss."""
    assert widen_for_copies(whole(32.0), lacking(0.25, 0.25), one(beta=8.0, upper=0.0)).primal >= 8.25**2 / 2
    assert widen_for_copies(whole(), lacking(4.0, 4.0), one(upper=0.0)).primal >= 8.0  # ½δ² alone


def test_a_gain_of_coefficients_that_moved():
    """p'δ, without a kernel."""
    proof = widen_for_copies(whole(), lacking(0.25, 1e-300), one(p=-16.0))
    assert np.isfinite(proof.dual)  # 0/0 would be NaN
    assert proof.dual <= -4.0


def test_residuals_of_coefficients_that_moved():
    """f off by ½: two gradients differ by 1 more. Σβ is off by ¼, and dβ of a copy by 3."""
    proof = widen_for_copies(whole(), lacking(0.25, 0.25), one(r=2.0))
    assert proof.violation >= 1.0
    assert proof.kkt[OUTWARD] >= 0.5
    assert proof.kkt[EQUALITY] >= 0.25
    assert widen_for_copies(whole(), lacking(0.0, 0.0, 3.0), one(d=1.0)).violation >= 6.0


def test_a_multiplier_without_a_bound():
    """r²/2d at r = β d + violation + s, of which the slope is no more than β + (violation + s)/d."""
    d, s = 0.5, 0.25
    for violation, beta in ((0.0, 0.0), (8.0, 0.0), (0.0, 8.0), (8.0, 8.0)):
        r = d * beta + violation
        proof = widen_for_copies(whole(0.0, 0.0, violation), lacking(s, s), one(beta=beta, upper=np.inf, d=d))
        assert proof.primal >= ((r + s) ** 2 - r**2) / (2 * d)


def test_a_ridge_of_copies():
    """The losses r²/2d of copies whose own dβ is off by c, with and without a violation: (r + c)²/2d − r²/2d."""
    for violation, curved in ((0.0, 4.0), (8.0, 4.0), (8.0, 2.0**-20)):
        proof = widen_for_copies(whole(0.0, 0.0, violation), lacking(0.0, 0.0, curved), one(upper=np.inf, d=0.5, r=0.0))
        assert proof.primal >= ((violation + curved) ** 2 - violation**2) / 1.0 / 2


def test_a_copys_bound_is_rounded():
    """Copies share C, each share rounded: C·violation, or the gap, is larger by that."""
    proof = widen_for_copies(whole(0.0, 0.0, 2.0**40), lacking(1e-300, 1e-300), one(upper=2.0**20))
    assert Fraction(proof.primal) >= 2**60 * U
    proof = widen_for_copies(whole(0.0, 2.0**60), lacking(1e-300, 1e-300), one())
    assert Fraction(proof.primal) >= 2**60 * U


def joint(beta=0.0, C=1.0, r=0.0, delta=0.0, length=0.0, residuals=(0.0, 0.0), classes=3, shared=False):
    """One sample of class 0, and δ of class 1."""
    problem = JointProblem(np.zeros(1, dtype=np.intp), np.full(1, C), classes, shared=shared)
    sums, lengths = np.zeros((2, classes))
    sums[1], lengths[1] = delta, length
    off = CopyErrors(sums, lengths, np.zeros(classes))
    coefficients = np.zeros((1, classes))
    coefficients[0, 1] = -beta
    start = whole(b=(0.0,) * classes)
    return widen_joint_for_copies(start, off, problem, coefficients, np.full(1, r), residuals)


@pytest.mark.parametrize(
    ("values", "primal"),
    [
        ({"beta": 8.0, "r": 1.0, "length": 0.25, "C": 1e-300}, 8.25**2 / 2 - 32),  # ½(β + δ)²
        ({"r": 1.0, "length": 4.0, "C": 1e-300}, 8.0),  # ½δ² alone
        ({"r": 2.0, "length": 0.25, "C": 8.0, "shared": True}, 8 * 0.5),  # f of class 1, and the largest loss
        ({"r": 2.0, "length": 0.25, "C": 8.0, "classes": 9}, 8 * 0.5 * 8),  # f of the label, and all losses
    ],
)
def test_values_of_a_joint_machine(values, primal):
    assert joint(**values).primal >= primal


def test_residuals_of_a_joint_machine():
    """Two f of a sample are off by ½ each: a violation is a difference of two differences of such."""
    proof = joint(r=2.0, length=0.25, delta=0.125)
    assert proof.violation >= 4 * 0.5
    assert proof.kkt[EQUALITY] >= 0.125
    assert joint(delta=0.125).dual <= -0.125
    proof = joint(residuals=(0.25, 0.5))
    assert proof.kkt[BOX] >= 0.25
    assert proof.kkt[EQUALITY] >= 0.5


def test_what_overflows_proves_nothing():
    assert joint(C=1e-300, r=np.inf, length=0.25).primal == np.inf


def shared(copies=(4.0, 4.25), r=2.0, lam=1.0, value=0.0, violation=0.0, b=0.0, above=0.0, of_weights=False):
    """One row of weight 2 with β = 8, which two copies share: δ = ¼ and d = λ/2."""
    start = whole(value, 0.0, violation, (b,))
    start.kkt[ABOVE] = above
    problem = LeastSquares(np.zeros((1, 1)), np.full(1, 2.0), np.zeros(1, dtype=np.intp), 1, True, lam)
    beta, group = np.full((1, 1), 8.0), np.zeros(2, dtype=np.intp)
    copies = np.array(copies)[:, None]
    return widen_outputs_for_copies(start, problem, beta, copies, np.ones(2), group, np.full(1, r), of_weights)


def test_residuals_of_rows_that_share_a_coefficient():
    """f is off by 2·2·¼ = 1, or dβ of a copy by 1, and two gradients by twice as much; Σβ is what it is."""
    proof = shared(lam=2.0**-60)
    assert proof.violation >= 2.0
    assert proof.kkt[OUTWARD] >= 1.0
    assert proof.kkt[EQUALITY] >= 8.25
    assert shared((3.0, 5.0), r=0.0).violation >= 2.0
    assert shared((-8.0, 8.0)).kkt[EQUALITY] == 0
    assert Fraction(shared((8.0, 2.0**-60)).kkt[EQUALITY]) > 8
    rounded = shared((4.0, 4.0), lam=0.3).violation  # λ/w, d and both products are rounded
    assert 2 * float(U) * 1.2 <= rounded <= 1e-14


@pytest.mark.parametrize(
    ("values", "loss"),
    [
        ({"r": 0.0, "b": 16.0}, 4.0),  # δb
        ({"r": 0.0, "violation": 16.0}, 4.0),  # δq
        ({"r": 4.0, "of_weights": True, "lam": 2.0**-60}, 0.5),  # ½δ'Kδ
        ({"r": 0.0, "copies": (3.0, 5.0)}, 1.0),  # ½Σdε²
    ],
)
def test_dual_values_of_rows_that_share_a_coefficient(values, loss):
    assert shared(**values).dual <= -loss


def test_primal_values_of_rows_that_share_a_coefficient():
    """½(Kδ)²/d and q(Kδ)/d, where f is given by β."""
    assert shared(lam=2.0**-60).primal >= 2.0**60
    assert shared(violation=16.0).primal >= 32.0
    assert shared(violation=16.0, of_weights=True).primal < 8.0


def test_rows_that_share_a_coefficient_above_the_optimum():
    """The root of P − P* grows by that of ½δ'Kδ + ½(Kδ)²/d, and by a rounding of √P."""
    assert shared(lam=2.0**60).kkt[ABOVE] >= 0.125
    assert shared(lam=2.0**-60).kkt[ABOVE] >= 2.0**60
    assert shared(above=1.0).kkt[ABOVE] >= (1 + 1.125**0.5) ** 2 * (1 - 1e-15)
    assert shared(above=1.0, of_weights=True).kkt[ABOVE] == pytest.approx(1)
    assert shared((4.0, 4.0), value=2.0**106).kkt[ABOVE] >= 1


def test_weights_of_rows_that_share_a_coefficient_are_rounded():
    proof = shared((4.0, 4.0), value=2.0**60)
    assert Fraction(proof.primal) >= 2**60 * (1 + U)
    assert Fraction(proof.dual) <= 2**60 * (1 - U)


def test_unknown_values_of_rows_that_share_a_coefficient():
    for copies in ((4.0, 4.25), (4.0, 4.0)):  # 0·∞ would be NaN
        proof = shared(copies, r=np.inf)
        assert proof.gap == proof.violation == proof.kkt[ABOVE] == np.inf
