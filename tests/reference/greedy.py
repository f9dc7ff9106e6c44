"""Kernel feature analysis and the incomplete Cholesky factor, with functions as plain lists of coefficients."""

import numpy as np


def inchol(K, tol, most):
    """Pivots by the largest diagonal of what is left of K, which is updated as a whole."""
    rest, columns, pivots = K.copy(), [], []
    while len(pivots) < most and rest.diagonal().max() > tol:
        j = int(np.argmax(rest.diagonal()))
        column = rest[:, j] / np.sqrt(rest[j, j])
        columns.append(column)
        pivots.append(j)
        rest = rest - np.outer(column, column)
    return np.array(columns).T, pivots


def kfa(K, features, normalise=True):
    """Gram–Schmidt on k(x_c, ·): candidates as coefficient vectors over all samples; the largest deviation first."""
    n = len(K)
    candidates = np.eye(n)
    taken, found = [], []
    for _ in range(features):
        deviations = [-1.0 if c in taken else np.std(K @ candidates[c]) for c in range(n)]
        c = int(np.argmax(deviations))
        v = candidates[c].copy()
        taken.append(c)
        found.append(v)
        for a in range(n):
            candidates[a] = candidates[a] - (candidates[a] @ K @ v) / (v @ K @ v) * v
            if normalise and a not in taken:
                candidates[a] = candidates[a] / np.abs(candidates[a]).sum()
    return np.array(found), taken
