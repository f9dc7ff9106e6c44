"""Samples on which kernel values, sums and norms cancel: what the world holds, and what a careless formula loses."""

import numpy as np
from scipy import sparse

FAMILIES = (
    "clean",
    "clusters",
    "one outlier",
    "three outliers",
    "mixed units",
    "time stamps",
    "near duplicates",
    "huge or tiny",
    "offset",
    "sparse with offset",
    "constant columns",
    "repeated rows",
)


def samples(family, n, d, exponent, seed):
    """(X, typical distance between neighbours, the plain samples from which targets are made); exponent in 0..15."""
    rng = np.random.default_rng([seed, 1])
    plain = rng.normal(size=(n, d))
    X, width, far = plain.copy(), 1.0, 10.0**exponent
    match family:
        case "clusters":
            X += far * rng.integers(0, 1 + rng.integers(1, 3), n)[:, None] * rng.choice([1.0, -1.0, 0.0], d)
            X[::2] += far
        case "one outlier":
            X[rng.integers(n)] += far * rng.normal(size=d)
        case "three outliers":
            X[:3] *= 0.05
            X[:3, rng.integers(d)] += far
        case "mixed units":
            X *= 10.0 ** rng.uniform(-exponent / 2, exponent / 2, d)
        case "time stamps":
            X[:, 0] = np.floor(1.7e9 + rng.uniform(0, 3600, n))
            X[rng.choice(n, min(3, n // 3), replace=False), 0] = 0.0
            width = 10.0 if exponent > 7 else 1.0
        case "near duplicates":
            half = n // 2
            X[half : 2 * half] = X[:half] * (1 + 10.0 ** -(exponent + 1.0) * rng.normal(size=(half, d)))
        case "huge or tiny":
            width = 10.0 ** (rng.choice([-10, 10]) * exponent)
            X *= width
        case "offset":
            X += far * rng.choice([1.0, -1.0], d)
        case "sparse with offset":
            X = np.where(rng.random((n, d)) < 0.4, X + far * (rng.random((n, d)) < 0.5), 0.0)
        case "constant columns":
            X[:, 0] = far
            X[:, -1] = 0.0
        case "repeated rows":
            X = X[rng.integers(0, 1 + n // 2, n)]
            plain = X
    return X, width, plain


def labels(plain, n_classes, seed):
    """Classes 0, 1, … that a smooth rule with noise gives, every one present."""
    rng = np.random.default_rng([seed, 2])
    score = plain[:, 0] + 0.5 * plain[:, -1] ** 2 + 0.5 * rng.normal(size=len(plain))
    y = np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)
    y[: 2 * n_classes] = np.tile(np.arange(n_classes), 2)[: len(y)]
    return y


def targets(plain, scale, seed):
    """Real numbers of about the given size."""
    rng = np.random.default_rng([seed, 3])
    return scale * (np.sin(plain[:, 0]) + 0.3 * plain[:, -1] + 0.2 * rng.normal(size=len(plain)))


def weights(kind, n, seed):
    """None, numbers around 1, numbers over eight orders of magnitude, or repetitions with some rows left out."""
    rng = np.random.default_rng([seed, 4])
    match kind:
        case "mild":
            return rng.uniform(0.5, 2.0, n)
        case "wide":
            return 10.0 ** rng.uniform(-4, 4, n)
        case "repetitions":
            drawn = rng.integers(0, 4, n).astype(float)
            drawn[: min(n, 8)] = 1.0
            return drawn
    return None


def given(X, dtype, as_csr):
    """X as a user would hand it over, and what it then is as float64."""
    with np.errstate(over="ignore"):  # to infinity, which a fit refuses
        X = np.asarray(X, dtype=dtype)
    return (sparse.csr_matrix(X) if as_csr else X), X.astype(np.float64)
