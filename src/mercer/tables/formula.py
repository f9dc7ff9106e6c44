"""R's formulas, read by formulaic: ``y ~ a + log(b) + C(c)`` on the columns of a table."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.runtime.optional import require
from mercer.samples.arrays import Floats


@dataclass(frozen=True, eq=False)
class FormulaModel:
    """A machine trained by a formula; it predicts for tables with the columns of the formula's right side.

    It returns one prediction for each row, in the order of the table. Missing cells and levels of a factor that
    training did not see raise errors that name them.

    Attributes
    ----------
    model : estimator
        The fitted estimator.
    spec : ModelSpec
        Formulaic's specification of the right side.
    """

    model: Any
    spec: Any

    def _rows(self, data: Any) -> Floats:
        """Return the columns of the right side for a table, as the machine takes them."""
        _check_missing(data, self.spec)
        formulaic = require("formulaic", "a formula")
        with warnings.catch_warnings():
            warnings.simplefilter("error", formulaic.errors.DataMismatchWarning)
            try:
                matrix = self.spec.update(materializer=None).get_model_matrix(data)  # by the library of this table
            except formulaic.errors.DataMismatchWarning as unseen:
                raise ValueError(
                    f"a factor has a level that training did not see ({_describe_levels(self.spec)}): {unseen}"
                ) from None
        return _columns(matrix, data)

    def predict(self, data: Any) -> Any:
        """Predict each row: labels as in the training table, or numbers in the unit of the left side.

        With ``log(y) ~ a`` predictions are logarithms; apply `numpy.exp` to them.

        Parameters
        ----------
        data : table
            With the columns of the right side.
        """
        return self.model.predict(self._rows(data))

    def decision_function(self, data: Any) -> Any:
        """Return the decision values of each row, if the machine has them.

        Parameters
        ----------
        data : table
            With the columns of the right side.
        """
        return self.model.decision_function(self._rows(data))


def fit_formula(model: Any, formula: str, data: Any) -> FormulaModel:
    """Fit a copy of a machine to the columns of a table that a formula names; needs formulaic.

    Formulaic's intercept is not used, since machines have their own. A factor on the right side becomes 0/1 columns for
    all its levels except the first; ``0 + c`` keeps the first one too. Columns are not scaled: put `StandardScaler`
    before the machine in a pipeline, or write ``scale(a)``.

    A row with a missing cell raises an error that names it, so that no row is lost silently.

    Parameters
    ----------
    model : estimator
        Machine or pipeline to copy; it is not changed.
    formula : str
        Formula such as ``"y ~ a + b"``, ``"y ~ ."`` for all other columns, ``"y ~ . - a"`` or
        ``"y ~ poly(a, 2) + b"``. A column on the left side is the target with its own labels; ``C(k)`` has the classes
        of k. With a transformation such as ``log(y)``, predictions are in its unit, as in R.
    data : table
        Training table, a frame that formulaic accepts.

    Returns
    -------
    FormulaModel
        Model whose ``predict`` and ``decision_function`` take tables with the columns of the right side, and return
        one value for each row, in the order of the table. Missing cells and levels of a factor that training did not
        see raise errors that name them. ``model`` is the fitted estimator, ``spec`` formulaic's ModelSpec of the right
        side.

    Examples
    --------
    See `mercer.tabular`, which needs no formula.
    """
    if formula.count("~") != 1 or not formula.partition("~")[0].strip():
        raise ValueError(f"formula={formula!r} must have a left and a right side, such as 'y ~ a + b'")
    formulaic = require("formulaic", "a formula")
    sides = formulaic.model_matrix(formula, data, context={}, na_action="ignore", output="pandas")
    if isinstance(sides.lhs, tuple) or isinstance(sides.rhs, tuple):
        raise ValueError(f"formula={formula!r} has several parts (|) on one side, but a machine takes one")
    left, right = sides.lhs.model_spec, sides.rhs.model_spec
    _check_missing(data, left)
    _check_missing(data, right)
    return FormulaModel(clone(model).fit(_columns(sides.rhs, data), _target(sides.lhs, data)), right)


def _target(matrix: Any, data: Any) -> Any:
    """Return the target: a column of the table, the levels of a factor, or the values of transformed columns."""
    spec = matrix.model_spec
    factors = [factor for term in spec.formula for factor in term.factors]
    if len(factors) == 1 and factors[0].eval_method.value == "lookup":
        return data[str(factors[0].expr)]
    if not spec.factor_contrasts:
        y = _columns(matrix, data)
        return y[:, 0] if y.shape[1] == 1 else y
    flags = np.asarray(matrix, dtype=np.float64)
    if len(factors) > 1 or not np.isin(flags, (0, 1)).all() or not (flags.sum(axis=1) == 1).all():
        raise ValueError(
            f"the left side {spec.formula} makes the columns {list(matrix.columns)}, which are no classes; write one "
            "column, one C(column), or numbers"
        )
    levels = spec.factor_contrasts[factors[0]].levels
    return np.array(levels)[np.argmax(flags, axis=1)]


def _columns(matrix: Any, data: Any) -> Floats:
    """Return the columns without the intercept; raise ValueError if a value is not a finite number or a row is lost."""
    names = [name for name in matrix.columns if name != "Intercept"]
    try:
        values = np.asarray(matrix[names], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the formula makes a column that is no number ({error}); write C(name) for a factor"
        ) from None
    if len(values) != len(data):
        raise ValueError(f"the formula makes {len(values)} rows from {len(data)}; it must keep every row")
    for name, column in zip(names, values.T, strict=True):
        if not np.isfinite(column).all():
            raise ValueError(f"{name} is NaN or infinite in {_describe_rows(np.flatnonzero(~np.isfinite(column)))}")
    return values


def _check_missing(data: Any, spec: Any) -> None:
    """Raise ValueError if a column on this side of the formula is absent from the table or has missing cells."""
    pandas = require("pandas", "a formula")  # formulaic depends on it
    names = list(getattr(data, "column_names", None) or data.columns)
    for name in sorted(map(str, spec.variables_by_source.get("data", ()))):
        if name not in names:
            raise ValueError(f"the formula needs the column {name!r}; the table has {names}")
        missing = np.flatnonzero(pandas.isna(np.asarray(data[name])))
        if len(missing):
            raise ValueError(
                f"the column {name!r} has missing values in {_describe_rows(missing)}; fill them in, drop these "
                "rows, or use mercer.tabular, which handles missing values"
            )


def _describe_rows(rows: Any) -> str:
    row_numbers = ", ".join(str(row) for row in rows[:5])
    more_text = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    return f"row{'s' if len(rows) > 1 else ''} {row_numbers}{more_text} (counted from 0)"


def _describe_levels(spec: Any) -> str:
    return "; ".join(f"{factor} has {state.levels}" for factor, state in spec.factor_contrasts.items())
