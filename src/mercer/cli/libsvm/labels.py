"""Labels of LIBSVM text: integers, in the order in which they first appear."""

from __future__ import annotations

from typing import Any

import numpy as np


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
