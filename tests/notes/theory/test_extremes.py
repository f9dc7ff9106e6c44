"""Bounds at the ends of what they take, and assumptions that are known not to hold: nothing false is claimed."""

import math
import warnings

import numpy as np
import pytest

import mercer
from mercer import SVC, LinearSVC, theory
from mercer.kernels import Gaussian, Linear
from mercer.notes.theory.complexity import ComplexityBound

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
Y = np.where(X[:, 0] + 0.3 * rng.normal(size=40) > 0, 1, -1)
APART = np.where(X[:, 0] > 0, 1, -1)


@pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-17, 0.5, 1 - 1e-16])
def test_every_delta(delta):
    """ln(1/δ) is finite for every δ, and a smaller δ never gives a smaller bound."""
    logs = -math.log(delta)
    assert theory.hoeffding(0.1, 100, delta=delta).value == pytest.approx(0.1 + math.sqrt(logs / 200))
    assert theory.glivenko_cantelli(10, delta=delta).value == pytest.approx(math.sqrt((math.log(2) + logs) / 20))
    assert theory.mcdiarmid(0.0, [1.0], delta=delta).value == pytest.approx(math.sqrt(logs / 2))
    bounds = [
        lambda d: theory.chernoff(5, 1000, delta=d),
        lambda d: theory.test_set_bound(5, 1000, delta=d),
        lambda d: theory.soft_margin_bound([0.0, 0.5], 2.0, 3.0, delta=d),
        lambda d: theory.linear_rules_bound(0.1, 3, 50, delta=d),
        lambda d: theory.finite_rules_bound(0.1, 3, 50, delta=d),
        lambda d: theory.expectation_bound(0.1, 0.1, 50, delta=d),
    ]
    for bound in bounds:
        assert math.isfinite(bound(delta).value)
        assert bound(delta).value >= bound(1 - 1e-16).value
    assert theory.hard_margin_samples(0.1, 1.0, 1.0, delta=delta) >= 8 / 0.01 * (2 + logs)


def test_a_test_set_for_the_cautious():
    """No errors in n: 1 − δ^(1/n), also where 1 − δ is 1 to rounding."""
    for delta in (1e-17, 1e-100, 1e-300):
        expected = -math.expm1(math.log(delta) / 1000)
        assert theory.test_set_bound(0, 1000, delta=delta).value == pytest.approx(expected, rel=1e-9)


def test_tiny_and_huge_numbers_keep_their_squares():
    zero = ComplexityBound("R̂", 0.0, {"R̂": 0.0})
    for size in (1e-300, 1e-200, 1.0, 1e200):
        h = np.full(4, size)
        assert theory.mcdiarmid(0.0, h, delta=0.1).value == pytest.approx(2 * size * math.sqrt(math.log(10) / 2))
        own = theory.finite_complexity(h[None]).value  # of {0} + h: it has the complexity of h
        assert own <= zero.shift(h).value == pytest.approx(2 * size / 2)
        assert theory.leave_one_out_bound(size, 1.0, 1, bias=False).value >= 0
    assert theory.soft_margin_bound([0.0], 1.0, 0.0, delta=0.1, margin=1e-300, target_margin=1e-100).value == math.inf
    assert theory.support_vectors_bound(1e200, 0.0, 1.0, 5).value == math.inf
    for call in (
        lambda: theory.hard_margin_samples(0.1, 1e200, 1.0, delta=0.05),
        lambda: theory.soft_margin_samples(0.1, 1e200, 1.0),
        lambda: theory.mistake_bound(1e200, 1e-200),
    ):
        with pytest.raises(ValueError, match="overflows float64"):
            call()


@pytest.mark.parametrize("size", [1e-150, 1e-40, 1e40, 1e150])
def test_balls_of_any_size(size):
    one, other = theory.enclosing_ball(X, kernel=Linear()), theory.enclosing_ball(size * X, kernel=Linear())
    assert other.radius == pytest.approx(size * one.radius, rel=1e-9)
    assert other.radius_bounds[0] <= other.radius <= other.radius_bounds[1]
    assert other.radius_bounds[1] - other.radius_bounds[0] <= 1e-6 * other.radius
    K = (size * X) @ (size * X).T
    assert theory.enclosing_ball(K, kernel="precomputed").radius == pytest.approx(size * one.radius, rel=1e-9)


@pytest.mark.parametrize("centre", ["best", "origin"])
def test_a_ball_beyond_float64_is_refused(centre):
    with np.errstate(over="ignore"), pytest.raises(FloatingPointError, match="overflows"):
        theory.enclosing_ball(1e200 * X, kernel=Linear(), centre=centre)
    with pytest.raises(ValueError, match="centre='mean'"):
        theory.enclosing_ball(X, kernel=Linear(), centre="mean")
    assert theory.enclosing_ball(np.zeros((3, 2)), kernel=Linear(), centre="origin").radius_bounds == (0.0, 0.0)


def test_an_interval_of_width_one_may_lie_anywhere():
    assert not theory.hoeffding(5.2, 1000, delta=0.05).vacuous
    assert theory.hoeffding(0.99, 10, delta=0.05).vacuous


def test_what_only_the_user_knows_is_not_claimed():
    assert theory.finite_complexity_bound(3, 10).applies is None
    assert theory.trace_bound(1.0, 10).applies is None


def test_risks_of_what_is_no_number():
    with pytest.raises(ValueError, match="must be finite"):
        theory.risk([1, -1], [np.nan, 0.5], loss="zero_one")
    for weight in ([-1.0, 3.0], [0.0, 0.0], [1.0]):
        with pytest.raises(ValueError, match="a finite number ≥ 0 for each of the 2"):
            theory.risk([1, -1], [0.0, 0.5], loss="hinge", sample_weight=weight)
    assert theory.risk([1, -1], [0.0, 0.5], loss="hinge", sample_weight=[1e308, 1e308]) == 1.25
    with pytest.raises(ValueError, match="finite kernel values"):
        theory.ball_complexity([[np.nan]])


# --- assumptions of a trained machine ------------------------------------------------------------------------------


def word(bound, text):
    (found,) = [each for each in bound.assumptions if text in each.text]
    return found.holds


@pytest.mark.parametrize(
    ("machine", "fixed"),
    [
        (SVC(bias=False), False),  # gamma="scale" comes from the data
        (SVC(bias=False, gamma="auto"), None),
        (SVC(bias=False, gamma=0.5), None),
        (SVC(bias=False, kernel=Gaussian()), False),
        (SVC(bias=False, kernel=Gaussian(gamma=1.0)), None),
        (SVC(bias=False, kernel="linear"), None),
        (LinearSVC(bias=False), None),
    ],
    ids=repr,
)
def test_a_kernel_that_was_made_from_the_data_was_not_fixed_before(machine, fixed):
    bound = machine.fit(X, Y).insight(X, Y).bounds["soft margin"]
    assert word(bound, "the kernel, its parameters") is fixed
    assert bound.applies is fixed


def test_a_kernel_that_is_not_definite():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SVC(kernel="sigmoid", gamma=1.0, coef0=-1.0, bias=False).fit(X, Y)
    bound = model.insight(X, Y).bounds["soft margin"]
    assert word(bound, "positive semi-definite") is not True
    plain = SVC(gamma=0.5, bias=False).fit(X, Y).insight(X, Y).bounds["soft margin"]
    assert word(plain, "positive semi-definite") is True


@pytest.mark.parametrize("weight", [np.full(40, 100.0), rng.uniform(0.1, 3.0, 40)], ids=["heavy", "mixed"])
def test_weights_spoil_the_count_of_support_vectors(weight):
    model = SVC(kernel="linear", tol=1e-8).fit(X, Y, sample_weight=weight)
    bound = model.insight(X, Y).bounds["support vectors"]
    assert bound.applies is False
    plain = SVC(kernel="linear", tol=1e-8).fit(X, Y)
    assert plain.insight(X, Y).bounds["support vectors"].applies is True


@pytest.mark.parametrize("feature", [0.1, 1.0, 10.0])
def test_a_bias_that_is_the_weight_of_a_feature(feature):
    """The machine is one without bias on rows with one more entry: its bounds are those of that machine."""
    options = {"loss": "hinge", "C": 1e6, "tol": 1e-9}
    own = LinearSVC(bias="regularized", intercept_scaling=feature, **options).fit(X, APART)
    rows = np.column_stack([X, np.full(40, feature)])
    other = LinearSVC(bias=False, **options).fit(rows, APART)
    for name in ("soft margin", "leave one out"):
        expected = other.insight(rows, APART).bounds[name].value
        assert own.insight(X, APART).bounds[name].value == pytest.approx(expected, rel=1e-5)
    assert own.insight(X, APART).complexity.value == pytest.approx(
        other.insight(rows, APART).complexity.value, rel=1e-5
    )


@pytest.mark.thorough
@pytest.mark.parametrize("bias", [False, "regularized"])
def test_leave_one_out_on_fresh_draws(bias):
    """Hard margins in two dimensions, each sample left out in turn: never more errors than the bound says."""
    draws = np.random.default_rng(5)
    for _ in range(8):
        Z = draws.normal(size=(9, 2)) + 0.3
        w = draws.normal(size=2)
        Z = Z[np.abs(Z @ w) > 0.1]
        y = np.where(Z @ w > 0, 1, -1)
        if min(np.sum(y == 1), np.sum(y == -1)) < 2:
            continue
        machine = mercer.SVC(C=np.inf, kernel="linear", bias=bias)
        bound = machine.fit(Z, y).insight(Z, y).bounds["leave one out"]
        keep = [np.arange(len(y)) != i for i in range(len(y))]
        wrong = sum(machine.fit(Z[k], y[k]).predict(Z[~k])[0] != y[~k][0] for k in keep)
        assert wrong <= bound.value * len(y) * (1 + 1e-9)
        assert bound.applies is True


@pytest.mark.parametrize("n", [0, -1, 2.5])
@pytest.mark.parametrize("bound", [theory.finite_complexity_bound, theory.trace_bound])
def test_a_class_is_bounded_on_a_whole_number_of_samples(bound, n):
    with pytest.raises(ValueError, match=f"n={n} must be an integer of at least 1: the number of samples"):
        bound(3, n)
