"""Relevance vectors in the plainest way: every candidate's evidence from the full covariance matrix of the targets."""

import math

import numpy as np


def evidence(Phi, y, alpha, noise):
    """log N(y; 0, σ²I + ΣΦ_jΦ_j'/α_j)."""
    on = np.isfinite(alpha)
    C = noise * np.eye(len(y)) + (Phi[:, on] / alpha[on]) @ Phi[:, on].T
    return -0.5 * (np.linalg.slogdet(C)[1] + y @ np.linalg.solve(C, y) + len(y) * math.log(2 * math.pi))


def relevance(Phi, y, noise, gain=1e-4, same=1e-4):
    """α and σ² after one α at a time was changed to its best, the one that gains most, and σ² between such rounds."""
    alpha, changed = np.full(Phi.shape[1], math.inf), 1.0
    while True:
        least = max(gain, 0.1 * changed)
        while True:
            now, trials = evidence(Phi, y, alpha, noise), []
            for j in range(len(alpha)):
                others = alpha.copy()
                others[j] = math.inf
                on = np.isfinite(others)
                C = noise * np.eye(len(y)) + (Phi[:, on] / others[on]) @ Phi[:, on].T
                s, q = Phi[:, j] @ np.linalg.solve(C, Phi[:, j]), Phi[:, j] @ np.linalg.solve(C, y)
                if q * q > s:
                    others[j] = s * s / (q * q - s)
                trials.append((evidence(Phi, y, others, noise) - now, others))
            best = max(range(len(alpha)), key=lambda j: trials[j][0])
            if trials[best][0] <= least:
                break
            alpha = trials[best][1]
        mean, covariance = posterior(Phi, y, alpha, noise)
        on = np.isfinite(alpha)
        freedom = len(y) - np.sum(1 - alpha[on] * np.diag(covariance))
        new = np.sum((y - Phi[:, on] @ mean) ** 2) / freedom
        changed, noise = abs(math.log(new / noise)), new
        if changed <= same and least == gain:
            return alpha, noise


def posterior(Phi, y, alpha, noise):
    on = np.isfinite(alpha)
    covariance = np.linalg.inv(Phi[:, on].T @ Phi[:, on] / noise + np.diag(alpha[on]))
    return covariance @ Phi[:, on].T @ y / noise, covariance
