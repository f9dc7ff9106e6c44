"""Regularized least squares: one λ, any kernel, several outputs, exact."""

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
    """Regularized least squares with any kernel (kernel ridge regression), exact and certified.

    Minimises Σ w_i (y_i − f(x_i))² + λ‖f‖² over f(x) = Σ c_j k(x_j, x) + b, that is, solves (K + λW⁻¹)c + 1b = y. The
    bias b is not regularised. Several outputs share one factor.

    Parameters
    ----------
    lam : float, default=1.0
        λ, on the sum of squares: scikit-learn's `KernelRidge(alpha)`; see `mercer.C_from` for
        others. 0 gives the interpolant of least norm.
    %(kernel)s
    %(ridge bias)s
    %(ridge solver)s

    Attributes
    ----------
    certificate_ : Certificate
        Primal and dual value and the residuals of the optimality conditions on the given rows, from fresh kernel
        values.
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_outputs)
        β of the given rows; absent after partial_fit and for lam=0.
    coef_ : array of shape (n_features,) or (n_outputs, n_features)
        For linear kernels.
    intercept_ : array of shape (n_outputs,)
    solver_ : str
        The solver that was used.
    factor_precision_ : str
        "float32" where that factor led to float64's answer, "float64" otherwise.
    rank_ : int
        Directions that are more than rounding: all of them, unless K + λI is singular.
    residual_ : float
        The largest residual of the linear system, the certificate's violation.
    kernel_, converged_, stop_reason_, n_iter_, n_features_in_, feature_names_in_
        The kernel with its parameters as numbers; whether the certificate proves a relative gap of 1e-10; corrections
        made.

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
        """Learn from more samples; for linear kernels, the result is that of fitting all samples so far at once.

        Parameters
        ----------
        %(more samples)s
        %(given twice)s
        """
        return self._learn(X, y, sample_weight, 1)


@shared_docs
@dataclass(eq=False, repr=False)
class RLSClassifier(LeastSquaresClassifier, RecursiveLeastSquares):
    """Regularized least squares classification: ±1 targets, one against all for several classes.

    Minimises Σ w_i (±1 − f(x_i))² + λ‖f‖² for each class; all classes share one factor. For f(x) = 0 the second of
    two classes is predicted.

    Parameters
    ----------
    lam : float, default=1.0
        λ, on the sum of squares.
    %(kernel)s
    %(ridge bias)s
    %(ridge solver)s
    %(class_weight)s

    Attributes
    ----------
    classes_ : array
    class_weight_ : array
    certificate_, dual_coef_, coef_, intercept_, solver_, factor_precision_, rank_, residual_, kernel_, converged_,
    stop_reason_, n_iter_, n_features_in_, feature_names_in_
        As in RLSRegressor, with one output per class, or one in all for two classes.

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
        """Learn from more samples; for linear kernels. The first call must name all `classes` that will come.

        Parameters
        ----------
        %(more samples)s
        classes : array, optional
            All labels there will ever be; needed in the first call.
        %(given twice)s
        """
        return self._learn(X, y, sample_weight, 1, classes)

    def _learn(
        self, X: Data, y: ArrayLike, sample_weight: Weights, sign: int, classes: ArrayLike | None = None
    ) -> Self:
        labels = known_classes(classes, getattr(self, "classes_", None))
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight='balanced' needs all samples at once; give partial_fit a dict of class weights instead"
            )
        return super()._learn(X, y, sample_weight, sign, labels)
