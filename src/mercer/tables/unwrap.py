"""A model and the machine inside of it: what the machine is given for the user's rows, and which column became which.

Around a machine may be a Pipeline's other steps, a `Tabular`, a search, a calibration or a frozen model, one inside
another. Whoever asks a machine about a user's table goes through here.
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

from mercer.estimators.fitting.pipeline.state import chosen_of
from mercer.estimators.fitting.wrapper_mixin import ModelMethods
from mercer.samples.arrays import Indices, is_sparse
from mercer.tables.axis import Axis
from mercer.tables.encodings import Encoding
from mercer.tables.estimator import Tabular
from mercer.tables.frame import Frame, column_of, frame_of, with_columns

# Steps of scikit-learn that can be undone to rounding.
_UNDONE: Final = ("MaxAbsScaler", "MinMaxScaler", "RobustScaler", "StandardScaler")


class MixedColumns(ValueError):
    """Some number that a machine is given is made of several columns, or nobody knows of which."""


def ask(model: Any) -> Asked:
    """Any model that ends in a machine of mercer's, ready to be asked what the machine can be asked.

    Parameters
    ----------
    model : estimator
        Fitted: a Pipeline, a search such as GridSearchCV, a `Tabular`, a calibrated model, a machine, or one of these
        inside another.

    Returns
    -------
    Asked
        With the methods `explain`, `partial_dependence`, `reasons`, `insight`, `margins`, `calibrate` and so on, all of
        them about the columns that the model is given.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import mercer
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> pipeline = make_pipeline(StandardScaler(), mercer.SVC()).fit(X, y)
    >>> mercer.ask(pipeline).explain(X[:3], background=X[::10]).feature_names[0]
    'sepal length (cm)'
    """
    return model if isinstance(model, Asked) else Asked(model)


class Asked(ModelMethods):
    """A model, the machine inside, and what is around it; `mercer.ask` makes it.

    Attributes
    ----------
    model : estimator
        What was given.
    machine : estimator
        The one that decides; the model itself where nothing is around it.
    layers : list of estimators
        What is around the machine, from the outside.
    steps : list of estimators
        Those of them that change rows: a Pipeline's steps before the last, and tables.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.layers: list[Any] = []
        self.steps: list[Any] = []
        while (inner := _inside(model)) is not None:
            self.layers.append(model)
            if isinstance(model, Pipeline):
                self.steps += [step for _, step in model.steps[:-1] if step is not None and step != "passthrough"]
            elif isinstance(model, Tabular):
                self.steps.append(model)
            model = inner
        self.machine = model

    def __repr__(self) -> str:
        return f"ask({self.model!r})"

    # --- rows and targets, as the machine sees them -------------------------------------------------------------------

    def rows(self, X: Any) -> Any:
        """The user's rows as the machine sees them."""
        for step in self.steps:
            X = step.encode(X) if isinstance(step, Tabular) else step.transform(X)
        return X

    def target(self, y: Any) -> Any:
        """The user's targets in the machine's unit."""
        mean, scale = self.unit
        return y if y is None or (np.all(mean == 0.0) and np.all(scale == 1.0)) else (np.asarray(y) - mean) / scale

    @cached_property
    def unit(self) -> tuple[Any, Any]:
        """The user's targets are the machine's times the second of these, plus the first."""
        mean, scale = 0.0, 1.0
        for step in self.steps:
            if isinstance(step, Tabular):
                mean, scale = mean + scale * step.target_mean_, scale * step.target_scale_
        return mean, scale

    def cells_of_vectors(self, vectors: Any) -> Any:
        """The user's cells that the machine sees as these vectors; None where some step cannot be undone exactly."""
        for step in self.steps[::-1]:
            if isinstance(step, Tabular):
                vectors = step.decode(vectors)
            elif type(step).__name__ in _UNDONE and type(step).__module__.startswith("sklearn."):
                vectors = step.inverse_transform(vectors)
            else:
                return None
        return vectors

    def trained_rows(self, places: Indices) -> Indices:
        """Which of the user's training rows these samples of the machine were."""
        for step in self.steps[::-1]:
            places = step.rows_[places] if isinstance(step, Tabular) and hasattr(step, "rows_") else places
        return places

    # --- columns ------------------------------------------------------------------------------------------------------

    @cached_property
    def names(self) -> list[str]:
        """The user's columns: by the names that the model was trained with, or x0, x1, …."""
        first = self.steps[0] if self.steps else self.machine
        if isinstance(first, Tabular):
            return [one.name for one in first.columns_]
        check_is_fitted(first)
        if not hasattr(first, "n_features_in_"):
            raise ValueError(
                f"{type(first).__name__}, which sees the samples first, knows no columns; ask the machine about what "
                "the steps before it make: model[-1] about model[:-1].transform(X)"
            )
        given = getattr(first, "feature_names_in_", None)
        return [f"x{j}" for j in range(first.n_features_in_)] if given is None else [str(name) for name in given]

    @cached_property
    def origins(self) -> Indices:
        """The place of the user's column that each of the machine's columns comes from, −1 where that is none.

        Raises `MixedColumns` where some come from several, or from nobody knows which.
        """
        from mercer.tables.origins import origins

        found: Indices = np.arange(len(self.names))
        for step in self.steps:
            if isinstance(step, Tabular):
                widths = [len(one.titles) for one in step.columns_]
                found = np.repeat(found, widths) if len(widths) == len(found) else found[:0]
            else:
                places = origins(step, len(found))
                found = np.where(places < 0, -1, found[places])
        if len(found) != self.machine.n_features_in_:
            raise MixedColumns("it is not known which column each of the machine's numbers comes from")
        return found

    def axis(self, X: Any, j: int) -> Axis:
        """A column of X by its place among the user's columns, as numbers, dates or categories."""
        return Axis.of(self.names[j], self.column(X, j), self.encoding(self.names[j], j))

    def encoding(self, name: str, place: int) -> Encoding | None:
        """What a table does to a column of this name, or at this place where it knows no names; None for nothing."""
        first = self.steps[0] if self.steps else None
        if not isinstance(first, Tabular):
            return None
        named = {one.name: one for one in first.columns_}
        return named.get(name) if hasattr(first, "feature_names_in_") else first.columns_[place]

    def column(self, X: Any, j: int) -> Any:
        """The cells of one of the user's columns."""
        return column_of(X, self._place(X, j))

    def _place(self, X: Any, j: int) -> int:
        """Where one of the user's columns stands in X."""
        names = frame_of(X).names if hasattr(X, "columns") else []
        if not names or not self._by_name(frame_of(X)):
            return j
        if self.names[j] not in names:
            raise ValueError(f"the table lacks the column {self.names[j]!r}; it has {', '.join(map(repr, names))}")
        return names.index(self.names[j])

    def cells(self, X: Any) -> Any:
        """All of the user's columns: numbers where all are, else objects; None in a column that X lacks."""
        if is_sparse(X):
            return X.toarray().astype(np.float64)
        table = frame_of(X)
        if self._by_name(table):
            nothing = np.full(len(table), None, dtype=object)
            columns = [table[name] if name in table.names else nothing for name in self.names]
        else:
            columns = table.columns
        if all(column.dtype.kind in "iuf" for column in columns):
            return np.column_stack([column.astype(np.float64) for column in columns])
        out = np.empty((len(table), len(columns)), dtype=object)
        for j, column in enumerate(columns):
            out[:, j] = column
        return out

    def with_cells(self, X: Any, changes: dict[int, Any]) -> Any:
        """X with other cells in some of the user's columns."""
        return with_columns(X, {self._place(X, j): cells for j, cells in changes.items()})

    def _by_name(self, table: Frame) -> bool:
        """Whether columns of X are found by name, not by place."""
        return table.named and hasattr(self.steps[0] if self.steps else self.machine, "feature_names_in_")

    # --- other machines in its place ----------------------------------------------------------------------------------

    def around(self, machine: Any) -> Any:
        """The model with another fitted machine inside; searches are left out."""
        for layer in self.layers[::-1]:
            if isinstance(layer, Pipeline):
                outer = copy(layer)
                outer.steps = [*layer.steps[:-1], (layer.steps[-1][0], machine)]
                machine = outer
            elif isinstance(layer, FrozenEstimator):
                machine = FrozenEstimator(machine)
            elif chosen_of(layer) is layer:
                outer = copy(layer)
                outer.estimator_, outer.estimator = machine, clone(machine)
                machine = outer
        return machine

    def settled(self) -> Any:
        """The model, not fitted, with what its searches have chosen in the place of these."""
        made = clone(self.machine)
        for layer in self.layers[::-1]:
            if isinstance(layer, Pipeline):
                last = layer.steps[-1][0]
                made = clone(layer).set_params(**{last: made})
            elif chosen_of(layer) is layer and not isinstance(layer, FrozenEstimator):
                made = clone(layer).set_params(estimator=made)
        return made


def like(X: Any, names: list[str], columns: list[Any]) -> Any:
    """A frame of the library that X comes from, a `Frame`, or an array: of objects where some column has others."""
    if isinstance(X, Frame):
        return Frame(names, columns, X.named, X.categories)
    if not hasattr(X, "columns"):
        plain = all(np.asarray(column).dtype.kind in "biuf" for column in columns)
        return np.column_stack(columns if plain else [np.asarray(column, dtype=object) for column in columns])
    own = list(X.columns) if not hasattr(X, "column_names") else list(X.column_names)
    made = dict(zip(own, columns, strict=True))
    return type(X).from_pydict(made) if hasattr(X, "column_names") else type(X)(made)


def _inside(model: Any) -> Any:
    """What a model asks when it is asked itself; None for one that asks nobody."""
    if isinstance(model, Pipeline):
        return model.steps[-1][1]
    if isinstance(model, FrozenEstimator):
        return model.estimator
    if chosen_of(model) is not model:
        return chosen_of(model)
    return model._inside() if hasattr(model, "_inside") else None
