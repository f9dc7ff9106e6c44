"""Recursive least squares: samples that come and go leave the solution of a new fit."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import Ridge

from mercer import RLSClassifier, RLSRegressor
from mercer.places.sums import Sums
from mercer.problems.least_squares import LeastSquares

rng = np.random.default_rng(5)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_partial_fit_is_fit_and_forget_undoes_it(bias, as_sparse):
    X, Y = rng.normal(size=(120, 5)) + 2.0, rng.normal(size=(120, 2))
    weight = rng.uniform(0.0, 2.0, size=120)
    weight[3::7] = 0.0
    data = sparse.csr_array(X) if as_sparse else X
    model = RLSRegressor(0.3, kernel="linear", bias=bias)
    for part in (slice(0, 1), slice(1, 50), slice(50, 51), slice(51, 120)):
        model.partial_fit(data[part], Y[part], sample_weight=weight[part])
    whole = clone(model).fit(data, Y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-10)
    np.testing.assert_allclose(model.intercept_, whole.intercept_, atol=1e-10)
    assert model.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-9)
    assert model.certificate_.relative_gap < 1e-10
    assert model.certificate_.parts[0].kkt["primal value above the optimum"] < 1e-20 * whole.certificate_.primal
    model.forget(data[20:100], Y[20:100], sample_weight=weight[20:100])
    left = np.r_[0:20, 100:120]
    rest = clone(model).fit(data[left], Y[left], sample_weight=weight[left])
    np.testing.assert_allclose(model.coef_, rest.coef_, atol=1e-9)
    np.testing.assert_allclose(model.predict(data), rest.predict(data), atol=1e-9)
    np.testing.assert_allclose(model._sums_.yy, rest._sums_.yy, rtol=1e-9)
    with pytest.raises(ValueError, match="have been learnt"):
        model.forget(data, Y, sample_weight=weight)
    with pytest.raises(ValueError, match="no samples would be left"):
        model.forget(data[left], Y[left], sample_weight=weight[left])
    np.testing.assert_allclose(model.coef_, rest.coef_, atol=1e-9)


def test_fit_can_be_continued_and_starts_again():
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    model = RLSRegressor(0.3, kernel="linear").fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    np.testing.assert_allclose(model.coef_, RLSRegressor(0.3, kernel="linear").fit(X, y).coef_, atol=1e-12)
    model.fit(X[:30], y[:30])
    np.testing.assert_allclose(model.coef_, Ridge(0.3).fit(X[:30], y[:30]).coef_, atol=1e-12)
    assert not hasattr(RLSRegressor(), "partial_fit")
    assert not hasattr(RLSRegressor(), "forget")


def test_sums_of_a_union_and_of_a_difference():
    X, Y = rng.normal(size=(30, 4)) * [1, 1e3, 1e-3, 1] + 50.0, rng.normal(size=(30, 2))

    def sums(rows):
        return Sums.of(X[rows], LeastSquares(Y[rows], np.ones(len(rows)), np.arange(len(rows)), len(rows), True))

    a, b, both = sums(np.arange(12)), sums(np.arange(12, 30)), sums(np.arange(30))
    for left, right in ((a.plus(b), both), (both.minus(b), a)):
        for name in ("x", "y", "xx", "xy", "yy"):
            size = np.abs(getattr(both, name)).max()
            np.testing.assert_allclose(getattr(left, name), getattr(right, name), atol=1e-12 * size, err_msg=name)


def test_a_classifier_learns_class_by_class():
    X, y = load_iris(return_X_y=True)
    model = RLSClassifier(0.5, kernel="linear", class_weight={0: 2.0})
    with pytest.raises(ValueError, match="first call"):
        model.partial_fit(X[:50], y[:50])
    model.partial_fit(X[:50], y[:50], classes=[0, 1, 2])
    assert list(model.classes_) == [0, 1, 2]
    with pytest.raises(ValueError, match="7 is not one of the classes"):
        model.partial_fit(X[:1], [7])
    model.partial_fit(X[50:], y[50:])
    whole = clone(model).fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-10)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    model.forget(X[:10], y[:10])
    np.testing.assert_allclose(model.coef_, clone(model).fit(X[10:], y[10:]).coef_, atol=1e-9)
