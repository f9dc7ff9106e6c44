"""Each error term of the proofs of hulls decides one of these claims, in fractions."""

from fractions import Fraction

import numpy as np
import pytest

from certificates.test_error_terms import Declared
from certificates.test_rounding_terms import Fixed
from mercer.certificates.certificate import Certificate, kkt_residuals
from mercer.certificates.hulls import (
    Centring,
    certify_hard_margin,
    divide_nu_certificate,
    hard_margin_certificate,
    hard_margin_through_origin,
    widen_for_division,
    with_halfway_bias,
)
from mercer.problems.classification import reduced_hulls, rho_and_b, soft_margin

EQUALITY, OUTWARD, INWARD = "dual feasibility: equality", "primal feasibility", "complementary slackness"
U = Fraction(1, 2**53)
NUMBERS = np.random.default_rng(0).uniform(0.1, 9, (100, 4)).tolist()


def proof_of_hulls(square, gap=0.0, residual=0.0, b=(-1.0, 1.0)):
    """‖w‖² is at most `square`, and at least that minus 2·gap."""
    kkt = kkt_residuals(0.0, 0.0, residual, residual)
    return Certificate(gap - square / 2, -square / 2, gap, residual, kkt, "optimality", b=b)


@pytest.mark.parametrize("moved", [False, True])
def test_values_of_a_hard_margin(moved):
    """½‖w‖² = 2/L² for every length L of w that the hulls' certificate and the moves of both hulls' samples allow."""
    for a, c, _, step in NUMBERS:
        near, m = float(np.float16(a)) + 1.0, Fraction(step / 100) if moved else Fraction(0)  # eleven digits
        far = near + float(np.float16(c))
        proof = proof_of_hulls(far * far, (far * far - near * near) / 2)
        told = hard_margin_certificate(proof, 1.0, 0.0, float(m))
        assert Fraction(told.primal) >= 2 / (Fraction(near) - 2 * m) ** 2
        assert Fraction(told.dual) <= 2 / (Fraction(far) + 2 * m) ** 2
    for a, *_ in NUMBERS:  # roots that are rounded
        told = hard_margin_certificate(proof_of_hulls(a), 1.0, 0.0)
        assert Fraction(told.dual) <= 2 / Fraction(a) <= Fraction(told.primal)


def test_residuals_of_a_hard_margin():
    """Margins with a sample that moved, a b that was rounded, and hulls whose offsets are not 2ρ apart."""
    for a, rho, residual, off in NUMBERS:
        b = (-a - off, a)
        told = hard_margin_certificate(proof_of_hulls(4.0, 0.0, residual, b), rho, 0.5 * (b[0] + b[1]) / rho)
        above, below = map(Fraction, b)
        half, true = (below - above) / 2, (above + below) / 2
        lost = abs(half - Fraction(rho)) + abs(true - Fraction(told.b[0]) * Fraction(rho))
        for name in (OUTWARD, INWARD):
            assert Fraction(told.kkt[name]) >= (Fraction(residual) + lost) / Fraction(rho)
        assert Fraction(told.kkt[EQUALITY]) >= 2 / Fraction(rho) * U  # coefficients that add up to 1, divided by ρ
    exact = hard_margin_certificate(proof_of_hulls(4.0, 0.0, 0.5), 1.0, 0.0)
    assert exact.kkt[OUTWARD] < 0.5 + 1e-14
    for step, *_ in NUMBERS:
        told = hard_margin_certificate(proof_of_hulls(4.0), 1.0, 0.0, step)
        assert Fraction(told.violation) >= 2 * Fraction(step) * (2 + 2 * Fraction(step))
    assert hard_margin_certificate(proof_of_hulls(4.0), 1.0, 0.0, 0.0, 0.25).violation >= 0.5


def test_an_offset_whose_sum_cancels():
    """(b₊ + b₋)/2 = ½ of 2⁵³ + 1 and −2⁵³, and ρ is 2⁵³ in float64."""
    b = (-(2.0**53), 2.0**53 + 2)
    rho, middle = rho_and_b(b)
    told = hard_margin_certificate(proof_of_hulls(4.0, b=b), rho, middle / rho)
    lost = abs((Fraction(b[1]) - Fraction(b[0])) / 2 - Fraction(rho))
    assert lost > 0
    assert Fraction(told.kkt[OUTWARD]) >= lost / Fraction(rho)


def test_a_centre_that_is_added_back():
    """⟨w, c⟩ is a sum of as many products, which is off by γ of ‖w‖·‖c‖, and Σβ times ⟨c, x⟩ is not there."""
    terms, norm, length, reach = 5, 3.0, 7.0, 2.0
    assert Fraction(Centring(0.0, length, terms).tilt(norm, reach, 0.0)) >= terms * U * Fraction(norm * length)
    for total, long, far, _ in NUMBERS:
        assert Fraction(Centring(0.0, long, 0).tilt(0.0, far, total)) >= Fraction(total) * Fraction(long) * Fraction(
            far
        )
    assert Centring().tilt(norm, reach, 0.0) < 1e-300


def test_a_bias_halfway_between_support_vectors():
    """Residuals of ±½ around the certified b, which moves by ½."""
    proof = with_halfway_bias(Certificate(1.0, 1.0, 0.0, 0.5, kkt_residuals(0.1, 0.1, 0.5, 0.25), "optimality"))
    assert proof.kkt[OUTWARD] >= 1.0
    assert proof.kkt[INWARD] >= 0.75


@pytest.mark.parametrize("sign", [(1.0, 0.0), (0.0, -1.0)])
def test_separation_that_seems_to_be_larger(sign):
    """w = 2 from x = ±1. The sample at ½ or −½ seems to be further away, and the other one is at ±¾.

    So the margin is 1 without a bias, and 5/4 with it: ½‖w‖² = 2 and 32/25.
    """
    x, y = np.array([1.0, -1.0, 0.5 if sign[0] else 0.75, -0.5 if sign[1] else -0.75]), np.array([1.0, -1.0, 1.0, -1.0])
    K, beta = np.outer(x, x), np.array([1.0, -1.0, 0.0, 0.0])
    gram = Fixed(K, np.array([0.0, 0.0, *(0.25 * abs(way) for way in sign)]), np.array([0.0, 0.0, *sign]))
    assert certify_hard_margin(soft_margin(y, np.full(4, np.inf)), gram, beta).primal >= 1.28
    soft = Certificate(9.0, 0.0, 9.0, 0.0, kkt_residuals(0.0, 0.0, 0.0, 0.0), "optimality")
    assert hard_margin_through_origin(soft, gram, y, beta).primal >= 2.0


def test_an_energy_that_is_larger_than_it_seems():
    """β = (1, 1), K = diag(1, 9): a margin of 1 and ‖w‖² = 10, of which 4 are hidden."""
    y = np.ones(2)
    soft = Certificate(9.0, 0.0, 9.0, 0.0, kkt_residuals(0.0, 0.0, 0.0, 0.0), "optimality")
    gram = Fixed(np.diag([1.0, 9.0]), np.array([0.0, 4.0]), np.array([0.0, -1.0]))
    proof = hard_margin_through_origin(soft, gram, y, y)
    assert proof.primal >= 5.0
    assert proof.dual <= 4.0 / 20.0


@pytest.mark.parametrize("large", ["kernel", "bias"])
def test_coefficients_that_will_be_divided(large):
    """One rounding of every β moves u by 2⁻⁵³ Σ|β||K|, one of b moves f: losses, energies, residuals and sums."""
    y, beta = np.array([1.0, 1.0, -1.0, -1.0]), np.array([1.0, 1.0, -1.0, -1.0])
    K = np.full((4, 4), 2.0**20) if large == "kernel" else np.zeros((4, 4))
    b = (-(2.0**40), 2.0**40) if large == "bias" else (0.0, 0.0)
    problem = reduced_hulls(y, np.full(4, 2.0**30), 2.0**-30)
    proof = Certificate(0.0, 0.0, 0.0, 0.0, kkt_residuals(0.0, 0.0, 0.0, 0.0), "optimality", b=b)
    told = widen_for_division(proof, problem, Declared(K, 0.0, "up"), beta)
    moved = U * (4 * 2**20 if large == "kernel" else 2**40)
    assert Fraction(told.kkt[OUTWARD]) >= moved
    assert Fraction(told.violation) >= 2 * moved
    assert Fraction(told.primal) >= 4 * 2**30 * moved
    assert Fraction(told.kkt[EQUALITY]) >= 4 * U
    small = widen_for_division(proof, reduced_hulls(y, np.full(4, 1e-300), 1e300), Declared(K, 0.0, "up"), beta)
    assert large == "bias" or Fraction(small.primal) >= 4 * moved  # ½(β + δ)'K(β + δ) − ½β'Kβ


def test_values_in_the_scale_of_f_are_rounded():
    """Two quotients, of a proof without a gap."""
    for value, rho, *_ in NUMBERS:
        proof = Certificate(value, value, 0.0, value, kkt_residuals(value, value, value, value), "optimality")
        divided, true = divide_nu_certificate(proof, rho), Fraction(value) / Fraction(rho)
        assert Fraction(divided.dual) <= true / Fraction(rho) <= Fraction(divided.primal)
        assert Fraction(divided.gap) >= Fraction(divided.primal) - Fraction(divided.dual)
        assert Fraction(divided.violation) >= true
        assert all(Fraction(residual) >= true for residual in divided.kkt.values())
