"""Gaussian process regression against scikit-learn's, whose numbers it must give, and what only it has.

The process, its likelihood and derivatives: tests/estimators/gaussian_process/test_process.py.
scikit-learn's checks: tests/estimators/gaussian_process/test_contract.py. Tools: tests/tools.
Refusals: tests/behaviour/test_clear_refusals.py. Files: tests/claims/test_false_files.py.
"""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.gaussian_process import GaussianProcessRegressor as Theirs
from sklearn.gaussian_process import kernels as theirs

import mercer
from mercer import GaussianProcessRegressor, RLSRegressor
from mercer.estimators.gaussian_process.process import GaussianProcess
from mercer.kernels import Gaussian, Linear, Matern, Spectrum
from mercer.notes.theory import log_likelihood

rng = np.random.default_rng(0)
X, NEW = rng.normal(size=(30, 2)), rng.normal(size=(12, 2)) * 2
Y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=30)
TWO = np.column_stack([Y, X[:, 1] ** 2])
PAIRS = [
    (2.5 * Gaussian(sigma=0.7), theirs.ConstantKernel(2.5) * theirs.RBF(0.7), ["factor", "kernel__sigma"]),
    (Matern(nu=1.5, length_scale=0.8), theirs.Matern(0.8, nu=1.5), ["length_scale"]),
]


@pytest.mark.parametrize(("kernel", "other", "names"), PAIRS, ids=["Gaussian", "Matern"])
@pytest.mark.parametrize("y", [Y, TWO], ids=["one output", "two outputs"])
def test_every_number_is_scikit_learns(kernel, other, names, y):
    lam = 0.05
    ours = GaussianProcessRegressor(lam, kernel=kernel, optimise=False).fit(X, y)
    peer = Theirs(other + theirs.WhiteKernel(lam), alpha=0.0, optimizer=None).fit(X, y)
    exact = {"rtol": 1e-8, "atol": 1e-10}
    for options in ({"return_std": True}, {"return_cov": True}):
        mean, beside = ours.predict(NEW, noise=True, **options)
        wanted, theirs_beside = peer.predict(NEW, **options)
        np.testing.assert_allclose(mean, wanted, **exact)
        np.testing.assert_allclose(beside, theirs_beside, **exact)
    value, slopes = ours.log_marginal_likelihood(eval_gradient=True)
    wanted, logs = peer.log_marginal_likelihood(peer.kernel_.theta, eval_gradient=True)
    assert ours.log_marginal_likelihood_value_ == value == pytest.approx(wanted, rel=1e-9)
    known = ours.kernel_.get_params() | {"lam": lam}
    found = [known[name] * slopes[name] for name in [*names, "lam"]]
    np.testing.assert_allclose(found, logs, rtol=1e-8, atol=1e-8)
    assert ours.certificate_.relative_gap < 1e-7


@pytest.mark.parametrize("y", [Y, TWO], ids=["one output", "two outputs"])
def test_the_most_likely_parameters_are_scikit_learns(y):
    ours = GaussianProcessRegressor(0.1, kernel=Gaussian(sigma=1.0)).fit(X, y)
    start = theirs.ConstantKernel(1.0) * theirs.RBF(1.0) + theirs.WhiteKernel(0.1)
    peer = Theirs(start, alpha=0.0).fit(X, y)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(peer.log_marginal_likelihood_value_, abs=1e-4)
    np.testing.assert_allclose(ours.predict(NEW), peer.predict(NEW), atol=1e-2)
    only = GaussianProcessRegressor(0.1, kernel=Gaussian(sigma=1.0), optimise=["lam"]).fit(X, y)
    assert only.kernel_.sigma == 1.0
    assert only.lam_ != 0.1
    assert only.log_marginal_likelihood_value_ <= ours.log_marginal_likelihood_value_


def test_a_large_gradient_does_not_end_the_search_where_it_began():
    """Its first step must not be as long as the gradient, which grows with the number of samples."""
    A = np.random.default_rng(4).normal(size=(300, 5))
    y = np.sin(A[:, 0]) + A[:, 1] ** 2 + 0.1 * np.random.default_rng(5).normal(size=300)
    model = GaussianProcessRegressor(0.1).fit(A, y)
    begin = model.log_marginal_likelihood(kernel=Gaussian(gamma=0.2), lam=0.1, eval_gradient=True)
    assert abs(begin[1]["gamma"]) > 300
    assert model.log_marginal_likelihood_value_ > begin[0] + 100
    assert 0.005 < model.lam_ < 0.02  # 0.01 is true
    known = model.kernel_.get_params() | {"lam": model.lam_}
    slopes = model.log_marginal_likelihood(eval_gradient=True)[1]
    assert all(abs(known[name] * slope) < 0.1 for name, slope in slopes.items())


def test_the_mean_is_least_squares_and_a_weight_a_repetition():
    weight = rng.integers(0, 4, size=30)
    options = {"kernel": Gaussian(sigma=0.8), "optimise": False, "bias": True}
    model = GaussianProcessRegressor(0.3, **options).fit(X, Y, sample_weight=weight)
    plain = RLSRegressor(0.3, kernel=Gaussian(sigma=0.8)).fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(model.predict(NEW), plain.predict(NEW), rtol=1e-10)
    again, values = np.repeat(X, weight, axis=0), np.repeat(Y, weight)
    other = GaussianProcessRegressor(0.3, **options).fit(again, values)
    whole = GaussianProcess(again, values[:, None], np.ones(len(again)), kernel=Gaussian(sigma=0.8), lam=0.3, bias=True)
    assert model.log_marginal_likelihood_value_ == other.log_marginal_likelihood_value_
    assert model.log_marginal_likelihood_value_ == pytest.approx(whole.log_likelihood, rel=1e-10)
    found, wanted = model.log_marginal_likelihood(eval_gradient=True)[1], whole.log_likelihood_gradient
    assert found.keys() == wanted.keys()
    for name in found:
        assert found[name] == pytest.approx(wanted[name], rel=1e-8)
    np.testing.assert_allclose(model.predict(NEW, return_std=True)[1], np.sqrt(whole.variance(NEW)), rtol=1e-9)


def test_one_sample_with_two_targets():
    """Their scatter is part of the likelihood."""
    double, values = np.vstack([X, X[:5]]), np.append(Y, Y[:5] + 0.3)
    model = GaussianProcessRegressor(0.3, kernel=Gaussian(sigma=0.8), optimise=False).fit(double, values)
    peer = Theirs(theirs.RBF(0.8), alpha=0.3, optimizer=None).fit(double, values)
    assert model.log_marginal_likelihood_value_ == pytest.approx(peer.log_marginal_likelihood_value_, rel=1e-9)
    np.testing.assert_allclose(model.predict(NEW), peer.predict(NEW), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("y", [Y, TWO], ids=["one output", "two outputs"])
def test_samples_have_the_mean_and_the_covariance(y):
    model = GaussianProcessRegressor(0.05, kernel=Gaussian(sigma=0.7), optimise=False).fit(X, y)
    drawn = model.sample_y(NEW, 40_000, random_state=1)
    mean, covariance = model.predict(NEW, return_cov=True)
    np.testing.assert_allclose(drawn.mean(axis=-1), mean, atol=0.02)
    first, wanted = (drawn, covariance) if y.ndim == 1 else (drawn[:, 1], covariance[..., 1])
    np.testing.assert_allclose(np.cov(first), wanted, atol=0.03)
    np.testing.assert_array_equal(model.sample_y(NEW, 2), model.sample_y(NEW, 2, random_state=0))
    noisy = model.sample_y(NEW, 40_000, noise=True)
    np.testing.assert_allclose(noisy.var(axis=-1) - drawn.var(axis=-1), 0.05, atol=0.03)


def test_files_pickles_rows_and_words(tmp_path):
    model = GaussianProcessRegressor(kernel=Gaussian(sigma=1.0)).fit(sp.csr_array(X), TWO)
    mercer.save(model, tmp_path / "process.mercer")
    for again in (mercer.load(tmp_path / "process.mercer"), pickle.loads(pickle.dumps(model))):
        for one, other in zip(again.predict(NEW, return_std=True), model.predict(NEW, return_std=True), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
        assert again.log_marginal_likelihood(lam=0.5) == pytest.approx(model.log_marginal_likelihood(lam=0.5))
    words = ["abab", "abba", "aabb", "cdcd", "ccdd", "dccd"]
    text = GaussianProcessRegressor(kernel=Spectrum(2).normalised()).fit(words, [0.0, 0.1, 0.0, 1.0, 1.1, 0.9])
    assert text.predict(["abab", "zzzz"], return_std=True)[1][0] < text.predict(["abab", "zzzz"], return_std=True)[1][1]


def test_what_is_wrong_says_so():
    for options, message in (
        ({"lam": 0.0}, "lam=0.0 must be a finite number above 0"),
        ({"optimise": "gamma"}, "must be True, False or a list"),
        ({"optimise": ["sigma"]}, "must be some of"),
        ({"kernel": "precomputed"}, "needs k\\(x, x\\)"),
        ({"cache_size": 0.01}, "cache_size|memory|MB"),
    ):
        with pytest.raises((ValueError, TypeError, MemoryError), match=message):
            GaussianProcessRegressor(**options).fit(X, Y)
    with pytest.raises(ValueError, match="both True"):
        GaussianProcessRegressor(optimise=False).fit(X, Y).predict(X, return_std=True, return_cov=True)


def test_several_outputs_of_the_process_and_of_one_function():
    both, *one = (
        GaussianProcess(X, Y, np.ones(30), kernel=Gaussian(sigma=0.7) + Linear(), lam=0.2, bias=True)
        for Y in (TWO, TWO[:, :1], TWO[:, 1:])
    )
    assert both.log_likelihood == pytest.approx(sum(p.log_likelihood for p in one))
    np.testing.assert_allclose(both.mean(NEW), np.hstack([p.mean(NEW) for p in one]))
    np.testing.assert_allclose(both.b, np.concatenate([p.b for p in one]))
    for name, slope in both.log_likelihood_gradient.items():
        assert slope == pytest.approx(sum(p.log_likelihood_gradient[name] for p in one))
    f = TWO + 0.1
    single = sum(log_likelihood(a, b, variance=v) for a, b, v in zip(TWO.T, f.T, (0.5, 2.0), strict=True))
    assert log_likelihood(TWO, f, variance=[0.5, 2.0]) == pytest.approx(single)
    assert log_likelihood(TWO, f, variance=0.5) == pytest.approx(
        sum(log_likelihood(a, b, variance=0.5) for a, b in zip(TWO.T, f.T, strict=True))
    )
    with pytest.raises(ValueError, match="one for each column"):
        log_likelihood(TWO, f, variance=[1.0, 1.0, 1.0])
