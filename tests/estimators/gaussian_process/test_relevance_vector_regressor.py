"""Relevance vectors against a plain implementation, and as a model like others.

Plain implementation: tests/reference/relevance.py.
scikit-learn's checks, and samples that are fitted exactly: tests/estimators/gaussian_process/test_contract.py.
Tools: tests/tools. Compression, which it refuses: tests/inspection/compression/test_every_estimator.py.
"""

import pickle

import mpmath as mp
import numpy as np
import pytest

import mercer
from mercer import RelevanceVectorRegressor
from mercer.kernels import Gaussian
from reference import relevance

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(-6, 6, size=25))[:, None]
Y = np.sinc(X[:, 0] / 2) + 0.05 * rng.normal(size=25)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("noise", [0.01, 0.2])
def test_it_is_the_plain_implementation(bias, noise):
    kernel = Gaussian(sigma=1.5)
    model = RelevanceVectorRegressor(kernel=kernel, bias=bias, noise=noise).fit(X, Y)
    Phi = kernel(X)
    if bias:
        Phi = np.column_stack([Phi, np.ones(25)])
    alpha, found = relevance.relevance(Phi, Y, noise)
    on = np.flatnonzero(np.isfinite(alpha))
    assert set(on[on < 25]) == set(model.relevance_)
    assert model.noise_variance_ == pytest.approx(found, rel=1e-6)
    assert model.log_marginal_likelihood_value_ == pytest.approx(relevance.evidence(Phi, Y, alpha, found), rel=1e-8)
    mean, covariance = relevance.posterior(Phi, Y, alpha, found)
    new = rng.uniform(-8, 8, size=(9, 1))
    columns = kernel(new, X)
    columns = np.column_stack([columns, np.ones(9)])[:, on] if bias else columns[:, on]
    ours, deviation = model.predict(new, return_std=True)
    np.testing.assert_allclose(ours, columns @ mean, rtol=1e-6, atol=1e-8)
    variance = found + np.einsum("ij,jk,ik->i", columns, covariance, columns)
    np.testing.assert_allclose(deviation, np.sqrt(variance), rtol=1e-6)
    np.testing.assert_allclose(model.predict(new, return_std=True, noise=False)[1] ** 2 + found, variance, rtol=1e-6)


def test_a_weight_is_a_repetition_and_matrices_are_taken():
    weight = rng.integers(0, 4, size=25)
    kernel = Gaussian(sigma=1.5)
    weighted = RelevanceVectorRegressor(kernel=kernel).fit(X, Y, sample_weight=weight)
    repeated = RelevanceVectorRegressor(kernel=kernel).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    assert weighted.log_marginal_likelihood_value_ == repeated.log_marginal_likelihood_value_
    given = RelevanceVectorRegressor(kernel="precomputed").fit(kernel(X), Y)
    plain = RelevanceVectorRegressor(kernel=kernel).fit(X, Y)
    for one, other in zip(given.predict(kernel(X), return_std=True), plain.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


def test_files_pickles_and_limits(tmp_path):
    model = RelevanceVectorRegressor(kernel=Gaussian(sigma=1.5)).fit(X, Y)
    mercer.save(model, tmp_path / "few.mercer")
    for again in (mercer.load(tmp_path / "few.mercer"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict(X, return_std=True), model.predict(X, return_std=True))
    with pytest.warns(UserWarning, match="max_iter=2"):
        RelevanceVectorRegressor(max_iter=2).fit(X, Y)
    with pytest.raises(ValueError, match="noise=0"):
        RelevanceVectorRegressor(noise=0.0).fit(X, Y)


@pytest.mark.parametrize("size", [1.0, 0.01, 0.001])
def test_an_offset_of_y_costs_no_digits_of_the_likelihood(size):
    """log N(y; 0, C) of the learnt variances, in fifty digits."""
    mp.mp.dps = 50
    x = np.linspace(-8, 8, 25)
    y = 100 + size * (np.sinc(x / np.pi) + 0.1 * np.random.default_rng(0).normal(size=25))
    model = RelevanceVectorRegressor(gamma=0.1).fit(x[:, None], y)
    left = [[mp.exp(-mp.mpf(0.1) * (mp.mpf(a) - mp.mpf(x[j])) ** 2) for j in model.relevance_] for a in x]
    wide = [[*row, mp.mpf(1)] if len(model.alpha_) > len(row) else row for row in left]
    variance = [1 / mp.mpf(float(a)) for a in model.alpha_]
    C = mp.matrix(25, 25)
    for i in range(25):
        for j in range(25):
            C[i, j] = sum(a * b * v for a, b, v in zip(wide[i], wide[j], variance, strict=True))
        C[i, i] += mp.mpf(model.noise_variance_)
    target = mp.matrix([mp.mpf(float(t)) for t in y])
    square = (target.T * mp.lu_solve(C, target))[0]
    truth = -(mp.log(mp.det(C)) + 25 * mp.log(2 * mp.pi) + square) / 2
    assert model.log_marginal_likelihood_value_ == pytest.approx(float(truth), abs=1e-5)
