"""Gaussian process classification by Laplace's approximation, one class against all others for several."""

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
from mercer.estimators.gaussian_process.laplace import LaplaceProcess, averaged, mode_problem, solve_mode
from mercer.estimators.gaussian_process.optimising import Optimising, own_vectors
from mercer.estimators.kernel_machine import RepresentedMachine
from mercer.kernels import Kernel
from mercer.problems.representer import RepresenterProblem
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Data, Floats, freeze
from mercer.samples.engine import like_input
from mercer.samples.labels import signs, winner
from mercer.solvers.parameter_search import climb


@shared_docs
@dataclass(eq=False, repr=False)
class GaussianProcessClassifier(Optimising, OneAgainstRest, RepresentedMachine):
    """Gaussian process classification by Laplace's approximation, its mode certified.

    P(y = ±1 | f) = 1/(1 + e^(−yf)). The posterior of f is replaced by a normal one around its mode, which is
    `KernelMachine("logistic", lam=0.5, bias=False)` with that machine's certificate. Several classes have a process
    each, against all others, and one kernel for all, which makes the sum of their likelihoods largest (scikit-learn's
    GaussianProcessClassifier gives each its own).

    `predict`, `predict_proba` and `decision_function` average over the posterior of f. What speaks of one function of
    the kernel's space is about its mean, `latent_mean_and_variance(X)[0]`, and says "latent mean": `explain`,
    `gradient_importance`, `partial_dependence`, `reasons`, `margins`, `signed_distance`, `insight`, `function_` and
    `rkhs_norm_`.

    Parameters
    ----------
    %(kernel)s
    %(optimise)s
    tol : float, default=1e-13
        The relative gap of the mode.
    %(process limits)s

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    log_marginal_likelihood_value_ : float
        log p(y) as Laplace approximates it, summed over the classes.
    laplace_correction_ : array of shape (n_outputs,)
        What the approximation leaves out of each log p(y), estimated by the first term of its expansion: no bound, but
        where it is not small against 1, probabilities and likelihood are rough.
    kernel_ : Kernel
        The covariance, with its parameters as numbers.
    certificate_ : Certificate
        That of the mode.
    dual_coef_, intercept_, rkhs_norm_, converged_, stop_reason_, n_iter_, n_features_in_, feature_names_in_
        As in `KernelMachineClassifier`.

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
        self._weight_ = freeze(np.array(fit.merged.weight))
        self._signs_ = freeze(signs(fit.merged.y, len(fit.target.labels)))
        names = [f"output {k}" for k in range(self._signs_.shape[1])] if self._signs_.shape[1] > 1 else [""]
        problems = [mode_problem(y, self._weight_) for y in self._signs_.T]
        return Tasks(Task(name, problem, solve_mode) for name, problem in zip(names, problems, strict=True))

    def _processes(self, X: Any, kernel: Kernel) -> list[LaplaceProcess]:
        """A process for each column of signs, whose modes are not found yet."""
        return [LaplaceProcess(X, y, self._weight_, kernel=kernel) for y in self._signs_.T]

    def _solve(
        self, fit: Fit, tasks: Tasks[RepresenterProblem], progress: Progress, starts: list[Any]
    ) -> tuple[Fit, Solutions[RepresenterProblem]]:
        self._refuse_large(fit)
        X, kernel = fit.merged.X, self._wrapped(fit)
        if self.optimise:

            def value(other: Kernel, numbers: dict[str, float]) -> tuple[float, dict[str, Any]]:
                found = self._processes(X, other)
                slopes = [one.log_likelihood_gradient for one in found]
                total = {name: sum(slope[name] for slope in slopes) for name in slopes[0]}
                return sum(one.log_likelihood for one in found), total

            kernel = climb(value, kernel, {}, self._names(), self._steps)[0]
        fit = replace(fit, kernel=kernel, _places={})
        return super()._solve(fit, tasks, progress, starts)

    def _conclude(self, fit: Fit, solved: Solutions[RepresenterProblem]) -> None:
        assert fit.kernel is not None
        C = np.column_stack([one.solution.c for one in solved])
        self.classes_, self.intercept_ = freeze(fit.target.labels), freeze(np.zeros(C.shape[1]))
        self.n_iter_ = freeze(np.maximum(1, self.n_iter_))
        merged, own = fit.merged, np.zeros((C.shape[1], fit.n))
        own[:, merged.rows] = (merged.share[:, None] * C[merged.member]).T
        self.dual_coef_ = freeze(own)
        self._expansion_ = own_vectors(expansion_of(fit, C, self.intercept_), fit)
        self._process_ = self._made()
        self.log_marginal_likelihood_value_ = float(sum(one.log_likelihood for one in self._process_))
        self.laplace_correction_ = freeze(np.array([one.correction for one in self._process_]))

    def _made(self) -> list[LaplaceProcess]:
        """The processes of the fitted modes."""
        modes = [np.ascontiguousarray(c) for c in np.asarray(self._expansion_.coefficients).T]
        return [
            LaplaceProcess(self._expansion_.vectors, y, self._weight_, kernel=self.kernel_, coefficients=c)
            for y, c in zip(self._signs_.T, modes, strict=True)
        ]

    # --- prediction ------------------------------------------------------------------------------------------------

    def latent_mean_and_variance(self, X: Data) -> tuple[Floats, Floats]:
        """The mean and the variance of f at samples; with several classes a column for each.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`.

        Returns
        -------
        tuple of two arrays
        """
        processes, new = self._process(), self._to_decide(X)
        mean, variance = (np.column_stack(side) for side in zip(*(one.latent(new) for one in processes), strict=True))
        return (mean[:, 0], variance[:, 0]) if len(processes) == 1 else (mean, variance)

    def _averaged(self, X: Data) -> Floats:
        """P of each output."""
        mean, variance = self.latent_mean_and_variance(X)
        if mean.ndim == 1:
            return averaged(mean, variance)[:, None]
        return np.column_stack([averaged(*column) for column in zip(mean.T, variance.T, strict=True)])

    @like_input
    def predict_proba(self, X: Data) -> Floats:
        """P(class) for each sample, averaged over f; several classes have each its own against all others, scaled to
        add up to 1.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`; of a precomputed kernel, its values between these and the training samples.
        """
        P = self._averaged(X)
        if len(self.classes_) == 2:
            return np.column_stack([1.0 - P, P])
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    @like_input
    def decision_function(self, X: Data) -> Floats:
        """The logarithm of the odds P/(1 − P), of the second of two classes, or of each against the others.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`; of a precomputed kernel, its values between these and the training samples.
        """
        values = logit(np.clip(self._averaged(X), 1e-300, 1.0 - 1e-16))
        return np.asarray(values[:, 0] if values.shape[1] == 1 else values)

    @like_input
    def predict(self, X: Data) -> np.ndarray:
        """The most probable class of each sample.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`; of a precomputed kernel, its values between these and the training samples.
        """
        check_is_fitted(self)
        odds = self.decision_function(X)
        return np.asarray(self.classes_[winner(odds[:, None] if odds.ndim == 1 else odds)])
