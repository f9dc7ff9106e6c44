"""Every λ from one reduction to a band, without eigenvectors.

With the S and ỹ of mercer.solvers.least_squares.spectrum, S = QBQᵀ for a band matrix B, a = Qᵀỹ and B + λI = LLᵀ:

    residuals W^½(y − f) = λQ(B + λI)⁻¹a,     1 − H_ii = λ‖L⁻¹q_i‖²

where q_i is row i of Q. The band costs about half of the eigenvectors. Each λ then takes n² times the band's width.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

from mercer import _core
from mercer.arrays import Floats
from mercer.gram.gram import Gram
from mercer.problems.least_squares import LeastSquares
from mercer.solution import Stop
from mercer.solvers.in_time import NO_FACTOR, expect_in_time
from mercer.solvers.least_squares.band import reduce_to_band
from mercer.solvers.least_squares.blas import usable
from mercer.solvers.least_squares.leave_one_out import PathFit, Share
from mercer.solvers.least_squares.spectrum import add_outer, lowest_of_range, rounding, scaled_matrix

# A band saves n³ · 1.2e-10 s and takes n² · 2.5e-9 s for each λ, where eigenvectors take hardly anything (n = 2,500,
# one AVX2 core): so it is faster from 21 samples per λ on. With few samples what each block costs in Python counts.
SAMPLES_PER_LAM, FEWEST_SAMPLES = 40, 1000
# λ must be at least this multiple of an eigenvalue's rounding: then B + λI has a factor, and every direction counts.
_ROUNDINGS = 8.0
# Samples whose kernel matrix shows whether K has a null space.
_RANK_SAMPLES = 256
# Factors of B + λI that are used at a time take about this many bytes.
_FACTOR_BYTES = 32 << 20


class BandFit(PathFit):
    """A problem with a positive semi-definite kernel, seen from the band of its matrix."""

    solver = "band"

    def __init__(self, problem: LeastSquares, gram: Gram, stop: Stop) -> None:
        super().__init__(problem)
        self._n_threads = gram.n_threads
        # It is symmetric: its transpose is the same matrix in Fortran's order.
        S = scaled_matrix(gram, problem).T
        expect_in_time(stop, S, lambda part: reduce_to_band(np.asfortranarray(part), n_threads=gram.n_threads))
        watch = partial(_end_in_time, stop)
        if problem.bias:
            # H = I − 2hh' takes u to the first axis, where S is zero. The rest of HSH is S on what is orthogonal to u.
            h = self.root / np.linalg.norm(self.root)
            h[0] += 1.0
            h /= np.linalg.norm(h)
            m = S @ h
            m -= (h @ m) * h
            add_outer(S.T, -2.0, h, m)
            add_outer(S.T, -2.0, m, h)
            self._band = reduce_to_band(S[1:, 1:], watch=watch, n_threads=gram.n_threads)
            self.basis = S[:, 1:]
            self.basis[0] = 0.0
            add_outer(self.basis.T, -2.0, self.basis.T @ h, h)
        else:
            self._band = reduce_to_band(S, watch=watch, n_threads=gram.n_threads)
            self.basis = S
        self._a = self.basis.T @ (self.root[:, None] * problem.mean)
        self.top = _largest_eigenvalue(self._band)

    @staticmethod
    def suits(problem: LeastSquares, gram: Gram, lams: Floats | int) -> bool:
        """Whether a band answers for these λ, as far as can be told before: all are far above rounding."""
        count = lams if isinstance(lams, int) else len(lams)
        if problem.n < max(FEWEST_SAMPLES, SAMPLES_PER_LAM * count):
            return False
        if gram.positive_definite != "yes" or not usable():
            return False
        # S has no eigenvalue above its trace.
        if not isinstance(lams, int) and lams.min() <= _rounding(problem.n, float(problem.total @ gram.diagonal)):
            return False
        # Where K has a null space, eigenvectors tell what is in it, and a band knows only that it is near.
        some = np.linspace(0, gram.n - 1, min(gram.n, _RANK_SAMPLES)).astype(np.int64)
        K = gram.block(some, some)
        if not np.isfinite(K).all():
            return False
        values = np.asarray(scipy.linalg.eigvalsh(K, check_finite=False), dtype=np.float64)
        return bool(values[0] > rounding(values, len(some)))

    def lams(self, count: int) -> Floats:
        """The range of lams_from (mercer.solvers.least_squares.spectrum)."""
        if not self.top > np.finfo(np.float64).tiny:
            return np.geomspace(1e-6, 1.0, count)
        mean = float(self._band[:, 0].sum()) / self.problem.n
        return np.geomspace(lowest_of_range(self.top, mean, self._least_between), self.top, count)

    def resolves(self, lam: float) -> bool:
        """Whether λ is far above what rounding does to eigenvalues."""
        return lam > _rounding(self.problem.n, self.top)

    def at(self, lams: Floats) -> Share:
        n, q, width = len(self._band), self.problem.n_outputs, self._band.shape[1]
        solutions, free = np.empty((n, len(lams), q)), np.empty((self.problem.n, len(lams)))
        step = max(1, _FACTOR_BYTES // (8 * n * width))
        for start in range(0, len(lams), step):
            some = range(start, min(len(lams), start + step))
            factors = np.stack([self._factor(lam) for lam in lams[some.start : some.stop].tolist()])
            for k, factor in zip(some, factors, strict=True):
                solutions[:, k] = _solve(factor, self._a)
            squares = np.empty((self.problem.n, len(some)))
            _core.band_squares(factors, self.basis.T, squares, self._n_threads)
            free[:, some.start : some.stop] = lams[some.start : some.stop] * squares
        flat = solutions.reshape(n, -1)
        norms = np.sqrt(np.maximum(np.sum(flat * _times(self._band, flat), axis=0), 0.0)).reshape(len(lams), q)
        residuals = (self.basis @ flat).reshape(-1, len(lams), q) * lams[:, None]
        return Share(residuals, free, norms, n - free.sum(axis=0) + self.problem.bias)

    def coefficients(self, lam: float) -> Floats:
        return np.asarray(self.root[:, None] * (self.basis @ _solve(self._factor(lam), self._a)))

    def correction(self, lam: float, R: Floats) -> Floats:
        inside = _solve(self._factor(lam), self.basis.T @ (self.root[:, None] * R))
        return np.asarray(self.root[:, None] * (self.basis @ inside))

    def directions(self, lam: float) -> tuple[int, bool]:
        return len(self._band), False

    def _factor(self, lam: float) -> Floats:
        """L of B + λI, [column, row − column]."""
        shifted = self._band.copy()
        shifted[:, 0] += lam
        factor, bad = scipy.linalg.lapack.dpbtrf(shifted.T, lower=1, overwrite_ab=True)
        if bad:
            raise np.linalg.LinAlgError(f"B + λI has no factor at λ = {lam:g}")
        return np.ascontiguousarray(factor.T)

    def _least_between(self, floor: float, high: float) -> float:
        """The least eigenvalue that is more than rounding, or what is nearest to it between these numbers.

        If there is one below `floor`, that is `floor`, and else the first one above it: Lanczos' method finds the
        nearest on both sides through (B − floor·I)⁻¹. All eigenvalues would take a third as long as the band.
        """
        least = self.problem.n * np.finfo(np.float64).eps * self.top
        try:
            below, above = nearest_eigenvalues(self._band, floor)
        except (scipy.sparse.linalg.ArpackError, np.linalg.LinAlgError):
            found = scipy.linalg.eig_banded(
                self._band.T, lower=True, eigvals_only=True, select="v", select_range=(least, high), check_finite=False
            )
            return max(floor, float(found.min(initial=high)))
        return floor if least < below <= floor else min(high, above)


def _solve(factor: Floats, B: Floats) -> Floats:
    solution, _ = scipy.linalg.lapack.dpbtrs(factor.T, B, lower=1)
    return np.asarray(solution)


def _times(band: Floats, X: Floats) -> Floats:
    """BX."""
    out = band[:, :1] * X
    for k in range(1, min(band.shape[1], len(band))):
        out[k:] += band[:-k, k, None] * X[:-k]
        out[:-k] += band[:-k, k, None] * X[k:]
    return np.asarray(out)


def _largest_eigenvalue(band: Floats) -> float:
    """By Lanczos' method to rounding; where that does not converge, by all eigenvalues."""
    n = len(band)
    operator = scipy.sparse.linalg.LinearOperator(
        (n, n), matvec=lambda x: _times(band, x.reshape(-1, 1))[:, 0], dtype=float
    )
    try:
        return float(scipy.sparse.linalg.eigsh(operator, 1, which="LA", v0=np.ones(n), return_eigenvectors=False)[0])
    except scipy.sparse.linalg.ArpackError:
        return float(scipy.linalg.eig_banded(band.T, lower=True, eigvals_only=True, check_finite=False).max())


def nearest_eigenvalues(band: Floats, shift: float) -> tuple[float, float]:
    """The eigenvalues of B next to a shift, below it and above it; where a side has none, −∞ or ∞."""
    n, width = len(band), band.shape[1] - 1
    full = np.zeros((3 * width + 1, n), order="F")  # as dgbtrf wants it, with room for what pivoting fills in
    for k in range(width + 1):
        full[2 * width + k, : n - k] = band[: n - k, k]
        full[2 * width - k, k:] = band[: n - k, k]
    full[2 * width] -= shift
    factor, pivots, bad = scipy.linalg.lapack.dgbtrf(full, width, width, overwrite_ab=True)
    if bad:
        raise np.linalg.LinAlgError(f"{shift:g} is an eigenvalue")

    def solve(x: Floats) -> Floats:
        return np.asarray(scipy.linalg.lapack.dgbtrs(factor, width, width, x, pivots)[0])

    inverse = scipy.sparse.linalg.LinearOperator((n, n), matvec=solve, dtype=float)
    start, nearest = np.random.default_rng(0).normal(size=n), []
    for which in ("SA", "LA"):
        found = scipy.sparse.linalg.eigsh(inverse, 1, which=which, v0=start, return_eigenvectors=False, tol=1e-12)
        nearest.append(float(found[0]))
    low, high = nearest
    return shift + 1.0 / low if low < 0 else -np.inf, shift + 1.0 / high if high > 0 else np.inf


def _rounding(n: int, top: float) -> float:
    return float(_ROUNDINGS * n * np.finfo(np.float64).eps * top)


def _end_in_time(stop: Stop, done: float) -> None:
    if stop.seconds <= 0:
        raise TimeoutError(f"max_time passed before there was a solution: {NO_FACTOR}")
