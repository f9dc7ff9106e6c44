"""A prompt shows a line or two of a display or a result that holds long arrays, whatever the data."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from mercer import SVC, displays, paths, theory

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
X, y = make_moons(200, noise=0.2, random_state=0)
MODEL = SVC(C=10.0).fit(X, y)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize(
    "draw",
    [
        lambda: displays.DecisionDisplay.from_estimator(MODEL, X, y, resolution=20),
        lambda: displays.MarginDisplay.from_estimator(MODEL, X, y),
        lambda: displays.PathDisplay.from_compression(MODEL, X, y, n_vectors=[4]),
        lambda: displays.GramDisplay.from_estimator(MODEL, X, y),
        lambda: displays.ConvergenceDisplay.from_estimator(SVC(), X, y),
        lambda: MODEL.partial_dependence(X, 0).plot(),
        lambda: MODEL.explain(X[:5], X[:20]).plot(),
    ],
)
def test_a_display_is_one_line(draw):
    display = draw()
    assert repr(display) == f"{type(display).__name__}(figure_ holds the plot)"


def test_a_display_that_is_not_drawn():
    display = displays.MarginDisplay(np.zeros(9), np.zeros(9), np.full(9, "free"), np.arange(9), (0, 1))
    assert repr(display) == "MarginDisplay(not drawn: call plot())"


def test_every_display_has_it():
    shown = [getattr(displays, name) for name in displays.__all__ if name.endswith("Display")]
    assert len(shown) == 10
    assert {one.__repr__ for one in shown} == {displays.MarginDisplay.__repr__}


@pytest.mark.parametrize(
    "make",
    [
        lambda: theory.hoeffding(0.1, n=1000, delta=0.05),
        lambda: theory.enclosing_ball(X),
        lambda: theory.iteration_path(X, y, max_iter=50),
        lambda: paths.xi_alpha(MODEL, X, y),
    ],
)
def test_a_result_shows_no_array(make):
    shown = repr(make())
    assert "array(" not in shown
    assert len(shown) < 300
    assert "\n" not in shown


def test_a_bound_says_what_it_bounds():
    bound = theory.hoeffding(0.1, n=1000, delta=0.05)
    value = 0.1 + np.sqrt(np.log(1 / 0.05) / 2000)
    assert repr(bound) == f"Bound({bound.quantity} ≤ {value:.6g} with probability 0.95)"
    assert str(bound).startswith(f"{bound.quantity} ≤ {value:.6g}  with probability 0.95\n")
