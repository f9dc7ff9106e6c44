"""Find the machine inside a model, the rows that it sees, and the table column behind each of its columns.

A machine may be wrapped in a Pipeline, a `Tabular`, a search, a calibration or a frozen model, one inside another.
Tools that take a user's table reach the machine through `unwrap`.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any, Final

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitting.pipeline.state import best_estimator_of
from mercer.estimators.fitting.wrapper_mixin import ModelMethods
from mercer.samples.arrays import Indices, is_sparse
from mercer.tables.axis import Axis
from mercer.tables.encodings import Encoding
from mercer.tables.estimator import Tabular
from mercer.tables.frame import Frame, column_of, frame_of, with_columns

# Steps of scikit-learn whose inverse is exact up to rounding.
_INVERTIBLE: Final = ("MaxAbsScaler", "MinMaxScaler", "RobustScaler", "StandardScaler")


class MixedColumns(ValueError):
    """An input of the machine depends on several columns of the table, or on columns that are not known."""


def unwrap(model: Any) -> Unwrapped:
    """Give a model that ends in one of mercer's machines the methods of that machine.

    Parameters
    ----------
    model : estimator
        Fitted model: a Pipeline, a search such as GridSearchCV, a `Tabular`, a calibrated model, a machine, or one of
        these inside another.

    Returns
    -------
    Unwrapped
        Wrapper with the methods `explain`, `partial_dependence`, `reasons`, `insight`, `margins`, `calibrate` and so
        on, which all speak of the columns that the model is given.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import mercer
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> pipeline = make_pipeline(StandardScaler(), mercer.SVC()).fit(X, y)
    >>> mercer.unwrap(pipeline).explain(X[:3], background=X[::10]).feature_names[0]
    'sepal length (cm)'
    """
    return model if isinstance(model, Unwrapped) else Unwrapped(model)


class Unwrapped(ModelMethods):
    """A model, the machine inside it, and the layers around the machine; made by `mercer.unwrap`.

    Attributes
    ----------
    model : estimator
        The model as given.
    machine : estimator
        The machine inside; the model itself if nothing is around it.
    layers : list of estimators
        Models around the machine, from the outside in.
    steps : list of estimators
        Transformations of rows before the machine: steps of a Pipeline before its last, and `Tabular` models.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.layers: list[Any] = []
        self.steps: list[Any] = []
        while (inner := _inner_model(model)) is not None:
            self.layers.append(model)
            if isinstance(model, Pipeline):
                self.steps += [step for _, step in model.steps[:-1] if step is not None and step != "passthrough"]
            elif isinstance(model, Tabular):
                self.steps.append(model)
            model = inner
        self.machine = model

    def __repr__(self) -> str:
        return f"unwrap({self.model!r})"

    # --- rows and targets, as the machine sees them -------------------------------------------------------------------

    def rows(self, X: Any) -> Any:
        """Transform rows of the user's table into the rows that the machine sees."""
        for step in self.steps:
            X = step.encode(X) if isinstance(step, Tabular) else step.transform(X)
        return X

    def target(self, y: Any) -> Any:
        """Convert the user's targets to the unit of the machine."""
        mean, scale = self.unit
        return y if y is None or (np.all(mean == 0.0) and np.all(scale == 1.0)) else (np.asarray(y) - mean) / scale

    @cached_property
    def unit(self) -> tuple[Any, Any]:
        """Mean and scale of the targets: the user's target is mean + scale · the machine's target."""
        mean, scale = 0.0, 1.0
        for step in self.steps:
            if isinstance(step, Tabular):
                mean, scale = mean + scale * step.target_mean_, scale * step.target_scale_
        return mean, scale

    def cells_of_vectors(self, vectors: Any) -> Any:
        """Return the table cells of vectors of the machine, or None if a step has no exact inverse."""
        for step in self.steps[::-1]:
            if isinstance(step, Tabular):
                vectors = step.decode(vectors)
            elif type(step).__name__ in _INVERTIBLE and type(step).__module__.startswith("sklearn."):
                vectors = step.inverse_transform(vectors)
            else:
                return None
        return vectors

    def trained_rows(self, places: Indices) -> Indices:
        """Return the rows of the user's training table that became these samples of the machine."""
        for step in self.steps[::-1]:
            places = step.rows_[places] if isinstance(step, Tabular) and hasattr(step, "rows_") else places
        return places

    # --- columns ------------------------------------------------------------------------------------------------------

    @cached_property
    def names(self) -> list[str]:
        """Names of the user's columns in training, or x0, x1, … if they had none."""
        first = self.steps[0] if self.steps else self.machine
        if isinstance(first, Tabular):
            return [encoding.name for encoding in first.columns_]
        check_is_fitted(first)
        if not hasattr(first, "n_features_in_"):
            raise ValueError(
                f"{type(first).__name__}, the first step, knows no columns; use the machine alone, model[-1], with "
                "the rows model[:-1].transform(X)"
            )
        fitted_names = getattr(first, "feature_names_in_", None)
        return (
            [f"x{j}" for j in range(first.n_features_in_)]
            if fitted_names is None
            else [str(name) for name in fitted_names]
        )

    @cached_property
    def origins(self) -> Indices:
        """Index of the user's column behind each of the machine's columns, or −1 if there is none.

        Raises `MixedColumns` if a column of the machine depends on several, or on unknown ones.
        """
        from mercer.tables.origins import origins

        result: Indices = np.arange(len(self.names))
        for step in self.steps:
            if isinstance(step, Tabular):
                widths = [len(encoding.titles) for encoding in step.columns_]
                result = np.repeat(result, widths) if len(widths) == len(result) else result[:0]
            else:
                inputs = origins(step, len(result))
                result = np.where(inputs < 0, -1, result[inputs])
        if len(result) != self.machine.n_features_in_:
            raise MixedColumns("it is not known which columns the machine's features come from")
        return result

    def axis(self, X: Any, j: int) -> Axis:
        """Return column j of the user's columns in X as an axis of numbers, dates or categories."""
        return Axis.of(self.names[j], self.column(X, j), self.encoding(self.names[j], j))

    def encoding(self, name: str, place: int) -> Encoding | None:
        """Return the encoding of a column in a `Tabular`, by name, or by index if it knows no names; else None."""
        first = self.steps[0] if self.steps else None
        if not isinstance(first, Tabular):
            return None
        encodings_by_name = {encoding.name: encoding for encoding in first.columns_}
        return encodings_by_name.get(name) if hasattr(first, "feature_names_in_") else first.columns_[place]

    def column(self, X: Any, j: int) -> Any:
        """Return the cells of column j of the user's columns in X."""
        return column_of(X, self._place(X, j))

    def _place(self, X: Any, j: int) -> int:
        """Return the index in X of column j of the user's columns."""
        names = frame_of(X).names if hasattr(X, "columns") else []
        if not names or not self._by_name(frame_of(X)):
            return j
        if self.names[j] not in names:
            raise ValueError(f"the table lacks the column {self.names[j]!r}; it has {', '.join(map(repr, names))}")
        return names.index(self.names[j])

    def cells(self, X: Any) -> Any:
        """Return all of the user's columns: an array of numbers, or of objects with None in columns that X lacks."""
        if is_sparse(X):
            return X.toarray().astype(np.float64)
        table = frame_of(X)
        if self._by_name(table):
            empty_column = np.full(len(table), None, dtype=object)
            columns = [table[name] if name in table.names else empty_column for name in self.names]
        else:
            columns = table.columns
        if all(column.dtype.kind in "iuf" for column in columns):
            return np.column_stack([column.astype(np.float64) for column in columns])
        out = np.empty((len(table), len(columns)), dtype=object)
        for j, column in enumerate(columns):
            out[:, j] = column
        return out

    def with_cells(self, X: Any, changes: dict[int, Any]) -> Any:
        """Return X with new cells in some of the user's columns."""
        return with_columns(X, {self._place(X, j): cells for j, cells in changes.items()})

    def _by_name(self, table: Frame) -> bool:
        """Return whether columns of X are found by name, not by position."""
        return table.named and hasattr(self.steps[0] if self.steps else self.machine, "feature_names_in_")

    # --- other machines inside the same layers ------------------------------------------------------------------------

    def rewrap(self, machine: Any) -> Any:
        """Return the model with another fitted machine inside, without its searches."""
        for layer in self.layers[::-1]:
            if isinstance(layer, Pipeline):
                layer_copy = copy(layer)
                layer_copy.steps = [*layer.steps[:-1], (layer.steps[-1][0], machine)]
                machine = layer_copy
            elif isinstance(layer, FrozenEstimator):
                machine = FrozenEstimator(machine)
            elif best_estimator_of(layer) is layer:
                layer_copy = copy(layer)
                layer_copy.estimator_, layer_copy.estimator = machine, clone(machine)
                machine = layer_copy
        return machine

    def without_searches(self) -> Any:
        """Return an unfitted copy of the model in which the best estimators of searches replace them."""
        machine = clone(self.machine)
        for layer in self.layers[::-1]:
            if isinstance(layer, Pipeline):
                last = layer.steps[-1][0]
                machine = clone(layer).set_params(**{last: machine})
            elif best_estimator_of(layer) is layer and not isinstance(layer, FrozenEstimator):
                machine = clone(layer).set_params(estimator=machine)
        return machine


def frame_like(X: Any, names: list[str], columns: list[Any]) -> Any:
    """Make a table of the type of X: a frame of its library, a `Frame`, or an array of numbers or objects."""
    if isinstance(X, Frame):
        return X.with_columns(names, columns)
    if not hasattr(X, "columns"):
        has_numbers_only = all(np.asarray(column).dtype.kind in "biuf" for column in columns)
        return np.column_stack(
            columns if has_numbers_only else [np.asarray(column, dtype=object) for column in columns]
        )
    titles = list(X.columns) if not hasattr(X, "column_names") else list(X.column_names)
    cells = dict(zip(titles, columns, strict=True))
    return type(X).from_pydict(cells) if hasattr(X, "column_names") else type(X)(cells)


def _inner_model(model: Any) -> Any:
    """Return the wrapped estimator of a model, or None."""
    if isinstance(model, Pipeline):
        return model.steps[-1][1]
    if isinstance(model, FrozenEstimator):
        return model.estimator
    if best_estimator_of(model) is not model:
        return best_estimator_of(model)
    return model._inner_model() if hasattr(model, "_inner_model") else None
