"""Kernel ridge regression as a Gaussian process: variances of predictions and the marginal likelihood.

With f a Gaussian process of covariance k, and targets y = f(x) + noise of variance λ/w, let A = K + λW⁻¹ and c = A⁻¹y:

    mean        E f(x)   = k(x)'c                        which is RLSRegressor(lam=λ, bias=False)
    variance    Var f(x) = k(x, x) − k(x)'A⁻¹k(x)
    likelihood  log p(y) = −½ y'c − ½ log det A − n/2 log 2π
    gradient    ∂ log p(y)/∂θ = ½ Σ_ij (c_ic_j − (A⁻¹)_ij) ∂A_ij/∂θ

An unpenalised bias is a constant b with a flat prior. With a = 1'A⁻¹1 and b = 1'A⁻¹y/a,

    mean        k(x)'c + b,  c = A⁻¹(y − b1)             which is RLSRegressor(lam=λ, bias=True)
    variance    k(x, x) − k(x)'A⁻¹k(x) + (1 − 1'A⁻¹k(x))²/a
    likelihood  −½ (y − b1)'c − ½ log det A − ½ log a − (n − 1)/2 log 2π,   the integral of p(y | b) over b

and A⁻¹ − A⁻¹11'A⁻¹/a takes the place of A⁻¹ in the gradient (Rasmussen and Williams 2006, algorithm 2.1, sections 2.7
and 5.4). Several outputs are independent processes with one k and one λ: their likelihoods add up. The squared loss is
the likelihood, the penalty the prior (Igel, section 2.2, where the MAP estimate lacks the minus sign of − log p).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mercer.kernels import Kernel
from mercer.places import gram_for
from mercer.places.gram import Factor, Gram
from mercer.runtime.parameters import Seed, integer, positive
from mercer.runtime.threads import effective_n_threads
from mercer.samples.arrays import Floats, n_samples, row_blocks, rows_between
from mercer.samples.matrices import as_matrix
from mercer.solvers.parameter_search import search_parameters


class Process:
    """Samples of positive weight with a Gaussian process prior, whose covariance is a kernel bound to data."""

    def __init__(self, X: Any, weight: Floats, kernel: Kernel) -> None:
        self.kernel, self.weight = kernel, weight
        self.X = self._samples(X)

    def _samples(self, X: Any) -> Any:
        return as_matrix(X) if self.kernel.accepts == "vectors" else X

    def _make_gram(self) -> Gram:
        return gram_for(self.kernel, self.X, n_threads=effective_n_threads(None))

    def _cholesky_factor(self, gram: Gram, diagonal: Floats, name: str, hint: str = "") -> Factor:
        """Return the Cholesky factor of K plus a diagonal; raise ValueError if it is not positive definite."""
        factor = gram.factor(diagonal, n_threads=effective_n_threads(None))
        if factor is None:
            raise ValueError(
                f"{name} is not positive definite to rounding, so {self.kernel!r} is not a covariance here{hint}"
            )
        return factor

    def _blocks(self, samples: Any) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of new samples whose kernel values fit into memory, each with its slice."""
        for block in row_blocks(n_samples(samples), 8 * len(self.weight)):
            yield block, rows_between(samples, block)


class GaussianProcess(Process):
    """Gaussian process of a least squares fit, with a column of Y for each output.

    With `scatter`, a weight w stands for w targets with mean Y, and `scatter` is the sum of their squared deviations
    from the mean for each output. Without it the noise of a sample has the variance lam/w, and the likelihood is that
    of Y alone.
    """

    def __init__(
        self,
        X: Any,
        Y: Floats,
        weight: Floats,
        *,
        kernel: Kernel,
        lam: float,
        bias: bool = False,
        scatter: Floats | None = None,
    ) -> None:
        super().__init__(X, weight, kernel)
        self.Y, self.bias, self.scatter = Y, bias, scatter
        self.lam = positive("lam", lam, "without noise K need not have an inverse")

    @cached_property
    def _factor(self) -> Factor:
        """Cholesky factor of A = K + λW⁻¹."""
        hint = ", or lam is too small for it; raise lam"
        return self._cholesky_factor(self._make_gram(), self.lam / self.weight, f"K + {self.lam:g}·W⁻¹", hint)

    @cached_property
    def _ones(self) -> Floats:
        """Vector A⁻¹1."""
        return self._factor.solve(np.ones((len(self.Y), 1)))[:, 0]

    @cached_property
    def b(self) -> Floats:
        """Posterior mean of the constant of each output; 0 without a bias."""
        return self._ones @ self.Y / self._ones.sum() if self.bias else np.zeros(self.Y.shape[1])

    @cached_property
    def _coefficients(self) -> Floats:
        """Coefficients A⁻¹(Y − b), a column for each output."""
        return self._factor.solve(self.Y - self.b)

    def mean(self, X: Any) -> Floats:
        """Return the posterior mean of f + b at new samples, a column for each output."""
        samples = self._samples(X)
        out = np.empty((n_samples(samples), self.Y.shape[1]))
        for block, rows in self._blocks(samples):
            out[block] = self.kernel(rows, self.X) @ self._coefficients + self.b
        return out

    def variance(self, X: Any, *, noise: bool = False) -> Floats:
        """Return the variance of f + b at new samples, or with `noise` of new targets; the same for every output."""
        samples = self._samples(X)
        out = np.array(self.kernel.diag(samples), dtype=np.float64)
        for block, rows in self._blocks(samples):
            K = self.kernel(self.X, rows)
            if self.bias:
                out[block] += (1.0 - self._ones @ K) ** 2 / self._ones.sum()
            out[block] -= np.einsum("ij,ij->j", K, self._factor.solve(K))
        return np.asarray(np.maximum(out, 0.0) + (self.lam if noise else 0.0))

    def covariance(self, X: Any, *, noise: bool = False) -> Floats:
        """Return the covariance matrix of f + b, or with `noise` of new targets, at new samples: shape (n, n)."""
        samples = self._samples(X)
        K = self.kernel(self.X, samples)
        out = self.kernel(samples) - K.T @ self._factor.solve(K)
        if self.bias:
            deviation = 1.0 - self._ones @ K
            out += np.outer(deviation, deviation) / self._ones.sum()
        out = 0.5 * (out + out.T)
        out[np.diag_indices(len(out))] = np.maximum(out.diagonal(), 0.0) + (self.lam if noise else 0.0)
        return np.asarray(out)

    def draw(self, X: Any, n_draws: int, *, noise: bool, seed: Seed) -> Floats:
        """Draw functions, or with `noise` targets, at new samples: an array of shape (n, n_outputs, n_draws)."""
        integer("n_draws", n_draws, 1, "the number of functions")
        values, vectors = np.linalg.eigh(self.covariance(X, noise=noise))
        mean = self.mean(X)
        normal = np.random.default_rng(seed).normal(size=(len(values), mean.shape[1] * n_draws))
        deviations = (vectors * np.sqrt(np.maximum(values, 0.0))) @ normal
        return np.asarray(mean[..., None] + deviations.reshape(*mean.shape, n_draws))

    @cached_property
    def log_likelihood(self) -> float:
        """Log marginal likelihood log p(y)."""
        determinant = 2.0 * float(np.log(self._factor.pivots).sum())
        if self.bias:
            determinant += math.log(float(self._ones.sum()))
        per_output = determinant + (len(self.Y) - self.bias) * math.log(2 * math.pi)
        square = float(((self.Y - self.b) * self._coefficients).sum())
        if self.scatter is not None:
            per_output += self._n_merged * math.log(2 * math.pi * self.lam) + float(np.log(self.weight).sum())
            square += float(self.scatter.sum()) / self.lam
        return -0.5 * (square + float(self.Y.shape[1]) * per_output)

    @property
    def _n_merged(self) -> float:
        """Number of targets minus the number of means, if weights are numbers of targets."""
        return float(self.weight.sum()) - len(self.weight)

    @cached_property
    def log_likelihood_gradient(self) -> dict[str, Any]:
        """Derivatives of `log_likelihood` with respect to `lam` and the kernel's parameters, by name."""
        inverse, outputs = self._factor.solve(np.eye(len(self.Y))), self.Y.shape[1]
        if self.bias:
            inverse -= np.outer(self._ones, self._ones) / self._ones.sum()
        weights = 0.5 * (self._coefficients @ self._coefficients.T - outputs * inverse)
        by_lam = float(weights.diagonal() @ (1.0 / self.weight))
        if self.scatter is not None:
            by_lam += 0.5 * (float(self.scatter.sum()) / self.lam - outputs * self._n_merged) / self.lam
        return {"lam": by_lam, **self.kernel.parameter_gradient(self.X, weights=weights)}

    def with_kernel(self, kernel: Kernel, lam: float) -> GaussianProcess:
        """Return the process of these samples with another kernel and lam."""
        return GaussianProcess(
            self.X, self.Y, self.weight, kernel=kernel, lam=lam, bias=self.bias, scatter=self.scatter
        )

    def most_likely(self, names: Sequence[str] | None, max_iter: int) -> GaussianProcess:
        """Return the process at a local maximum of log p(y), searched from the present parameters.

        The search is over `lam` and the kernel's parameters, or over those in `names`.
        """

        def value(kernel: Kernel, numbers: dict[str, float]) -> tuple[float, dict[str, Any]]:
            process = self.with_kernel(kernel, numbers["lam"])
            return process.log_likelihood, process.log_likelihood_gradient

        kernel, numbers = search_parameters(value, self.kernel, {"lam": self.lam}, names, max_iter)
        best = self.with_kernel(kernel, numbers["lam"])
        return best if best.log_likelihood > self.log_likelihood else self
