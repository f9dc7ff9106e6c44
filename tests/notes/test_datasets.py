"""The notes' examples: their laws, Bayes rules and risks, and the numbers that can be computed by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from mercer import SVC, C_from, datasets
from mercer.kernels import Gaussian, Polynomial
from mercer.runtime.errors import NotSeparableError


@pytest.mark.parametrize(
    ("distance", "scale", "d"), [(2.0, 1.0, 2), (0.0, 2.0, 2), (1.5, 3.0, 1), (1.5, 0.4, 3), (3.0, 1.2, 2)]
)
def test_bayes_rules_and_risks(distance, scale, d):
    example = datasets.location_scale(200_000, distance=distance, scale=scale, d=d, random_state=1)
    wrong = np.mean(example.bayes_rule(example.X) != example.y)
    assert wrong == pytest.approx(example.bayes_risk, abs=4 * math.sqrt(0.25 / 200_000))
    for other in (lambda X: np.sign(X[:, 0] - distance / 2 + 0.2), lambda X: -example.bayes_rule(X)):
        assert np.mean(other(example.X) != example.y) > wrong - 0.002


def test_location():
    example = datasets.location(50, distance=3.0)
    assert example.bayes_risk == pytest.approx(stats.norm.cdf(-1.5))
    X, y = example
    assert X.shape == (50, 2)
    assert datasets.location().X.shape == datasets.location_scale().X.shape == datasets.rings().X.shape == (200, 2)
    assert set(y) == {-1.0, 1.0}
    np.testing.assert_array_equal(X, datasets.location(50, distance=3.0).X)
    assert not np.array_equal(X, datasets.location(50, distance=3.0, random_state=1).X)


def test_the_interval():
    X, y = datasets.interval()
    assert X[:, 0].tolist() == [-3, -2, -1, 0, 1, 2, 3]
    with pytest.raises(NotSeparableError):
        SVC(C=np.inf, kernel="linear").fit(X, y)
    model = SVC(C=np.inf, kernel="linear", tol=1e-8).fit(datasets.with_square(X), y)
    assert 1 / model.rkhs_norm_ == pytest.approx(1.5, abs=1e-6)
    doubled = SVC(C=np.inf, kernel="linear", tol=1e-8).fit(2 * datasets.with_square(X), y)
    assert 1 / doubled.rkhs_norm_ == pytest.approx(3.0, abs=1e-6)  # data times 2, margin times 2
    assert len(datasets.interval(30).y) == 30


@pytest.mark.parametrize(
    "draw", [datasets.interval, datasets.rings, lambda n, **seed: datasets.rings(n, inner=3, **seed)]
)
def test_the_interval_and_the_rings_have_a_rule_without_errors(draw):
    for seed in (0, 1):
        example = draw(500, random_state=seed)
        assert example.bayes_risk == 0
        np.testing.assert_array_equal(example.bayes_rule(example.X), example.y)
    other = draw(200, random_state=2)
    np.testing.assert_array_equal(example.bayes_rule(other.X), other.y)  # the rule is that of the law, not of the draw


def test_two_equal_rings_say_nothing():
    example = datasets.rings(1000, inner=2.0, outer=2.0)
    assert example.bayes_risk == 0.5
    assert np.mean(example.bayes_rule(example.X) != example.y) == 0.5


def test_the_rings():
    angle = np.arange(16) * np.pi / 8
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    X, y = np.vstack([circle, 2 * circle]), np.repeat([1.0, -1.0], 16)
    kernel = Polynomial(degree=2, gamma=1.0, coef0=0.0)
    assert 1 / SVC(C=np.inf, kernel=kernel, tol=1e-8).fit(X, y).rkhs_norm_ == pytest.approx(
        1.5 / math.sqrt(2), abs=1e-6
    )
    lifted = SVC(C=np.inf, kernel="linear", tol=1e-8).fit(datasets.with_paraboloid(X), y)
    assert 1 / lifted.rkhs_norm_ == pytest.approx(1.5, abs=1e-6)
    drawn = datasets.rings(300)
    assert set(np.round(np.linalg.norm(drawn.X, axis=1), 12)) == {1.0, 2.0}
    with pytest.raises(NotSeparableError):
        SVC(C=np.inf, kernel="linear").fit(*drawn)


def test_the_error_tends_to_the_bayes_risk_under_the_schedule():
    test = datasets.location_scale(20_000, distance=2.0, scale=2.0, random_state=99)
    excess = []
    for n in (50, 400, 3200):
        errors = []
        for seed in range(3):
            X, y = datasets.location_scale(n, distance=2.0, scale=2.0, random_state=seed)
            model = SVC(C=C_from(C0=3.0, n0=50, n=n), kernel=Gaussian(gamma=0.5), tol=1e-2).fit(X, y)
            errors.append(np.mean(model.predict(test.X) != test.y))
        excess.append(np.mean(errors) - test.bayes_risk)
    assert excess[0] > excess[1] > excess[2] - 0.003
    assert excess[2] < 0.015


def test_bad_arguments():
    for call in (
        lambda: datasets.location(0),
        lambda: datasets.location_scale(10, scale=0.0),
        lambda: datasets.rings(10, inner=-1.0),
        lambda: datasets.with_square([[1.0, 2.0]]),
        lambda: datasets.with_paraboloid([1.0]),
    ):
        with pytest.raises(ValueError, match=r"must|takes one feature"):
            call()
