"""Classes that only y, only the weights or only `class_weight` knows: left out, and the user is told."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Floats
from mercer.data.labels import read_labels
from mercer.errors import warn_user


def without_weightless_classes(y: Any, weight: Floats) -> Any:
    """y as it is, or without the classes whose samples all have weight 0, if two others remain.

    So the bags of `BaggingClassifier` come, which draws samples by their weights. The samples of such a class have no
    influence, and are given the label of another one.
    """
    labels, codes = read_labels(y)
    gone = np.bincount(codes, weights=weight, minlength=len(labels)) == 0
    kept = np.flatnonzero(~gone)
    if not gone.any() or len(kept) < 2:
        return y
    names = ", ".join(map(repr, labels[gone].tolist()))
    warn_user(f"all samples of the classes {names} have weight 0: these classes are left out", UserWarning)
    return labels[np.where(gone[codes], kept[0], codes)]


def tell_unknown_classes(class_weight: dict[Any, Any], y: Any) -> None:
    """Warn of names in `class_weight` that no sample has, if a class that has samples is missing there.

    A part of the data, such as a fold, need not hold every class. With a class missing it may be a slip of the pen.
    """
    labels = read_labels(y)[0].tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown and any(label not in class_weight for label in labels):
        warn_user(
            f"class_weight names {unknown}, but the classes are {labels}: these weights are not used", UserWarning
        )
