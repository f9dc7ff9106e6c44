"""Gaussian process classification by Laplace's approximation, one class against the rest."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitting.families.classifier import OneAgainstRest
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.reporting import Progress
from mercer.estimators.fitting.pipeline.state import Array, fitted
from mercer.estimators.fitting.pipeline.task import Solutions, Task, Tasks
from mercer.estimators.fitting.reports.coefficients import expansion_of
from mercer.estimators.gaussian_process.laplace import LaplaceProcess, mean_sigmoid, mode_problem, solve_mode
from mercer.estimators.gaussian_process.optimising import LikelihoodMachine, copy_vectors
from mercer.estimators.kernel_machine import RepresenterMachine
from mercer.kernels import Kernel
from mercer.problems.representer import RepresenterProblem
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Data, Floats, freeze
from mercer.samples.engine import like_input
from mercer.samples.labels import signs, winner
from mercer.solvers.parameter_search import search_parameters


@shared_docs
@dataclass(eq=False, repr=False)
class GaussianProcessClassifier(LikelihoodMachine, OneAgainstRest, RepresenterMachine):
    """Gaussian process classification by Laplace's approximation, with a certificate of the mode.

    The likelihood is P(y = ±1 | f) = 1/(1 + e^(−yf)). The posterior of f is approximated by a normal distribution
    around its mode, which is `KernelMachine("logistic", lam=0.5, bias=False)` with that machine's certificate. With
    several classes there is a process for each class against the rest. All share one kernel, which maximises the sum
    of their likelihoods (scikit-learn's GaussianProcessClassifier fits a kernel to each).

    `predict`, `predict_proba` and `decision_function` average over the posterior of f. Methods and attributes that need
    a single function of the kernel's space use the posterior mean, `latent_mean_and_variance(X)[0]`, and call it
    "latent mean": `explain`, `gradient_importance`, `partial_dependence`, `reasons`, `margins`, `signed_distance`,
    `insight`, `function_` and `rkhs_norm_`.

    Parameters
    ----------
    %(kernel)s
    %(optimise)s
    tol : float, default=1e-13
        Relative gap to reach at the mode.
    %(process limits)s

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Class labels.
    log_marginal_likelihood_value_ : float
        Laplace's approximation of the log marginal likelihood log p(y), summed over the classes.
    laplace_correction_ : array of shape (n_outputs,)
        Estimate of the error of each log p(y), by the first neglected term of the expansion. It is not a bound; if it
        is not small compared with 1, probabilities and likelihood are inaccurate.
    certificate_ : Certificate
        Certificate of the mode.
    kernel_ : Kernel
        Covariance function with numerical parameters.
    dual_coef_, intercept_, rkhs_norm_, converged_, stop_reason_, n_iter_, n_features_in_, feature_names_in_
        As in `KernelMachineClassifier`.

    See Also
    --------
    GaussianProcessRegressor : The corresponding regressor.
    KernelMachineClassifier : Logistic classification with a given kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GaussianProcessClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, size=(80, 1))
    >>> model = GaussianProcessClassifier().fit(X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=80) > 0)
    >>> model.predict_proba([[1.5], [100.0]])[:, 1].round(2)  # nothing is known far away
    array([0.97, 0.5 ])
    >>> bool(abs(model.laplace_correction_[0]) < 1)  # the approximation is good
    True
    """

    _: KW_ONLY
    tol: float = 1e-13

    _DECISION_NAME = "latent mean"

    _FITTED = fitted(
        log_marginal_likelihood_value_=Array(None, single=True),
        laplace_correction_=Array("outputs"),
        _weight_=Array("vectors", required=True),
        _signs_=Array("vectors", "outputs", required=True),
    )

    def _tasks(self, fit: Fit) -> Tasks[RepresenterProblem]:
        """Return a task for each process, whose solution is the mode."""
        self._weight_ = freeze(np.array(fit.merged.weight))
        self._signs_ = freeze(signs(fit.merged.y, len(fit.target.labels)))
        names = [f"output {k}" for k in range(self._signs_.shape[1])] if self._signs_.shape[1] > 1 else [""]
        problems = [mode_problem(y, self._weight_) for y in self._signs_.T]
        return Tasks(Task(name, problem, solve_mode) for name, problem in zip(names, problems, strict=True))

    def _processes(self, X: Any, kernel: Kernel) -> list[LaplaceProcess]:
        """Return a process for each column of signs, whose modes are not computed yet."""
        return [LaplaceProcess(X, y, self._weight_, kernel=kernel) for y in self._signs_.T]

    def _solve(
        self, fit: Fit, tasks: Tasks[RepresenterProblem], progress: Progress, starts: list[Any]
    ) -> tuple[Fit, Solutions[RepresenterProblem]]:
        """Search for the kernel with the largest likelihood; return the fit with it, and the modes."""
        self._refuse_large(fit)
        X, kernel = fit.merged.X, self._scaled_kernel(fit)
        if self.optimise:

            def value_and_gradient(candidate: Kernel, numbers: dict[str, float]) -> tuple[float, dict[str, Any]]:
                processes = self._processes(X, candidate)
                gradients = [process.log_likelihood_gradient for process in processes]
                total = {name: sum(gradient[name] for gradient in gradients) for name in gradients[0]}
                return sum(process.log_likelihood for process in processes), total

            kernel = search_parameters(value_and_gradient, kernel, {}, self._names(), self._steps)[0]
        fit = replace(fit, kernel=kernel, _places={})
        return super()._solve(fit, tasks, progress, starts)

    def _conclude(self, fit: Fit, solved: Solutions[RepresenterProblem]) -> None:
        """Set the fitted attributes that only this kind of machine has."""
        assert fit.kernel is not None
        C = np.column_stack([s.solution.c for s in solved])
        self.classes_, self.intercept_ = freeze(fit.target.labels), freeze(np.zeros(C.shape[1]))
        self.n_iter_ = freeze(np.maximum(1, self.n_iter_))
        merged, by_row = fit.merged, np.zeros((C.shape[1], fit.n))
        by_row[:, merged.rows] = (merged.share[:, None] * C[merged.member]).T
        self.dual_coef_ = freeze(by_row)
        self._expansion_ = copy_vectors(expansion_of(fit, C, self.intercept_), fit)
        self._process_ = self._make_process()
        self.log_marginal_likelihood_value_ = float(sum(process.log_likelihood for process in self._process_))
        self.laplace_correction_ = freeze(np.array([process.correction for process in self._process_]))

    def _make_process(self) -> list[LaplaceProcess]:
        """Return the processes of the fitted modes."""
        modes = [np.ascontiguousarray(c) for c in np.asarray(self._expansion_.coefficients).T]
        return [
            LaplaceProcess(self._expansion_.vectors, y, self._weight_, kernel=self.kernel_, coefficients=c)
            for y, c in zip(self._signs_.T, modes, strict=True)
        ]

    # --- prediction ------------------------------------------------------------------------------------------------

    def latent_mean_and_variance(self, X: Data) -> tuple[Floats, Floats]:
        """Return the posterior mean and variance of f at samples.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`.

        Returns
        -------
        mean : array of shape (n_samples,), or (n_samples, n_classes) for several classes
            Posterior mean of f.
        variance : array of the same shape
            Posterior variance of f.
        """
        processes, samples = self._process(), self._read_new_samples(X)
        means, variances = zip(*(process.latent(samples) for process in processes), strict=True)
        mean, variance = np.column_stack(means), np.column_stack(variances)
        return (mean[:, 0], variance[:, 0]) if len(processes) == 1 else (mean, variance)

    def _mean_probabilities(self, X: Data) -> Floats:
        """Return P(y = 1) of each output (column) at each sample, averaged over the posterior of f."""
        mean, variance = self.latent_mean_and_variance(X)
        if mean.ndim == 1:
            return mean_sigmoid(mean, variance)[:, None]
        return np.column_stack([mean_sigmoid(*column) for column in zip(mean.T, variance.T, strict=True)])

    @like_input
    def predict_proba(self, X: Data) -> Floats:
        """Predict class probabilities, averaged over the posterior of f.

        With several classes, the probabilities of each class against the rest are scaled to add up to 1.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probability of each class, in the order of `classes_`.
        """
        P = self._mean_probabilities(X)
        if len(self.classes_) == 2:
            return np.column_stack([1.0 - P, P])
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    @like_input
    def decision_function(self, X: Data) -> Floats:
        """Return the log-odds log(P/(1 − P)) of samples.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_classes) for several classes
            Log-odds of the second of two classes, or of each class against the rest.
        """
        values = logit(np.clip(self._mean_probabilities(X), 1e-300, 1.0 - 1e-16))
        return np.asarray(values[:, 0] if values.shape[1] == 1 else values)

    @like_input
    def predict(self, X: Data) -> np.ndarray:
        """Predict the most probable class of each sample.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`.

        Returns
        -------
        array of shape (n_samples,)
            Class labels.
        """
        check_is_fitted(self)
        odds = self.decision_function(X)
        return np.asarray(self.classes_[winner(odds[:, None] if odds.ndim == 1 else odds)])
