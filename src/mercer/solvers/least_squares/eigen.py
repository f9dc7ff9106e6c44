"""Every λ from one decomposition into eigenvectors: residuals, degrees of freedom, norms, coefficients.

With the Λ, Q and ỹ of mercer.solvers.least_squares.spectrum, a = Qᵀỹ, the part ỹ⟂ of ỹ outside the basis, and
s = λ/(Λ + λ):

    residuals W^½(y − f) = ỹ⟂ + Q(s∘a),     1 − H_ii = q⟂_i + Σ_k Q_ik² s_k

H is the matrix that maps W^½y to W^½f. A row of weight w holds w units, each with leverage H_ii/w. Without one unit (or
without the row, where its weight is less) its residual is (y_i − f_i)/(1 − v_i H_ii/w_i), v_i = min(1, w_i).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer.arrays import Floats
from mercer.certificates.certificate import Certificate
from mercer.certificates.least_squares import certify_limit, certify_solution, is_exact
from mercer.gram.gram import Gram
from mercer.problems.least_squares import LeastSquares
from mercer.solution import Report, Stop
from mercer.solvers.deadline import in_time
from mercer.solvers.least_squares.solution import (
    REMEDY,
    LeastSquaresSolution,
    memory_error,
    residual_share,
    spectrum_bytes,
)
from mercer.solvers.least_squares.spectrum import Eigensystem, rounding, spectrum_of

# The rows of Q∘Q, and the residuals of all λ, that are made at a time take about this many bytes.
_BLOCK_BYTES = 64 << 20

# Corrections of one solution by true residuals; each must halve what is left.
_MOST_CORRECTIONS = 10


# Shown leave-one-out residuals, rows × λ × outputs, of some λ, it returns a number for each.
Judge = Callable[[Floats], Floats]


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
        self.problem, self.root, self.spectrum = problem, np.sqrt(problem.total), spectrum
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

    def correction(self, lam: float, R: Floats) -> Floats:
        """What to add to C where it leaves the residual R."""
        y, Q, u = self.root[:, None] * R, self.spectrum.basis, self.spectrum.unit
        if u is not None:
            y = y - np.outer(u, u @ y)
        a = Q.T @ y
        z = Q @ (self.inverse(lam)[:, None] * a)
        if not self.spectrum.whole:
            z = z + (y - Q @ a) / lam
        return np.asarray(self.root[:, None] * z)

    def weights(self, lam: float) -> Floats:
        """w of a linear kernel's features at one λ, one column per output."""
        spectrum = self.spectrum
        assert spectrum.right is not None
        return np.asarray(spectrum.right @ ((np.sqrt(spectrum.values) * self.inverse(lam))[:, None] * self.a))

    def feature_inverse(self, lam: float, B: Floats) -> Floats:
        """(X̃'WX̃ + λI)⁻¹B of a linear kernel's features, for the kernel's own scale."""
        values, V = self.spectrum.values, self.spectrum.right
        assert V is not None
        inside = V.T @ B  # V'V = scale·I
        scale = float(np.sum(V[:, 0] ** 2)) if V.shape[1] else 1.0
        kept = V @ inside / scale
        return np.asarray(V @ (inside / (values + lam)[:, None]) + (B - kept) * (scale / lam))

    def path(self, lams: Floats, judge: Judge | None = None) -> PathValues:
        """Everything for all λ. `judge` is shown the leave-one-out residuals of some λ at a time."""
        problem, values = self.problem, self.spectrum.values
        shrink = lams / (values[:, None] + lams)  # directions × λ
        dof = (1.0 - shrink).sum(axis=0) + (self.spectrum.unit is not None)
        sound = np.where(values > rounding(values, len(self.root)), values, 0.0)[:, None]
        norms = np.sqrt((sound / (values[:, None] + lams) ** 2).T @ self.a**2)
        n_rows, q, L = len(problem.weight), problem.n_outputs, len(lams)
        errors, gcv, judged = np.empty((L, q)), np.empty((L, q)), np.zeros(L)
        step = max(1, _BLOCK_BYTES // (8 * n_rows * q))
        weight, mass, member = problem.weight, problem.mass, problem.member
        deviation = problem.Y - problem.mean[member]
        part = np.minimum(weight, 1.0) / problem.total[member]
        for start in range(0, L, step):
            some = slice(start, min(L, start + step))
            residual = (self._residuals(shrink[:, some]) / self.root[:, None, None])[member] + deviation[:, None, :]
            gcv[some] = np.einsum("i,ilq->lq", weight, residual**2) / mass
            free = self._freedom(shrink[:, some])[member]
            with np.errstate(divide="ignore", invalid="ignore"):  # nothing is free where λ is far below rounding
                gcv[some] /= ((mass - dof[some]) / mass)[:, None] ** 2
                residual /= ((1.0 - part)[:, None] + part[:, None] * free)[:, :, None]
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

    def directions(self, lam: float) -> tuple[int, bool]:
        """How many eigenvalues of S + λI are more than rounding, and whether one of them is negative."""
        inverse = self.inverse(lam)
        return int(np.count_nonzero(inverse)), bool((inverse < 0).any())

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


def solve_eigen(
    problem: LeastSquares, gram: Gram, stop: Stop, start: Any = None, report: Report | None = None
) -> tuple[LeastSquaresSolution, Certificate]:
    """The solution to rounding, whatever `stop` asks for, also where the matrix is singular."""
    n = problem.n
    if spectrum_bytes(n) > gram.budget:
        raise memory_error(
            f"the system of {n:,} samples is singular to rounding at lam={problem.lam:g}, and decomposing it",
            spectrum_bytes(n),
            gram.budget,
            f"a larger lam, {REMEDY}",
        )
    if report is not None:
        report(partial("eigenvalues of {:,} samples".format, n))
    with in_time(stop):  # what follows takes no time beside the decomposition
        spectrum = spectrum_of(gram, problem, stop)
    return solution_of(problem, gram, SpectralFit(problem, spectrum))


def solution_of(problem: LeastSquares, gram: Gram, fit: SpectralFit) -> tuple[LeastSquaresSolution, Certificate]:
    """The solution for the problem's λ from a decomposition."""
    lam = problem.lam
    rank, negative = fit.directions(lam)
    indefinite = negative and gram.positive_definite != "no"
    if indefinite:
        gram.refute()
    C = fit.coefficients(lam)
    U, errors = gram.proof.product_bound(C)
    b = _bias(problem, U)
    if lam > 0:
        R, left = residual_share(problem, C, b, U, errors)
        for _ in range(_MOST_CORRECTIONS):
            trial = C + fit.correction(lam, R)
            fresh, fresh_errors = gram.proof.product_bound(trial)
            fresh_b = _bias(problem, fresh)
            R, now = residual_share(problem, trial, fresh_b, fresh, fresh_errors)
            if not now < left:  # also where it is not a number
                break
            C, U, errors, b, last, left = trial, fresh, fresh_errors, fresh_b, left, now
            if left <= 1 or left > 0.5 * last:
                break
    beta: Floats | None = None
    if lam > 0:
        beta, certificate = certify_solution(problem, gram.proof, C, U, errors)
    else:
        certificate = certify_limit(problem, gram.proof, C, U, b)
    dropped = problem.n - problem.bias - rank
    solution = LeastSquaresSolution(
        np.array(certificate.b) if problem.bias and lam > 0 else b,
        "eigen",
        rank,
        C=C,
        beta=beta,
        dropped=dropped,
        indefinite=indefinite,
        stop_reason="converged" if is_exact(problem, certificate) else "rounding floor",
    )
    return solution, certificate


def _bias(problem: LeastSquares, U: Floats) -> Floats:
    if not problem.bias:
        return np.zeros(problem.n_outputs)
    return np.asarray(problem.total @ (problem.mean - U) / problem.mass)
