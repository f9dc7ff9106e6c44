"""RankSVM against a machine that is trained on every pair, and its certificate in exact arithmetic.

Problem and reference value: tests/reference/machines.py, tests/test_architecture.py. Tools: tests/tools.
scikit-learn's checks: tests/scikit_learn/test_sklearn_checks.py. Bad inputs: tests/bad_inputs.
Terms of the certificate: tests/certificates/test_terms_of_ranking.py. Search: tests/model_selection/test_ranking.py.
SVMlight's commands: tests/cli/test_svmlight.py. Files: tests/claims/test_false_files.py.
"""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import roc_auc_score

from mercer import SVC, LinearSVC, RankSVM, tune
from mercer.certificates.ranking import certify_ranking
from mercer.kernels import Gaussian, Linear
from mercer.places import gram_for
from mercer.places.ball import Ball
from mercer.problems.ranking import RankDual, RankProblem
from mercer.solvers.ranking import Zone, solve_ranking
from mercer.solvers.solution import Stop


def problem(n=60, groups=4, levels=4, seed=0, features=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features))
    y = np.digitize(X[:, 0] + np.sin(X[:, 1]) + 0.7 * rng.normal(size=n), np.linspace(-1.5, 1.5, levels - 1))
    return X, y, rng.integers(0, groups, n)


def all_pairs(y, qid):
    return np.nonzero((y[:, None] > y[None, :]) & (qid[:, None] == qid[None, :]))


@pytest.mark.filterwarnings("ignore:RankSVM stopped before")  # 1e-12 is near what rounding allows
@pytest.mark.parametrize("C", [0.02, 1.0, 50.0])
@pytest.mark.parametrize("groups", [1, 8])
def test_it_is_the_svc_of_the_explicit_pairs(C, groups):
    X, y, qid = problem(groups=groups)
    i, j = all_pairs(y, qid)
    K = Gaussian(gamma=0.5)(X, X)
    of_pairs = K[np.ix_(i, i)] - K[np.ix_(i, j)] - K[np.ix_(j, i)] + K[np.ix_(j, j)]
    sign = np.where(np.arange(len(i)) % 2 == 0, 1.0, -1.0)  # an SVC wants two classes
    pairs = SVC(C=C, kernel="precomputed", bias=False, tol=1e-10).fit(sign[:, None] * of_pairs * sign, sign)
    alpha = np.zeros(len(i))
    alpha[pairs.support_] = np.abs(pairs.dual_coef_[0])
    f = (K[:, i] - K[:, j]) @ alpha
    model = RankSVM(C=C, kernel=Gaussian(gamma=0.5), tol=1e-12).fit(X, y, qid=qid)
    np.testing.assert_allclose(model.predict(X), f, atol=1e-7)
    assert model.certificate_.dual <= pairs.certificate_.primal
    assert pairs.certificate_.dual <= model.certificate_.primal


def test_linear_sparse_and_dense_are_the_linear_svc_of_the_differences():
    X, y, qid = problem(n=80, features=5)
    i, j = all_pairs(y, qid)
    sign = np.where(np.arange(len(i)) % 2 == 0, 1.0, -1.0)
    pairs = LinearSVC(C=0.3, loss="hinge", bias=False, tol=1e-11).fit(sign[:, None] * (X[i] - X[j]), sign)
    for given_X in (X, sp.csr_array(X)):
        model = RankSVM(C=0.3, kernel="linear", tol=1e-11).fit(given_X, y, qid=qid)
        np.testing.assert_allclose(model.dual_coef_[0] @ X, pairs.coef_[0], atol=1e-7)


@pytest.mark.parametrize(("scale", "offset", "C"), [(1.0, 1e5, 100.0), (1.0, 1e8, 1e-3), (1e4, 0.0, 30.0)])
def test_linear_ranking_of_raw_columns(scale, offset, C):
    """A column's offset changes no pair, and a scale is one of C."""
    X, y, qid = problem(n=80, features=5)
    raw = RankSVM(C=C, kernel="linear", tol=1e-4).fit(scale * X + offset, y, qid=qid)
    i, j = all_pairs(y, qid)
    sign = np.where(np.arange(len(i)) % 2 == 0, 1.0, -1.0)
    pairs = LinearSVC(C=C * scale**2, loss="hinge", bias=False, tol=1e-6, max_iter=10**6)
    proof = pairs.fit(sign[:, None] * (X[i] - X[j]), sign).certificate_
    assert raw.converged_
    assert raw.certificate_.primal * scale**2 == pytest.approx(proof.primal, rel=2e-4)


def test_weights_are_repetitions_and_groups_are_apart():
    X, y, qid = problem(n=40)
    weight = np.arange(40) % 3
    weighted = RankSVM(gamma=0.5).fit(X, y, qid=qid, sample_weight=weight).predict(X)
    repeated = RankSVM(gamma=0.5).fit(*(np.repeat(a, weight, axis=0) for a in (X, y)), qid=np.repeat(qid, weight))
    np.testing.assert_array_equal(weighted, repeated.predict(X))
    moved = RankSVM(gamma=0.5).fit(X, y + 100 * qid, qid=[f"query {q}" for q in qid])  # only order within a group
    np.testing.assert_array_equal(moved.predict(X), RankSVM(gamma=0.5).fit(X, y, qid=qid).predict(X))


def test_the_score_is_the_share_of_pairs_in_order():
    X, y, qid = problem(n=50)
    model = RankSVM(gamma=0.5).fit(X, y, qid=qid)
    weight = 1.0 + np.arange(50) % 3
    X[7], X[8] = X[9], X[9]  # ties
    f, (i, j) = model.predict(X), all_pairs(y, qid)
    right = (f[i] > f[j]) + 0.5 * (f[i] == f[j])
    assert model.score(X, y, qid=qid) == pytest.approx(right.mean(), abs=1e-12)
    expected = np.average(right, weights=weight[i] * weight[j])
    assert model.score(X, y, qid=qid, sample_weight=weight) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_sums_and_pairs_are_those_of_loops(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 25))
    level, group, weight = rng.integers(0, rng.integers(2, 10), n), rng.integers(0, 3, n), np.ones(n)
    ranks = RankProblem(level, group, weight, 1.0)
    r, V = rng.integers(-4, 5, n) * 0.5, rng.normal(size=(n, 2))
    low, high = sorted(rng.choice([-0.5, 0.0, 0.5, 1.0, 1.3], 2))
    i, j = all_pairs(level, group)
    near = r[j] > r[i] - high
    won, lost = ranks.sums(r, r - high, V)
    for k in range(n):
        np.testing.assert_allclose(won[k], V[j[near & (i == k)]].sum(axis=0), atol=1e-12)
        np.testing.assert_allclose(lost[k], V[i[near & (j == k)]].sum(axis=0), atol=1e-12)
    zone = near & ~(r[j] > r[i] - low)
    assert set(zip(*ranks.pairs(r, low, high), strict=True)) == set(zip(i[zone], j[zone], strict=True))
    assert ranks.count(r, low, high) == zone.sum()


def true_values(ranks, K, beta, dual):
    """Primal value of β and dual value of α, in rational numbers; K is one of integers."""
    one, C = Fraction(1), Fraction(ranks.C)
    w, exact = [Fraction(v) for v in ranks.weight], [Fraction(v) for v in beta]
    n = len(w)
    u = [sum(Fraction(int(K[i, j])) * exact[j] for j in range(n)) for i in range(n)]
    given_alpha = dict(zip(zip(*ranks.pairs(dual.r, dual.low, 1.0), strict=True), dual.alpha, strict=True))
    sums, gain, loss = [Fraction(0)] * n, Fraction(0), Fraction(0)
    for i, j in zip(*all_pairs(ranks.level, ranks.group), strict=True):
        full = C * w[i] * w[j]
        alpha = full if dual.r[j] > dual.r[i] - dual.low else Fraction(given_alpha.get((i, j), 0.0))
        alpha = min(max(alpha, Fraction(0)), full)
        sums[i], sums[j], gain = sums[i] + alpha, sums[j] - alpha, gain + alpha
        loss += full * max(Fraction(0), one - (u[i] - u[j]))
    half = one / 2
    primal = half * sum(a * b for a, b in zip(exact, u, strict=True)) + loss
    energy = sum(sums[i] * Fraction(int(K[i, j])) * sums[j] for i in range(n) for j in range(n))
    return primal, gain - half * energy


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_no_certificate_claims_too_much(seed):
    """Also of coefficients that are not those of their α, and of α from another order than that of f."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 14))
    X = rng.integers(-3, 4, (n, 2)).astype(float)
    ranks = RankProblem(rng.integers(0, 4, n), rng.integers(0, 2, n), rng.choice([1.0, 0.3, 2.0], n), 0.7)
    if not len(all_pairs(ranks.level, ranks.group)[0]):
        return
    gram = gram_for(Linear(), X)
    found, proof = solve_ranking(ranks, gram, Stop(tol=1e-9, max_iter=100))
    cases = [(found.beta, found.dual, proof)]
    r = rng.normal(size=n)
    zone = ranks.pairs(r, 0.5, 1.0)
    wild = RankDual(r, 0.5, ranks.bound(zone) * rng.random(len(zone[0])))
    beta = found.beta + 0.1 * rng.normal(size=n)
    cases.append((beta, wild, certify_ranking(ranks, gram, beta, wild)))
    for coefficients, dual, claim in cases:
        primal, value = true_values(ranks, X @ X.T, coefficients, dual)
        assert claim.primal >= primal
        assert claim.dual <= value
        assert claim.gap >= primal - value
    assert proof.relative_gap < 1e-6 or proof.primal < 1e-9


class Off:
    """A Gram whose products are wrong by as much as they say."""

    levels = (np.float64,)
    positive_definite = "yes"

    def __init__(self, gram, by):
        self.gram, self.by, self.entry_bounds = gram, by, gram.entry_bounds

    def product_bound(self, coefficients, rows=None, level=np.float64):
        return Ball(self.gram.product(coefficients) + self.by, np.abs(self.by) * (1 + 1e-12) + 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_errors_of_the_products_are_counted(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (10, 2)).astype(float)
    ranks = RankProblem(np.arange(10) % 3, np.arange(10) % 2, np.ones(10), 0.7)
    gram = gram_for(Linear(), X)
    found, _ = solve_ranking(ranks, gram, Stop(tol=1e-9, max_iter=100))
    primal, value = true_values(ranks, X @ X.T, found.beta, found.dual)
    for by in (0.2 * rng.normal(size=10), np.where(ranks.level > 0, 0.3, -0.3)):
        claim = certify_ranking(ranks, Off(gram, by), found.beta, found.dual)
        assert claim.primal >= primal
        assert claim.dual <= value
    nothing = RankDual(2.0 * ranks.level, 1.0, np.empty(0))
    claim = certify_ranking(ranks, Off(gram, 0.3 * ranks.level), np.zeros(10), nothing)
    assert claim.primal >= true_values(ranks, X @ X.T, np.zeros(10), nothing)[0]  # all hinges are 1


def test_a_zone_by_its_sums_is_that_of_its_pairs():
    rng = np.random.default_rng(0)
    ranks = RankProblem(rng.integers(0, 6, 40), rng.integers(0, 2, 40), rng.choice([1.0, 2.5], 40), 0.3)
    u, V = rng.normal(size=40), rng.normal(size=(40, 3))
    kept, summed = Zone(ranks, u, 0.8, 10**6), Zone(ranks, u, 0.8, 0)
    assert summed.pairs is None
    assert kept.pairs is not None
    for name in ("loss", "cost", "gain", "beta_below", "beta"):
        np.testing.assert_allclose(getattr(summed, name), getattr(kept, name), atol=1e-10)
    np.testing.assert_allclose(summed.times_curvature(V), kept.times_curvature(V), atol=1e-10)


def test_zones_too_large_to_keep_are_summed():
    X, y, _ = problem(n=90, groups=1, levels=4)
    y = y + np.argsort(np.argsort(X[:, 0])) / 1000  # all differ
    kept = RankSVM(C=0.1, kernel="linear", tol=1e-9).fit(X, y)
    from mercer.solvers import ranking

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "_KEPT_PAIRS", 0)
        summed = RankSVM(C=0.1, kernel="linear", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(summed.predict(X), kept.predict(X), atol=1e-5)


def test_it_says_what_it_cannot_do():
    X, y, qid = problem()
    with pytest.raises(ValueError, match="nothing to rank"):
        RankSVM().fit(X, qid, qid=qid)
    with pytest.raises(ValueError, match="qid has shape"):
        RankSVM().fit(X, y, qid=qid[:-1])
    with pytest.raises(MemoryError, match="cache_size allows"):
        RankSVM(cache_size=0.01).fit(X, y)
    with pytest.warns(UserWarning, match="max_iter"):
        early = RankSVM(max_iter=1, gamma=0.5).fit(X, y, qid=qid)
    assert early.stop_reason_ == "max_iter"
    assert early.certificate_.gap > 0


def test_whole_numbers_that_floats_cannot_tell_apart_are_ranked():
    X, y = np.arange(4.0)[:, None], np.array([2**53, 2**53 + 1, 2**53 + 2, 2**53 + 3])
    model, truth = (RankSVM(kernel="linear").fit(X, order) for order in (y, np.arange(4)))
    np.testing.assert_array_equal(model.predict(X), truth.predict(X))
    assert RankSVM(kernel="linear").fit(X[:2], y[:2]).score(X, y) == 1.0
    assert model.score(X, y[::-1]) == 0.0


@pytest.mark.parametrize("missing", [np.nan, None])
def test_a_missing_group_is_refused(missing):
    with pytest.raises(ValueError, match=r"qid is missing in 2 of 4 rows \(the first: 1\)"):
        RankSVM().fit(np.arange(4.0)[:, None], np.arange(4), qid=[1, missing, 1, missing])


@pytest.mark.filterwarnings("ignore:RankSVM.score is the share")
def test_the_score_of_no_pair_is_undefined():
    """NaN and a warning, as scikit-learn's roc_auc_score answers to one class."""
    X, y, qid = problem()
    model = RankSVM(kernel="linear").fit(X, y, qid=qid)
    with pytest.warns(UndefinedMetricWarning):
        assert np.isnan(roc_auc_score(np.ones(3), np.arange(3)))
    undefined = [
        {"y": np.ones(60)},
        {"y": np.arange(60), "qid": np.arange(60)},
        {"y": np.arange(60), "sample_weight": np.eye(60)[0]},
    ]
    for given_as in undefined:
        with pytest.warns(UndefinedMetricWarning, match="there is no pair"):
            assert np.isnan(model.score(X, **given_as))
    with pytest.warns(UserWarning, match="no cell has a finite score in every fold.*a ranking needs two samples"):
        found = tune(RankSVM(kernel="linear"), X, np.where(qid == 1, 0, y), qid=qid, grid={"C": [1.0]}, cv=4)
    assert np.isnan(found.cv_results_["mean_test_score"]).all()
