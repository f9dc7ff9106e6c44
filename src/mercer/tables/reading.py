"""Tables in files: the columns of a CSV or Parquet file with their names, and the one that is to be predicted."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from mercer.runtime.optional import require
from mercer.samples.arrays import Floats, Indices
from mercer.tables import dialect
from mercer.tables.cells import is_missing, plain_numbers
from mercer.tables.dialect import INTEGER, NUMBER, PADDED, Dialect
from mercer.tables.frame import frame_of

_MOST_COLUMNS = 100_000


@dataclass(frozen=True)
class Table:
    """The columns of a file by name, how it is written, and its cells as they stand there."""

    header: list[str]
    columns: list[Any]  # of texts, numbers, or whatever a Parquet file holds
    dialect: Dialect
    cells: list[Any]


def read_csv(
    content: bytes,
    name: str,
    asked: Dialect,
    before: Dialect,
    texts_of: Collection[str] | None = None,
    target: str | None = None,
) -> Table:
    """The columns under the names in the first line: texts, or, unless they are among `texts_of`, also numbers.

    What is not asked for is read off the file, or, if that does not tell, was so `before`. Names of classes keep what
    looks like a unit: a target loses it if it has more values than there are likely to be classes.
    """
    text, encoding = dialect.decoded(content, name, asked.encoding, before.encoding)
    mark = asked.separator or dialect.separator_of(text, name, before.separator)
    header, cells = _cells_of(text, mark, name)
    na = asked.na or before.na
    texts = list(dialect.with_holes(cells, na))
    kept = header if texts_of is None else (*texts_of, target)
    plain = [None if title in kept else plain_numbers(column) for title, column in zip(header, texts, strict=True)]
    known = dialect.from_text(before.units)
    slow = [
        k
        for k, title in enumerate(header)
        if plain[k] is None
        and (texts_of is None or title in known or title not in kept or (title == target and len(set(texts[k])) > 20))
    ]
    without, units = dialect.without_units([header[k] for k in slow], [texts[k] for k in slow], name, known)
    for k, column in zip(slow, without, strict=True):
        texts[k] = column
    are_plain = [values is not None for values in plain]
    columns, decimal = dialect.with_points(header, texts, name, asked.decimal, before.decimal, are_plain)
    for k, title in enumerate(header):
        if columns[k] is not texts[k] or texts[k] is not cells[k]:  # it is written otherwise now
            plain[k] = None if title in kept else plain_numbers(columns[k])
        columns[k] = columns[k] if plain[k] is None else plain[k]
    return Table(header, columns, Dialect(mark, decimal, encoding, dialect.to_text(units), na), cells)


def _cells_of(text: str, mark: str, name: str) -> tuple[list[str], list[Any]]:
    """The names in the first line, and the texts below each of them."""
    found = _unquoted_cells(text, mark) or _quoted_cells(text, mark, name)
    header = [column[0].strip() for column in found]
    if not header:
        raise ValueError(f"{name} is empty; its first line must name the columns")
    if len(header) > _MOST_COLUMNS:
        raise ValueError(
            f"{name} has {len(header):,} columns, and a table may have {_MOST_COLUMNS:,}, since each is looked at by "
            "itself; write so many as LIBSVM text, or read them into an array in Python"
        )
    counts = Counter(header)
    repeated = [title for title in header if counts[title] > 1]
    if repeated:
        raise ValueError(f"{name}: the column {repeated[0]!r} stands there twice; rename one of the two")
    return header, [column[1:] for column in found]


def _unquoted_cells(text: str, mark: str) -> list[list[str]] | None:
    """The columns of a text without quotation marks, all of whose lines have the same number of cells; else None.

    It is cut all at once, in a third of the time that Python's reader takes.
    """
    text = text.replace("\r\n", "\n").removesuffix("\n")
    if '"' in text or "\r" in text or not mark.isascii():
        return None
    letters = np.frombuffer(text.encode(), dtype=np.uint8)
    ends = np.append(np.flatnonzero(letters == ord("\n")), len(letters))
    before = np.searchsorted(np.flatnonzero(letters == ord(mark)), ends)  # marks up to the end of each line
    width = int(before[0]) + 1
    if width < 2 or (np.diff(before) != width - 1).any():
        return None
    cells = text.replace("\n", mark).split(mark)
    if max(map(len, cells)) > csv.field_size_limit():
        return None  # which Python's reader refuses with the line
    return [cells[k::width] for k in range(width)]


def _quoted_cells(text: str, mark: str, name: str) -> list[list[str]]:
    """The columns of any text; ValueError for a line with fewer or more cells than the first."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    body: list[list[str]] = []
    try:
        for row in rows:
            if not body or len(row) == len(body[0]):
                body.append(row)
            elif row:  # else an empty line
                raise ValueError(
                    f"{name}:{rows.line_num}: {len(row)} fields, but {len(body[0])} columns are named, separated by "
                    f"{mark!r}; is another meant (--separator)?"
                )
    except csv.Error as error:
        raise ValueError(f"{name}:{rows.line_num}: {error}; is a quotation mark missing?") from None
    return [list(column) for column in zip(*body, strict=True)]


def read_parquet(source: Any, na: str | None = None) -> Table:
    """The columns of a Parquet file; by pyarrow, or by polars where only that is installed."""
    if find_spec("pyarrow") is None and find_spec("polars") is not None:
        frame = frame_of(require("polars", "reading Parquet").read_parquet(source))
    else:
        frame = frame_of(require("pyarrow.parquet", "reading Parquet").read_table(source))
    return Table(frame.names, dialect.with_holes(frame.columns, na), Dialect(na=na), frame.columns)


def numbers(column: Any, name: str, title: str, remedy: str) -> Floats:
    """A column of finite numbers; the error names the first cell that holds none, and ends with the remedy."""
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
    """Whether it is a number, or the text of one; 1_000 is Python's spelling and not a table's."""
    try:
        float(item)
    except (TypeError, ValueError):
        return False
    return not (isinstance(item, str) and "_" in item)


def _has_decimal_comma(text: Any) -> bool:
    return isinstance(text, str) and text.count(",") == 1 and is_number(text.replace(",", "."))


def classes_in(column: Any, name: str, title: str) -> Any:
    """The class of each row: integers, else numbers, else names, whatever all cells are.

    Cells such as 007 are names, and so are integers too long for a machine's: read as numbers, different ones would
    become the same class.
    """
    expect_whole(column, name, title)
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return column
    texts = [str(item).strip() for item in column]
    distinct = set(texts)
    if any(len(text.splitlines()) > 1 for text in distinct):
        broken = next(row for row, text in enumerate(texts) if len(text.splitlines()) > 1)
        raise ValueError(
            f"{_cell(name, broken, title)} holds {texts[broken]!r:.40}, a name with a line break, but a file of "
            "predictions has one line for each row; rename the class"
        )
    if all(INTEGER.fullmatch(text) for text in distinct):
        whole = np.iinfo(np.int64)
        if all(whole.min <= int(text) <= whole.max for text in distinct):
            return np.array([int(text) for text in texts], dtype=np.int64)
    elif all(NUMBER.fullmatch(text) and not PADDED.match(text) for text in distinct):
        values = np.array([float(text) for text in texts])
        # Below 2^53 float64 tells all integers apart; what is written with an exponent is no name.
        if not any(abs(float(text)) >= 2**53 and "e" not in text.lower() for text in distinct):
            return values
    return np.array(texts)


def expect_whole(column: Any, name: str, title: str) -> None:
    """Raise ValueError, which names the rows, where a target's cell is empty."""
    missing = _missing_rows(column)
    if not len(missing):
        return
    cell = column[missing[0]]
    shown = ", ".join(str(row + 1) for row in missing[1:5])
    more = f" and {len(missing) - 5:,} more" if len(missing) > 5 else ""
    others = f", and so on in row{'s' * (len(missing) > 2)} {shown}{more}" if len(missing) > 1 else ""
    blank = cell is None or (isinstance(cell, str) and not cell.strip())
    told = "is empty" if blank else f"holds {cell!r}, which stands for no value"
    raise ValueError(f"{_cell(name, missing[0], title)} {told}{others}; fill or drop such rows")


def known_truth(column: Any, answers: Any, regression: bool, name: str, title: str) -> tuple[Indices, Any]:
    """The rows whose truth the file tells, and their truths, to be compared with the answers of a model."""
    rows = np.setdiff1d(np.arange(len(column)), _missing_rows(column))
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return rows, column[rows]
    if regression:
        return rows, numbers([column[row] for row in rows], name, title, "a regression is compared with numbers")
    truth = np.empty(len(rows), dtype=object)
    truth[:] = [_as_answered(str(column[row]).strip(), answers.dtype.kind) for row in rows]
    return rows, truth


def _as_answered(text: str, kind: str) -> Any:
    """A number, where the model answers with numbers and the text is one; otherwise the text."""
    if kind not in "iuf" or not NUMBER.fullmatch(text):
        return text
    return int(text) if text.lstrip("+-").isdecimal() else float(text)


def _missing_rows(column: Any) -> Indices:
    """The rows whose cell is blank, NA or the like, None or NaN."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "biu":
        return np.empty(0, dtype=np.intp)
    if isinstance(column, list) and not any(map(is_missing, set(column))):
        return np.empty(0, dtype=np.intp)
    return np.array([row for row, item in enumerate(column) if is_missing(item)], dtype=np.intp)


def _cell(name: str, row: int, title: str) -> str:
    return f"{name}: row {row + 1} of the column {title!r}"
