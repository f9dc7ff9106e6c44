"""Decide whether a target column holds classes or numbers, and check that it has enough rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.tables.dialect import looks_numeric

_MOST_CLASSES = 20  # different whole numbers that may be classes
_FEWEST_ROWS = 10  # rows; nested folds then have two each
_LARGEST_ROOT = 1e150  # below this a square is finite in float64


@dataclass(frozen=True)
class TargetKind:
    """Kind of a target: classes or numbers, with the reason if it was guessed."""

    is_regression: bool
    reason: str = ""


def target_kind(column: Any, machine: str) -> TargetKind:
    """Return the kind of a target: numbers if it holds fractions or many different numbers, otherwise classes."""
    if machine in ("svc", "svr"):
        return TargetKind(machine == "svr")
    values = np.asarray(column)
    if values.dtype.kind not in "iuf":
        return TargetKind(False)
    distinct = np.unique(values)
    if (distinct % 1 != 0).any():
        return TargetKind(True, "a regression, since the target has fractions")
    if len(distinct) <= _MOST_CLASSES:
        return TargetKind(False)
    reason = f"a regression, since the target has {len(distinct):,} different numbers; "
    return TargetKind(True, f"{reason}machine='svc' treats its numbers as classes")


def check_enough_rows(y: Any, is_regression: bool, source: str) -> None:
    """Raise ValueError if a target has too few rows, overall or in a class, for a search and a test on other rows."""
    values, counts = np.unique(y, return_counts=True)
    if len(values) == 1:
        raise ValueError(
            f"{source}: the target is {str(values[0])!r} in every row, so there is nothing to learn; choose another"
        )
    if len(y) < _FEWEST_ROWS:
        raise ValueError(
            f"{source}: {len(y)} rows are too few for a search and a test on other rows, which need at least "
            f"{_FEWEST_ROWS}; mercer.tabular(estimator) and mercer train do without a search"
        )
    if is_regression:
        if not np.abs(y).max() < _LARGEST_ROOT:
            row = int(np.argmax(np.abs(y)))
            raise ValueError(f"{source}: row {row + 1} of the target is {y[row]:g}, too large to square; correct it")
        return
    if values.dtype.kind == "f" and (values % 1 != 0).any():
        fraction = values[np.argmax(values % 1 != 0)]
        raise ValueError(
            f"{source}: the target contains numbers such as {fraction:g}, which are not classes; use machine='svr', or "
            "write the classes as words"
        )
    check_class_sizes(y, source)
    if len(values) == 2 and counts.min() == 2:
        raise ValueError(
            f"{source}: the class {str(values[np.argmin(counts)])!r} has 2 rows, but a search and a test on "
            "other rows take 3; add rows, or train without a search: mercer.tabular(estimator), mercer train"
        )


def check_class_sizes(y: Any, source: str) -> None:
    """Raise ValueError if one of several classes has a single row."""
    labels, counts = np.unique(y, return_counts=True)
    if len(labels) > 1 and counts.min() < 2:
        rarest = str(labels[np.argmin(counts)])
        labels_without_digits = [str(label) for label in labels if not looks_numeric(str(label))]
        if 0 < len(labels_without_digits) < len(labels) / 2:
            words = ", ".join(map(repr, labels_without_digits[:3])) + (
                f" and {len(labels_without_digits) - 3} more" if len(labels_without_digits) > 3 else ""
            )
            raise ValueError(
                f"{source}: the target holds {words} beside numbers, so each number counts as a class, and "
                f"the class {rarest!r} has a single row; if the target is a quantity, remove the rows with {words}"
            )
        if np.count_nonzero(counts == 1) > len(y) / 2:
            raise ValueError(
                f"{source}: the target has {len(labels):,} different values in {len(y):,} rows, most of them in a "
                "single row, and so no classes that could be learned; choose another target"
                + ("; if the target is a quantity, use machine='svr'" if labels.dtype.kind in "iuf" else "")
            )
        quantity = "; if the target is a quantity, use machine='svr'" if labels.dtype.kind in "iuf" else ""
        raise ValueError(
            f"{source}: the class {rarest!r} has a single row, which cannot be both trained on and held out; "
            f"remove it or add rows of that class{quantity}"
        )
