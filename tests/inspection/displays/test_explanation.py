"""The pictures of explanations and of partial dependence, by the data they draw."""

import matplotlib
import numpy as np
import pytest

from mercer import SVC, SVR
from mercer.inspection.displays import ExplanationDisplay, PartialDependenceDisplay
from mercer.inspection.displays.explanation import swarm_offsets

matplotlib.use("Agg")
from matplotlib import pyplot as plt

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 6))
Y = np.sin(2 * X[:, 3]) + 0.5 * X[:, 1]
MODEL = SVR(C=5.0).fit(X, Y)
FOUND = MODEL.explain(X[:30], X[30:])
SEVERAL = SVC(C=5.0).fit(X, np.digitize(Y, [-0.3, 0.3])).explain(X[:10], X[30:])


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_bars_are_mean_sizes():
    display = FOUND.plot(max_features=4)
    sizes = np.abs(FOUND.values).mean(axis=0)
    order = np.argsort(-sizes)
    np.testing.assert_array_equal(display.features_, order[:4])
    widths = [bar.get_width() for bar in display.bars_[0]]
    np.testing.assert_allclose(widths, sizes[order[:4]])
    assert display.ax_.get_xlabel().endswith(f"2 other features: {sizes[order[4:]].sum():.3g} in total")
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == [f"x{j}" for j in order[:4]]
    frame = display.to_frame()
    np.testing.assert_allclose(frame["f"], sizes[order[:4]])
    assert list(frame.index) == names


def test_bars_of_several_outputs_are_stacked():
    display = ExplanationDisplay.from_explanation(SEVERAL)
    assert len(display.bars_) == 3
    ends = [bar.get_x() + bar.get_width() for bar in display.bars_[-1]]
    sizes = np.abs(SEVERAL.values).mean(axis=0).sum(axis=1)
    np.testing.assert_allclose(ends, np.sort(sizes)[::-1])
    assert [t.get_text() for t in display.ax_.get_legend().get_texts()] == list(SEVERAL.output_names)
    assert display.to_frame().shape == (6, 3)


def test_one_sample_has_signed_bars():
    display = FOUND[2].plot()
    values = FOUND.values[2]
    np.testing.assert_allclose([b.get_width() for b in display.bars_[0]], values[np.argsort(-np.abs(values))])
    first = int(np.argmax(np.abs(values)))
    assert display.ax_.get_yticklabels()[0].get_text() == f"x{first} = {X[2, first]:.4g}"
    assert f"f = {MODEL.predict(X[2:3])[0]:.4g}" in display.ax_.get_title()
    few = FOUND[2].plot(max_features=2)
    rest = np.sort(np.abs(values))[:-2]
    last = few.bars_[0][-1].get_width()
    np.testing.assert_allclose(last, values.sum() - sum(b.get_width() for b in few.bars_[0][:-1]))
    assert abs(last) <= rest.sum()
    assert few.ax_.get_yticklabels()[-1].get_text() == "4 others"


def test_every_sample_is_a_point_of_the_beeswarm():
    display = ExplanationDisplay.from_estimator(MODEL, X[:30], X[30:], kind="beeswarm", max_features=3)
    assert len(display.points_) == 3
    for place, (points, j) in enumerate(zip(display.points_, display.features_, strict=True)):
        where = points.get_offsets()
        np.testing.assert_allclose(where[:, 0], FOUND.values[:, j])
        assert (np.abs(where[:, 1] - place) <= 0.45).all()
        shade = points.get_array()
        assert shade[np.argmax(X[:30, j])] == 1
        assert shade[np.argmin(X[:30, j])] == 0
    frame = display.to_frame()
    assert len(frame) == 90
    np.testing.assert_allclose(frame["data"][:30], X[:30, display.features_[0]])


def test_points_of_equal_value_lie_apart():
    heights = swarm_offsets(np.repeat([0.0, 1.0], [5, 1]), 10)
    assert len(np.unique(heights[:5])) == 5
    assert heights[5] == 0
    assert np.abs(heights).max() <= 1
    np.testing.assert_array_equal(swarm_offsets(np.ones(1), 10), [0.0])


def test_what_cannot_be_drawn():
    with pytest.raises(ValueError, match=r"explanation.output"):
        SEVERAL.plot("beeswarm")
    with pytest.raises(ValueError, match="kind"):
        FOUND.plot("pie")
    with pytest.raises(ValueError, match="max_features"):
        FOUND.plot(max_features=0)
    with pytest.raises(ValueError, match="one of the 3 outputs"):
        SVC().fit(X, np.digitize(Y, [-0.3, 0.3])).partial_dependence(X, (0, 1)).plot()


def test_curves_of_partial_dependence():
    display = PartialDependenceDisplay.from_estimator(MODEL, X, 3, grid_resolution=8, individual=True)
    found = MODEL.partial_dependence(X, 3, grid_resolution=8, individual=True)
    np.testing.assert_allclose(display.lines_[0].get_ydata(), found.average)
    np.testing.assert_allclose(display.individual_lines_[5].get_ydata(), found.individual[5])
    assert len(display.individual_lines_) == 60
    assert list(display.to_frame()) == ["x3", "f"]
    assert display.ax_.get_xlabel() == "x3"


def test_contours_of_two_features():
    found = MODEL.partial_dependence(X, (3, 1), grid_resolution=6)
    display = found.plot()
    np.testing.assert_allclose(display.values_, found.average.T)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("x3", "x1")
