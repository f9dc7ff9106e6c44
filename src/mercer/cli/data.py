"""Reading of data: LIBSVM text, CSV, .npz, Parquet, Arrow, Excel, standard input, and data sets of scikit-learn."""

from __future__ import annotations

import io
import sys
from collections.abc import Collection
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.cli.formats import TITLES, format_of, is_compressed
from mercer.cli.machines import AUTO
from mercer.files.libsvm_text import read_bytes_unpacked, read_labelled_text
from mercer.inspection.easy.target import TargetKind, target_kind
from mercer.samples.arrays import is_sparse
from mercer.samples.column_names import column_suggestion, renamed_column
from mercer.tables.dialect import UNKNOWN, Dialect
from mercer.tables.reading import Table, classes_in, expect_complete, is_number, numbers, read_csv, read_stored


@dataclass(frozen=True, eq=False)
class Data:
    """Rows, their targets (None if the file has none), and the names of the columns.

    The targets of data to predict are the file's cells, some of which may be empty.
    """

    source: str
    form: str
    X: Any
    y: Any
    names: list[str] | None = None
    target: str | None = None
    dialect: Dialect = UNKNOWN
    table: Table | None = None  # all columns of a table, as read
    kind: TargetKind | None = None  # classes or numbers; None if not read for training
    digest: str = ""  # hash of a CSV file: files with equal hashes hold the same rows

    @property
    def title(self) -> str:
        """Name of the data for a report."""
        return TITLES[self.source] if self.form == "embedded" else self.source


def load_embedded(name: str) -> Data:
    """Load one of the data sets in `TITLES`; its classes are names."""
    from sklearn import datasets  # imported here because it takes half a second

    bunch = getattr(datasets, f"load_{name}")()
    names = [str(title) for title in bunch.feature_names]
    return Data(name, "embedded", bunch.data, bunch.target_names.astype(str)[bunch.target], names)


def read_data(
    path: str,
    form: str | None = None,
    target: str | None = None,
    *,
    training: bool = True,
    regression: bool | None = False,
    first_index: int = 1,
    wanted: Any = None,
    as_frame: bool = False,
    dialect: Dialect = UNKNOWN,
    training_dialect: Dialect = UNKNOWN,
    texts: Collection[str] = (),
    sheet: str | None = None,
) -> Data:
    """Read a data file; ``-`` is standard input.

    Training needs a target, which must hold numbers for a regression; ``regression=None`` lets the target decide.
    Prediction needs none, and reads only the columns ``wanted`` of a table, if given. A table becomes an array of
    numbers, or with ``as_frame`` a `Frame` of any columns. A CSV file is read with the settings in ``dialect``; those
    that it leaves open are guessed, or taken from ``training_dialect``, the settings of the training table. Columns
    in ``texts`` stay text even if all their cells are numbers, since categories such as 1.10 and 1.1 differ.
    """
    form = format_of(path, form)
    name = "standard input" if path == "-" else path
    source: Any = path
    if path == "-":
        source = io.BytesIO(sys.stdin.buffer.read())
    elif Path(path).is_fifo():  # such as bash's <(command), which can be read only once
        source = io.BytesIO(Path(path).read_bytes())
    elif is_compressed(path):
        source = io.BytesIO(read_bytes_unpacked(path))
    if target is not None and form in ("libsvm", "npz"):
        if source is path:
            Path(path).stat()  # raises FileNotFoundError for a misspelt name
        where = "the first word of each line" if form == "libsvm" else "the array y"
        raise ValueError(
            f"--target names a column of a table, but {name} has no column names: its targets are {where}; if it is a "
            "table, add --format csv"
        )
    if form == "libsvm":
        if source is not path:
            source.name = name
        text = read_labelled_text(source, first_index=first_index)
        if text.queries is not None:
            raise ValueError(
                f"{name} has qid: fields, which are for ranking: use mercer svm_learn -z p, or RankSVM in Python"
            )
        return Data(name, form, text.X, text.y)
    if form == "npz":
        return _read_npz(source, name, training, regression)
    digest = ""
    if form in ("parquet", "arrow", "excel"):
        table = read_stored(source, form, name, dialect.na or training_dialect.na, sheet, target)
    else:
        content = Path(path).read_bytes() if source is path else source.getvalue()
        if form == "tsv" and dialect.separator is None:
            dialect = replace(dialect, separator="\t")
        table = read_csv(content, name, dialect, training_dialect, texts if as_frame else None, target)
        digest = blake2b(content, digest_size=12).hexdigest()
    header = table.header
    if not len(table.frame):
        raise ValueError(f"{name} holds no rows, only the names of its columns")
    target = _existing_target(name, header, target, training)
    y = None if target is None else _target_column(table, target, regression)
    names = [title for title in header if title != target]
    if not names:
        raise ValueError(f"{name} has no column besides the target {target!r}")
    if as_frame:
        # Without training the target is kept: the model may have learnt from a column of that name.
        names = names if training else header
        X: Any = table.frame.drop(target) if training and target is not None else table.frame
    else:
        names = names if wanted is None else list(wanted)
        target_hint = "" if target else ", or name it with --target if it holds the true values"
        X = _numeric_matrix(name, table, names, target_hint)
    kind = None
    if training and target is not None:
        y, kind = _training_target(y, name, target, regression)
    return Data(name, form, X, y, names, target, table.dialect, table, kind, digest)


def _training_target(column: Any, name: str, title: str, regression: bool | None) -> tuple[Any, TargetKind]:
    """Return the target as classes or numbers, and which of the two it is."""
    if regression:
        expect_complete(column, name, title)
        remedy = "regression needs numbers: choose another target, or another machine"
        return numbers(column, name, title, remedy), TargetKind(True)
    y = classes_in(column, name, title)
    kind = target_kind(y, AUTO) if regression is None else TargetKind(False)
    return (y.astype(np.float64) if kind.is_regression else y), kind


def _existing_target(name: str, header: list[str], target: str | None, training: bool) -> str | None:
    """Return the target if the table has it, else None; raise if training needs it."""
    if training and target not in header:
        columns = f"{', '.join(map(repr, header))}{_header_hint(header)}"
        if target is None:
            raise ValueError(f"name the column to predict with --target: {name} has {columns}")
        raise ValueError(f"{name} has no column {target!r}{column_suggestion(target, header)}; it has {columns}")
    return target if target in header else None


def _target_column(table: Table, target: str, regression: bool | None) -> Any:
    """Return a column as a target: numbers if people would read its texts as numbers, else its cells."""
    values, _ = table.frame.target(target, regression)
    return table.columns[table.header.index(target)] if values is table.frame[target] else values


def _numeric_matrix(name: str, table: Table, names: list[str], target_hint: str) -> Any:
    """Return the columns called `names` as an array; raise if one is missing or does not hold numbers."""
    header = table.header
    missing = [title for title in names if title not in header]
    if missing:
        raise ValueError(
            f"{name} lacks the column{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))} that the model was "
            f"trained on; it has {', '.join(map(repr, header))}{_header_hint(header)}"
            f"{renamed_column(missing, [title for title in header if title not in names])}"
        )
    remedy = f"encode the column or leave it out{target_hint}"
    return np.column_stack([numbers(_target_column(table, title, True), name, title, remedy) for title in names])


def _header_hint(header: list[str]) -> str:
    """Return a hint if the first line is not a header (its names are numbers), or if the separator seems wrong."""
    if len(header) == 1 and " " in header[0]:
        return "; if blanks or another character separate its cells, name it with --separator"
    return "; its first line must name the columns" if any(is_number(title) for title in header) else ""


def _read_npz(source: Any, name: str, training: bool, regression: bool | None) -> Data:
    """Read X, or the arrays of a CSR matrix, and y from an .npz file."""
    with np.load(source, allow_pickle=False) as arrays:
        pieces = {"data", "indices", "indptr", "shape"}
        if "X" in arrays:
            X = arrays["X"]
        elif pieces <= set(arrays):
            X = sp.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))
        else:
            raise ValueError(
                f"{name} must contain X, or data, indices, indptr and shape; it contains {', '.join(arrays)}"
            )
        y = arrays.get("y")
    if y is None and training:
        raise ValueError(f"{name} contains no y to learn from")
    if not is_sparse(X) and X.ndim != 2:
        raise ValueError(f"{name}: X must be a table of rows and columns, but its shape is {X.shape}")
    if not X.shape[0]:
        raise ValueError(f"{name} holds no rows")
    kind = None
    if training and np.ndim(y) == 1:
        y, kind = _training_target(y, name, "y", regression)
    return Data(name, "npz", X, y, kind=kind)


def integer_labels(y: Any, source: str) -> Any:
    """Return the class labels of LIBSVM text as integers; raise for a fraction, which LIBSVM would truncate."""
    integers = y.astype(np.int64)
    if (integers != y).any():
        row = int(np.argmax(integers != y))
        raise ValueError(
            f"{source}: row {row + 1} has the label {y[row]:g}, but classes are integers; "
            "for regression use -s 3 or -s 4"
        )
    return integers


def order_of_appearance(y: Any) -> list[int]:
    """Return the classes in LIBSVM's order: by first appearance, except that +1 precedes −1."""
    labels, first = np.unique(y, return_index=True)
    order: list[int] = labels[np.argsort(first)].tolist()
    return [1, -1] if order == [-1, 1] else order
