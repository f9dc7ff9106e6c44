"""Bayes rule, risks, complexities and deviations of a known law, by sums and enumeration."""

import itertools

import numpy as np
import pytest
from scipy import optimize, stats

from mercer import SVC
from mercer.kernels import Gaussian
from mercer.notes.datasets import location_scale
from mercer.notes.theory import Law, finite_rules_bound, shattering
from mercer.problems.losses import Logistic

rng = np.random.default_rng(2)
X = rng.normal(size=(5, 2))
ETA = np.array([0.1, 0.5, 0.9, 0.3, 1.0])
P = np.array([0.1, 0.2, 0.3, 0.15, 0.25])
LAW = Law(X, ETA, P)


def test_no_labels_have_less_risk_than_the_bayes_rule():
    risks = {}
    for labels in itertools.product((-1.0, 1.0), repeat=5):
        risks[labels] = sum(p * (1 - e if s > 0 else e) for p, e, s in zip(P, ETA, labels, strict=True))
        assert LAW.risk(labels) == pytest.approx(risks[labels])
    assert LAW.bayes_risk == pytest.approx(min(risks.values()))
    assert Law([[0.0], [1.0]], [0.5, 0.4]).bayes_labels.tolist() == [1, -1]  # +1 where both are equally probable
    assert risks[tuple(LAW.bayes_labels.tolist())] == pytest.approx(LAW.bayes_risk)


def test_risks_are_sums_over_points_and_labels():
    f = rng.normal(size=5)
    truth = {"hinge": lambda m: max(0, 1 - m), "squared_hinge": lambda m: max(0, 1 - m) ** 2}
    for loss, value in truth.items():
        total = sum(p * (e * value(v) + (1 - e) * value(-v)) for p, e, v in zip(P, ETA, f, strict=True))
        assert LAW.risk(lambda Z: f, loss=loss) == pytest.approx(total)
    logistic = sum(
        p * (e * np.log1p(np.exp(-v)) + (1 - e) * np.log1p(np.exp(v))) for p, e, v in zip(P, ETA, f, strict=True)
    )
    assert LAW.risk(f, loss=Logistic()) == pytest.approx(logistic)


def test_densities_on_the_nodes_of_a_quadrature():
    """The law of `location_scale`, whose Bayes risk is known in closed form."""
    Z = np.arange(-12, 14, 1e-3)[:, None]
    first, second = stats.norm.pdf(Z[:, 0]), stats.norm.pdf(Z[:, 0], 2.0, 2.0)
    law = Law(Z, second / (first + second), (first + second) / (first + second).sum())
    example = location_scale(10, distance=2.0, scale=2.0, d=1)
    assert law.bayes_risk == pytest.approx(example.bayes_risk, abs=1e-6)
    assert (law.bayes_labels == example.bayes_rule(Z)).mean() > 0.9999


@pytest.mark.parametrize("kernel", ["linear", Gaussian(gamma=0.5)])
def test_the_true_complexity_by_all_samples_and_signs(kernel):
    K = X @ X.T if kernel == "linear" else np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    total = 0.0
    for rows in itertools.product(range(5), repeat=3):
        for signs in itertools.product((-1, 1), repeat=3):
            square = sum(signs[a] * signs[b] * K[rows[a], rows[b]] for a in range(3) for b in range(3))
            total += P[list(rows)].prod() / 8 * 2 * 1.5 / 3 * np.sqrt(max(square, 0))
    found = LAW.ball_complexity(3, norm=1.5, kernel=kernel)
    assert found.value == pytest.approx(total)
    assert found.standard_error == 0
    assert found.value <= found.bound.value == pytest.approx(2 * 1.5 * np.sqrt(P @ K.diagonal() / 3))
    drawn = LAW.ball_complexity(3, norm=1.5, kernel=kernel, n_draws=200)
    assert drawn.standard_error > 0
    assert abs(drawn.value - total) < 4 * drawn.standard_error


@pytest.mark.parametrize("norm", [0.3, 1.0, 2.5])
def test_the_best_w_of_a_ball(norm):
    def hinge(w):
        f = X @ w
        return P @ (ETA * np.maximum(0, 1 - f) + (1 - ETA) * np.maximum(0, 1 + f))

    def in_ball(w):
        return norm**2 - w @ w

    f = LAW.best_in_ball(norm).decision_function
    w = np.linalg.lstsq(X, f(X), rcond=None)[0]
    assert np.linalg.norm(w) <= norm * (1 + 1e-6)
    found = LAW.risk(f, loss="hinge")
    angles, radii = np.meshgrid(np.linspace(0, 2 * np.pi, 721), np.linspace(0, norm, 101))
    grid = np.stack([radii * np.cos(angles), radii * np.sin(angles)]).reshape(2, -1)
    least = min(hinge(w) for w in grid.T)
    assert found <= least + 1e-7
    assert found >= least - 0.02  # the grid is that close to every w of the ball
    by_slsqp = optimize.minimize(hinge, w, constraints={"type": "ineq", "fun": in_ball}).fun
    assert found <= by_slsqp + 1e-6
    assert LAW.risk(f) <= found
    assert LAW.risk(f) == pytest.approx(P @ np.where(X @ w >= 0, 1 - ETA, ETA))


@pytest.mark.parametrize(("norm", "far"), [(0.2, 5.0), (30.0, 5.0), (0.01, 300.0), (2.0, 300.0)])
def test_the_best_w_of_one_feature_is_at_a_corner_of_the_risk(norm, far):
    """It is at a w with wx = ±1 for a point x, or ±norm."""
    x, eta = far + np.array([-2.0, 0.5, 1.0, 3.0]), np.array([0.2, 0.9, 0.4, 0.7])
    law = Law(x[:, None], eta)
    corners = [w for w in (*(1 / x), *(-1 / x), norm, -norm, 0.0) if abs(w) <= norm]
    least = min(np.mean(eta * np.maximum(0, 1 - w * x) + (1 - eta) * np.maximum(0, 1 + w * x)) for w in corners)
    found = law.risk(law.best_in_ball(norm).decision_function, loss="hinge")
    assert least - 1e-9 <= found <= least + 1e-5


def test_a_least_risk_that_rounding_hides_is_refused():
    with pytest.raises(ValueError, match="rounding hides the least hinge risk"):
        Law([[1e5], [1e5 + 1]], [0.2, 0.9]).best_in_ball(1e6)
    with pytest.raises(ValueError, match="rounding hides"):  # known to 1.5e-5
        Law([[999.5], [1000.5], [1001.0], [1003.0]], [0.2, 0.9, 0.4, 0.7]).best_in_ball(150.0)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_best_w_in_any_unit(unit):
    """w = B/unit: the hinge risk is 1 − B·(0.8 + 0.6)/2, also for a tiny ball and for one that holds all minimisers."""
    law = Law([[unit], [-unit]], eta=[0.9, 0.2])
    for size in (1e-12, 0.5, 100.0):
        best = law.best_in_ball(size / unit)
        assert best.rkhs_norm_ <= size / unit * (1 + 1e-6)
        assert law.risk(best.decision_function, loss="hinge") == pytest.approx(1 - 0.7 * min(size, 1.0), rel=1e-7)
    with pytest.raises(ValueError, match="the same label with probability 1"):
        Law([[1.0], [2.0]], eta=[1.0, 1.0]).best_in_ball(1.0)


def test_the_largest_deviation_of_every_rule_written_out():
    """Simulated with counts; the mean of the suprema is that over all samples of two, and few exceed the bound."""
    rules = [lambda Z, t=t: Z[:, 0] - t for t in np.sort(X[:, 0])]
    outcomes = [(j, s) for j in range(5) for s in (1, -1)]
    chances = {(j, s): P[j] * (ETA[j] if s > 0 else 1 - ETA[j]) for j, s in outcomes}
    tables = [np.where(rule(X) >= 0, 1, -1) for rule in rules]
    true = [sum(chances[j, s] for j, s in outcomes if table[j] != s) for table in tables]
    mean = sum(
        chances[a]
        * chances[b]
        * max(L - ((t[a[0]] != a[1]) + (t[b[0]] != b[1])) / 2 for L, t in zip(true, tables, strict=True))
        for a in outcomes
        for b in outcomes
    )
    found = LAW.largest_deviations(rules, 2, n_draws=20_000)
    assert found.mean() == pytest.approx(mean, abs=4 * found.std() / np.sqrt(20_000))


@pytest.mark.parametrize("bias", [True, False])
def test_few_deviations_of_hyperplanes_exceed_the_bound(bias):
    machine = SVC(kernel="linear", bias=bias)
    n_rules = len(shattering(X, machine).dichotomies)
    for n in (20, 200):
        found = LAW.largest_deviations(machine, n, n_draws=2000)
        assert np.mean(found > finite_rules_bound(0.0, n_rules, n, delta=0.1).value) <= 0.1
        assert found.min() >= -0.3


def test_what_is_no_law_is_refused():
    for options, reason in (
        ({"X": [1.0], "eta": [0.5]}, "a finite row per point"),
        ({"X": [[1.0]], "eta": [1.5]}, "a probability for each"),
        ({"X": [[1.0], [2.0]], "eta": [0.5, 0.5], "probabilities": [0.5, 0.6]}, "the sum 1"),
    ):
        with pytest.raises(ValueError, match=reason):
            Law(**options)
    with pytest.raises(ValueError, match="each of the 5 points"):
        LAW.risk([1.0])
    with pytest.raises(ValueError, match="12 points"):
        Law(np.ones((13, 1)), np.full(13, 0.5)).largest_deviations(SVC(), 10)
