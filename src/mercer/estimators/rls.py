"""Regularised least squares (kernel ridge) regression and classification with a given λ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from numpy.typing import ArrayLike

from mercer.estimators.fitting.families.least_squares_machine import (
    LeastSquaresClassifier,
    LeastSquaresRegressor,
    RecursiveLeastSquares,
    has_linear_kernel,
)
from mercer.runtime.available import available_if
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Data, Weights
from mercer.samples.labels import known_classes


@shared_docs
class RLSRegressor(LeastSquaresRegressor, RecursiveLeastSquares):
    """Kernel ridge regression (regularised least squares) with a certificate of optimality.

    Minimises Σ w_i (y_i − f(x_i))² + λ‖f‖² over f(x) = Σ c_j k(x_j, x) + b, that is, solves (K + λW⁻¹)c + 1b = y. The
    bias b is not penalised. Several outputs share one factorisation.

    Parameters
    ----------
    lam : float, default=1.0
        Regularisation strength λ, relative to the sum of squares: alpha of scikit-learn's KernelRidge; see
        `mercer.C_from` for other conventions. 0 gives the interpolant of least norm.
    %(kernel)s
    %(ridge bias)s
    %(ridge solver)s

    Attributes
    ----------
    certificate_ : Certificate
        Primal and dual value and the residuals of the optimality conditions for the given samples, from freshly
        computed kernel values. Its values are those of ½‖f‖² + 1/(2λ) Σ w_i (y_i − f(x_i))², the objective divided by
        2λ; for lam=0 those of half the sum of squares.
    converged_ : bool
        Whether the certificate proves a relative gap of 1e-10.
    stop_reason_ : str
        Reason why training ended: "converged", "rounding floor", "max_iter" or "max_time".
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_outputs)
        Coefficients of the samples; absent after `partial_fit` and for lam=0.
    coef_ : array of shape (n_features,) or (n_outputs, n_features)
        Weights of the features; only for a linear kernel.
    intercept_ : array of shape (n_outputs,)
        Constants b.
    solver_ : str
        Algorithm used.
    factor_precision_ : str
        "float32" if a factorisation in float32 led to the solution in float64, "float64" otherwise.
    rank_ : int
        Effective rank of the linear system: full unless K + λI is singular to rounding.
    residual_ : float
        Largest residual of the linear system, which is the violation of the certificate.
    n_iter_ : int
        Number of refinement steps or iterations.
    %(kernel with its numbers)s

    See Also
    --------
    RLSRegressorCV : Kernel ridge regression that chooses λ by leave-one-out.
    RLSClassifier : The corresponding classifier.
    NystromRLS : Kernel ridge regression on landmarks, for very many samples.
    GaussianProcessRegressor : The same function with variances and optimised parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RLSRegressor
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> model = RLSRegressor(lam=1e-3).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 1e-3)
    True
    """

    @available_if(has_linear_kernel)
    @shared_docs
    def partial_fit(self, X: Data, y: ArrayLike, sample_weight: Weights = None) -> Self:
        """Update the fit with more samples; only for linear kernels.

        The result is that of fitting all samples so far at once.

        Parameters
        ----------
        %(more samples)s
        %(given twice)s

        Returns
        -------
        self
            Fitted estimator.
        """
        return self._learn(X, y, sample_weight, 1)


@shared_docs
@dataclass(eq=False, repr=False)
class RLSClassifier(LeastSquaresClassifier, RecursiveLeastSquares):
    """Kernel ridge classification (regularised least squares) with targets ±1, one class against the rest.

    Minimises Σ w_i (±1 − f(x_i))² + λ‖f‖² for each class; all classes share one factorisation. If f(x) = 0, the second
    of two classes is predicted.

    Parameters
    ----------
    lam : float, default=1.0
        Regularisation strength λ, relative to the sum of squares.
    %(kernel)s
    %(ridge bias)s
    %(ridge solver)s
    %(class_weight)s

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Class labels.
    class_weight_ : array of shape (n_classes,)
        Factor on the sample weights for each class.
    certificate_, dual_coef_, coef_, intercept_, solver_, factor_precision_, rank_, residual_, kernel_, converged_,
    stop_reason_, n_iter_, n_features_in_, feature_names_in_
        As in `RLSRegressor`, with one output for two classes, else one for each class.

    See Also
    --------
    RLSClassifierCV : Kernel ridge classification that chooses λ by leave-one-out.
    RLSRegressor : The corresponding regressor.
    NystromRLSClassifier : Kernel ridge classification on landmarks, for very many samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import RLSClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> round(RLSClassifier(lam=0.1).fit(X, y).score(X, y), 2)
    0.99
    """

    @available_if(has_linear_kernel)
    @shared_docs
    def partial_fit(
        self, X: Data, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: Weights = None
    ) -> Self:
        """Update the fit with more samples; only for linear kernels.

        Parameters
        ----------
        %(more samples)s
        classes : array, optional
            All class labels that may occur; required in the first call.
        %(given twice)s

        Returns
        -------
        self
            Fitted estimator.
        """
        return self._learn(X, y, sample_weight, 1, classes)

    def _learn(
        self, X: Data, y: ArrayLike, sample_weight: Weights, sign: int, classes: ArrayLike | None = None
    ) -> Self:
        """Add or remove samples, after a check of the class labels and class weights."""
        labels = known_classes(classes, getattr(self, "classes_", None))
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight='balanced' needs all samples at once; give partial_fit a dict of class weights instead"
            )
        return super()._learn(X, y, sample_weight, sign, labels)
