"""The decision display: what it draws is what the machine says."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, SVR, LinearSVC, LinearSVR, OneClassSVM, QuantileSVR, tabular
from mercer.inspection.displays import DecisionDisplay

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


def test_places_of_other_features_are_a_dict():
    Z, labels = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match=r"at=\[1, 2\] must be a dict from columns.*to their values"):
        DecisionDisplay.from_estimator(SVC().fit(Z, labels), Z, labels, at=[1, 2])


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


def kinds(display, name):
    return [artist for artist in display.ax_.collections if type(artist).__name__ == name]


def points_of(display):
    """The first scatter: the samples. Rings come after."""
    return kinds(display, "PathCollection")[0]


def test_a_regression_and_its_samples_share_a_sequential_scale():
    y = np.sin(X[:, 0]) + 1e-3 * np.arange(len(X))
    display = DecisionDisplay.from_estimator(SVR().fit(X, y), X, y, resolution=20)
    (mesh,), points = kinds(display, "QuadMesh"), points_of(display)
    assert mesh.get_cmap().name == points.get_cmap().name == "viridis"
    assert points.norm is mesh.norm
    np.testing.assert_array_equal(points.get_array(), y)
    assert not kinds(display, "QuadContourSet")  # f = 0 is nothing special


def test_an_outlier_does_not_take_the_scale():
    y = np.where(np.arange(80) == 5, 1e6, X[:, 0])
    wide = DecisionDisplay.from_estimator(SVR().fit(X, X[:, 0]), X, y[:80], resolution=20)
    (mesh,) = kinds(wide, "QuadMesh")
    assert mesh.norm.vmax < 1e6 / 2


def test_a_regression_without_y_has_black_points():
    display = DecisionDisplay.from_estimator(SVR().fit(X, X[:, 0]), X, resolution=10)
    np.testing.assert_array_equal(points_of(display).get_facecolors(), [[0, 0, 0, 1]])


def test_novelty_has_a_scale_around_its_boundary():
    display = DecisionDisplay.from_estimator(OneClassSVM(nu=0.2).fit(X), X, resolution=30)
    (mesh,), (line,) = kinds(display, "QuadMesh"), kinds(display, "QuadContourSet")
    assert mesh.norm(0.0) == 0.5
    assert list(line.levels) == [0.0]


def test_many_rows_are_small_and_transparent():
    few, many = make_moons(300, random_state=0), make_moons(3_000, noise=0.2, random_state=0)
    model = SVC().fit(*many)
    small, large = (DecisionDisplay.from_estimator(model, *data, resolution=10) for data in (few, many))
    assert points_of(small).get_alpha() == 1
    assert 0.1 < points_of(large).get_alpha() < 0.5
    assert points_of(large).get_sizes()[0] < points_of(small).get_sizes()[0]
    rings = kinds(large, "PathCollection")[-1]
    assert len(large.bounded) > 200
    assert rings.get_alpha() < 1
    assert {handle.get_alpha() for handle in large.ax_.get_legend().legend_handles} == {1}


def test_boundaries_between_several_classes():
    """Where the class changes between two neighbours of the grid, a line passes; elsewhere none does."""
    data, species = load_iris(return_X_y=True)
    display = DecisionDisplay.from_estimator(SVC().fit(data[:, 2:], species), data[:, 2:], species, resolution=40)
    lines = kinds(display, "QuadContourSet")
    drawn = np.vstack([path.vertices for line in lines for path in line.get_paths()])
    row, column = np.nonzero(np.diff(display.response, axis=1))
    middle = (display.xx0[row, column] + display.xx0[row, column + 1]) / 2
    changes = np.column_stack([middle, display.xx1[row, column]])
    assert len(changes) > 30
    for change in changes:
        assert np.abs(drawn - change).max(axis=1).min() < 1e-9
    step = [display.xx0[0, 1] - display.xx0[0, 0], display.xx1[1, 0] - display.xx1[0, 0]]
    for vertex in drawn:  # each in the middle between two points of the grid that differ
        near = (np.abs(display.xx0 - vertex[0]) < 0.51 * step[0]) & (np.abs(display.xx1 - vertex[1]) < 0.51 * step[1])
        assert len(np.unique(display.response[near])) > 1


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_names_the_axes_and_the_features(library):
    frames = pytest.importorskip(library)
    data, species = load_iris(return_X_y=True)
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    frame = frames.DataFrame(dict(zip(names, data.T, strict=True)))
    model = make_pipeline(StandardScaler(), SVC()).fit(frame, species)
    by_name = DecisionDisplay.from_estimator(
        model, frame, species, features=("petal length", "sepal width"), resolution=15
    )
    by_number = DecisionDisplay.from_estimator(model, frame, species, features=(2, 1), resolution=15)
    assert (by_name.ax_.get_xlabel(), by_name.ax_.get_ylabel()) == ("petal length", "sepal width")
    np.testing.assert_array_equal(by_name.response, by_number.response)
    assert set(model[-1].support_) <= set(by_name.free) | set(by_name.bounded)


def test_the_estimators_names_are_taken_for_an_array():
    pandas = pytest.importorskip("pandas")
    model = LinearSVC().fit(pandas.DataFrame(X, columns=["width", "height"]), y)
    with pytest.warns(UserWarning, match="valid feature names"):  # scikit-learn's, of its own predict
        display = DecisionDisplay.from_estimator(model, X, y, features=("height", "width"), resolution=5)
    assert display.names == ("height", "width")


def test_where_the_other_features_stand():
    data, species = load_iris(return_X_y=True)
    display = DecisionDisplay.from_estimator(
        SVC().fit(data, species), data, features=(0, 2), resolution=10, names=["a", "b", "c", "d"]
    )
    (word,) = [text.get_text() for text in display.ax_.texts]
    assert word == "at b = 3.06, d = 1.2 (mean)"
    wide = np.hstack([data, data])
    display = DecisionDisplay.from_estimator(SVC().fit(wide, species), wide, resolution=10)
    assert [text.get_text() for text in display.ax_.texts] == ["the other 6 features at their mean"]
    assert not DecisionDisplay.from_estimator(SVC().fit(X, y), X, resolution=10).ax_.texts


def test_a_table_with_categories_and_holes():
    pandas = pytest.importorskip("pandas")
    age, plan = np.arange(60.0), np.resize(["basic", "pro", "basic"], 60)
    table = pandas.DataFrame({"age": age, "plan": plan, "income": (age * 37) % 53})
    table.loc[3, "age"] = np.nan
    label = np.where(plan == "pro", age < 20, age > 30)
    model = tabular(SVC(C=10)).fit(table, label)
    display = DecisionDisplay.from_estimator(model, table, label, features=("age", "income"), resolution=12)
    assert display.rest == "at plan = basic (most frequent value)"
    grid = pandas.DataFrame({"age": display.xx0.ravel(), "plan": "basic", "income": display.xx1.ravel()})
    np.testing.assert_array_equal(display.classes[display.response.ravel()], model.predict(grid))
    assert set(model.estimator_.support_) <= set(display.free) | set(display.bounded)
    with pytest.raises(ValueError, match="by name: age, plan, income"):
        DecisionDisplay.from_estimator(model, table, features=("age", "size"))


def test_more_classes_than_colours_are_told_apart():
    many = np.repeat(np.arange(25), 4)
    rows = np.column_stack([many % 5, many // 5]) + 0.01 * np.arange(100)[:, None]
    display = DecisionDisplay.from_estimator(SVC().fit(rows, many), rows, many, resolution=10)
    colours = [tuple(p.get_facecolors()[0]) for p in kinds(display, "PathCollection")[:25]]
    assert len(set(colours)) == 25


def test_names_must_be_as_many_as_columns():
    with pytest.raises(ValueError, match="names has 3 names, but X has 2 columns"):
        DecisionDisplay.from_estimator(SVC().fit(X, y), X, names=["a", "b", "c"])


@pytest.mark.parametrize("features", [(0, 2), (0, 0), (-1, 0), (0,), ("width", "height"), (0, True)])
def test_wrong_features(features):
    with pytest.raises(ValueError, match="must be two different columns of the 2 in X"):
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
