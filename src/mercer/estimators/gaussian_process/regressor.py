"""Gaussian process regression: least squares that says how sure it is, and learns its kernel's parameters."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mercer.estimators.fitting.families.least_squares_machine import LeastSquaresRegressor, checked_lam
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.reporting import Progress
from mercer.estimators.fitting.pipeline.state import Array, Number, fitted
from mercer.estimators.fitting.pipeline.task import Solutions, Task, Tasks
from mercer.estimators.gaussian_process.optimising import Optimising
from mercer.estimators.gaussian_process.process import GaussianProcess
from mercer.kernels import Kernel
from mercer.kernels.names import as_kernel
from mercer.problems.least_squares import LeastSquares
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Data, Floats, freeze
from mercer.samples.engine import like_input, placed
from mercer.solvers.least_squares.choose import solve_least_squares


@shared_docs
@dataclass(eq=False, repr=False)
class GaussianProcessRegressor(Optimising, LeastSquaresRegressor):
    """Gaussian process regression: mean, variance, samples and likelihood, exact and certified.

    The mean is `RLSRegressor(lam, bias=False)`, with its certificate. `lam` is the variance of the noise. It, the
    parameters of the kernel and its scale are those that make the data most likely, from the given ones on (a local
    maximum). Several outputs are independent processes with one kernel and one lam. scikit-learn's
    GaussianProcessRegressor is the same process with `alpha` for lam.

    Parameters
    ----------
    lam : float, default=0.1
        The variance of the noise, above 0; where the search for it begins.
    %(kernel)s
    %(optimise)s
    bias : bool, default=False
        Whether there is a constant beside f, of which nothing is known before.
    %(process limits)s

    Attributes
    ----------
    lam_ : float
        The variance of the noise.
    log_marginal_likelihood_value_ : float
        log p(y) at these parameters. A sample of weight w counts as w samples.
    kernel_ : Kernel
        The covariance, with its parameters as numbers.
    certificate_ : Certificate
        That of the mean, as for `RLSRegressor`.
    dual_coef_, intercept_, coef_, solver_, factor_precision_, rank_, residual_, converged_, stop_reason_, n_iter_,
    n_features_in_, feature_names_in_
        As in `RLSRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GaussianProcessRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, size=(80, 1))
    >>> y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=80)
    >>> model = GaussianProcessRegressor().fit(X, y)
    >>> bool(0.05 < model.lam_ < 0.15)  # 0.09 is true
    True
    >>> mean, deviation = model.predict([[5.0], [40.0]], return_std=True)
    >>> bool(deviation[0] < 0.2 < deviation[1])  # far from all samples it is that of the prior
    True
    """

    lam: float = 0.1
    _: KW_ONLY
    bias: bool = False

    _FITTED = fitted(
        lam_=Number(required=True),
        log_marginal_likelihood_value_=Number(required=True),
        _weight_=Array("vectors", required=True),
        _means_=Array("vectors", "outputs", required=True),
        _scatter_=Array("outputs", required=True),
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checked_lam("lam", self.lam, "without noise K need not have an inverse")

    def _tasks(self, fit: Fit) -> Tasks[LeastSquares]:
        return self._tasks_at(fit, float(self.lam))

    def _tasks_at(self, fit: Fit, lam: float) -> Tasks[LeastSquares]:
        return Tasks([Task("", self._problem(fit, lam), partial(solve_least_squares, solver="cholesky"))])

    def _solve(
        self, fit: Fit, tasks: Tasks[LeastSquares], progress: Progress, starts: list[Any]
    ) -> tuple[Fit, Solutions[LeastSquares]]:
        problem = tasks[0].problem
        deviation = problem.Y - problem.mean[problem.member]
        self._weight_, self._means_ = freeze(np.array(problem.total)), freeze(np.array(problem.mean))
        self._scatter_ = freeze(problem.weight @ deviation**2)
        process = self._at(fit.merged.X, self._wrapped(fit), float(self.lam))
        self._refuse_large(fit)
        if self.optimise:
            process = process.most_likely(self._names(), self._steps)
        self._process_ = process
        fit = replace(fit, kernel=process.kernel, _places={})
        return super()._solve(fit, self._tasks_at(fit, process.lam), progress, starts)

    def _conclude(self, fit: Fit, solved: Solutions[LeastSquares]) -> None:
        self.lam_ = float(self._process_.lam)
        self.log_marginal_likelihood_value_ = self._process_.log_likelihood
        self._conclude_rows(fit, solved[0].solution, self.lam_)
        self._process_.X = self._expansion_.vectors  # not the caller's

    def _at(self, X: Any, kernel: Kernel, lam: float) -> GaussianProcess:
        targets, weight, scatter = self._means_, self._weight_, self._scatter_
        return GaussianProcess(X, targets, weight, kernel=kernel, lam=lam, bias=bool(self.bias), scatter=scatter)

    def _made(self) -> GaussianProcess:
        return self._at(self._expansion_.vectors, self.kernel_, self.lam_)

    @like_input
    def predict(self, X: Data, return_std: bool = False, return_cov: bool = False, noise: bool = False) -> Any:
        """The mean of each sample, and how sure it is.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`.
        return_std : bool, default=False
            Give the standard deviation too; for several outputs a column for each, which are all the same.
        return_cov : bool, default=False
            Give the covariances of the samples too, of shape (n, n), or (n, n, outputs).
        noise : bool, default=False
            Whether they are those of new targets, with their noise, instead of f.
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov are both True; the deviations are on the covariances' diagonal")
        mean = super().predict(X)
        if not (return_std or return_cov):
            return mean
        process, new = self._process(), self._to_decide(X)
        beside = process.covariance(new, noise=noise) if return_cov else np.sqrt(process.variance(new, noise=noise))
        if not self._flat_:
            beside = np.repeat(beside[..., None], mean.shape[1], axis=-1)
        return mean, beside

    def sample_y(self, X: Data, n_samples: int = 1, random_state: Any = 0, *, noise: bool = False) -> Floats:
        """Functions drawn from the process, at samples: of shape (n, n_samples), or (n, outputs, n_samples).

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`.
        n_samples : int, default=1
            How many functions.
        random_state : int, Generator or None, default=0
            Where chance comes from.
        noise : bool, default=False
            Whether targets are drawn, with noise, instead of values of functions.
        """
        process = self._process()
        drawn: Floats = process.draw(self._to_decide(placed(X)), n_samples, noise=noise, seed=random_state)
        return drawn[:, 0] if self._flat_ else drawn

    def log_marginal_likelihood(self, kernel: Any = None, lam: float | None = None, eval_gradient: bool = False) -> Any:
        """log p(y) of the training samples, and its derivatives by lam and the kernel's parameters, by name.

        Parameters
        ----------
        kernel : Kernel, optional
            Another covariance than `kernel_`.
        lam : float, optional
            Another noise than `lam_`.
        eval_gradient : bool, default=False
            Whether to give the derivatives too.
        """
        process = self._process()
        if kernel is not None or lam is not None:
            other = process.kernel if kernel is None else as_kernel(kernel).bind(process.X)
            process = process.at(other, process.lam if lam is None else lam)
        return (process.log_likelihood, process.log_likelihood_gradient) if eval_gradient else process.log_likelihood
