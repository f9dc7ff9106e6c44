"""Every λ from one decomposition: coefficients, leave-one-out residuals, GCV, norms and degrees of freedom.

In the scaled unknowns z = W^-½ c, the problem (K + λW⁻¹)c + 1b = y, 1'c = 0 is

    (S + λI) z = ỹ,   S = P W^½ K W^½ P,   ỹ = P W^½ y,   P = I − uu',  u = √w/‖√w‖   (P = I without bias)

so that S = QΛQᵀ answers for all λ. With a = Qᵀỹ, the part ỹ⟂ of ỹ outside the basis, and s = λ/(Λ + λ):

    residuals W^½(y − f) = ỹ⟂ + Q(s∘a),     1 − H_ii = q⟂_i + Σ_k Q_ik² s_k

H is the matrix that maps W^½y to W^½f. A row of weight w holds w units, each with leverage H_ii/w. Without one unit (or
without the row, where its weight is less) its residual is (y_i − f_i)/(1 − v_i H_ii/w_i), v_i = min(1, w_i).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from mercer.arrays import Floats, is_sparse
from mercer.gram.gram import Gram
from mercer.gram.linear_gram import float64_strips
from mercer.gram.whole import whole_matrix
from mercer.problems.least_squares import LeastSquares

_BLOCK_BYTES = 64 << 20

Judge = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Eigensystem:
    """Λ and Q of the scaled and, with a bias, centred matrix; `right` leads back to weights of features."""

    values: Floats
    basis: Floats  # distinct samples × directions, orthonormal columns
    unit: Floats | None  # u, with a bias
    right: Floats | None = None  # features × directions: w = right (√Λ ∘ a/(Λ + λ)), for a linear kernel

    @property
    def whole(self) -> bool:
        """Whether the basis spans everything (but u)."""
        return bool(self.basis.shape[1] == self.basis.shape[0] - (self.unit is not None))

    @property
    def rank(self) -> int:
        """Eigenvalues that are more than rounding."""
        return int((np.abs(self.values) > rounding(self.values, len(self.basis))).sum())


def rounding(values: Floats, n: int) -> float:
    """The size below which an eigenvalue of an n × n matrix is rounding."""
    return float(n * np.finfo(np.float64).eps * np.abs(values).max(initial=0.0))


def spectrum_bytes(n: int) -> int:
    """What `spectrum_of` needs: the matrix, its eigenvectors, and LAPACK's work space."""
    return 8 * n * (3 * n + 64)


def spectrum_of(gram: Gram, problem: LeastSquares) -> Eigensystem:
    """The decomposition of S for any kernel; O(n³), once."""
    S = np.ascontiguousarray(whole_matrix(gram, np.float64))
    if not np.isfinite(S.sum()):
        raise FloatingPointError(
            f"{gram.kernel!r} produced values beyond float64's range; scale the features, or lower its parameters"
        )
    root = np.sqrt(problem.total)
    if (root != 1.0).any():
        S *= root[:, None]
        S *= root
    u = None
    if problem.bias:
        u = root / np.linalg.norm(root)
        m = S @ u
        m -= 0.5 * (u @ m) * u
        _add_outer(S, -1.0, u, m)
        _add_outer(S, -1.0, m, u)
        # u itself is moved above every other eigenvalue and then dropped: what remains is orthogonal to it.
        _add_outer(S, 2.0 * max(_largest_row_sum(S), 1e-300), u, u)
    # S is symmetric: its transpose is the same matrix in the order LAPACK wants, and is overwritten.
    values, Q = scipy.linalg.eigh(S.T, overwrite_a=True, check_finite=False, driver="evd")
    if u is not None:
        values, Q = values[:-1], Q[:, :-1]
    if gram.positive_definite == "yes":
        values = np.maximum(values, 0.0)
    return Eigensystem(values, Q, u)


def linear_spectrum_of(X: Any, scale: float, problem: LeastSquares) -> Eigensystem:
    """The same for K = scale·XXᵀ with fewer features than samples: the economy SVD of W^½(X − 1x̄'), O(nd²).

    A sparse X stays sparse until it is multiplied by the d eigenvectors of its covariance.
    """
    root = np.sqrt(problem.total)
    norm = float(np.linalg.norm(root))
    centre = np.zeros(X.shape[1])
    if problem.bias:
        centre = np.asarray(X.T @ problem.total).ravel() / norm**2
    if is_sparse(X):
        weighted = X.astype(np.float64).multiply(root[:, None]).tocsr()
        cov = (weighted.T @ weighted).toarray() - norm**2 * np.outer(centre, centre)
        values, V = scipy.linalg.eigh(cov, overwrite_a=True, check_finite=False)
        keep = values > rounding(values, X.shape[0])
        values, V = values[keep], V[:, keep]
        U = (weighted @ V - np.outer(root, centre @ V)) / np.sqrt(values)
    else:
        A = np.empty(X.shape)
        for rows, part in float64_strips(X):
            A[rows] = root[rows, None] * (part - centre)
        U, s, Vt = scipy.linalg.svd(A, full_matrices=False, overwrite_a=True, check_finite=False)
        keep = s > max(A.shape) * np.finfo(np.float64).eps * s.max(initial=0.0)
        U, values, V = U[:, keep], s[keep] ** 2, Vt[keep].T
    return Eigensystem(scale * values, U, root / norm if problem.bias else None, V * np.sqrt(scale))


@dataclass(frozen=True, eq=False)
class PathValues:
    """One row per λ."""

    loo_errors: Floats  # λ × outputs: weighted mean of squared leave-one-out residuals
    gcv: Floats  # λ × outputs
    norms: Floats  # λ × outputs: ‖f‖ in the kernel's space
    dof: Floats  # λ: trace of H
    judged: Floats  # λ: what `judge` made of the leave-one-out residuals


class SpectralFit:
    """A problem seen from its spectrum: what every λ needs, prepared once."""

    def __init__(self, problem: LeastSquares, spectrum: Eigensystem) -> None:
        self.problem, self.spectrum = problem, spectrum
        self.root = np.sqrt(problem.total)
        y = self.root[:, None] * problem.mean
        Q, u = spectrum.basis, spectrum.unit
        if u is not None:
            y = y - np.outer(u, u @ y)
        self.a = Q.T @ y
        self.rest = np.zeros_like(y) if spectrum.whole else y - Q @ self.a

    def inverse(self, lam: float) -> Floats:
        """1/(Λ + λ), zero in directions where that is nothing but rounding."""
        shifted = self.spectrum.values + lam
        sound = np.abs(shifted) > rounding(shifted, len(self.root))
        return np.divide(1.0, shifted, out=np.zeros_like(shifted), where=sound)

    def coefficients(self, lam: float) -> Floats:
        """C of the distinct samples at one λ; at λ = 0 the solution of least norm."""
        z = self.spectrum.basis @ (self.inverse(lam)[:, None] * self.a)
        if not self.spectrum.whole and lam > 0:
            z = z + self.rest / lam
        return np.asarray(self.root[:, None] * z)

    def weights(self, lam: float) -> Floats:
        """w of a linear kernel's features at one λ, one column per output."""
        spectrum = self.spectrum
        assert spectrum.right is not None
        return np.asarray(spectrum.right @ ((np.sqrt(spectrum.values) * self.inverse(lam))[:, None] * self.a))

    def path(self, lams: Floats, judge: Judge | None = None) -> PathValues:
        """Everything for all λ, by products of Q and Q∘Q with one column per λ and output.

        `judge` is shown the leave-one-out residuals, rows × λ × outputs, of some λ at a time, and returns a number
        for each.
        """
        problem, values = self.problem, self.spectrum.values
        n_rows, q, L = len(problem.weight), problem.n_outputs, len(lams)
        errors, gcv = np.empty((L, q)), np.empty((L, q))
        judged = np.zeros(L)
        shrink = lams / (values[:, None] + lams)  # directions × λ
        dof = (1.0 - shrink).sum(axis=0) + (self.spectrum.unit is not None)
        sound = np.where(values > rounding(values, len(self.root)), values, 0.0)[:, None]
        norms = np.sqrt((sound / (values[:, None] + lams) ** 2).T @ self.a**2)
        step = max(1, _BLOCK_BYTES // (8 * n_rows * q))
        weight, mass, member = problem.weight, problem.mass, problem.member
        deviation = problem.Y - problem.mean[member]
        part = np.minimum(weight, 1.0) / problem.total[member]
        for start in range(0, L, step):
            some = slice(start, min(L, start + step))
            scaled = self._residuals(shrink[:, some])  # samples × λ × outputs
            free = self._freedom(shrink[:, some])  # samples × λ
            scaled /= self.root[:, None, None]
            residual = scaled[member] + deviation[:, None, :]
            gcv[some] = np.einsum("i,ilq->lq", weight, residual**2) / mass
            with np.errstate(divide="ignore", invalid="ignore"):  # nothing is free where λ is far below rounding
                gcv[some] /= ((mass - dof[some]) / mass)[:, None] ** 2
                residual /= ((1.0 - part)[:, None] + part[:, None] * free[member])[:, :, None]
            residual[np.isnan(residual)] = np.inf
            errors[some] = np.einsum("i,ilq->lq", weight, residual**2) / mass
            if judge is not None:
                judged[some] = judge(residual)
        return PathValues(errors, np.where(np.isnan(gcv), np.inf, gcv), norms, dof, judged)

    def loo_residuals(self, lam: float) -> Floats:
        """Rows × outputs: each row's residual at the fit without one unit of its weight."""
        seen: list[Floats] = []

        def look(residual: Floats) -> Floats:
            seen.append(residual[:, 0, :].copy())
            return np.zeros(1)

        self.path(np.array([lam]), look)
        return seen[0]

    def _residuals(self, shrink: Floats) -> Floats:
        """W^½(y − f) of the distinct samples for some λ."""
        wanted = shrink[:, :, None] * self.a[:, None, :]
        wanted = wanted.reshape(len(shrink), shrink.shape[1] * self.a.shape[1])
        shape = (len(self.root), shrink.shape[1], self.a.shape[1])
        return np.asarray((self.spectrum.basis @ wanted).reshape(shape) + self.rest[:, None, :])

    def _freedom(self, shrink: Floats) -> Floats:
        """1 − H_ii of the distinct samples for some λ."""
        Q, u = self.spectrum.basis, self.spectrum.unit
        out = np.empty((len(Q), shrink.shape[1]))
        step = max(1, _BLOCK_BYTES // (8 * max(1, Q.shape[1])))
        for start in range(0, len(Q), step):
            rows = slice(start, start + step)
            square = Q[rows] ** 2
            out[rows] = square @ shrink
            if not self.spectrum.whole:
                outside = 1.0 - square.sum(axis=1) - (0.0 if u is None else u[rows] ** 2)
                out[rows] += np.maximum(outside, 0.0)[:, None]
        return out


def lams_from(spectrum: Eigensystem, count: int) -> Floats:
    """GURLS's range: from the largest eigenvalue down to the smallest, but to no less than what float64 resolves.

    GURLS stops at 200√eps for a matrix whose diagonal is about 1; here that is relative to the mean of the diagonal.
    """
    values = spectrum.values
    top = float(values.max(initial=0.0))
    if not top > np.finfo(np.float64).tiny:
        return np.geomspace(1e-6, 1.0, count)
    above = values[values > rounding(values, len(spectrum.basis))]
    floor = 200 * np.sqrt(np.finfo(np.float64).eps) * float(np.sum(values)) / len(spectrum.basis)
    low = min(max(min(1e-8 * top, float(above.min())), floor), top / 10)
    return np.geomspace(low, top, count)


def _add_outer(S: Floats, factor: float, x: Floats, y: Floats) -> None:
    """S += factor · xy' in place."""
    scipy.linalg.blas.dger(factor, y, x, a=S.T, overwrite_a=True)


def _largest_row_sum(S: Floats) -> float:
    step = max(1, _BLOCK_BYTES // (8 * len(S)))
    return max(float(np.abs(S[i : i + step]).sum(axis=1).max()) for i in range(0, len(S), step))
