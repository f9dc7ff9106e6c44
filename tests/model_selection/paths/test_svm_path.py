"""The path in C: every C against direct solves, its ends, and what it refuses."""

import itertools
import math

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from sklearn.svm import SVC as PeerSVC

from mercer import SVC, svm_path
from reference.path_problems import KINDS, random_problem
from reference.problems import problem_of
from reference.qp import Unsolved, by_clarabel

matplotlib.use("Agg")


def unit_problem(path, C):
    """The dual at C, written out."""
    fit = path._fit
    y = np.where(fit.merged.y == 1, 1.0, -1.0)
    bound = C * fit.merged.weight
    totals = (0.0,) if path._machine.bias is True else ()
    return problem_of(y, np.minimum(0, y * bound), np.maximum(0, y * bound), totals)


def check(seed, n_prices):
    X, y, weight, options, rng = random_problem(seed)
    path = svm_path(X, y, sample_weight=weight, **options)
    assert path.stop_reason_ in ("converged", "rounding floor")
    assert (np.diff(path.C_) > 0).all()
    K = path._fit.gram().full()
    ends = (path.C_[0], path.C_[-1]) if len(path.C_) else (1.0, 1.0)
    for C in 10 ** rng.uniform(np.log10(ends[0]) - 0.3, np.log10(min(3 * ends[1], path.C_range_[1])), n_prices):
        used = np.bincount(path._fit.merged.member, path.alpha(C)[path._fit.merged.rows], len(K))
        y_merged = np.where(path._fit.merged.y == 1, 1.0, -1.0)
        problem = unit_problem(path, C)
        # α of a merged sample is the sum over its copies, which may miss the bound by rounding.
        bound = C * path._fit.merged.weight
        beta = y_merged * np.where(np.abs(used - bound) <= 1e-14 * bound, bound, used)
        u = K @ beta
        size = max(1.0, float(np.abs(K).max() * np.abs(beta).sum()))
        floor = 1e-8 + 4e-16 * size
        assert problem.violation(np.clip(beta, problem.lower, problem.upper), problem.p - u) < floor
        # A generic solver's point has no larger value.
        value = y_merged @ beta - 0.5 * beta @ u
        try:
            other_value, other = by_clarabel(problem, K)
        except Unsolved:
            continue
        assert other_value <= value + 1e-7 * max(1.0, abs(value))
        # ½‖w − w*‖² is at most what is missing to the optimum.
        missing = max(0.0, value - other_value) + 1e-9 * max(1.0, abs(value))
        assert np.abs(K @ other - u).max() <= np.sqrt(2 * missing * np.diagonal(K).max())


@pytest.mark.parametrize("seed", range(16), ids=lambda s: f"{KINDS[s % len(KINDS)]} {s}")
def test_every_price_is_solved(seed):
    check(seed, 4)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(16, 136), ids=lambda s: f"{KINDS[s % len(KINDS)]} {s}")
def test_every_price_of_many_problems_is_solved(seed):
    check(seed, 20)


@pytest.mark.parametrize("seed", [1, 3, 5])
def test_at_is_the_fitted_estimator(seed):
    X, y, weight, options, _ = random_problem(seed)
    path = svm_path(X, y, sample_weight=weight, **options)
    Cs = path.C_[[0, len(path.C_) // 3, len(path.C_) // 2]] * 0.99
    together = path.decision_function(X, Cs)
    for k, C in enumerate(Cs):
        model, fresh = path.at(C), SVC(C=C, tol=1e-9, **options).fit(X, y, sample_weight=weight)
        assert model.certificate_.violation < 1e-8
        assert model.converged_
        assert model.certificate_.dual == pytest.approx(fresh.certificate_.dual, rel=1e-9)
        np.testing.assert_allclose(model.decision_function(X), fresh.decision_function(X), atol=1e-7)
        if np.isnan(model._b_range_).all():
            np.testing.assert_allclose(together[:, k], fresh.decision_function(X), atol=1e-7)
            np.testing.assert_array_equal(path.predict(X, [C])[:, 0], np.where(together[:, k] >= 0, 1, -1))
        alpha = np.zeros(len(y))
        alpha[model.support_] = np.abs(model.dual_coef_[0])
        np.testing.assert_allclose(path.alpha(C), alpha, atol=1e-7 * C)


def test_scikit_learn_agrees_between_breakpoints():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)[:200]
    path = svm_path(X, y[:200], gamma=0.03, C_max=50)
    for C in (0.03, 1.7, 20.0):
        peer = PeerSVC(C=C, gamma=0.03, tol=1e-9).fit(X, y[:200])
        np.testing.assert_allclose(path.decision_function(X, [C])[:, 0], peer.decision_function(X), atol=1e-5)
        np.testing.assert_array_equal(np.flatnonzero(path.alpha(C) > 1e-9), np.sort(peer.support_))


def test_alpha_is_linear_between_breakpoints_and_bends_at_them():
    X, y, weight, options, _ = random_problem(11)
    path = svm_path(X, y, sample_weight=weight, **options)
    bends = 0
    for left, right in zip(path.C_[:-1], path.C_[1:], strict=True):
        middle = 0.5 * (path.alpha(left * (1 + 1e-12)) + path.alpha(right * (1 - 1e-12)))
        assert np.abs(path.alpha(0.5 * (left + right)) - middle).max() < 1e-8 * right
        wide = 0.1 * (right - left)
        before = path.alpha(right - wide)
        straight = path.alpha(right - 2 * wide) - before
        bends += np.abs(path.alpha(right + 1e-3 * wide) - before + 1.001 * straight).max() > 1e-12
    assert bends > 0.9 * (len(path.C_) - 1)


@pytest.mark.parametrize("bias", [True, False, "regularized"])
def test_no_price_at_all(bias):
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 2
    path = svm_path(X, y, bias=bias)
    assert path.decision_function(X[:5], []).shape == path.predict(X[:5], []).shape == (5, 0)
    assert path.error(X, y, []).shape == (0,)


def test_by_hand():
    """x = ±1 under a linear kernel: α = C until the margin is reached at C = ½, and ½ from there on."""
    path = svm_path(np.array([[-1.0], [1.0]]), [0, 1], kernel="linear")
    np.testing.assert_allclose(path.C_, [0.5])
    np.testing.assert_allclose(path.alpha(0.2), 0.2)
    np.testing.assert_allclose(path.alpha(7.0), 0.5)
    np.testing.assert_allclose(path.margin_, 1.0)
    assert path.C_range_ == (0.0, math.inf)


@pytest.mark.parametrize("bias", [True, False, "regularized"])
@pytest.mark.parametrize("seed", range(4))
def test_separable_samples_have_no_last_price(seed, bias):
    """From some C on no sample is inside its margin, and nothing changes any more."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25, 2))
    path = svm_path(X, (X[:, 0] + rng.normal(size=25) > 0).astype(int), gamma=2.0, bias=bias)
    assert path.C_range_ == (0.0, math.inf)
    np.testing.assert_allclose(path.alpha(1e3 * path.C_[-1]), path.alpha(2 * path.C_[-1]), rtol=1e-9)


def test_unequal_classes_begin_with_the_larger_ones_label():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.r_[np.ones(30), np.zeros(10)]
    path = svm_path(X, y, gamma=1.0)
    C = path.C_[0] / 10
    f = path.decision_function(X, [C])[:, 0]
    np.testing.assert_allclose(f, 1.0, atol=20 * C)
    alpha = path.alpha(C)
    np.testing.assert_allclose(alpha[y == 0], C)
    assert alpha[y == 1].sum() == pytest.approx(10 * C)


@pytest.mark.parametrize("bias", [True, False])
def test_equal_rows_with_both_labels(bias):
    X, y = np.ones((7, 2)), [0, 0, 0, 1, 1, 1, 1]
    path = svm_path(X, y, gamma=1.0, bias=bias, C_max=100)
    for C in (0.01, 0.3, 50.0):
        fresh = SVC(C=C, gamma=1.0, bias=bias, tol=1e-9).fit(X, y)
        np.testing.assert_allclose(path.at(C).decision_function(X), fresh.decision_function(X), atol=1e-9)
        assert path.at(C).certificate_.violation < 1e-8


@pytest.mark.parametrize("seed", range(2, 8))
def test_a_path_that_begins_where_all_are_bounded(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(-1.5, 1.5, size=(16, 2)), np.arange(16) % 2
    X[:, 0] += 0.8 * y
    whole = svm_path(X, y, gamma=0.1)
    segments = zip(whole.C_[:-1], whole.C_[1:], whole.n_free_[1:], whole.intercept_[1:], strict=True)
    bounded = [(0.5 * (left + right), right, b) for left, right, n_free, b in segments if n_free == 0]
    assert bounded
    for C, right, b in bounded:
        part = svm_path(X, y, gamma=0.1, C_min=C)
        assert part.C_[0] == pytest.approx(right, rel=1e-9)
        assert part.n_free_[0] == 0
        assert part.intercept_[0] == pytest.approx(b, abs=1e-9)


def test_a_part_of_the_path():
    X, y, weight, options, _ = random_problem(3)
    whole, part = svm_path(X, y, sample_weight=weight, **options), None
    inner = (whole.C_ > 0.5) & (whole.C_ < 20)
    part = svm_path(X, y, sample_weight=weight, C_min=0.5, C_max=20, **options)
    np.testing.assert_allclose(part.C_, whole.C_[inner], rtol=1e-8)
    np.testing.assert_allclose(part.alpha(3.0), whole.alpha(3.0), atol=1e-8)
    with pytest.raises(ValueError, match="outside this path"):
        part.alpha(0.1)


def test_kernel_values_that_do_not_fit_are_computed_as_they_are_needed():
    X, y, _, options, _ = random_problem(8)
    X = np.repeat(X, 4, axis=0) + 0.01 * np.random.default_rng(1).normal(size=(4 * len(X), X.shape[1]))
    y = np.repeat(y, 4)
    small = svm_path(X, y, cache_size=0.02, C_max=10, **options)
    large = svm_path(X, y, C_max=10, **options)
    np.testing.assert_allclose(small.C_, large.C_, rtol=1e-7)


def test_what_is_seen_at_breakpoints():
    X, y, _, options, _ = random_problem(5)
    path = svm_path(X, y, **options)
    C = float(path.C_[len(path.C_) // 2]) * (1 - 1e-9)
    k = len(path.C_) // 2
    model = path.at(C)
    assert path.margin_[k] == pytest.approx(1 / model.rkhs_norm_, rel=1e-6)
    assert path.n_support_[k] == len(model.support_)
    wrong = (model.predict(X) != y).mean()
    assert path.error(X, y, [C])[0] == pytest.approx(wrong)
    assert path.n_checks_ >= 0
    assert path.largest_violation_ < 1e-8


def assert_optimal(K, sign, alpha, bound, b):
    """The conditions of Karush, Kuhn and Tucker."""
    ahead = sign * (K @ (sign * alpha) + b) - 1
    assert ahead[alpha < bound * (1 - 1e-13)].min(initial=0.0) >= -1e-9
    assert ahead[alpha > 1e-13 * bound].max(initial=0.0) <= 1e-9


def peer_sides(K, y, C, weight):
    """Which α are zero (0), free (1) and at their bound (2), by LIBSVM."""
    peer = PeerSVC(kernel="precomputed", C=C, tol=1e-12).fit(K, y, sample_weight=weight)
    share = np.zeros(len(y))
    share[peer.support_] = np.abs(peer.dual_coef_[0]) / (C * weight[peer.support_])
    return np.where(share < 1e-7, 0, np.where(share > 1 - 1e-7, 2, 1))


@pytest.mark.parametrize("weights", ["equal", "one or two", "any"])
@pytest.mark.parametrize("seed", range(4))
def test_sets_and_intercepts_are_those_of_the_dual_solution(seed, weights):
    """With equal bounds no α is free alone: the others sum to a multiple of C. Where all are bounded, b has a range."""
    rng = np.random.default_rng(seed)
    n = 24
    X, y = rng.uniform(-1.5, 1.5, size=(n, 2)), np.arange(n) % 2
    X[:, 0] += 0.8 * y
    weight = {"equal": np.ones(n), "one or two": rng.integers(1, 3, n) * 1.0, "any": rng.uniform(0.5, 2, n)}[weights]
    gamma, sign = (4.0, 0.1)[seed % 2], np.where(y == 1, 1.0, -1.0)
    K = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    path = svm_path(X, y, gamma=gamma, sample_weight=weight, C_min=0.02, C_max=50)
    ends = np.r_[0.02, path.C_]
    if weights == "equal":
        assert (path.n_free_ == 0).any()
        assert not (path.n_free_ == 1).any()
    before = None
    for k, (left, right) in enumerate(itertools.pairwise(ends)):
        assert_optimal(K, sign, path.alpha(right), right * weight, path.intercept_[k])
        for C in (left, 0.9 * left + 0.1 * right, 0.5 * (left + right)):
            b = path.decision_function(X[:1], [C])[0, 0] - K[0] @ (sign * path.alpha(C))
            assert_optimal(K, sign, path.alpha(C), C * weight, b)
        if right < left * (1 + 1e-3):
            before = None  # the same sets to LIBSVM's precision
            continue
        sides = peer_sides(K, y, 0.5 * (left + right), weight)
        assert ((sides == 1).sum(), (sides == 2).sum()) == (path.n_free_[k], path.n_bounded_[k])
        assert before is None or (sides != before).any()  # else this is no breakpoint
        before = sides


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slack": "l2"}, "no exact path"),
        ({"C": 3.0}, "leave C"),
        ({"theta": 3.0}, "leave C"),
        ({"C_min": 2.0, "C_max": 1.0}, "must be below"),
        ({"multiclass": "crammer-singer"}, "has no path"),
    ],
)
def test_what_has_no_path_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        svm_path([[0.0], [1.0]], [0, 1], **options)


def test_three_classes_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"y == label"):
        svm_path([[0.0], [1.0], [2.0]], [0, 1, 2])


def test_an_indefinite_matrix_is_refused():
    K = np.array([[0.0, 2.0], [2.0, 0.0]])
    with pytest.warns(match="negative eigenvalue"), pytest.raises(ValueError, match="not positive definite"):
        svm_path(K, [0, 1], kernel="precomputed")


def smooth_problem(seed):
    """One smooth feature: kernel rows that nearly depend on one another, and α that f hardly feels."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(15, 1))
    return x, (x[:, 0] + rng.normal(size=15) > 0).astype(int)


def true_violation(K, y, alpha, bound, bias):
    """How far α is from optimal, in long double, with kernel values of the same precision; a bound is met to 1e-12."""
    y, alpha = np.where(y == 1, 1.0, -1.0).astype(K.dtype), alpha.astype(K.dtype)
    h = y - K @ (y * alpha)
    off_zero, off_bound = alpha > 0, alpha < bound * (1 - 1e-12)
    up, low = np.where(y > 0, off_bound, off_zero), np.where(y > 0, off_zero, off_bound)
    if bias:
        return float(h[up].max(initial=-np.inf) - h[low].min(initial=np.inf))
    return float(max(h[up].max(initial=0.0), -h[low].min(initial=0.0)))


# With one coefficient clipped alone these are wrong by up to 0.02 at one of their breakpoints, and so is Σyα.
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("seed", [1, 101, 187, 291])
def test_breakpoints_of_nearly_dependent_samples(seed, bias):
    x, y = smooth_problem(seed)
    path = svm_path(x, y, gamma=0.05, bias=bias)
    x = x.astype(np.longdouble)
    K = np.exp(-np.longdouble(0.05) * (x - x.T) ** 2)
    f = path.decision_function(x.astype(float), path.C_)
    for k, C in enumerate(path.C_):
        alpha = path.alpha(C)
        assert (alpha >= 0).all()
        assert (alpha <= C).all()
        assert true_violation(K, y, alpha, C, bias) < 1e-8
        beta = np.where(y == 1, 1, -1) * alpha
        if bias:
            assert abs(beta.sum()) < 1e-13 * alpha.sum()
        off = f[:, k] - (K @ beta).astype(float)
        assert np.ptp(off) < 1e-8
        at_margin = (alpha > 1e-6 * C) & (alpha < C * (1 - 1e-6))
        np.testing.assert_allclose(f[at_margin, k], np.where(y == 1, 1, -1)[at_margin], atol=1e-8)


def test_a_last_segment_ends_where_rounding_reaches_tol():
    """Samples with both labels keep α growing with C, and no breakpoint comes."""
    rng = np.random.default_rng(7)
    X, y = rng.integers(-2, 3, size=(16, 2)).astype(float), rng.integers(0, 2, 16)
    y[:5], X[1:5] = [0, 1, 1, 1, 1], X[0]
    path = svm_path(X, y, gamma=0.06, class_weight={0: 1, 1: 2.5}, bias=False)
    assert path.stop_reason_ == "rounding floor"
    wide = X.astype(np.longdouble)
    K = np.exp(-np.longdouble(0.06) * ((wide[:, None] - wide[None]) ** 2).sum(axis=2))
    largest = 0.0
    for C in np.geomspace(path.C_[-1], path.C_range_[1], 6):
        C = min(C, path.C_range_[1])
        largest = max(largest, true_violation(K, y, path.alpha(C), C * np.where(y == 1, 2.5, 1.0), False))
    assert largest < 1e-8
    assert path.n_checks_ > 0
    assert largest <= path.largest_violation_ <= 1e-8  # the end is certified, and nowhere is rounding larger
    assert path.at(path.C_range_[1]).converged_


def test_weights_of_many_orders_hide_no_breakpoint():
    """Slopes that matter over a long way in C are small beside those of samples that have long left their bounds."""
    rng = np.random.default_rng(27)
    X = rng.normal(size=(12, 2))
    y = np.array([0, 1] * 6)
    weight = 10.0 ** rng.uniform(-6, 6, 12)
    path = svm_path(X, y, gamma=0.3, bias="regularized", sample_weight=weight)
    wide = X.astype(np.longdouble)
    K = np.exp(-np.longdouble(0.3) * ((wide[:, None] - wide[None]) ** 2).sum(axis=2)) + 1
    assert path.largest_violation_ < 1e-8
    for left, right in zip(path.C_[:-1], path.C_[1:], strict=True):
        C, beta = 0.5 * (left + right), []
        for price in (left, C, right):
            alpha = path.alpha(price)
            assert true_violation(K, y, alpha, price * weight, False) < 1e-8
            beta.append(np.where(y == 1, 1, -1) * alpha)
        assert np.abs(K @ (0.5 * (beta[0] + beta[2]) - beta[1])).max() < 1e-8  # f is linear between


def test_a_machine_of_the_path_has_the_time_limit_to_itself():
    X, y = load_breast_cancer(return_X_y=True)
    path = svm_path(scale(X)[:60], y[:60], gamma=0.03, C_max=10, max_time=2.0)
    path._fit.limits.stop.__dict__["deadline"] = 0.0  # long ago
    assert path.at(3.0).converged_
