"""Mixin of models that wrap a machine, such as tables, searches and calibrated models.

Each method imports its package when it is called, as in `mercer.estimators.fitting.mixins`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitting.mixins import ExplainMethods, machine_has
from mercer.runtime.available import available_if

if TYPE_CHECKING:
    from mercer.problems.margins import Margins, NearestPoints, SeveralMargins
    from mercer.samples.arrays import Floats


class ModelMethods(ExplainMethods):
    """Methods of models that wrap a machine: tables, searches, calibrated models, and the result of `unwrap`.

    The machine inside computes the results, which refer to the columns that the model is given. A method that the
    machine inside lacks is absent.
    """

    @available_if(machine_has("calibrate"))
    def calibrate(self, X: Any, y: ArrayLike | None = None, **options: Any) -> Any:
        """Return this model with probabilities or prediction intervals, as `calibrate` of the machine inside does.

        The whole model is fitted again in every fold, including a search. Only for a novelty detector the parameters
        that a search has chosen are used in all folds.

        Parameters
        ----------
        X : array, table or sequence of samples
            Samples, as in `fit`.
        y : array of shape (n_samples,), optional
            Target values, as in `fit`.
        **options : dict
            Options of the machine's `calibrate`: `cv`, `sample_weight`, `verbose` and, for a classifier, `method`.

        Returns
        -------
        CalibratedClassifier, CalibratedRegressor, or a copy of a novelty detector
            Calibrated model.
        """
        from mercer.tables.unwrap import unwrap

        unwrapped = unwrap(self)
        calibrated = [type(layer).__name__ for layer in unwrapped.layers if hasattr(layer, "predict_interval")]
        if calibrated:
            raise TypeError(f"the model already is a {calibrated[0]}; calibrate its estimator_ instead")
        calibrate = type(unwrapped.machine).calibrate
        return calibrate(unwrapped.model, X, *(() if y is None else (y,)), **options)

    @available_if(machine_has("margins"))
    def margins(self, X: Any, *y: Any, **options: Any) -> Margins | SeveralMargins:
        """Compute margins, slacks, errors and distances of samples, as `Margins` or `SeveralMargins`."""
        from mercer.tables.unwrap import unwrap

        unwrapped = unwrap(self)
        check_is_fitted(unwrapped.machine)
        margins: Margins | SeveralMargins = unwrapped.machine.margins(unwrapped.rows(X), *y, **options)
        return margins

    @available_if(machine_has("signed_distance"))
    def signed_distance(self, X: Any) -> Floats:
        """Compute the signed distance f(x)/‖w‖ of each sample from the plane f = 0."""
        from mercer.tables.unwrap import unwrap

        unwrapped = unwrap(self)
        check_is_fitted(unwrapped.machine)
        distances: Floats = unwrapped.machine.signed_distance(unwrapped.rows(X))
        return distances

    @available_if(machine_has("nearest_points"))
    def nearest_points(self) -> NearestPoints | tuple[NearestPoints, ...]:
        """Return the nearest points of the classes' hulls in the machine's features, with the user's row numbers."""
        from mercer.tables.unwrap import unwrap

        unwrapped = unwrap(self)
        points = unwrapped.machine.nearest_points()
        results = [
            replace(nearest, rows=unwrapped.trained_rows(nearest.rows)) for nearest in np.atleast_1d(points).tolist()
        ]
        return tuple(results) if isinstance(points, tuple) else results[0]

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name.startswith("_") or hasattr(self, name)]
