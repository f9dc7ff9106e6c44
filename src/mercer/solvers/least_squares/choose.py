"""One least-squares problem solved by the way that suits it, with its certificate."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Floats, is_sparse, sums_by
from mercer.certificates.certificate import Certificate
from mercer.certificates.least_squares import certify_limit, certify_outputs
from mercer.data.merging import Merged
from mercer.errors import INDEFINITE, NonPSDKernelWarning, SingularSystemWarning
from mercer.expansion import Expansion
from mercer.gram import Gram, gram_for
from mercer.gram.linear_gram import LinearGram
from mercer.gram.whole import products
from mercer.kernels import Kernel
from mercer.parameters import real
from mercer.problems.least_squares import LeastSquares
from mercer.solution import Stop
from mercer.solvers.conjugate_gradient import solve_ridge
from mercer.solvers.least_squares.cholesky import System, factor_bytes, precisions, solve_by_cholesky
from mercer.solvers.least_squares.covariance import RidgeFactor, Sums
from mercer.solvers.least_squares.eigen import SpectralFit, linear_spectrum_of, spectrum_bytes, spectrum_of
from mercer.solvers.least_squares.lsqr import solve_by_lsqr

SOLVERS = ("auto", "cholesky", "eigen", "cg", "covariance", "lsqr")
# Conjugate gradients end at this relative duality gap, far below what any target is known to, or after so many steps.
_CG_GAP, _CG_STEPS = 1e-10, 2000
# A covariance of sparse samples is dense: beyond this many features products with X are cheaper.
_SPARSE_FEATURES = 5000
_REMEDY = "a smaller subsample, NystromRLS, or a linear kernel"


@dataclass(frozen=True, eq=False)
class Prepared:
    """A fit's input, checked: the samples, the problem, and the means to solve it."""

    X: Any
    kernel: Kernel
    merged: Merged
    problem: LeastSquares
    target: Any
    budget: int
    n_threads: int

    @property
    def scale(self) -> float | None:
        """The factor s of a linear kernel k = s⟨x, z⟩; None for any other."""
        return linear_scale(self.kernel)

    def gram(self, level: int) -> Gram:
        """K of the distinct samples; where it is seen to be indefinite, the caller `level` frames up is warned."""
        K = self.merged.X
        if self.kernel.accepts == "gram" and len(self.merged.rows) < len(self.X):
            K = K[:, self.merged.rows]
        gram = gram_for(self.kernel, K, self.budget, self.n_threads)
        if not gram.looks_positive_definite():
            warnings.warn(INDEFINITE.format(kernel=self.kernel), NonPSDKernelWarning, stacklevel=level + 1)
        return gram


@dataclass(frozen=True, eq=False)
class Answer:
    """What a solver found: coefficients of the distinct samples or weights of the features, b, and the proof."""

    b: Floats
    certificate: Certificate
    solver: str
    precision: str
    rank: int
    beta: Floats | None = None  # of the rows; λ = 0 leaves it undefined
    C: Floats | None = None
    W: Floats | None = None
    sums: Sums | None = None
    steps: int = 1
    reached: bool = True


def linear_scale(kernel: Kernel) -> float | None:
    """The factor s of a kernel k = s⟨x, z⟩ on vectors, None for any other."""
    recipe = kernel.recipe() if kernel.accepts == "vectors" else None
    return recipe.scale if recipe is not None and recipe.linear else None


def checked_lam(name: str, value: Any, at_zero: str = "") -> float:
    """λ as a finite number that is not negative, and positive where `at_zero` says what to use instead of 0."""
    lam = real(name, value)
    if lam == math.inf:
        raise ValueError(
            f"{name}=inf leaves only the constant: the weighted mean of y, or 0 without bias. Use a finite {name}, or "
            "sklearn.dummy for the constant itself"
        )
    if not lam >= 0 or (lam == 0 and at_zero):
        least = f"above 0; {at_zero}" if at_zero else "of at least 0"
        raise ValueError(f"{name}={value!r} must be a finite number {least}")
    return lam


def memory_error(what: str, needed: float, budget: float, instead: str = _REMEDY) -> MemoryError:
    """What would not fit, said before it is tried."""
    return MemoryError(
        f"{what} needs {needed / 1e6:,.0f} MB, but a fit may use {budget / 1e6:,.0f} MB: raise cache_size (which is "
        f"limited to half of this machine's memory), or use {instead}"
    )


def warn_singular(rank: int, n: int, lam: float, level: int) -> None:
    """Tell the caller `level` frames up that directions were dropped."""
    warnings.warn(
        f"the system is singular to rounding at lam={lam:g}: its effective rank is {rank} of {n}. The solution of "
        "least norm was taken through eigenvalues; raise lam for a unique one",
        SingularSystemWarning,
        stacklevel=level + 1,
    )


def linear_expansion(kernel: Kernel, W: Floats, b: Floats) -> Expansion:
    """f(x) = ⟨w, x⟩ + b as an expansion in the weight vectors themselves, one per output."""
    scale = linear_scale(kernel) or 1.0
    return Expansion(kernel, np.ascontiguousarray(W.T), np.eye(W.shape[1]) / scale, b)


def check_weights(problem: LeastSquares, lam: float) -> None:
    """Refuse weights of which λ/w is no number any more."""
    smallest = float(problem.weight.min())
    if lam / np.finfo(np.float64).max >= smallest:
        raise ValueError(f"sample_weight holds {smallest:g}, too small beside lam={lam:g}; use 0 to leave a sample out")


def solve(ready: Prepared, lam: float, solver: str, level: int = 6) -> Answer:
    """The answer for one λ by the named solver; warnings go to the caller `level` frames up."""
    check_weights(ready.problem, lam)
    way = solver if solver != "auto" else _way(ready, lam)
    if way in ("covariance", "lsqr"):
        if ready.scale is None:
            raise ValueError(f"solver={solver!r} is for linear kernels, and this one is {ready.kernel!r}; use 'auto'")
        return (_by_covariance if way == "covariance" else _by_lsqr)(ready, lam, level + 1)
    return (_by_cg if way == "cg" else _by_kernel)(ready, lam, way, level + 1)


def _way(ready: Prepared, lam: float) -> str:
    n = ready.problem.n
    if ready.scale is not None:
        d = ready.merged.X.shape[1]
        moderate = 24 * d * d <= ready.budget and (d <= _SPARSE_FEATURES or not is_sparse(ready.merged.X))
        if d < n and moderate:
            return "covariance"
        if factor_bytes(n, np.float64) > ready.budget and lam > 0:
            return "lsqr"
    if lam > 0 and factor_bytes(n, np.float32) > ready.budget and ready.kernel.positive_definite == "yes":
        return "cg"
    return "cholesky" if lam > 0 else "eigen"


# --- any kernel -----------------------------------------------------------------------------------------------------


def _by_kernel(ready: Prepared, lam: float, way: str, level: int) -> Answer:
    problem, budget, n = ready.problem, ready.budget, ready.problem.n
    if way == "eigen" or lam == 0:
        return _by_eigen(ready, ready.gram(level + 1), lam, level + 1)
    if factor_bytes(n, np.float32) > budget:
        raise memory_error(f"the kernel matrix of {n:,} samples", factor_bytes(n, np.float32), budget)
    gram = ready.gram(level + 1)
    system = System(problem.mean, lam / problem.total, problem.bias)
    for dtype in precisions(gram):
        if factor_bytes(n, dtype) > budget:
            raise memory_error(
                f"a float64 factor of {n:,} samples, which lam={lam:g} needs,",
                factor_bytes(n, dtype),
                budget,
                "a larger lam, for which float32 suffices, or NystromRLS",
            )
        found = solve_by_cholesky(system, gram, dtype)
        if found is not None:
            beta = problem.split(found.C, lam)
            certificate = certify_outputs(problem, gram, beta, found.U, lam)
            b = np.array(certificate.b) if problem.bias else found.b
            return Answer(
                b,
                certificate,
                "cholesky",
                found.precision,
                n,
                beta=beta,
                C=found.C,
                steps=found.corrections,
                reached=found.reached,
            )
    return _by_eigen(ready, gram, lam, level + 1)


def _by_cg(ready: Prepared, lam: float, way: str, level: int) -> Answer:
    """K is never stored; the bias is eliminated by one more right-hand side, the constant 1."""
    problem = ready.problem
    if lam == 0:
        raise ValueError("solver='cg' needs lam above 0; use solver='eigen' for the limit of least norm")
    gram = ready.gram(level + 1)
    if gram.positive_definite == "no":
        raise ValueError(f"solver='cg' needs a positive semi-definite matrix, and {ready.kernel!r} has none here")
    sides = [problem.mean, np.ones((problem.n, 1))] if problem.bias else [problem.mean]
    found = solve_ridge(gram, np.column_stack(sides), lam, Stop(_CG_GAP, _CG_STEPS), problem.total)
    C = found.C[:, : problem.n_outputs]
    if problem.bias:
        one = found.C[:, -1]
        C = C - np.outer(one, C.sum(axis=0) / one.sum())
    beta = problem.split(C, lam)
    certificate = certify_outputs(problem, gram, beta, products(gram, C), lam)
    b = np.array(certificate.b) if problem.bias else np.zeros(problem.n_outputs)
    reached = found.stop_reason == "converged"
    return Answer(b, certificate, "cg", "float64", problem.n, beta=beta, C=C, steps=found.steps, reached=reached)


def _by_eigen(ready: Prepared, gram: Gram, lam: float, level: int) -> Answer:
    problem, n = ready.problem, ready.problem.n
    if spectrum_bytes(n) > ready.budget:
        raise memory_error(
            f"the system of {n:,} samples is singular to rounding at lam={lam:g}, and decomposing it",
            spectrum_bytes(n),
            ready.budget,
            f"a larger lam, {_REMEDY}",
        )
    fit = SpectralFit(problem, spectrum_of(gram, problem))
    return spectral_answer(ready, gram, fit, lam, level + 1)


def spectral_answer(ready: Prepared, gram: Gram, fit: SpectralFit, lam: float, level: int) -> Answer:
    """The answer for one λ from a decomposition."""
    problem = ready.problem
    inverse = fit.inverse(lam)
    rank, full = int(np.count_nonzero(inverse)), problem.n - problem.bias
    if (inverse < 0).any() and gram.positive_definite != "no":
        gram.refute()
        warnings.warn(INDEFINITE.format(kernel=ready.kernel), NonPSDKernelWarning, stacklevel=level + 1)
    if rank < full:
        warn_singular(rank, full, lam, level + 1)
    C = fit.coefficients(lam)
    U = products(gram, C)
    b = problem.total @ (problem.mean - U) / problem.mass if problem.bias else np.zeros(problem.n_outputs)
    if lam == 0:
        return Answer(b, certify_limit(problem, gram, C, U, b), "eigen", "float64", rank, C=C)
    beta = problem.split(C, lam)
    certificate = certify_outputs(problem, gram, beta, U, lam)
    return Answer(b, certificate, "eigen", "float64", rank, beta=beta, C=C)


# --- linear kernels -------------------------------------------------------------------------------------------------


def _by_covariance(ready: Prepared, lam: float, level: int) -> Answer:
    problem, X, scale = ready.problem, ready.merged.X, ready.scale or 1.0
    d = X.shape[1]
    if 24 * d * d > ready.budget:
        raise memory_error(f"the covariance of {d:,} features", 24 * d * d, ready.budget, "solver='lsqr'")
    sums = Sums.of(X, problem)
    if lam == 0 and not is_sparse(X):
        # The singular values of X resolve what their squares do not.
        fit = SpectralFit(problem, linear_spectrum_of(X, scale, problem))
        W, rank = fit.weights(0.0), len(fit.spectrum.values)
    else:
        factor = RidgeFactor(sums.xx, lam / scale, ready.n_threads)
        W, rank = factor.solve(sums.xy), factor.rank
        gram = LinearGram(X)
        for _ in range(2):  # corrected by what the samples themselves say: centring sparse samples costs digits
            residual = problem.total[:, None] * (problem.mean - gram.times(W) - (sums.y - sums.x @ W))
            gradient = gram.transposed(residual) - np.outer(sums.x, residual.sum(axis=0)) - lam / scale * W
            W = W + factor.solve(gradient)
    if rank < d:
        warn_singular(rank, d, lam, level + 1)
    return linear_answer(ready, W, sums.y - sums.x @ W, lam, "covariance", rank, sums=sums)


def _by_lsqr(ready: Prepared, lam: float, level: int) -> Answer:
    W, b, steps = solve_by_lsqr(ready.merged.X, ready.problem, lam / (ready.scale or 1.0))
    answer = linear_answer(ready, W, b, lam, "lsqr", min(ready.merged.X.shape))
    size = np.abs(ready.problem.Y).max() + np.abs(b).max(initial=0.0)
    reached = lam == 0 or answer.certificate.violation <= 1e-6 * size
    return Answer(**{**vars(answer), "steps": steps, "reached": reached})


def linear_answer(
    ready: Prepared, W: Floats, b: Floats, lam: float, solver: str, rank: int, sums: Sums | None = None
) -> Answer:
    """The answer for weights of the features; its certificate asks whether they are what the samples' β give."""
    problem = ready.problem
    gram = LinearGram(ready.merged.X, ready.scale or 1.0)
    F = gram.times(W) + b
    if lam == 0:
        certificate = certify_limit(problem, gram, np.zeros_like(F), F - b, b)
        return Answer(b, certificate, solver, "float64", rank, W=W, sums=sums)
    beta = problem.duals(F, lam)
    if problem.bias:  # what rounding left of the sum, spread by weight
        beta -= (problem.weight / problem.mass)[:, None] * beta.sum(axis=0)
    joint = np.column_stack([sums_by(problem.member, column, problem.n) for column in beta.T])
    certificate = certify_outputs(problem, gram, beta, products(gram, joint), lam)
    return Answer(b, certificate, solver, "float64", rank, beta=beta, W=W, sums=sums)
