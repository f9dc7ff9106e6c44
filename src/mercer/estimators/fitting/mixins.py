"""Mixins of machines: methods that need a folder above the machines, and scores.

Each method imports its folder when it is called, so that importing a machine imports neither explanations nor
calibration.
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
from mercer.samples.engine import on_host, placed

if TYPE_CHECKING:
    from mercer.calibration import CalibratedClassifier, CalibratedRegressor
    from mercer.inspection.compression import Compression
    from mercer.inspection.explain import Explanation
    from mercer.inspection.explain.partial_dependence import PartialDependence
    from mercer.inspection.explain.reasons import Reasons
    from mercer.notes.theory.insight import Insight
    from mercer.samples.arrays import Data, Floats, Weights


class ScoresAccuracy(ClassifierMixin):  # type: ignore[misc]  # scikit-learn is untyped
    """A classifier of scikit-learn's whose score takes labels and weights that live with an engine."""

    def score(self, X: Data, y: ArrayLike, sample_weight: Weights = None) -> float:
        """The share of samples that are classified correctly.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `predict`.
        y : array of shape (n_samples,)
            Their labels.
        sample_weight : array of shape (n_samples,), optional
            How much each sample counts.
        """
        return float(super().score(placed(X), on_host(y), on_host(sample_weight)))


class ScoresR2(RegressorMixin):  # type: ignore[misc]  # scikit-learn is untyped
    """A regressor of scikit-learn's whose score takes targets and weights that live with an engine."""

    def score(self, X: Data, y: ArrayLike, sample_weight: Weights = None) -> float:
        """R² of the predictions: 1 − Σ w_i(y_i − f(x_i))² / Σ w_i(y_i − mean of y)².

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `predict`.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Their targets; R² of several outputs is the mean of theirs.
        sample_weight : array of shape (n_samples,), optional
            How much each sample counts.
        """
        return float(super().score(placed(X), on_host(y), on_host(sample_weight)))


def machine_has(name: str) -> Callable[[Any], bool]:
    """Check that the machine inside a model has a method; a machine itself has all of them."""

    def check(model: Any) -> bool:
        if isinstance(model, MachineMethods):
            return True
        from mercer.tables.unwrap import ask

        machine = ask(model).machine
        try:
            getattr(machine, name)
        except AttributeError as error:
            raise AttributeError(f"{type(machine).__name__}, which answers here, has no {name}") from error
        return True

    return check


class ExplainMethods:
    """Explanations and bounds, of a machine or of the machine inside a table, a search or a calibrated model.

    They are about the columns that the model is given. A method that the machine inside lacks is absent.
    """

    @available_if(machine_has("explain"))
    def explain(
        self, X: Data, background: Any = None, *, background_weight: Any = None, verbose: bool = False
    ) -> Explanation:
        """Exact Shapley values: how much each feature adds to f(x), compared with background rows.

        They are computed without sampling, for kernels that are products over the features, sums of such products, and
        polynomials of ⟨x, z⟩. The time grows with rows · background rows · support vectors · (features that differ)²/2.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_samples, n_features)
            The samples to explain. The result is dense, and so is the work, in pieces.
        background : array, CSR matrix or table of shape (n_background, n_features)
            What they are compared with: a feature that is "absent" takes the value it has in these rows, in turn. There
            is no default. Often it is a hundred training samples, or those of one class.
        background_weight : array of shape (n_background,), optional
            How much each background row counts; they are divided by their sum.
        verbose : bool, default=False
            Print how far the work is, a line a second at most.

        Returns
        -------
        Explanation
        """
        from mercer.inspection.explain import explain

        return explain(self, X, background, background_weight=background_weight, verbose=verbose)

    @available_if(machine_has("gradient_importance"))
    def gradient_importance(self, X: Data, sample_weight: Weights = None) -> Floats:
        """The mean of |∂f/∂x_j| over samples, for each feature: how much f reacts to small changes of it.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Where the gradient of f is taken.
        sample_weight : array of shape (n_samples,), optional
            How much each sample counts.

        Returns
        -------
        array of shape (n_features,), or (n_features, n_outputs) for several outputs
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
        """The mean of f over samples in which one or two features are set to the values of a grid.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_samples, n_features)
            The samples whose other features stay as they are.
        features : int or str, or a pair of them
            A column by its number, or by its name where the model was trained on names.
        grid : array, or a pair of arrays for two features, optional
            The values. By default the distinct values of the column, or `grid_resolution` of them at equal steps
            between its 5 % and 95 % quantiles.
        grid_resolution : int, default=50
        sample_weight : array of shape (n_samples,), optional
            How much each sample counts in the mean.
        individual : bool, default=False
            Keep the curve of each sample too (ICE).

        Returns
        -------
        PartialDependence
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
        """The support vectors that decide about each sample: those with the largest |β_i k(x, x_i)|.

        Parameters
        ----------
        X : array, CSR matrix, table or sequence of samples
            As in `predict`.
        n : int, default=5
            Number of vectors.
        output : int, default=0
            Of a regression with several outputs; a classifier tells what speaks for the class it predicts.

        Returns
        -------
        list of Reasons, one for each sample
        """
        from mercer.inspection.explain import reasons

        return reasons(self, X, n, output)

    @available_if(machine_has("insight"))
    def insight(self, X: Data, y: ArrayLike | None = None, *, delta: float = 0.05) -> Insight | list[Insight]:
        """Compute margins, radii, complexity and bounds of the machine on its training samples.

        Parameters
        ----------
        X, y : the samples and targets that it was fitted on
        delta : float
            The probability with which a bound may fail.

        Returns
        -------
        Insight
            Print it; `mercer.theory.insight` says what it holds. For several planes or outputs a list, one for each.
        """
        from mercer.notes.theory import insight

        return insight(self, X, y, delta=delta)


class MachineMethods(ExplainMethods, ShowsCertificate):
    """Methods of every machine with a certificate."""

    @property
    def compression_(self) -> Compression:
        """What `mercer.compress` did to make this machine, and what it guarantees: a `mercer.Compression`."""
        if "_compression_" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} is not compressed; mercer.compress makes one that is")
        from mercer.inspection.compression import Compression

        return Compression(self)

    # It only words an error, and finds no attribute. Without it, a compressed machine would say "has no attribute
    # 'certificate_'" as one that was never fitted. Properties in its place would stand in every class for each name
    # of `_FITTED`, which a fit sets as an ordinary attribute.
    if not TYPE_CHECKING:  # a checker would take every attribute for one that may be there

        def __getattr__(self, name: str) -> Any:
            """Say what a compressed machine lacks; every other error, also of a property, is what it was."""
            if "_compression_" in vars(self) and not hasattr(type(self), name) and name in declared(type(self)):
                instead = "; its certificate is compression_.original_certificate" if name == "certificate_" else ""
                raise AttributeError(
                    f"this {type(self).__name__} was compressed, and {name} belongs to the original, which was trained "
                    f"on the samples{instead}. Ask the original machine"
                )
            return object.__getattribute__(self, name)


class ClassifierMethods:
    """Methods of a classifier that decides, and estimates no probabilities before it is calibrated.

    scikit-learn finds out by `hasattr` what an estimator can do, so the answer has to be an AttributeError. Models of
    LIBSVM's -b 1 keep the probabilities that they came with.
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
        """This machine with probabilities, learned from decision values of samples that were left out.

        The machine stays as it is. Folds share a kernel that depends on X alone, and start from the solution; what was
        learnt from y is learnt again in every fold.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The training samples, or others with cv="held-out".
        y : array of shape (n_samples,)
        method : {"sigmoid", "isotonic", "temperature", "venn-abers"}, default="sigmoid"
            See `CalibratedClassifier`.
        cv : int, splitter or "held-out", default=5
            Folds that leave every sample out once. "held-out": the machine was not trained on X, and is asked itself.
        sample_weight : array of shape (n_samples,), optional
            For the folds' machines, the curves, the sets and p-values. A weight of k counts as k samples of the same
            fold; a sample of weight 0 counts nowhere.
        verbose : bool, default=False
            A line for each fold that is done.

        Returns
        -------
        CalibratedClassifier
        """
        from mercer.calibration import CalibratedClassifier

        calibrated = CalibratedClassifier(self, method=method, cv=cv, verbose=verbose)
        return calibrated.calibrate_fitted(X, y, sample_weight)

    @property
    def predict_proba(self) -> Any:
        """Not available: a machine decides, and estimates no probabilities. `calibrate` it,
        or train `KernelMachine(loss="logistic")`."""
        _expect_sigmoids(self, "predict_proba")
        from mercer.calibration.curves import libsvm_probabilities

        return partial(libsvm_probabilities, self)

    @property
    def predict_log_proba(self) -> Any:
        """Not available; see `predict_proba`."""
        _expect_sigmoids(self, "predict_log_proba")
        return lambda X: np.log(self.predict_proba(X))


def _expect_sigmoids(machine: Any, asked: str) -> None:
    """Raise an AttributeError unless LIBSVM, or the command line with -b 1, gave the model its sigmoids."""
    if not hasattr(machine, "probA_"):
        name = type(machine).__name__
        raise AttributeError(f"{name} has no {asked}: it estimates no probabilities. {PROBABILITIES.format(name=name)}")


class RegressorMethods:
    """Methods of a regressor that can be given intervals."""

    def calibrate(
        self, X: Data, y: ArrayLike, *, cv: Any = 5, sample_weight: Weights = None, verbose: bool = False
    ) -> CalibratedRegressor:
        """This machine with intervals, from residuals of samples that were left out.

        The machine stays as it is. Every fold fits a clone of it to its own rows.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The training samples, or others with cv="held-out".
        y : array of shape (n_samples,)
        cv : int, splitter, "leave-one-out" or "held-out", default=5
            Folds that leave every sample out once. "leave-one-out" is for `RLSRegressor` and `SVR`. "held-out": the
            machine was not trained on X.
        sample_weight : array of shape (n_samples,), optional
            For the folds' machines and for the intervals. A weight of k counts as k samples of the same fold; a sample
            of weight 0 counts nowhere.
        verbose : bool, default=False
            A line for each fold that is done.

        Returns
        -------
        CalibratedRegressor
        """
        from mercer.calibration import CalibratedRegressor

        return CalibratedRegressor(self, cv=cv, verbose=verbose).calibrate_fitted(X, y, sample_weight)
