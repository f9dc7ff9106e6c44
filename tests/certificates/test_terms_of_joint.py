"""Error terms of a joint machine's certificate, each of which decides one of these claims."""

from fractions import Fraction

import numpy as np
import pytest

from certificates.test_error_terms import Declared
from certificates.test_rounding_terms import Fixed, JointRows
from mercer.certificates.joint import _biases, _violations, certify_joint, certify_joint_rows, row_residuals
from mercer.places.ball import exact
from mercer.problems.multiclass import JointProblem

EQUALITY, SLACK = "dual feasibility: equality", "complementary slackness"
STATED = 16 * Fraction(1, 2**53)
LABEL = np.zeros(1, dtype=np.intp)


def one(C=1.0, classes=2, shared=True, **more):
    return JointProblem(LABEL, np.full(1, C), classes, shared=shared, **more)


def test_a_bound_that_is_not_what_it_seems():
    """Without a kernel the loss is C, and so is the dual value at β = (C, −C); C is known up to 16 roundings."""
    nothing = Declared(np.zeros((1, 1)), 0.0, "up")
    assert Fraction(certify_joint(one(0.3), nothing, np.zeros((1, 2)))[0].primal) >= Fraction(0.3) * (1 + STATED)
    dual = certify_joint(one(0.3), nothing, np.array([[0.3, -0.3]]))[0].dual
    assert Fraction(dual) <= Fraction(0.3) * (1 - STATED)


def test_a_multiplier_that_exceeds_its_bound_by_rounding():
    """β = (1 + t, −1 − t) for C = 1, without a kernel: the optimum is 1."""
    beta = np.array([[1 + 1e-10, -1 - 1e-10]])
    proof, _ = certify_joint(one(), Declared(np.zeros((1, 1)), 0.0, "up"), beta)
    assert np.isfinite(proof.dual)
    assert proof.dual <= 1.0


def test_a_slope_that_is_known_up_to_an_error():
    """What Σ_k β_ik misses goes to the label's β, whose gradient is −7 and not 1."""
    t = 2.0**-10
    gram = Fixed(np.zeros((1, 1)), 8.0, np.array([0.0]))
    proof, _ = certify_joint(one(), gram, np.array([[t, 0.0]]))
    assert proof.dual <= t - 8 * 2 * t / 2 - t  # t less its part of the energy, and t times the slope 1


@pytest.mark.parametrize("seed", range(40))
def test_sums_in_fractions(seed):
    """Σ_k β_ik, Σ_k α_ik − C, b and differences of two excesses, each of which float64 rounds."""
    rng = np.random.default_rng(seed)
    beta = np.array([[0.0, *-rng.random(5) * 10.0 ** rng.uniform(-18, 0, 5)]])
    alpha = -sum(map(Fraction, beta[0].tolist()))
    beta[0, 0] = rng.random()
    C = np.nextafter(float(alpha), 0.0)
    box, equality = row_residuals(beta, LABEL, np.full(1, C), shared=True)
    assert Fraction(box) >= alpha - Fraction(C)
    assert Fraction(equality) >= abs(sum(map(Fraction, beta[0].tolist())))
    column = rng.normal(size=(7, 2))
    problem = JointProblem(np.zeros(7, dtype=np.intp), np.ones(7), 2, shared=True, shift=rng.random())
    b = _biases(problem, column)
    for k in range(2):
        true = Fraction(problem.shift) * sum(map(Fraction, column[:, k].tolist()))
        assert Fraction(b.low[k]) <= true <= Fraction(b.high[k])
    e = rng.normal(size=(1, 2))
    e[0, 1] = 1.0 + abs(e[0, 1])
    assert Fraction(float(_violations(one(), np.zeros((1, 2)), exact(e))[0])) >= Fraction(e[0, 1]) - Fraction(e[0, 0])


def test_an_excess_that_a_sum_of_multipliers_hides():
    """1 + 2⁻⁵⁴ + 2⁻⁵⁴ is 1 in float64."""
    beta = np.array([[1.0, -1.0, -(2.0**-54), -(2.0**-54)]])
    assert Fraction(row_residuals(beta, LABEL, np.ones(1), shared=True)[0]) >= Fraction(1, 2**53)


@pytest.mark.parametrize("C", [1.0, 9.0])
def test_multipliers_of_losses_that_are_not_the_largest(C):
    """f = (1, 0, −1) seems to be (¾, 0, −¾): the loss of class 2, which has a multiplier, is short of the largest by 1.

    The sample's multipliers are at their bound, where the loss of class 1 counts, or below it, where 0 does.
    """
    proof, _ = certify_joint(one(C, 3), Declared(np.eye(1), 0.25, "against β"), np.array([[1.0, 0.0, -1.0]]))
    assert proof.kkt[SLACK] >= 1.0


def test_weights_that_are_not_the_combination():
    """A margin of 1 by w = ±½, and β = ±⅓: the distance joins the violation, as a share of the primal value."""
    rows = JointRows(np.ones((1, 1)), share=0.5)
    _, proof = certify_joint_rows(one(), rows, np.array([[1.0, -1.0]]) / 3)
    assert proof.violation >= 0.5 * 2 / 36 / proof.primal * (1 - 1e-9)
    assert proof.gap >= 1 / 36
