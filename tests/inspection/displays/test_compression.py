"""The picture of a compression, by its data."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer.inspection.displays import PathDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
X, y = make_moons(60, noise=0.25, random_state=0)


def test_curves_are_those_of_the_compressed_machines():
    model = make_pipeline(StandardScaler(), mercer.SVC(C=10)).fit(X, y)
    display = PathDisplay.from_compression(model, X, y, n_vectors=[8, 3])
    small = mercer.compress(model, 3)
    (error,), (score, original, kept) = (axis.lines for axis in display.axes_)
    np.testing.assert_array_equal(error.get_xdata(), [3, 8])
    np.testing.assert_allclose(error.get_ydata()[0], small[-1].compression_.error, rtol=1e-6)
    assert error.get_ydata()[0] > error.get_ydata()[1]
    assert score.get_ydata()[0] == small.score(X, y)
    assert original.get_ydata()[0] == model.score(X, y)
    seen = small[0].transform(X)
    assert kept.get_ydata()[0] == small[-1].compression_.keeps_label(seen).mean()
    frame = display.to_frame()
    assert frame["n_vectors"].tolist() == [8, 3]
    assert list(frame) == ["n_vectors", "error", "score", "kept"]
    matplotlib.pyplot.close("all")


def test_two_axes_are_needed():
    target = X[:, 0]
    display = PathDisplay.from_compression(mercer.SVR().fit(X, target), X, target, n_vectors=[3])
    with pytest.raises(ValueError, match="drawn into 2 axes, but 1"):
        display.plot(matplotlib.pyplot.figure().subplots())
    assert [len(lines) for lines in display.lines_] == [1, 2]  # a regression keeps no labels
    assert list(display.to_frame()) == ["n_vectors", "error", "score"]
    matplotlib.pyplot.close("all")
