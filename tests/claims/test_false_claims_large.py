"""The same attempts on thousands of rows, where certificates use float32 values: few remote rows among many.

Kernel values here come from differences in float64, and sums are longer than float64's where the platform has that: a
certificate to 1e-3 or 1e-5 is held to numbers that err by less than 1e-9.
"""

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone

from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM, QuantileSVR


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
    assert primal <= proof.primal + 1e-14 * size
    assert dual >= proof.dual - 1e-14 * size
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


# The linear term, the bounds, the sums (with their group, if there are two) and d of every machine's dual, for C = 1.
def dual_of(name, model, s, t):
    n, zero = len(t), np.zeros(len(t))
    twice, both = np.tile(np.arange(n), 2), np.repeat([0, 1], n)
    match name:
        case "SVC" | "SVC, regularised" | "SVC without b":
            return s, np.minimum(s, 0), np.maximum(s, 0), np.arange(n), 0 * twice[:n], zero
        case "SVC, l2":
            return s, np.where(s > 0, 0, -np.inf), np.where(s > 0, np.inf, 0), np.arange(n), 0 * twice[:n], zero + 1
        case "NuSVC":
            C = model.equivalent_C_  # a number for two classes
            return zero, C * np.minimum(s, 0), C * np.maximum(s, 0), np.arange(n), np.where(s > 0, 0, 1), zero
        case "SVR":
            return (
                np.r_[t - 0.1, t + 0.1],
                np.r_[zero, zero - 1],
                np.r_[zero + 1, zero],
                twice,
                0 * both,
                np.r_[zero, zero],
            )
        case "SVR, huber":
            return t, zero - 0.5, zero + 0.5, np.arange(n), 0 * twice[:n], zero + 1
        case "NuSVR":
            return np.r_[t, t], np.r_[zero, zero - 1], np.r_[zero + 1, zero], twice, both, np.r_[zero, zero]
        case "QuantileSVR":
            return t, zero - 0.7, zero + 0.3, np.arange(n), 0 * twice[:n], zero
        case "OneClassSVM":
            return zero, zero, zero + 1, np.arange(n), 0 * twice[:n], zero
    raise ValueError(name)


MACHINES = {
    "SVC": (SVC(), (0.0,)),
    "SVC without b": (SVC(bias=False), ()),
    "SVC, regularised": (SVC(bias="regularized"), ()),
    "SVC, l2": (SVC(slack="l2"), (0.0,)),
    "NuSVC": (NuSVC(nu=0.75), None),
    "SVR": (SVR(), (0.0,)),
    "SVR, huber": (SVR(loss="huber", delta=0.5), (0.0,)),
    "NuSVR": (NuSVR(nu=0.3), None),
    "QuantileSVR": (QuantileSVR(0.3), (0.0,)),
    "OneClassSVM": (OneClassSVM(nu=0.2), (0.2 * 4200,)),
}
FEW = ("SVC", "SVC, regularised", "SVR", "OneClassSVM")


@pytest.mark.parametrize(
    "name", [name if name in FEW else pytest.param(name, marks=pytest.mark.thorough) for name in MACHINES]
)
def test_primal_and_dual_enclose_the_optimum_of_thousands_of_rows(name):
    """Values from float32 rows were right to 1e-8 only, and `dual` was above the dual value."""
    rng, n, gamma = np.random.default_rng(0), 4200, 0.3
    X = rng.normal(size=(n, 3))
    s, t = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0), np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)
    model, totals = MACHINES[name]
    model = clone(model).set_params(gamma=gamma)
    model.fit(X) if name == "OneClassSVM" else model.fit(X, s if "SVC" in name else t)
    proof, sums = model.certificate_, np.zeros(n, dtype=np.longdouble)
    sums[model.support_] = np.ravel(model.dual_coef_)
    u = field(X, model.support_, np.ravel(model.dual_coef_), gamma) + sums.sum() * (name == "SVC, regularised")
    p, lower, upper, row, group, d = dual_of(name, model, s, t)
    beta = sums if len(p) == n else np.r_[np.maximum(sums, 0), np.minimum(sums, 0)]
    if totals is None:
        totals = 0.5 * model.nu * n * np.array([upper.max(), lower.min()])
    b = np.array(proof.b, dtype=np.longdouble)
    r = p - u[row] - (b[group] if len(b) else 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.where(d > 0, np.clip(r / d, lower, upper), np.where(r > 0, upper, lower))
    energy = sums @ u
    primal = energy / 2 + np.where(r == 0, 0, r * best - d * best**2 / 2).sum() + (b * totals).sum()
    dual = p @ beta - energy / 2 - (d * beta**2).sum() / 2
    size = 1e-14 * (abs(primal) + abs(dual))  # values here are from float64 kernel values
    assert dual - size <= primal
    assert proof.dual <= dual + size
    assert primal <= proof.primal + size
    assert primal - dual <= proof.gap + size
    assert proof.primal - proof.dual <= proof.gap <= 1e-3 * abs(proof.dual) + 1e-3
    assert "float32" in proof.precision or name in ("SVC, l2", "SVR, huber", "QuantileSVR", "NuSVR")


@pytest.mark.parametrize("bias", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("way", ["crammer-singer", pytest.param("weston-watkins", marks=pytest.mark.thorough)])
def test_primal_and_dual_of_joint_machines_are_bounds_too(way, bias):
    rng, n, gamma, C = np.random.default_rng(1), 4200, 0.5, 1.0
    X = rng.normal(size=(n, 2))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=n), [-0.5, 0.5])
    model = SVC(C=C, gamma=gamma, multiclass=way, bias=bias).fit(X, y)
    proof, beta, own = model.certificate_, np.zeros((n, 3), dtype=np.longdouble), (np.arange(n), y)
    beta[model.support_] = model.dual_coef_.T
    u = np.column_stack([field(X, model.support_, row, gamma) for row in model.dual_coef_])
    e = u + (np.array(proof.b, dtype=np.longdouble) if bias else 0) + 1
    e[own] -= 1
    over = e - e[own][:, None]
    loss = over.max(axis=1) if way == "crammer-singer" else np.maximum(over, 0).sum(axis=1)
    energy = (beta * u).sum()
    primal, dual = energy / 2 + C * loss.sum(), beta[own].sum() - energy / 2
    size = 1e-14 * (abs(primal) + abs(dual))
    assert proof.dual <= dual + size
    assert primal <= proof.primal + size
    assert primal - dual <= proof.gap + size
    assert proof.precision.startswith("float32")


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
