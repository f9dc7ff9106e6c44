"""Mixins of machines: scores, and methods that use packages above the machines, such as explanations and calibration.

Each method imports its package when it is called, so that importing a machine does not import these packages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, RegressorMixin

from mercer.estimators.fitting.pipeline.class_spec import declared
from mercer.estimators.fitting.reports.notebook import ShowsCertificate
from mercer.runtime.available import available_if
from mercer.runtime.errors import PROBABILITIES
from mercer.samples.engine import on_host, to_engine

if TYPE_CHECKING:
    from mercer.calibration import CalibratedClassifier, CalibratedRegressor
    from mercer.inspection.compression import Compression
    from mercer.inspection.explain import Explanation
    from mercer.inspection.explain.partial_dependence import PartialDependence
    from mercer.inspection.explain.reasons import Reasons
    from mercer.notes.theory.insights import Insight
    from mercer.samples.arrays import Data, Floats, Weights


class ScoresAccuracy(ClassifierMixin):  # type: ignore[misc]  # scikit-learn is untyped
    """scikit-learn's ClassifierMixin with a score that also takes labels and weights held by an engine."""

    def score(self, X: Data, y: ArrayLike, sample_weight: Weights = None) -> float:
        """Return the accuracy of the predictions.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `predict`.
        y : array of shape (n_samples,)
            True class labels.
        sample_weight : array of shape (n_samples,), optional
            Sample weights.

        Returns
        -------
        float
            Fraction of the samples that are classified correctly.
        """
        return float(super().score(to_engine(X), on_host(y), on_host(sample_weight)))


class ScoresR2(RegressorMixin):  # type: ignore[misc]  # scikit-learn is untyped
    """scikit-learn's RegressorMixin with a score that also takes targets and weights held by an engine."""

    def score(self, X: Data, y: ArrayLike, sample_weight: Weights = None) -> float:
        """Return the coefficient of determination R² of the predictions.

        R² is 1 − Σ w_i(y_i − f(x_i))² / Σ w_i(y_i − mean of y)²; for several outputs, the mean over the outputs.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `predict`.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            True target values.
        sample_weight : array of shape (n_samples,), optional
            Sample weights.

        Returns
        -------
        float
            R², at most 1.
        """
        return float(super().score(to_engine(X), on_host(y), on_host(sample_weight)))


def machine_has(name: str) -> Callable[[Any], bool]:
    """Return a check that the machine inside a model has a method; a machine itself has all of them."""

    def check(model: Any) -> bool:
        if isinstance(model, MachineMethods):
            return True
        from mercer.tables.unwrap import unwrap

        machine = unwrap(model).machine
        try:
            getattr(machine, name)
        except AttributeError as error:
            raise AttributeError(f"{type(machine).__name__}, the machine inside, has no {name}") from error
        return True

    return check


class ExplainMethods:
    """Explanations and bounds for a machine, or for the machine inside a table, a search or a calibrated model.

    The results refer to the columns that the model is given. A method that the machine inside lacks is absent.
    """

    @available_if(machine_has("explain"))
    def explain(
        self, X: Data, background: Any = None, *, background_weight: Any = None, verbose: bool = False
    ) -> Explanation:
        """Compute exact Shapley values: the contribution of each feature to f(x), relative to background samples.

        The values are computed without sampling, for kernels that are products over the features, sums of such
        products, and polynomials of ⟨x, z⟩. The time grows with
        samples · background samples · support vectors · (features that differ)²/2.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_samples, n_features)
            Samples to explain. The result is dense, and the computation uses dense blocks.
        background : array, CSR matrix or table of shape (n_background, n_features)
            Samples to compare with: an "absent" feature takes its value from each of them in turn. It is required;
            common choices are a hundred training samples, or the samples of one class.
        background_weight : array of shape (n_background,), optional
            Weights of the background samples; they are divided by their sum.
        verbose : bool, default=False
            Whether to print progress, at most one line a second.

        Returns
        -------
        Explanation
            Shapley values of all samples.
        """
        from mercer.inspection.explain import explain

        return explain(self, X, background, background_weight=background_weight, verbose=verbose)

    @available_if(machine_has("gradient_importance"))
    def gradient_importance(self, X: Data, sample_weight: Weights = None) -> Floats:
        """Compute the mean of |∂f/∂x_j| over samples for each feature: the sensitivity of f to the feature.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Samples at which the gradient of f is evaluated.
        sample_weight : array of shape (n_samples,), optional
            Sample weights.

        Returns
        -------
        array of shape (n_features,), or (n_features, n_outputs) for several outputs
            Mean absolute derivatives.
        """
        from mercer.inspection.explain import gradient_importance

        return gradient_importance(self, X, sample_weight)

    @available_if(machine_has("partial_dependence"))
    def partial_dependence(
        self,
        X: Data,
        features: Any,
        *,
        grid: Any = None,
        grid_resolution: int = 50,
        sample_weight: Weights = None,
        individual: bool = False,
    ) -> PartialDependence:
        """Compute the partial dependence: the mean of f over samples with one or two features set to grid values.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_samples, n_features)
            Samples whose other features keep their values.
        features : int or str, or a pair of them
            Feature or pair of features, by column index or, if the model was fitted with feature names, by name.
        grid : array, or a pair of arrays for two features, optional
            Grid values. By default the distinct values of the column, or `grid_resolution` of them at equal steps
            between its 5 % and 95 % quantiles.
        grid_resolution : int, default=50
            Maximum number of grid values of a feature.
        sample_weight : array of shape (n_samples,), optional
            Sample weights in the mean.
        individual : bool, default=False
            Whether to keep the curve of each sample as well (individual conditional expectation).

        Returns
        -------
        PartialDependence
            Grid values and means.
        """
        from mercer.inspection.explain import partial_dependence

        return partial_dependence(
            self,
            X,
            features,
            grid=grid,
            grid_resolution=grid_resolution,
            sample_weight=sample_weight,
            individual=individual,
        )

    @available_if(machine_has("reasons"))
    def reasons(self, X: Data, n: int = 5, *, output: int = 0) -> list[Reasons]:
        """Return the support vectors with the largest influence |β_i k(x, x_i)| on each prediction.

        Parameters
        ----------
        X : array, CSR matrix, table or sequence of samples
            Samples, as in `predict`.
        n : int, default=5
            Number of support vectors for each sample.
        output : int, default=0
            Output of a regressor with several outputs. For a classifier the influence on the predicted class is
            reported.

        Returns
        -------
        list of Reasons
            Support vectors for each sample.
        """
        from mercer.inspection.explain import reasons

        return reasons(self, X, n, output)

    @available_if(machine_has("insight"))
    def insight(self, X: Data, y: ArrayLike | None = None, *, delta: float = 0.05) -> Insight | list[Insight]:
        """Compute margins, radii, complexity and bounds of the machine on its training samples.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Training samples.
        y : array of shape (n_samples,), optional
            Target values of the training samples.
        delta : float, default=0.05
            Probability with which a bound may fail.

        Returns
        -------
        Insight
            Figures to print or read; `mercer.theory.insight` describes them. A list with one for each plane or output
            if there are several.
        """
        from mercer.notes.theory import insight

        return insight(self, X, y, delta=delta)


class MachineMethods(ExplainMethods, ShowsCertificate):
    """Methods of every machine with a certificate."""

    @property
    def compression_(self) -> Compression:
        """Compression report with guarantees, a `mercer.Compression`; only for results of `mercer.compress`."""
        if "_compression_" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} is not compressed; mercer.compress makes one that is")
        from mercer.inspection.compression import Compression

        return Compression(self)

    # This method only words an error. Without it, a compressed machine would say "has no attribute 'certificate_'", as
    # if it had never been fitted. The alternative is a property for each name of `_FITTED` in every class.
    if not TYPE_CHECKING:  # otherwise a type checker would accept every attribute

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError with an explanation for attributes that a compressed machine lacks."""
            if "_compression_" in vars(self) and not hasattr(type(self), name) and name in declared(type(self)):
                hint = "; its certificate is compression_.original_certificate" if name == "certificate_" else ""
                raise AttributeError(
                    f"this {type(self).__name__} was compressed, and {name} belongs to the original, which was fitted "
                    f"to the samples{hint}. Use the original machine"
                )
            return object.__getattribute__(self, name)


class ClassifierMethods:
    """Methods of a classifier that has no probabilities before it is calibrated.

    scikit-learn uses `hasattr` to find the methods of an estimator, so that `predict_proba` has to raise
    AttributeError. Models from LIBSVM's -b 1 keep the probabilities that they came with.
    """

    def calibrate(
        self,
        X: Data,
        y: ArrayLike,
        *,
        method: str = "sigmoid",
        cv: Any = 5,
        sample_weight: Weights = None,
        verbose: bool = False,
    ) -> CalibratedClassifier:
        """Return this machine with probabilities, calibrated on decision values of held-out samples.

        The machine itself is not changed. The folds share a kernel that depends only on X and start from the solution;
        everything that was learnt from y is learnt again in every fold.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training samples, or other samples with cv="held-out".
        y : array of shape (n_samples,)
            Class labels.
        method : {"sigmoid", "isotonic", "temperature", "venn-abers"}, default="sigmoid"
            Calibration method; see `CalibratedClassifier`.
        cv : int, splitter or "held-out", default=5
            Cross-validation that holds out every sample once. "held-out" means that the machine was not trained on X,
            so that its own decision values are used.
        sample_weight : array of shape (n_samples,), optional
            Sample weights for the machines of the folds, the calibration curves, prediction sets and p-values. A weight
            of k is equivalent to k samples of the same fold; a sample of weight 0 is ignored.
        verbose : bool, default=False
            Whether to print a line for each completed fold.

        Returns
        -------
        CalibratedClassifier
            Calibrated classifier.
        """
        from mercer.calibration import CalibratedClassifier

        calibrated = CalibratedClassifier(self, method=method, cv=cv, verbose=verbose)
        return calibrated.calibrate_fitted(X, y, sample_weight)

    @property
    def predict_proba(self) -> Any:
        """Not available before calibration: use `calibrate`, or train `KernelMachine(loss="logistic")`."""
        _expect_sigmoids(self, "predict_proba")
        from mercer.calibration.curves import libsvm_probabilities

        return partial(libsvm_probabilities, self)

    @property
    def predict_log_proba(self) -> Any:
        """Not available; see `predict_proba`."""
        _expect_sigmoids(self, "predict_log_proba")
        return lambda X: np.log(self.predict_proba(X))


def _expect_sigmoids(machine: Any, method: str) -> None:
    """Raise AttributeError unless the model has sigmoids from LIBSVM or from the command line with -b 1."""
    if not hasattr(machine, "probA_"):
        name = type(machine).__name__
        raise AttributeError(
            f"{name} has no {method}: it estimates no probabilities. {PROBABILITIES.format(name=name)}"
        )


class RegressorMethods:
    """Methods of a regressor that can be calibrated to give prediction intervals."""

    def calibrate(
        self, X: Data, y: ArrayLike, *, cv: Any = 5, sample_weight: Weights = None, verbose: bool = False
    ) -> CalibratedRegressor:
        """Return this machine with prediction intervals, computed from residuals of held-out samples.

        The machine itself is not changed. Every fold fits a clone of it.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training samples, or other samples with cv="held-out".
        y : array of shape (n_samples,)
            Target values.
        cv : int, splitter, "leave-one-out" or "held-out", default=5
            Cross-validation that holds out every sample once. "leave-one-out" is available for `RLSRegressor` and
            `SVR`. "held-out" means that the machine was not trained on X.
        sample_weight : array of shape (n_samples,), optional
            Sample weights for the machines of the folds and for the intervals. A weight of k is equivalent to k samples
            of the same fold; a sample of weight 0 is ignored.
        verbose : bool, default=False
            Whether to print a line for each completed fold.

        Returns
        -------
        CalibratedRegressor
            Calibrated regressor.
        """
        from mercer.calibration import CalibratedRegressor

        return CalibratedRegressor(self, cv=cv, verbose=verbose).calibrate_fitted(X, y, sample_weight)
