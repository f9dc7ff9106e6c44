"""Partial dependence and ICE against scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.inspection import partial_dependence as of_sklearn

from mercer import SVC, SVDD, SVR, LinearSVR, RLSRegressor
from mercer.kernels import Chi2, Gaussian, Laplacian, Linear, RationalQuadratic

RNG = np.random.default_rng(4)
X = RNG.uniform(0.0, 2.0, size=(40, 4))
Y = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2]
KERNELS = {
    "Gaussian": Gaussian(gamma=0.7),
    "Laplacian": 2.0 * Laplacian(gamma=0.4),
    "Chi2": Chi2(gamma=0.5),
    "product": Gaussian(gamma=0.3) * Laplacian(gamma=0.2),
    "exponential": (0.3 * Linear()).exp(),
    "sum": Gaussian(gamma=0.7) + Linear(),
    "no product": RationalQuadratic(),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("features", [1, (0, 2)], ids=["one", "two"])
def test_equals_scikit_learn(name, features):
    model = SVR(kernel=KERNELS[name], C=5.0).fit(X, Y)
    weight = np.arange(40.0)
    columns = [features] if isinstance(features, int) else list(features)
    expected = of_sklearn(model, X, columns, kind="average", grid_resolution=7, method="brute", sample_weight=weight)
    grid = expected["grid_values"]
    found = model.partial_dependence(X, features, grid=grid[0] if len(grid) == 1 else grid, sample_weight=weight)
    np.testing.assert_allclose(found.average, expected["average"][0], atol=1e-12)
    expected = of_sklearn(model, X, columns, kind="individual", grid_resolution=7, method="brute")
    found = model.partial_dependence(X, features, grid=grid[0] if len(grid) == 1 else grid, individual=True)
    np.testing.assert_allclose(found.individual, expected["individual"][0], atol=1e-12)


def test_classes_outputs_and_linear_machines():
    labels = (np.median(Y) < Y).astype(int)
    model = SVC(C=5.0).fit(X, labels)
    expected = of_sklearn(
        model, X, [0], kind="average", response_method="decision_function", grid_resolution=5, method="brute"
    )
    found = model.partial_dependence(X, 0, grid=expected["grid_values"][0])
    np.testing.assert_allclose(found.average, expected["average"][0], atol=1e-12)
    several = RLSRegressor(lam=0.1).fit(X, np.stack([Y, -Y], axis=1)).partial_dependence(X, "x1", grid_resolution=6)
    assert several.average.shape == (6, 2)
    np.testing.assert_allclose(several.average[:, 0], -several.average[:, 1], atol=1e-9)
    line = LinearSVR().fit(X, Y)
    slope = np.polyfit(*(line.partial_dependence(X, 3).grid[0], line.partial_dependence(X, 3).average), 1)[0]
    np.testing.assert_allclose(slope, line.coef_.ravel()[3])
    ball = SVDD().fit(X)
    found = ball.partial_dependence(X[:1], 0, grid=[0.5])
    moved = X[:1].copy()
    moved[0, 0] = 0.5
    np.testing.assert_allclose(found.average, ball.decision_function(moved), atol=1e-13)


def test_the_grid():
    model = SVR().fit(X, Y)
    steps = model.partial_dependence(sp.csr_array(X), 0, grid_resolution=9).grid[0]
    np.testing.assert_allclose(steps, np.linspace(*np.quantile(X[:, 0], [0.05, 0.95]), 9))
    rounded = np.round(X)
    np.testing.assert_array_equal(model.partial_dependence(rounded, 0).grid[0], np.unique(rounded[:, 0]))
    frame = model.partial_dependence(X, (0, "x2"), grid=([0.0, 1.0], [2.0, 3.0, 4.0])).to_frame()
    assert list(frame) == ["x0", "x2", "f"]
    assert frame["x2"].tolist() == [2.0, 3.0, 4.0] * 2


@pytest.mark.parametrize(
    ("features", "options", "message"),
    [
        ("y", {}, "no feature 'y'"),
        (4, {}, "no column 4"),
        ((0, 1, 2), {}, "a pair"),
        ((0, 0), {}, "twice"),
        (0, {"grid": [[1.0]]}, "one-dimensional"),
        ((0, 1), {"grid": [[1.0]]}, "two grids"),
        (0, {"grid": [np.nan]}, "finite"),
        (0, {"grid_resolution": 1}, "grid_resolution"),
        (0, {"sample_weight": [1.0]}, "sample_weight"),
    ],
)
def test_bad_questions_are_refused(features, options, message):
    with pytest.raises(ValueError, match=message):
        SVR().fit(X, Y).partial_dependence(X, features, **options)


def test_strings_have_no_features():
    K = Gaussian(gamma=1.0)(X)
    with pytest.raises(ValueError, match="needs features"):
        SVR(kernel="precomputed").fit(K, Y).partial_dependence(K, 0)


def test_factors_that_overflow_where_their_product_does_not():
    Z = np.array([[3.0, -3.0], [2.9, -2.95], [0.5, 0.2], [1.0, 1.0]])
    model = SVR(kernel=(0.5 * Linear()).exp()).fit(Z, [0.0, 1.0, 2.0, 3.0])
    row = np.array([[-600.0, -600.0]])
    found = model.partial_dependence(row, 0, grid=[-600.0]).average
    np.testing.assert_allclose(found, model.predict(row))
    with pytest.raises(FloatingPointError, match="overflows"):
        model.partial_dependence([[0.0, 0.0]], 0, grid=[1e4])


def test_values_that_prediction_refuses_are_refused():
    model = SVR(kernel=Chi2(gamma=0.5)).fit(X, Y)
    with pytest.raises(ValueError, match="histograms"):
        model.partial_dependence(X, 0, grid=[-1.0, 0.5])
