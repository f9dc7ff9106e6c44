"""Tables of pandas, polars, pyarrow or NumPy as named columns; none of the frame libraries is imported."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from mercer.samples.arrays import Indices, is_sparse, take
from mercer.samples.engine import EngineSamples
from mercer.tables.cells import Cells, cells_of, missing_values
from mercer.tables.number_column import (
    NumberColumn,
    NumberFormat,
    ScannedColumn,
    proven_decimal_marks,
    read_column,
    scan_column,
    unreadable_numbers,
)

_FEW_CLASSES: int = (
    20  # a target with at most this many different values in a unit holds names of classes, such as 4g and 5g
)


@dataclass(frozen=True)
class DecimalMarks:
    """Decimal marks that are known from elsewhere than the texts of a table.

    `requested` is the mark that the user names. `proven` are the marks of columns of the same file that are numbers
    already. `before` is the mark of the table that the model was trained on.
    """

    requested: str | None = None
    proven: frozenset[str] = frozenset()
    before: str | None = None


class Frame:
    """A table: columns of equal length with names, whichever library it comes from.

    `columns` hold the cells as they were given; `number_column` reads the numbers among texts. `named` is False if the
    names x0, x1, … were made up, and `categories` are the columns whose dtype is categorical. `renamed` maps new names
    to old ones that several columns had.
    """

    def __init__(
        self,
        names: Sequence[str],
        columns: Sequence[Any],
        named: bool = True,
        categories: frozenset[str] = frozenset(),
        decimals: DecimalMarks | None = None,
    ) -> None:
        self.names, self.categories = list(names), categories
        self.columns: list[Cells] = [cells_of(column) for column in columns]
        self.named = named
        self._places = {name: place for place, name in enumerate(self.names)}
        self.renamed: dict[str, str] = {}
        self._decimals = DecimalMarks() if decimals is None else decimals
        self._scanned_columns: dict[str, ScannedColumn] = {}
        self._numbers: dict[str, NumberColumn] = {}
        self._proven_marks: frozenset[str] | None = None  # decimal marks, if all columns have been scanned

    @property
    def shape(self) -> tuple[int, int]:
        return (len(self.columns[0]) if self.columns else 0), len(self.columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, name: str) -> Cells:
        return self.columns[self._places[name]]

    def rows(self, chosen: Indices) -> Frame:
        """Return a table with the chosen rows, in this order; all rows decide how its numbers are read."""
        numbers = {name: self.number_column(name) for name in self._text_columns()}
        part = self._with_cells(self.names, [column[chosen] for column in self.columns])
        part._numbers = {name: column.rows(chosen) for name, column in numbers.items()}
        return part

    def select(self, names: Sequence[str]) -> Frame:
        """Return a table with these columns; those that this table lacks are empty."""
        empty_column = np.full(len(self), None, dtype=object)
        by_name = dict(zip(self.names, self.columns, strict=True))
        frame = self._with_cells(names, [by_name.get(name, empty_column) for name in names])
        frame._scanned_columns, frame._numbers = self._scanned_columns, self._numbers
        return frame

    def drop(self, name: str) -> Frame:
        """Return the table without a column."""
        return self.select([column for column in self.names if column != name])

    def with_columns(self, names: Sequence[str], columns: Sequence[Any]) -> Frame:
        """Return a table with other columns."""
        return self._with_cells(names, [cells_of(column) for column in columns])

    def _with_cells(self, names: Sequence[str], columns: list[Cells]) -> Frame:
        """Return a table with other columns; the columns of this table still prove the decimal mark."""
        self.proven_decimal_marks()  # once and for all
        frame = copy(self)
        frame.names, frame.columns = list(names), columns
        frame._places = {name: place for place, name in enumerate(names)}
        frame.categories = self.categories & frame._places.keys()
        frame.renamed = {new: old for new, old in self.renamed.items() if new in frame._places}
        frame._scanned_columns, frame._numbers = {}, {}
        return frame

    # --- numbers among texts -----------------------------------------------------------------------------------------

    def number_column(self, name: str, trained: NumberFormat | None = None) -> NumberColumn:
        """Return the numbers of a column of objects; `trained` is the format that the column had in training."""
        known = self._numbers.get(name)
        if known is not None and (trained is None or known.is_certain):
            return known
        decimals = self._decimals
        column = read_column(
            self._scan(name), requested=decimals.requested, table_decimal=self.decimal, trained=trained
        )
        if trained is None:
            self._numbers[name] = column
        return column

    def unit(self, name: str) -> str:
        """Return the unit of a column of numbers; empty if it has none or holds no numbers."""
        if self[name].dtype != object or name in self.categories or not self._scan(name).groups:
            return ""
        column = self.number_column(name)
        return column.format.unit if column.problem is None else ""

    def target(self, name: str, regression: bool | None = None) -> tuple[Any, str]:
        """Return a column as a target, with its unit: numbers if people would read all its texts as numbers.

        At most 20 different values in a unit, such as 4g and 5g, are names of classes unless it is a regression.
        """
        cells = self[name]
        if cells.dtype != object or name in self.categories:
            return cells, ""
        column = self.number_column(name)
        if column.problem is not None and (regression or len({*cells.tolist()}) > _FEW_CLASSES):
            raise unreadable_numbers(name, cells, column)
        form = column.format
        if not column.is_complete or (form.marks in ("", ".") and not form.unit):  # plain numbers stay as they are
            return cells, ""
        if form.unit and not regression and len({*cells.tolist()}) <= _FEW_CLASSES:
            return cells, ""
        missing = missing_values(cells)
        if not missing.any():
            return column.values, form.unit
        return np.where(missing, cells, column.values.astype(object)), form.unit

    @property
    def decimal(self) -> str | None:
        """Decimal mark that this table proves, else that of the table before; None if unknown."""
        marks = self.proven_decimal_marks()
        return next(iter(marks)) if len(marks) == 1 else self._decimals.before if not marks else None

    def proven_decimal_marks(self) -> frozenset[str]:
        """Return the decimal marks that columns of this table prove."""
        if self._proven_marks is None:
            by_texts = (proven_decimal_marks(self._scan(name)) for name in self._text_columns())
            self._proven_marks = self._decimals.proven.union(*by_texts)
        return self._proven_marks

    def _text_columns(self) -> list[str]:
        pairs = zip(self.names, self.columns, strict=True)
        return [name for name, cells in pairs if cells.dtype == object and name not in self.categories]

    def _scan(self, name: str) -> ScannedColumn:
        if name not in self._scanned_columns:
            self._scanned_columns[name] = scan_column(self[name].tolist())
        return self._scanned_columns[name]


def distinct_names(names: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Number repeated names, as in x, x.1, x.2; return all names, and the old name of each new one."""
    old_names = list(names)
    all_names, new_names, old_name_of = {*old_names}, [], {}
    count: Counter[str] = Counter()
    for name in old_names:
        new = name
        while count[name] and new in all_names:
            new = f"{name}.{count[name]}"
            count[name] += new in all_names
        count[name] += 1
        if new != name:
            all_names.add(new)
            old_name_of[new] = name
        new_names.append(new)
    return new_names, old_name_of


def frame_of(X: Any) -> Frame:
    """Convert a pandas, polars or pyarrow frame, or an array, whose columns are named x0, x1 and so on."""
    if isinstance(X, Frame):
        return X
    categories: list[Any] = []
    if hasattr(X, "columns") and hasattr(type(X), "__dask_graph__"):
        raise TypeError(
            "tabular() needs a table in memory, not a Dask frame: call its compute() first, or train the machine "
            "itself on a Dask array of numbers"
        )
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        categories = [dtype == "category" for dtype in X.dtypes]
        names, columns = list(X.columns), [_pandas_to_numpy(X.iloc[:, j]) for j in range(X.shape[1])]
    elif hasattr(X, "get_columns"):
        categories = [str(dtype).startswith(("Categorical", "Enum")) for dtype in X.dtypes]
        names, columns = list(X.columns), [column.to_numpy() for column in X.get_columns()]
    elif hasattr(X, "column_names") and hasattr(X, "to_pydict"):
        categories = [str(kind).startswith("dictionary") for kind in X.schema.types]
        names, columns = list(X.column_names), [column.to_numpy() for column in X.columns]
    elif hasattr(X, "collect_schema"):
        raise TypeError("a lazy frame has no rows yet: call its collect() first")
    else:
        if isinstance(X, str | os.PathLike):
            raise TypeError(
                f"a table is expected, not the path {os.fspath(X)!r}: read it first, such as with pandas.read_csv; "
                "mercer predict in the terminal takes paths"
            )
        if is_sparse(X):
            raise TypeError("tabular() takes frames and dense arrays, not a sparse matrix; fit the machine itself")
        X = check_array(X, dtype=None, ensure_all_finite=False)
        return Frame([f"x{j}" for j in range(X.shape[1])], list(X.T), named=False)
    has_names = all(isinstance(name, str) for name in names)
    titles, renamed = distinct_names(str(name) for name in names)
    declared_categories = frozenset(title for title, category in zip(titles, categories, strict=True) if category)
    frame = Frame(titles, columns, has_names, declared_categories)
    frame.renamed = renamed
    if not frame.shape[0] or not frame.shape[1]:
        raise ValueError(
            f"the table has {frame.shape[0]} rows and {frame.shape[1]} columns; at least one of each is needed"
        )
    return frame


def column_of(X: Any, place: int) -> Any:
    """Return one column of a frame, an array or a sparse matrix as an array, with its own marks of missing values."""
    if isinstance(X, Frame):
        return X.columns[place]
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return _pandas_to_numpy(X.iloc[:, place])
    if hasattr(X, "columns"):
        return (X.get_columns() if hasattr(X, "get_columns") else X.columns)[place].to_numpy()
    return X[:, [place]].toarray()[:, 0] if is_sparse(X) else np.asarray(X)[:, place]


def with_columns(X: Any, changes: dict[int, Any]) -> Any:
    """Return a copy of a frame, an array or a sparse matrix with new cells in some columns."""
    if is_sparse(X):
        return type(X)(with_columns(X.toarray(), changes))
    if hasattr(X, "iloc") and hasattr(X, "columns") and X.columns.is_unique:
        return X.assign(**{X.columns[place]: _like(X.iloc[:, place], cells) for place, cells in changes.items()})
    if hasattr(X, "get_columns"):
        series = X.get_columns()
        return X.with_columns([type(series[place])(X.columns[place], list(cells)) for place, cells in changes.items()])
    if hasattr(X, "columns"):
        table = frame_of(X)
        columns = [changes.get(place, column) for place, column in enumerate(table.columns)]
        return table.with_columns(table.names, columns)
    are_numbers = all(np.asarray(cells).dtype.kind in "biuf" for cells in changes.values())
    array = np.array(X, dtype=object if not are_numbers else None)
    array = array.astype(np.float64) if array.dtype.kind in "biu" else array
    for place, cells in changes.items():
        array[:, place] = cells
    return array


def _like(series: Any, cells: Any) -> Any:
    """Return new cells for a pandas column: dates in its unit and time zone, since a Pipeline reads them as numbers."""
    if series.dtype.kind != "M" or np.asarray(cells).dtype.kind != "M":
        return cells
    dates = type(series)(cells, index=series.index)
    return (dates if series.dt.tz is None else dates.dt.tz_localize("UTC")).astype(series.dtype)


def _pandas_to_numpy(series: Any) -> Any:
    """Convert a pandas column to an array: floats with NaN if numbers are missing, dates in UTC."""
    kind = getattr(series.dtype, "kind", "O")
    if kind in "iuf":
        has_whole_numbers = kind in "iu" and not series.isna().any()
        return (
            series.to_numpy(dtype=f"{kind}8")
            if has_whole_numbers
            else series.to_numpy(dtype=np.float64, na_value=np.nan)
        )
    if kind == "M":
        if getattr(series.dt, "tz", None) is not None:
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return series.to_numpy(dtype="datetime64[us]")
    return series.to_numpy() if kind == "m" else series.to_numpy(dtype=object)


def part_of(X: Any, rows: Indices, columns: Indices | None = None) -> Any:
    """Return some rows of the samples, and of a precomputed kernel matrix also some columns."""
    if isinstance(X, Frame):
        return X.rows(rows)
    if hasattr(X, "iloc"):
        return X.iloc[rows] if columns is None else X.iloc[rows, columns]
    if isinstance(X, EngineSamples):
        return X.take(rows) if columns is None else X.take(rows).columns(columns)
    if hasattr(X, "column_names"):  # Arrow tables are indexed by column
        return X.take(rows) if columns is None else X.take(rows).select(columns.tolist())
    if columns is None:
        return take(X, rows)
    # Sparse matrices and polars frames index rows and columns one after the other.
    indexes_separately = is_sparse(X) or hasattr(X, "get_columns")
    return X[rows][:, columns] if indexes_separately else X[np.ix_(rows, columns)]
