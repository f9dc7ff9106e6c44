"""A mixin of models around a machine: tables, searches and calibrated models ask the machine inside.

Each method imports its folder when it is called, as those of `mercer.estimators.fitting.mixins` do.
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
    """Methods of what stands around a machine: tables, searches, calibrated models, and what `ask` makes.

    The machine answers, about the columns that the model is given. A method that the machine inside lacks is absent.
    """

    @available_if(machine_has("calibrate"))
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
        from mercer.tables.unwrap import ask

        asked = ask(self)
        done = [type(layer).__name__ for layer in asked.layers if hasattr(layer, "predict_interval")]
        if done:
            raise TypeError(f"there is a {done[0]} already; calibrate what it was made of, its estimator_")
        way = type(asked.machine).calibrate
        return way(asked.model, X, *(() if y is None else (y,)), **options)

    @available_if(machine_has("margins"))
    def margins(self, X: Any, *y: Any, **named: Any) -> Margins | SeveralMargins:
        """Margins, slacks, errors and distances of samples: `Margins` or `SeveralMargins`."""
        from mercer.tables.unwrap import ask

        asked = ask(self)
        check_is_fitted(asked.machine)
        margins: Margins | SeveralMargins = asked.machine.margins(asked.rows(X), *y, **named)
        return margins

    @available_if(machine_has("signed_distance"))
    def signed_distance(self, X: Any) -> Floats:
        """f(x)/‖w‖: how far each sample is from the plane f = 0."""
        from mercer.tables.unwrap import ask

        asked = ask(self)
        check_is_fitted(asked.machine)
        distances: Floats = asked.machine.signed_distance(asked.rows(X))
        return distances

    @available_if(machine_has("nearest_points"))
    def nearest_points(self) -> NearestPoints | tuple[NearestPoints, ...]:
        """The nearest points of the classes' hulls, in the machine's own features; their rows are the user's."""
        from mercer.tables.unwrap import ask

        asked = ask(self)
        found = asked.machine.nearest_points()
        each = [replace(one, rows=asked.trained_rows(one.rows)) for one in np.atleast_1d(found).tolist()]
        return tuple(each) if isinstance(found, tuple) else each[0]

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name.startswith("_") or hasattr(self, name)]
