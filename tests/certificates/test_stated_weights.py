"""The claims hold for the rows, weights and C that the caller gave, in fractions: sums of weights are rounded, C·w too.

K is a product of small integers, and so exact. Every optimum here is known: all coefficients are at their bounds.
"""

from fractions import Fraction

import numpy as np
import pytest
import sklearn.svm

import mercer
from mercer import SVC, SVDD, SVR, NuSVR, OneClassSVM, QuantileSVR

UGLY = [0.1, 0.3, 1 / 3, 0.7, 1e-3, 1.1, 2 / 3, 0.2]


def weights_of(seed, n):
    """Weights of n copies of a sample whose sum float64 rounds often; of many, always to the same side."""
    rng = np.random.default_rng(seed)
    if n > 100:
        return np.full(n, rng.choice(UGLY))
    return rng.choice(UGLY, n) * rng.choice([1.0, 1e-5, 3.0], n)


def fractions(values):
    return [Fraction(float(value)) for value in values]


def coefficients(model, n):
    out = np.zeros(n)
    out[model.support_] = np.ravel(model.dual_coef_)
    return fractions(out)


def two_sides(seed, copies):
    """Copies of 1 and of −1 with the same weights on both sides; their sum is W each."""
    w = weights_of(seed, copies)
    X = np.r_[np.ones(copies), -np.ones(copies)][:, None]
    return X, np.tile(w, 2), sum(fractions(w))


def norm_and_values(model, X, b):
    """½β'Kβ and f of each row for the published coefficients."""
    x, beta = fractions(X.ravel()), coefficients(model, len(X))
    slope = sum(a * c for a, c in zip(x, beta, strict=True))
    return slope * slope / 2, [slope * a + b for a in x]


def soft_margin(X, y, w, C, model):
    half, f = norm_and_values(model, X, Fraction(model.certificate_.b[0]))
    sides = [1 if one else -1 for one in y]
    return half + Fraction(C) * sum(v * max(0, 1 - s * g) for v, s, g in zip(fractions(w), sides, f, strict=True))


def squares(X, y, w, C, model):
    half, f = norm_and_values(model, X, Fraction(model.certificate_.b[0]))
    sides = [1 if one else -1 for one in y]
    losses = [v * max(0, 1 - s * g) ** 2 for v, s, g in zip(fractions(w), sides, f, strict=True)]
    return half + Fraction(C) * sum(losses) / 2


def holds(proof, primal, best):
    assert Fraction(proof.primal) >= primal
    assert Fraction(proof.dual) <= best
    assert Fraction(proof.gap) >= primal - best


COPIES = [1, 2, 7, 60, 1500]


@pytest.mark.parametrize("copies", COPIES)
@pytest.mark.parametrize("seed", range(6))
def test_soft_margins(seed, copies):
    X, w, W = two_sides(seed, copies)
    y = (X.ravel() > 0).astype(int)
    C = float(np.random.default_rng(seed).uniform(0.1, 0.4) / float(W))
    model = SVC(C=C, kernel="linear", tol=1e-10).fit(X, y, sample_weight=w)
    mass = 2 * Fraction(C) * W
    holds(model.certificate_, soft_margin(X, y, w, C, model), mass - mass * mass / 2)
    proof = mercer.certify(model, X, y, sample_weight=w)
    holds(proof, mass - mass * mass / 2, mass - mass * mass / 2)
    rival = sklearn.svm.SVC(C=C, kernel="linear", tol=1e-10).fit(X, y, sample_weight=w)
    holds(mercer.certify(rival, X, y, sample_weight=w), mass - mass * mass / 2, mass - mass * mass / 2)
    squared = SVC(C=C, kernel="linear", slack="l2", tol=1e-10).fit(X, y, sample_weight=w)
    a = Fraction(C) * W / (1 + 2 * Fraction(C) * W)  # of each side
    holds(squared.certificate_, squares(X, y, w, C, squared), 2 * a - 2 * a * a - a * a / (Fraction(C) * W))


@pytest.mark.parametrize("multiclass", ["crammer-singer", "weston-watkins"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("copies", COPIES)
@pytest.mark.parametrize("seed", range(6))
def test_joint_machines(seed, copies, bias, multiclass):
    """Three classes, each with a feature of its own: every multiplier is at its bound."""
    w = weights_of(seed, copies)
    W, X, y = sum(fractions(w)), np.repeat(np.eye(3), copies, axis=0), np.repeat(np.arange(3), copies)
    C = float(np.random.default_rng(seed).uniform(0.05, 0.15) / float(W))
    model = SVC(C=C, kernel="linear", multiclass=multiclass, bias=bias, tol=1e-10).fit(
        X, y, sample_weight=np.tile(w, 3)
    )
    # At α = a of each wrong class w_k = (2a, −a, −a): f of the label is ahead by 3a < 1, so that every loss is open.
    a = Fraction(C) * W * (Fraction(1, 2) if multiclass == "crammer-singer" else 1)
    assert 3 * a < 1
    beta = np.zeros((3, 3 * copies))
    beta[:, model.support_] = model.dual_coef_
    slopes = [[sum(fractions(row[k * copies : (k + 1) * copies])) for k in range(3)] for row in beta]
    b = fractions(model.certificate_.b)
    margins = [[1 - slopes[k][k] - b[k] + slopes[q][k] + b[q] for q in range(3) if q != k] for k in range(3)]
    losses = [max(0, *m) if multiclass == "crammer-singer" else sum(max(0, v) for v in m) for m in margins]
    primal = sum(v * v for row in slopes for v in row) / 2 + Fraction(C) * W * sum(losses)
    holds(model.certificate_, primal, 6 * a - 9 * a * a)


@pytest.mark.parametrize("copies", COPIES)
@pytest.mark.parametrize("seed", range(6))
def test_regression(seed, copies):
    """Targets ±t, whose distance from a tube of width ε is rounded too."""
    X, w, W = two_sides(seed, copies)
    rng = np.random.default_rng(seed)
    t, epsilon = float(rng.uniform(1, 2)), 0.1
    C = float(rng.uniform(0.1, 0.4) / float(W))
    y = t * X.ravel()
    mass, far = 2 * Fraction(C) * W, Fraction(t) - Fraction(epsilon)

    def value(model, loss):
        half, f = norm_and_values(model, X, Fraction(model.certificate_.b[0]))
        parts = [v * loss(Fraction(a) - g) for v, a, g in zip(fractions(w), y.tolist(), f, strict=True)]
        return half + Fraction(C) * sum(parts)

    model = SVR(C=C, epsilon=epsilon, kernel="linear", tol=1e-10).fit(X, y, sample_weight=w)
    best = mass * far - mass * mass / 2
    holds(model.certificate_, value(model, lambda r: max(0, abs(r) - Fraction(epsilon))), best)
    rival = sklearn.svm.SVR(C=C, epsilon=epsilon, kernel="linear", tol=1e-10).fit(X, y, sample_weight=w)
    holds(mercer.certify(rival, X, y, sample_weight=w), best, best)
    model = SVR(C=C, loss="huber", delta=0.1, kernel="linear", tol=1e-10).fit(X, y, sample_weight=w)
    delta = Fraction(0.1)  # |β| is at most δCw
    holds(
        model.certificate_,
        value(model, lambda r: delta * (abs(r) - delta / 2)),
        delta * mass * (Fraction(t) - delta / 2) - (delta * mass) ** 2 / 2,
    )
    model = QuantileSVR(C=C, quantiles=0.3, kernel="linear", bias=False, tol=1e-10).fit(X, y, sample_weight=w)
    model.certificate_.__dict__["b"] = (0.0,)
    tau = Fraction(0.3)
    own = Fraction(C) * W  # τ of one side, 1 − τ of the other
    holds(model.certificate_, value(model, lambda r: max(tau * r, (tau - 1) * r)), own * Fraction(t) - own * own / 2)
    model = NuSVR(C=C, nu=1.0, kernel="linear", tol=1e-10).fit(X, y, sample_weight=w)
    proof, total = model.certificate_, Fraction(C) * W  # ε = 0 at ν = 1, and Σβ of each copy is νCW
    half, f = norm_and_values(model, X, (Fraction(proof.b[0]) + Fraction(proof.b[1])) / 2)
    tube = (Fraction(proof.b[0]) - Fraction(proof.b[1])) / 2
    losses = [v * max(0, abs(Fraction(a) - g) - tube) for v, a, g in zip(fractions(w), y.tolist(), f, strict=True)]
    assert Fraction(proof.primal) >= half + 2 * total * tube + Fraction(C) * sum(losses)
    assert Fraction(proof.dual) <= 2 * total * Fraction(t) - 2 * total * total


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("nu", [0.1, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("copies", COPIES)
@pytest.mark.parametrize("seed", range(6))
def test_novelty(seed, copies, nu):
    """The nearest samples are taken first, each up to its weight; samples are 1, 2 and 3."""
    w = weights_of(seed, 3 * copies)
    X = np.repeat([1.0, 2.0, 3.0], copies)[:, None]
    parts = [sum(fractions(w[k * copies : (k + 1) * copies])) for k in range(3)]
    total = left = Fraction(nu) * sum(parts)
    slope = Fraction(0)
    for x, part in zip((1, 2, 3), parts, strict=True):
        slope, left = slope + x * min(part, left), left - min(part, left)
    model = OneClassSVM(nu=nu, kernel="linear", tol=1e-10).fit(X, sample_weight=w)
    b = Fraction(model.certificate_.b[0])
    half, f = norm_and_values(model, X, b)
    primal = half + sum(v * max(0, -g) for v, g in zip(fractions(w), f, strict=True)) + b * total
    holds(model.certificate_, primal, -slope * slope / 2)
    ball = SVDD(nu=nu, kernel="linear", tol=1e-10).fit(X, sample_weight=w)
    b = Fraction(ball.certificate_.b[0])
    half, f = norm_and_values(ball, X, b)
    losses = sum(v * max(0, x * x / 2 - g) for v, x, g in zip(fractions(w), fractions(X.ravel()), f, strict=True))
    assert Fraction(ball.certificate_.primal) >= half + losses / total + b
