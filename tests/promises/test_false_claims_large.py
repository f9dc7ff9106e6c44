"""The same attempts on thousands of rows, where certificates use float32 values: few remote rows among many.

Kernel values here come from differences in float64, and sums are longer than float64's where the platform has that: a
certificate to 1e-3 or 1e-5 is held to numbers that err by less than 1e-9.
"""

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mercer import SVC, SVR


def remote_rows(seed, n, d, distance, count):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:count] = 0.05 * rng.normal(size=(count, d))
    X[:count, 1] += distance
    return rng, X


def field(X, support, beta, gamma, power=2):
    """Σ β_j k(x_j, x_i), a strip of rows at a time."""
    metric = "sqeuclidean" if power == 2 else "cityblock"
    strips = [
        (np.exp(-gamma * cdist(X[i : i + 500], X[support], metric)) * beta).astype(np.longdouble).sum(axis=1)
        for i in range(0, len(X), 500)
    ]
    return np.concatenate(strips)


def ends(h, beta, lower, upper):
    return float(h[beta < upper].max() - h[beta > lower].min())


CASES = [  # seed, rows, columns, distance, remote rows, C, γ, tol, type
    (1, 4300, 3, 300.0, 3, 10.0, 0.3, 1e-3, "f8"),
    *(
        pytest.param(seed, 6000, 10, distance, 3, 10.0, 0.3, 1e-3, kind, marks=pytest.mark.thorough)
        for seed in range(4)
        for distance, kind in ((300.0, "f8"), (1000.0, "f8"), (1000.0, "f4"))
    ),
    *(
        pytest.param(9, 5000, 5, distance, count, C, 0.3, tol, "f8", marks=pytest.mark.thorough)
        for distance, count, C, tol in ((1e5, 1, 1.0, 1e-3), (1e8, 12, 10.0, 1e-3), (30.0, 60, 100.0, 1e-5))
    ),
]


@pytest.mark.parametrize(("seed", "n", "d", "distance", "count", "C", "gamma", "tol", "kind"), CASES)
def test_a_classifier_with_remote_rows(seed, n, d, distance, count, C, gamma, tol, kind):
    rng, X = remote_rows(seed, n, d, distance, count)
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    y[:count] = 1
    given = X.astype(kind)
    X = given.astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SVC(C=C, gamma=gamma, tol=tol).fit(given, y)
    proof, s = model.certificate_, np.where(y, 1.0, -1.0)
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_[0]
    u = field(X, model.support_, model.dual_coef_[0], gamma)
    h, upper, lower = s - u, np.where(y, C, 0.0), np.where(y, 0.0, -C)
    assert ends(h, beta, lower, upper) <= proof.violation + 1e-9 * C
    r = h - proof.b[0]
    primal = 0.5 * beta @ u + (np.where(r > 0, upper, lower) * r).sum()
    dual = s @ beta - 0.5 * beta @ u
    size = abs(primal) + abs(dual)
    assert primal - dual <= proof.gap + 1e-12 * size
    assert proof.primal - proof.dual <= proof.gap
    assert abs(primal - proof.primal) <= proof.gap + 1e-9 * size
    assert proof.violation <= tol or not model.converged_


@pytest.mark.thorough
@pytest.mark.parametrize("distance", [300.0, 1e4])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_a_regression_with_remote_rows(kernel, distance):
    C, gamma, epsilon, n = 1.0, 0.3, 0.1, 4500
    rng, X = remote_rows(3, n, 4, distance, 3)
    t = np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SVR(C=C, gamma=gamma, epsilon=epsilon, kernel=kernel).fit(X, t)
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_[0]
    u = field(X, model.support_, model.dual_coef_[0], gamma, 2 if kernel == "rbf" else 1)
    above, below = np.maximum(beta, 0.0), np.minimum(beta, 0.0)
    both, zero = np.r_[above, below], np.zeros(n)
    h = np.r_[t - epsilon - u, t + epsilon - u]
    assert ends(h, both, np.r_[zero, zero - C], np.r_[zero + C, zero]) <= model.certificate_.violation + 1e-9


def test_a_float32_prediction_far_from_the_centre():
    """The rounding of a sample's own norm moves all its kernel values alike, and thousands of coefficients add up."""
    rng = np.random.default_rng(0)
    X = 0.3 * rng.normal(size=(4000, 2))
    X[::2, 0] += 150.0
    X = X.astype(np.float32)
    model = SVC(C=1e-3, gamma=1.0, bias=False).fit(X, rng.random(4000) > 0.1)
    beta, some = model.dual_coef_[0], X[:300].astype(float)
    truth = np.exp(-cdist(some, model.support_vectors_.astype(float), "sqeuclidean")) @ beta
    assert np.abs(model.decision_function(X[:300]) - truth).max() < 2e-4
