"""All n leave-one-out functions of least squares, from one inverse.

c and b solve [K + λW⁻¹, 1; 1', 0] [c; b] = [y; 0]. With M the inverse of this matrix, the function without sample i is

    f₋ᵢ(x) = f(x) − (cᵢ / Mᵢᵢ) (M [k_x; 1])ᵢ,      and   yᵢ − f₋ᵢ(xᵢ) = cᵢ / Mᵢᵢ.

Without a bias there is no last row and column. With λ = 0 and more samples than dimensions of the feature space, which
is ordinary least squares, cᵢ and Mᵢᵢ grow like 1/λ; their ratio is the residual over 1 − hᵢ, hᵢ = ∂f(xᵢ)/∂yᵢ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh, lu_factor, lu_solve

from mercer.estimators.fitting.pipeline.fit import read_samples
from mercer.kernels import Kernel
from mercer.samples import checks
from mercer.samples.arrays import Floats, megabytes, n_samples

# Smallest eigenvalue relative to the largest, and smallest 1 − h of a sample: smaller values would magnify rounding.
_SMALLEST_SHARE = 1e-9
# Largest allowed difference from the machine's own values, as a share of the spread of y.
_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class LeaveOneOutFunctions:
    """The n leave-one-out functions of kernel least squares."""

    kernel: Kernel
    vectors: Any  # training samples; None for a precomputed kernel
    inverse: Floats
    c: Floats
    b: float
    residuals: Floats

    @classmethod
    def of(cls, machine: Any, X: Any, y: Floats, sample_weight: Any) -> LeaveOneOutFunctions:
        """Compute the functions of a fitted RLSRegressor from its training samples."""
        X = read_samples(machine, X, machine.kernel_, reset=False)
        n, lam, has_bias = n_samples(X), float(machine.lam), bool(machine.bias)
        n_bytes = 3 * 8 * (n + 1) ** 2
        if n_bytes > machine.cache_size * 1e6:
            raise MemoryError(
                f"leaving out each of {n} samples takes about {megabytes(n_bytes)}, more than "
                f"cache_size={machine.cache_size:g}; use a number of folds, or raise cache_size"
            )
        weight = checks.weights(sample_weight, n)
        if not (weight > 0).all():
            raise ValueError("cv='leave-one-out' needs positive weights; remove samples of weight 0")
        vectors = None if machine.kernel_.accepts == "gram" else X
        K = np.asarray(X if vectors is None else machine.kernel_(X, X), dtype=np.float64)
        inverse = None if lam > 0 else _ridgeless_inverse(K, weight, has_bias)
        if inverse is None:
            inverse = _bordered_inverse(K, lam / weight, has_bias)
            solution = inverse[:, :n] @ y
            residuals = solution[:n] / np.diag(inverse)[:n]
        else:
            solution = inverse[:, :n] @ y
            residuals = _ridgeless_residuals(K, inverse, y, machine._decision(X)[:, 0])
        return cls(machine.kernel_, vectors, inverse, solution[:n], float(solution[n:].sum()), residuals)

    def __call__(self, X: Any) -> Floats:
        """Return the values of all functions, a row for each x and a column for each sample left out."""
        k = np.asarray(X if self.vectors is None else self.kernel(X, self.vectors), dtype=np.float64)
        f = k @ self.c + self.b
        if len(self.inverse) > len(self.c):
            k = np.column_stack([k, np.ones(len(k))])
        return f[:, None] - (k @ self.inverse[:, : len(self.c)]) * self.residuals


def _bordered_inverse(K: Floats, ridge: Floats, bias: bool) -> Floats:
    """Return the inverse of [K + diag(ridge), 1; 1', 0], or of K + diag(ridge) without a bias."""
    n = len(K)
    size = n + bias
    A = np.zeros((size, size))
    A[:n, :n] = K
    A[np.arange(n), np.arange(n)] += ridge
    A[n:, :n] = A[:n, n:] = 1.0
    return np.asarray(lu_solve(lu_factor(A, overwrite_a=True), np.eye(size)))


def _ridgeless_inverse(K: Floats, weight: Floats, bias: bool) -> Floats | None:
    """Return the matrix M with [c; b] = M [y; 0], where c and b are the least-norm solution of least squares.

    M is the limit for λ → 0 of the inverse's columns for y. Return None if K has full rank: then the inverse itself has
    a limit. With A = W^½ K̃ W^½, where K̃ is K, centred if there is a bias, c = W^½ A⁺ W^½ y and b = p'y − (Kp)'c with
    p = w/Σw.
    """
    n, root = len(K), np.sqrt(weight)
    p = weight / weight.sum() if bias else np.zeros(n)
    mean = K @ p
    values, U = eigh(root[:, None] * (K - mean[:, None] - mean + p @ mean) * root, overwrite_a=True)
    share = values / (values[-1] if values[-1] > 0 else 1.0)
    is_nonzero = share > n * np.finfo(float).eps
    if (share[is_nonzero] < _SMALLEST_SHARE).any():
        raise ValueError(
            f"cv='leave-one-out' with lam=0 needs a kernel matrix whose rank is certain, but the smallest of its "
            f"{is_nonzero.sum()} eigenvalues above rounding is {share[is_nonzero].min():.1g} of the largest; use "
            "lam > 0, or a number of folds"
        )
    if is_nonzero.sum() == n - bias:
        return None
    weighted_eigenvectors = root[:, None] * U[:, is_nonzero]
    out = np.zeros((n + bias, n + bias))
    out[:n, :n] = (weighted_eigenvectors / values[is_nonzero]) @ weighted_eigenvectors.T
    out[n:, :n] = p - mean @ out[:n, :n]
    return out


def _ridgeless_residuals(K: Floats, M: Floats, y: Floats, f: Floats) -> Floats:
    """Return the leave-one-out residuals (y − f)/(1 − h), h_i = ∂f(x_i)/∂y_i, from the values f of the machine."""
    n = len(K)
    H = K @ M[:n, :n] + M[n:, :n].sum(axis=0)
    one_minus_h = 1.0 - np.diag(H)
    spread = float(np.abs(y - y.mean()).max())
    if np.abs(H @ y - f).max() > _TOLERANCE * spread:
        raise ValueError(
            "cv='leave-one-out' with lam=0: float64 cannot resolve the kernel matrix of these samples; scale the "
            "columns, or use a number of folds"
        )
    exact_rows = np.flatnonzero(one_minus_h < _SMALLEST_SHARE)
    if len(exact_rows):
        raise ValueError(
            f"cv='leave-one-out' with lam=0: sample {exact_rows[0]} ({len(exact_rows)} of {n} in all) is fitted "
            "exactly whatever its y is, so the other samples do not determine the function without it; use lam > 0, or "
            "a number of folds"
        )
    return (y - f) / one_minus_h
