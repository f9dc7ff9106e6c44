"""Data that the commands read: LIBSVM text, CSV, .npz, Parquet, standard input, and the sets of scikit-learn."""

from __future__ import annotations

import csv
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from sklearn import datasets

from mercer.arrays import is_sparse
from mercer.files.libsvm_text import read_labelled_text
from mercer.optional import require

_FORMATS: Final = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".npz": "npz",
    ".parquet": "parquet",
    ".pq": "parquet",
}
FORMATS: Final = ("libsvm", *dict.fromkeys(_FORMATS.values()))
# The sets that come with scikit-learn, for trying mercer without a file.
TITLES: Final = {
    "breast_cancer": "breast cancer Wisconsin (diagnostic)",
    "digits": "handwritten digits, 8 × 8 pixels",
    "wine": "wine recognition, three growers",
    "iris": "Fisher's iris",
}


@dataclass(frozen=True, eq=False)
class Data:
    """Rows, what is to be predicted for them (None where the file does not say), and the columns' names."""

    source: str
    form: str
    X: Any
    y: Any
    names: list[str] | None = None
    target: str | None = None

    @property
    def title(self) -> str:
        """What a person calls it."""
        return TITLES[self.source] if self.form == "embedded" else self.source


def embedded(name: str) -> Data:
    """One of the sets in `TITLES`; its classes are names."""
    bunch = getattr(datasets, f"load_{name}")()
    return Data(name, "embedded", bunch.data, bunch.target_names.astype(str)[bunch.target])


def format_of(path: str, form: str | None) -> str:
    """The format asked for, or what the name suggests."""
    return form or _FORMATS.get(Path(path).suffix.lower(), "libsvm")


def read_data(
    path: str,
    form: str | None = None,
    target: str | None = None,
    *,
    training: bool = True,
    first_index: int = 1,
    wanted: Any = None,
) -> Data:
    """Read a data file; ``-`` is standard input.

    Training needs a target, prediction does without, and takes from a table only the columns ``wanted``, where the
    model knows them by name.
    """
    form = format_of(path, form)
    name = "standard input" if path == "-" else path
    source: Any = io.BytesIO(sys.stdin.buffer.read()) if path == "-" else path
    if target is not None and form in ("libsvm", "npz"):
        where = "the first word of each line" if form == "libsvm" else "the array y"
        raise ValueError(f"--target names a column of a table, but {name} has no names: its targets are {where}")
    if form == "libsvm":
        if path == "-":
            source.name = name
        text = read_labelled_text(source, first_index=first_index)
        if text.queries is not None:
            raise ValueError(f"{name} has qid: fields: ranking data, which no machine here learns from")
        return Data(name, form, text.X, text.y)
    if form == "npz":
        return _read_npz(source, name, training)
    header, columns = _read_parquet(source) if form == "parquet" else _read_csv(source, name, form)
    return _table(name, form, header, columns, target, training, wanted)


def _read_csv(source: Any, name: str, form: str) -> tuple[list[str], list[Any]]:
    text = source.getvalue().decode("utf-8-sig") if isinstance(source, io.BytesIO) else None
    with io.StringIO(text) if text is not None else open(source, newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file, delimiter="\t" if form == "tsv" else _delimiter(file.readline()))
        file.seek(0)
        header = next(rows, None)
        if not header:
            raise ValueError(f"{name} is empty; its first line must name the columns")
        repeated = [title for title in header if header.count(title) > 1]
        if repeated:
            raise ValueError(f"{name}: the column {repeated[0]!r} stands there twice")
        body = []
        for row in rows:
            if len(row) != len(header):
                if not row:
                    continue  # an empty line
                raise ValueError(f"{name}:{rows.line_num}: {len(row)} fields, but {len(header)} columns are named")
            body.append(row)
    return header, list(zip(*body, strict=True)) if body else [() for _ in header]


def _delimiter(first_line: str) -> str:
    """A comma, or, in a first line without any, the semicolon of spreadsheets that write 0,5 for a half, or a tab."""
    return next((mark for mark in (",", ";", "\t") if mark in first_line), ",")


def _read_parquet(source: Any) -> tuple[list[str], list[Any]]:
    parquet = require("pyarrow.parquet", "reading Parquet")
    table = parquet.read_table(source)
    return list(table.column_names), [column.to_numpy() for column in table.columns]


def _table(
    name: str, form: str, header: list[str], columns: list[Any], target: str | None, training: bool, wanted: Any
) -> Data:
    columns_told = f"{', '.join(map(repr, header))}{_header_hint(header)}"
    if target is None and training:
        raise ValueError(f"name the column to learn with --target: {name} has {columns_told}")
    if target is not None and target not in header:
        if training:
            raise ValueError(f"{name} has no column {target!r}; it has {columns_told}")
        target = None
    names = [title for title in header if title != target] if wanted is None else list(wanted)
    missing = [title for title in names if title not in header]
    if missing:
        raise ValueError(
            f"{name} lacks the column{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))} "
            f"that the model was trained on; it has {columns_told}"
        )
    if not names:
        raise ValueError(f"{name} has no column besides the target {target!r}")
    truth = "" if training or target is not None else ", or, if it holds the truth, name it with --target"
    remedy = f"encode the column or leave it out{truth}"
    X = np.column_stack([_numbers(columns[header.index(title)], name, title, remedy) for title in names])
    y = None if target is None else labels_of(columns[header.index(target)])
    return Data(name, form, X, y, names, target)


def _header_hint(header: list[str]) -> str:
    """Where the names are numbers, the first line was none of names."""
    return "; its first line must name the columns" if any(_is_number(title) for title in header) else ""


def _has_decimal_comma(text: Any) -> bool:
    return isinstance(text, str) and text.count(",") == 1 and _is_number(text.replace(",", "."))


def _numbers(column: Any, name: str, title: str, remedy: str) -> Any:
    try:
        values = np.asarray(column, dtype=np.float64)
    except ValueError:
        row, text = next((i, item) for i, item in enumerate(column, 1) if not _is_number(item))
        if isinstance(text, str) and not text.strip():
            raise ValueError(f"{name}: row {row} of the column {title!r} is empty; fill or drop such rows") from None
        raise ValueError(
            f"{name}: row {row} of the column {title!r} holds {text!r:.40}, which is not a number; "
            f"{'write decimals with a point' if _has_decimal_comma(text) else remedy}"
        ) from None
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise ValueError(f"{name}: row {row + 1} of the column {title!r} is {column[row]!r}; fill or drop such rows")
    return values


def _is_number(item: Any) -> bool:
    try:
        float(item)
    except (TypeError, ValueError):
        return False
    return True


def labels_of(column: Any) -> Any:
    """Integers, else numbers, else strings: whatever all entries are."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return column
    for kind in (np.int64, np.float64):
        try:
            return np.array([kind(item) for item in column])
        except (TypeError, ValueError):
            continue
    return np.array([str(item) for item in column])


def _read_npz(source: Any, name: str, training: bool) -> Data:
    with np.load(source, allow_pickle=False) as arrays:
        pieces = {"data", "indices", "indptr", "shape"}
        if "X" in arrays:
            X = arrays["X"]
        elif pieces <= set(arrays):
            X = sp.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))
        else:
            raise ValueError(f"{name} must hold X, or data, indices, indptr and shape; it has {', '.join(arrays)}")
        y = arrays.get("y")
    if y is None and training:
        raise ValueError(f"{name} holds no y to learn from")
    if not is_sparse(X) and X.ndim != 2:
        raise ValueError(f"{name}: X must be a table of rows and columns, but its shape is {X.shape}")
    return Data(name, "npz", X, y)
