"""Regularized least squares the slow way: one stacked least-squares problem per output."""

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
