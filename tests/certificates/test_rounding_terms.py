"""Single error terms decide these claims: without any one of them a claim is false, which exact numbers show."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from certificates.test_error_terms import Declared
from certificates.test_error_terms_of_losses import SecondProductOff, linear_loss
from certificates.test_error_terms_of_rows import DeclaredRows
from mercer.certificates.certificate import Certificate, bounded_sum, kkt_residuals
from mercer.certificates.dual import LastSums
from mercer.certificates.hulls import hard_margin_through_origin
from mercer.certificates.joint import certify_joint_rows
from mercer.certificates.kernel_weights import WeightsProblem, _norm_bound, certify_kernel_weights
from mercer.certificates.least_squares import certify_limit, certify_outputs
from mercer.certificates.linear import certify_linear
from mercer.certificates.ranking import _sums, certify_ranking
from mercer.certificates.representer import certify_representer
from mercer.certificates.table import pair_certificates
from mercer.places.ball import Ball, exact
from mercer.problems.least_squares import LeastSquares
from mercer.problems.linear_problem import LinearProblem
from mercer.problems.losses import Squared
from mercer.problems.multiclass import JointProblem
from mercer.problems.penalties import PENALTIES
from mercer.problems.ranking import RankDual, RankProblem
from mercer.problems.representer import RepresenterProblem

EQUALITY = "dual feasibility: equality"
SUBOPTIMALITY = "primal value above the optimum"


# --- any loss -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("target", "sign"), [(-3.0, "down"), (3.0, "up")])
@pytest.mark.parametrize("bias", [False, True])
def test_gradients_at_both_ends_of_f_for_any_loss(target, sign, bias):
    """f = 0 seems to be nearer to the targets than it is, and all gradients smaller."""
    problem = RepresenterProblem(np.full(4, target), np.ones(4), Squared(), 0.5, bias, PENALTIES["squared_norm"])
    proof = certify_representer(problem, Declared(np.eye(4), 0.25, sign), np.zeros(4), 0.0)
    steep = float(np.abs(Squared().gradient(np.full(1, target), np.zeros(1)))[0])
    assert proof.violation >= steep
    assert not bias or proof.kkt[EQUALITY] >= 4 * steep


def test_a_bias_that_is_not_the_best_for_any_loss():
    """Next to no kernel: P − P* = Σ(b − mean y)², and the dual point is where the gradients add up to 0."""
    y = np.array([1.0, 2.0, 3.0])
    problem = RepresenterProblem(y, np.ones(3), Squared(), 0.5, True, PENALTIES["squared_norm"])
    proof = certify_representer(problem, Declared(1e-9 * np.eye(3), 0.0, "up"), np.zeros(3), 2.5)
    excess = float(Squared().value(y, np.full(3, 2.5)).sum() - Squared().value(y, np.full(3, 2.0)).sum())
    assert proof.kkt[SUBOPTIMALITY] >= excess - 1e-6


def test_a_function_of_zero_whose_gradient_is_steeper_than_it_seems():
    """Linear losses −Σf and λ‖f‖ at f = 0: the violation is ‖G‖ − λ."""
    K = np.eye(5)
    proof = certify_representer(linear_loss(5, 0.25, "norm"), SecondProductOff(K, 0.5, "against β"), np.zeros(5), 0.0)
    assert proof.violation >= (np.sqrt(5.0) - 0.25) * (1 - 1e-6)


@pytest.mark.parametrize("target", [-3.0, 3.0])
def test_values_of_a_loss_are_rounded(target):
    """A loss that is off by ten roundings, which it may be."""

    class Off(Squared):
        def value(self, y, f):
            return super().value(y, f) * (1 - 10 * 2.0**-53)

        def gradient(self, y, f):
            return super().gradient(y, f) * (1 - 10 * 2.0**-53)

    y = np.array([target])
    problem = RepresenterProblem(y, np.ones(1), Off(), 0.5, False, PENALTIES["squared_norm"])
    proof = certify_representer(problem, Declared(np.zeros((1, 1)), 0.0, "up"), np.zeros(1), 0.0)
    assert Fraction(proof.primal) >= Fraction(float(Squared().value(y, np.zeros(1))[0]))
    assert Fraction(proof.violation) >= abs(Fraction(float(Squared().gradient(y, np.zeros(1))[0])))


# --- least squares --------------------------------------------------------------------------------------------------


class Fixed(Declared):
    """Products that are off by `size` in a direction for each row, which `sign` gives."""

    def product_bound(self, c, rows=None, level=None):
        true = self.K @ c
        off = self.size * np.asarray(self.sign).reshape(-1, *[1] * (true.ndim - 1)) * np.ones_like(true)
        return Ball(true + off, np.full_like(true, self.size))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_least_squares_without_a_penalty(side, sign):
    """½Σw(y − f)², KW(y − f) and Σw(y − f) of an f that is off by 1/4, which the residuals hide or not."""
    K, y, w = np.diag([1.0, 2.0, 3.0]), side * np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 2.0, 0.5])
    gram = Fixed(K, 0.25, np.full(3, sign))
    problem, C = LeastSquares(y, w, np.arange(3), 3, True, 0.0), np.full((3, 1), 0.125)
    proof = certify_limit(problem, gram, C, gram.product_bound(C).value, np.zeros(1))
    r = y - K @ C
    risk = 0.5 * float(w @ r[:, 0] ** 2)
    assert proof.primal >= risk
    assert proof.dual <= risk
    assert proof.kkt["normal equations"] >= np.abs(K @ (w[:, None] * r)).max()
    assert proof.kkt["residuals sum to 0"] >= abs(float(w @ r[:, 0]))


def test_the_rows_slopes_of_least_squares_without_a_penalty_are_off():
    """The residuals are off by 1/4 and the product with them is exact: the gradient is off by 2·1/4 in each row."""
    K, y = np.full((2, 2), 1.0), np.array([[1.0], [1.0]])

    class First(Fixed):
        def product_bound(self, c, rows=None, level=None):
            self.told.append(1)
            return Fixed(self.K, self.size if len(self.told) == 1 else 0.0, self.sign).product_bound(c)

    gram = First(K, 0.25, np.ones(2))
    problem, C = LeastSquares(y, np.ones(2), np.arange(2), 2, False, 0.0), np.zeros((2, 1))
    proof = certify_limit(problem, gram, C, np.full((2, 1), 0.25), np.zeros(1))
    assert proof.kkt["normal equations"] >= 2.0


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("size", [0.0, 0.03])
def test_least_squares_whose_coefficients_do_not_add_up_to_zero(seed, size):
    """D(β) − b*Σβ is not above the optimum, whatever β is."""
    rng = np.random.default_rng(seed)
    n, lam = 4, 0.5
    A = rng.normal(size=(n, n))
    K, y = A @ A.T / n, rng.normal(size=(n, 1)) + 5.0
    system = np.block([[K + lam * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    best = np.linalg.solve(system, np.append(y[:, 0], 0.0))

    def value(beta, b):
        f = K @ beta
        return 0.5 * beta @ f + ((y[:, 0] - f - b) ** 2).sum() / (2 * lam)

    beta = best[:n] + rng.normal() * 0.3 + 0.1 * rng.normal(size=n)
    problem, gram = LeastSquares(y, np.ones(n), np.arange(n), n, True, lam), Fixed(K, size, rng.choice([-1.0, 1.0], n))
    U, errors = (part[:, None] for part in gram.product_bound(beta))
    proof = certify_outputs(problem, gram, beta[:, None], U, errors, beta[:, None])
    least = value(best[:n], best[n])
    assert proof.dual <= least + 1e-12
    assert proof.kkt[SUBOPTIMALITY] >= value(beta, proof.b[0]) - least - 1e-12
    assert Fraction(proof.kkt[EQUALITY]) >= abs(sum(map(Fraction, beta.tolist())))


def test_the_sum_of_coefficients_is_rounded_up():
    """Σβ of 1/3 and two smaller numbers, in fractions: fsum rounds it down for one of them."""
    missed = 0
    for k in range(1, 40):
        beta = np.array([[1 / 3], [1e-17 * k], [k * 1e-18]])
        problem = LeastSquares(np.ones((3, 1)), np.ones(3), np.arange(3), 3, True, 1.0)
        proof = certify_outputs(problem, Declared(np.eye(3), 0.0, "up"), beta, beta, np.zeros((3, 1)), beta)
        total = sum(map(Fraction, beta[:, 0].tolist()))
        missed += Fraction(float(total)) < total
        assert Fraction(proof.kkt[EQUALITY]) >= total
    assert missed > 5


@pytest.mark.parametrize("weight", [3.0, 7.0, 0.3])
def test_the_ridge_of_least_squares_is_rounded(weight):
    """y − f − (λ/w)β of a huge β, in fractions."""
    for k in range(40):
        beta, lam = 1e16 + 2.0 * k, 1.0 + k / 7
        y = lam / weight * beta
        problem = LeastSquares(np.full((1, 1), y), np.full(1, weight), np.arange(1), 1, False, lam)
        column = np.full((1, 1), beta)
        proof = certify_outputs(
            problem, Declared(np.zeros((1, 1)), 0.0, "up"), column, 0 * column, np.zeros((1, 1)), column
        )
        rest = abs(Fraction(y) - Fraction(lam) / Fraction(weight) * Fraction(beta))
        assert Fraction(proof.violation) >= rest


def test_sums_of_copies_are_rounded():
    """C is the sum of three coefficients as NumPy rounds it, and ½‖f − f_β‖² is in the distance from the optimum."""
    beta = np.array([[1e16], [1.0], [-1e16]])
    problem = LeastSquares(np.zeros((3, 1)), np.ones(3), np.zeros(3, dtype=np.intp), 1, False, 1.0)
    C = np.zeros((1, 1))
    proof = certify_outputs(problem, Declared(np.eye(1), 0.0, "up"), beta, C, np.zeros((1, 1)), C)
    assert np.bincount([0, 0, 0], beta[:, 0])[0] != 1.0
    assert proof.primal >= 0.5


# --- rankings -------------------------------------------------------------------------------------------------------


def pair(C=1.0, level=(1, 0)):
    return RankProblem(np.array(level), np.zeros(len(level), dtype=np.intp), np.ones(len(level)), C)


def test_multipliers_of_a_ranking_outside_of_their_box():
    """D(α) = α − α²/10 is 9/10 at most for α ≤ 1, and α = 3/2."""
    beta = np.array([1.5, -1.5])
    proof = certify_ranking(
        pair(), Declared(0.1 * np.eye(2), 0.0, "up"), beta, RankDual(0.1 * beta, -9.0, np.array([1.5]))
    )
    assert proof.dual <= 0.9
    assert proof.kkt["dual feasibility: box"] >= 0.5


@pytest.mark.parametrize("sign", [(1.0, -1.0), (1.0, 0.0), (0.0, -1.0)])
def test_hinges_of_a_ranking_are_known_up_to_errors(sign):
    """f = 0, whose margin of 0 seems to be larger: the loss is 1."""
    proof = certify_ranking(
        pair(), Fixed(np.eye(2), 0.25, np.array(sign)), np.zeros(2), RankDual(np.array([9.0, 0.0]), 1.0, np.empty(0))
    )
    assert proof.primal >= 1.0


def test_a_hinge_of_a_ranking_that_rounding_closes():
    """1 − u_i + u_j = 2⁻⁶⁰ is 0 in float64, and costs 1 at C = 2⁶⁰."""
    u = np.array([-(2.0**-60), -1.0])
    proof = certify_ranking(pair(2.0**60), Declared(np.eye(2), 0.0, "up"), u, RankDual(u, 1.0, np.empty(0)))
    assert proof.primal >= 1.5
    assert proof.kkt["primal feasibility"] >= 2.0**-60


def test_multipliers_of_a_ranking_whose_margin_is_larger_than_it_seems():
    """A margin of 1.1 that seems to be 0.9 has a multiplier inside of its box."""
    beta = np.array([0.55, -0.55])
    gram = Fixed(np.eye(2), 0.1, np.array([-1.0, 1.0]))
    proof = certify_ranking(pair(), gram, beta, RankDual(np.array([0.45, -0.45]), -9.0, np.array([0.55])))
    assert proof.kkt["complementary slackness"] >= 0.1 - 1e-12


@pytest.mark.parametrize("seed", range(10))
def test_running_sums_of_a_ranking_hold_the_true_ones(seed):
    rng = np.random.default_rng(seed)
    n = 60
    level, r = rng.integers(0, 3, n), rng.normal(size=n)
    problem = RankProblem(level.astype(np.intp), np.zeros(n, dtype=np.intp), np.ones(n), 1.0)
    w = 10.0 ** rng.uniform(-17, 3, n)
    error = w * rng.uniform(0, 1, n) * (0.0 if seed % 2 else 0.25)
    limit = r - 0.5
    won, _ = _sums(problem, r, limit, Ball(w, error))
    for i in range(n):
        others = [j for j in range(n) if level[i] > level[j] and r[j] > limit[i]]
        for end in (-1, 1):
            truth = sum((Fraction(w[j]) + end * Fraction(error[j]) for j in others), Fraction(0))
            assert abs(truth - Fraction(won.value[i])) <= Fraction(won.error[i])


def test_running_sums_of_a_ranking_lose_digits():
    """Sixty weights of 1/3 after one of 10¹⁷, which none of the pairs holds."""
    n = 62
    r = np.concatenate([[0.0], [-5.0], np.linspace(5, 6, n - 2)])
    w = np.concatenate([[1.0], [1e17 / 3], np.full(n - 2, 1 / 3)])
    problem = pair(level=(1, *[0] * (n - 1)))
    won, _ = _sums(problem, r, r + 1.0, exact(w))
    truth = (n - 2) * Fraction(1 / 3)
    assert abs(truth - Fraction(won.value[0])) <= Fraction(won.error[0])


# --- tables, sums of certificates and kernel weights -----------------------------------------------------------------


def test_values_of_a_table_hold_the_errors_of_its_sums():
    names = ["losses", "shares", "total", "worst", "box", "outward", "inward", "top", "bottom", "b"]
    names += ["energy", "gain", "curved", "wrong", "to_gap", "to_dual"]
    found = dict.fromkeys(names, 0.0) | {"energy": 2.0, "wrong": 0.5, "losses": 3.0, "gain": 4.0, "curved": 1.0}
    table = pair_certificates(np.array([[found[name] for name in names]]), True, "optimality")
    assert table.primal[0] >= 0.5 * 2.5 + 3.0
    assert table.dual[0] <= 4.0 - 0.5 * 2.5 - 0.5
    found |= {"wrong": 0.0, "to_dual": 0.25}
    table = pair_certificates(np.array([[found[name] for name in names]]), True, "optimality")
    share = 6000 * 2.0**-53  # of a sum of 6,000 terms
    assert table.primal[0] >= 1.0 + 3.0 * (1 + share)
    assert table.dual[0] <= 4.0 * (1 - share) - 1.0 - 0.5 - 0.25
    found = dict.fromkeys(names, 0.0) | {"wrong": 1e9}
    table = pair_certificates(np.array([[found[name] for name in names]]), True, "optimality")
    assert table.primal[0] >= 0.5 * 1e9 * (1 + share)


@pytest.mark.parametrize("seed", range(10))
def test_sums_of_values_are_bounds(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=30) * 10.0 ** rng.uniform(-8, 8, 30)
    values[::3] = -values[1::3]
    truth = sum(map(Fraction, values.tolist()))
    assert Fraction(bounded_sum(values, -1)) <= truth <= Fraction(bounded_sum(values, 1))


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, np.inf])
@pytest.mark.parametrize("seed", range(5))
def test_norms_of_weights_are_rounded_up(seed, p):
    """Of numbers that were rounded once, and may have been larger."""
    values = np.random.default_rng(seed).random(7)
    larger = [Fraction(v) * (1 + Fraction(1, 2**53)) for v in values.tolist()]
    result = Fraction(_norm_bound(values, p))
    if np.isinf(p):
        assert result >= max(larger)
    else:
        assert result ** int(p) >= sum(v ** int(p) for v in larger)


def test_values_with_kernel_weights_are_bounds():
    """1 is lost beside 10¹⁶."""
    big = 1e16
    machines = Certificate(big, -big, 2 * big, 0.0, kkt_residuals(0.0, 0.0, 0.0, 0.0), "optimality")
    problem = WeightsProblem(np.inf, np.ones(1))
    proof = certify_kernel_weights(machines, problem, np.zeros(1), exact(np.array([1.5])))
    assert Fraction(proof.dual) <= -Fraction(big) - Fraction(3, 4)
    proof = certify_kernel_weights(machines, problem, np.full(1, 2.0), exact(np.array([0.75])))
    assert Fraction(proof.primal) >= Fraction(big) + Fraction(3, 4)
    proof = certify_kernel_weights(
        machines, WeightsProblem(1.0, np.ones(1)), np.full(1, 0.5), Ball(np.full(1, 3.0), np.ones(1))
    )
    assert Fraction(proof.dual) <= -Fraction(big) - 1  # s = 4, of which the weights have half


# --- rows of linear machines, the last sums of a dual problem and hard margins ----------------------------------------


@dataclass
class JointRows(DeclaredRows):
    """Rows whose combinations X'β are off by a share of β, and whose products are off by `shift`, as they say."""

    share: float = 0.0

    def precise_product(self, w):
        return Ball(self.X @ w + self.shift * np.sign(w[0]), np.full(self.n, abs(self.shift)))

    def combination(self, beta, limit=0.0):
        off = self.share * (self.X.T @ beta)
        return self.X.T @ beta + off, np.zeros(self.d), float(np.linalg.norm(off))


@pytest.mark.parametrize("share", [-0.4, 0.4])
@pytest.mark.parametrize("shared", [True, False])
def test_combinations_of_a_joint_machine_are_known_up_to_errors(shared, share):
    """One sample x = 1: D = a − a² for β = (a, −a), and P = ½‖w‖² + max(0, 1 − w_0 + w_1)."""
    problem, beta = JointProblem(np.array([0]), np.ones(1), 2, shared=shared), np.array([[0.5, -0.5]])
    W, proof = certify_joint_rows(problem, JointRows(np.ones((1, 1)), share=share), beta)
    assert proof.dual <= 0.25
    assert proof.primal >= 0.5 * float((W * W).sum()) + max(0.0, 1 - W[0, 0] + W[1, 0]) - 1e-12


def test_products_of_a_joint_machine_are_known_up_to_errors():
    """The margin of 0.6 seems to be 1, without a loss."""
    problem, beta = JointProblem(np.array([0]), np.full(1, 100.0), 2, shared=True), np.array([[0.3, -0.3]])
    W, proof = certify_joint_rows(problem, JointRows(np.ones((1, 1)), shift=0.2), beta)
    assert proof.primal >= 0.5 * float((W * W).sum()) + 100 * (1 - W[0, 0] + W[1, 0]) - 1e-12


def test_the_sum_of_a_linear_machines_coefficients_is_rounded_up():
    missed = 0
    for k in range(1, 40):
        beta = np.array([1 / 3, 1e-17 * k, k * 1e-18])
        problem = LinearProblem(np.zeros(3), np.full(3, -1.0), np.ones(3), np.zeros(3), np.zeros(3), np.inf)
        proof = certify_linear(problem, DeclaredRows(np.zeros((3, 1))), np.zeros(1), 0.0, beta)
        total = sum(map(Fraction, beta.tolist()))
        missed += Fraction(float(total)) < total
        assert Fraction(proof.kkt[EQUALITY]) >= total
    assert missed > 5


def test_many_losses_of_a_linear_machine_are_lost_beside_a_large_one():
    """2⁵³ and 3000 times 0.9, of which a sum one after another has the first number."""
    p = np.full(3001, 0.9)
    p[0] = 2.0**53
    problem = LinearProblem(p, np.zeros(3001), np.ones(3001), np.zeros(3001), np.zeros(3001), 0.0)
    proof = certify_linear(problem, DeclaredRows(np.zeros((3001, 1))), np.zeros(1), 0.0, np.zeros(3001))
    assert Fraction(proof.primal) >= 2**53 + 3000 * Fraction(0.9)


def test_a_change_of_coefficients_is_rounded():
    """1 − 10¹⁶ is −10¹⁶ in float64, so that the sums with the change miss 1."""
    beta = np.ones(8)
    beta[0] = 1e16
    gram, last = Declared(np.eye(8), 0.0, "up"), LastSums()
    last.keep(beta, gram.product_bound(beta), "float64")
    moved = last.moved_to(np.ones(8), gram)
    assert moved is not None
    u, _ = moved
    assert u.value[0] != 1.0
    assert u.low[0] <= 1.0 <= u.high[0]


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_margins_of_a_hard_margin_are_known_up_to_errors(side):
    """Two samples with margins of 1 that seem to be 1.25: ½‖w‖² = 1."""
    y = np.full(2, side)
    soft = Certificate(1.0, 0.5, 0.5, 0.0, kkt_residuals(0.0, 0.0, 0.0, 0.0), "optimality")
    proof = hard_margin_through_origin(soft, Fixed(np.eye(2), 0.25, y), y, y)
    assert proof.primal >= 1.0
