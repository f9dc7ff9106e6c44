"""Least squares as plainly as possible: dense bordered systems, refits for leave-one-out, matrices for GCV."""

import numpy as np


def on_landmarks(K_nm, K_mm, Y, weight, lam, bias):
    """c and b that minimise Σ w (y − K_nm c − b)² + λ c'K_mm c, and the value of half of that."""
    values, vectors = np.linalg.eigh(K_mm)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T  # root'root = K_mm
    m = K_nm.shape[1]
    s = np.sqrt(weight)[:, None]
    A = np.block([[s * K_nm, s * (1.0 if bias else 0.0)], [np.sqrt(lam) * root, np.zeros((m, 1))]])
    B = np.vstack([s * Y, np.zeros((m, Y.shape[1]))])
    if not bias:
        A = A[:, :-1]
    solution = np.linalg.lstsq(A, B, rcond=None)[0]
    value = 0.5 * np.sum((A @ solution - B) ** 2, axis=0)
    return (solution[:-1], solution[-1], value) if bias else (solution, np.zeros(Y.shape[1]), value)


def solve(K, Y, lam, weight, bias):
    """c and b of (K + λW⁻¹)c + 1b = Y, 1'c = 0, for rows of positive weight."""
    n, q = Y.shape
    A = K + np.diag(lam / weight)
    if not bias:
        return np.linalg.solve(A, Y), np.zeros(q)
    bordered = np.block([[A, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    found = np.linalg.solve(bordered, np.vstack([Y, np.zeros((1, q))]))
    return found[:-1], found[-1]


def leave_one_out(K, Y, lam, weight, bias):
    """y_i − f(x_i) where f is fitted again with one unit less of row i's weight, or without the row."""
    out = np.empty_like(Y)
    for i in range(len(Y)):
        left = weight.copy()
        left[i] -= min(1.0, weight[i])
        keep = left > 1e-12
        c, b = solve(K[np.ix_(keep, keep)], Y[keep], lam, left[keep], bias)
        out[i] = Y[i] - K[i, keep] @ c - b
    return out


def hat(K, lam, weight, bias):
    """H with f = Hy on the rows."""
    n = len(K)
    c, b = solve(K, np.eye(n), lam, weight, bias)
    return K @ c + b


def objective(K, c, b, Y, lam, weight):
    """Σ w (y − f)² + λ‖f‖² per output."""
    f = K @ c + b
    return weight @ (Y - f) ** 2 + lam * np.einsum("iq,ij,jq->q", c, K, c)
