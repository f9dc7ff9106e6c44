"""R's formulas, read by formulaic: ``y ~ a + log(b) + C(c)`` on the columns of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.arrays import Floats
from mercer.runtime.optional import require


@dataclass(frozen=True, eq=False)
class FormulaModel:
    """A machine that was trained by a formula: it takes tables with the formula's columns.

    Attributes
    ----------
    model : estimator
        Fitted.
    spec : ModelSpec
        Formulaic's, of the right side.
    """

    model: Any
    spec: Any

    def _rows(self, data: Any) -> Floats:
        return _columns(self.spec.get_model_matrix(data))

    def predict(self, data: Any) -> Any:
        """What the machine says of each row."""
        return self.model.predict(self._rows(data))

    def decision_function(self, data: Any) -> Any:
        """f of each row, where the machine has it."""
        return self.model.decision_function(self._rows(data))


def fit_formula(model: Any, formula: str, data: Any) -> FormulaModel:
    """Train a copy of a machine on the columns of a table that a formula names; needs formulaic.

    The intercept that formulaic adds is left out, since machines have their own. Columns are not scaled: put
    `StandardScaler` before the machine in a pipeline, or write ``scale(a)``.

    Parameters
    ----------
    model : estimator
        It is not changed.
    formula : str
        Such as ``"y ~ a + b"``, ``"y ~ ."`` or ``"y ~ poly(a, 2) - b"``.
    data : table
        A frame that formulaic takes.

    Returns
    -------
    FormulaModel
    """
    if formula.count("~") != 1:
        raise ValueError(f"formula={formula!r} must have a left and a right side, such as 'y ~ a + b'")
    formulaic = require("formulaic", "a formula")
    sides = formulaic.Formula(formula).get_model_matrix(data)
    y = np.asarray(sides.lhs)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    elif y.ndim == 2 and set(np.unique(y)) <= {0, 1} and (y.sum(axis=1) == 1).all():  # a factor, a column per level
        y = np.asarray([str(name) for name in sides.lhs.columns])[np.argmax(y, axis=1)]
    return FormulaModel(clone(model).fit(_columns(sides.rhs), y), sides.rhs.model_spec)


def _columns(matrix: Any) -> Floats:
    kept = [name for name in matrix.columns if name != "Intercept"]
    return np.asarray(matrix[kept], dtype=np.float64)
