"""Relevance vector regression: a sparse expansion whose coefficients have a prior each (Tipping, 2001; kernlab's rvm).

y = Φw + noise of variance σ²/weight, Φ = (k(x_i, x_j), and a column of ones with a bias), w_j normal with variance
1/α_j. What is made large is log p(y | α, σ²) = −½[log det C + y'C⁻¹y + N log 2π], C = σ²W⁻¹ + ΣΦ_jΦ_j'/α_j. One α_j at
a time (Tipping and Faul, 2003): with s_j = Φ_j'C₋ⱼ⁻¹Φ_j and q_j = Φ_j'C₋ⱼ⁻¹y, C without j,

    q_j² > s_j    the best α_j is s_j²/(q_j² − s_j)
    otherwise     it is infinite, and j is left out

The j whose change gains most is changed, until none gains more than a tenth of what log σ² changed by; then
σ² ← Σ weight(y − Φμ)²/(N − Σ_j(1 − α_jΣ_jj)), and all again until σ² stays. The problem is not convex: this is a local
maximum, and there is no certificate.
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
from mercer.estimators.fitting.pipeline.machine import KernelChoice, Training
from mercer.estimators.fitting.pipeline.reporting import Progress, warn_user
from mercer.estimators.fitting.pipeline.state import (
    Array,
    BoundKernel,
    Count,
    Flag,
    Function,
    IndexArray,
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

# Gains in log p(y) below this are none; σ² that changes by less than the share stays.
_GAIN, _SAME, _MOST_NOISES = 1e-4, 1e-4, 200
# Multiplications from which BLAS may have threads for a product, and those of one that it makes without.
_ALONE_MULTIPLICATIONS, _SERIAL_MULTIPLICATIONS = 1 << 23, 1 << 18


@shared_docs
@dataclass(eq=False, repr=False)
class RelevanceVectorRegressor(MachineMethods, Regressor):
    """Relevance vector regression: few vectors, and how sure each prediction is.

    The coefficients of f(x) = Σ w_j k(x_j, x) + b have normal priors, whose variances make the data most likely. Most
    become zero. The kernel need not be positive definite. This is kernlab's `rvm`, by the faster sequential method.

    Parameters
    ----------
    %(kernel)s
    bias : bool, default=True
        Whether there is a constant, with a prior of its own.
    noise : float, optional
        Where the search for σ² begins; None stands for a tenth of the variance of y. The search ends in a local maximum
        of log p(y), which another beginning may exceed by a few: of several, keep the fit whose
        `log_marginal_likelihood_value_` is largest.
    max_iter : int, default=-1
        The most changes of a prior; −1 stands for 10,000.
    %(cache_size)s
    %(verbose)s
    %(n_jobs)s

    Attributes
    ----------
    relevance_ : array of int
        The training samples that are left, in the order given.
    relevance_vectors_ : array
        These samples.
    dual_coef_ : array of shape (1, n_relevance)
        The means of their coefficients.
    intercept_ : array of shape (1,)
        The mean of the constant.
    alpha_ : array
        1/variance of each prior; the constant's is the last if it has one.
    sigma_ : array
        The covariances of the coefficients, in the same order.
    noise_variance_ : float
        σ².
    log_marginal_likelihood_value_ : float
        log p(y).
    kernel_, converged_, n_iter_, n_features_in_, feature_names_in_
        The kernel with its parameters as numbers; whether no change gains anything; changes of a prior.

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
        _expansion_=Function(required=True),
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

    def _trained(self, X: Any, y: Any, sample_weight: Any, training: Training) -> Any:
        trained = blank_copy(self)
        progress = Progress(training.watched_by, bool(self.verbose), 1, X, y)
        trained._learn(Fit.of(trained, X, y, sample_weight), progress)
        progress.close(X, y, trained)
        return trained

    def _learn(self, fit: Fit, progress: Progress) -> None:
        assert fit.kernel is not None
        gram, merged, n_threads = fit.gram(), fit.merged, effective_n_threads(self.n_jobs)
        n = len(merged.weight)
        if 24 * n**2 > fit.limits.budget:
            raise memory_error(f"k and its products of {n} samples", 24 * n**2, fit.limits.budget, "fewer samples")
        y, weight = fit.target[merged.first], merged.weight
        Phi = gram.kept(n_threads).products(np.eye(n))
        if self.bias:
            Phi = np.column_stack([Phi, np.ones(n)])
        report = progress.begin("")
        found = _Evidence(Phi, y, weight, self.noise)
        limit = fit.limits.stop.max_iter
        self.converged_ = found.maximise(limit, lambda: report(lambda: f"log p(y) {found.value:.6g}"))
        progress.end()
        self.kernel_, self.n_iter_ = fit.kernel, max(1, found.steps)
        active, mean = found.active, found.mean
        vectors = active < n  # the constant is the last, if it is left
        used, coefficients = active[vectors], mean[vectors]
        self.intercept_ = freeze(np.array([mean[~vectors].sum()]))
        self.alpha_, self.sigma_ = freeze(found.alpha[active]), freeze(np.ascontiguousarray(found.sigma))
        self.noise_variance_ = float(found.noise)
        self.log_marginal_likelihood_value_ = float(found.value)
        self._expansion_ = expansion_of(fit, coefficients[:, None].copy(), self.intercept_, used)
        # A vector that stands for several equal rows is told by the first of them.
        self.relevance_ = freeze(merged.first[used].astype(np.int64))
        self.relevance_vectors_ = freeze(np.empty((0, 0)) if fit.precomputed else host(merged.samples, used))
        self.dual_coef_ = freeze(coefficients[None, :].copy())
        if not self.converged_:
            warn_user(
                f"RelevanceVectorRegressor stopped at max_iter={limit} changes of a prior; raise it", ConvergenceWarning
            )

    @like_input
    def predict(self, X: Data, return_std: bool = False, noise: bool = True) -> Any:
        """f(x) of each sample, and how sure it is.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`.
        return_std : bool, default=False
            Give the standard deviation too.
        noise : bool, default=True
            Whether it is that of a new target, with its noise, instead of f.
        """
        mean = super().predict(X)
        if not return_std:
            return mean
        new, expansion = self._to_decide(X), self._expansion_
        if expansion.columns is None:
            Phi = self.kernel_(new, expansion.vectors) if len(self.relevance_) else np.empty((len(mean), 0))
        else:
            Phi = np.asarray(new[:, expansion.columns], dtype=np.float64)
        if len(self.alpha_) > Phi.shape[1]:
            Phi = np.column_stack([Phi, np.ones(len(mean))])
        variance = np.maximum(np.einsum("ij,ij->i", Phi @ self.sigma_, Phi), 0.0)
        return mean, np.sqrt(variance + (self.noise_variance_ if noise else 0.0))


def _factored(A: Floats) -> Any:
    """The Cholesky factor of a matrix with the diagonal 1, of which rounding may have broken the rest."""
    for more in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
        try:
            return cho_factor(A + more * np.eye(len(A)), lower=True)
        except np.linalg.LinAlgError:
            continue
    raise FloatingPointError("columns of k are equal to rounding, and the noise is next to nothing; raise `noise`")


def _quadratic_forms(A: Floats, sigma: Floats) -> Floats:
    """a'Σa of every row a of A, in products so small that BLAS starts no threads, for which a busy host would wait."""
    if A.size * len(sigma) > _ALONE_MULTIPLICATIONS:
        return np.asarray(((A @ sigma) * A).sum(axis=1))
    rows = max(1, _SERIAL_MULTIPLICATIONS // max(1, sigma.size))
    parts = [A[top : top + rows] for top in range(0, len(A), rows)]
    return np.concatenate([((part @ sigma) * part).sum(axis=1) for part in parts])


class _Evidence:
    """log p(y) as a function of all α and σ², and its maximum over one after another."""

    def __init__(self, Phi: Floats, y: Floats, weight: Floats, noise: float | None) -> None:
        self.Phi, self.y, self.weight, self.n = Phi, y, weight, float(weight.sum())
        mean = float(weight @ y) / self.n
        spread = float(weight @ (y - mean) ** 2) / self.n
        self.noise = noise if noise is not None else max(0.1 * spread, 1e-12 * float(weight @ y**2) / self.n, 1e-300)
        # All inner products of the columns with each other and with y, in the weights.
        root = np.sqrt(weight)[:, None] * Phi
        self.PP, self.Py, self.yy = root.T @ root, Phi.T @ (weight * y), float(weight @ y**2)
        self.alpha = np.full(Phi.shape[1], math.inf)
        self.steps = 0
        self._refresh()

    @property
    def active(self) -> Indices:
        return np.flatnonzero(np.isfinite(self.alpha))

    def _refresh(self) -> None:
        """Σ, μ, s, q and log p(y) at α and σ²."""
        on, beta = self.active, 1.0 / self.noise
        precision = beta * self.PP[np.ix_(on, on)] + np.diag(self.alpha[on])
        if len(on):
            root = np.sqrt(np.diag(precision))
            factor = _factored(precision / np.outer(root, root))
            self.sigma = cho_solve(factor, np.eye(len(on))) / np.outer(root, root)
            determinant = 2.0 * float(np.log(np.diag(factor[0]) * root).sum()) - float(np.log(self.alpha[on]).sum())
        else:
            self.sigma, determinant = np.empty((0, 0)), 0.0
        self.mean = beta * self.sigma @ self.Py[on]
        cross = beta * self.PP[:, on]
        S = beta * np.diag(self.PP) - _quadratic_forms(cross, self.sigma)
        # Differences of y and f, and not of their squares: an offset of y costs no digits.
        residual = self.weight * (self.y - np.einsum("ij,j->i", self.Phi[:, on], self.mean))
        Q = beta * np.einsum("ij,i->j", self.Phi, residual)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(np.isfinite(self.alpha), self.alpha / (self.alpha - S), 1.0)
        self.s, self.q = S * ratio, Q * ratio
        # y'C⁻¹y, as a sum of squares that is least at the mean, so that its rounding hardly counts.
        fit = beta * float(residual @ (residual / self.weight)) + float(self.alpha[on] @ self.mean**2)
        self.value = -0.5 * (determinant + self.n * math.log(2 * math.pi * self.noise) + fit)

    def _part(self, alpha: Floats) -> Floats:
        """The part of log p(y) that each α_j decides, with the others as they are."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            value = 0.5 * (-np.log1p(self.s / alpha) + self.q**2 / (alpha + self.s))
        return np.where(np.isfinite(alpha), value, 0.0)

    def maximise(self, limit: int, report: Any) -> bool:
        """Whether a maximum was reached within so many changes."""
        changed = 1.0
        for _ in range(_MOST_NOISES):
            least = max(_GAIN, 0.1 * changed)
            if not self._settle(least, limit, report):
                return False
            on = self.active
            residual = self.y - self.Phi[:, on] @ self.mean
            freedom = self.n - float((1.0 - self.alpha[on] * np.diag(self.sigma)).sum())
            noise = float(self.weight @ residual**2) / max(freedom, 1e-9 * self.n)
            noise = max(noise, 1e-12 * self.yy / self.n, 1e-300)
            changed = abs(math.log(noise / self.noise))
            self.noise = noise
            self._refresh()
            if changed <= _SAME and least == _GAIN:
                return True
        return False

    def _settle(self, least: float, limit: int, report: Any) -> bool:
        """Change one α after another; whether none is left that gains more than the least, within the limit."""
        while True:
            report()
            power = self.q**2 - self.s
            with np.errstate(divide="ignore", invalid="ignore"):
                best = np.where((power > 0) & (self.s > 0), self.s**2 / power, math.inf)
            gain = self._part(best) - self._part(self.alpha)
            gain = np.where(np.isnan(gain), 0.0, gain)
            j = int(np.argmax(gain))
            if not gain[j] > least:
                return True
            if self.steps >= limit:
                return False
            old, value = self.alpha[j], self.value
            self.alpha[j] = best[j]
            self.steps += 1
            self._refresh()
            if not self.value > value:  # rounding has the last word
                self.alpha[j] = old
                self._refresh()
                return True
