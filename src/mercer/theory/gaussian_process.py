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
and 5.4). The squared loss is the likelihood, the penalty the prior (Igel, section 2.2, where the notes' MAP estimate
lacks the sign of − log p).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize
from sklearn.base import clone

from mercer.arrays import Floats, n_samples, row_blocks, rows_between, take
from mercer.data import samples
from mercer.engine import on_host, placed
from mercer.fitting.families.shared_docs import shared_docs
from mercer.gram import gram_for
from mercer.gram.gram import Factor
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.matrices import as_matrix
from mercer.kernels.names import KernelLike
from mercer.parameters import integer, positive
from mercer.runtime.threads import effective_n_threads


@shared_docs
class GaussianProcess:
    """The Gaussian process behind a regularized least squares fit.

    Parameters
    ----------
    X : array, CSR matrix or list of strings
        The samples.
    y : array of n numbers
        Their targets.
    lam : float
        The variance of the noise, above 0.
    %(kernel)s
    bias : bool, default=False
        Whether there is a constant beside f, of which nothing is known before.
    sample_weight : array of n numbers, optional
        The noise of a sample of weight w has the variance lam/w, as if its target were the mean of w others. Samples
        of weight 0 are left out.

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
        if self.y.shape != (n,) or not np.isfinite(self.y).all() or n == 0:
            raise ValueError(
                f"y must be one finite number for each of the {n} samples, at least one, not of shape {self.y.shape}"
            )
        self.weight = samples.weights(sample_weight, n)
        used = np.flatnonzero(self.weight)
        if len(used) == 0:
            raise ValueError("all sample weights are zero: there is nothing to learn from; give some sample weight")
        if len(used) < n:
            self.X, self.y, self.weight = take(self.X, used), self.y[used], self.weight[used]

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

    def _solve(self, y: Floats) -> Floats:
        """A⁻¹y."""
        return self._factor.solve(y[:, None])[:, 0]

    @cached_property
    def _ones(self) -> Floats:
        """A⁻¹1."""
        return self._solve(np.ones(len(self.y)))

    @cached_property
    def b(self) -> float:
        """The mean of the constant; 0 without a bias."""
        return float(self._ones @ self.y / self._ones.sum()) if self.bias else 0.0

    @cached_property
    def _coefficients(self) -> Floats:
        return self._solve(self.y - self.b)

    def mean(self, X: Any) -> Floats:
        """E f + b at new samples: the prediction of least squares.

        Parameters
        ----------
        X : array, CSR matrix or list of strings
            New samples.
        """
        out = np.empty(n_samples(X))
        for some, rows in self._blocks(X):
            out[some] = self.kernel(rows, self.X) @ self._coefficients + self.b
        return out

    @shared_docs
    def variance(self, X: Any, *, noise: bool = False) -> Floats:
        """Var f + b at new samples, or that of a new target there, with its noise; never negative.

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
        square = float((self.y - self.b) @ self._coefficients)
        return -0.5 * (square + determinant + self._freedom * math.log(2 * math.pi))

    @cached_property
    def log_likelihood_gradient(self) -> dict[str, Any]:
        """Its derivatives by `lam` and by the kernel's parameters, by their names in `get_params`."""
        inverse = self._factor.solve(np.eye(len(self.y)))
        if self.bias:
            inverse -= np.outer(self._ones, self._ones) / self._ones.sum()
        weights = 0.5 * (np.outer(self._coefficients, self._coefficients) - inverse)
        by_lam = float(weights.diagonal() @ (1.0 / self.weight))
        return {"lam": by_lam, **self.kernel.parameter_gradient(self.X, weights=weights)}

    @cached_property
    def scale(self) -> float:
        """The factor s for which covariances s·k and noise s·λ make the data most likely: (y − b)'c/n.

        With a bias n − 1 takes the place of n.
        """
        if self._freedom == 0:
            raise ValueError("one sample beside a free bias says nothing about the scale")
        return float((self.y - self.b) @ self._coefficients) / self._freedom

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
        integer("max_steps", max_steps, 1, "the number of steps")
        known = {"lam": self.lam, **self.kernel.get_params()}
        free = [
            name
            for name in self.log_likelihood_gradient
            if isinstance(known.get(name), Real) and not isinstance(known[name], bool) and known[name] > 0
        ]
        chosen = free if names is None else list(names)
        wrong = [name for name in chosen if name not in free]
        if wrong or not chosen:
            raise ValueError(f"names={chosen!r} must be some of {free}, the parameters that are positive numbers")

        def at(logs: Floats) -> GaussianProcess:
            values = dict(zip(chosen, np.exp(logs).tolist(), strict=True))
            lam = values.pop("lam", self.lam)
            kernel = clone(self.kernel).set_params(**values)
            return GaussianProcess(self.X, self.y, kernel=kernel, lam=lam, bias=self.bias, sample_weight=self.weight)

        def climb(logs: Floats) -> tuple[float, Floats]:
            try:
                process = at(logs)
                gradient = process.log_likelihood_gradient
            except (ValueError, FloatingPointError):  # beyond what rounding can factor, or beyond all numbers
                return math.inf, np.zeros_like(logs)
            return -process.log_likelihood, -np.exp(logs) * np.array([gradient[name] for name in chosen])

        begin = np.log([known[name] for name in chosen])
        found = optimize.minimize(climb, begin, jac=True, method="L-BFGS-B", options={"maxiter": max_steps})
        best = at(found.x)
        return best if best.log_likelihood >= self.log_likelihood else self
