"""The path: coefficients against direct solves, leave-one-out against refits, GCV against its definition."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from contracts.gram_contract import exact_numbers
from mercer import RLSRegressorCV
from mercer.kernels import Gaussian, Linear, Polynomial, Precomputed
from mercer.places import gram_for
from mercer.places.host.linear_gram import HostLinearGram
from mercer.problems.least_squares import LeastSquares
from mercer.samples import arrays
from mercer.solvers.least_squares.linear import RidgeInverse
from mercer.solvers.least_squares.spectrum import (
    SpectralFit,
    default_lams,
    linear_spectrum_of,
    solve_eigen,
    spectrum_of,
)
from mercer.solvers.solution import Stop
from reference import least_squares as plain

LAMS = np.geomspace(1e-6, 1e3, 10)
KERNELS = {"gaussian": Gaussian(gamma=0.4), "linear": Linear(), "quadratic": Polynomial(2, 0.5, 1.0)}
rng = np.random.default_rng(3)


def problem(weights, bias, n=36, d=5, outputs=2):
    X = rng.normal(size=(n, d)) + 0.5
    Y = np.column_stack([np.sin(X[:, 0]) + 3.0, X @ rng.normal(size=d) - 1.0])[:, :outputs]
    Y = Y + 0.3 * rng.normal(size=Y.shape)
    weight = {
        "ones": np.ones(n),
        "integers": rng.integers(1, 4, size=n).astype(float),
        "any": rng.uniform(0.2, 2.5, size=n),
    }[weights]
    return X, LeastSquares(Y, weight, np.arange(n), n, bias)


def fit_of(X, least, kernel):
    return SpectralFit(least, spectrum_of(gram_for(kernel, X), least))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weights", ["ones", "integers", "any"])
class TestPath:
    def test_coefficients_are_those_of_a_direct_solve(self, weights, bias, kernel):
        X, least = problem(weights, bias)
        K = KERNELS[kernel](X)
        fit = fit_of(X, least, KERNELS[kernel])
        for lam in LAMS[3:] if kernel != "gaussian" else LAMS:  # singular matrices leave a direct solve no digits below
            c, _ = plain.solve(K, least.Y, lam, least.weight, bias)
            found = fit.coefficients(lam)
            np.testing.assert_allclose(K @ found, K @ c, rtol=0, atol=1e-9 * np.abs(least.Y).max())
            np.testing.assert_allclose(found, c, rtol=0, atol=1e-9 * max(1.0, np.abs(c).max()))

    def test_leave_one_out_is_that_of_refits(self, weights, bias, kernel):
        X, least = problem(weights, bias)
        K = KERNELS[kernel](X)
        fit = fit_of(X, least, KERNELS[kernel])
        for lam in (1e-2, 0.3, 20.0):
            expected = plain.leave_one_out(K, least.Y, lam, least.weight, bias)
            np.testing.assert_allclose(fit.loo_residuals(lam), expected, rtol=0, atol=1e-8)
            errors = fit.path(np.array([lam])).loo_errors[0]
            np.testing.assert_allclose(errors, least.weight @ expected**2 / least.weight.sum(), rtol=1e-8)

    def test_gcv_norm_and_degrees_of_freedom_by_their_definitions(self, weights, bias, kernel):
        X, least = problem(weights, bias)
        K = KERNELS[kernel](X)
        lams = np.array([1e-2, 0.3, 20.0])
        path = fit_of(X, least, KERNELS[kernel]).path(lams)
        mass = least.weight.sum()
        for k, lam in enumerate(lams):
            H = plain.hat(K, lam, least.weight, bias)
            c, _ = plain.solve(K, least.Y, lam, least.weight, bias)
            residual = least.Y - H @ least.Y
            gcv = (least.weight @ residual**2 / mass) / ((mass - np.trace(H)) / mass) ** 2
            np.testing.assert_allclose(path.gcv[k], gcv, rtol=1e-8)
            assert path.dof[k] == pytest.approx(np.trace(H), rel=1e-9)
            np.testing.assert_allclose(path.norms[k], np.sqrt(np.einsum("iq,ij,jq->q", c, K, c)), rtol=1e-7)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("unit", [1e-20, 1.0, 1e20])
def test_the_economy_form_keeps_every_direction_in_any_unit(unit, as_sparse):
    X, least = problem("ones", False)
    data = sparse.csr_array(unit * X) if as_sparse else unit * X
    values = linear_spectrum_of(HostLinearGram(data, 1.0), least).values
    np.testing.assert_allclose(np.sort(values), np.sort(unit**2 * np.linalg.svd(X)[1] ** 2), rtol=1e-10)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weights", ["ones", "any"])
def test_the_economy_form_is_the_kernel_form(weights, bias, as_sparse):
    X, least = problem(weights, bias)
    data = sparse.csr_array(X) if as_sparse else X
    economy = SpectralFit(least, linear_spectrum_of(HostLinearGram(data, 2.0), least))
    whole = fit_of(X, least, 2.0 * Linear())
    for name in ("loo_errors", "gcv", "norms", "dof"):
        left, right = (getattr(fit.path(LAMS[3:]), name) for fit in (economy, whole))
        np.testing.assert_allclose(left, right, rtol=1e-8, err_msg=name)
    for lam in LAMS[3:]:
        w = economy.weights(lam)
        np.testing.assert_allclose(w, 2.0 * X.T @ whole.coefficients(lam), atol=1e-9)
        np.testing.assert_allclose(economy.coefficients(lam), whole.coefficients(lam), atol=1e-9 * max(1, 1 / lam))


@pytest.mark.parametrize("bias", [False, True])
def test_an_integer_weight_is_so_many_rows(bias):
    X, least = problem("integers", bias)
    copies = np.repeat(np.arange(len(X)), least.weight.astype(int))
    repeated = LeastSquares(least.Y[copies], np.ones(len(copies)), np.arange(len(copies)), len(copies), bias)
    kernel = Gaussian(gamma=0.4)
    one, many = fit_of(X, least, kernel), fit_of(X[copies], repeated, kernel)
    for lam in (1e-2, 1.0):
        np.testing.assert_allclose(one.loo_residuals(lam)[copies], many.loo_residuals(lam), atol=1e-8)
    for name in ("loo_errors", "gcv", "norms", "dof"):
        left, right = (getattr(fit.path(LAMS[4:]), name) for fit in (one, many))
        np.testing.assert_allclose(left, right, rtol=1e-7, err_msg=name)


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="needs an extended precision")
@pytest.mark.parametrize("bias", [False, True])
def test_samples_of_all_weights_have_residuals_of_their_rounding(bias):
    """Eigenvectors of W^½KW^½ alone leave residuals of 10⁷ roundings and more."""
    rng, n, lam = np.random.default_rng(0), 40, 1e-5
    K = Gaussian(0.4)(rng.normal(size=(n, 3)))
    K = np.maximum(K, K.T)
    least = LeastSquares(rng.normal(size=(n, 2)), 10 ** rng.uniform(-6, 6, n), np.arange(n), n, bias, lam)
    found, _ = solve_eigen(least, gram_for(Precomputed(), K), Stop(tol=1e-3, max_iter=1))
    C = found.C.astype(np.longdouble)
    f, ridge = K @ C, C * (lam / least.weight)[:, None]
    size = K @ np.abs(C) + np.abs(ridge) + np.abs(least.Y) + np.abs(found.b)
    assert np.max(np.abs(least.Y - f - ridge - found.b) / size) <= 1e4 * np.finfo(float).eps


@pytest.mark.parametrize("bias", [False, True])
def test_rows_that_share_a_sample_are_one_sample(bias):
    """Merging by x with the weighted mean target is exact, for every row's own leave-one-out too."""
    X, least = problem("ones", bias, n=24)
    member = np.r_[np.arange(24), [0, 0, 5]]
    Y = np.vstack([least.Y, least.Y[[0, 0, 5]] + rng.normal(size=(3, 2))])
    weight = rng.uniform(0.5, 3.0, size=27)
    merged = LeastSquares(Y, weight, member, 24, bias)
    K = Gaussian(gamma=0.4)(X)[np.ix_(member, member)]
    fit = fit_of(X, merged, Gaussian(gamma=0.4))
    for lam in (0.05, 2.0):
        c, _ = plain.solve(K, Y, lam, weight, bias)
        split = replace(merged, lam=lam).split(fit.coefficients(lam), np.ones(merged.n))
        np.testing.assert_allclose(split, c, atol=1e-9 * np.abs(c).max())
        expected = plain.leave_one_out(K, Y, lam, weight, bias)
        np.testing.assert_allclose(fit.loo_residuals(lam), expected, atol=1e-8)
        H = plain.hat(K, lam, weight, bias)
        mass = weight.sum()
        gcv = (weight @ (Y - H @ Y) ** 2 / mass) / ((mass - np.trace(H)) / mass) ** 2
        np.testing.assert_allclose(fit.path(np.array([lam])).gcv[0], gcv, rtol=1e-8)


def test_the_path_does_not_depend_on_how_it_is_cut(monkeypatch):
    X, least = problem("any", True)
    fit = fit_of(X, least, Gaussian(gamma=0.4))
    whole = fit.path(LAMS)
    monkeypatch.setattr(arrays, "BLOCK_BYTES", 8 * 36 * 2 * 3)
    cut = fit.path(LAMS)
    for name in ("loo_errors", "gcv", "norms", "dof"):
        np.testing.assert_allclose(getattr(cut, name), getattr(whole, name), rtol=1e-12)


def test_the_range_of_lams_follows_the_spectrum():
    X, least = problem("ones", False)
    spectrum = spectrum_of(gram_for(Gaussian(gamma=0.4), X), least)
    lams = default_lams(spectrum, 7)
    assert len(lams) == 7
    assert lams[-1] == pytest.approx(np.linalg.eigvalsh(Gaussian(gamma=0.4)(X))[-1])
    assert lams[0] >= 200 * np.sqrt(np.finfo(float).eps) * (1 - 1e-9)
    scaled = default_lams(spectrum_of(gram_for(1e6 * Gaussian(gamma=0.4), X), least), 7)
    np.testing.assert_allclose(scaled, 1e6 * lams, rtol=1e-6)


def test_the_inverse_from_rows_counts_each_row_once():
    """Columns that differ by 1e-9 are the same column to a factor of the covariance, not to the rows."""
    rng, n, lam = np.random.default_rng(0), 300, 1e-20
    X = np.repeat(rng.normal(size=(n, 1)), 2, axis=1)
    X[:, 1] += 1e-9 * rng.normal(size=n)
    weight, B = rng.uniform(0.2, 3.0, n), np.array([[1.0, 0.0], [-1.0, 1.0]])
    blocks = [slice(0, 200), slice(200, n)]
    found = RidgeInverse((X.T * weight) @ X, lam, 1, lambda: ((X[rows], weight[rows]) for rows in blocks))(B)
    x, w = exact_numbers(X), exact_numbers(weight)
    A = (x.T * w) @ x + np.diag([Fraction(lam)] * 2)
    adjugate = np.array([[A[1, 1], -A[0, 1]], [-A[1, 0], A[0, 0]]])
    true = adjugate @ exact_numbers(B) / (A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0])
    np.testing.assert_allclose(found, true.astype(float), rtol=1e-4)


def test_a_constant_is_not_penalised():
    X, least = problem("any", True)
    model = RLSRegressorCV().fit(X, least.Y)
    shifted = RLSRegressorCV().fit(X, least.Y + 100.0)
    assert shifted.lam_ == model.lam_
    np.testing.assert_allclose(shifted.predict(X), model.predict(X) + 100.0, atol=1e-8)
    np.testing.assert_allclose(shifted.loo_residuals_, model.loo_residuals_, atol=1e-8)
