"""Least squares for every λ from one eigendecomposition, and for the λ with the best leave-one-out score.

In the scaled unknowns z = W^-½ c, the problem (K + λW⁻¹)c + 1b = y, 1'c = 0 is

    (S + λI) z = ỹ,   S = P W^½ K W^½ P,   ỹ = P W^½ y,   P = I − uu',  u = √w/‖√w‖   (P = I without bias)

so that one decomposition S = QΛQᵀ solves it for all λ. With a = Qᵀỹ, ỹ⟂ = ỹ − Qa, and s = λ/(Λ + λ):

    residuals W^½(y − f) = ỹ⟂ + Q(s∘a),     1 − H_ii = q⟂_i + Σ_k Q_ik² s_k

H is the matrix that maps W^½y to W^½f, and q⟂_i is the squared norm of row i's part outside the basis. A row of weight
w counts as w samples, each with leverage H_ii/w. Without one of these samples (or without the row, if w < 1) its
residual is (y_i − f_i)/(1 − v_i H_ii/w_i), v_i = min(1, w_i).
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
from mercer.runtime.long_calls import check_decomposition_time
from mercer.samples.arrays import Floats, row_blocks
from mercer.solvers.deadline import enforce_deadline
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
    """Eigendecomposition S = QΛQᵀ of the scaled and, with a bias, centred matrix."""

    values: Floats  # Λ, clipped at 0 if K is known to be positive definite
    Q: Eigensystem  # distinct samples × directions, orthonormal columns
    n: int
    unit: Floats | None  # u if there is a bias
    least: float  # smaller eigenvalues are rounding
    right: Floats | None = None  # features × directions: w = right (√Λ ∘ a/(Λ + λ)), for a linear kernel

    @property
    def is_complete(self) -> bool:
        """True if Q spans the whole space or, with a bias, the complement of u."""
        return len(self.values) == self.n - (self.unit is not None)

    @property
    def rank(self) -> int:
        """Number of eigenvalues above rounding."""
        return int((np.abs(self.values) > self.least).sum())


def rounding(values: Floats, n: int) -> float:
    """Absolute value below which an eigenvalue of an n × n matrix is rounding."""
    return float(n * np.finfo(np.float64).eps * np.abs(values).max(initial=0.0))


def spectrum_of(gram: Gram, problem: LeastSquares, stop: Stop = _ENDLESS) -> Decomposition:
    """Decompose S for any kernel in O(n³); raise TimeoutError if that takes longer than `stop` allows."""
    root = np.sqrt(problem.total)
    Q = gram.eigh(root, problem.bias, stop.deadline)
    values = np.maximum(Q.values, 0.0) if gram.positive_definite == "yes" else Q.values
    unit = root / np.linalg.norm(root) if problem.bias else None
    return Decomposition(values, Q, gram.n, unit, rounding(values, gram.n))


def linear_spectrum_of(linear: LinearGram, problem: LeastSquares, stop: Stop = _ENDLESS) -> Decomposition:
    """Decompose S = P W^½ K W^½ P for K = scale·XXᵀ with d < n features, in O(nd²).

    A dense X takes the thin SVD of W^½(X − 1x̄'). A sparse X takes the eigenvectors of its d × d covariance matrix, and
    is not made dense.
    """
    root = np.sqrt(problem.total)
    norm = float(np.linalg.norm(root))
    centre = linear.transposed(problem.total) / norm**2 if problem.bias else np.zeros(linear.d)
    if linear.sparse:
        cov = linear.sums(problem).xx
        eigh = partial(scipy.linalg.eigh, overwrite_a=True, check_finite=False)
        check_decomposition_time(stop.deadline, cov, eigh)
        values, V = eigh(cov)
        least = rounding(values, linear.n)
        is_kept = values > least
        values, V = values[is_kept], V[:, is_kept]
        U = root[:, None] * (linear.times(V) - centre @ V) / np.sqrt(values)
    else:
        A = np.empty((linear.n, linear.d))
        for rows, part in linear.dense_blocks(centre):
            A[rows] = root[rows, None] * part
        svd = partial(scipy.linalg.svd, full_matrices=False, overwrite_a=True, check_finite=False)
        check_decomposition_time(stop.deadline, A, svd)
        U, s, Vt = svd(A)
        smallest = max(A.shape) * np.finfo(np.float64).eps * s.max(initial=0.0)
        least, is_kept = float(smallest) ** 2, s > smallest
        U, values, V = U[:, is_kept], s[is_kept] ** 2, Vt[is_kept].T
    unit = root / norm if problem.bias else None
    values = linear.scale * values
    right_factor = V * np.sqrt(linear.scale)
    return Decomposition(values, Eigenvectors(values, U), linear.n, unit, linear.scale * least, right_factor)


def default_lams(spectrum: Decomposition, count: int) -> Floats:
    """Return GURLS's default range of λ: from the largest eigenvalue down to the smallest that float64 resolves.

    GURLS stops at 200√eps for a matrix whose diagonal is about 1; here that is relative to the mean of the diagonal.
    For a linear kernel whose smallest eigenvalue is clearly above rounding, as for a few features in different units,
    the range continues down to 1/n of it: that λ shrinks no direction by more than the share of one sample.
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


# Function from leave-one-out residuals, rows × λ × outputs, to one number for each λ.
ResidualCriterion = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class PathValues:
    """Validation errors, norms and degrees of freedom of every λ, one row for each."""

    loo_errors: Floats  # λ × outputs: weighted mean of squared leave-one-out residuals
    gcv: Floats  # λ × outputs
    norms: Floats  # λ × outputs: ‖f‖ in the kernel's space
    dof: Floats  # λ: degrees of freedom, the trace of H
    criterion_values: Floats  # λ: result of the criterion on the leave-one-out residuals


class SpectralFit:
    """Least squares solved from an eigendecomposition, for any λ; the parts that do not depend on λ are kept."""

    def __init__(self, problem: LeastSquares, spectrum: Decomposition) -> None:
        self.problem, self.root, self.spectrum = problem, np.sqrt(problem.total), spectrum
        self.a, self.outside = self._parts(problem.mean)

    def _parts(self, R: Floats) -> tuple[Floats, Floats]:
        """Return a and ỹ⟂ for a right-hand side."""
        y, Q, u = self.root[:, None] * R, self.spectrum.Q, self.spectrum.unit
        if u is not None:
            y = y - np.outer(u, u @ y)
        a = Q.coordinates(y)
        return a, np.zeros_like(y) if self.spectrum.is_complete else y - Q.combined(a)

    def inverse(self, lam: float) -> Floats:
        """Return 1/(Λ + λ), with 0 where Λ + λ is rounding."""
        shifted_values = self.spectrum.values + lam
        is_nonzero = np.abs(shifted_values) > rounding(shifted_values, len(self.root))
        return np.divide(1.0, shifted_values, out=np.zeros_like(shifted_values), where=is_nonzero)

    def coefficients(self, lam: float, R: Floats | None = None) -> Floats:
        """Return C of the distinct samples at one λ, or the correction of C for a residual R.

        At λ = 0 it is the solution of least norm.
        """
        a, orthogonal_part = (self.a, self.outside) if R is None else self._parts(R)
        z = self.spectrum.Q.combined(self.inverse(lam)[:, None] * a)
        if not self.spectrum.is_complete and lam > 0:
            z = z + orthogonal_part / lam
        return np.asarray(self.root[:, None] * z)

    def weights(self, lam: float) -> Floats:
        """Return the weights w of a linear kernel's features at one λ, one column per output."""
        spectrum = self.spectrum
        assert spectrum.right is not None
        return np.asarray(spectrum.right @ ((np.sqrt(spectrum.values) * self.inverse(lam))[:, None] * self.a))

    def feature_inverse(self, lam: float, B: Floats) -> Floats:
        """Return (X̃'WX̃ + (λ/scale)I)⁻¹B for the features of a linear kernel k = scale·⟨x, z⟩."""
        values, V = self.spectrum.values, self.spectrum.right
        assert V is not None
        coordinates = V.T @ B  # V'V = scale·I
        scale = float(np.sum(V[:, 0] ** 2)) if V.shape[1] else 1.0
        in_span = V @ coordinates / scale
        return np.asarray(V @ (coordinates / (values + lam)[:, None]) + (B - in_span) * (scale / lam))

    def path(self, lams: Floats, criterion: ResidualCriterion | None = None) -> PathValues:
        """Return the values of all λ; `criterion` is called for one block of λ after another."""
        problem, values = self.problem, self.spectrum.values[:, None]
        nonzero_values = np.where(values > rounding(values, len(self.root)), values, 0.0)
        norms = np.sqrt((nonzero_values / (values + lams) ** 2).T @ self.a**2)
        L, q = len(lams), problem.n_outputs
        errors, gcv, dof, criterion_values = np.empty((L, q)), np.empty((L, q)), np.empty(L), np.zeros(L)
        for block in row_blocks(L, 8 * len(problem.weight) * q):
            residual, gcv[block], dof[block] = self._leave_one_out(lams[block])
            errors[block] = np.einsum("i,ilq->lq", problem.weight, residual**2) / problem.mass
            if criterion is not None:
                criterion_values[block] = criterion(residual)
        return PathValues(errors, np.where(np.isnan(gcv), np.inf, gcv), norms, dof, criterion_values)

    def loo_residuals(self, lam: float) -> Floats:
        """Return the leave-one-out residuals at one λ, rows × outputs."""
        return self._leave_one_out(np.array([lam]))[0][:, 0, :]

    def _leave_one_out(self, lams: Floats) -> tuple[Floats, Floats, Floats]:
        """Return leave-one-out residuals (rows × λ × outputs), generalised cross-validation (λ × outputs), and tr H."""
        problem, shrink = self.problem, lams / (self.spectrum.values[:, None] + lams)  # directions × λ
        weight, mass, member = problem.weight, problem.mass, problem.member
        dof = (1.0 - shrink).sum(axis=0) + (self.spectrum.unit is not None)
        # 1. Residuals y − f of the rows: those of the distinct samples, and the deviations from their means.
        deviation = problem.Y - problem.mean[member]
        residual = (self._residuals(shrink) / self.root[:, None, None])[member] + deviation[:, None, :]
        gcv = np.einsum("i,ilq->lq", weight, residual**2) / mass
        # 2. Divide by 1 − v_i H_ii/w_i, and for generalised cross-validation by (1 − tr H/n)².
        share_in_sample, one_minus_leverage = (
            np.minimum(weight, 1.0) / problem.total[member],
            self._one_minus_leverages(shrink)[member],
        )
        with np.errstate(divide="ignore", invalid="ignore"):  # zero denominators where λ is far below rounding
            gcv /= ((mass - dof) / mass)[:, None] ** 2
            residual /= ((1.0 - share_in_sample)[:, None] + share_in_sample[:, None] * one_minus_leverage)[:, :, None]
        residual[np.isnan(residual)] = np.inf
        return residual, gcv, dof

    def _residuals(self, shrink: Floats) -> Floats:
        """Return W^½(y − f) of the distinct samples for a block of λ."""
        shrunk_coordinates = shrink[:, :, None] * self.a[:, None, :]
        shrunk_coordinates = shrunk_coordinates.reshape(len(shrink), shrink.shape[1] * self.a.shape[1])
        shape = (len(self.root), shrink.shape[1], self.a.shape[1])
        return np.asarray(self.spectrum.Q.combined(shrunk_coordinates).reshape(shape) + self.outside[:, None, :])

    def _one_minus_leverages(self, shrink: Floats) -> Floats:
        """Return 1 − H_ii for the distinct samples and a block of λ; H maps the targets to the fitted values."""
        Q, u = self.spectrum.Q, self.spectrum.unit
        if self.spectrum.is_complete:
            return Q.squared(shrink)
        leverages_in_span = Q.squared(np.column_stack([shrink, np.ones(len(shrink))]))
        outside = 1.0 - leverages_in_span[:, -1] - (0.0 if u is None else u**2)
        return np.asarray(leverages_in_span[:, :-1] + np.maximum(outside, 0.0)[:, None])


def solve_eigen(problem: LeastSquares, gram: Gram, stop: Stop, start: object = None) -> Proven:
    """Solve to rounding, whatever the tolerance of `stop`, also if the matrix is singular."""
    n = problem.n
    if spectrum_bytes(n) > gram.budget:
        raise memory_error(
            f"the system of {n:,} samples is singular to rounding at lam={problem.lam:g}, and decomposing it",
            spectrum_bytes(n),
            gram.budget,
            f"a larger lam, {REMEDY}",
        )
    stop.report_progress(partial("eigenvalues of {:,} samples".format, n))
    with enforce_deadline(stop):  # everything after the decomposition is quick
        spectrum = spectrum_of(gram, problem, stop)
    return solution_from_spectrum(problem, gram, SpectralFit(problem, spectrum))


def solution_from_spectrum(problem: LeastSquares, gram: Gram, fit: SpectralFit) -> Proven:
    """Return the certified solution at the problem's λ from its decomposition."""
    lam, inverse = problem.lam, fit.inverse(problem.lam)
    rank = int(np.count_nonzero(inverse))
    full_rank = problem.n - problem.bias
    if gram.linear is not None:  # rank X ≤ d, and w is unique if the rank is d
        full_rank = min(full_rank, gram.linear.d)
    is_indefinite = bool((inverse < 0).any()) and gram.positive_definite != "no"
    if is_indefinite:
        gram.refute()
    C, U, errors, b = _correct_by_residuals(problem, gram, fit)
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
        dropped=max(0, full_rank - rank),  # λ > 0 also keeps directions that X does not have
        indefinite=is_indefinite,
        stop_reason="converged" if is_exact(problem, certificate) else "rounding floor",
    )
    return solution, certificate


def _correct_by_residuals(problem: LeastSquares, gram: Gram, fit: SpectralFit) -> tuple[Floats, Floats, Floats, Floats]:
    """Return C, corrected by true residuals while they halve, with U = KC, bounds on its errors, and b."""
    C, best, last = fit.coefficients(problem.lam), None, np.inf
    for _ in range(11):
        U, errors = gram.proof.product_bound(C)
        b = np.zeros(problem.n_outputs)
        if problem.bias:
            b = problem.total @ (problem.mean - U) / problem.mass
        if problem.lam == 0:
            return C, U, errors, b
        R, ratio = residual_share(problem, C, b, U, errors)
        if best is not None and not ratio < last:  # True for NaN too
            break
        best = C, U, errors, b
        if last < np.inf and (ratio <= 1 or ratio > 0.5 * last):
            break
        C, last = C + fit.coefficients(problem.lam, R), ratio
    assert best is not None
    return best


# Function that returns the score to minimise for each λ.
Score = Callable[[LeastSquares, PathValues], Floats]


@dataclass(frozen=True, eq=False)
class PathSolution:
    """Values and scores of every λ, and the solution at the best one."""

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
    criterion: ResidualCriterion | None = None,
) -> tuple[PathSolution, Certificate]:
    """Solve for the λ with the smallest score, among the `lams`; an integer stands for the size of the default range.

    The problem's own λ is not used. `criterion` computes one number from the leave-one-out residuals of each λ, which
    `score` may use (`PathValues.criterion_values`).
    """
    # 1. Choose the decomposition: by features for a linear kernel with d < n, otherwise by samples.
    n, linear = problem.n, gram.linear
    if linear is not None and linear.d >= n:
        linear = None
    needed_bytes = spectrum_bytes(n) if linear is None else linear_spectrum_bytes(linear.n, linear.d)
    if needed_bytes > gram.budget:
        raise memory_error(f"decomposing the matrix of {n:,} samples", needed_bytes, gram.budget)
    stop.report_progress(partial("eigenvalues of {:,} samples".format, n))
    with enforce_deadline(stop):
        spectrum = spectrum_of(gram, problem, stop) if linear is None else linear_spectrum_of(linear, problem, stop)
        fit = SpectralFit(problem, spectrum)
        lams = default_lams(spectrum, lams) if isinstance(lams, int) else lams
        values = fit.path(lams, criterion)
    # 2. Score every λ, and solve at the best.
    scores = score(problem, values)
    lam = float(lams[best_lam_index(scores)])
    chosen_problem = replace(problem, lam=lam)
    if linear is not None:
        solution, certificate = _from_svd(chosen_problem, gram, linear, fit)
    else:
        solution, certificate = solution_from_spectrum(chosen_problem, gram, fit)
    return PathSolution(lams, values, scores, fit.loo_residuals(lam), solution), certificate


def best_lam_index(scores: Floats) -> int:
    """Return the index of the smallest score; of equal scores, that of the largest λ, which gives the simplest f."""
    return int(np.flatnonzero(scores == scores.min())[-1])


def _from_svd(problem: LeastSquares, gram: Gram, linear: LinearGram, fit: SpectralFit) -> Proven:
    """Return the certified solution at the problem's λ in the features of a linear kernel."""
    sparse, mass = linear.sparse, problem.mass
    x, y = np.zeros(linear.d), np.zeros(problem.n_outputs)
    if problem.bias:
        x, y = linear.transposed(problem.total) / mass, problem.weight @ problem.Y / mass
    W = refined_weights(problem, linear, x, y, fit.weights(problem.lam), partial(fit.feature_inverse, problem.lam))
    centre = x if problem.bias and not sparse else None
    # The mean of the residuals, not of the targets, gives the best bias to the last digit.
    residual_sum = problem.total @ (problem.mean - linear.times(W, centre) - y)
    b = y + residual_sum / mass - x @ W if problem.bias else y
    beta, certificate = certify_weights(problem, linear, W, b, centre)
    if not is_exact(problem, certificate):  # features of very different scales are not resolved together
        solution, certificate = solve_covariance(problem, gram, Stop(tol=0.0, max_iter=1))
        return replace(solution, sums=None), certificate
    return LeastSquaresSolution(
        b, "covariance" if sparse else "svd", len(fit.spectrum.values), W=W, beta=beta
    ), certificate
