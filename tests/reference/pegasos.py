"""Shalev-Shwartz's SGD for the soft margin exactly as his slides print it: dense, w formed at every step, no tricks."""

import numpy as np


def linear(X, y, lam, draws, project=False):
    """All iterates w^(1), …, w^(T + 1) of the linear algorithm, one per row, and how often each sample violated."""
    theta = np.zeros(X.shape[1])
    iterates, violations = [], np.zeros(len(X), dtype=int)
    for t, i in enumerate(draws, start=1):
        w = theta / (lam * t)
        iterates.append(w)
        if y[i] * (w @ X[i]) < 1:
            theta = theta + y[i] * X[i]
            violations[i] += 1
            if project:
                following = theta / (lam * (t + 1))
                theta = theta * min(1.0, 1 / (np.sqrt(lam) * np.linalg.norm(following)))
    iterates.append(theta / (lam * (len(draws) + 1)))
    return np.array(iterates), violations


def with_kernel(K, y, lam, draws):
    """All α^(1), …, α^(T + 1) of the kernel algorithm, one per row."""
    beta = np.zeros(len(y))
    iterates = []
    for t, i in enumerate(draws, start=1):
        alpha = beta / (lam * t)
        iterates.append(alpha)
        if y[i] * (alpha @ K[:, i]) < 1:
            beta = beta.copy()
            beta[i] += y[i]
    iterates.append(beta / (lam * (len(draws) + 1)))
    return np.array(iterates)


def output(iterates, average):
    """What the algorithm returns, of T + 1 iterates: the mean of w^(1), …, w^(T), or another choice."""
    T = len(iterates) - 1
    if average == "last":
        return iterates[T]
    start = 0
    if average == "suffix":
        start = max((2**k for k in range(64) if 2 ** (k + 1) <= T), default=0)
    return iterates[start:T].mean(axis=0)


def objective(X, y, weight, w, lam):
    """(λ/2)‖w‖² + Σ p_i hinge_i, p proportional to the weights."""
    hinge = np.maximum(0.0, 1.0 - y * (X @ w))
    return lam / 2 * (w @ w) + (weight * hinge).sum() / weight.sum()


def noisy(n=60, d=5, seed=0):
    """Rows with some zeros, and signs that no hyperplane separates."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8)
    y = np.where(X @ np.arange(1.0, d + 1) + rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y
