"""Tables in files: the columns of a CSV or Parquet file with their names, and cells that should be numbers."""

from __future__ import annotations

import csv
import io
from importlib.util import find_spec
from typing import Any

import numpy as np

from mercer.arrays import Floats
from mercer.optional import require
from mercer.tables.dialect import Dialect, decoded, separator_of, with_holes, with_points
from mercer.tables.frame import frame_of
from mercer.tables.units import from_text, to_text, without_units


def read_csv(content: bytes, name: str, asked: Dialect, before: Dialect) -> tuple[list[str], list[Any], Dialect]:
    """The names in the first line, the texts below each of them, and how the file is written.

    What is not asked for is read off the file, or, if that does not tell, was so `before`.
    """
    text, encoding = decoded(content, name, asked.encoding, before.encoding)
    mark = asked.separator or separator_of(text, name, before.separator)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    try:
        header = [title.strip() for title in next(rows, [])]
        if not header:
            raise ValueError(f"{name} is empty; its first line must name the columns")
        repeated = [title for title in header if header.count(title) > 1]
        if repeated:
            raise ValueError(f"{name}: the column {repeated[0]!r} stands there twice; rename one of the two")
        body = []
        for row in rows:
            if len(row) != len(header):
                if not row:
                    continue  # an empty line
                raise ValueError(
                    f"{name}:{rows.line_num}: {len(row)} fields, but {len(header)} columns are named, separated by "
                    f"{mark!r}; is another meant (--separator)?"
                )
            body.append(row)
    except csv.Error as error:
        raise ValueError(f"{name}:{rows.line_num}: {error}; is a quotation mark missing?") from None
    texts: list[Any] = [list(column) for column in zip(*body, strict=True)] if body else [[] for _ in header]
    na = asked.na or before.na
    plain, units = without_units(header, with_holes(texts, na), name, from_text(before.units))
    columns, decimal = with_points(header, plain, name, asked.decimal, before.decimal)
    return header, columns, Dialect(mark, decimal, encoding, to_text(units), na)


def read_parquet(source: Any) -> tuple[list[str], list[Any]]:
    """The names of the columns, and the columns; by pyarrow, or by polars where only that is installed."""
    if find_spec("pyarrow") is None and find_spec("polars") is not None:
        frame = frame_of(require("polars", "reading Parquet").read_parquet(source))
    else:
        frame = frame_of(require("pyarrow.parquet", "reading Parquet").read_table(source))
    return frame.names, frame.columns


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
