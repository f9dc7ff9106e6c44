"""Read tables from CSV and Parquet files, and the target column as classes or numbers."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from mercer.runtime.optional import require
from mercer.samples.arrays import Floats, Indices
from mercer.tables import dialect
from mercer.tables.cells import is_missing, plain_numbers
from mercer.tables.dialect import INTEGER, NUMBER, PADDED, UNKNOWN, Dialect
from mercer.tables.frame import Frame, frame_of

_MOST_COLUMNS = 100_000


@dataclass(frozen=True)
class Table:
    """A table read from a file: its columns by name, its dialect, and its cells as written."""

    header: list[str]
    columns: list[Any]  # texts, numbers, or any values of a Parquet file
    dialect: Dialect
    cells: list[Any]


def read_frame(path: str | os.PathLike[str], *, texts: Collection[str] = (), sheet: str | None = None) -> Frame:
    """Read a table from a CSV or Parquet file; columns in `texts` stay texts even if all their cells are numbers."""
    file = Path(path)
    if file.suffix.lower() in (".parquet", ".pq"):
        table = read_parquet(file)
    else:
        table = read_csv(file.read_bytes(), str(file), UNKNOWN, UNKNOWN, texts)
    return Frame(table.header, table.columns)


def read_csv(
    content: bytes,
    name: str,
    requested: Dialect,
    before: Dialect,
    texts_of: Collection[str] | None = None,
    target: str | None = None,
) -> Table:
    """Read a CSV file whose first line names the columns.

    Columns become numbers if all cells are; columns in `texts_of` and the target stay texts, and so do all columns if
    `texts_of` is None. Settings that `requested` leaves open are detected in the file, else taken from `before`. A
    target loses its unit only if it has more than 20 different values, since names of classes may look like units.
    """
    text, encoding = dialect.decode_text(content, name, requested.encoding, before.encoding)
    mark = requested.separator or dialect.detect_separator(text, name, before.separator)
    header, cells = _split_columns(text, mark, name)
    na = requested.na or before.na
    texts = list(dialect.blank_marked_cells(cells, na))
    kept = header if texts_of is None else (*texts_of, target)
    plain = [None if title in kept else plain_numbers(column) for title, column in zip(header, texts, strict=True)]
    known = dialect.units_from_text(before.units)
    slow = [
        k
        for k, title in enumerate(header)
        if plain[k] is None
        and (texts_of is None or title in known or title not in kept or (title == target and len(set(texts[k])) > 20))
    ]
    without, units = dialect.strip_units([header[k] for k in slow], [texts[k] for k in slow], name, known)
    for k, column in zip(slow, without, strict=True):
        texts[k] = column
    are_plain = [values is not None for values in plain]
    columns, decimal = dialect.with_decimal_points(header, texts, name, requested.decimal, before.decimal, are_plain)
    for k, title in enumerate(header):
        if columns[k] is not texts[k] or texts[k] is not cells[k]:  # the texts have changed
            plain[k] = None if title in kept else plain_numbers(columns[k])
        columns[k] = columns[k] if plain[k] is None else plain[k]
    return Table(header, columns, Dialect(mark, decimal, encoding, dialect.units_to_text(units), na), cells)


def _split_columns(text: str, mark: str, name: str) -> tuple[list[str], list[Any]]:
    """Return the names in the first line, and the texts below each of them."""
    columns = _unquoted_cells(text, mark) or _quoted_cells(text, mark, name)
    header = [column[0].strip() for column in columns]
    if not header:
        raise ValueError(f"{name} is empty; its first line must name the columns")
    if len(header) > _MOST_COLUMNS:
        raise ValueError(
            f"{name} has {len(header):,} columns, but a table may have at most {_MOST_COLUMNS:,}; write the data as "
            "LIBSVM text, or read it into an array in Python"
        )
    counts = Counter(header)
    repeated = [title for title in header if counts[title] > 1]
    if repeated:
        raise ValueError(f"{name}: the column {repeated[0]!r} occurs twice; rename one of the two")
    return header, [column[1:] for column in columns]


def _unquoted_cells(text: str, mark: str) -> list[list[str]] | None:
    """Split a text without quotation marks into columns; return None if lines differ in their number of cells.

    One split of the whole text takes a third of the time of Python's csv reader.
    """
    text = text.replace("\r\n", "\n").removesuffix("\n")
    if '"' in text or "\r" in text or not mark.isascii():
        return None
    letters = np.frombuffer(text.encode(), dtype=np.uint8)
    ends = np.append(np.flatnonzero(letters == ord("\n")), len(letters))
    before = np.searchsorted(np.flatnonzero(letters == ord(mark)), ends)  # number of marks before the end of each line
    width = int(before[0]) + 1
    if width < 2 or (np.diff(before) != width - 1).any():
        return None
    cells = text.replace("\n", mark).split(mark)
    if max(map(len, cells)) > csv.field_size_limit():
        return None  # Python's reader refuses the cell, and names its line
    return [cells[k::width] for k in range(width)]


def _quoted_cells(text: str, mark: str, name: str) -> list[list[str]]:
    """Split any text into columns; raise ValueError if a line has fewer or more cells than the first."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    body: list[list[str]] = []
    try:
        for row in rows:
            if not body or len(row) == len(body[0]):
                body.append(row)
            elif row:  # else an empty line
                raise ValueError(
                    f"{name}:{rows.line_num}: {len(row)} fields, but {len(body[0])} columns are named, separated by "
                    f"{mark!r}; is the separator another one (--separator)?"
                )
    except csv.Error as error:
        raise ValueError(f"{name}:{rows.line_num}: {error}; is a quotation mark missing?") from None
    return [list(column) for column in zip(*body, strict=True)]


def read_parquet(source: Any, na: str | None = None) -> Table:
    """Read a Parquet file by pyarrow, or by polars if only that is installed."""
    if find_spec("pyarrow") is None and find_spec("polars") is not None:
        frame = frame_of(require("polars", "reading Parquet").read_parquet(source))
    else:
        frame = frame_of(require("pyarrow.parquet", "reading Parquet").read_table(source))
    return Table(frame.names, dialect.blank_marked_cells(frame.columns, na), Dialect(na=na), frame.columns)


def numbers(column: Any, name: str, title: str, remedy: str) -> Floats:
    """Return a column as finite numbers; the error names the first other cell and ends with the remedy."""
    try:
        values = np.asarray(column, dtype=np.float64)
        spelt = getattr(column, "dtype", None) is None or column.dtype.kind not in "biuf"
        sound = not (spelt and any(isinstance(item, str) and "_" in item for item in column))
    except (TypeError, ValueError):
        sound = False
    if not sound:
        row, text = next((i, item) for i, item in enumerate(column, 1) if not is_number(item))
        if text is None or (isinstance(text, str) and not text.strip()):
            raise ValueError(f"{name}: row {row} of the column {title!r} is empty; fill or drop such rows")
        raise ValueError(
            f"{name}: row {row} of the column {title!r} holds {text!r:.40}, which is not a number; "
            f"{'write decimals with a point' if _has_decimal_comma(text) else remedy}"
        )
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise ValueError(f"{name}: row {row + 1} of the column {title!r} is {column[row]!r}; fill or drop such rows")
    return values


def is_number(item: Any) -> bool:
    """Return whether a cell is a number, or the text of one; 1_000 is Python syntax and no number in a table."""
    try:
        float(item)
    except (TypeError, ValueError):
        return False
    return not (isinstance(item, str) and "_" in item)


def _has_decimal_comma(text: Any) -> bool:
    return isinstance(text, str) and text.count(",") == 1 and is_number(text.replace(",", "."))


def classes_in(column: Any, name: str, title: str) -> Any:
    """Return the class of each row: integers if all cells are, else numbers, else names.

    Cells such as 007 are names, and so are integers beyond int64: as numbers, different cells could become one class.
    """
    expect_complete(column, name, title)
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return column
    texts = [str(item).strip() for item in column]
    distinct = set(texts)
    if any(len(text.splitlines()) > 1 for text in distinct):
        broken = next(row for row, text in enumerate(texts) if len(text.splitlines()) > 1)
        raise ValueError(
            f"{_cell(name, broken, title)} holds {texts[broken]!r:.40}, a name with a line break, but files of "
            "predictions have one line for each row; rename the class"
        )
    if all(INTEGER.fullmatch(text) for text in distinct):
        whole = np.iinfo(np.int64)
        if all(whole.min <= int(text) <= whole.max for text in distinct):
            return np.array([int(text) for text in texts], dtype=np.int64)
    elif all(NUMBER.fullmatch(text) and not PADDED.match(text) for text in distinct):
        values = np.array([float(text) for text in texts])
        # float64 distinguishes all integers below 2^53; cells with an exponent are numbers, not names.
        if not any(abs(float(text)) >= 2**53 and "e" not in text.lower() for text in distinct):
            return values
    return np.array(texts)


def expect_complete(column: Any, name: str, title: str) -> None:
    """Raise ValueError with the row numbers if a target has missing values."""
    missing = _missing_rows(column)
    if not len(missing):
        return
    cell = column[missing[0]]
    shown = ", ".join(str(row + 1) for row in missing[1:5])
    more = f" and {len(missing) - 5:,} more" if len(missing) > 5 else ""
    others = f", as in row{'s' * (len(missing) > 2)} {shown}{more}" if len(missing) > 1 else ""
    blank = cell is None or (isinstance(cell, str) and not cell.strip())
    problem = "is empty" if blank else f"holds {cell!r}, which means a missing value"
    raise ValueError(f"{_cell(name, missing[0], title)} {problem}{others}; fill or drop such rows")


def known_targets(column: Any, answers: Any, regression: bool, name: str, title: str) -> tuple[Indices, Any]:
    """Return the rows whose target is known, and these targets, for a comparison with a model's predictions."""
    rows = np.setdiff1d(np.arange(len(column)), _missing_rows(column))
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return rows, column[rows]
    if regression:
        return rows, numbers([column[row] for row in rows], name, title, "a regression is compared with numbers")
    targets = np.empty(len(rows), dtype=object)
    targets[:] = [_like_prediction(str(column[row]).strip(), answers.dtype.kind) for row in rows]
    return rows, targets


def _like_prediction(text: str, kind: str) -> Any:
    """Return a number if the model predicts numbers and the text is one; otherwise the text."""
    if kind not in "iuf" or not NUMBER.fullmatch(text):
        return text
    return int(text) if text.lstrip("+-").isdecimal() else float(text)


def _missing_rows(column: Any) -> Indices:
    """Return the rows whose cell `is_missing`."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "biu":
        return np.empty(0, dtype=np.intp)
    if isinstance(column, list) and not any(map(is_missing, set(column))):
        return np.empty(0, dtype=np.intp)
    return np.array([row for row, item in enumerate(column) if is_missing(item)], dtype=np.intp)


def _cell(name: str, row: int, title: str) -> str:
    return f"{name}: row {row + 1} of the column {title!r}"
