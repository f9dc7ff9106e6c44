"""Kernels that square: samples of any size that float64 holds, against decimal arithmetic of sixty digits."""

import warnings
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import special

import mercer
from mercer.kernels import Chi2, Gaussian, Matern, RationalQuadratic, Tanimoto

SIZES = (1e-300, 1e-165, 1e-155, 1e-120, 1.0, 1e120, 1e155, 1e300)
DIGITS = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)


def relative(x, z, length):
    """‖x − z‖ / length."""
    return sum((a - b) ** 2 for a, b in zip(x, z, strict=True)).sqrt() / Decimal(length)


def exp_of_minus(t):
    return Decimal(0) if t > 5000 else (-t).exp()


def matern(nu, length):
    def k(x, z):
        t = relative(x, z, length) * (2 * Decimal(nu)).sqrt()
        if t > 5000:
            return 0.0
        t = float(t)
        if t < 1e-300 or t ** (2 * nu) < 1e-18:  # 1 − k is about that, and K_ν overflows
            return 1.0 - t ** (2 * nu)
        return 2 ** (1 - nu) / special.gamma(nu) * t**nu * special.kv(nu, t)

    return k


def gaussian(length):
    return lambda x, z: exp_of_minus(relative(x, z, length) ** 2 / 2)


def rational(alpha, length):
    return lambda x, z: (1 + relative(x, z, length) ** 2 / (2 * Decimal(alpha))) ** -Decimal(alpha)


def chi2(gamma):
    def k(x, z):
        pairs = zip(x, z, strict=True)
        return exp_of_minus(Decimal(gamma) * sum((a - b) ** 2 / (a + b) for a, b in pairs if a + b))

    return k


def tanimoto(x, z):
    shared = sum(a * b for a, b in zip(x, z, strict=True))
    either = sum(a * a for a in x) + sum(b * b for b in z) - shared
    return shared / either if either else 1.0


def cases(size):
    yield Matern(1.5, size), matern(1.5, size)
    yield Matern(0.5, 2 * size), matern(0.5, 2 * size)
    yield Matern(0.02, 2 * size), matern(0.02, 2 * size)  # 1 − k is like t^0.04: no distance is negligible
    yield Matern(1.3, size), matern(1.3, size)
    yield Matern(np.inf, size), gaussian(size)
    yield Gaussian(sigma=size), gaussian(size)
    yield RationalQuadratic(1.0, size), rational(1.0, size)
    yield RationalQuadratic(1e-3, size), rational(1e-3, size)  # k falls like r^−0.002: no distance is infinite
    yield Chi2(1 / size), chi2(1 / size)
    yield Tanimoto(), tanimoto


def samples(size):
    """Rows of one size; of two that are equal, and one of zeros."""
    X = np.abs(np.random.default_rng(0).normal(size=(5, 3)))
    X[3], X[4] = X[0], 0.0
    X[1, 1] = 0.0
    return size * X


def values(true, X):
    with localcontext(DIGITS):
        rows = [[Decimal(entry) for entry in row] for row in X.tolist()]
        return np.array([[float(true(x, z)) for z in rows] for x in rows])


def compare(kernel, true, X):
    wanted = values(true, X)
    for given in (X, sp.csr_array(X)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_allclose(kernel(given), wanted, rtol=1e-11, atol=1e-300)
            np.testing.assert_allclose(kernel(given, X), wanted, rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("which", range(10))
def test_samples_of_one_size(size, which):
    compare(*list(cases(size))[which], samples(size))


@pytest.mark.parametrize("size", [1e-165, 1.0, 1e155])
@pytest.mark.parametrize("which", range(10))
def test_samples_of_all_sizes_at_once(size, which):
    X = np.vstack([samples(other)[:2] for other in SIZES] + [[[1e-160, 1.0, 1e160]], np.zeros((1, 3))])
    compare(*list(cases(size))[which], X)


@pytest.mark.parametrize("size", [1e-165, 1e155])
@pytest.mark.parametrize(
    "kernel",
    [
        lambda s: Matern(length_scale=s),
        lambda s: Gaussian(sigma=s),
        lambda s: RationalQuadratic(length_scale=s),
        lambda s: Tanimoto(),
    ],
    ids=["Matern", "Gaussian", "RationalQuadratic", "Tanimoto"],
)
def test_a_machine_is_the_same_in_every_unit(kernel, size):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=40) > 0).astype(int)
    power = 2.0 ** np.round(np.log2(size))  # a power of two, so that the numbers are the same
    usual = mercer.SVC(kernel=kernel(1.0), tol=1e-7).fit(X, y)
    other = mercer.SVC(kernel=kernel(power), tol=1e-7).fit(power * X, y)
    assert other.converged_
    np.testing.assert_allclose(other.decision_function(power * X), usual.decision_function(X), atol=1e-5)


def test_gaussians_of_numpy_keep_large_distances():
    """A sum of kernels is computed by NumPy; γ is as small as float64 allows."""
    X = 1e153 * np.random.default_rng(0).normal(size=(5, 3))
    gamma = 2.0**-1016
    true = values(lambda x, z: exp_of_minus(Decimal(gamma) * relative(x, z, 1.0) ** 2), X)
    np.testing.assert_allclose((Gaussian(gamma=gamma) + Gaussian(gamma=gamma))(X), 2 * true, rtol=1e-11)


@pytest.mark.parametrize("size", [1e-165, 1e-40, 1e155])
def test_derivatives_by_samples_are_right_or_refused(size):
    """The derivative of k(x / s) is 1/s of that at size 1."""
    X, power = samples(1.0)[:3] + 0.5, 2.0 ** np.round(np.log2(size))
    for make in (
        lambda s: Matern(2.5, s),
        lambda s: Gaussian(sigma=s),
        lambda s: RationalQuadratic(2.0, s),
        lambda s: Chi2(1 / s),
    ):
        usual, other = make(1.0).gradient(X), make(power).gradient(power * X)
        np.testing.assert_allclose(other * power, usual, rtol=1e-10, atol=1e-12)
    if size == 1e-40:
        np.testing.assert_allclose(Tanimoto().gradient(power * X) * power, Tanimoto().gradient(X), rtol=1e-10)
    else:
        with pytest.raises(ValueError, match="scale the features"):
            Tanimoto().gradient(power * X)
