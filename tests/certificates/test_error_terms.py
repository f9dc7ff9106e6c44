"""Every error that a certificate is told of counts: values that are off by known amounts give true claims.

The Gram matrices here answer with K times the coefficients plus a large error that they declare. A certificate that
leaves an error out of a claim then claims too much for one of its signs.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer import SVR, OneClassSVM
from mercer.certificates.dual import LastSums, certify_dual
from mercer.certificates.joint import certify_joint, row_residuals
from mercer.certificates.landmarks import certify_landmarks
from mercer.certificates.least_squares import certify_outputs
from mercer.certificates.linear import certify_linear
from mercer.certificates.novelty import with_best_bias
from mercer.certificates.ranking import _sums, certify_ranking
from mercer.certificates.representer import certify_representer
from mercer.places.ball import Ball, exact
from mercer.places.choose import rows_for
from mercer.problems.classification import soft_margin, squared_soft_margin
from mercer.problems.least_squares import LeastSquares
from mercer.problems.linear_problem import LinearProblem
from mercer.problems.losses import Huber, Squared
from mercer.problems.multiclass import JointProblem
from mercer.problems.novelty import one_class
from mercer.problems.penalties import PENALTIES
from mercer.problems.ranking import RankDual, RankProblem
from mercer.problems.representer import RepresenterProblem

SLACK = "complementary slackness"
SIGNS = ("up", "down", "with β", "against β", *range(6))


@dataclass
class Declared:
    """K whose products are off by `size` in directions that `sign` chooses, and say so."""

    K: np.ndarray
    size: float
    sign: object
    levels: tuple = (np.float64,)
    positive_definite: str = "yes"
    told: list = field(default_factory=list)

    @property
    def n(self):
        return len(self.K)

    @property
    def diagonal(self):
        return self.K.diagonal()

    @property
    def entry_bounds(self):
        return np.sqrt(self.K.diagonal())

    def product_bound(self, c, rows=None, level=None):
        true = self.K @ c
        along = {"up": np.ones_like(true), "down": -np.ones_like(true), "with β": np.sign(c), "against β": -np.sign(c)}
        random = np.random.default_rng(self.sign if isinstance(self.sign, int) else 0)
        way = along.get(self.sign, random.choice([-1.0, 1.0], size=true.shape))
        error = self.size * np.ones_like(true)
        return Ball(true + way * error, error)


def matrix(n, seed=0, d=2):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(-1))


def holds(proof, primal, dual, slack=1e-9):
    assert proof.primal >= primal - slack
    assert proof.dual <= dual + slack
    assert proof.gap >= primal - dual - slack


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_dual_problems(bias, squared, sign):
    K = matrix(9)
    y = np.where(np.arange(9) % 2, 1.0, -1.0)
    problem = (squared_soft_margin if squared else soft_margin)(y, np.full(9, 0.7))
    problem = problem if bias else problem.without_bias()
    wish = y * np.random.default_rng(1).uniform(0, 0.7, 9)
    wish[:2] = 0.0
    beta = problem.nearest_feasible(wish)
    proof, _ = certify_dual(problem, Declared(K, 0.05, sign), beta)
    b = proof.b[0] if bias else 0.0
    r = y - K @ beta - b
    C, energy = 0.7, beta @ K @ beta
    t = np.clip(r / problem.d, problem.lower, problem.upper) if squared else np.where(r * y > 0, y * C, 0.0)
    curved = 0.5 * (problem.d * beta**2).sum()
    holds(proof, 0.5 * energy + (r * t - 0.5 * problem.d * t * t).sum(), y @ beta - 0.5 * energy - curved)
    h = r - problem.d * beta
    up, low = problem.movable(beta)
    outward = np.where(
        beta > 0, np.where(up, h, 0), np.where(beta < 0, np.where(low, -h, 0), np.maximum(up * h, low * -h))
    )
    inward = np.where(beta > 0, np.where(low, -h, 0), np.where(beta < 0, np.where(up, h, 0), 0))
    assert proof.kkt["primal feasibility"] >= outward.max(initial=0) - 1e-12
    assert proof.kkt["complementary slackness"] >= inward.max(initial=0) - 1e-12
    violation = h[up].max() - h[low].min() if bias else max(h[up].max(), -h[low].min())
    assert proof.violation >= violation - 1e-12


@pytest.mark.parametrize("sign", SIGNS)
def test_sums_of_the_last_certificate(sign):
    """K times the change of β has errors of its own."""
    K, problem = matrix(12), soft_margin(np.where(np.arange(12) % 2, 1.0, -1.0), np.ones(12)).without_bias()
    gram, last = Declared(K, 0.02, sign), LastSums()
    beta = problem.p * np.linspace(0.1, 0.9, 12)
    certify_dual(problem, gram, beta, last=last)
    beta[3] *= 0.5
    moved = last.moved_to(beta, gram)
    assert moved is not None
    u, _ = moved
    assert (np.abs(u.value - K @ beta) <= u.error + 1e-12).all()
    assert np.abs(u.value - K @ beta).max() > 0.02  # both products are off


@pytest.mark.parametrize("sign", SIGNS)
def test_the_best_bias(sign):
    K, problem = matrix(10), one_class(np.ones(10), 0.25)
    beta = problem.nearest_feasible(np.random.default_rng(2).random(10))
    first, _ = certify_dual(problem, Declared(K, 0.0, sign), beta)
    proof = with_best_bias(problem, Declared(K, 0.02, sign), beta, first)
    if proof is first:
        pytest.skip("the mean gradient is the better b")
    b, u = proof.b[0], K @ beta
    holds(proof, 0.5 * beta @ u + np.maximum(0, -(u + b)).sum() + 2.5 * b, -0.5 * beta @ u)
    f = u + b
    assert proof.kkt["primal feasibility"] >= np.where(beta < 1, -f, 0).max() - 1e-12
    assert proof.kkt["complementary slackness"] >= np.where(beta > 0, f, 0).max() - 1e-12


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_joint_problems(shared, balanced, sign):
    K, y, own = matrix(9), np.arange(9) % 3, (np.arange(9), np.arange(9) % 3)
    alpha = np.random.default_rng(3).uniform(0, 0.4, (9, 3))
    alpha[own] = 0
    beta = -alpha
    beta[own] = alpha.sum(axis=1)
    if balanced:
        beta -= beta.mean(axis=0)
    b = np.array([0.3, -0.1, -0.2]) if balanced else np.zeros(3)
    problem = JointProblem(y, np.full(9, 0.9), 3, shared=shared, balanced=balanced, b=b if balanced else None)
    proof, _ = certify_joint(problem, Declared(K, 0.05, sign), beta)
    f = K @ beta + b
    g = f - f[own][:, None] + 1
    g[own] = 0
    losses = 0.9 * (g.max(axis=1) if shared else np.maximum(g, 0).sum(axis=1))
    energy = 0.5 * (beta * (K @ beta)).sum()
    if not balanced:
        holds(proof, energy + losses.sum(), beta[own].sum() - energy)
        alpha, wrong = -beta, g != 0
        if not shared:
            assert proof.kkt["primal feasibility"] >= g[wrong].max() - 1e-12
            assert proof.kkt["complementary slackness"] >= (-g[wrong])[alpha[wrong] > 0].max() - 1e-12
            assert proof.violation >= np.abs(g[wrong]).max() - 1e-12
        else:
            slack = g.max(axis=1)
            assert proof.kkt["primal feasibility"] >= slack[beta[own] < 0.9].max() - 1e-12
    assert proof.primal >= energy + losses.sum() - 1e-9


def test_sums_over_classes_are_rounded():
    """1e16 + 1 − 1e16 over four classes is 0 in float64."""
    beta = np.array([[1e16, 1.0, -1e16, 0.0]])
    assert beta.sum() != 1.0
    assert row_residuals(beta, np.array([1]), np.array([1e17]), shared=False)[1] >= 1.0
    problem = JointProblem(np.array([1]), np.array([1e17]), 4, shared=False)
    proof, _ = certify_joint(problem, Declared(np.ones((1, 1)), 0.0, "up"), beta)
    assert proof.kkt["dual feasibility: equality"] >= 1.0


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("penalty", ["squared_norm", "norm"])
@pytest.mark.parametrize("loss", [Squared(), Huber(0.5)])
@pytest.mark.parametrize("size", [1e-3, 0.05])
def test_any_loss(loss, penalty, size, sign):
    """Near the minimum, where a gap has no room but that of the errors."""
    K, lam = matrix(6, seed=4), 0.3
    y = np.random.default_rng(5).normal(size=6)

    def value(c):
        square = max(float(c @ K @ c), 0.0)
        return float(loss.value(y, K @ c).sum()) + lam * (square if penalty == "squared_norm" else np.sqrt(square))

    best = minimize(value, 0.1 * y, method="BFGS", options={"gtol": 1e-10}).x
    problem = RepresenterProblem(y, np.ones(6), loss, lam, False, PENALTIES[penalty])
    for c in (best, best + 1e-3 * y):
        proof = certify_representer(problem, Declared(K, size, sign), c, 0.0)
        holds(proof, value(c), value(best), 1e-7)
        assert proof.kkt["primal value above the optimum"] >= value(c) - value(best) - 1e-7
        g = loss.gradient(y, K @ c)
        slope = 2 * lam if penalty == "squared_norm" else lam / np.sqrt(c @ K @ c)
        assert proof.violation >= np.abs(g + slope * c).max() - 1e-6


@pytest.mark.parametrize("sign", SIGNS)
def test_rankings(sign):
    K, C, w = matrix(6, seed=6), 0.8, np.linspace(0.5, 1.5, 6)
    problem = RankProblem(np.array([0, 1, 2, 0, 1, 2]), np.zeros(6, dtype=np.intp), w, C)
    pairs = [
        (i, j)
        for i, j in [*combinations(range(6), 2), *((j, i) for i, j in combinations(range(6), 2))]
        if problem.level[i] > problem.level[j]
    ]
    beta = np.random.default_rng(7).normal(size=6) * 0.1
    r = K @ beta
    alpha_of = {(i, j): C * w[i] * w[j] if r[i] - r[j] < 1 else 0.0 for i, j in pairs}
    beta = np.array(
        [
            sum(a for (i, _), a in alpha_of.items() if i == k) - sum(a for (_, j), a in alpha_of.items() if j == k)
            for k in range(6)
        ]
    )
    proof = certify_ranking(problem, Declared(K, 0.05, sign), beta, RankDual(r, 1.0, np.empty(0)))
    u, energy = K @ beta, 0.5 * beta @ K @ beta
    primal = energy + sum(C * w[i] * w[j] * max(0.0, 1 - u[i] + u[j]) for i, j in pairs)
    holds(proof, primal, sum(alpha_of.values()) - energy)
    unpaid = max([0.0, *(1 - u[i] + u[j] for i, j in pairs if alpha_of[i, j] == 0)])
    loose = max([0.0, *(u[i] - u[j] - 1 for i, j in pairs if alpha_of[i, j] > 0)])
    assert proof.kkt["primal feasibility"] >= unpaid - 1e-12
    assert proof.kkt["complementary slackness"] >= loose - 1e-12


def test_coefficients_of_a_ranking_that_are_rounded_sums():
    """β of a sample in many pairs, whose multipliers cancel to the last digit: in fractions, β̂ is within the line."""
    n = 400
    rng = np.random.default_rng(8)
    problem = RankProblem((np.arange(n) % 2).astype(np.intp), np.zeros(n, dtype=np.intp), np.ones(n), 1.0)
    r = np.zeros(n)
    pairs = problem.pairs(r, 0.0, 1.0)
    alpha = rng.random(len(pairs[0]))
    beta = problem.row_coefficients(pairs, alpha)
    proof = certify_ranking(problem, Declared(np.eye(n), 0.0, "up"), beta, RankDual(r, 0.0, alpha))
    truth = [Fraction(0)] * n
    for i, j, a in zip(*(side.tolist() for side in pairs), alpha.tolist(), strict=True):
        truth[i], truth[j] = truth[i] + Fraction(a), truth[j] - Fraction(a)
    off = max(abs(a - Fraction(float(b))) for a, b in zip(truth, beta, strict=True))
    assert 0 < off <= Fraction(proof.kkt["dual feasibility: equality"])


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("bias", [False, True])
def test_least_squares(bias, sign):
    K, lam, y = matrix(7, seed=9), 0.4, np.random.default_rng(10).normal(size=(7, 1))
    A = np.block(
        [[K + lam * np.eye(7), np.full((7, 1), 1.0 * bias)], [np.full((1, 7), 1.0 * bias), np.array([[1.0 - bias]])]]
    )
    best = np.linalg.solve(A, np.append(y, 0.0))
    problem = LeastSquares(y, np.ones(7), np.arange(7), 7, bias, lam)

    def value(beta, b):
        f = K @ beta
        return 0.5 * beta @ f + ((y[:, 0] - f - b) ** 2).sum() / (2 * lam)

    for beta in (best[:7], best[:7] + 0.1 * (y[:, 0] - y.mean())):
        gram = Declared(K, 0.03, sign)
        U, errors = (part[:, None] for part in gram.product_bound(beta))
        proof = certify_outputs(problem, gram, beta[:, None], U, errors, beta[:, None])
        b = proof.b[0] if bias else 0.0
        holds(proof, value(beta, b), value(best[:7], best[7] if bias else 0.0))
        assert proof.kkt["primal value above the optimum"] >= value(beta, b) - value(best[:7], best[7] * bias) - 1e-9
        assert proof.violation >= np.abs(y[:, 0] - K @ beta - b - lam * beta).max() - 1e-9


def test_the_worst_sample_of_least_squares():
    """The one whose equation is missed."""
    K, y = matrix(7, seed=9), np.random.default_rng(10).normal(size=(7, 1))
    beta = np.linalg.solve(K + 0.4 * np.eye(7), y)
    beta[5] += 0.3
    problem = LeastSquares(y, np.ones(7), np.arange(7), 7, False, 0.4)
    proof = certify_outputs(problem, Declared(K, 0.0, "up"), beta, K @ beta, np.zeros((7, 1)), beta)
    assert proof.worst == int(np.argmax(np.abs(y - K @ beta - 0.4 * beta)))


def test_the_sum_of_a_regularised_bias_is_rounded():
    """Σβ = 1 that float64 adds up to 0: ½(BΣβ)² is in the dual value, and nothing else is."""
    beta = np.array([1e16, 1.0, -1e16])
    problem = LinearProblem(np.zeros(3), np.full(3, -1e17), np.full(3, 1e17), np.zeros(3), np.zeros(3), 2.0)
    proof = certify_linear(problem, rows_for(np.zeros((3, 1)), 1), np.zeros(1), 0.0, beta)
    assert beta.sum() != 1.0
    assert proof.dual <= -2.0
    assert proof.gap >= 2.0


def test_values_of_landmarks_that_are_known_up_to_an_error():
    proof = certify_landmarks(
        np.array([0.1]), np.ones(1), np.array([2.0]), np.zeros(1), 0.5, primal_error=np.array([0.3])
    )
    assert proof.primal >= 2.3
    assert proof.dual <= 2.0 - 0.3 - 0.1
    assert proof.gap >= 0.1 + 0.6


@pytest.mark.parametrize("machine", [OneClassSVM(nu=0.25, gamma=1.0, tol=1e-9), SVR(C=0.7, gamma=1.0, tol=1e-9)])
def test_copies_of_a_sample_have_rounded_shares(machine):
    """Σβ of `dual_coef_`, in fractions: three copies of a sample have a third of its coefficient each."""
    missed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = np.repeat(rng.normal(size=(8, 2)), 3, axis=0)
        model = machine.fit(X, np.repeat(rng.normal(size=8), 3))
        total = sum(Fraction(float(c)) for c in model.dual_coef_[0]) - (6 if isinstance(model, OneClassSVM) else 0)
        missed += total != 0
        assert abs(total) <= Fraction(model.certificate_.kkt["dual feasibility: equality"])
    assert missed > 5


@pytest.mark.parametrize("sign", SIGNS)
def test_the_norm_of_a_dual_problem_without_losses(sign):
    """Every sample is far beyond its margin, so that the primal value is ½β'Kβ, with the errors of that alone."""
    K = matrix(5)
    problem = soft_margin(np.ones(5), np.full(5, 10.0)).without_bias()
    beta = np.full(5, 5.0)
    proof, _ = certify_dual(problem, Declared(K, 0.05, sign), beta)
    holds(proof, 0.5 * beta @ K @ beta, beta.sum() - 0.5 * beta @ K @ beta)


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("penalty", ["squared_norm", "norm"])
@pytest.mark.parametrize(("weight", "lam"), [(1e-9, 0.5), (1.0, 1e-9)])
def test_a_penalty_or_a_loss_alone(weight, lam, penalty, sign):
    """Next to the penalty the losses are nothing, or the other way round: the errors of each are in `primal`."""
    K, y, c = matrix(6, seed=4), np.full(6, 3.0), np.linspace(0.2, 0.7, 6)
    problem = RepresenterProblem(y, np.full(6, weight), Squared(), lam, False, PENALTIES[penalty])
    proof = certify_representer(problem, Declared(K, 0.2, sign), c, 0.0)
    square = c @ K @ c
    value = weight * Squared().value(y, K @ c).sum() + lam * (square if penalty == "squared_norm" else np.sqrt(square))
    assert proof.primal >= value - 1e-12


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("moved", [0.0, 0.5])
def test_rankings_with_free_multipliers(moved, sign):
    """All pairs have a multiplier inside its box, and β may differ from their sums by the share `moved`."""
    K, C, w = matrix(6, seed=6), 0.05, np.linspace(0.5, 1.5, 6)
    problem = RankProblem(np.array([0, 1, 2, 0, 1, 2]), np.zeros(6, dtype=np.intp), w, C)
    pairs = problem.pairs(np.zeros(6), -1e3, 1e3)
    alpha = 0.5 * problem.bound(pairs)
    combined = problem.row_coefficients(pairs, alpha)
    beta = (1 - moved) * combined
    u = K @ beta
    order = problem.pairs(u, -1e3, 1.0)
    assert sorted(zip(*order, strict=True)) == sorted(zip(*pairs, strict=True))
    proof = certify_ranking(
        problem, Declared(K, 0.0 if moved else 0.05, sign), beta, RankDual(u, -1e3, 0.5 * problem.bound(order))
    )
    margins = np.array([u[i] - u[j] for i, j in zip(*order, strict=True)])
    energy = 0.5 * beta @ u
    assert proof.primal >= energy + problem.bound(order) @ np.maximum(0.0, 1 - margins) - 1e-12
    assert proof.dual <= alpha.sum() - 0.5 * combined @ K @ combined + 1e-12
    assert proof.kkt["primal feasibility"] >= (1 - margins).max() - 1e-12
    assert proof.kkt["dual feasibility: equality"] >= moved * np.abs(combined).max()


def test_running_sums_of_a_ranking_are_rounded():
    """A weight of 1e-17/3 after one of 1000/3, which is not in the pair: in fractions, β̂ is within the residual."""
    w, r = np.array([1.0, 1000 / 3, 1e-17 / 3]), np.array([0.0, -5.0, 5.0])
    problem = RankProblem(np.array([1, 0, 0]), np.zeros(3, dtype=np.intp), w, 1.0)
    beta = np.array([_sums(problem, r, r + 1.0, exact(w))[0].value[0], 0.0, -w[2]])
    proof = certify_ranking(problem, Declared(np.eye(3), 0.0, "up"), beta, RankDual(r, -1.0, np.empty(0)))
    off = abs(Fraction(float(beta[0])) - Fraction(float(w[2])))
    assert 0 < off <= Fraction(proof.kkt["dual feasibility: equality"])


@pytest.mark.parametrize(("size", "sign", "name"), [(0.49, "with β", "primal feasibility"), (0.51, "against β", SLACK)])
def test_the_order_of_a_ranking_is_known_up_to_errors(size, sign, name):
    """A margin of 0.98 that seems to be 1.08 has no multiplier; one of 1.02 that seems to be 0.92 has all of it."""
    K, beta = np.eye(2), np.array([size, -size])
    problem = RankProblem(np.array([1, 0]), np.zeros(2, dtype=np.intp), np.ones(2), 1.0)
    gram = Declared(K, 0.05, sign)
    proof = certify_ranking(problem, gram, beta, RankDual(gram.product_bound(beta).value, 1.0, np.empty(0)))
    assert proof.kkt[name] >= 0.02 - 1e-12
