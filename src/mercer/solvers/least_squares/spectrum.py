"""Least squares for every λ from one decomposition into eigenvectors, and for the λ that validates best.

In the scaled unknowns z = W^-½ c, the problem (K + λW⁻¹)c + 1b = y, 1'c = 0 is

    (S + λI) z = ỹ,   S = P W^½ K W^½ P,   ỹ = P W^½ y,   P = I − uu',  u = √w/‖√w‖   (P = I without bias)

so that S = QΛQᵀ answers for all λ. With a = Qᵀỹ, the part ỹ⟂ of ỹ outside the basis, and s = λ/(Λ + λ):

    residuals W^½(y − f) = ỹ⟂ + Q(s∘a),     1 − H_ii = q⟂_i + Σ_k Q_ik² s_k

H is the matrix that maps W^½y to W^½f. A row of weight w holds w units, each with leverage H_ii/w. Without one unit (or
without the row, where its weight is less) its residual is (y_i − f_i)/(1 − v_i H_ii/w_i), v_i = min(1, w_i).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.linalg

from mercer.certificates.certificate import Certificate
from mercer.certificates.least_squares import certify_limit, certify_solution, is_exact
from mercer.certificates.weights import certify_weights
from mercer.places.factor import Eigenvectors
from mercer.places.gram import Eigensystem, Gram
from mercer.places.protocols import LinearGram
from mercer.problems.least_squares import LeastSquares
from mercer.runtime.long_calls import expect_in_time
from mercer.samples.arrays import Floats, row_blocks
from mercer.solvers.deadline import in_time
from mercer.solvers.least_squares.linear import refined_weights, solve_covariance
from mercer.solvers.least_squares.solution import (
    REMEDY,
    LeastSquaresSolution,
    Proven,
    linear_spectrum_bytes,
    memory_error,
    residual_share,
    spectrum_bytes,
)
from mercer.solvers.solution import Stop, StopReason

_ENDLESS = Stop(tol=0.0, max_iter=1)


@dataclass(frozen=True, eq=False)
class Decomposition:
    """Λ and Q of the scaled and, with a bias, centred matrix; `right` leads back to weights of features."""

    values: Floats  # Λ, none of them negative where K is known to be positive definite
    Q: Eigensystem  # distinct samples × directions, orthonormal columns
    n: int
    unit: Floats | None  # u, with a bias
    least: float  # smaller eigenvalues are rounding
    right: Floats | None = None  # features × directions: w = right (√Λ ∘ a/(Λ + λ)), for a linear kernel

    @property
    def whole(self) -> bool:
        """Whether Q spans everything (but u)."""
        return len(self.values) == self.n - (self.unit is not None)

    @property
    def rank(self) -> int:
        """Eigenvalues that are more than rounding."""
        return int((np.abs(self.values) > self.least).sum())


def rounding(values: Floats, n: int) -> float:
    """The size below which an eigenvalue of an n × n matrix is rounding."""
    return float(n * np.finfo(np.float64).eps * np.abs(values).max(initial=0.0))


def spectrum_of(gram: Gram, problem: LeastSquares, stop: Stop = _ENDLESS) -> Decomposition:
    """The decomposition of S for any kernel; O(n³), once. TimeoutError if that cannot be done in time."""
    root = np.sqrt(problem.total)
    Q = gram.eigh(root, problem.bias, stop.deadline)
    values = np.maximum(Q.values, 0.0) if gram.positive_definite == "yes" else Q.values
    unit = root / np.linalg.norm(root) if problem.bias else None
    return Decomposition(values, Q, gram.n, unit, rounding(values, gram.n))


def linear_spectrum_of(linear: LinearGram, problem: LeastSquares, stop: Stop = _ENDLESS) -> Decomposition:
    """The decomposition for K = scale·XXᵀ with fewer features than samples: the economy SVD of W^½(X − 1x̄'), O(nd²).

    A sparse X stays sparse until it is multiplied by the d eigenvectors of its covariance.
    """
    root = np.sqrt(problem.total)
    norm = float(np.linalg.norm(root))
    centre = linear.transposed(problem.total) / norm**2 if problem.bias else np.zeros(linear.d)
    if linear.sparse:
        cov = linear.sums(problem).xx
        eigh = partial(scipy.linalg.eigh, overwrite_a=True, check_finite=False)
        expect_in_time(stop.deadline, cov, eigh)
        values, V = eigh(cov)
        least = rounding(values, linear.n)
        keep = values > least
        values, V = values[keep], V[:, keep]
        U = root[:, None] * (linear.times(V) - centre @ V) / np.sqrt(values)
    else:
        A = np.empty((linear.n, linear.d))
        for rows, part in linear.pieces(centre):
            A[rows] = root[rows, None] * part
        svd = partial(scipy.linalg.svd, full_matrices=False, overwrite_a=True, check_finite=False)
        expect_in_time(stop.deadline, A, svd)
        U, s, Vt = svd(A)
        smallest = max(A.shape) * np.finfo(np.float64).eps * s.max(initial=0.0)
        least, keep = float(smallest) ** 2, s > smallest
        U, values, V = U[:, keep], s[keep] ** 2, Vt[keep].T
    unit = root / norm if problem.bias else None
    values = linear.scale * values
    right = V * np.sqrt(linear.scale)
    return Decomposition(values, Eigenvectors(values, U), linear.n, unit, linear.scale * least, right)


def lams_from(spectrum: Decomposition, count: int) -> Floats:
    """GURLS's range: from the largest eigenvalue down to the smallest, but to no less than what float64 resolves.

    GURLS stops at 200√eps for a matrix whose diagonal is about 1; here that is relative to the mean of the diagonal.
    For a linear kernel whose smallest eigenvalue is clearly more than rounding, as that of a few features in different
    units, the range goes on to an n-th of it: there λ shrinks no direction by more than its share of one sample.
    """
    values = spectrum.values
    top = float(values.max(initial=0.0))
    if not top > np.finfo(np.float64).tiny:
        return np.geomspace(1e-6, 1.0, count)
    least_above = float(values[values > spectrum.least].min())
    mean = float(np.sum(values)) / spectrum.n
    floor, high = 200 * np.sqrt(np.finfo(np.float64).eps) * mean, 1e-8 * top
    low = min(floor if floor >= high else min(high, max(floor, least_above)), top / 10)
    share = least_above / spectrum.n
    if spectrum.right is not None and share >= spectrum.least:
        low = min(low, share)
    return np.geomspace(low, top, count)


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

    def __init__(self, problem: LeastSquares, spectrum: Decomposition) -> None:
        self.problem, self.root, self.spectrum = problem, np.sqrt(problem.total), spectrum
        self.a, self.rest = self._parts(problem.mean)

    def _parts(self, R: Floats) -> tuple[Floats, Floats]:
        """a and ỹ⟂ of a right-hand side."""
        y, Q, u = self.root[:, None] * R, self.spectrum.Q, self.spectrum.unit
        if u is not None:
            y = y - np.outer(u, u @ y)
        a = Q.coordinates(y)
        return a, np.zeros_like(y) if self.spectrum.whole else y - Q.combined(a)

    def inverse(self, lam: float) -> Floats:
        """1/(Λ + λ), zero in directions where that is nothing but rounding."""
        shifted = self.spectrum.values + lam
        sound = np.abs(shifted) > rounding(shifted, len(self.root))
        return np.divide(1.0, shifted, out=np.zeros_like(shifted), where=sound)

    def coefficients(self, lam: float, R: Floats | None = None) -> Floats:
        """C of the distinct samples at one λ, or what to add to it where it leaves the residual R.

        At λ = 0 it is the solution of least norm.
        """
        a, rest = (self.a, self.rest) if R is None else self._parts(R)
        z = self.spectrum.Q.combined(self.inverse(lam)[:, None] * a)
        if not self.spectrum.whole and lam > 0:
            z = z + rest / lam
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
        problem, values = self.problem, self.spectrum.values[:, None]
        sound = np.where(values > rounding(values, len(self.root)), values, 0.0)
        norms = np.sqrt((sound / (values + lams) ** 2).T @ self.a**2)
        L, q = len(lams), problem.n_outputs
        errors, gcv, dof, judged = np.empty((L, q)), np.empty((L, q)), np.empty(L), np.zeros(L)
        for some in row_blocks(L, 8 * len(problem.weight) * q):
            residual, gcv[some], dof[some] = self._leave_one_out(lams[some])
            errors[some] = np.einsum("i,ilq->lq", problem.weight, residual**2) / problem.mass
            if judge is not None:
                judged[some] = judge(residual)
        return PathValues(errors, np.where(np.isnan(gcv), np.inf, gcv), norms, dof, judged)

    def loo_residuals(self, lam: float) -> Floats:
        """Rows × outputs: each row's residual at the fit without one unit of its weight."""
        return self._leave_one_out(np.array([lam]))[0][:, 0, :]

    def _leave_one_out(self, lams: Floats) -> tuple[Floats, Floats, Floats]:
        """Leave-one-out residuals, rows × λ × outputs; generalised cross-validation, λ × outputs; the trace of H."""
        problem, shrink = self.problem, lams / (self.spectrum.values[:, None] + lams)  # directions × λ
        weight, mass, member = problem.weight, problem.mass, problem.member
        dof = (1.0 - shrink).sum(axis=0) + (self.spectrum.unit is not None)
        deviation = problem.Y - problem.mean[member]
        residual = (self._residuals(shrink) / self.root[:, None, None])[member] + deviation[:, None, :]
        gcv = np.einsum("i,ilq->lq", weight, residual**2) / mass
        part, free = np.minimum(weight, 1.0) / problem.total[member], self._freedom(shrink)[member]
        with np.errstate(divide="ignore", invalid="ignore"):  # nothing is free where λ is far below rounding
            gcv /= ((mass - dof) / mass)[:, None] ** 2
            residual /= ((1.0 - part)[:, None] + part[:, None] * free)[:, :, None]
        residual[np.isnan(residual)] = np.inf
        return residual, gcv, dof

    def _residuals(self, shrink: Floats) -> Floats:
        """W^½(y − f) of the distinct samples for some λ."""
        wanted = shrink[:, :, None] * self.a[:, None, :]
        wanted = wanted.reshape(len(shrink), shrink.shape[1] * self.a.shape[1])
        shape = (len(self.root), shrink.shape[1], self.a.shape[1])
        return np.asarray(self.spectrum.Q.combined(wanted).reshape(shape) + self.rest[:, None, :])

    def _freedom(self, shrink: Floats) -> Floats:
        """1 − H_ii of the distinct samples for some λ."""
        Q, u = self.spectrum.Q, self.spectrum.unit
        if self.spectrum.whole:
            return Q.squared(shrink)
        inside = Q.squared(np.column_stack([shrink, np.ones(len(shrink))]))
        outside = 1.0 - inside[:, -1] - (0.0 if u is None else u**2)
        return np.asarray(inside[:, :-1] + np.maximum(outside, 0.0)[:, None])


def solve_eigen(problem: LeastSquares, gram: Gram, stop: Stop, start: object = None) -> Proven:
    """The solution to rounding, whatever `stop` asks for, also where the matrix is singular."""
    n = problem.n
    if spectrum_bytes(n) > gram.budget:
        raise memory_error(
            f"the system of {n:,} samples is singular to rounding at lam={problem.lam:g}, and decomposing it",
            spectrum_bytes(n),
            gram.budget,
            f"a larger lam, {REMEDY}",
        )
    stop.tell(partial("eigenvalues of {:,} samples".format, n))
    with in_time(stop):  # what follows takes no time beside the decomposition
        spectrum = spectrum_of(gram, problem, stop)
    return solution_of(problem, gram, SpectralFit(problem, spectrum))


def solution_of(problem: LeastSquares, gram: Gram, fit: SpectralFit) -> Proven:
    """The solution for the problem's λ from a decomposition."""
    lam, inverse = problem.lam, fit.inverse(problem.lam)
    rank = int(np.count_nonzero(inverse))
    full = problem.n - problem.bias
    if gram.linear is not None:  # X has no more directions than features, and w is unique if all of them are there
        full = min(full, gram.linear.d)
    indefinite = bool((inverse < 0).any()) and gram.positive_definite != "no"
    if indefinite:
        gram.refute()
    C, U, errors, b = _corrected(problem, gram, fit)
    beta: Floats | None = None
    if lam > 0:
        beta, certificate = certify_solution(problem, gram.proof, C, U, errors)
    else:
        certificate = certify_limit(problem, gram.proof, C, U, b)
    solution = LeastSquaresSolution(
        np.array(certificate.b) if problem.bias and lam > 0 else b,
        "eigen",
        rank,
        C=C,
        beta=beta,
        dropped=max(0, full - rank),  # λ > 0 also keeps directions that X does not have
        indefinite=indefinite,
        stop_reason="converged" if is_exact(problem, certificate) else "rounding floor",
    )
    return solution, certificate


def _corrected(problem: LeastSquares, gram: Gram, fit: SpectralFit) -> tuple[Floats, Floats, Floats, Floats]:
    """C, corrected by true residuals as long as each halves what is left; U = KC, bounds of its errors, and b."""
    C, best, last = fit.coefficients(problem.lam), None, np.inf
    for _ in range(11):
        U, errors = gram.proof.product_bound(C)
        b = np.zeros(problem.n_outputs)
        if problem.bias:
            b = problem.total @ (problem.mean - U) / problem.mass
        if problem.lam == 0:
            return C, U, errors, b
        R, left = residual_share(problem, C, b, U, errors)
        if best is not None and not left < last:  # also where it is not a number
            break
        best = C, U, errors, b
        if last < np.inf and (left <= 1 or left > 0.5 * last):
            break
        C, last = C + fit.coefficients(problem.lam, R), left
    assert best is not None
    return best


# What is minimised over λ, one number for each.
Score = Callable[[LeastSquares, PathValues], Floats]


@dataclass(frozen=True, eq=False)
class PathSolution:
    """The values of every λ, which of them is best, and the solution there."""

    lams: Floats
    values: PathValues
    scores: Floats
    loo: Floats  # rows × outputs: leave-one-out residuals at the best λ
    best: LeastSquaresSolution

    @property
    def steps(self) -> int:
        return self.best.steps

    @property
    def stop_reason(self) -> StopReason:
        return self.best.stop_reason


def solve_path(
    problem: LeastSquares,
    gram: Gram,
    stop: Stop,
    start: object = None,
    *,
    lams: Floats | int,
    score: Score,
    judge: Judge | None = None,
) -> tuple[PathSolution, Certificate]:
    """The solution for the λ of least score, among those given or as many as are asked for.

    The problem's own λ plays no part. `judge` makes one more number of each λ's leave-one-out residuals, for `score`.
    """
    n, linear = problem.n, gram.linear
    if linear is not None and linear.d >= n:
        linear = None
    needed = spectrum_bytes(n) if linear is None else linear_spectrum_bytes(linear.n, linear.d)
    if needed > gram.budget:
        raise memory_error(f"decomposing the matrix of {n:,} samples", needed, gram.budget)
    stop.tell(partial("eigenvalues of {:,} samples".format, n))
    with in_time(stop):
        spectrum = spectrum_of(gram, problem, stop) if linear is None else linear_spectrum_of(linear, problem, stop)
        fit = SpectralFit(problem, spectrum)
        lams = lams_from(spectrum, lams) if isinstance(lams, int) else lams
        values = fit.path(lams, judge)
    scores = score(problem, values)
    lam = float(lams[best_of(scores)])
    chosen = replace(problem, lam=lam)
    if linear is not None:
        solution, certificate = _from_svd(chosen, gram, linear, fit)
    else:
        solution, certificate = solution_of(chosen, gram, fit)
    return PathSolution(lams, values, scores, fit.loo_residuals(lam), solution), certificate


def best_of(scores: Floats) -> int:
    """The index of the best λ of increasing ones: of equally good ones the largest, which gives the simplest f."""
    return int(np.flatnonzero(scores == scores.min())[-1])


def _from_svd(problem: LeastSquares, gram: Gram, linear: LinearGram, fit: SpectralFit) -> Proven:
    """The solution for the problem's λ in the features; its solver is named by what was decomposed."""
    sparse, mass = linear.sparse, problem.mass
    x, y = np.zeros(linear.d), np.zeros(problem.n_outputs)
    if problem.bias:
        x, y = linear.transposed(problem.total) / mass, problem.weight @ problem.Y / mass
    W = refined_weights(problem, linear, x, y, fit.weights(problem.lam), partial(fit.feature_inverse, problem.lam))
    centre = x if problem.bias and not sparse else None
    # The mean of what is left, not of what was there, is the best bias to the last digit.
    left = problem.total @ (problem.mean - linear.times(W, centre) - y)
    b = y + left / mass - x @ W if problem.bias else y
    beta, certificate = certify_weights(problem, linear, W, b, centre)
    if not is_exact(problem, certificate):  # a decomposition of all features together does not resolve each
        found, certificate = solve_covariance(problem, gram, Stop(tol=0.0, max_iter=1))
        return replace(found, sums=None), certificate
    return LeastSquaresSolution(
        b, "covariance" if sparse else "svd", len(fit.spectrum.values), W=W, beta=beta
    ), certificate
