"""Data that the commands read: LIBSVM text, CSV, .npz, Parquet, standard input, and the sets of scikit-learn."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.arrays import is_sparse
from mercer.cli.formats import TITLES, format_of
from mercer.cli.labels import classes_in
from mercer.cli.tables import is_number, numbers, read_csv, read_parquet
from mercer.files.libsvm_text import read_labelled_text


@dataclass(frozen=True, eq=False)
class Data:
    """Rows, what is to be predicted for them (None where the file does not say), and the columns' names.

    Of data to predict, what is to be predicted stands as in the file, and cells of it may be empty.
    """

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
    from sklearn import datasets  # half a second that files need not wait for

    bunch = getattr(datasets, f"load_{name}")()
    return Data(name, "embedded", bunch.data, bunch.target_names.astype(str)[bunch.target])


def read_data(
    path: str,
    form: str | None = None,
    target: str | None = None,
    *,
    training: bool = True,
    regression: bool = False,
    first_index: int = 1,
    wanted: Any = None,
) -> Data:
    """Read a data file; ``-`` is standard input.

    Training needs a target, of numbers for a regression. Prediction does without, and takes from a table only the
    columns ``wanted``, where the model knows them by name.
    """
    form = format_of(path, form)
    name = "standard input" if path == "-" else path
    source: Any = path
    if path == "-":
        source = io.BytesIO(sys.stdin.buffer.read())
    elif Path(path).is_fifo():  # such as bash's <(command), in which nobody can go back
        source = io.BytesIO(Path(path).read_bytes())
    if target is not None and form in ("libsvm", "npz"):
        where = "the first word of each line" if form == "libsvm" else "the array y"
        raise ValueError(f"--target names a column of a table, but {name} has no names: its targets are {where}")
    if form == "libsvm":
        if source is not path:
            source.name = name
        text = read_labelled_text(source, first_index=first_index)
        if text.queries is not None:
            raise ValueError(f"{name} has qid: fields: ranking data, which no machine here learns from")
        return Data(name, form, text.X, text.y)
    if form == "npz":
        return _read_npz(source, name, training, regression)
    if form == "parquet":
        header, columns = read_parquet(source)
    else:
        content = Path(path).read_bytes() if source is path else source.getvalue()
        header, columns = read_csv(content, name, tabs=form == "tsv")
    if not len(columns[0]):
        raise ValueError(f"{name} holds no rows, only the names of its columns")
    table = _table(name, form, header, columns, target, training, wanted)
    if not training or target is None:
        return table
    return replace(table, y=_target(table.y, name, target, regression))


def _target(column: Any, name: str, title: str, regression: bool) -> Any:
    if regression:
        return numbers(column, name, title, "regression needs numbers: choose another target, or another machine")
    return classes_in(column, name, title)


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
    X = np.column_stack([numbers(columns[header.index(title)], name, title, remedy) for title in names])
    y = None if target is None else columns[header.index(target)]
    return Data(name, form, X, y, names, target)


def _header_hint(header: list[str]) -> str:
    """Where the names are numbers, the first line was none of names."""
    return "; its first line must name the columns" if any(is_number(title) for title in header) else ""


def _read_npz(source: Any, name: str, training: bool, regression: bool) -> Data:
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
    if not X.shape[0]:
        raise ValueError(f"{name} holds no rows")
    if training and np.ndim(y) == 1:
        y = _target(y, name, "y", regression)
    return Data(name, "npz", X, y)
