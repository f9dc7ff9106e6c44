"""Tables of pandas, polars, pyarrow or NumPy as named columns; none of the frame libraries is imported."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from mercer.samples.arrays import Indices, is_sparse, take
from mercer.samples.engine import EngineSamples
from mercer.tables.cells import Cells, cells_of


class Frame:
    """A table: columns of equal length with names, whichever library it comes from.

    `named` is False if the names x0, x1, … were made up; `categories` are the columns whose dtype is categorical.
    """

    def __init__(
        self, names: Sequence[str], columns: Sequence[Any], named: bool = True, categories: frozenset[str] = frozenset()
    ) -> None:
        self.names, self.categories = list(names), categories
        self.columns: list[Cells] = [cells_of(column) for column in columns]
        self.named = named

    @property
    def shape(self) -> tuple[int, int]:
        return (len(self.columns[0]) if self.columns else 0), len(self.columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, name: str) -> Cells:
        return self.columns[self.names.index(name)]

    def rows(self, chosen: Indices) -> Frame:
        """Return a table with the chosen rows, in this order."""
        part = copy(self)
        part.columns = [column[chosen] for column in self.columns]
        return part


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
        categories = [name for name, dtype in zip(X.columns, X.dtypes, strict=True) if dtype == "category"]
        names, columns = list(X.columns), [_pandas_to_numpy(X.iloc[:, j]) for j in range(X.shape[1])]
    elif hasattr(X, "get_columns"):
        declared = ("Categorical", "Enum")
        categories = [name for name, dtype in zip(X.columns, X.dtypes, strict=True) if str(dtype).startswith(declared)]
        names, columns = list(X.columns), [column.to_numpy() for column in X.get_columns()]
    elif hasattr(X, "column_names") and hasattr(X, "to_pydict"):
        names, columns = list(X.column_names), [column.to_numpy() for column in X.columns]
    elif hasattr(X, "collect_schema"):
        raise TypeError("a lazy frame has no rows yet: call its collect() first")
    else:
        if is_sparse(X):
            raise TypeError("tabular() takes frames and dense arrays, not a sparse matrix; fit the machine itself")
        X = check_array(X, dtype=None, ensure_all_finite=False)
        return Frame([f"x{j}" for j in range(X.shape[1])], list(X.T), named=False)
    named = all(isinstance(name, str) for name in names)
    frame = Frame([str(name) for name in names], columns, named, frozenset(map(str, categories)))
    repeated = sorted({name for name in frame.names if frame.names.count(name) > 1})
    if repeated:
        raise ValueError(f"the column {repeated[0]!r} occurs twice; rename one of them")
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
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return X.assign(**{X.columns[place]: cells for place, cells in changes.items()})
    if hasattr(X, "with_columns"):
        old = X.get_columns()
        return X.with_columns([type(old[place])(X.columns[place], list(cells)) for place, cells in changes.items()])
    if hasattr(X, "columns"):
        table = frame_of(X)
        columns = [changes.get(place, column) for place, column in enumerate(table.columns)]
        return Frame(table.names, columns, table.named, table.categories)
    numbers = all(np.asarray(cells).dtype.kind in "biuf" for cells in changes.values())
    made = np.array(X, dtype=object if not numbers else None)
    made = made.astype(np.float64) if made.dtype.kind in "biu" else made
    for place, cells in changes.items():
        made[:, place] = cells
    return made


def _pandas_to_numpy(series: Any) -> Any:
    """Convert a pandas column to an array: floats with NaN if numbers are missing, dates in UTC."""
    kind = getattr(series.dtype, "kind", "O")
    if kind in "iuf":
        whole = kind in "iu" and not series.isna().any()
        return series.to_numpy(dtype=f"{kind}8") if whole else series.to_numpy(dtype=np.float64, na_value=np.nan)
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
    apart = is_sparse(X) or hasattr(X, "get_columns")  # sparse and polars index rows and columns one after the other
    return X[rows][:, columns] if apart else X[np.ix_(rows, columns)]
