"""Two classes as a Gaussian process, by Laplace's approximation (Rasmussen and Williams 2006, sections 3.4 and 5.5.1).

With f a Gaussian process of covariance k and P(y = ±1 | f) = σ(yf) = 1/(1 + e^(−yf)), the posterior is replaced by a
normal one around its mode, f̂ = Kc. That mode is KernelMachine("logistic", lam=½, bias=False): it minimises
½c'Kc + Σ w_i log(1 + e^(−y_if_i)). With W = wσ(f̂)σ(−f̂), B = I + W½KW½, R = (K + W⁻¹)⁻¹ and Σ = K − KRK,

    mean        E f(x)   = k(x)'c
    variance    Var f(x) = k(x, x) − k(x)'R k(x)
    likelihood  log p(y) ≈ −½c'f̂ − Σ w log(1 + e^(−yf̂)) − ½ log det B
    gradient    Σ_ij (½(cc' − R) + vc')_ij ∂K_ij/∂θ,    v = (I − RK)s,  s_i = ½Σ_ii ∂³/∂f̂³ [w log σ(yf̂)]

The first term that Laplace's approximation leaves out of log p(y) is, with the derivatives t = ∂³ and q = ∂⁴ of
w log σ(yf̂),

    ⅛Σ_i q_iΣ_ii² + ⅛Σ_ij t_iΣ_iiΣ_ijΣ_jjt_j + 1/12 Σ_ij t_iΣ_ij³t_j

(Shun and McCullagh, 1995). It is an estimate of the error, no bound: where it is small the approximation is good.
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

_MODE = Stop(tol=1e-14, max_iter=200)
# The curvature of a sample that is certain: R has nothing to say of it, and 1/W is a number.
_LEAST = 1e-280
# Deviations of f from which on 1/(1 + e^(−f)) is taken as a step and a rest.
_WIDE = 9.0


def mode_problem(y: Floats, weight: Floats) -> RepresenterProblem:
    """½‖f‖² + Σ w log(1 + e^(−yf))."""
    return RepresenterProblem(np.ascontiguousarray(y), weight, Logistic(), 0.5, False)


def solve_mode(
    problem: RepresenterProblem, gram: Gram, stop: Stop, start: Any = None
) -> tuple[RepresenterSolution, Certificate]:
    """The mode with its proof, after one Newton step more: where the proof sees nothing but rounding, f̂ is still off by
    its root."""
    solution, proof = solve_representer(problem, gram, stop, start)
    if solution.stop_reason != "converged":
        return solution, proof
    f = gram.product(solution.c)
    W = np.maximum(problem.curvature(f), _LEAST)
    factor = gram.factor(1.0 / W, n_threads=stop.n_threads)
    if factor is None:
        return solution, proof
    b = W * f - problem.gradient(f)
    c = b - factor.solve(gram.product(b)[:, None])[:, 0]
    again = certify_representer(problem, gram.proof, c, 0.0, stop.tol)
    return (replace(solution, c=c), again) if again.gap <= 2 * proof.gap else (solution, proof)


class LaplaceProcess(Process):
    """The Gaussian process of two classes, y = ±1; a weight counts like that many repetitions of its sample."""

    def __init__(
        self, X: Any, y: Floats, weight: Floats, *, kernel: Kernel, coefficients: Floats | None = None
    ) -> None:
        """`coefficients` are those of the mode, where a machine has found it already."""
        super().__init__(X, weight, kernel)
        self.y, self._given = y, coefficients

    # --- the mode, found here or given by a machine that has it ------------------------------------------------------

    @cached_property
    def _gram(self) -> Gram:
        return self._make_gram()

    @cached_property
    def coefficients(self) -> Floats:
        """c of the mode f̂ = Kc."""
        if self._given is not None:
            return self._given
        return solve_mode(mode_problem(self.y, self.weight), self._gram, _MODE)[0].c

    @cached_property
    def mode(self) -> Floats:
        """f̂ at the samples."""
        return self._gram.product(self.coefficients)

    @cached_property
    def curvature(self) -> Floats:
        """W."""
        return np.maximum(self.weight * expit(self.mode) * expit(-self.mode), _LEAST)

    @cached_property
    def _factor(self) -> Factor:
        """K + W⁻¹ in factors."""
        return self._factored(self._gram, 1.0 / self.curvature, "K + W⁻¹")

    # --- new samples -------------------------------------------------------------------------------------------------

    def latent(self, X: Any) -> tuple[Floats, Floats]:
        """The mean and the variance of f at new samples."""
        new = self._samples(X)
        mean, variance = np.empty(n_samples(new)), np.array(self.kernel.diag(new), dtype=np.float64)
        for some, rows in self._blocks(new):
            K = self.kernel(self.X, rows)
            mean[some] = self.coefficients @ K
            variance[some] -= np.einsum("ij,ij->j", K, self._factor.solve(K))
        return mean, np.maximum(variance, 0.0)

    # --- how likely the data are -------------------------------------------------------------------------------------

    @cached_property
    def log_likelihood(self) -> float:
        """log p(y), the log marginal likelihood as Laplace approximates it."""
        c, f = self.coefficients, self.mode
        determinant = 2.0 * float(np.log(self._factor.pivots).sum()) + float(np.log(self.curvature).sum())
        return -0.5 * float(c @ f) - float(self.weight @ np.logaddexp(0.0, -self.y * f)) - 0.5 * determinant

    @cached_property
    def _inverse(self) -> tuple[Floats, Floats, Floats]:
        """K, R and Σ."""
        every = np.arange(len(self.y))
        K = self._gram.block(every, every)
        R = self._factor.solve(np.eye(len(self.y)))
        return K, R, K - K @ R @ K

    @cached_property
    def log_likelihood_gradient(self) -> dict[str, Any]:
        """Its derivatives by the kernel's parameters, by their names in `get_params`."""
        K, R, S = self._inverse
        third = -self.curvature * (expit(-self.mode) - expit(self.mode))
        s = 0.5 * S.diagonal() * third
        v = s - R @ (K @ s)
        weights = 0.5 * (np.outer(self.coefficients, self.coefficients) - R) + np.outer(v, self.coefficients)
        return self.kernel.parameter_gradient(self.X, weights=weights)

    @cached_property
    def correction(self) -> float:
        """An estimate of log p(y) less `log_likelihood`: the first term that the approximation leaves out."""
        up, down = expit(self.mode), expit(-self.mode)
        third, fourth = -self.curvature * (down - up), -self.curvature * (1.0 - 6.0 * up * down)
        S = self._inverse[2]
        own = S.diagonal()
        double = float(third @ (np.outer(own, own) * S / 8.0 + S**3 / 12.0) @ third)
        return float(fourth @ own**2) / 8.0 + double


def averaged(mean: Floats, variance: Floats) -> Floats:
    """E σ(z) of normal z, by the trapezoidal rule, which for such functions gains a digit with every few points.

    σ has poles at ±πi, so that the step must be small against π over the deviation s. Where that is large,

        E σ(z) = Φ(m/s) + ∫ over t > 0 of [φ((t + m)/s) − φ((t − m)/s)]/s · σ(−t)

    which is what σ differs from a step by, and needs no more points for a larger s.
    """
    out, root = np.empty(len(mean)), np.sqrt(variance)
    wide = root > _WIDE
    t = np.linspace(-9.0, 9.0, 81 + 60 * int(_WIDE))
    density = np.exp(-0.5 * t * t)
    for some in row_blocks(len(mean), 8 * len(t)):
        m, s = mean[some, None], root[some, None]
        out[some] = expit(m + np.minimum(s, _WIDE) * t) @ (density / density.sum())
        if wide[some].any():
            m, s = m[wide[some]], s[wide[some]]
            nodes, weights = _behind_the_step()
            near, far = (np.exp(-0.5 * ((nodes + sign * m) / s) ** 2) for sign in (1, -1))
            out[some][wide[some]] = ndtr(m / s)[:, 0] + (near - far) @ weights / s[:, 0]
    return np.clip(out, 0.0, 1.0)


@cache
def _behind_the_step() -> tuple[Floats, Floats]:
    """t > 0, and weights that contain σ(−t)/√2π."""
    t, w = np.polynomial.legendre.leggauss(300)
    nodes = 60.0 * (t + 1.0)
    return nodes, 60.0 * w * expit(-nodes) / np.sqrt(2 * np.pi)
