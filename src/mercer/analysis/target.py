"""What is to be learnt of a column: classes or numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_MOST_CLASSES = 20  # different whole numbers that may be classes


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


def expect_two_of_each(y: Any, source: str) -> None:
    """Raise ValueError where there is one class only, or a class has a single row."""
    labels, counts = np.unique(y, return_counts=True)
    if len(labels) > 1 and counts.min() < 2:
        lonely = str(labels[np.argmin(counts)])
        quantity = "; if the target is a quantity, machine='svr' learns it" if labels.dtype.kind in "iuf" else ""
        raise ValueError(
            f"{source}: the class {lonely!r} has a single row, which cannot be both trained on and held out; "
            f"leave it out or add rows{quantity}"
        )
