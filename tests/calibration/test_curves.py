"""Curves from decision values to probabilities, each against another way to compute it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.calibration import _sigmoid_calibration
from sklearn.isotonic import IsotonicRegression

import mercer
from mercer.calibration.coupling import couple
from mercer.calibration.curves import fit_isotonic, fit_temperature, fit_venn_abers
from mercer.calibration.sigmoid import fit_sigmoids
from mercer.cli.libsvm.probability import fit_sigmoid as libsvm_sigmoid

START = np.array([0])


def values(seed: int, n: int, slope: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    f = rng.normal(size=n)
    return f, rng.random(n) < 1.0 / (1.0 + np.exp(-slope * f - 0.3))


def test_the_sigmoid_is_that_of_scikit_learn_and_of_libsvm() -> None:
    f, positive = values(0, 400)
    found = fit_sigmoids(f, positive, np.ones(400), START)
    a, b = _sigmoid_calibration(f, positive.astype(float))
    np.testing.assert_allclose([found.slope[0], found.offset[0]], [-a, -b], rtol=1e-4)
    A, B = libsvm_sigmoid(f, positive)
    np.testing.assert_allclose([found.slope[0], found.offset[0]], [-A, -B], rtol=1e-6)


def test_outputs_do_not_see_each_other_and_their_unit_does_not_matter() -> None:
    f, positive = values(1, 100)
    g, other = values(2, 60)
    both = fit_sigmoids(np.append(f, 1e7 * g), np.append(positive, other), np.ones(160), np.array([0, 100]))
    alone = fit_sigmoids(g, other, np.ones(60), START)
    np.testing.assert_allclose(both.slope[1] * 1e7, alone.slope[0], rtol=1e-8)
    np.testing.assert_allclose(both.offset[1], alone.offset[0], rtol=1e-8)


@pytest.mark.parametrize("fit", [fit_sigmoids, fit_temperature], ids=["sigmoid", "temperature"])
def test_an_integer_weight_is_a_repetition(fit) -> None:
    f, positive = values(3, 50)
    weight = np.random.default_rng(3).integers(1, 4, 50)
    weighted = fit(f, positive, weight.astype(float), START)
    repeated = fit(np.repeat(f, weight), np.repeat(positive, weight), np.ones(weight.sum()), START)
    np.testing.assert_allclose(weighted.slope, repeated.slope, rtol=1e-6)
    np.testing.assert_allclose(weighted.offset, repeated.offset, rtol=1e-6, atol=1e-12)


def test_the_slope_is_never_flipped() -> None:
    """A machine that ranks the wrong way round gets the share of each class, not the reverse of what it says."""
    f, positive = values(4, 300, slope=-2.0)
    found = fit_sigmoids(f, positive, np.ones(300), START)
    assert found.slope[0] == 0.0
    np.testing.assert_allclose(found.probabilities(np.array([[-3.0], [3.0]])), positive.mean(), atol=0.01)
    assert fit_temperature(f, positive, np.ones(300), START).probabilities(np.array([[3.0]]))[0, 0] < 0.5 + 1e-6


def test_values_that_separate_the_classes_stay_below_certainty() -> None:
    f = np.array([-2.0, -1.0, 1.0, 2.0])
    for fit in (fit_sigmoids, fit_temperature):
        p = fit(f, f > 0, np.ones(4), START).probabilities(f[:, None])[:, 0]
        assert (p > 0.05).all()
        assert (p < 0.95).all()
        assert (np.diff(p) >= 0).all()


def test_the_temperature_is_the_likeliest() -> None:
    f, positive = values(5, 200)
    slope = fit_temperature(f, positive, np.ones(200), START).slope[0]
    n = positive.sum()
    target = np.where(positive, (n + 1) / (n + 2), 1 / (200 - n + 2))
    grid = np.linspace(0.5 * slope, 2.0 * slope, 3001)
    loss = [np.sum(np.logaddexp(0, s * f) - target * s * f) for s in grid]
    assert abs(grid[np.argmin(loss)] - slope) <= grid[1] - grid[0]


def test_isotonic_curves_are_those_of_scikit_learn() -> None:
    f, positive = values(6, 80)
    g, other = values(7, 30)
    found = fit_isotonic(np.append(f, g), np.append(positive, other), np.ones(110), np.array([0, 80]))
    new = np.linspace(-3, 3, 41)
    p = found.probabilities(np.column_stack([new, new]))
    for k, (x, y) in enumerate([(f, positive), (g, other)]):
        truth = IsotonicRegression(out_of_bounds="clip").fit(x, y.astype(float)).predict(new)
        np.testing.assert_allclose(p[:, k], truth, atol=1e-12)


@pytest.mark.parametrize("digits", [0, 1, 6])
def test_venn_abers_is_isotonic_regression_with_the_sample_added(digits: int) -> None:
    for seed in range(12):
        f, positive = values(seed, 5 + 3 * seed)
        f = f.round(digits)
        weight = np.random.default_rng(seed).integers(1, 4, len(f)).astype(float)
        found = fit_venn_abers(f, positive, weight, START)
        asked = np.append(np.linspace(-2, 2, 9).round(digits), f[:3])
        bounds = found.interval(0, asked)
        for label in (0, 1):
            for x, got in zip(asked, bounds[label], strict=True):
                curve = IsotonicRegression().fit(np.append(f, x), np.append(positive, label), np.append(weight, 1.0))
                assert abs(curve.predict([x])[0] - got) < 1e-12
        low, high = bounds
        merged = found.probabilities(asked[:, None])[:, 0]
        assert (low <= merged + 1e-15).all()
        assert (merged <= high + 1e-15).all()


def test_coupling_solves_its_least_squares_problem() -> None:
    rng = np.random.default_rng(0)
    k = 4
    pairs = rng.random((5, 6))
    pairs[0] = 1e-12  # clipped
    p = couple(pairs, k)
    first, second = np.triu_indices(k, 1)
    for r, found in zip(np.clip(pairs, 1e-7, 1 - 1e-7), p, strict=True):

        def value(q, r=r):
            return np.sum(((1 - r) * q[first] - r * q[second]) ** 2)

        truth = minimize(
            value,
            np.full(k, 1 / k),
            bounds=[(0, 1)] * k,
            constraints={"type": "eq", "fun": lambda q: q.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert value(found) <= truth.fun + 1e-10
        np.testing.assert_allclose(found.sum(), 1.0)
        assert (found >= 0).all()


def test_coupling_gives_back_consistent_pairs() -> None:
    p = np.random.default_rng(1).dirichlet(np.ones(7), size=20)
    first, second = np.triu_indices(7, 1)
    np.testing.assert_allclose(couple(p[:, first] / (p[:, first] + p[:, second]), 7), p, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_venn_abers_is_the_quotient_of_the_definition_to_the_last_bit(seed: int) -> None:
    """max over a of min over b of (S_b − S_a + c) / (W_b − W_a + 1), in fractions, plateaus without rounding."""
    rng = np.random.default_rng(seed)
    f, positive, weight = rng.integers(-9, 9, 25) / 2.0, rng.random(25) < 0.5, rng.integers(1, 4, 25)
    curves = fit_venn_abers(f, positive, weight.astype(float), np.array([0]))
    new = np.arange(-10, 10) / 2.0
    distinct = np.unique(f)
    W = np.append(0, np.cumsum([weight[f == v].sum() for v in distinct])).tolist()
    S = np.append(0, np.cumsum([weight[(f == v) & positive].sum() for v in distinct])).tolist()
    for label, found in enumerate(curves.interval(0, new)):
        for x, p in zip(new, found, strict=True):
            before, after = int((distinct < x).sum()), int((distinct <= x).sum())
            exact = max(
                min(Fraction(S[b] - S[a] + label, W[b] - W[a] + 1) for b in range(after, len(W)))
                for a in range(before + 1)
            )
            assert p == float(exact)


@pytest.mark.parametrize("seed", [5, 50, 92, 179, 230])
def test_p_values_against_the_rest_are_never_below_those_of_ranks(seed: int) -> None:
    """A curve that never falls keeps ranks: the class's own samples with f up to that of x, x among them, count."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 60))
    (X, y), (held, labels) = ((rng.normal(size=(n, 2)).round(1), rng.integers(0, 3, n)) for _ in range(2))
    y[:6], labels[:3] = [0, 1, 2, 0, 1, 2], [0, 1, 2]
    machine = mercer.SVC(multiclass="ovr", gamma=1.0, C=10.0).fit(X, y)
    model = machine.calibrate(held, labels, cv="held-out", method="venn-abers")
    new = np.concatenate([held, rng.normal(size=(200, 2))])
    p, own, f = model.p_values(new), machine.decision_function(held), machine.decision_function(new)
    for k in range(3):
        scores = own[labels == k, k]
        ranks = (1 + (scores <= f[:, [k]]).sum(axis=1)) / (1 + len(scores))
        assert (p[:, k] >= ranks - 1e-12).all()
