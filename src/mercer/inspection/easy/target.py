"""What is to be learnt of a column: classes or numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.tables.dialect import looks_numeric

_MOST_CLASSES = 20  # different whole numbers that may be classes
_FEWEST = 10  # rows, of which folds within folds have two each
_SQUARES = 1e150  # numbers whose squares float64 has


@dataclass(frozen=True)
class Kind:
    """Whether numbers are learnt, and why, where that was guessed."""

    is_regression: bool
    told: str = ""


def kind_of(column: Any, machine: str) -> Kind:
    """What the values of a target ask for: classes, or numbers if they have fractions or many different values."""
    if machine in ("svc", "svr"):
        return Kind(machine == "svr")
    values = np.asarray(column)
    if values.dtype.kind not in "iuf":
        return Kind(False)
    distinct = np.unique(values)
    if (distinct % 1 != 0).any():
        return Kind(True, "a regression, since the target has fractions; machine='svc' makes classes of them")
    if len(distinct) <= _MOST_CLASSES:
        return Kind(False)
    told = (
        f"a regression, since the target has {len(distinct):,} different numbers; machine='svc' makes classes of them"
    )
    return Kind(True, told)


def expect_enough(y: Any, is_regression: bool, source: str) -> None:
    """ValueError where a target has too few rows, or too few of a class, to search on some and judge on others."""
    values, counts = np.unique(y, return_counts=True)
    if len(values) == 1:
        raise ValueError(
            f"{source}: the target is {str(values[0])!r} in every row, so there is nothing to learn; name another"
        )
    if len(y) < _FEWEST:
        raise ValueError(
            f"{source}: {len(y)} rows are too few to search on some and judge on others, which takes {_FEWEST}; "
            "mercer.tabular(estimator) and mercer train need no search"
        )
    if is_regression:
        if not np.abs(y).max() < _SQUARES:
            row = int(np.argmax(np.abs(y)))
            raise ValueError(f"{source}: row {row + 1} of the target is {y[row]:g}, which has no square; correct it")
        return
    expect_two_of_each(y, source)
    if len(values) == 2 and counts.min() == 2:
        raise ValueError(
            f"{source}: the class {str(values[np.argmin(counts)])!r} has 2 rows, but to search on some and judge on "
            "others takes 3; add rows, or train without a search: mercer.tabular(estimator), mercer train"
        )


def expect_two_of_each(y: Any, source: str) -> None:
    """Raise ValueError where one of several classes has a single row."""
    labels, counts = np.unique(y, return_counts=True)
    if len(labels) > 1 and counts.min() < 2:
        lonely = str(labels[np.argmin(counts)])
        odd = [str(label) for label in labels if not looks_numeric(str(label))]
        if 0 < len(odd) < len(labels) / 2:
            words = ", ".join(map(repr, odd[:3])) + (f" and {len(odd) - 3} more" if len(odd) > 3 else "")
            raise ValueError(
                f"{source}: the target holds {words} beside numbers, and so each number is a class, of which "
                f"{lonely!r} has a single row; if the target is a quantity, leave out the rows with {words}"
            )
        quantity = "; if the target is a quantity, machine='svr' learns it" if labels.dtype.kind in "iuf" else ""
        raise ValueError(
            f"{source}: the class {lonely!r} has a single row, which cannot be both trained on and held out; "
            f"leave it out or add rows{quantity}"
        )
