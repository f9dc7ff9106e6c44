"""Margins of a plane of one's own, against the formulas, and against a machine that has the same plane."""

import numpy as np
import pytest

from mercer import SVC
from mercer.notes.teaching import Plane

rng = np.random.default_rng(5)
X = rng.normal(size=(30, 2))
Y = np.where(X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=30) > 0, "in", "out")


def test_margins_by_hand():
    """w = (3, 4), b = −5, ‖w‖ = 5, and the larger label, "out", on the positive side."""
    found = Plane([3.0, 4.0], b=-5.0).margins(X, Y)
    for i, (x, label) in enumerate(zip(X, Y, strict=True)):
        f, sign = 3 * x[0] + 4 * x[1] - 5, 1 if label == "out" else -1
        assert found.functional_margins[i] == pytest.approx(sign * f)
        assert found.geometric_margins[i] == pytest.approx(sign * f / 5)
        assert found.slacks[i] == pytest.approx(max(0, 1 - sign * f))
        assert found.errors[i] == ((f >= 0) != (label == "out"))
    assert found.rho == pytest.approx(0.2)
    assert found.functional_margin == pytest.approx(5 * found.geometric_margin)
    with pytest.raises(ValueError, match="no α"):
        _ = found.free


def test_scaling_a_plane_scales_functional_margins_only():
    one, two = (Plane(c * np.array([1.0, -2.0]), b=0.5 * c).margins(X, Y) for c in (1.0, 7.0))
    assert two.functional_margins == pytest.approx(7 * one.functional_margins)
    assert two.geometric_margins == pytest.approx(one.geometric_margins)


def test_the_plane_of_a_machine_has_its_margins():
    model = SVC(kernel="linear", C=1.0, tol=1e-10).fit(X, Y)
    found = Plane(model.dual_coef_[0] @ X[model.support_], model.intercept_[0]).margins(X, Y)
    truth = model.margins(X, Y)
    assert found.geometric_margins == pytest.approx(truth.geometric_margins, abs=1e-9)
    assert found.slacks == pytest.approx(truth.slacks, abs=1e-9)
    assert str(found).splitlines()[:2] == str(truth).splitlines()[:2]


def test_one_sample_or_one_class_of_signs():
    assert Plane([3.0, 4.0], b=-5.0).margins([[3.0, 4.0]], [-1]).geometric_margins.tolist() == [-4.0]
    found = Plane([3.0, 4.0], b=-5.0).margins([[3.0, 4.0], [1.0, 0.0]], [1, 1])
    assert found.functional_margins.tolist() == [20.0, -2.0]
    assert found.classes == (-1, 1)
    with pytest.raises(ValueError, match="its sign is unknown"):
        Plane([3.0, 4.0]).margins([[3.0, 4.0]], ["out"])


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_a_plane_of_any_length(scale):
    found = Plane([3.0 * scale, 4.0 * scale], b=-5.0 * scale).margins([[3.0, 4.0], [1.0, 0.0]], [1, -1])
    assert found.geometric_margins == pytest.approx([4.0, 0.4])
    assert found.rho == pytest.approx(0.2 / scale)


def test_the_picture_shows_the_plane():
    pytest.importorskip("matplotlib").use("Agg")
    display = Plane([1.0, -1.0], b=0.25).plot(X, Y, resolution=20)
    assert display.values == pytest.approx(display.xx0 - display.xx1 + 0.25)
    assert display.response.tolist() == (display.values >= 0).astype(int).tolist()


def test_what_is_no_plane_is_refused():
    with pytest.raises(ValueError, match="not all 0"):
        Plane([0.0, 0.0])
    with pytest.raises(ValueError, match="2 columns"):
        Plane([1.0, 0.0]).decision_function([[1.0]])
    with pytest.raises(ValueError, match="30 samples"):
        Plane([1.0, 0.0]).margins(X, Y[:-1])
