"""Data that the commands read: LIBSVM text, CSV, .npz, Parquet, standard input, and the sets of scikit-learn."""

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

from mercer.cli.formats import TITLES, format_of, is_packed
from mercer.cli.machines import AUTO
from mercer.files.libsvm_text import content_of, read_labelled_text
from mercer.inspection.easy.target import Kind, kind_of
from mercer.samples.arrays import is_sparse
from mercer.tables.dialect import UNKNOWN, Dialect
from mercer.tables.frame import Frame
from mercer.tables.reading import Table, classes_in, expect_whole, is_number, numbers, read_csv, read_parquet


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
    dialect: Dialect = UNKNOWN
    table: Table | None = None  # of a CSV or Parquet file: all columns, as they stand there
    kind: Kind | None = None  # what y is, where training asked
    digest: str = ""  # of a CSV file: two files that have the same hold the same rows

    @property
    def title(self) -> str:
        """What a person calls it."""
        return TITLES[self.source] if self.form == "embedded" else self.source


def embedded(name: str) -> Data:
    """One of the sets in `TITLES`; its classes are names."""
    from sklearn import datasets  # half a second that files need not wait for

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
    asked: Dialect = UNKNOWN,
    before: Dialect = UNKNOWN,
    texts: Collection[str] = (),
) -> Data:
    """Read a data file; ``-`` is standard input.

    Training needs a target, of numbers for a regression; None lets it decide which it is. Prediction does without, and
    takes from a table only the columns ``wanted``, where the model knows them by name. A table is an array of numbers,
    or, whatever it holds, a `Frame`; a CSV file is written as ``asked``, or as it seems, or as one was ``before``. Its
    columns called ``texts`` stay texts even if all cells are numbers, as levels of a category do: 1.10 is not 1.1.
    """
    form = format_of(path, form)
    name = "standard input" if path == "-" else path
    source: Any = path
    if path == "-":
        source = io.BytesIO(sys.stdin.buffer.read())
    elif Path(path).is_fifo():  # such as bash's <(command), in which nobody can go back
        source = io.BytesIO(Path(path).read_bytes())
    elif is_packed(path):
        source = io.BytesIO(content_of(path))
    if target is not None and form in ("libsvm", "npz"):
        where = "the first word of each line" if form == "libsvm" else "the array y"
        raise ValueError(
            f"--target names a column of a table, but {name} has no names: its targets are {where}; if "
            "it is a table, say so: --format csv"
        )
    if form == "libsvm":
        if source is not path:
            source.name = name
        text = read_labelled_text(source, first_index=first_index)
        if text.queries is not None:
            raise ValueError(
                f"{name} has qid: fields, which are for ranking: mercer svm_learn -z p, or RankSVM in Python"
            )
        return Data(name, form, text.X, text.y)
    if form == "npz":
        return _read_npz(source, name, training, regression)
    digest = ""
    if form == "parquet":
        table = read_parquet(source, asked.na or before.na)
    else:
        content = Path(path).read_bytes() if source is path else source.getvalue()
        if form == "tsv" and asked.separator is None:
            asked = replace(asked, separator="\t")
        table = read_csv(content, name, asked, before, texts if as_frame else None, target)
        digest = blake2b(content, digest_size=12).hexdigest()
    header, columns = table.header, table.columns
    if not len(columns[0]):
        raise ValueError(f"{name} holds no rows, only the names of its columns")
    target = _checked_target(name, header, target, training)
    y = None if target is None else columns[header.index(target)]
    names = [title for title in header if title != target]
    if not names:
        raise ValueError(f"{name} has no column besides the target {target!r}")
    if as_frame:
        names = names if training else header  # the model takes what it knows, if somebody calls that the truth, too
        found = dict(zip(header, columns, strict=True))
        X: Any = Frame(names, [found[title] for title in names])
    else:
        names = names if wanted is None else list(wanted)
        truth = "" if target else ", or, if it holds the truth, name it with --target"
        X = _matrix(name, header, columns, names, truth)
    kind = None
    if training and target is not None:
        y, kind = _target(y, name, target, regression)
    return Data(name, form, X, y, names, target, table.dialect, table, kind, digest)


def _target(column: Any, name: str, title: str, regression: bool | None) -> tuple[Any, Kind]:
    if regression:
        expect_whole(column, name, title)
        told = "regression needs numbers: choose another target, or another machine"
        return numbers(column, name, title, told), Kind(True)
    y = classes_in(column, name, title)
    kind = kind_of(y, AUTO) if regression is None else Kind(False)
    return (y.astype(np.float64) if kind.is_regression else y), kind


def _checked_target(name: str, header: list[str], target: str | None, training: bool) -> str | None:
    """The target, if the table has it, which training needs."""
    if training and target not in header:
        told = f"{', '.join(map(repr, header))}{_header_hint(header)}"
        if target is None:
            raise ValueError(f"name the column to learn with --target: {name} has {told}")
        raise ValueError(f"{name} has no column {target!r}; it has {told}")
    return target if target in header else None


def _matrix(name: str, header: list[str], columns: list[Any], names: list[str], truth: str) -> Any:
    """An array of the columns called `names`, which must be numbers."""
    missing = [title for title in names if title not in header]
    if missing:
        raise ValueError(
            f"{name} lacks the column{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))} that the model was "
            f"trained on; it has {', '.join(map(repr, header))}{_header_hint(header)}"
        )
    remedy = f"encode the column or leave it out{truth}"
    return np.column_stack([numbers(columns[header.index(title)], name, title, remedy) for title in names])


def _header_hint(header: list[str]) -> str:
    """Where the names are numbers, the first line was none of names; a single one may be several."""
    if len(header) == 1 and " " in header[0]:
        return "; if blanks or another mark separate its cells, name it with --separator"
    return "; its first line must name the columns" if any(is_number(title) for title in header) else ""


def _read_npz(source: Any, name: str, training: bool, regression: bool | None) -> Data:
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
    kind = None
    if training and np.ndim(y) == 1:
        y, kind = _target(y, name, "y", regression)
    return Data(name, "npz", X, y, kind=kind)


def integer_labels(y: Any, source: str) -> Any:
    """Labels of classification in LIBSVM text: integers, which LIBSVM would make of any number by cutting it off."""
    whole = y.astype(np.int64)
    if (whole != y).any():
        row = int(np.argmax(whole != y))
        raise ValueError(
            f"{source}: row {row + 1} has the label {y[row]:g}, but classes are integers; "
            "for regression use -s 3 or -s 4"
        )
    return whole


def order_of_appearance(y: Any) -> list[int]:
    """LIBSVM's order of the classes: as they first appear, except that +1 stands before −1."""
    labels, first = np.unique(y, return_index=True)
    order: list[int] = labels[np.argsort(first)].tolist()
    return [1, -1] if order == [-1, 1] else order
