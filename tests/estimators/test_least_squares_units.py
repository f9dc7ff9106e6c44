"""Least squares in any units: the same model, whatever columns, targets and weights are measured in."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LinearRegression, Ridge

from mercer import RLSRegressor, RLSRegressorCV
from mercer.certificates.least_squares import EXACT_GAP

rng = np.random.default_rng(0)
X = rng.normal(size=(100, 2))
Y = X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=100)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("solver", ["covariance", "lsqr"])
@pytest.mark.parametrize("scale", [1e-8, 1e6, 1e7, 1e8])
def test_no_column_is_lost_beside_one_in_other_units(scale, solver, as_sparse):
    Z = X * [scale, 1]
    data = sparse.csr_array(Z) if as_sparse else Z
    model = RLSRegressor(kernel="linear", solver=solver).fit(data, Y)
    theirs = Ridge(alpha=1.0, solver="svd").fit(Z, Y)
    assert model.converged_
    assert model.rank_ == 2
    assert model.certificate_.relative_gap <= EXACT_GAP
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.predict(data), theirs.predict(Z), atol=1e-9)


@pytest.mark.parametrize("exponent", [12, 20, 60])
def test_even_units_that_no_multiplier_of_float64_can_prove(exponent):
    scale = 10.0**exponent
    model = RLSRegressor(kernel="linear").fit(X * [scale, 1], Y)
    plain = RLSRegressor(kernel="linear").fit(X * [1e6, 1], Y)  # the first column is as good as free in both
    assert model.converged_
    assert model.certificate_.kkt["primal value above the optimum"] <= EXACT_GAP * model.certificate_.primal
    np.testing.assert_allclose(model.coef_ * [scale, 1], plain.coef_ * [1e6, 1], rtol=1e-9)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e8])
def test_columns_far_from_zero(offset):
    Z = X + offset
    model = RLSRegressor(kernel="linear").fit(Z, Y + offset)
    right = Ridge(alpha=1.0, solver="svd").fit(Z - offset, Y)  # exact to the rounding of Z
    assert model.converged_
    np.testing.assert_allclose(model.coef_, right.coef_, rtol=10 * offset * 1e-15 + 1e-12)


@settings(max_examples=40, deadline=None)
@given(
    powers=st.lists(st.integers(-12, 12), min_size=3, max_size=3),
    power=st.integers(-9, 9),
    bias=st.booleans(),
    as_sparse=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_scaled_columns_and_targets_give_the_scaled_model(powers, power, bias, as_sparse, seed):
    """Without a ridge any units do; with one, X·s, y·t and λ·s² together."""
    draw = np.random.default_rng(seed)
    A, y = draw.normal(size=(30, 3)) + draw.normal(size=3), draw.normal(size=30)
    units, unit = 10.0 ** np.array(powers), 10.0**power
    form = sparse.csr_array if as_sparse else np.asarray
    free = RLSRegressor(0.0, kernel="linear", bias=bias).fit(form(A * units), y * unit)
    right = LinearRegression(fit_intercept=bias).fit(A, y)
    assert free.converged_
    np.testing.assert_allclose(free.coef_ * units / unit, right.coef_, atol=1e-8)
    ridge = RLSRegressor(0.3 * unit**2, kernel="linear", bias=bias).fit(form(A * unit), y * units[0])
    right = Ridge(0.3, fit_intercept=bias, solver="svd").fit(A, y)
    assert ridge.converged_
    np.testing.assert_allclose(ridge.coef_ * unit / units[0], right.coef_, atol=1e-9)
    small = RLSRegressor(0.3, gamma=0.5 / unit**2, bias=bias).fit(A * unit, y * units[0])
    plain = RLSRegressor(0.3, gamma=0.5, bias=bias).fit(A, y)
    assert small.converged_
    np.testing.assert_allclose(small.dual_coef_ / units[0], plain.dual_coef_, atol=1e-8)


def test_nearly_equal_columns_are_both_kept_by_a_ridge():
    twin = np.column_stack([X[:, 0], X[:, 0] * (1 + 1e-12), X[:, 1]])
    for lam in (1e-6, 1e-12):
        model = RLSRegressor(lam, kernel="linear").fit(twin, Y)
        assert model.rank_ == 3
        np.testing.assert_allclose(model.coef_[0], model.coef_[1], rtol=1e-3)  # a ridge shares the weight
        np.testing.assert_allclose(model.predict(twin), LinearRegression().fit(X, Y).predict(X), atol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e8])
def test_the_default_range_of_lam_reaches_every_column(scale):
    Z = X * [scale, 1]
    model = RLSRegressorCV(kernel="linear").fit(Z, Y)
    assert model.converged_
    assert model.score(Z, Y) > 0.99


@pytest.mark.filterwarnings("ignore:RLSRegressor met the rounding floor")
@pytest.mark.parametrize("power", [6, 12])
@pytest.mark.parametrize(("kernel", "solver"), [("rbf", "cholesky"), ("rbf", "eigen"), ("linear", "covariance")])
def test_weights_of_all_sizes(kernel, solver, power):
    weight = 10.0 ** np.linspace(-power, power, 100)
    model = RLSRegressor(kernel=kernel, solver=solver).fit(X, Y, sample_weight=weight)
    assert model.converged_ or power == 12
    # Rounding times λ/w made it hundreds. Corrections of c see light samples too; features have none to correct.
    assert model.residual_ < (1e-4 if kernel == "rbf" else 0.1)
    assert model.certificate_.relative_gap < 1e-6
