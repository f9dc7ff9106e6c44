"""Regularized least squares as a Gaussian process: how sure a prediction is, and how likely the data are.

With f a Gaussian process of covariance k, and targets y = f(x) + noise of variance λ/w, put A = K + λW⁻¹ and c = A⁻¹y:

    mean        E f(x)   = k(x)'c                        which is RLSRegressor(lam=λ, bias=False)
    variance    Var f(x) = k(x, x) − k(x)'A⁻¹k(x)
    likelihood  log p(y) = −½ y'c − ½ log det A − n/2 log 2π
    gradient    ∂ log p(y)/∂θ = ½ Σ_ij (c_ic_j − (A⁻¹)_ij) ∂A_ij/∂θ

A free bias is a constant b with a flat prior, every value being equally likely. With a = 1'A⁻¹1 and b = 1'A⁻¹y/a,

    mean        k(x)'c + b,  c = A⁻¹(y − b1)             which is RLSRegressor(lam=λ, bias=True)
    variance    the above + (1 − 1'A⁻¹k(x))²/a
    likelihood  −½ (y − b1)'c − ½ log det A − ½ log a − (n − 1)/2 log 2π,   the integral of p(y | b) over b

and A⁻¹ − A⁻¹11'A⁻¹/a takes the place of A⁻¹ in the gradient (Rasmussen and Williams 2006, algorithm 2.1, sections 2.7
and 5.4). Several outputs are independent processes with one k and one λ: their likelihoods add up. The squared loss is
the likelihood, the penalty the prior (Igel, section 2.2, where the notes' MAP estimate lacks the sign of − log p).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.arrays import Floats, n_samples, row_blocks, rows_between, take
from mercer.data import samples
from mercer.engine import on_host, placed
from mercer.fitting.families.shared_docs import shared_docs
from mercer.gram import gram_for
from mercer.gram.gram import Factor
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.climb import climb
from mercer.kernels.matrices import as_matrix
from mercer.kernels.names import KernelLike
from mercer.parameters import Seed, integer, positive
from mercer.runtime.threads import effective_n_threads


@shared_docs
class GaussianProcess:
    """The Gaussian process behind a regularized least squares fit.

    Parameters
    ----------
    X : array, CSR matrix or list of strings
        The samples.
    y : array of n numbers, or of n rows of numbers
        Their targets: one output, or a column for each of several.
    lam : float
        The variance of the noise, above 0.
    %(kernel)s
    bias : bool, default=False
        Whether there is a constant beside f, of which nothing is known before.
    sample_weight : array of n numbers, optional
        The noise of a sample of weight w has the variance lam/w, as if its target were the mean of w others. Samples
        of weight 0 are left out.
    scatter : array of a number for each output, optional
        A weight w counts as w targets instead, of which y is the mean and these are the sums of squares around all such
        means. Mean and variance stay as they are, but the likelihood is that of all targets.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RLSRegressor
    >>> from mercer.kernels import Gaussian
    >>> from mercer.theory import GaussianProcess
    >>> X = np.linspace(0, 5, 20)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> process = GaussianProcess(X, y, kernel=Gaussian(gamma=0.5), lam=0.01)
    >>> model = RLSRegressor(kernel=Gaussian(gamma=0.5), lam=0.01, bias=False).fit(X, y)
    >>> bool(np.allclose(process.mean(X), model.predict(X)))
    True
    >>> process.deviation([[2.5], [20.0]]).round(2)  # far from all samples it is that of the prior
    array([0.06, 1.  ])
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        *,
        lam: float,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        bias: bool = False,
        sample_weight: ArrayLike | None = None,
        scatter: ArrayLike | None = None,
    ) -> None:
        X = placed(X)
        self.kernel: Kernel = as_kernel(kernel, degree=degree, gamma=gamma, coef0=coef0).bind(X)
        if self.kernel.accepts == "gram":
            raise ValueError(
                "a Gaussian process needs k(x, x) of new samples, which a precomputed matrix does not hold"
            )
        self.X = self._samples(X)
        self.y = np.array(on_host(y), dtype=np.float64)
        self.lam = positive("lam", lam, "without noise K need not have an inverse")
        self.bias = bool(bias)
        n = n_samples(self.X)
        if self.y.ndim not in (1, 2) or len(self.y) != n or not np.isfinite(self.y).all() or self.y.size == 0:
            raise ValueError(
                f"y must be one finite number, or a row of them, for each of the {n} samples, at least one, not of "
                f"shape {self.y.shape}"
            )
        self.weight = samples.weights(sample_weight, n)
        used = np.flatnonzero(self.weight)
        if len(used) == 0:
            raise ValueError("all sample weights are zero: there is nothing to learn from; give some sample weight")
        if len(used) < n:
            self.X, self.y, self.weight = take(self.X, used), self.y[used], self.weight[used]
        self.scatter = None if scatter is None else np.broadcast_to(np.asarray(scatter, np.float64), self._Y.shape[1:])

    @property
    def _Y(self) -> Floats:
        return self.y.reshape(len(self.y), -1)

    @classmethod
    def of(cls, model: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> GaussianProcess:
        """The process of a fitted `RLSRegressor`, and the samples that it was fitted on.

        Parameters
        ----------
        model : RLSRegressor
            Fitted, with a free bias or none.
        X : array, CSR matrix or list of strings
            The samples that it was fitted on.
        y : array of n numbers
            Their targets.
        sample_weight : array of n numbers, optional
            Their weights.
        """
        bias = getattr(model, "bias", None)
        lam = getattr(model, "lam_", getattr(model, "lam", None))
        if not isinstance(bias, bool | np.bool_) or lam is None or not hasattr(model, "kernel_"):
            raise ValueError(f"{type(model).__name__} is no fitted machine of least squares, such as RLSRegressor")
        return cls(X, y, kernel=model.kernel_, lam=lam, bias=bool(bias), sample_weight=sample_weight)

    def _samples(self, X: Any) -> Any:
        return as_matrix(placed(X)) if self.kernel.accepts == "vectors" else X

    def _blocks(self, X: Any) -> Iterator[tuple[slice, Any]]:
        """Some new samples at a time, whose kernel values fit into the memory of a block."""
        new = self._samples(X)
        for some in row_blocks(n_samples(new), 8 * len(self.y)):
            yield some, rows_between(new, some)

    @cached_property
    def _factor(self) -> Factor:
        n_threads = effective_n_threads(None)
        gram = gram_for(self.kernel, self.X, n_threads=n_threads)
        found = gram.factor(self.lam / self.weight, n_threads=n_threads)
        if found is None:  # also where lam/w overflows
            raise ValueError(
                f"K + {self.lam:g}·W⁻¹ is not positive definite to rounding, so {self.kernel!r} is no covariance "
                "here, or lam is too small for it; raise lam"
            )
        return found

    @cached_property
    def _ones(self) -> Floats:
        """A⁻¹1."""
        return self._factor.solve(np.ones((len(self.y), 1)))[:, 0]

    @cached_property
    def b(self) -> Any:
        """The mean of the constant, a number or an array of one for each output; 0 without a bias."""
        if not self.bias:
            return 0.0
        b = self._ones @ self.y / self._ones.sum()
        return float(b) if self.y.ndim == 1 else b

    @cached_property
    def _coefficients(self) -> Floats:
        """A⁻¹(Y − b), a column for each output."""
        return self._factor.solve(self._Y - self.b)

    def mean(self, X: Any) -> Floats:
        """E f + b at new samples, a column for each of several outputs: the prediction of least squares.

        Parameters
        ----------
        X : array, CSR matrix or list of strings
            New samples.
        """
        out = np.empty((n_samples(X), self._Y.shape[1]))
        for some, rows in self._blocks(X):
            out[some] = self.kernel(rows, self.X) @ self._coefficients + self.b
        return out[:, 0] if self.y.ndim == 1 else out

    @shared_docs
    def variance(self, X: Any, *, noise: bool = False) -> Floats:
        """Var f + b at new samples, or that of a new target there, with its noise; never negative, and the same for
        every output.

        Parameters
        ----------
        %(new samples, noise)s
        """
        out = np.array(self.kernel.diag(self._samples(X)), dtype=np.float64)
        for some, rows in self._blocks(X):
            K = self.kernel(self.X, rows)
            if self.bias:
                out[some] += (1.0 - self._ones @ K) ** 2 / self._ones.sum()
            out[some] -= np.einsum("ij,ij->j", K, self._factor.solve(K))
        return np.asarray(np.maximum(out, 0.0) + (self.lam if noise else 0.0))

    @shared_docs
    def deviation(self, X: Any, *, noise: bool = False) -> Floats:
        """The standard deviation.

        Parameters
        ----------
        %(new samples, noise)s
        """
        return np.sqrt(self.variance(X, noise=noise))

    @shared_docs
    def covariance(self, X: Any, *, noise: bool = False) -> Floats:
        """The covariances of f + b, or of new targets, between new samples: an array of shape (n, n).

        Parameters
        ----------
        %(new samples, noise)s
        """
        new = self._samples(X)
        K = self.kernel(self.X, new)
        out = self.kernel(new) - K.T @ self._factor.solve(K)
        if self.bias:
            rest = 1.0 - self._ones @ K
            out += np.outer(rest, rest) / self._ones.sum()
        out = 0.5 * (out + out.T)
        out[np.diag_indices(len(out))] = np.maximum(out.diagonal(), 0.0) + (self.lam if noise else 0.0)
        return np.asarray(out)

    def draw(self, X: Any, n_draws: int = 1, *, noise: bool = False, seed: Seed = None) -> Floats:
        """Functions drawn from the process, at new samples: an array of shape (n, n_draws), or (n, outputs, n_draws).

        Parameters
        ----------
        X : array, CSR matrix or list of strings
            New samples.
        n_draws : int, default=1
            How many functions.
        noise : bool, default=False
            Whether targets are drawn, with noise, instead of values of functions.
        seed : int, Generator or None
            Where chance comes from.
        """
        integer("n_draws", n_draws, 1, "the number of functions")
        values, vectors = np.linalg.eigh(self.covariance(X, noise=noise))
        mean = self.mean(X)
        normal = np.random.default_rng(seed).normal(size=(len(values), mean[0].size * n_draws))
        drawn = (vectors * np.sqrt(np.maximum(values, 0.0))) @ normal
        return np.asarray(mean[..., None] + drawn.reshape(*mean.shape, n_draws))

    @property
    def _freedom(self) -> int:
        """The dimensions in which targets are random: the constant takes one."""
        return len(self.y) - self.bias

    @cached_property
    def log_likelihood(self) -> float:
        """log p(y), the log marginal likelihood: larger is better, and it needs no test samples."""
        determinant = 2.0 * float(np.log(self._factor.pivots).sum())
        if self.bias:
            determinant += math.log(float(self._ones.sum()))
        each = determinant + self._freedom * math.log(2 * math.pi)
        if self.scatter is not None:
            each += self._joined * math.log(2 * math.pi * self.lam) + float(np.log(self.weight).sum())
        inside = 0.0 if self.scatter is None else float(self.scatter.sum()) / self.lam
        return -0.5 * (self._square + inside + float(self._Y.shape[1]) * each)

    @property
    def _square(self) -> float:
        """Σ (y − b)'c over the outputs."""
        return float(((self._Y - self.b) * self._coefficients).sum())

    @property
    def _joined(self) -> float:
        """How many targets there are beyond the means, if weights are numbers of targets."""
        return float(self.weight.sum()) - len(self.weight)

    @cached_property
    def log_likelihood_gradient(self) -> dict[str, Any]:
        """Its derivatives by `lam` and by the kernel's parameters, by their names in `get_params`."""
        inverse, outputs = self._factor.solve(np.eye(len(self.y))), self._Y.shape[1]
        if self.bias:
            inverse -= np.outer(self._ones, self._ones) / self._ones.sum()
        weights = 0.5 * (self._coefficients @ self._coefficients.T - outputs * inverse)
        by_lam = float(weights.diagonal() @ (1.0 / self.weight))
        if self.scatter is not None:
            by_lam += 0.5 * (float(self.scatter.sum()) / self.lam - outputs * self._joined) / self.lam
        return {"lam": by_lam, **self.kernel.parameter_gradient(self.X, weights=weights)}

    @cached_property
    def scale(self) -> float:
        """The factor s for which covariances s·k and noise s·λ make the data most likely: (y − b)'c/n.

        With a bias n − 1 takes the place of n. Of several outputs it is the mean.
        """
        if self._freedom == 0:
            raise ValueError("one sample beside a free bias says nothing about the scale")
        return self._square / float(self._freedom * self._Y.shape[1])

    @property
    def noise_estimate(self) -> float:
        """s·λ: the most likely variance of the noise, σ², for this ratio λ of noise to covariance."""
        return self.scale * self.lam

    def most_likely(self, names: Sequence[str] | None = None, *, max_steps: int = 100) -> GaussianProcess:
        """The process whose `lam` and kernel parameters make the data most likely, from these on.

        Climbs log p(y) by its gradient in the logarithms of the parameters (L-BFGS-B); a local maximum may be found.

        Parameters
        ----------
        names : list of str, optional
            What to change, by the names in `log_likelihood_gradient`; by default all that are positive numbers.
        max_steps : int, default=100
            The most steps.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer.kernels import Gaussian
        >>> from mercer.theory import GaussianProcess
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(0, 10, size=(80, 1))
        >>> y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=80)
        >>> found = GaussianProcess(X, y, kernel=Gaussian(sigma=0.3), lam=1.0).most_likely()
        >>> bool(0.05 < found.lam < 0.15), round(found.kernel.sigma)
        (True, 2)
        """

        def process(kernel: Kernel, numbers: dict[str, float]) -> GaussianProcess:
            return GaussianProcess(
                self.X,
                self.y,
                kernel=kernel,
                lam=numbers["lam"],
                bias=self.bias,
                sample_weight=self.weight,
                scatter=self.scatter,
            )

        def value(kernel: Kernel, numbers: dict[str, float]) -> tuple[float, dict[str, Any]]:
            found = process(kernel, numbers)
            return found.log_likelihood, found.log_likelihood_gradient

        best = process(*climb(value, self.kernel, {"lam": self.lam}, names, max_steps))
        return best if best.log_likelihood > self.log_likelihood else self
