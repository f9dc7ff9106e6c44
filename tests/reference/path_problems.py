"""Small two-class problems with everything that makes a path degenerate."""

import numpy as np

KINDS = ("integers", "copies", "integer linear", "weights", "polynomial", "linear", "extreme scale", "singular matrix")


def random_problem(seed):
    """X, y, weights and SVC's parameters without C; the kind goes by the seed."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    n, d = int(rng.integers(2, 60)), int(rng.integers(1, 6))
    y = np.where(rng.random(n) < rng.choice([0.5, 0.2, 0.8]), 1, -1)
    y[0], y[-1] = 1, -1
    X = rng.normal(size=(n, d))
    X[:, 0] += 0.7 * y
    weight, kernel = np.ones(n), "rbf"
    if kind == "integers":
        X = np.round(X)
    elif kind == "copies":
        X = X[rng.integers(0, max(1, n // 3), n)]
    elif kind == "integer linear":
        X, kernel = np.round(2 * X), "linear"
    elif kind == "weights":
        weight = rng.choice([0.0, 0.5, 1.0, 2.0, 3.0], n)
        weight[0] = weight[-1] = 1.0
    elif kind == "polynomial":
        kernel = "poly"
    elif kind == "linear":
        kernel = "linear"
    elif kind == "extreme scale":
        X = X * 10.0 ** rng.integers(-4, 5)
    else:
        whole = np.round(X)
        X, kernel = whole @ whole.T, "precomputed"
    bias = [True, True, False, "regularized"][rng.integers(4)]
    options = {"kernel": kernel, "bias": bias}
    if kernel != "precomputed":
        options |= {"gamma": 0.5, "degree": 2, "coef0": 1.0}
    return X, y, weight, options, rng
