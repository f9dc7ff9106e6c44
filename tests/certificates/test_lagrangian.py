"""The Lagrangian of a fit: its formula, the saddle-point inequalities and Slater's condition (Igel 3, Li 2.2)."""

import pickle

import numpy as np
import pytest

from mercer import SVC, Certificate
from mercer.kernels import Gaussian

rng = np.random.default_rng(2)
X = rng.normal(size=(50, 2))
Y = np.where(X[:, 0] + 0.6 * rng.normal(size=50) > 0, 1, -1)
APART = X[np.abs(X[:, 0]) > 0.2]
SIDES = np.where(APART[:, 0] > 0, 1, -1)
KERNEL = Gaussian(gamma=0.4)
CASES = {
    "soft": ({"C": 2.0}, X, Y),
    "2-norm": ({"C": 2.0, "slack": "l2"}, X, Y),
    "hard": ({"C": np.inf}, APART, SIDES),
    "hard, far away": ({"C": np.inf, "kernel": "linear"}, APART + 50.0, SIDES),
    "no bias": ({"C": 2.0, "bias": False}, X, Y),
    "regularised bias": ({"C": 2.0, "bias": "regularized"}, X, Y),
    "class weights": ({"C": 2.0, "class_weight": {1: 3.0, -1: 1.0}}, X, Y),
}


def fitted(name):
    options, samples, labels = CASES[name]
    model = SVC(**{"kernel": KERNEL, "tol": 1e-9, **options}).fit(samples, labels)
    return model, model.certificate_.lagrangian, samples, labels


@pytest.mark.parametrize("name", CASES)
def test_it_is_the_formula_with_the_multipliers_of_the_fit(name):
    model, L, samples, labels = fitted(name)
    np.testing.assert_array_equal(L.y, labels[L.rows])
    beta = np.zeros(len(labels))
    beta[model.support_] = model.dual_coef_[0]
    np.testing.assert_allclose(L.alpha, np.abs(beta)[L.rows], atol=1e-12)
    f = model.decision_function(samples)[L.rows]
    np.testing.assert_allclose(L.f + L.b, f, atol=1e-6)
    if name in ("soft", "2-norm", "hard", "class weights"):
        assert L.b == model.intercept_[0]
        assert L.square == pytest.approx(beta @ KERNEL(samples) @ beta, rel=1e-9)
    w2, C = L.square, L.C
    expected = {
        "l1": lambda: 0.5 * w2 + C @ L.xi - L.alpha @ (L.y * f - 1 + L.xi) - (C - L.alpha) @ L.xi,
        "l2": lambda: 0.5 * w2 + 0.5 * C @ L.xi**2 - L.alpha @ (L.y * f - 1 + L.xi),
        "none": lambda: 0.5 * w2 - L.alpha @ (L.y * f - 1),
    }[L.slack]()
    assert L() == pytest.approx(expected, rel=1e-6)
    least, value, most = L.saddle
    proof = model.certificate_
    assert least == pytest.approx(proof.dual, rel=1e-6)
    assert most == pytest.approx(proof.primal, rel=1e-6)
    assert least - 1e-6 * most <= value <= most * (1 + 1e-6)
    for products in L.complementarity.values():
        np.testing.assert_allclose(products, 0.0, atol=1e-6 * max(1.0, np.abs(L.alpha).max()))
    assert abs(L.stationarity["b"]) < 1e-9
    assert L.stationarity["ξ"] < 1e-6
    assert L.slater == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("name", ["soft", "2-norm", "hard", "no bias"])
def test_saddle_point_inequalities(name):
    """No other multipliers make L larger, and no other point makes it smaller (Igel, lemma 3.5)."""
    _, L, samples, _ = fitted(name)
    value, n = L(), len(L.y)
    K = KERNEL(samples[L.rows])
    for scale in (1e-3, 0.1, 3.0):
        alpha, r = (np.abs(scale * rng.normal(size=n)) for _ in range(2))
        if L.slack != "l1":
            r = np.zeros(n)
        assert L(alpha=alpha, r=r) <= value + 1e-6
        c = L.y * L.alpha + scale * rng.normal(size=n)
        b = L.b + scale * rng.normal() * L.free
        xi = np.zeros(n) if L.slack == "none" else L.xi + scale * rng.normal(size=n)
        assert L(f=K @ c, square=c @ K @ c, b=b, xi=xi) >= value - 1e-6
    with pytest.raises(ValueError, match="both"):
        L(f=L.f)
    with pytest.raises(ValueError, match=f"{n} numbers"):
        L(alpha=[1.0])


def test_slaters_condition_fails_where_nothing_is_strictly_separated():
    _, L, _, _ = fitted("hard")
    touching = type(L)(**{**vars(L), "f": 0.0 * L.f, "b": 0.0})
    assert touching.slater < 0
    assert touching.saddle[2] == np.inf


def test_copies_are_one_sample_and_several_classes_have_none():
    model = SVC(kernel=KERNEL, tol=1e-9).fit(np.vstack([X, X[:10]]), np.append(Y, Y[:10]))
    L = model.certificate_.lagrangian
    assert len(L.y) == 50
    assert sorted(L.C) == [1.0] * 40 + [2.0] * 10
    assert L.saddle[0] == pytest.approx(model.certificate_.dual, rel=1e-7)
    assert SVC().fit(X, np.digitize(X[:, 0], [-0.5, 0.5])).certificate_.lagrangian is None
    again = pickle.loads(pickle.dumps(model.certificate_))
    assert again == model.certificate_
    assert again.lagrangian is None
    assert Certificate.from_dict(model.certificate_.to_dict()) == model.certificate_
    assert repr(L).startswith("Lagrangian(50 samples: dual")


def test_values_of_ones_own_are_in_the_order_of_the_rows():
    model, L, samples, labels = fitted("soft")
    np.testing.assert_array_equal(L.rows, np.arange(len(labels)))
    np.testing.assert_array_equal(L.y, labels)
    alpha, r = rng.random(len(labels)), rng.random(len(labels))
    f = model.decision_function(samples)
    xi = np.maximum(0, 1 - labels * f)
    expected = 0.5 * model.rkhs_norm_**2 + 2.0 * xi.sum() - alpha @ (labels * f - 1 + xi) - r @ xi
    assert L(alpha=alpha, r=r) == pytest.approx(expected, rel=1e-6)
