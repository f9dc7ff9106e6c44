"""Textbook algorithms, step by step: they end where the production solver ends, and do what the notes print."""

import numpy as np
import pytest

from mercer import SVC, certify, trace
from mercer.kernels import Gaussian, Linear
from mercer.teaching.algorithms import METHODS
from mercer.teaching.pairs import RULES

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
Y = np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0, 1, -1)
CASES = [(Gaussian(gamma=0.5), 1.0), (Gaussian(gamma=0.5), 20.0), (Linear(), 0.3)]


def runs(method):
    return RULES if method in ("smo", "li") else ("second order",)


@pytest.mark.parametrize(("kernel", "C"), CASES, ids=str)
@pytest.mark.parametrize(("method", "rule"), [(m, r) for m in METHODS for r in runs(m)])
def test_every_method_reaches_the_production_solver(method, rule, kernel, C):
    found = trace(kernel, X, Y, C, method=method, rule=rule, tol=1e-9)
    assert found.converged
    model = SVC(C=C, kernel=kernel, tol=1e-10).fit(X, Y)
    assert found.dual == pytest.approx(model.certificate_.dual, rel=1e-9)
    assert found.b == pytest.approx(model.intercept_[0], abs=1e-6)
    duals = np.array([0.0, *(step.dual for step in found)])
    assert (np.diff(duals) >= -1e-12 * duals[-1]).all()  # no step loses
    assert sum(step.gain for step in found) == pytest.approx(found.dual)
    for step in found:
        assert step.alpha.min() >= 0
        assert step.alpha.max() <= C
        assert abs(step.alpha @ Y) <= 1e-12 * C * len(Y)
    assert certify(kernel, X, Y, found.alpha, C).gap <= 1e-6 * found.dual


def test_li_takes_the_same_steps_as_igel():
    for rule in RULES:
        igel = trace("rbf", X, Y, 2.0, rule=rule, tol=1e-4)
        li = trace("rbf", X, Y, 2.0, method="li", rule=rule, tol=1e-4)
        assert [step.chosen for step in igel][:30] == [step.chosen for step in li][:30]
        np.testing.assert_allclose([s.dual for s in igel][:30], [s.dual for s in li][:30], rtol=1e-9)


def test_gains_and_steps_are_those_of_the_formulas():
    """Gain (y_ig_i − y_jg_j)²/2(K_ii + K_jj − 2K_ij) where the box does not cut the step short."""
    K = Gaussian(gamma=0.5)(X)
    found = trace("precomputed", K, Y, 5.0, rule="most violating", tol=1e-6)
    before = np.zeros(len(Y))
    unclipped = 0
    for step in found:
        i, j = step.chosen
        g = 1 - Y * (K @ (Y * before))
        ahead, curvature = Y[i] * g[i] - Y[j] * g[j], K[i, i] + K[j, j] - 2 * K[i, j]
        rises = Y * g
        highest = max(rises[k] for k in range(len(Y)) if (before[k] < 5 if Y[k] > 0 else before[k] > 0))
        assert rises[i] == pytest.approx(highest, abs=1e-12)
        if not step.clipped:
            unclipped += 1
            assert step.size == pytest.approx(ahead / curvature, rel=1e-6)
            assert step.gain == pytest.approx(ahead**2 / (2 * curvature), rel=1e-4, abs=1e-13)
        else:
            assert step.size < ahead / curvature
        # Exercise 4.4: D(α + εu) − D(α) = ε(y_ig_i − y_jg_j) + O(ε²)
        moved = before.copy()
        epsilon = 1e-6
        moved[i] += epsilon * Y[i]
        moved[j] -= epsilon * Y[j]
        slope = (found.problem.dual(moved) - found.problem.dual(before)) / epsilon
        assert slope == pytest.approx(ahead, abs=1e-4)
        before = step.alpha
    assert unclipped > 5


def test_maximum_gain_gains_most():
    K = Gaussian(gamma=0.5)(X)
    first = {rule: trace("precomputed", K, Y, 1e6, rule=rule, max_steps=1) for rule in RULES}
    best = first["maximum gain"].steps[0].gain
    assert all(best >= found.steps[0].gain - 1e-12 for found in first.values())


def test_numbers_by_hand():
    """x from −3 to 3, class +1 where |x| ≤ 1: with x → (x, x²) the margin is 1.5."""
    x = np.arange(-3.0, 4.0)
    y = np.where(np.abs(x) <= 1, 1, -1)
    mapped = np.column_stack([x, x**2])
    for method in METHODS:
        found = trace("linear", mapped, y, 1e3, method=method, tol=1e-10)
        w = mapped.T @ (y * found.alpha)
        assert 1 / np.linalg.norm(w) == pytest.approx(1.5, abs=1e-6)
        assert found.alpha.sum() == pytest.approx(1 / 1.5**2, abs=1e-6)
        assert found.b == pytest.approx(2.5 / 1.5, abs=1e-6)  # the plane x² = 2.5


def test_two_samples_take_one_step():
    found = trace("linear", [[0.0], [2.0]], [-1, 1], C=10.0)
    (step,) = found.steps
    assert (step.chosen, step.size, step.clipped, step.gain, step.b) == ((1, 0), 0.5, False, 0.5, -1.0)
    np.testing.assert_array_equal(step.alpha, [0.5, 0.5])
    cut = trace("linear", [[0.0], [2.0]], [-1, 1], C=0.25)
    assert cut.steps[0].clipped
    assert cut.steps[0].size == 0.25
    assert cut.dual == 0.5 - 0.5 * 0.25**2 * 4


def test_equal_samples_with_both_labels():
    """A direction without curvature ends at the box."""
    for method in METHODS:
        found = trace("linear", [[1.0], [1.0], [2.0]], [-1, 1, 1], C=3.0, method=method, tol=1e-9)
        model = SVC(C=3.0, kernel="linear", tol=1e-10).fit([[1.0], [1.0], [2.0]], [-1, 1, 1])
        assert found.dual == pytest.approx(model.certificate_.dual, rel=1e-9)


def test_tables():
    found = trace("rbf", X, Y, max_steps=3)
    assert not found.converged
    assert len(str(found).splitlines()) == 5
    assert str(found).endswith("smo, second order: stopped before tol after 3 steps")
    assert list(found.to_frame()["dual"]) == [step.dual for step in found]
    nothing = trace("linear", [[0.0], [0.0]], [-1, 1], C=1.0, tol=10.0)
    assert (len(nothing), nothing.dual, nothing.alpha.tolist(), nothing.b) == (0, 0.0, [0.0, 0.0], 0.0)


def test_bad_arguments():
    for options, message in [
        ({"method": "newton"}, "must be one of"),
        ({"rule": "random"}, "must be one of"),
        ({"working_set_size": 1}, "at least 2"),
        ({"tol": 0.0}, "above 0"),
        ({"C": -1.0}, "above 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            trace("linear", X, Y, **options)
    with pytest.raises(ValueError, match="two classes, but y has 3"):
        trace("linear", X, np.arange(40) % 3)
    with pytest.raises(ValueError, match="at most 1000 samples"):
        trace("linear", np.zeros((1001, 1)), np.arange(1001) % 2)
