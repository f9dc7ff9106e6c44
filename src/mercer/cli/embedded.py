"""The data sets that come with scikit-learn, for trying mercer without a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from sklearn import datasets

TITLES = {
    "breast_cancer": "breast cancer Wisconsin (diagnostic)",
    "digits": "handwritten digits, 8 × 8 pixels",
    "wine": "wine recognition, three growers",
    "iris": "Fisher's iris",
}


@dataclass(frozen=True)
class Embedded:
    """A labelled table; ``y`` holds the names of the classes."""

    name: str
    title: str
    X: NDArray[Any]
    y: NDArray[Any]


def embedded(name: str) -> Embedded:
    """One of the data sets in `TITLES`."""
    bunch = getattr(datasets, f"load_{name}")()
    return Embedded(name, TITLES[name], bunch.data, bunch.target_names.astype(str)[bunch.target])
