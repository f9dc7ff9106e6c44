"""The pictures of a path in C."""

import matplotlib
import numpy as np
import pytest

from mercer import svm_path
from mercer.inspection.displays import PathDisplay

matplotlib.use("Agg")
from matplotlib import pyplot as plt

RNG = np.random.default_rng(0)
Y = np.repeat([0, 1], 20)
X = RNG.normal(size=(40, 2)) + Y[:, None]


def test_curves_are_those_of_the_path():
    path = svm_path(X, Y, gamma=0.5, C_max=100)
    display = PathDisplay.from_svm_path(path, X=X, y=Y)
    Cs = display.lines_[0][0].get_xdata()
    alpha = np.array([line.get_ydata() for line in display.lines_[0]]).T * Cs[:, None]
    np.testing.assert_allclose(alpha[7], path.alpha(Cs[7]))
    np.testing.assert_array_equal(display.lines_[1][0].get_ydata(), path.margin_)
    np.testing.assert_array_equal(display.lines_[2][0].get_ydata(), path.n_support_)
    np.testing.assert_array_equal(display.lines_[3][0].get_ydata(), path.error(X, Y, Cs))
    assert path.plot().axes_[3].get_title() == "b"
    path.__class__ = type("OfAUser", (type(path),), {})  # a subclass is drawn as what it is
    assert path.plot().axes_[3].get_title() == "b"
    plt.close("all")


def test_axes_must_be_four():
    path = svm_path(X, Y, gamma=0.5, C_max=1)
    with pytest.raises(ValueError, match="4 axes"):
        path.plot(plt.subplots(1, 2)[1])
    plt.close("all")
