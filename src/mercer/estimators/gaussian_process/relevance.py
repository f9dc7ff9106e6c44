"""Relevance vector regression: sparse Bayesian regression with a prior for each coefficient (Tipping, 2001).

The model is y = Φw + noise of variance σ²/weight, where Φ has the columns k(·, x_j) and, with a bias, a column of ones,
and w_j is normal with variance 1/α_j. The evidence
log p(y | α, σ²) = −½[log det C + y'C⁻¹y + N log 2π], C = σ²W⁻¹ + ΣΦ_jΦ_j'/α_j, is maximised over one α_j at a time
(Tipping and Faul, 2003). With s_j = Φ_j'C₋ⱼ⁻¹Φ_j and q_j = Φ_j'C₋ⱼ⁻¹y, where C₋ⱼ is C without the term of j, the best
α_j is

    s_j²/(q_j² − s_j)    if q_j² > s_j
    infinite             otherwise: column j is dropped

    1. Change the α_j with the largest gain, until no gain exceeds a tenth of the last change of log σ².
    2. Set σ² ← Σ weight(y − Φμ)²/(N − Σ_j(1 − α_jΣ_jj)).
    3. Repeat until σ² no longer changes.

The problem is not convex: the result is a local maximum, and there is no certificate. kernlab's function is `rvm`.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning

from mercer.estimators.fitting.families.regressor import Regressor
from mercer.estimators.fitting.mixins import MachineMethods
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.machine import FitOptions, KernelChoice
from mercer.estimators.fitting.pipeline.reporting import Progress, warn_user
from mercer.estimators.fitting.pipeline.state import (
    Array,
    BoundKernel,
    Count,
    Flag,
    IndexArray,
    KernelExpansion,
    Number,
    Vectors,
    fitted,
)
from mercer.estimators.fitting.reports.coefficients import expansion_of
from mercer.runtime.parameters import positive
from mercer.runtime.refitting import blank_copy
from mercer.runtime.shared_docs import shared_docs
from mercer.runtime.threads import effective_n_threads
from mercer.samples.arrays import Data, Floats, Indices, freeze, host
from mercer.samples.engine import like_input
from mercer.solvers.least_squares.solution import memory_error

# Smallest gain in log p(y) that counts, smallest change of log σ² that counts, and limit on the updates of σ².
_SMALLEST_GAIN, _SMALLEST_NOISE_CHANGE, _MAX_NOISE_UPDATES = 1e-4, 1e-4, 200
# Number of multiplications above which a product may use BLAS threads, and that of a block computed without threads.
_THREADED_MULTIPLICATIONS, _SERIAL_MULTIPLICATIONS = 1 << 23, 1 << 18


@shared_docs
@dataclass(eq=False, repr=False)
class RelevanceVectorRegressor(MachineMethods, Regressor):
    """Relevance vector regression: sparse Bayesian regression with predictive variances.

    The coefficients of f(x) = Σ w_j k(x_j, x) + b have normal priors, whose variances maximise the marginal likelihood;
    most coefficients become zero. The kernel need not be positive definite. The result is that of kernlab's `rvm`,
    computed by the faster sequential algorithm of Tipping and Faul.

    Parameters
    ----------
    %(kernel)s
    bias : bool, default=True
        Whether f has a constant b, which has its own prior.
    noise : float, optional
        Initial value of the noise variance σ²; None means a tenth of the variance of y. The search ends in a local
        maximum of log p(y), which may depend on it: of several fits, keep the one with the largest
        `log_marginal_likelihood_value_`.
    max_iter : int, default=-1
        Maximum number of changes of a prior; −1 means 10,000.
    %(cache_size)s
    %(verbose)s
    %(n_jobs)s

    Attributes
    ----------
    relevance_ : array of shape (n_relevance,)
        Indices of the relevance vectors among the training samples, in ascending order.
    relevance_vectors_ : array of shape (n_relevance, n_features)
        Relevance vectors.
    dual_coef_ : array of shape (1, n_relevance)
        Posterior means of the coefficients.
    intercept_ : array of shape (1,)
        Posterior mean of the constant.
    alpha_ : array of shape (n_coefficients,)
        Precision of each prior; that of the constant, if it is used, is the last.
    sigma_ : array of shape (n_coefficients, n_coefficients)
        Posterior covariance of the coefficients, in the same order.
    noise_variance_ : float
        Variance σ² of the noise.
    log_marginal_likelihood_value_ : float
        Log marginal likelihood log p(y).
    converged_ : bool
        Whether a local maximum was reached.
    n_iter_ : int
        Number of changes of a prior.
    %(kernel with its numbers)s

    See Also
    --------
    GaussianProcessRegressor : Bayesian regression with all samples.
    SVR : Sparse regression by a tube.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RelevanceVectorRegressor
    >>> X = np.linspace(-10, 10, 100)[:, None]
    >>> y = np.sinc(X[:, 0] / np.pi) + 0.1 * np.random.default_rng(0).normal(size=100)
    >>> model = RelevanceVectorRegressor(gamma=0.1).fit(X, y)
    >>> len(model.relevance_) < 15, 0.005 < model.noise_variance_ < 0.02  # 0.01 is true
    (True, True)
    """

    _: KW_ONLY
    kernel: KernelChoice = "rbf"
    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0
    bias: bool = True
    noise: float | None = None
    max_iter: int = -1
    cache_size: float = 1000

    _default_steps = 10_000

    _FITTED = fitted(
        kernel_=BoundKernel(required=True),
        _expansion_=KernelExpansion(required=True),
        relevance_=IndexArray(required=True),
        relevance_vectors_=Vectors("relevance_"),
        dual_coef_=Array("outputs", "relevance_", required=True),
        alpha_=Array(None, required=True),
        sigma_=Array("alpha_", "alpha_", required=True),
        noise_variance_=Number(required=True),
        log_marginal_likelihood_value_=Number(required=True),
        converged_=Flag(),
        n_iter_=Count(),
    )

    def _check_parameters(self) -> None:
        if not isinstance(self.bias, bool | np.bool_):
            raise TypeError(f"bias={self.bias!r} must be True or False")
        if self.noise is not None:
            positive("noise", self.noise, "None begins with a tenth of the variance of y")

    def _fit_copy(self, X: Any, y: Any, sample_weight: Any, options: FitOptions) -> Any:
        """Return a copy fitted to samples."""
        trained_copy = blank_copy(self)
        progress = Progress(options.watched_by, bool(self.verbose), 1, X, y)
        trained_copy._learn(Fit.of(trained_copy, X, y, sample_weight), progress)
        progress.close(X, y, trained_copy)
        return trained_copy

    def _learn(self, fit: Fit, progress: Progress) -> None:
        """Maximise the evidence, and set the fitted attributes."""
        assert fit.kernel is not None
        gram, merged, n_threads = fit.gram(), fit.merged, effective_n_threads(self.n_jobs)
        n = len(merged.weight)
        if 24 * n**2 > fit.limits.budget:
            raise memory_error(f"kernel matrices of {n} samples", 24 * n**2, fit.limits.budget, "fewer samples")
        y, weight = fit.target[merged.first], merged.weight
        Phi = gram.float64_matrix(n_threads).products(np.eye(n))
        if self.bias:
            Phi = np.column_stack([Phi, np.ones(n)])
        report = progress.begin("")
        evidence = _Evidence(Phi, y, weight, self.noise)
        limit = fit.limits.stop.max_iter
        self.converged_ = evidence.maximise(limit, lambda: report(lambda: f"log p(y) {evidence.value:.6g}"))
        progress.end()
        self.kernel_, self.n_iter_ = fit.kernel, max(1, evidence.steps)
        active, mean = evidence.active, evidence.mean
        is_vector = active < n  # the constant comes last, unless it was dropped
        used, coefficients = active[is_vector], mean[is_vector]
        self.intercept_ = freeze(np.array([mean[~is_vector].sum()]))
        self.alpha_, self.sigma_ = freeze(evidence.alpha[active]), freeze(np.ascontiguousarray(evidence.sigma))
        self.noise_variance_ = float(evidence.noise)
        self.log_marginal_likelihood_value_ = float(evidence.value)
        self._expansion_ = expansion_of(fit, coefficients[:, None].copy(), self.intercept_, used)
        # `relevance_` has the first of several equal rows.
        self.relevance_ = freeze(merged.first[used].astype(np.int64))
        self.relevance_vectors_ = freeze(np.empty((0, 0)) if fit.precomputed else host(merged.samples, used))
        self.dual_coef_ = freeze(coefficients[None, :].copy())
        if not self.converged_:
            warn_user(
                f"RelevanceVectorRegressor stopped after max_iter={limit} changes of a prior variance; raise max_iter",
                ConvergenceWarning,
            )

    @like_input
    def predict(self, X: Data, return_std: bool = False, noise: bool = True) -> Any:
        """Predict the target of each sample, and optionally its standard deviation.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`. For a precomputed kernel, the kernel values with the training samples.
        return_std : bool, default=False
            Whether to return the standard deviations as well.
        noise : bool, default=True
            Whether these are the deviations of new targets, including noise, instead of those of f.

        Returns
        -------
        mean : array of shape (n_samples,)
            Predictions f(x).
        std : array of shape (n_samples,)
            Standard deviations; only with `return_std`.
        """
        mean = super().predict(X)
        if not return_std:
            return mean
        samples, expansion = self._read_new_samples(X), self._expansion_
        if expansion.columns is None:
            Phi = self.kernel_(samples, expansion.vectors) if len(self.relevance_) else np.empty((len(mean), 0))
        else:
            Phi = np.asarray(samples[:, expansion.columns], dtype=np.float64)
        if len(self.alpha_) > Phi.shape[1]:
            Phi = np.column_stack([Phi, np.ones(len(mean))])
        variance = np.maximum(np.einsum("ij,ij->i", Phi @ self.sigma_, Phi), 0.0)
        return mean, np.sqrt(variance + (self.noise_variance_ if noise else 0.0))


def _cholesky_factor(A: Floats) -> Any:
    """Return the Cholesky factor of a matrix with unit diagonal, with as little jitter as rounding requires."""
    for jitter in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
        try:
            return cho_factor(A + jitter * np.eye(len(A)), lower=True)
        except np.linalg.LinAlgError:
            continue
    raise FloatingPointError("columns of K are equal to rounding, and the noise is nearly zero; raise `noise`")


def _quadratic_forms(A: Floats, sigma: Floats) -> Floats:
    """Return a'Σa for every row a of A, in blocks so small that BLAS starts no threads (slow on a busy host)."""
    if A.size * len(sigma) > _THREADED_MULTIPLICATIONS:
        return np.asarray(((A @ sigma) * A).sum(axis=1))
    rows = max(1, _SERIAL_MULTIPLICATIONS // max(1, sigma.size))
    blocks = [A[first : first + rows] for first in range(0, len(A), rows)]
    return np.concatenate([((block @ sigma) * block).sum(axis=1) for block in blocks])


class _Evidence:
    """Evidence log p(y) as a function of α and σ², with its coordinate-wise maximisation."""

    def __init__(self, Phi: Floats, y: Floats, weight: Floats, noise: float | None) -> None:
        self.Phi, self.y, self.weight, self.n = Phi, y, weight, float(weight.sum())
        mean = float(weight @ y) / self.n
        spread = float(weight @ (y - mean) ** 2) / self.n
        self.noise = noise if noise is not None else max(0.1 * spread, 1e-12 * float(weight @ y**2) / self.n, 1e-300)
        # Weighted inner products of the columns with each other and with y.
        weighted_Phi = np.sqrt(weight)[:, None] * Phi
        self.PP, self.Py, self.yy = weighted_Phi.T @ weighted_Phi, Phi.T @ (weight * y), float(weight @ y**2)
        self.alpha = np.full(Phi.shape[1], math.inf)
        self.steps = 0
        self._refresh()

    @property
    def active(self) -> Indices:
        """Indices of the columns with a finite α_j."""
        return np.flatnonzero(np.isfinite(self.alpha))

    def _refresh(self) -> None:
        """Compute Σ, μ, s, q and log p(y) at the present α and σ²."""
        active, beta = self.active, 1.0 / self.noise
        precision = beta * self.PP[np.ix_(active, active)] + np.diag(self.alpha[active])
        if len(active):
            root = np.sqrt(np.diag(precision))
            factor = _cholesky_factor(precision / np.outer(root, root))
            self.sigma = cho_solve(factor, np.eye(len(active))) / np.outer(root, root)
            determinant = 2.0 * float(np.log(np.diag(factor[0]) * root).sum()) - float(np.log(self.alpha[active]).sum())
        else:
            self.sigma, determinant = np.empty((0, 0)), 0.0
        self.mean = beta * self.sigma @ self.Py[active]
        cross = beta * self.PP[:, active]
        S = beta * np.diag(self.PP) - _quadratic_forms(cross, self.sigma)
        # Differences of y and f, not of their squares, so that an offset of y causes no cancellation.
        residual = self.weight * (self.y - np.einsum("ij,j->i", self.Phi[:, active], self.mean))
        Q = beta * np.einsum("ij,i->j", self.Phi, residual)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(np.isfinite(self.alpha), self.alpha / (self.alpha - S), 1.0)
        self.s, self.q = S * ratio, Q * ratio
        # y'C⁻¹y as a sum of squares that is minimal at the mean, so that rounding of the mean hardly matters.
        data_term = beta * float(residual @ (residual / self.weight)) + float(self.alpha[active] @ self.mean**2)
        self.value = -0.5 * (determinant + self.n * math.log(2 * math.pi * self.noise) + data_term)

    def _evidence_of_each(self, alpha: Floats) -> Floats:
        """Return the part of log p(y) that depends on each α_j, with the others fixed."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            value = 0.5 * (-np.log1p(self.s / alpha) + self.q**2 / (alpha + self.s))
        return np.where(np.isfinite(alpha), value, 0.0)

    def maximise(self, limit: int, report: Any) -> bool:
        """Maximise over α and σ²; return True if a maximum was reached within `limit` changes of an α."""
        change_of_noise = 1.0
        for _ in range(_MAX_NOISE_UPDATES):
            min_gain = max(_SMALLEST_GAIN, 0.1 * change_of_noise)
            if not self._maximise_over_alpha(min_gain, limit, report):
                return False
            active = self.active
            residual = self.y - self.Phi[:, active] @ self.mean
            freedom = self.n - float((1.0 - self.alpha[active] * np.diag(self.sigma)).sum())
            noise = float(self.weight @ residual**2) / max(freedom, 1e-9 * self.n)
            noise = max(noise, 1e-12 * self.yy / self.n, 1e-300)
            change_of_noise = abs(math.log(noise / self.noise))
            self.noise = noise
            self._refresh()
            if change_of_noise <= _SMALLEST_NOISE_CHANGE and min_gain == _SMALLEST_GAIN:
                return True
        return False

    def _maximise_over_alpha(self, min_gain: float, limit: int, report: Any) -> bool:
        """Change one α_j after another, the one with the largest gain first.

        Return True once no gain exceeds `min_gain`, and False if `limit` changes are reached first.
        """
        while True:
            report()
            excess = self.q**2 - self.s
            with np.errstate(divide="ignore", invalid="ignore"):
                best = np.where((excess > 0) & (self.s > 0), self.s**2 / excess, math.inf)
            gain = self._evidence_of_each(best) - self._evidence_of_each(self.alpha)
            gain = np.where(np.isnan(gain), 0.0, gain)
            j = int(np.argmax(gain))
            if not gain[j] > min_gain:
                return True
            if self.steps >= limit:
                return False
            old_alpha, value = self.alpha[j], self.value
            self.alpha[j] = best[j]
            self.steps += 1
            self._refresh()
            if not self.value > value:  # the predicted gain is a rounding error
                self.alpha[j] = old_alpha
                self._refresh()
                return True
