"""Laplace's approximation of a Gaussian process for two classes (Rasmussen and Williams 2006, sections 3.4 and 5.5.1).

With f a Gaussian process of covariance k and P(y = ±1 | f) = σ(yf) = 1/(1 + e^(−yf)), the posterior is approximated by
a normal distribution around its mode, f̂ = Kc. The mode is KernelMachine("logistic", lam=½, bias=False): it minimises
½c'Kc + Σ w_i log(1 + e^(−y_if_i)). With W = wσ(f̂)σ(−f̂), B = I + W½KW½, R = (K + W⁻¹)⁻¹ and Σ = K − KRK,

    mean        E f(x)   = k(x)'c
    variance    Var f(x) = k(x, x) − k(x)'R k(x)
    likelihood  log p(y) ≈ −½c'f̂ − Σ w log(1 + e^(−yf̂)) − ½ log det B
    gradient    Σ_ij (½(cc' − R) + vc')_ij ∂K_ij/∂θ,    v = (I − RK)s,  s_i = ½Σ_ii ∂³/∂f̂³ [w log σ(yf̂)]

The first term that Laplace's approximation leaves out of log p(y) is, with the third and fourth derivatives t and q of
w log σ(yf̂),

    ⅛Σ_i q_iΣ_ii² + ⅛Σ_ij t_iΣ_iiΣ_ijΣ_jjt_j + 1/12 Σ_ij t_iΣ_ij³t_j

(Shun and McCullagh, 1995). It estimates the error, but does not bound it: if it is small, the approximation is good.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from mercer.certificates.certificate import Certificate
from mercer.certificates.representer import certify_representer
from mercer.estimators.gaussian_process.process import Process
from mercer.kernels import Kernel
from mercer.places.gram import Factor, Gram
from mercer.problems.losses import Logistic
from mercer.problems.representer import RepresenterProblem
from mercer.samples.arrays import Floats, n_samples, row_blocks
from mercer.solvers.representer import RepresenterSolution, solve_representer
from mercer.solvers.solution import Stop

_MODE_STOP = Stop(tol=1e-14, max_iter=200)
# Lower bound on W, so that 1/W stays finite.
_SMALLEST_CURVATURE = 1e-280
# Standard deviation of f above which 1/(1 + e^(−f)) is split into a step and a remainder.
_WIDE_DEVIATION = 9.0


def mode_problem(y: Floats, weight: Floats) -> RepresenterProblem:
    """Return the problem of the mode: minimise ½‖f‖² + Σ w log(1 + e^(−yf))."""
    return RepresenterProblem(np.ascontiguousarray(y), weight, Logistic(), 0.5, False)


def solve_mode(
    problem: RepresenterProblem, gram: Gram, stop: Stop, start: Any = None
) -> tuple[RepresenterSolution, Certificate]:
    """Return the mode and its certificate, after one additional Newton step.

    The step is needed because the error of f̂ is of the order of the square root of that of the objective: when the gap
    is as small as rounding allows, f̂ is still less accurate.
    """
    solution, proof = solve_representer(problem, gram, stop, start)
    if solution.stop_reason != "converged":
        return solution, proof
    f = gram.product(solution.c)
    W = np.maximum(problem.curvature(f), _SMALLEST_CURVATURE)
    factor = gram.factor(1.0 / W, n_threads=stop.n_threads)
    if factor is None:
        return solution, proof
    b = W * f - problem.gradient(f)
    c = b - factor.solve(gram.product(b)[:, None])[:, 0]
    new_proof = certify_representer(problem, gram.proof, c, 0.0, stop.tol)
    return (replace(solution, c=c), new_proof) if new_proof.gap <= 2 * proof.gap else (solution, proof)


class LaplaceProcess(Process):
    """Gaussian process for two classes, y = ±1; a weight is equivalent to that many repetitions of the sample."""

    def __init__(
        self, X: Any, y: Floats, weight: Floats, *, kernel: Kernel, coefficients: Floats | None = None
    ) -> None:
        """Store the samples; `coefficients` are those of the mode, if it is known already."""
        super().__init__(X, weight, kernel)
        self.y, self._given_coefficients = y, coefficients

    # --- the mode, computed here or given by the fitted machine ------------------------------------------------------

    @cached_property
    def _gram(self) -> Gram:
        return self._make_gram()

    @cached_property
    def coefficients(self) -> Floats:
        """Coefficients c of the mode f̂ = Kc."""
        if self._given_coefficients is not None:
            return self._given_coefficients
        return solve_mode(mode_problem(self.y, self.weight), self._gram, _MODE_STOP)[0].c

    @cached_property
    def mode(self) -> Floats:
        """Values of the mode f̂ at the samples."""
        return self._gram.product(self.coefficients)

    @cached_property
    def curvature(self) -> Floats:
        """Curvature W of the negative log-likelihood at the mode."""
        return np.maximum(self.weight * expit(self.mode) * expit(-self.mode), _SMALLEST_CURVATURE)

    @cached_property
    def _factor(self) -> Factor:
        """Cholesky factor of K + W⁻¹."""
        return self._cholesky_factor(self._gram, 1.0 / self.curvature, "K + W⁻¹")

    # --- new samples -------------------------------------------------------------------------------------------------

    def latent(self, X: Any) -> tuple[Floats, Floats]:
        """Return the posterior mean and variance of f at new samples."""
        samples = self._samples(X)
        mean, variance = np.empty(n_samples(samples)), np.array(self.kernel.diag(samples), dtype=np.float64)
        for block, rows in self._blocks(samples):
            K = self.kernel(self.X, rows)
            mean[block] = self.coefficients @ K
            variance[block] -= np.einsum("ij,ij->j", K, self._factor.solve(K))
        return mean, np.maximum(variance, 0.0)

    # --- marginal likelihood -----------------------------------------------------------------------------------------

    @cached_property
    def log_likelihood(self) -> float:
        """Laplace's approximation of the log marginal likelihood log p(y)."""
        c, f = self.coefficients, self.mode
        determinant = 2.0 * float(np.log(self._factor.pivots).sum()) + float(np.log(self.curvature).sum())
        return -0.5 * float(c @ f) - float(self.weight @ np.logaddexp(0.0, -self.y * f)) - 0.5 * determinant

    @cached_property
    def _covariances(self) -> tuple[Floats, Floats, Floats]:
        """Covariance K of the prior, R = (K + W⁻¹)⁻¹, and covariance Σ = K − KRK of the posterior, at the samples."""
        rows = np.arange(len(self.y))
        K = self._gram.block(rows, rows)
        R = self._factor.solve(np.eye(len(self.y)))
        return K, R, K - K @ R @ K

    @cached_property
    def log_likelihood_gradient(self) -> dict[str, Any]:
        """Derivatives of `log_likelihood` with respect to the kernel's parameters, by their names in `get_params`."""
        K, R, S = self._covariances
        third_derivative = -self.curvature * (expit(-self.mode) - expit(self.mode))
        s = 0.5 * S.diagonal() * third_derivative
        v = s - R @ (K @ s)
        weights = 0.5 * (np.outer(self.coefficients, self.coefficients) - R) + np.outer(v, self.coefficients)
        return self.kernel.parameter_gradient(self.X, weights=weights)

    @cached_property
    def correction(self) -> float:
        """Estimate of log p(y) − `log_likelihood`: the first neglected term of the expansion."""
        p, q = expit(self.mode), expit(-self.mode)
        third_derivative, fourth_derivative = -self.curvature * (q - p), -self.curvature * (1.0 - 6.0 * p * q)
        S = self._covariances[2]
        diagonal = S.diagonal()
        double_sums = float(
            third_derivative @ (np.outer(diagonal, diagonal) * S / 8.0 + S**3 / 12.0) @ third_derivative
        )
        return float(fourth_derivative @ diagonal**2) / 8.0 + double_sums


def mean_sigmoid(mean: Floats, variance: Floats) -> Floats:
    """Return E σ(z) for normal z with these means m and variances s², by the trapezoidal rule.

    The rule converges exponentially for analytic functions. σ has poles at ±πi, so that its step must be small compared
    with π/s. For large s,

        E σ(z) = Φ(m/s) + ∫ over t > 0 of [φ((t + m)/s) − φ((t − m)/s)]/s · σ(−t)

    is used instead: the integral is over the difference between σ and a step function, and needs no more points for
    larger s.
    """
    out, root = np.empty(len(mean)), np.sqrt(variance)
    is_wide = root > _WIDE_DEVIATION
    t = np.linspace(-9.0, 9.0, 81 + 60 * int(_WIDE_DEVIATION))
    density = np.exp(-0.5 * t * t)
    for rows in row_blocks(len(mean), 8 * len(t)):
        m, s = mean[rows, None], root[rows, None]
        out[rows] = expit(m + np.minimum(s, _WIDE_DEVIATION) * t) @ (density / density.sum())
        if is_wide[rows].any():
            m, s = m[is_wide[rows]], s[is_wide[rows]]
            nodes, weights = _remainder_quadrature()
            plus, minus = (np.exp(-0.5 * ((nodes + sign * m) / s) ** 2) for sign in (1, -1))
            out[rows][is_wide[rows]] = ndtr(m / s)[:, 0] + (plus - minus) @ weights / s[:, 0]
    return np.clip(out, 0.0, 1.0)


@cache
def _remainder_quadrature() -> tuple[Floats, Floats]:
    """Return Gauss–Legendre nodes t > 0, and weights that include the factor σ(−t)/√2π."""
    t, w = np.polynomial.legendre.leggauss(300)
    nodes = 60.0 * (t + 1.0)
    return nodes, 60.0 * w * expit(-nodes) / np.sqrt(2 * np.pi)
