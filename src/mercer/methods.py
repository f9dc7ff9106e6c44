"""Methods that answer from rooms above: explanations, theory, compression, probabilities, pictures.

A class of a room below names one of these among its bases, and has its methods without importing from above
(`mercer.fitting.pipeline.machine`). Each method imports its room when it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer.errors import PROBABILITIES
from mercer.fitting.families.shared_docs import shared_docs
from mercer.fitting.pipeline.class_spec import declared
from mercer.fitting.pipeline.machine import attach
from mercer.fitting.reports.notebook import ShowsCertificate

if TYPE_CHECKING:
    from mercer.arrays import Data, Floats, Weights
    from mercer.calibration import CalibratedClassifier, CalibratedRegressor
    from mercer.compression import Compression
    from mercer.displays import ExplanationDisplay
    from mercer.explain import Explanation, PartialDependence, Reasons
    from mercer.margins import NearestPoints
    from mercer.theory import Insight


class MachineMethods:
    """Of every machine with a certificate."""

    def explain(
        self, X: Data, background: Any = None, *, background_weight: Any = None, verbose: bool = False
    ) -> Explanation:
        """Exact Shapley values: how much each feature adds to f(x), compared with background rows.

        They are computed without sampling, for kernels that are products over the features, sums of such products, and
        polynomials of ⟨x, z⟩. The time grows with rows · background rows · support vectors · (features that differ)²/2.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples to explain. The result is dense, and so is the work, in pieces.
        background : array or CSR matrix of shape (n_background, n_features)
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
        from mercer.explain import explain

        return explain(self, X, background, background_weight=background_weight, verbose=verbose)

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
        from mercer.explain import gradient_importance

        return gradient_importance(self, X, sample_weight)

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
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples whose other features stay as they are.
        features : int or str, or a pair of them
            A column by its number, or by its name where the machine was trained on names.
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
        from mercer.explain import partial_dependence

        return partial_dependence(
            self,
            X,
            features,
            grid=grid,
            grid_resolution=grid_resolution,
            sample_weight=sample_weight,
            individual=individual,
        )

    def reasons(self, X: Data, n: int = 5, *, output: int = 0) -> list[Reasons]:
        """The support vectors that decide about each sample: those with the largest |β_i k(x, x_i)|.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `predict`.
        n : int, default=5
            How many vectors.
        output : int, default=0
            Of a regression with several outputs; a classifier tells what speaks for the class it predicts.

        Returns
        -------
        list of Reasons, one for each sample
        """
        from mercer.explain import reasons

        return reasons(self, X, n, output)

    def insight(self, X: Data, y: ArrayLike | None = None, *, delta: float = 0.05) -> Insight | list[Insight]:
        """What theory says about this machine and its training samples: margins, radii, complexity and bounds.

        Parameters
        ----------
        X, y : the samples and targets that it was fitted on
        delta : float
            The probability with which a bound may fail.

        Returns
        -------
        mercer.theory.Insight
            Print it. For several planes or outputs a list, one for each.
        """
        from mercer.theory import insight

        return insight(self, X, y, delta=delta)

    @property
    def compression_(self) -> Compression:
        """What `mercer.compress` did to make this machine, and what it guarantees: a `mercer.Compression`."""
        if "_compression_" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} is not compressed; mercer.compress makes one that is")
        from mercer.compression import Compression

        return Compression(self)

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


attach(MachineMethods, ShowsCertificate)


def _inside_has(name: str) -> Callable[[Any], bool]:
    def check(model: Any) -> bool:
        from mercer.tables.asked import ask

        getattr(ask(model).machine, name)  # its AttributeError says why
        return True

    return check


def _answered(name: str, told: str) -> Any:
    """The machine's own method of this name, about the user's rows and, where it takes them, labels."""

    def answer(self: Any, X: Any, *y: Any, **named: Any) -> Any:
        from mercer.tables.asked import ask

        asked = ask(self)
        check_is_fitted(asked.machine)
        return getattr(asked.machine, name)(asked.rows(X), *y, **named)

    answer.__name__, answer.__qualname__, answer.__doc__ = name, f"ModelMethods.{name}", told
    return available_if(_inside_has(name))(answer)


class ModelMethods:
    """Of what stands around a machine: tables, searches, calibrated models, and what `ask` makes.

    The machine answers, about the columns that the model is given. What it cannot be asked is not there.
    """

    explain = available_if(_inside_has("explain"))(MachineMethods.explain)
    gradient_importance = available_if(_inside_has("gradient_importance"))(MachineMethods.gradient_importance)
    partial_dependence = available_if(_inside_has("partial_dependence"))(MachineMethods.partial_dependence)
    reasons = available_if(_inside_has("reasons"))(MachineMethods.reasons)
    insight = available_if(_inside_has("insight"))(MachineMethods.insight)

    @available_if(_inside_has("calibrate"))  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def calibrate(self, X: Any, y: ArrayLike | None = None, **options: Any) -> Any:
        """This model with probabilities or intervals, as the machine's own `calibrate` gives them.

        All of the model is fitted again in every fold: a search searches again. Only the marks of a novelty detector
        are of the parameters that a search has chosen.

        Parameters
        ----------
        X, y : as in `fit`
        **options
            `cv`, `sample_weight`, `verbose` and, for a classifier, `method`.

        Returns
        -------
        CalibratedClassifier, CalibratedRegressor, or a copy of a novelty detector
        """
        from mercer.tables.asked import ask

        asked = ask(self)
        done = [type(layer).__name__ for layer in asked.layers if hasattr(layer, "predict_interval")]
        if done:
            raise TypeError(f"there is a {done[0]} already; calibrate what it was made of, its estimator_")
        way = type(asked.machine).calibrate
        return way(asked.model, X, *(() if y is None else (y,)), **options)

    margins = _answered("margins", "Margins, slacks, errors and distances of samples: `Margins` or `SeveralMargins`.")
    signed_distance = _answered("signed_distance", "f(x)/‖w‖: how far each sample is from the plane f = 0.")

    @available_if(_inside_has("nearest_points"))  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def nearest_points(self) -> NearestPoints | tuple[NearestPoints, ...]:
        """The nearest points of the classes' hulls, in the machine's own features; their rows are the user's."""
        from mercer.tables.asked import ask

        asked = ask(self)
        found = asked.machine.nearest_points()
        each = [replace(one, rows=asked.trained_rows(one.rows)) for one in np.atleast_1d(found).tolist()]
        return tuple(each) if isinstance(found, tuple) else each[0]

    def __dir__(self) -> list[str]:
        absent = {name for name in vars(ModelMethods) if not name.startswith("_") and not hasattr(self, name)}
        return [name for name in object.__dir__(self) if name not in absent]


class ClassifierMethods:
    """Of a classifier that decides, and estimates no probabilities before it is calibrated.

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
    """Of a regressor that can be given intervals."""

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


def _has_marks(machine: Any) -> bool:
    if not hasattr(machine, "prob_density_marks_"):
        raise AttributeError(f"{type(machine).__name__} estimates no probabilities; .calibrate(X) learns them")
    return True


class NoveltyMethods:
    """Of a machine without targets that can be given probabilities."""

    if TYPE_CHECKING:

        @property
        def prob_density_marks_(self) -> Any: ...

    def calibrate(self, X: Data, *, cv: Any = 5, sample_weight: Weights = None) -> Self:
        """A copy of this machine with `predict_proba`: how normal a sample is, as a rank in steps of a tenth.

        Ten marks divide the decision values of samples below 0, and those from 0 on, into five groups of equal size
        each. They are `prob_density_marks_`, LIBSVM's, and stand in its model files.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The training samples, or others with cv="held-out".
        cv : int, splitter or "held-out", default=5
            Folds that leave every sample out once. "held-out": the machine is asked itself. LIBSVM does that with the
            training samples.
        sample_weight : array of shape (n_samples,), optional
            For the folds' machines and for the marks. A weight of k counts as k samples; a sample of weight 0 counts
            nowhere.

        Returns
        -------
        a machine of the same class
        """
        from mercer.calibration.novelty import calibrate_novelty

        calibrated: Self = calibrate_novelty(self, X, cv, sample_weight)
        return calibrated

    @available_if(_has_marks)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def predict_proba(self, X: Data) -> Floats:
        """How probable it is that a sample is an outlier, −1, and that it is like those trained on, +1.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`.
        """
        from mercer.calibration.novelty import novelty_probabilities

        return novelty_probabilities(self, X)


class PlotMethods:
    """Of a result with a picture, which is the display of its name in `mercer.displays`."""

    def plot(self, *axes: Any, **options: Any) -> Any:
        """The picture, in these axes or a new figure; needs matplotlib. See the display of this name."""
        from mercer import displays

        names = [f"{cls.__name__}Display" for cls in type(self).__mro__]
        return next(getattr(displays, name) for name in names if name in displays.__all__)(self).plot(*axes, **options)


class ExplanationMethods:
    """Of Shapley values."""

    def plot(self, kind: str = "bar", **options: Any) -> ExplanationDisplay:
        """The picture: "bar" or "beeswarm"; see `mercer.displays.ExplanationDisplay`."""
        from mercer.displays import ExplanationDisplay

        return ExplanationDisplay.from_explanation(self, kind=kind, **options)  # type: ignore[arg-type]  # an Explanation has this method


class TraceMethods:
    """Of the record of a textbook algorithm."""

    @shared_docs
    def film(self, *, interval_ms: float = 200.0, figure: Any = None) -> Any:
        """The α and the dual value, a frame per step: a matplotlib animation, for a notebook or `film.save(path)`.

        Parameters
        ----------
        %(film)s
        """
        from mercer.displays import TraceDisplay

        return TraceDisplay(self).film(interval_ms=interval_ms, figure=figure)  # type: ignore[arg-type]  # a Trace has this method
