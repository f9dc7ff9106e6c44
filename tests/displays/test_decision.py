"""The decision display: what it draws is what the machine says."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, LinearSVC, LinearSVR, OneClassSVM, QuantileSVR
from mercer.displays import DecisionDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
X, y = make_moons(80, noise=0.2, random_state=0)


@pytest.fixture(autouse=True)
def closed():
    yield
    matplotlib.pyplot.close("all")


def test_values_regions_and_rings():
    model = SVC(C=2.0).fit(X, y)
    display = DecisionDisplay.from_estimator(model, X, y, resolution=30)
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    np.testing.assert_allclose(display.values.ravel(), model.decision_function(grid))
    np.testing.assert_array_equal(display.response.ravel(), model.predict(grid))
    size = np.abs(model.dual_coef_[0])
    np.testing.assert_array_equal(display.free, np.sort(model.support_[size < 2.0]))
    np.testing.assert_array_equal(display.bounded, np.sort(model.support_[size == 2.0]))
    # Free support vectors lie on the margin, f = ±1.
    np.testing.assert_allclose(np.abs(model.decision_function(X[display.free])), 1, atol=2e-3)
    labels = display.ax_.get_legend_handles_labels()[1]
    assert labels == ["0", "1", "free support vectors", "bounded support vectors"]
    assert display.figure_ is display.ax_.figure


@pytest.mark.parametrize("options", [{}, {"class_weight": {0: 1.0, 1: 0.3}}, {"theta": 0.005, "C": 1.0}])
def test_rings_follow_the_box_of_each_sample(options):
    weight = np.random.default_rng(0).choice([0.25, 0.5, 1.0], size=len(y))
    model = SVC(**{"C": 2.0, **options}, tol=1e-6).fit(X, y, sample_weight=weight)
    display = DecisionDisplay.from_estimator(model, X, y, resolution=5)
    on_margin = np.flatnonzero(np.abs(np.abs(model.decision_function(X)) - 1) < 1e-4)
    np.testing.assert_array_equal(display.free, np.intersect1d(on_margin, model.support_))
    assert len(display.bounded) > 0


def test_a_pipeline_several_classes_and_chosen_features():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    model = make_pipeline(StandardScaler(), SVC()).fit(X, names[y])
    display = DecisionDisplay.from_estimator(model, X, names[y], features=(2, 3), resolution=20, names=list("abcd"))
    assert display.values is None
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("c", "d")
    rest = np.tile(X.mean(axis=0), (400, 1))
    rest[:, 2], rest[:, 3] = display.xx0.ravel(), display.xx1.ravel()
    np.testing.assert_array_equal(names[display.response.ravel()], model.predict(rest))
    assert len(display.free) + len(display.bounded) >= len(model[-1].support_)  # copies of a row are ringed together
    assert set(model[-1].support_) <= set(display.free) | set(display.bounded)


def test_other_data_have_no_rings_and_axes_are_used():
    model = SVC().fit(X, y)
    _, ax = matplotlib.pyplot.subplots()
    display = DecisionDisplay.from_estimator(model, X + 0.01, resolution=10, ax=ax)
    assert display.ax_ is ax
    assert len(display.free) == len(display.bounded) == 0


@pytest.mark.parametrize("features", [(0, 2), (0, 0), (-1, 0), (0,)])
def test_wrong_features(features):
    with pytest.raises(ValueError, match="must be two different columns of the 2 there are"):
        DecisionDisplay.from_estimator(SVC().fit(X, y), X, features=features)


def test_one_feature_is_too_few():
    with pytest.raises(ValueError, match="needs two features"):
        DecisionDisplay.from_estimator(SVC().fit(X[:, :1], y), X[:, :1])


def test_linear_machines_and_novelty():
    for model in (LinearSVC().fit(X, y), OneClassSVM().fit(X), LinearSVR().fit(X, X[:, 0])):
        display = DecisionDisplay.from_estimator(model, X, resolution=10)
        grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
        ask = model.decision_function if hasattr(model, "decision_function") else model.predict
        np.testing.assert_allclose(display.values.ravel(), ask(grid))


def test_several_outputs_are_no_picture():
    with pytest.raises(ValueError, match="one value at each point, but this model predicts 2"):
        DecisionDisplay.from_estimator(QuantileSVR([0.1, 0.9]).fit(X, X[:, 0]), X, resolution=10)
