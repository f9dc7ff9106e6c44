"""Bounds that hold with probability 1 − δ, drawn many times: they fail no more often than δ allows.

Where a bound is tight enough, a control shows that the test can fail: with half of the deviation it does.
"""

import math

import numpy as np
import pytest
from scipy import stats

from mercer import SVC, theory
from mercer.kernels import Linear

DRAWS, DELTA = 2000, 0.1
# Three standard deviations above δ: the share of failures of a bound that fails with probability δ exactly.
ALLOWED = DELTA + 3 * math.sqrt(DELTA * (1 - DELTA) / DRAWS)


def share_of_failures(draw, draws=DRAWS):
    """draw(rng) -> (truth, bound); the shares of truths above the bound, and above it with half its deviation."""
    rng = np.random.default_rng(0)
    found = [draw(rng) for _ in range(draws)]
    failed = np.mean([truth > bound.value for truth, bound in found])
    less = np.mean(
        [truth > bound.value - 0.5 * bound.terms["deviation"] for truth, bound in found if len(bound.terms) > 1]
    )
    return failed, np.mean(less)


P, N = 0.3, 50


def coin(make):
    def draw(rng):
        return P, make(int(rng.binomial(N, P)))

    return draw


@pytest.mark.parametrize(
    "make",
    [
        lambda k: theory.hoeffding(k / N, N, delta=DELTA),
        lambda k: theory.chernoff(k, N, delta=DELTA),
        lambda k: theory.test_set_bound(k, N, delta=DELTA),
        lambda k: theory.mcdiarmid(k / N, np.full(N, 1 / N), delta=DELTA),
    ],
    ids=["hoeffding", "chernoff", "test set", "mcdiarmid"],
)
def test_a_mean(make):
    failed, with_less = share_of_failures(coin(make))
    assert failed <= ALLOWED
    assert with_less > ALLOWED


def test_the_test_set_bound_is_exact():
    """It fails as often as the binomial law says: for the k whose bound lies below p."""
    below = [theory.test_set_bound(k, N, delta=DELTA).value < P for k in range(N + 1)]
    law = [math.comb(N, k) * P**k * (1 - P) ** (N - k) for k in range(N + 1)]
    failing = sum(p for p, bad in zip(law, below, strict=True) if bad)
    assert failing <= DELTA
    assert failing + law[below.index(False)] > DELTA


def test_two_sides():
    rng = np.random.default_rng(1)
    means = rng.binomial(N, P, size=DRAWS) / N
    reach = theory.hoeffding(0.0, N, delta=DELTA, sides=2).terms["deviation"]
    assert np.mean(np.abs(means - P) > reach) <= ALLOWED


def test_empirical_distribution_functions():
    rng = np.random.default_rng(2)
    distances = [stats.ks_1samp(rng.random(40), lambda t: t, method="asymp").statistic for _ in range(DRAWS)]
    value = theory.glivenko_cantelli(40, delta=DELTA).value
    assert np.mean(np.array(distances) > value) <= ALLOWED
    assert np.mean(np.array(distances) > 0.8 * value) > ALLOWED


def thresholds(errors_of, n, bound_of, draws=600):
    """The worst of all rules x ≤ t on points that do not depend on t, labels being noise: all true risks are ½."""
    rng = np.random.default_rng(3)
    failed = 0
    for _ in range(draws):
        failed += bound_of(errors_of(rng, n)).value < 0.5
    return failed / draws


def least_errors(rng, n, d=2):
    """The smallest share of errors of a plane through the origin in the plane, on labels that are noise."""
    angles, labels = rng.uniform(0, 2 * np.pi, n), rng.choice((-1, 1), n)
    angles, labels = angles % np.pi, np.where(angles < np.pi, labels, -labels)  # a point and its opposite
    order = np.argsort(angles)
    sums = np.concatenate([[labels.sum()], labels.sum() - 2 * np.cumsum(labels[order])])
    return (n - np.abs(sums).max()) / 2 / n


def test_linear_rules():
    n = 400
    assert thresholds(least_errors, n, lambda least: theory.linear_rules_bound(least, 2, n, delta=DELTA)) <= DELTA
    # Without the number of dichotomies, as for a single rule, it fails too often.
    assert thresholds(least_errors, n, lambda least: theory.finite_rules_bound(least, 1, n, delta=DELTA)) > ALLOWED


def test_finitely_many_rules():
    """Fifty rules whose errors are independent: the best of them deceives most."""
    rng, n, rules = np.random.default_rng(4), 60, 50
    best = rng.binomial(n, 0.5, size=(DRAWS, rules)).min(axis=1) / n
    failed = [theory.finite_rules_bound(share, rules, n, delta=DELTA).value < 0.5 for share in best]
    assert np.mean(failed) <= ALLOWED
    assert np.mean([theory.finite_rules_bound(share, 1, n, delta=DELTA).value < 0.5 for share in best]) > 0.3


def test_expectations_of_a_class_and_its_complexity():
    """Functions 1[x = a] of a number from 0 to 7, whose expectations are all 1/8."""
    rng, n, kinds = np.random.default_rng(5), 40, 8
    found = []
    for _ in range(500):
        x = rng.integers(0, kinds, n)
        table = (x == np.arange(kinds)[:, None]).astype(float)
        complexity = theory.finite_complexity(table, n_draws=64, random_state=rng).value
        found.append((complexity, table.mean(axis=1).min()))
    R = np.mean([complexity for complexity, _ in found])
    assert np.mean([theory.true_complexity_bound(own, n, delta=DELTA).value < R for own, _ in found]) <= DELTA
    with_own = [theory.expectation_bound(least, own, n, delta=DELTA) for own, least in found]
    with_true = [theory.expectation_bound(least, R, n, delta=DELTA, empirical=False) for _, least in found]
    for bounds in (with_own, with_true):
        assert np.mean([bound.value < 1 / kinds for bound in bounds]) <= DELTA
        assert np.mean([bound.terms["Ê f"] < 1 / kinds for bound in bounds]) > DELTA  # the rest is needed


POINTS = np.array([[1.0, 0.2], [0.4, 1.0], [-1.0, 0.3], [-0.2, -1.0]])
CHANCE = np.array([0.9, 0.8, 0.15, 0.3])  # of +1


@pytest.mark.parametrize("bias", [False, "regularized"])
def test_soft_margins(bias):
    """Machines without a bias of their own on noisy labels of four points, so that the true error is known."""
    rng, n, draws = np.random.default_rng(6), 6000, 200
    X, y = np.vstack([POINTS, POINTS]), np.repeat([1, -1], 4)
    kernel = Linear() + 1.0 if bias else Linear()
    failed, gaps = 0, []
    for _ in range(draws):
        counts = rng.multinomial(n, np.concatenate([CHANCE, 1 - CHANCE]) / 4)
        seen = counts > 0
        model = SVC(kernel="linear", C=30.0 / n, bias=bias, tol=1e-4).fit(X[seen], y[seen], counts[seen].astype(float))
        f = model.decision_function(POINTS)
        slacks = np.repeat(np.maximum(0, 1 - y * np.tile(f, 2)), counts)
        norm = math.hypot(model.rkhs_norm_, model.intercept_[0])
        bound = theory.soft_margin_bound(slacks, float(counts @ kernel.diag(X)), norm, delta=DELTA, grid_from=1.0)
        assert bound.applies is None
        assert not bound.vacuous
        truth = np.mean(np.where(f >= 0, 1 - CHANCE, CHANCE))
        failed += truth > bound.value
        gaps.append(bound.value - truth)
    assert failed / draws <= DELTA
    assert min(gaps) < 0.4  # the bound says something


def test_hard_margins():
    """The bound for machines that separate, on points that are all seen, against the mass of those that are not."""
    rng, n, draws = np.random.default_rng(7), 5000, 200
    angles = np.concatenate([np.linspace(-0.6, 0.6, 20), np.pi + np.linspace(-0.6, 0.6, 20)])
    X, y = np.column_stack([np.cos(angles), np.sin(angles)]), np.repeat([1, -1], 20)
    mass = rng.dirichlet(np.full(40, 0.05))  # many points are rare
    failed = 0
    for _ in range(draws):
        seen = rng.multinomial(n, mass) > 0
        if len(set(y[seen])) < 2:
            continue
        model = SVC(kernel="linear", C=np.inf, bias=False).fit(X[seen], y[seen])
        bound = theory.hard_margin_bound(float(n), n, model.rkhs_norm_, delta=DELTA, grid_from=1.0)
        assert bound.value < 0.3
        failed += mass[model.predict(X) != y].sum() > bound.value
    assert failed / draws <= DELTA


def test_soft_margin_expectation():
    """Shalev-Shwartz's bound on the expected hinge risk, for the best u."""
    rng, n, theta = np.random.default_rng(8), 40, 0.1
    X, y = np.vstack([POINTS, POINTS]), np.repeat([1, -1], 4)
    law = np.concatenate([CHANCE, 1 - CHANCE]) / 4

    def hinge_risk(f):
        return law @ np.maximum(0, 1 - y * f)

    risks = []
    for _ in range(500):
        counts = rng.multinomial(n, law)
        seen = counts > 0
        model = SVC(kernel="linear", C=1 / (2 * theta * n), bias=False, tol=1e-4).fit(X[seen], y[seen], counts[seen])
        risks.append(hinge_risk(model.decision_function(X)))
    radius = theory.enclosing_ball(X, kernel=Linear(), centre="origin").radius
    best = SVC(kernel="linear", C=1 / (2 * theta), bias=False, tol=1e-6).fit(X, y, law)
    least = hinge_risk(best.decision_function(X))
    bound = theory.soft_margin_expectation(least, best.rkhs_norm_, radius, n, theta=theta)
    error = 3 * np.std(risks) / math.sqrt(len(risks))
    assert np.mean(risks) <= bound.value + error
    assert np.mean(risks) > bound.terms["L(u)"]  # what is left out of the bound matters
