"""The path from a band: the band against the matrix, every value of the path against eigenvectors and refits."""

import numpy as np
import pytest
import scipy.linalg

from mercer import RLSClassifierCV, RLSRegressorCV, _core
from mercer.errors import NonPSDKernelWarning
from mercer.gram import gram_for
from mercer.kernels import Gaussian, Laplacian, Linear, Polynomial
from mercer.problems.least_squares import LeastSquares
from mercer.solution import Stop
from mercer.solvers.least_squares import band_fit
from mercer.solvers.least_squares.band import reduce_to_band
from mercer.solvers.least_squares.band_fit import BandFit, nearest_eigenvalues
from mercer.solvers.least_squares.eigen import SpectralFit
from mercer.solvers.least_squares.spectrum import lams_from, spectrum_of
from reference import least_squares as plain

rng = np.random.default_rng(11)
ENDLESS = Stop(tol=0.0, max_iter=1)
LAMS = np.geomspace(1e-4, 1e3, 9)


def problem(n, weights, bias, outputs=2):
    X = rng.normal(size=(n, 6))
    Y = np.column_stack([np.sin(X[:, 0]) + 3.0, X[:, 1] - X[:, 2]])[:, :outputs] + 0.3 * rng.normal(size=(n, outputs))
    weight = {"ones": np.ones(n), "any": rng.uniform(0.2, 2.5, size=n)}[weights]
    return X, LeastSquares(Y, weight, np.arange(n), n, bias)


def band_matrix(diagonals):
    B = np.zeros((len(diagonals), len(diagonals)))
    for k in range(min(diagonals.shape[1], len(B))):
        B += np.diag(diagonals[: len(B) - k, k], -k)
    return B + np.tril(B, -1).T


@pytest.mark.parametrize("width", [1, 3, 32])
@pytest.mark.parametrize("n", [1, 2, 33, 34, 40, 131])
def test_a_matrix_is_its_band_between_reflections(n, width):
    A = rng.normal(size=(n, n))
    A = A + A.T
    Q = np.array(A, order="F")
    B = band_matrix(reduce_to_band(Q, width))
    np.testing.assert_allclose(Q @ B @ Q.T, A, atol=1e-13 * n)
    np.testing.assert_allclose(Q.T @ Q, np.eye(n), atol=1e-14 * n)


@pytest.mark.parametrize("width", [1, 9, 24])
@pytest.mark.parametrize("m", [1, 95, 96, 200, 900])
def test_a_symmetric_product_reads_one_triangle(m, width):
    A, V, out = rng.normal(size=(m + 3, m)).T.copy().T[3:], rng.normal(size=(width, m)).T, np.empty((width, m)).T
    true = (np.tril(A) + np.tril(A, -1).T) @ V
    again = np.empty_like(out)
    A[np.triu_indices(m, 1)] = np.nan
    _core.symmetric_product(A, V, out, 1)
    _core.symmetric_product(A, V, again, 2)
    np.testing.assert_allclose(out, true, atol=1e-13 * m)
    np.testing.assert_array_equal(out, again)


@pytest.mark.parametrize("n", [60, 61])
def test_the_eigenvalues_next_to_a_number(n):
    diagonals = rng.normal(size=(n, 6))
    for k in range(6):
        diagonals[n - k :, k] = 0.0
    values = np.linalg.eigvalsh(band_matrix(diagonals))
    for shift in (values[0] - 1.0, -1.0, 0.1, values[-1] + 1.0):
        below, above = nearest_eigenvalues(diagonals, shift)
        assert below == pytest.approx(values[values < shift].max(initial=-np.inf), abs=1e-11)
        assert above == pytest.approx(values[values > shift].min(initial=np.inf), abs=1e-11)


def test_a_matrix_without_rank_has_a_band():
    x = rng.normal(size=(70, 2))
    A = x @ x.T
    Q = np.array(A, order="F")
    B = band_matrix(reduce_to_band(Q, 8))
    np.testing.assert_allclose(Q @ B @ Q.T, A, atol=1e-12)
    zeros = np.zeros((70, 70), order="F")
    assert not reduce_to_band(zeros, 8).any()
    np.testing.assert_array_equal(zeros, np.eye(70))


@pytest.mark.parametrize(("n", "width"), [(1, 0), (5, 4), (50, 0), (67, 7), (130, 32)])
def test_squares_are_those_of_triangular_solves(n, width):
    count, m = 3, 41
    factors = np.zeros((count, n, width + 1))
    Q, squares = rng.normal(size=(n, m)), np.empty((m, count))
    expected = np.empty_like(squares)
    for k in range(count):
        L = np.tril(rng.normal(size=(n, n))) * (np.subtract.outer(np.arange(n), np.arange(n)) <= width)
        L[np.diag_indices(n)] = rng.uniform(3.0, 4.0 + width, size=n)
        for t in range(width + 1):
            factors[k, : n - t, t] = np.diagonal(L, -t)
        expected[:, k] = np.sum(scipy.linalg.solve_triangular(L, Q, lower=True) ** 2, axis=0)
    _core.band_squares(factors, Q, squares, 1)
    np.testing.assert_allclose(squares, expected, rtol=1e-12)
    again = np.empty_like(squares)
    _core.band_squares(factors, Q, again, 3)
    np.testing.assert_array_equal(again, squares)


def test_squares_refuse_arrays_that_do_not_fit():
    factors, Q = np.ones((2, 5, 3)), np.ones((5, 4))
    for bad in (
        (factors[:, :, :0], Q, np.ones((4, 2))),
        (factors, Q[:4], np.ones((4, 2))),
        (factors, Q, np.ones((4, 3))),
    ):
        with pytest.raises(ValueError, match=r"factors|Q|squares"):
            _core.band_squares(*(np.ascontiguousarray(array) for array in bad), 1)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weights", ["ones", "any"])
@pytest.mark.parametrize("kernel", [Gaussian(gamma=0.3), Laplacian(gamma=0.2)])
class TestPath:
    def test_it_is_that_of_eigenvectors(self, kernel, weights, bias):
        X, least = problem(150, weights, bias)
        gram = gram_for(kernel, X)
        band, spectrum = BandFit(least, gram, ENDLESS), spectrum_of(gram, least)
        np.testing.assert_allclose(band.lams(20), lams_from(spectrum, 20), rtol=1e-10)
        eigen = SpectralFit(least, spectrum)
        lams = LAMS * spectrum.values.max() / 100
        left, right = band.path(lams), eigen.path(lams)
        for name in ("loo_errors", "gcv", "norms", "dof"):
            np.testing.assert_allclose(getattr(left, name), getattr(right, name), rtol=1e-10, err_msg=name)
        for lam in lams[2:]:
            C = eigen.coefficients(lam)
            np.testing.assert_allclose(band.coefficients(lam), C, rtol=0, atol=1e-10 * np.abs(C).max())
            np.testing.assert_allclose(band.loo_residuals(lam), eigen.loo_residuals(lam), rtol=0, atol=1e-10)
            np.testing.assert_allclose(
                band.correction(lam, least.Y), eigen.correction(lam, least.Y), rtol=0, atol=1e-10 * np.abs(C).max()
            )
            assert band.directions(lam) == eigen.directions(lam)

    def test_leave_one_out_is_that_of_refits(self, kernel, weights, bias):
        X, least = problem(60, weights, bias)
        fit = BandFit(least, gram_for(kernel, X), ENDLESS)
        for lam in (0.3, 20.0):
            expected = plain.leave_one_out(kernel(X), least.Y, lam, least.weight, bias)
            np.testing.assert_allclose(fit.loo_residuals(lam), expected, rtol=0, atol=1e-8)


def test_rows_that_share_a_sample_are_one_sample():
    X, least = problem(40, "ones", True)
    member = np.r_[np.arange(40), [0, 0, 5]]
    Y = np.vstack([least.Y, least.Y[[0, 0, 5]] + rng.normal(size=(3, 2))])
    weight = rng.uniform(0.5, 3.0, size=43)
    K = Gaussian(gamma=0.3)(X)[np.ix_(member, member)]
    fit = BandFit(LeastSquares(Y, weight, member, 40, True), gram_for(Gaussian(gamma=0.3), X), ENDLESS)
    np.testing.assert_allclose(fit.loo_residuals(0.5), plain.leave_one_out(K, Y, 0.5, weight, True), atol=1e-8)


def test_estimators_take_the_band_from_many_samples_on(monkeypatch):
    X, least = problem(120, "any", True, outputs=1)
    y, label = least.Y[:, 0], least.Y[:, 0] > 3.0
    few = [RLSRegressorCV().fit(X, y), RLSClassifierCV().fit(X, label)]
    monkeypatch.setattr(band_fit, "SAMPLES_PER_LAM", 2)
    monkeypatch.setattr(band_fit, "FEWEST_SAMPLES", 100)
    many = [RLSRegressorCV().fit(X, y), RLSClassifierCV().fit(X, label)]
    for left, right in zip(few, many, strict=True):
        assert (left.solver_, right.solver_) == ("eigen", "band")
        assert right.converged_
        assert right.rank_ == left.rank_
        assert right.lam_ == pytest.approx(left.lam_, rel=1e-12)
        assert right.certificate_.primal == pytest.approx(left.certificate_.primal, rel=1e-10)
        np.testing.assert_allclose(right.path_.scores, left.path_.scores, rtol=1e-9)
        np.testing.assert_allclose(right.loo_residuals_, left.loo_residuals_, atol=1e-10)


def test_eigenvectors_stay_where_a_band_does_not_resolve_lam(monkeypatch):
    monkeypatch.setattr(band_fit, "SAMPLES_PER_LAM", 2)
    monkeypatch.setattr(band_fit, "FEWEST_SAMPLES", 100)
    X, least = problem(120, "ones", True, outputs=1)
    y = least.Y[:, 0]
    assert RLSRegressorCV([1e-14, 1.0]).fit(X, y).solver_ == "eigen"
    with pytest.warns(NonPSDKernelWarning):
        assert RLSRegressorCV(kernel="sigmoid", gamma=0.01).fit(X, y).solver_ == "eigen"
    assert RLSRegressorCV([1e-3, 1.0], kernel=Polynomial(2, 0.5, 1.0)).fit(X, y).solver_ == "eigen"
    assert RLSRegressorCV([1e-3, 1.0], kernel=Linear()).fit(X, y).solver_ == "svd"


def test_a_deadline_ends_a_reduction():
    X, least = problem(120, "ones", False)
    with pytest.raises(TimeoutError, match="max_time"):
        BandFit(least, gram_for(Gaussian(gamma=0.3), X), Stop(tol=0.0, max_iter=1, deadline=0.0))
