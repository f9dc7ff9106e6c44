"""The two-sample test: its statistics by hand, its level, its power."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import mmd_test
from mercer.kernels import Gaussian, Linear, Polynomial, Spectrum

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(30, 2)), rng.normal(size=(20, 2)) + 0.4


def by_hand(kernel, X, Y):
    n, m = len(X), len(Y)
    within = [[kernel(A[i : i + 1], A[j : j + 1])[0, 0] for i in range(len(A)) for j in range(len(A))] for A in (X, Y)]
    own = [sum(kernel(a[None])[0, 0] for a in A) for A in (X, Y)]
    between = 2 * np.mean([kernel(x[None], y[None])[0, 0] for x in X for y in Y])
    unbiased = (sum(within[0]) - own[0]) / (n * (n - 1)) + (sum(within[1]) - own[1]) / (m * (m - 1)) - between
    return unbiased, sum(within[0]) / n**2 + sum(within[1]) / m**2 - between


@pytest.mark.parametrize("kernel", [Gaussian(gamma=0.5), Polynomial(2, 1.0, 1.0), Linear()], ids=repr)
def test_statistics_by_hand(kernel):
    found = mmd_test(X[:9], Y[:7], kernel=kernel, n_permutations=5, random_state=0)
    np.testing.assert_allclose((found.statistic, found.biased), by_hand(kernel, X[:9], Y[:7]), rtol=1e-9)


def test_the_linear_kernel_compares_means():
    found = mmd_test(X, Y, kernel="linear", n_permutations=5, random_state=0)
    assert found.biased == pytest.approx(np.sum((X.mean(axis=0) - Y.mean(axis=0)) ** 2))


def test_the_p_value_counts_permutations():
    found = mmd_test(X, Y, n_permutations=199, random_state=0)
    assert found.p_value == (1 + np.sum(found.permuted >= found.statistic)) / 200
    # Random divisions have a statistic of mean zero, which is what unbiased means.
    many = mmd_test(X, Y, n_permutations=4000, random_state=1)
    assert abs(many.permuted.mean()) < 4 * many.permuted.std() / np.sqrt(4000)
    assert many.kernel.gamma == pytest.approx(Gaussian(gamma="median").bind(np.vstack([X, Y])).gamma)
    assert str(many).startswith("MMD² ")


def test_every_division_of_tiny_samples():
    """All permutations of 2 + 2 points tie with their mirror images: three values, each as likely."""
    found = mmd_test([[0.0], [0.1]], [[5.0], [5.2]], n_permutations=3000, random_state=0)
    assert len(np.unique(found.permuted.round(12))) == 3
    assert found.p_value == pytest.approx(1 / 3, abs=0.04)


@pytest.mark.parametrize("form", ["csr", "float32", "landmarks"])
def test_forms_of_samples(form):
    exact = mmd_test(X, Y, random_state=0, n_permutations=50)
    if form == "landmarks":
        found = mmd_test(X, Y, random_state=0, n_permutations=50, n_landmarks=40)
        assert found.statistic == pytest.approx(exact.statistic, abs=0.01)
        return
    change = sp.csr_array if form == "csr" else np.float32
    found = mmd_test(change(X), change(Y), random_state=0, n_permutations=50)
    assert found.statistic == pytest.approx(exact.statistic, rel=1e-5)
    assert found.p_value == exact.p_value


def test_strings():
    same = mmd_test(["abab", "baba", "abba"] * 5, ["abab", "baab", "bbaa"] * 5, kernel=Spectrum(1), random_state=0)
    other = mmd_test(["abab", "baba", "abba"] * 5, ["abaa", "aaab", "aaba"] * 5, kernel=Spectrum(1), random_state=0)
    assert same.p_value == 1.0
    assert other.p_value == 1 / 1001


def rejections(draws, law, other, **options):
    r = np.random.default_rng(5)
    p = [mmd_test(law(r), other(r), n_permutations=99, random_state=k, **options).p_value for k in range(draws)]
    return sum(value <= 0.05 for value in p)


def normal(r):
    return r.normal(size=(12, 1))


def skewed(r):
    return r.exponential(size=(20, 1))


def test_it_keeps_its_level_and_has_power():
    """At most 5 % of 60 draws, by a binomial law: more than 9 have a chance of 1 in 1,000."""
    assert rejections(60, normal, normal) <= 9
    assert rejections(10, normal, lambda r: r.normal(size=(20, 1)) + 2) == 10


@pytest.mark.thorough
@pytest.mark.parametrize("options", [{}, {"n_landmarks": 8}, {"kernel": "laplacian"}], ids=str)
@pytest.mark.parametrize("law", [normal, skewed], ids=lambda law: law.__name__)
def test_it_keeps_its_level_over_a_thousand_draws(law, options):
    """Between 27 and 76 rejections of 1,000: each tail has a chance below 1 in 3,000 at a level of exactly 5 %."""
    assert 27 <= rejections(1000, law, law, **options) <= 76


def test_what_is_refused():
    with pytest.raises(ValueError, match="Y has 1 sample, but a two-sample test needs at least two"):
        mmd_test(X, Y[:1])
    with pytest.raises(ValueError, match="gamma='median' overflows"):
        mmd_test(1e200 * X, 1e200 * Y)
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"X has the columns \['a', 'b'\] and Y \['b', 'a'\]"):
        mmd_test(pd.DataFrame(X, columns=["a", "b"]), pd.DataFrame(Y, columns=["b", "a"]))
    with pytest.raises(ValueError, match="X has 2 features, but Y has 1"):
        mmd_test(X, Y[:, :1])
    with pytest.raises(ValueError, match=r"precomputed.*the kernel as a function"):
        mmd_test(X, Y, kernel="precomputed")
    with pytest.raises(ValueError, match="n_permutations=0"):
        mmd_test(X, Y, n_permutations=0)
    with pytest.raises(MemoryError, match="n_landmarks=1000"):
        mmd_test(X, Y, cache_size=0.01)


def test_one_permutation_is_no_sign_of_rounding():
    X = np.random.default_rng(0).normal(size=(40, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mmd_test(X[:20], X[20:], n_permutations=1, n_landmarks=3, random_state=0).p_value >= 0.5
