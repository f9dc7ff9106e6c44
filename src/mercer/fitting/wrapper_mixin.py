"""A mixin of models around a machine: tables, searches and calibrated models ask the machine inside.

Each method imports its folder when it is called, as those of `mercer.fitting.mixins` do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from mercer.runtime.available import available_if

if TYPE_CHECKING:
    from mercer.arrays import Data, Floats, Weights
    from mercer.explain import Explanation
    from mercer.explain.partial_dependence import PartialDependence
    from mercer.explain.reasons import Reasons
    from mercer.margins import Margins, NearestPoints, SeveralMargins
    from mercer.theory.of_machine import Insight


def _inside_has(name: str) -> Callable[[Any], bool]:
    def check(model: Any) -> bool:
        from mercer.tables.asked import ask

        machine = ask(model).machine
        try:
            getattr(machine, name)
        except AttributeError as error:
            raise AttributeError(f"{type(machine).__name__}, which answers here, has no {name}") from error
        return True

    return check


class ModelMethods:
    """Methods of what stands around a machine: tables, searches, calibrated models, and what `ask` makes.

    The machine answers, about the columns that the model is given. A method that the machine inside lacks is absent.
    """

    @available_if(_inside_has("explain"))
    def explain(
        self, X: Data, background: Any = None, *, background_weight: Any = None, verbose: bool = False
    ) -> Explanation:
        """Exact Shapley values of the machine's f for the columns of X; see `explain` of the machine, such as
        `SVC.explain`.

        Parameters
        ----------
        X : table, array or CSR matrix
            The samples to explain.
        background : table, array or CSR matrix
            Rows that they are compared with; there is no default.
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

    @available_if(_inside_has("gradient_importance"))
    def gradient_importance(self, X: Data, sample_weight: Weights = None) -> Floats:
        """The mean of |∂f/∂x_j| over samples; see `gradient_importance` of the machine, such as
        `SVC.gradient_importance`.

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

    @available_if(_inside_has("partial_dependence"))
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
        """The mean of f over samples in which one or two columns of X are set to the values of a grid.

        See `partial_dependence` of the machine, such as `SVC.partial_dependence`.

        Parameters
        ----------
        X : table, array or CSR matrix
            The samples whose other columns stay as they are.
        features : int or str, or a pair of them
            A column by its number or its name.
        grid : array, or a pair of arrays for two columns, optional
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

    @available_if(_inside_has("reasons"))
    def reasons(self, X: Data, n: int = 5, *, output: int = 0) -> list[Reasons]:
        """The support vectors that decide about each sample: those with the largest |β_i k(x, x_i)|.

        Parameters
        ----------
        X : table, array, CSR matrix or sequence of samples
            As in `predict`.
        n : int, default=5
            Number of vectors.
        output : int, default=0
            Of a regression with several outputs; a classifier tells what speaks for the class it predicts.

        Returns
        -------
        list of Reasons, one for each sample
        """
        from mercer.explain import reasons

        return reasons(self, X, n, output)

    @available_if(_inside_has("insight"))
    def insight(self, X: Data, y: ArrayLike | None = None, *, delta: float = 0.05) -> Insight | list[Insight]:
        """Compute margins, radii, complexity and bounds of the machine on its training samples.

        Parameters
        ----------
        X, y : the samples and targets that the model was fitted on
        delta : float
            The probability with which a bound may fail.

        Returns
        -------
        Insight
            Print it; `mercer.theory.insight` says what it holds. For several planes or outputs a list, one for each.
        """
        from mercer.theory import insight

        return insight(self, X, y, delta=delta)

    @available_if(_inside_has("calibrate"))
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

    @available_if(_inside_has("margins"))
    def margins(self, X: Any, *y: Any, **named: Any) -> Margins | SeveralMargins:
        """Margins, slacks, errors and distances of samples: `Margins` or `SeveralMargins`."""
        from mercer.tables.asked import ask

        asked = ask(self)
        check_is_fitted(asked.machine)
        margins: Margins | SeveralMargins = asked.machine.margins(asked.rows(X), *y, **named)
        return margins

    @available_if(_inside_has("signed_distance"))
    def signed_distance(self, X: Any) -> Floats:
        """f(x)/‖w‖: how far each sample is from the plane f = 0."""
        from mercer.tables.asked import ask

        asked = ask(self)
        check_is_fitted(asked.machine)
        distances: Floats = asked.machine.signed_distance(asked.rows(X))
        return distances

    @available_if(_inside_has("nearest_points"))
    def nearest_points(self) -> NearestPoints | tuple[NearestPoints, ...]:
        """The nearest points of the classes' hulls, in the machine's own features; their rows are the user's."""
        from mercer.tables.asked import ask

        asked = ask(self)
        found = asked.machine.nearest_points()
        each = [replace(one, rows=asked.trained_rows(one.rows)) for one in np.atleast_1d(found).tolist()]
        return tuple(each) if isinstance(found, tuple) else each[0]

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name.startswith("_") or hasattr(self, name)]
