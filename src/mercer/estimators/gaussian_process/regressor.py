"""Gaussian process regression: kernel ridge regression with variances and optimised kernel parameters."""

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
from mercer.estimators.gaussian_process.optimising import LikelihoodMachine
from mercer.estimators.gaussian_process.process import GaussianProcess
from mercer.kernels import Kernel
from mercer.kernels.names import as_kernel
from mercer.problems.least_squares import LeastSquares
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Data, Floats, freeze
from mercer.samples.engine import like_input, to_engine
from mercer.solvers.least_squares.choose import solve_least_squares


@shared_docs
@dataclass(eq=False, repr=False)
class GaussianProcessRegressor(LikelihoodMachine, LeastSquaresRegressor):
    """Gaussian process regression with a certificate of the mean.

    The mean is `RLSRegressor(lam, bias=False)`, with its certificate; `lam` is the variance of the noise. By default
    `lam`, the parameters of the kernel and a scale of the kernel maximise the marginal likelihood, in a local search
    from the given values. Several outputs are independent processes with one kernel and one lam. scikit-learn's
    GaussianProcessRegressor is the same process with `alpha` instead of `lam`.

    Parameters
    ----------
    lam : float, default=0.1
        Variance of the noise, above 0; the starting point of the search if it is optimised.
    %(kernel)s
    %(optimise)s
    bias : bool, default=False
        Whether to add a constant with a flat prior to f.
    %(process limits)s

    Attributes
    ----------
    lam_ : float
        Variance of the noise.
    log_marginal_likelihood_value_ : float
        Log marginal likelihood log p(y) at the fitted parameters. A sample of weight w is equivalent to w samples.
    certificate_ : Certificate
        Certificate of the mean, as in `RLSRegressor`.
    kernel_ : Kernel
        Covariance function with numerical parameters.
    dual_coef_, intercept_, coef_, solver_, factor_precision_, rank_, residual_, converged_, stop_reason_, n_iter_,
    n_features_in_, feature_names_in_
        As in `RLSRegressor`.

    See Also
    --------
    RLSRegressor : Kernel ridge regression: the mean for given parameters.
    GaussianProcessClassifier : The corresponding classifier.
    RelevanceVectorRegressor : Sparse Bayesian regression.

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
    >>> bool(deviation[0] < 0.2 < deviation[1])  # far from all samples it approaches that of the prior
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
        """Return the task of the mean at one lam."""
        return Tasks([Task("", self._problem(fit, lam), partial(solve_least_squares, solver="cholesky"))])

    def _solve(
        self, fit: Fit, tasks: Tasks[LeastSquares], progress: Progress, starts: list[Any]
    ) -> tuple[Fit, Solutions[LeastSquares]]:
        """Search for the parameters with the largest likelihood; return the fit with these, and the mean."""
        problem = tasks[0].problem
        deviation = problem.Y - problem.mean[problem.member]
        self._weight_, self._means_ = freeze(np.array(problem.total)), freeze(np.array(problem.mean))
        self._scatter_ = freeze(problem.weight @ deviation**2)
        process = self._process_at(fit.merged.X, self._scaled_kernel(fit), float(self.lam))
        self._refuse_large(fit)
        if self.optimise:
            process = process.most_likely(self._names(), self._steps)
        self._process_ = process
        fit = replace(fit, kernel=process.kernel, _places={})
        return super()._solve(fit, self._tasks_at(fit, process.lam), progress, starts)

    def _conclude(self, fit: Fit, solved: Solutions[LeastSquares]) -> None:
        """Set the fitted attributes that only this kind of machine has."""
        self.lam_ = float(self._process_.lam)
        self.log_marginal_likelihood_value_ = self._process_.log_likelihood
        self._conclude_rows(fit, solved[0].solution, self.lam_)
        self._process_.X = self._expansion_.vectors  # not the caller's

    def _process_at(self, X: Any, kernel: Kernel, lam: float) -> GaussianProcess:
        """Return the process at the given kernel and lam; X are the merged training samples."""
        targets, weight, scatter = self._means_, self._weight_, self._scatter_
        return GaussianProcess(X, targets, weight, kernel=kernel, lam=lam, bias=bool(self.bias), scatter=scatter)

    def _make_process(self) -> GaussianProcess:
        return self._process_at(self._expansion_.vectors, self.kernel_, self.lam_)

    @like_input
    def predict(self, X: Data, return_std: bool = False, return_cov: bool = False, noise: bool = False) -> Any:
        """Predict the mean, and optionally the standard deviation or covariance, at samples.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`.
        return_std : bool, default=False
            Whether to return the standard deviations as well.
        return_cov : bool, default=False
            Whether to return the covariance matrix as well.
        noise : bool, default=False
            Whether these are the deviations of new targets, including noise, instead of those of f.

        Returns
        -------
        mean : array of shape (n_samples,) or (n_samples, n_outputs)
            Posterior mean.
        std : array of shape (n_samples,) or (n_samples, n_outputs)
            Standard deviations, only with `return_std`; the same for all outputs.
        cov : array of shape (n_samples, n_samples) or (n_samples, n_samples, n_outputs)
            Covariance matrix, only with `return_cov`; the same for all outputs.
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov are both True; the deviations are on the covariances' diagonal")
        mean = super().predict(X)
        if not (return_std or return_cov):
            return mean
        process, samples = self._process(), self._read_new_samples(X)
        spread = (
            process.covariance(samples, noise=noise) if return_cov else np.sqrt(process.variance(samples, noise=noise))
        )
        if not self._flat_:
            spread = np.repeat(spread[..., None], mean.shape[1], axis=-1)
        return mean, spread

    def sample_y(self, X: Data, n_samples: int = 1, random_state: Any = 0, *, noise: bool = False) -> Floats:
        """Draw functions from the posterior process and evaluate them at samples.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`.
        n_samples : int, default=1
            Number of functions to draw.
        random_state : int, Generator or None, default=0
            Seed or generator of the draws.
        noise : bool, default=False
            Whether to draw targets, including noise, instead of values of functions.

        Returns
        -------
        array of shape (n_samples_X, n_samples) or (n_samples_X, n_outputs, n_samples)
            Values of the functions.
        """
        process = self._process()
        functions: Floats = process.draw(
            self._read_new_samples(to_engine(X)), n_samples, noise=noise, seed=random_state
        )
        return functions[:, 0] if self._flat_ else functions

    def log_marginal_likelihood(self, kernel: Any = None, lam: float | None = None, eval_gradient: bool = False) -> Any:
        """Return the log marginal likelihood log p(y) of the training samples.

        Parameters
        ----------
        kernel : Kernel, optional
            Covariance function to use instead of `kernel_`.
        lam : float, optional
            Variance of the noise to use instead of `lam_`.
        eval_gradient : bool, default=False
            Whether to return the derivatives as well.

        Returns
        -------
        log_likelihood : float
            Log marginal likelihood.
        gradient : dict
            Derivatives with respect to lam and the kernel's parameters, by name; only with `eval_gradient`.
        """
        process = self._process()
        if kernel is not None or lam is not None:
            other = process.kernel if kernel is None else as_kernel(kernel).bind(process.X)
            process = process.with_kernel(other, process.lam if lam is None else lam)
        return (process.log_likelihood, process.log_likelihood_gradient) if eval_gradient else process.log_likelihood
