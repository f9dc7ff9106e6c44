"""Support vector regression: ε-insensitive and related losses, ν-SVR, which chooses ε itself, and quantiles."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import d2_pinball_score

from mercer.estimators.fitting.families.dual_machine import target_unit
from mercer.estimators.fitting.families.regressor import KernelRegressor
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.state import Array, Flag, Number, fitted
from mercer.estimators.fitting.pipeline.task import Solutions, Solved, Task, Tasks
from mercer.estimators.fitting.reports.coefficients import Bounds
from mercer.estimators.regularisation import check_C_or_theta, penalty_C
from mercer.problems import regression
from mercer.problems.dual_problem import DualProblem
from mercer.problems.regression import quantile
from mercer.runtime.parameters import bias_kind, not_negative, one_of, positive, share
from mercer.runtime.shared_docs import shared_docs
from mercer.samples import checks
from mercer.samples.arrays import Data, Floats, Indices, Weights, freeze
from mercer.samples.engine import like_input, on_host, to_engine

_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive", "huber", "expectile")


@shared_docs
@dataclass(eq=False, repr=False)
class SVR(KernelRegressor):
    """Support vector regression with a certificate of optimality.

    Minimises ½‖w‖² + Σ C_i loss(y_i − f(x_i)) with f(x) = ⟨w, φ(x)⟩ + b, by solving the dual problem. With the default
    loss it is a drop-in replacement for scikit-learn's SVR. If y has several columns, a function is fitted to each, on
    one kernel matrix.

    Parameters
    ----------
    C : float, default=1.0
        Penalty for errors. The penalty C_i of a sample is C times its weight.
    epsilon : float, default=0.1
        Half-width ε of the tube within which errors are not penalised.
    loss : str, default="epsilon_insensitive"
        Loss of the residual r = y − f(x): "epsilon_insensitive" is max(0, |r| − ε); "squared_epsilon_insensitive" is
        ½ max(0, |r| − ε)² (LIBLINEAR's C for this loss is half of this C); "huber" is ½r² up to |r| = δ and
        δ(|r| − δ/2) beyond; "expectile" is ½τr² for r > 0 and ½(1 − τ)r² for r < 0.
    delta : float, default=1.0
        Threshold δ of the Huber loss, above which an error counts as an outlier.
    tau : float, default=0.5
        Level τ of the expectile loss; for quantiles see `QuantileSVR`.
    bias : True, False or "regularized", default=True
        Treatment of the intercept b: not penalised, absent, or penalised as the weight of a constant feature
        (½(‖w‖² + b²)).
    %(theta)s
    %(kernel)s
    %(dual parameters)s

    Attributes
    ----------
    %(dual attributes)s

    See Also
    --------
    NuSVR : Regression with a parameter ν for the fraction of samples outside the tube.
    QuantileSVR : Quantile regression.
    LinearSVR : Faster training for a linear kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVR
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = SVR(C=10, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(model.predict(X) - np.sin(X[:, 0])).max() < 0.06)
    True
    """

    C: float = 1.0
    _: KW_ONLY
    epsilon: float = 0.1
    loss: str = "epsilon_insensitive"
    delta: float = 1.0
    tau: float = 0.5
    bias: bool | str = True
    theta: float | None = None

    _FITTED = fitted(intercept_=Array("outputs", required=True))

    def _read(self, y: ArrayLike | None) -> tuple[Indices, Floats]:
        """Return a code for each distinct target, for the merging of samples, and the targets."""
        shape = np.asarray(y).shape
        if len(shape) != 2 or shape[1] < 2:
            return super()._read(y)
        target, _ = checks.outputs(y)
        return np.unique(target + 0.0, axis=0, return_inverse=True)[1].ravel(), target

    def _tasks(self, fit: Fit) -> Tasks[DualProblem]:
        """Return the problems to solve, with their solvers."""
        if fit.target.ndim == 1:
            return super()._tasks(fit)
        tasks, rows, weight = [], np.arange(len(fit.merged.y)), fit.merged.weight
        for k, y in enumerate(np.ascontiguousarray(fit.target[fit.merged.first].T)):
            problem = self._problem(fit, y, weight)
            solve = self._solver_for(fit, rows, problem)
            tasks.append(Task(f"output {k}", problem, solve, rows, unit=target_unit(y, weight)))
        return Tasks(tasks)

    def _conclude(self, fit: Fit, solved: Solutions[DualProblem]) -> None:
        """Set the fitted attributes that only this kind of machine has."""
        if fit.target.ndim == 1:
            super()._conclude(fit, solved)
            return
        unit_problem = self._problem(fit, fit.target[:1, 0], np.ones(1))  # problem of a single sample of weight 1
        box = Bounds(float(unit_problem.upper.max()), -float(unit_problem.lower.min()))
        self._conclude_outputs(fit, solved, lambda: box, solved.biases(self.bias))

    @like_input
    def predict(self, X: Data) -> Floats:
        """Predict the target of each sample.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`. For a precomputed kernel, the kernel values with the training samples.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_outputs) if y had several columns
            Predictions f(x).
        """
        values = self._decision(X)
        return values if values.shape[1] > 1 else np.asarray(values[:, 0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _problem(self, fit: Fit, y: Floats, weight: Floats) -> DualProblem:
        """Return the dual problem of one output with the loss of the machine."""
        C = penalty_C(self, float(fit.merged.weight.sum())) * weight
        if self.loss == "epsilon_insensitive":
            problem = regression.epsilon_insensitive(y, C, float(self.epsilon))
        elif self.loss == "squared_epsilon_insensitive":
            problem = regression.squared_epsilon_insensitive(y, C, float(self.epsilon))
        elif self.loss == "huber":
            problem = regression.huber(y, C, float(self.delta))
        else:
            problem = regression.expectile(y, C, float(self.tau))
        return problem if self.bias is True else problem.without_bias()

    def _check_parameters(self) -> None:
        check_C_or_theta(self)
        one_of("loss", self.loss, _LOSSES)
        one_of("bias", bias_kind(self.bias), (True, False, "regularized"))
        not_negative("epsilon", self.epsilon, "it is half the width of the tube")
        positive("delta", self.delta, "it is the threshold of the Huber loss")
        share("tau", self.tau)


@shared_docs
@dataclass(eq=False, repr=False)
class NuSVR(KernelRegressor):
    """ν-support vector regression, in which ν controls the fraction of samples outside the tube.

    Minimises ½‖w‖² + Σ C_i (νε + max(0, |y_i − f(x_i)| − ε)) over w, b and ε ≥ 0, by solving the dual problem. The
    solution is that of `SVR` with ε = `epsilon_`. If ε > 0, at most the fraction ν of the weight lies outside the tube
    and at least that fraction belongs to support vectors. It is a drop-in replacement for scikit-learn's NuSVR.

    Parameters
    ----------
    nu : float, default=0.5
        Upper bound on the fraction of samples outside the tube and lower bound on the fraction of support vectors, in
        the interval (0, 1].
    C : float, default=1.0
        Penalty for errors. The penalty C_i of a sample is C times its weight.
    %(kernel)s
    %(dual parameters)s

    Attributes
    ----------
    epsilon_ : float
        Half-width ε of the tube.
    %(dual attributes)s

    See Also
    --------
    SVR : Regression with a given half-width of the tube.
    NuSVC : The corresponding classifier.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import NuSVR
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> noise = 0.1 * np.random.default_rng(0).normal(size=60)
    >>> model = NuSVR(nu=0.2, C=10).fit(X, np.sin(X[:, 0]) + noise)
    >>> outside = np.abs(model.predict(X) - np.sin(X[:, 0]) - noise) > model.epsilon_ + 1e-3
    >>> bool(outside.mean() <= 0.2)
    True
    """

    _FITTED = fitted(epsilon_=Number())

    nu: float = 0.5
    _: KW_ONLY
    C: float = 1.0

    def _problem(self, fit: Fit, y: Floats, weight: Floats) -> DualProblem:
        return regression.nu_tube(y, float(self.C) * weight, float(self.nu))

    def _bias(self, solved: Solved[DualProblem]) -> float:
        """Return b, and set ε; both come from the two equalities of the dual problem."""
        upper, lower = solved.certificate.b
        self.epsilon_ = max(0.0, 0.5 * (upper - lower))
        return 0.5 * (upper + lower)

    def _check_parameters(self) -> None:
        positive("C", self.C)
        share("nu", self.nu, "it is the share of samples outside the tube", whole=True)


@shared_docs
@dataclass(eq=False, repr=False)
class QuantileSVR(KernelRegressor):
    """Kernel quantile regression with a certificate of optimality.

    For each τ, minimises ½‖w‖² + Σ C_i pinball_τ(y_i − f(x_i)), with pinball_τ(r) = τr for r > 0 and (τ − 1)r for
    r < 0, by solving the dual problem. At the solution at most the fraction τ of the weight lies strictly below f, and
    at least that fraction lies below or on f. Several quantiles are fitted one by one, and predictions are sorted in
    increasing order (Chernozhukov, Fernández-Val, Galichon 2010): crossing curves are rearranged, which never makes the
    estimate worse.

    Parameters
    ----------
    quantiles : float or sequence of float, default=0.5
        Quantile levels τ, strictly between 0 and 1. With a single number predictions are one-dimensional.
    C : float, default=1.0
        Penalty for errors. The penalty C_i of a sample is C times its weight.
    bias : True, False or "regularized", default=True
        Treatment of the intercept, as in `SVR`; the fractions above are guaranteed only with True.
    %(theta)s
    %(kernel)s
    %(dual parameters)s

    Attributes
    ----------
    quantiles_ : array of shape (n_quantiles,)
        Quantile levels in the order in which they were given, which is that of the columns of `predict` and of the
        rows of `dual_coef_` and `intercept_`.
    %(dual attributes)s

    See Also
    --------
    SVR : Regression with other losses, such as expectiles.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import QuantileSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 1))
    >>> y = X[:, 0] + rng.normal(size=200)
    >>> low, high = QuantileSVR([0.1, 0.9]).fit(X, y).predict(X).T
    >>> bool((low <= high).all())
    True
    >>> bool(0.07 < (y < low).mean() <= 0.11)
    True
    >>> round(QuantileSVR([0.1, 0.9]).fit(X, y).score(X, y), 1)  # D² of the pinball loss
    0.1
    """

    _FITTED = fitted(
        intercept_=Array("outputs", required=True),
        quantiles_=Array("outputs", required=True),
        _flat_=Flag(required=True),
    )

    quantiles: ArrayLike = 0.5
    _: KW_ONLY
    C: float = 1.0
    bias: bool | str = True
    theta: float | None = None

    def _tasks(self, fit: Fit) -> Tasks[DualProblem]:
        """Return the problems to solve, with their solvers."""
        y, C = fit.target[fit.merged.first], self._penalty(fit) * fit.merged.weight
        tasks, rows, unit = [], np.arange(len(y)), target_unit(y, fit.merged.weight)
        for tau in _quantiles(self.quantiles):
            problem = quantile(y, C, tau)
            problem = problem if self.bias is True else problem.without_bias()
            solve = self._solver_for(fit, rows, problem)
            tasks.append(Task(f"quantile {tau:g}", problem, solve, rows, unit=unit))
        return Tasks(tasks)

    def _conclude(self, fit: Fit, solved: Solutions[DualProblem]) -> None:
        """Set the fitted attributes that only this kind of machine has."""
        tau, C = _quantiles(self.quantiles), self._penalty(fit)
        self.quantiles_ = freeze(tau)
        self._flat_ = np.ndim(self.quantiles) == 0
        self._conclude_outputs(fit, solved, lambda: Bounds(C * tau, C * (1.0 - tau)), solved.biases(self.bias))

    @like_input
    def predict(self, X: Data) -> Floats:
        """Predict the quantiles of the target of each sample.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`. For a precomputed kernel, the kernel values with the training samples.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_quantiles) for a sequence of quantiles
            Predicted quantiles, in the order of `quantiles_`.
        """
        values = self._decision(X)
        if self._has_one_quantile():
            return np.asarray(values[:, 0])
        # Values are sorted, so that predicted quantiles do not cross.
        rank = np.argsort(np.argsort(self.quantiles_, kind="stable"), kind="stable")
        return np.asarray(np.sort(values, axis=1)[:, rank])

    def score(self, X: Data, y: ArrayLike, sample_weight: Weights = None) -> float:
        """Return the D² score of the pinball loss, averaged over the quantiles.

        The score is 1 − Σ pinball_τ(y_i − f(x_i)) / Σ pinball_τ(y_i − q), where q is the τ-quantile of y: 1 for perfect
        predictions, 0 for the constant prediction q. R² is not a suitable score, since it compares with the mean.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`.
        y : array of shape (n_samples,)
            True target values.
        sample_weight : array of shape (n_samples,), optional
            Sample weights.

        Returns
        -------
        float
            Score, at most 1.
        """
        y, sample_weight = on_host(y), on_host(sample_weight)
        predicted = np.reshape(self.predict(to_engine(X)), (-1, len(self.quantiles_)))
        scores = [
            d2_pinball_score(y, column, sample_weight=sample_weight, alpha=float(tau))
            for tau, column in zip(self.quantiles_, predicted.T, strict=True)
        ]
        return float(np.mean(scores))

    def _has_one_quantile(self) -> bool:
        """Return whether `quantiles` was a single number in the last fit."""
        return bool(getattr(self, "_flat_", np.ndim(self.quantiles) == 0))

    def _penalty(self, fit: Fit) -> float:
        """Return the penalty C of a sample of weight 1."""
        return penalty_C(self, float(fit.merged.weight.sum()))

    def _check_parameters(self) -> None:
        check_C_or_theta(self)
        one_of("bias", bias_kind(self.bias), (True, False, "regularized"))
        _quantiles(self.quantiles)


def _quantiles(quantiles: Any) -> Floats:
    """Return the parameter `quantiles` as an array; raise ValueError if it is not a list of levels."""
    levels = [quantiles] if np.ndim(quantiles) == 0 else list(quantiles)
    if not levels or np.ndim(quantiles) > 1:
        raise ValueError(f"quantiles={quantiles!r} must be a number or a list of at least one number")
    return np.array([share("quantiles", level) for level in levels])
