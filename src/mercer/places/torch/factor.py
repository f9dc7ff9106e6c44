"""Linear algebra on a device: Cholesky factors of K + diag(d), all of K, and its eigenvectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.places.eigenpairs import fix_signs
from mercer.places.factor import LANDMARKS_OVERFLOWED, jitters
from mercer.places.torch.memory import explain_matrix_shortage
from mercer.places.torch.numbers import floats, index_tensor, to_device, torch
from mercer.samples.arrays import Floats, Indices

# Columns of a Gram matrix that one product computes, down from the diagonal.
_GRAM_COLUMNS = 2048


@dataclass(frozen=True, eq=False)
class TorchFactor:
    """Cholesky factor L with LLᵀ = D⁻¹AD⁻¹ on the device, where D² is A's diagonal."""

    L: Any
    diagonal: Floats

    @property
    def pivots(self) -> Floats:
        return np.asarray(np.sqrt(self.diagonal) * floats(torch.diagonal(self.L)))

    def solve(self, R: Floats) -> Floats:
        """Return A⁻¹R; columns of R are divided by their largest entry to fit the precision of the factor."""
        inverse_root = 1.0 / np.sqrt(self.diagonal)[:, None]
        R = inverse_root * R
        size = np.abs(R).max(axis=0, initial=0.0)
        size[size == 0] = 1.0
        Z = torch.cholesky_solve(to_device(R / size, self.L, self.L.dtype), self.L)
        return np.asarray(inverse_root * floats(Z) * size)


def factor_of(A: Any, diagonal: Floats) -> TorchFactor | None:
    """Factor A in place, with this diagonal instead of its own; None if A is not positive definite."""
    if not diagonal.min(initial=np.inf) > 0 or not np.isfinite(diagonal).all():
        return None
    unit = to_device(1.0 / np.sqrt(diagonal), A, A.dtype)
    A *= unit[:, None]
    A *= unit
    A.fill_diagonal_(1.0)
    with explain_matrix_shortage(len(A), A.dtype, A.device):
        L, failed = torch.linalg.cholesky_ex(A)
    return None if int(failed) or not bool(torch.isfinite(torch.diagonal(L)).all()) else TorchFactor(L, diagonal)


@dataclass(frozen=True, eq=False)
class TorchLandmarkFactor:
    """A `LandmarkFactor` on the device: the lower factors L of K_JJ and H of I + L⁻¹(A − K_JJ)L⁻ᵀ."""

    L: Any
    H: Any

    def solve(self, R: Floats) -> Floats:
        """Return A⁻¹R by the factors L and H."""
        whitened_R = torch.linalg.solve_triangular(self.L, to_device(R, self.L), upper=False)
        whitened_R = torch.cholesky_solve(whitened_R, self.H)
        return floats(torch.linalg.solve_triangular(self.L.T, whitened_R, upper=True))


def add_gram(lower: Any, A: Any) -> None:
    """Add AᵀA to the lower triangle of `lower`; numbers above the diagonal are undefined."""
    for left in range(0, A.shape[1], _GRAM_COLUMNS):
        lower[left:, left : left + _GRAM_COLUMNS].addmm_(A[:, left:].T, A[:, left : left + _GRAM_COLUMNS])


def jittered_factor(K: Any) -> Any:
    """Return the Cholesky factor of K plus a jitter for the kernel matrix of landmarks, which is overwritten."""
    if not bool(torch.isfinite(K).all()):
        raise FloatingPointError(LANDMARKS_OVERFLOWED)
    diagonal = floats(torch.diagonal(K)).copy()
    for jitter in jitters(diagonal):
        K.diagonal().copy_(to_device(diagonal + jitter, K))
        L, failed = torch.linalg.cholesky_ex(K)
        if not int(failed):
            break
    return L


def landmark_factor_of(L: Any, lower: Any) -> TorchLandmarkFactor:
    """Build the factors from L and the lower triangle of L⁻¹(A − K_JJ)L⁻ᵀ, which is overwritten."""
    lower.diagonal().add_(1.0)
    H, failed = torch.linalg.cholesky_ex(lower)  # reads the lower triangle alone
    if int(failed):
        raise FloatingPointError(LANDMARKS_OVERFLOWED)
    return TorchLandmarkFactor(L, H)


@dataclass(frozen=True, eq=False)
class TorchFloat64Matrix:
    """A `Float64Matrix` on the device."""

    K: Any
    diagonal: Floats

    @property
    def extremes(self) -> tuple[float, float]:
        return float(self.K.min()), float(self.K.max())

    def column(self, j: int, rows: Indices | None = None) -> Floats:
        """Return K[rows, j]."""
        column = self.K[j] if rows is None else self.K[j, index_tensor(rows, self.K)]  # K is symmetric
        return np.array(floats(column))  # a copy, since torch's CPU device shares its memory with NumPy

    def products(self, C: Floats, columns: Indices | None = None) -> Floats:
        """Return K @ C, or K[:, columns] @ C."""
        K = self.K if columns is None else self.K[index_tensor(columns, self.K)].T
        return floats(K @ to_device(C, self.K))

    def factor(self, d: Floats, rows: Indices | None = None) -> TorchFactor | None:
        """Factor K[rows, rows] + diag(d), by default for all rows; None if it is not positive definite."""
        with self._explain_shortage():
            if rows is None:
                return factor_of(self.K.clone(), self.diagonal + d)
            index = index_tensor(rows, self.K)
            return factor_of(self.K[index][:, index], self.diagonal[rows] + d)

    def _explain_shortage(self) -> Any:
        return explain_matrix_shortage(len(self.K), self.K.dtype, self.K.device)

    def leading(
        self, scale: Floats, k: int | None, centre: Floats | None = None, subtracted: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return the k largest eigenvalues of S(K̃ − diag(subtracted))S and eigenvectors (`Float64Matrix.leading`)."""
        with self._explain_shortage():
            return self._leading(self.K.clone(), to_device(scale, self.K), k, centre, subtracted)

    @staticmethod
    def _leading(
        S: Any, s: Any, k: int | None, centre: Floats | None, subtracted: Floats | None
    ) -> tuple[Floats, Floats]:
        """Return the eigenpairs of `leading` for S = diag(s); the argument S is a copy of K, which is overwritten."""
        if centre is not None:
            c = to_device(centre, S)
            mean = S @ c
            S -= mean[:, None] - c @ mean
            S -= mean
        if subtracted is not None:
            S.diagonal().sub_(to_device(subtracted, S))
        S *= s
        S *= s[:, None]
        values, Q = torch.linalg.eigh(0.5 * (S + S.T))
        k = len(s) if k is None else min(k, len(s))
        return floats(values.flip(0)[:k]), fix_signs(floats(Q.flip(1)[:, :k]))


@dataclass(frozen=True, eq=False)
class TorchEigensystem:
    """An `Eigensystem` whose eigenvectors stay on the device; eigenvalues are in increasing order."""

    values: Floats
    Q: Any

    def coordinates(self, R: Floats) -> Floats:
        return floats(self.Q.T @ to_device(R, self.Q))

    def combined(self, A: Floats) -> Floats:
        return floats(self.Q @ to_device(A, self.Q))

    def squared(self, A: Floats) -> Floats:
        return floats(self.Q.square() @ to_device(A, self.Q))


def eigensystem_of(S: Any, scale: Floats, centred: bool) -> TorchEigensystem:
    """Decompose SKS, or SKS centred, as `Gram.eigh` describes; the argument S is K and is overwritten."""
    s = to_device(scale, S)
    S *= s[:, None]
    S *= s
    if not bool(torch.isfinite(S.sum())):
        raise FloatingPointError(
            "kernel values are beyond float64's range; scale the features, or lower the kernel's parameters"
        )
    if centred:
        u = s / torch.linalg.vector_norm(s)
        m = S @ u
        m -= 0.5 * (u @ m) * u
        S -= torch.outer(u, m)
        S -= torch.outer(m, u)
        # The eigenvector u is moved above every other eigenvalue and then dropped: the others are orthogonal to it.
        norm_bound = float(S.abs().sum(dim=1).max())
        S += 2.0 * max(norm_bound, 1e-300) * torch.outer(u, u)
    with explain_matrix_shortage(len(S), S.dtype, S.device):
        values, Q = torch.linalg.eigh(S)
    if centred:
        return TorchEigensystem(floats(values[:-1]), Q[:, :-1])
    return TorchEigensystem(floats(values), Q)
