"""Regularized least squares as a Gaussian process: how sure a prediction is, and how likely the data are.

With f a Gaussian process of covariance k, and targets y = f(x) + noise of variance λ, put A = K + λI and c = A⁻¹y:

    mean        E f(x)   = k(x)'c                        which is RLSRegressor(lam=λ, bias=False)
    variance    Var f(x) = k(x, x) − k(x)'A⁻¹k(x)
    likelihood  log p(y) = −½ y'c − ½ log det A − n/2 log 2π
    gradient    ∂ log p(y)/∂θ = ½ Σ_ij (c_ic_j − (A⁻¹)_ij) ∂A_ij/∂θ

(Rasmussen and Williams 2006, algorithm 2.1 and section 5.4). The squared loss is the likelihood, the penalty the prior
(Igel, section 2.2, where the notes' MAP estimate lacks the sign of − log p).
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg

from mercer.arrays import Floats, n_samples, row_blocks, take
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.matrices import as_matrix
from mercer.parameters import positive


class GaussianProcess:
    """The Gaussian process behind a regularized least squares fit.

    Parameters
    ----------
    kernel : Kernel or str
        The covariance.
    X : array, CSR matrix or list of strings
    y : array of n numbers
    lam : float > 0
        The variance of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RLSRegressor
    >>> from mercer.kernels import Gaussian
    >>> from mercer.theory import GaussianProcess
    >>> X = np.linspace(0, 5, 20)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> process = GaussianProcess(Gaussian(gamma=0.5), X, y, lam=0.01)
    >>> model = RLSRegressor(kernel=Gaussian(gamma=0.5), lam=0.01, bias=False).fit(X, y)
    >>> bool(np.allclose(process.mean(X), model.predict(X)))
    True
    >>> process.deviation([[2.5], [20.0]]).round(2)  # far from all samples it is that of the prior
    array([0.06, 1.  ])
    """

    def __init__(self, kernel: Any, X: Any, y: Any, lam: float) -> None:
        self.kernel: Kernel = as_kernel(kernel).bind(X)
        if self.kernel.accepts == "gram":
            raise ValueError(
                "a Gaussian process needs k(x, x) of new samples, which a precomputed matrix does not hold"
            )
        self.X = self._samples(X)
        self.y = np.array(y, dtype=np.float64)
        self.lam = positive("lam", lam, "without noise K need not have an inverse")
        if self.y.shape != (n_samples(self.X),) or not np.isfinite(self.y).all() or len(self.y) == 0:
            raise ValueError(
                f"y must be one finite number for each of the {n_samples(self.X)} samples, at least one, not of shape "
                f"{self.y.shape}"
            )

    @classmethod
    def of(cls, model: Any, X: Any, y: Any) -> GaussianProcess:
        """The process of a fitted `RLSRegressor` and the samples that it was fitted on.

        Its bias must be off: a constant that is not regularised has no prior.
        """
        if getattr(model, "bias", None) is not False or not hasattr(model, "lam"):
            raise ValueError(
                f"{type(model).__name__} with bias={getattr(model, 'bias', None)!r} is no Gaussian process: "
                "a free constant has no prior; fit RLSRegressor(bias=False), on centred targets, or add a constant to "
                "the kernel"
            )
        return cls(model.kernel_, X, y, model.lam)

    def _samples(self, X: Any) -> Any:
        return as_matrix(X) if self.kernel.accepts == "vectors" else X

    @cached_property
    def _factor(self) -> Any:
        A = self.kernel(self.X)
        A[np.diag_indices_from(A)] += self.lam
        try:
            return linalg.cholesky(A, lower=True, overwrite_a=True)
        except linalg.LinAlgError:
            raise ValueError(
                f"K + {self.lam:g}·I is not positive definite to rounding, so {self.kernel!r} is no covariance "
                "here, or lam is too small for it; raise lam"
            ) from None

    @cached_property
    def _coefficients(self) -> Floats:
        return np.asarray(linalg.cho_solve((self._factor, True), self.y))

    def mean(self, X: Any) -> Floats:
        """E f at new samples: the prediction of least squares."""
        samples = self._samples(X)
        out = np.empty(n_samples(samples))
        for some in row_blocks(len(out), 8 * len(self.y)):
            rows = take(samples, np.arange(some.start, some.stop))
            out[some] = self.kernel(rows, self.X) @ self._coefficients
        return out

    def variance(self, X: Any, *, noise: bool = False) -> Floats:
        """Var f at new samples, or that of a new target there, with its noise; never negative."""
        samples = self._samples(X)
        out = np.array(self.kernel.diag(samples), dtype=np.float64)
        for some in row_blocks(len(out), 8 * len(self.y)):
            rows = take(samples, np.arange(some.start, some.stop))
            explained = linalg.solve_triangular(self._factor, self.kernel(self.X, rows), lower=True)
            out[some] -= np.einsum("ij,ij->j", explained, explained)
        return np.asarray(np.maximum(out, 0.0) + (self.lam if noise else 0.0))

    def deviation(self, X: Any, *, noise: bool = False) -> Floats:
        """The standard deviation."""
        return np.sqrt(self.variance(X, noise=noise))

    @cached_property
    def log_likelihood(self) -> float:
        """log p(y), the log marginal likelihood: larger is better, and it needs no test samples."""
        n = len(self.y)
        determinant = 2.0 * float(np.log(self._factor.diagonal()).sum())
        return -0.5 * (float(self.y @ self._coefficients) + determinant + n * math.log(2 * math.pi))

    @cached_property
    def log_likelihood_gradient(self) -> dict[str, Any]:
        """Its derivatives by `lam` and by the kernel's parameters, by their names in `get_params`."""
        inverse = linalg.cho_solve((self._factor, True), np.eye(len(self.y)))
        weights = 0.5 * (np.outer(self._coefficients, self._coefficients) - inverse)
        return {"lam": float(np.trace(weights)), **self.kernel.parameter_gradient(self.X, weights=weights)}

    @cached_property
    def scale(self) -> float:
        """y'A⁻¹y/n: the factor s for which covariances s·k and noise s·λ make the data most likely."""
        return float(self.y @ self._coefficients) / len(self.y)

    @property
    def noise_estimate(self) -> float:
        """s·λ: the most likely variance of the noise for this ratio λ of noise to covariance."""
        return self.scale * self.lam
