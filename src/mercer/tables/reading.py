"""Read tables from CSV, Parquet, Arrow and Excel files, and the target column as classes or numbers."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from mercer.runtime.errors import GuessWarning, warn_user
from mercer.runtime.optional import require
from mercer.samples.arrays import Floats, Indices
from mercer.tables import dialect
from mercer.tables.cells import is_missing, plain_numbers
from mercer.tables.dialect import INTEGER, NUMBER, PADDED, TABLE_FORMATS, UNKNOWN, Dialect
from mercer.tables.frame import DecimalMarks, Frame, distinct_names, frame_of

_MOST_COLUMNS = 100_000
_OPENERS: Final[dict[str, Callable[[Any], Any]]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@dataclass(frozen=True, eq=False)
class Table:
    """A table read from a file.

    `columns` are those of `frame` before missing values were recognised: texts, numbers, or any values of a Parquet or
    Excel file. `cells` are as written, with marks of missing values that only this file has.
    """

    frame: Frame
    dialect: Dialect
    columns: list[Any]
    cells: list[Any]

    @property
    def header(self) -> list[str]:
        """Names of the columns."""
        return self.frame.names


def read_frame(path: str | os.PathLike[str], *, texts: Collection[str] = (), sheet: str | None = None) -> Frame:
    """Read a table from a file: CSV, Parquet, Arrow (Feather) or Excel, by the ending of its name.

    Columns in `texts` stay texts even if all their cells are numbers. `sheet` names a sheet of an Excel file; by
    default it is the first one.
    """
    file = Path(path)
    opener = _OPENERS.get(file.suffix.lower())
    form = TABLE_FORMATS.get((file.with_suffix("") if opener else file).suffix.lower())
    if form is None:
        raise ValueError(f"{file}: no table has this ending; mercer reads {', '.join(TABLE_FORMATS)}")
    if sheet is not None and form != "excel":
        raise ValueError(f"sheet={sheet!r} is for Excel files, but {file} is none: leave it out")
    if opener is None:
        content = file.read_bytes() if form in ("csv", "tsv") else b""
    else:
        with opener(file) as unpacked_file:
            content = unpacked_file.read()
    if form in ("csv", "tsv"):
        requested = Dialect(separator="\t") if form == "tsv" else UNKNOWN
        frame = read_csv(content, str(file), requested, UNKNOWN, texts).frame
    else:
        frame = read_stored(file if opener is None else io.BytesIO(content), form, str(file), sheet=sheet).frame
    if not len(frame):
        raise ValueError(f"{file} holds no rows, only the names of its columns")
    return frame


def read_csv(
    content: bytes,
    name: str,
    requested: Dialect,
    fallback: Dialect,
    texts_of: Collection[str] | None = None,
    target: str | None = None,
) -> Table:
    """Read a CSV file whose first line names the columns.

    A column becomes numbers if all its cells are numbers as Python writes them. Other columns stay texts, and so do the
    target and the columns in `texts_of`; without `texts_of`, all `columns` of the table stay texts. Settings that
    `requested` leaves open are detected in the file, else taken from `fallback`.
    """
    text, encoding = dialect.decode_text(content, name, requested.encoding, fallback.encoding)
    mark = requested.separator or dialect.detect_separator(text, name, fallback.separator)
    header, cells = _split_columns(text, mark, name)
    header, renamed = _distinct_header(header, name, target)
    na = requested.na or fallback.na
    columns = list(dialect.blank_marked_cells(cells, na))
    text_columns = (*(texts_of or ()), target)
    read_columns = list(columns)
    proven_marks: set[str] = set()
    for k, title in enumerate(header):
        values = None if title in text_columns else plain_numbers(columns[k])
        if values is None:
            continue
        point = dialect.point_in_numbers(columns[k])
        if point == ".":
            proven_marks.add(".")
        if point != "1.234":  # else other columns decide whether the points separate thousands
            read_columns[k] = values
    decimals = DecimalMarks(requested.decimal, frozenset(proven_marks), fallback.decimal)
    frame = Frame(header, read_columns, decimals=decimals)
    frame.renamed = renamed
    _expect_mark(requested.decimal, frame, name)
    detected_dialect = Dialect(mark, requested.decimal or frame.decimal, encoding, _units_as_text(frame, target), na)
    return Table(frame, detected_dialect, columns if texts_of is None else read_columns, cells)


def _units_as_text(frame: Frame, target: str | None) -> str | None:
    """Return the units of all columns as one text; the target has none if it holds names of classes such as 4g."""
    units = {name: frame.target(name)[1] if name == target else frame.unit(name) for name in frame.names}
    return dialect.units_to_text({name: unit for name, unit in units.items() if unit})


def _distinct_header(header: list[str], name: str, target: str | None) -> tuple[list[str], dict[str, str]]:
    """Number repeated names of columns; raise ValueError if the target is one of them."""
    titles, renamed = distinct_names(header)
    if target in renamed.values():
        raise ValueError(f"{name}: the column {target!r}, the target, occurs twice; rename one of the two")
    return titles, renamed


def _expect_mark(requested: str | None, frame: Frame, name: str) -> None:
    """Raise ValueError if no number has the requested decimal mark, and a column has the other one."""
    if requested is None or not frame.proven_decimal_marks() or requested in frame.proven_decimal_marks():
        return
    other = "." if requested == "," else ","
    raise ValueError(
        f"{name}: no number has the mark of --decimal {requested}: leave --decimal out, or say --decimal {other}"
    )


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
    # Number of marks before the end of each line.
    marks_before = np.searchsorted(np.flatnonzero(letters == ord(mark)), ends)
    width = int(marks_before[0]) + 1
    if width < 2 or (np.diff(marks_before) != width - 1).any():
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


def read_stored(
    source: Any, form: str, name: str, na: str | None = None, sheet: str | None = None, target: str | None = None
) -> Table:
    """Read a table from a Parquet, Arrow or Excel file, whose cells have types; `na` are further missing values."""
    if form == "excel":
        frame = _read_excel(source, name, sheet)
    else:
        frame = frame_of(_read_polars(source, form) if find_spec("polars") else _read_arrow(source, form))
    if target in frame.renamed.values():
        raise ValueError(f"{name}: the column {target!r}, the target, occurs twice; rename one of the two")
    cells = frame.columns
    columns = dialect.blank_marked_cells(cells, na)
    if na:
        frame = frame.with_columns(frame.names, columns)
    return Table(frame, Dialect(units=_units_as_text(frame, target), na=na), columns, cells)


def _read_polars(source: Any, form: str) -> Any:
    polars = require("polars", "reading Parquet")
    return polars.read_parquet(source) if form == "parquet" else polars.read_ipc(source)


def _read_arrow(source: Any, form: str) -> Any:
    if form == "parquet":
        return require("pyarrow.parquet", "reading Parquet").read_table(source)
    return require("pyarrow.feather", "reading Arrow").read_table(source)


def _read_excel(source: Any, name: str, sheet: str | None) -> Frame:
    """Read a sheet of a workbook: its first row names the columns."""
    calamine = require("python_calamine", "reading Excel")
    try:
        book = calamine.load_workbook(source)
    except (calamine.CalamineError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(f"{name} is no workbook that can be read: {error}") from None
    if sheet is not None and sheet not in book.sheet_names:
        raise ValueError(f"{name} has no sheet {sheet!r}; it has {', '.join(map(repr, book.sheet_names))}")
    filled_sheets = {}
    for title in book.sheet_names if sheet is None else [sheet]:
        rows = book.get_sheet_by_name(title).to_python(skip_empty_area=True)
        if any(map(any, rows)):
            filled_sheets[title] = rows
    if not filled_sheets:
        raise ValueError(f"{name} holds no cells; its first row must name the columns")
    title, rows = next(iter(filled_sheets.items()))
    if len(filled_sheets) > 1:
        others = ", ".join(map(repr, [sheet_name for sheet_name in filled_sheets if sheet_name != title]))
        warn_user(f"{name} has several sheets: read {title!r}, and not {others}; sheet=… names another", GuessWarning)
    header = [str(cell).strip() for cell in rows[0]]
    if 2 * header.count("") > len(header):
        raise ValueError(
            f"{name}: the first row of the sheet {title!r} must name the columns; delete the rows above it"
        )
    names, renamed = distinct_names(cell or f"Unnamed: {k}" for k, cell in enumerate(header))
    body = [row for row in rows[1:] if any(cell != "" for cell in row)]
    frame = Frame(names, [_column_of_cells([row[k] for row in body]) for k in range(len(names))])
    frame.renamed = renamed
    return frame


def _column_of_cells(cells: list[Any]) -> Any:
    """Return the cells of a sheet as numbers if all cells with a value are numbers, else as objects; None is empty."""
    filled_cells = [cell for cell in cells if cell != ""]
    if filled_cells and all(type(cell) in (int, float) for cell in filled_cells):
        values = np.array([np.nan if cell == "" else cell for cell in cells], dtype=np.float64)
        are_whole = (values % 1 == 0).all() and np.abs(values).max() < 2**53
        return values.astype(np.int64) if are_whole else values
    return [None if cell == "" else cell for cell in cells]


def numbers(column: Any, name: str, title: str, remedy: str) -> Floats:
    """Return a column as finite numbers; the error names the first other cell and ends with the remedy."""
    try:
        values = np.asarray(column, dtype=np.float64)
        is_text = getattr(column, "dtype", None) is None or column.dtype.kind not in "biuf"
        is_numeric = not (is_text and any(isinstance(item, str) and "_" in item for item in column))
    except (TypeError, ValueError):
        is_numeric = False
    if not is_numeric:
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
    texts = list(map(str.strip, map(str, column)))
    distinct = set(texts)
    if any(len(text.splitlines()) > 1 for text in distinct):
        k = next(row for row, text in enumerate(texts) if len(text.splitlines()) > 1)
        raise ValueError(
            f"{_describe_place(name, k, title)} holds {texts[k]!r:.40}, a name with a line break, but files "
            "of predictions have one line for each row; rename the class"
        )
    if all(INTEGER.fullmatch(text) for text in distinct):
        int64_range = np.iinfo(np.int64)
        if all(int64_range.min <= int(text) <= int64_range.max for text in distinct):
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
    row_numbers = ", ".join(str(row + 1) for row in missing[1:5])
    more_text = f" and {len(missing) - 5:,} more" if len(missing) > 5 else ""
    others = f", as in row{'s' * (len(missing) > 2)} {row_numbers}{more_text}" if len(missing) > 1 else ""
    is_blank = cell is None or (isinstance(cell, str) and not cell.strip())
    problem = "is empty" if is_blank else f"holds {cell!r}, which means a missing value"
    raise ValueError(f"{_describe_place(name, missing[0], title)} {problem}{others}; fill or drop such rows")


def known_targets(column: Any, answers: Any, regression: bool, name: str, title: str) -> tuple[Indices, Any]:
    """Return the rows whose target is known, and these targets, for a comparison with a model's predictions."""
    rows = np.setdiff1d(np.arange(len(column)), _missing_rows(column))
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return rows, column[rows]
    if regression:
        return rows, numbers([column[row] for row in rows], name, title, "a regression is compared with numbers")
    labels = [_like_prediction(str(column[row]).strip(), answers.dtype.kind) for row in rows]
    if labels and not any(isinstance(label, str) for label in labels):
        return rows, np.array(labels)
    targets = np.empty(len(rows), dtype=object)
    targets[:] = labels
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
    if isinstance(column, np.ndarray) and column.dtype.kind == "f":
        return np.flatnonzero(np.isnan(column))
    if isinstance(column, list) and not any(map(is_missing, set(column))):
        return np.empty(0, dtype=np.intp)
    return np.array([row for row, item in enumerate(column) if is_missing(item)], dtype=np.intp)


def _describe_place(name: str, row: int, title: str) -> str:
    return f"{name}: row {row + 1} of the column {title!r}"
