"""Tables in files: the columns of a CSV or Parquet file with their names, and cells that should be numbers."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np

from mercer.arrays import Floats
from mercer.optional import require


def read_csv(content: bytes, name: str, tabs: bool) -> tuple[list[str], list[Any]]:
    """The names in the first line, and the texts below each of them."""
    text = _text(content, name)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if tabs else _delimiter(text.partition("\n")[0]))
    try:
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
    except csv.Error as error:
        raise ValueError(f"{name}:{rows.line_num}: {error}; is a quotation mark missing?") from None
    return header, list(zip(*body, strict=True)) if body else [() for _ in header]


def _text(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        seems = "it seems to be UTF-16" if wide else "it may be Latin-1 or Windows-1252"
        raise ValueError(
            f"{name}:{line}: byte 0x{content[error.start]:02x} is not UTF-8, which tables are read in; {seems}: "
            "save it as UTF-8, or convert it with iconv"
        ) from None


def _delimiter(first_line: str) -> str:
    """A comma, or, in a first line without any, the semicolon of spreadsheets that write 0,5 for a half, or a tab."""
    return next((mark for mark in (",", ";", "\t") if mark in first_line), ",")


def read_parquet(source: Any) -> tuple[list[str], list[Any]]:
    """The names of the columns, and the columns."""
    parquet = require("pyarrow.parquet", "reading Parquet")
    table = parquet.read_table(source)
    return list(table.column_names), [column.to_numpy() for column in table.columns]


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
