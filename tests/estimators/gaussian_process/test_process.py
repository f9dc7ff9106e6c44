"""The Gaussian process of least squares, against scikit-learn's, and its derivatives against differences."""

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as theirs

from mercer import RLSRegressor
from mercer.estimators.gaussian_process.process import GaussianProcess
from mercer.kernels import Gaussian, Linear, Matern, RationalQuadratic, Spectrum

rng = np.random.default_rng(0)
X, NEW = rng.normal(size=(30, 2)), rng.normal(size=(12, 2)) * 2
Y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=30)


def process_of(X, y, weight=None, **parameters):
    """Of the samples that have weight, and one output."""
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    used = np.flatnonzero(weight)
    return GaussianProcess([X[i] for i in used], np.asarray(y)[used, None], weight[used], **parameters)


PAIRS = [
    (Gaussian(sigma=1.3), theirs.RBF(1.3)),
    (2.5 * Gaussian(sigma=0.7), theirs.ConstantKernel(2.5) * theirs.RBF(0.7)),
    (Matern(nu=1.5, length_scale=0.8), theirs.Matern(0.8, nu=1.5)),
    (Matern(nu=2.5), theirs.Matern(1.0, nu=2.5)),
    (RationalQuadratic(alpha=0.6, length_scale=1.2), theirs.RationalQuadratic(1.2, 0.6)),
    (Linear() + 1.0 + Gaussian(sigma=1.0), theirs.DotProduct(1.0) + theirs.RBF(1.0)),
]


@pytest.mark.parametrize(("kernel", "other"), PAIRS, ids=repr)
@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_it_agrees_with_scikit_learn(kernel, other, lam):
    process = process_of(X, Y, kernel=kernel, lam=lam)
    expected = GaussianProcessRegressor(other, alpha=lam, optimizer=None).fit(X, Y)
    mean, deviation = expected.predict(NEW, return_std=True)
    np.testing.assert_allclose(process.mean(NEW)[:, 0], mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(process.variance(NEW), deviation**2, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(process.variance(NEW, noise=True), deviation**2 + lam, rtol=1e-8)
    assert process.log_likelihood == pytest.approx(expected.log_marginal_likelihood_value_, rel=1e-8)


WEIGHT = np.random.default_rng(3).integers(0, 4, 30).astype(float)


@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_weights_are_the_noise_of_each_sample(lam):
    kernel, other = PAIRS[1]
    process = process_of(X, Y, WEIGHT, kernel=kernel, lam=lam)
    used = WEIGHT > 0
    expected = GaussianProcessRegressor(other, alpha=lam / WEIGHT[used], optimizer=None).fit(X[used], Y[used])
    mean, deviation = expected.predict(NEW, return_std=True)
    np.testing.assert_allclose(process.mean(NEW)[:, 0], mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(process.variance(NEW), deviation**2, rtol=1e-8, atol=1e-10)
    assert process.log_likelihood == pytest.approx(expected.log_marginal_likelihood_value_, rel=1e-8)
    model = RLSRegressor(kernel=kernel, lam=lam, bias=False).fit(X, Y, sample_weight=WEIGHT)
    np.testing.assert_allclose(process.mean(NEW)[:, 0], model.predict(NEW), rtol=1e-7, atol=1e-9)
    # As far as f is concerned, a weight is a repetition.
    again = np.repeat(np.arange(30), WEIGHT.astype(int))
    np.testing.assert_allclose(
        process_of(X[again], Y[again], kernel=kernel, lam=lam).variance(NEW), deviation**2, rtol=1e-7
    )


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_a_free_bias(weight):
    """A constant of variance v beside f, as v grows; and the likelihood as an integral over the constant."""
    kernel, lam, v = Gaussian(sigma=1.3), 0.2, 1e7
    model = RLSRegressor(kernel=kernel, lam=lam).fit(X, Y, sample_weight=weight)
    process = process_of(X, Y, weight, kernel=kernel, lam=lam, bias=True)
    np.testing.assert_allclose(process.mean(NEW)[:, 0], model.predict(NEW), rtol=1e-8, atol=1e-10)
    assert process.b[0] == pytest.approx(model.intercept_[0], rel=1e-8)
    wide = process_of(X, Y, weight, kernel=kernel + v, lam=lam)
    np.testing.assert_allclose(process.mean(NEW)[:, 0], wide.mean(NEW)[:, 0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(process.variance(NEW), wide.variance(NEW), rtol=1e-4)
    used = np.ones(30, bool) if weight is None else weight > 0
    A = kernel(X[used]) + np.diag(lam / (np.ones(30) if weight is None else weight)[used])
    law = stats.multivariate_normal(np.zeros(used.sum()), A)
    grid = process.b[0] + np.linspace(-8, 8, 4001)
    density = np.exp([law.logpdf(Y[used] - b) for b in grid])
    assert process.log_likelihood == pytest.approx(np.log(np.trapezoid(density, grid)), abs=1e-9)
    found, h = process.log_likelihood_gradient, 1e-5
    for name, ends in (
        ("lam", [process.with_kernel(kernel, lam + step) for step in (h, -h)]),
        ("sigma", [process.with_kernel(Gaussian(sigma=1.3 + step), lam) for step in (h, -h)]),
    ):
        slope = (ends[0].log_likelihood - ends[1].log_likelihood) / (2 * h)
        assert found[name] == pytest.approx(slope, rel=1e-6)


def test_the_most_likely_parameters_are_scikit_learns():
    kernel = 1.0 * Gaussian(sigma=1.0)
    found = process_of(X, Y, kernel=kernel, lam=0.1).most_likely(None, 100)
    other = theirs.ConstantKernel(1.0) * theirs.RBF(1.0) + theirs.WhiteKernel(0.1)
    expected = GaussianProcessRegressor(other, alpha=0.0).fit(X, Y)
    assert found.log_likelihood == pytest.approx(expected.log_marginal_likelihood_value_, abs=1e-5)
    assert found.lam == pytest.approx(expected.kernel_.k2.noise_level, rel=1e-2)
    only = process_of(X, Y, kernel=kernel, lam=0.1).most_likely(["lam"], 100)
    assert only.kernel.get_params()["kernel__sigma"] == 1.0
    assert only.log_likelihood_gradient["lam"] == pytest.approx(0.0, abs=1e-2)
    assert process_of(X, Y, kernel=kernel, lam=0.1).log_likelihood < only.log_likelihood < found.log_likelihood
    with pytest.raises(ValueError, match=r"names=\['nu'\] must be some of \['lam'"):
        process_of(X, Y, kernel=kernel, lam=0.1).most_likely(["nu"], 100)


@pytest.mark.parametrize("kernel", [kernel for kernel, _ in PAIRS], ids=repr)
def test_derivatives_of_the_likelihood(kernel):
    process, h = process_of(X, Y, kernel=kernel, lam=0.2), 1e-5
    found = process.log_likelihood_gradient
    up, down = (process_of(X, Y, kernel=kernel, lam=0.2 + step).log_likelihood for step in (h, -h))
    assert found["lam"] == pytest.approx((up - down) / (2 * h), rel=1e-6)
    values = {name: value for name, value in kernel.get_params().items() if name in found}
    assert values
    for name, value in values.items():
        ends = []
        for step in (h, -h):
            changed = kernel.__class__(**kernel.get_params(deep=False)).set_params(**{name: value + step})
            ends.append(process_of(X, Y, kernel=changed, lam=0.2).log_likelihood)
        kernel.set_params(**{name: value})
        assert found[name] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5, abs=1e-7), name


def test_noise_is_found_again():
    """On data drawn from the process itself, the likelihood is largest near the noise they were made with."""
    draws = np.random.default_rng(1)
    Z = draws.uniform(0, 10, size=(150, 1))
    f = np.linalg.cholesky(Gaussian(sigma=1.0)(Z) + 1e-10 * np.eye(150)) @ draws.normal(size=150)
    y = f + 0.3 * draws.normal(size=150)
    grid = [0.01, 0.03, 0.09, 0.27, 0.8]
    likelihoods = [process_of(Z, y, kernel=Gaussian(sigma=1.0), lam=lam).log_likelihood for lam in grid]
    assert grid[int(np.argmax(likelihoods))] == 0.09
    covered = np.abs(process_of(Z, y, kernel=Gaussian(sigma=1.0), lam=0.09).mean(Z)[:, 0] - f)
    assert np.mean(covered <= 2 * np.sqrt(process_of(Z, y, kernel=Gaussian(sigma=1.0), lam=0.09).variance(Z))) > 0.85


def test_strings_and_bad_arguments():
    process = process_of(["ab", "aab", "bb"], [1.0, 2.0, 0.0], kernel=Spectrum(1, normalise=True), lam=0.1)
    assert process.variance(["ab", "zz"])[1] == 1.0
    with pytest.raises(ValueError, match="above 0; without noise"):
        process_of(X, Y, kernel=Linear(), lam=0.0)
    with pytest.raises(ValueError, match="raise lam"):
        process_of(np.zeros((5, 1)), np.ones(5), kernel=Gaussian(sigma=1.0), lam=1e-320).mean([[0.0]])
