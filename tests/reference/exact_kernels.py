"""Kernels as their formulas in a hundred digits, from differences of the samples; nothing of mercer's.

`error_scale` says what float64 may lose of a value: its error is a few eps times this, if nothing cancelled that need
not cancel.
"""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from reference.decimals import ONE, ZERO, decimals, exp, sqrt, tanh, zeros


@dataclass(frozen=True)
class Formula:
    """A kernel by name with its numbers; `scale` times it plus `constant`."""

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    scale: float = 1.0
    constant: float = 0.0
    M: tuple = ()

    @property
    def known_psd(self):
        return self.name not in ("sigmoid", "callable") and not (self.name == "polynomial" and self.coef0 < 0)

    @property
    def of_distances(self):
        return self.name in ("gaussian", "mahalanobis", "laplacian", "matern", "gaussian + linear", "columns")

    def matrix(self, X, Z=None):
        """k(x, z) for the rows of X and of Z as Decimals."""
        X = decimals(X)
        same = Z is None
        Z = X if same else decimals(Z)
        plain = self._symmetric(X) if same else self._plain(X, Z)
        return decimals(self.scale) * plain + decimals(self.constant)

    def _symmetric(self, X):
        """Each pair once, since Decimals are slow."""
        n = len(X)
        out = np.empty((n, n), dtype=object)
        i, j = np.triu_indices(n)
        values = self._pairs(X[i], X[j])
        out[i, j] = values
        out[j, i] = values
        return out

    def _plain(self, X, Z):
        i, j = np.indices((len(X), len(Z))).reshape(2, -1)
        return self._pairs(X[i], Z[j]).reshape(len(X), len(Z))

    def _pairs(self, A, B):
        """k(a, b) for rows a of A with rows b of B, one by one."""
        gamma, coef0 = decimals(self.gamma), decimals(self.coef0)
        match self.name:
            case "linear":
                return _dots(A, B)
            case "polynomial":
                return (gamma * _dots(A, B) + coef0) ** self.degree
            case "sigmoid":
                return tanh(gamma * _dots(A, B) + coef0)
            case "cosine":
                size = sqrt(_dots(A, A)) * sqrt(_dots(B, B))
                return np.where(size > 0, _dots(A, B) / np.where(size > 0, size, ONE), ZERO)
            case "gaussian" | "callable":
                D = A - B
                return exp(-gamma * _dots(D, D))
            case "mahalanobis":
                D = A - B
                return exp(-_dots(D @ decimals(np.array(self.M)), D))
            case "laplacian":
                return exp(-gamma * np.abs(A - B).sum(axis=1))
            case "matern":  # ν = 3/2, length scale 1/√γ
                D = A - B
                t = sqrt(3 * gamma * _dots(D, D))
                return (1 + t) * exp(-t)
            case "chi2":
                total = A + B
                D = A - B
                return exp(-gamma * np.where(total > 0, D * D / np.where(total > 0, total, ONE), ZERO).sum(axis=1))
            case "anova":
                D = A - B
                return exp(-gamma * D * D).sum(axis=1)
            case "columns":  # a Gaussian of the first, and the product of the last
                D = A[:, 0] - B[:, 0]
                return exp(-gamma * D * D) + gamma * A[:, -1] * B[:, -1]
            case "gaussian + linear":
                D = A - B
                return exp(-gamma * _dots(D, D)) + gamma * _dots(A, B)
        raise ValueError(self.name)

    def error_scale(self, X, Z=None):
        """float64 array: what eps is to be multiplied by for the error of an evaluation that does not cancel."""
        X = np.asarray(X, dtype=np.longdouble)
        Z = X if Z is None else np.asarray(Z, dtype=np.longdouble)
        sizes = np.abs(X) @ np.abs(Z).T
        match self.name:
            case "linear":
                plain = sizes
            case "polynomial":
                base = self.gamma * sizes + abs(self.coef0)
                plain = self.degree * base**self.degree
            case "sigmoid":
                plain = 1 + self.gamma * sizes + abs(self.coef0)
            case "gaussian + linear" | "columns":
                plain = 1 + self.gamma * sizes
            case "anova":
                plain = np.full_like(sizes, X.shape[1])
            case _:
                plain = np.ones_like(sizes)
        return self.scale * plain + abs(self.constant)


def _dots(A, B):
    if A.shape[1] == 0:
        return zeros(len(A))
    return (A * B).sum(axis=1)


def half(value):
    return value * Decimal("0.5")
