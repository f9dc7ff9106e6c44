"""Pictures of what is awkward to draw: many classes, odd or long names, single samples, dark styles."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from mercer import SVC, SVR, OneClassSVM, RLSClassifier, RLSRegressor
from mercer.inspection.displays import (
    DecisionDisplay,
    ExplanationDisplay,
    GramDisplay,
    IntervalDisplay,
    MarginDisplay,
    PartialDependenceDisplay,
    PathDisplay,
    ReliabilityDisplay,
    TuningDisplay,
)
from mercer.inspection.displays.drawing import colours, shorten
from mercer.inspection.displays.paths import Panel

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
pandas = pytest.importorskip("pandas")
X, y = make_moons(40, noise=0.2, random_state=0)
MODEL = SVC(C=10.0).fit(X, y)
LETTERS = np.array([chr(65 + k) for k in range(12)])
MANY_Y = np.repeat(LETTERS, 4)
MANY = np.random.default_rng(0).normal(size=(12, 2))[np.repeat(np.arange(12), 4)] * 5 + np.tile(X[:4], (12, 1))
MANY_MODEL = SVC(C=10.0).fit(MANY, MANY_Y)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()] if ax.get_legend() else []


def within(display):
    """Whether everything that is drawn lies inside of the figure."""
    display.figure_.draw_without_rendering()  # which lays it out
    box, (width, height) = display.figure_.get_tightbbox(), display.figure_.get_size_inches()
    return box.x0 > -0.02 and box.y0 > -0.02 and box.x1 < width + 0.02 and box.y1 < height + 0.02


# --- many classes ----------------------------------------------------------------------------------------------------


def test_the_names_of_many_classes_stand_among_their_samples():
    display = DecisionDisplay.from_estimator(MANY_MODEL, MANY, MANY_Y, resolution=10)
    assert not set(legend_of(display.ax_)) & set(LETTERS)
    where = {text.get_text(): text.get_position() for text in display.ax_.texts}
    assert set(where) == set(LETTERS)
    for letter, place in where.items():
        np.testing.assert_allclose(place, np.median(MANY[letter == MANY_Y], axis=0))


def test_bars_of_many_outputs_are_added_up():
    explanation = MANY_MODEL.explain(MANY[:3], MANY[:5])
    display = ExplanationDisplay.from_explanation(explanation)
    (bars,) = display.bars_
    sizes = explanation.importance.sum(axis=1)
    np.testing.assert_allclose([bar.get_width() for bar in bars], np.sort(sizes)[::-1])
    assert "summed over 66 outputs" in display.ax_.get_xlabel()
    assert display.ax_.get_legend() is None


def test_many_curves_have_no_legend_and_one_is_chosen_for_contours():
    display = PartialDependenceDisplay.from_estimator(MANY_MODEL, MANY, 0, grid_resolution=4)
    assert len(display.lines_) == 66
    assert display.ax_.get_legend() is None
    one = PartialDependenceDisplay.from_estimator(MANY_MODEL, MANY, (0, 1), grid_resolution=4, output=2)
    np.testing.assert_allclose(one.values_, one.dependence.average[:, :, 2].T)
    with pytest.raises(ValueError, match="output=66 is none of the 66 outputs"):
        one.plot(output=66)


def test_neighbouring_colours_differ():
    """By more than a sixth of the scale in some channel."""
    for n in (2, 8, 10, 20, 26, 60):
        rgb = np.array([matplotlib.colors.to_rgb(colour) for colour in colours(n)])
        assert len(np.unique(rgb, axis=0)) == n
        assert np.abs(np.diff(rgb, axis=0)).max(axis=1).min() > 0.16


# --- names -----------------------------------------------------------------------------------------------------------

ODD = ["$\\frac{$", "_hidden", "a column whose name is so long that it would not fit beside any picture"]


@pytest.mark.parametrize("k", [2, pytest.param(3, marks=pytest.mark.thorough)])
def test_names_are_shown_as_they_are(k):
    """A dollar begins no formula, and an underscore hides nothing."""
    rows = np.column_stack([X, X[:, 0] - X[:, 1]])
    table = pandas.DataFrame(rows, columns=ODD)
    label = np.array(["_low", "$\\bad{$", "<b>"])[np.arange(40) % k]
    model = SVC().fit(table, label)
    found = model.explain(table[:3], table[:5])
    displays = [
        DecisionDisplay.from_estimator(model, table, label, resolution=5),
        MarginDisplay.from_estimator(model, table, label),
        GramDisplay.from_estimator(model, table, label),
        PartialDependenceDisplay.from_estimator(model, table, 0, grid_resolution=3),
        found.plot(),
        (found.output(0) if k == 3 else found).plot("beeswarm"),
        ReliabilityDisplay.from_predictions(label, np.linspace(0, 1, 40), pos_label="$\\bad{$"),
    ]
    for display in displays:
        assert within(display)
    assert " _low" in legend_of(displays[0].ax_)


def test_long_names_lose_their_middle():
    assert shorten("sepal length") == "sepal length"
    assert shorten("abcdefghij", 7) == "abc…hij"
    assert len(shorten(ODD[2])) == 32


# --- few samples, and others than those of the fit --------------------------------------------------------------------


def test_one_interval_is_a_line_and_endless_ones_are_told():
    one = IntervalDisplay.from_predictions([0.5], [0.0], [1.0])
    (lines,) = [c for c in one.ax_.collections if isinstance(c, matplotlib.collections.LineCollection)]
    np.testing.assert_array_equal(lines.get_segments(), [[[0, 0], [0, 1]]])
    endless = IntervalDisplay.from_predictions([0.0, 1.0], [-np.inf, 0.0], [1.0, np.inf])
    assert "interval, 2 infinite" in legend_of(endless.ax_)
    bottom, top = endless.ax_.get_ylim()
    drawn = endless.ax_.collections[0].get_paths()[0].vertices[:, 1]
    assert (drawn.min(), drawn.max()) == (bottom, top)  # they reach the edge


@pytest.mark.parametrize(("low", "why"), [([2.0, 1.0], "low > high in 1 of 2"), ([np.nan, 0.0], "some are NaN")])
def test_what_is_no_interval(low, why):
    with pytest.raises(ValueError, match=why):
        IntervalDisplay.from_predictions([0.0, 1.0], low, [1.0, 2.0])


def test_intervals_along_one_of_several_columns_are_lines():
    target = X[:, 0] ** 2
    model = RLSRegressor().fit(X, target).calibrate(X, target, cv="leave-one-out")
    display = IntervalDisplay.from_estimator(model, X, target, feature=1)
    (lines,) = [c for c in display.ax_.collections if isinstance(c, matplotlib.collections.LineCollection)]
    low, high = model.predict_interval(X)
    ends = np.array(lines.get_segments())
    np.testing.assert_allclose(ends[:, :, 0], X[:, [1, 1]])
    np.testing.assert_allclose(ends[:, :, 1], np.column_stack([low, high]))


def test_one_sample_has_signed_values_in_its_frame():
    found = SVR().fit(X, X[:, 1]).explain(X[:1], X)
    table = found.plot().to_frame()
    order = np.argsort(-np.abs(found.values[0]))
    np.testing.assert_array_equal(table["f"], found.values[0, order])
    np.testing.assert_array_equal(table["data"], X[0, order])


def test_margins_need_the_samples_of_the_fit():
    with pytest.raises(ValueError, match="the 1 samples given cannot be those of the fit"):
        MarginDisplay.from_estimator(MODEL, X[:1], y[:1])
    with pytest.raises(ValueError, match="plane=66 is none of the 66 planes"):
        MarginDisplay.from_estimator(MANY_MODEL, MANY, MANY_Y, plane=66)
    with pytest.raises(TypeError, match="SVR has no α of a margin"):
        MarginDisplay.from_estimator(SVR().fit(X, X[:, 0]), X, X[:, 0])


def test_labels_that_are_words_need_a_positive_one():
    words = np.where(y == 1, "yes", "no")
    p = np.linspace(0, 1, 40)
    with pytest.raises(ValueError, match="the labels 'no', 'yes': name the positive one with pos_label"):
        ReliabilityDisplay.from_predictions(words, p)
    with pytest.raises(ValueError, match="no label in y is pos_label='maybe'"):
        ReliabilityDisplay.from_predictions(words, p, pos_label="maybe")
    told = ReliabilityDisplay.from_predictions(words, p, pos_label="yes", n_bins=4)
    np.testing.assert_array_equal(told.share, ReliabilityDisplay.from_predictions(y == 1, p, n_bins=4).share)
    np.testing.assert_array_equal(told.share, ReliabilityDisplay.from_predictions(2 * y - 1, p, n_bins=4).share)


def test_a_machine_without_score_is_refused():
    with pytest.raises(TypeError, match="OneClassSVM has no score"):
        PathDisplay.from_compression(OneClassSVM().fit(X), X, y)


def test_sizes_below_an_axis_stand_apart():
    sizes = np.arange(2, 60, 2)
    display = PathDisplay("vectors", [Panel("error", sizes, {"_": 1.0 / sizes}, {})], {}).plot()
    ticks = display.axes_[0].get_xticks()
    assert (ticks[1:] / ticks[:-1] >= 1.2).all()
    assert ticks[-1] == 58


# --- searches --------------------------------------------------------------------------------------------------------


def test_words_along_the_axis_of_a_search():
    results = {
        "params": [{"kernel": "linear"}, {"kernel": "rbf"}],
        "mean_test_score": np.array([0.7, 0.9]),
        "std_test_score": np.array([0.1, 0.2]),
        "split0_test_score": np.array([0.7, 0.9]),
    }
    display = TuningDisplay(results, 1, ("kernel",)).plot()
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["linear", "rbf"]
    np.testing.assert_array_equal(display.ax_.lines[0].get_ydata(), [0.7, 0.9])

    class Search:
        cv_results_ = results

    with pytest.raises(ValueError, match="'gamma' is not a parameter of the grid, which has kernel"):
        TuningDisplay.from_search(Search(), ["gamma"])


# --- where it is drawn -----------------------------------------------------------------------------------------------


def test_lines_are_seen_in_a_dark_style():
    with plt.style.context("dark_background"):
        display = DecisionDisplay.from_estimator(MODEL, X, y, resolution=10)
        (contour,) = [c for c in display.ax_.collections if type(c).__name__ == "QuadContourSet"]
        assert contour.get_edgecolor()[0].tolist() == [1, 1, 1, 1]
        margin = MarginDisplay.from_estimator(MODEL, X, y)
        assert {matplotlib.colors.to_hex(line.get_color()) for line in margin.ax_.lines} == {"#ffffff"}


def test_drawn_twice_a_legend_names_all_once():
    _, ax = plt.subplots()
    for _ in range(2):
        DecisionDisplay.from_estimator(MODEL, X, y, resolution=5, ax=ax)
    assert legend_of(ax) == ["0", "1", "free support vectors", "bounded support vectors"]


def test_a_line_below_a_picture_is_as_wide_as_it():
    rows = np.column_stack([X, X, X, X])
    model = RLSClassifier().fit(rows, y)
    names = [f"a column with a long name, number {k}" for k in range(8)]
    at = {2: 1.0, 3: 2.0, 4: 3.0}
    display = DecisionDisplay.from_estimator(model, rows, y, names=names, at=at, resolution=5)
    assert within(display)
    assert display.ax_.get_position().width > 0.7
