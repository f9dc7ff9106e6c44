"""The column of a table that is to be predicted: names of classes, quantities, and cells that hold nothing."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mercer.arrays import Indices
from mercer.tables.cells import is_missing
from mercer.tables.reading import numbers
from mercer.tables.spelling import INTEGER, NUMBER, PADDED

_EXACT_IN_FLOAT64: Final = 2**53
_SHOWN_ROWS: Final = 5


def classes_in(column: Any, name: str, title: str) -> Any:
    """The class of each row: integers, else numbers, else names, whatever all cells are.

    Cells such as 007 are names, and so are integers too long for a machine's: read as numbers, different ones would
    become the same class.
    """
    expect_whole(column, name, title)
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return column
    texts = [str(item).strip() for item in column]
    broken = next((row for row, text in enumerate(texts) if len(text.splitlines()) > 1), None)
    if broken is not None:
        raise ValueError(
            f"{_cell(name, broken, title)} holds {texts[broken]!r:.40}, a name with a line break, but a file of "
            "predictions has one line for each row; rename the class"
        )
    distinct = set(texts)
    if all(INTEGER.fullmatch(text) for text in distinct):
        whole = np.iinfo(np.int64)
        if all(whole.min <= int(text) <= whole.max for text in distinct):
            return np.array([int(text) for text in texts], dtype=np.int64)
    elif all(NUMBER.fullmatch(text) and not PADDED.match(text) for text in distinct):
        values = np.array([float(text) for text in texts])
        if np.abs(values).max(initial=0) < _EXACT_IN_FLOAT64:
            return values
    return np.array(texts)


def expect_whole(column: Any, name: str, title: str) -> None:
    """Raise ValueError, which names the rows, where a target's cell is empty."""
    missing = _missing_rows(column)
    if not len(missing):
        return
    cell = column[missing[0]]
    shown = ", ".join(str(row + 1) for row in missing[1:_SHOWN_ROWS])
    more = f" and {len(missing) - _SHOWN_ROWS:,} more" if len(missing) > _SHOWN_ROWS else ""
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
    return np.array([row for row, item in enumerate(column) if is_missing(item)], dtype=np.intp)


def _cell(name: str, row: int, title: str) -> str:
    return f"{name}: row {row + 1} of the column {title!r}"
