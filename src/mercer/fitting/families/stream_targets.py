"""Targets of a stream: all that is to be known of them is known after its first samples, or its first pass."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from mercer.arrays import Floats
from mercer.data.labels import read_labels, signs
from mercer.data.targets import outputs
from mercer.fitting.families.targets import Targets


class StreamTargets(Protocol):
    """A reader of the targets of one stream."""

    def read(self, y: Any) -> Floats:
        """The targets of a chunk as numbers, one row per sample."""
        ...

    def settle(self) -> Targets:
        """What has been learnt from the chunks so far, with a Y of no rows; later chunks must agree with it."""
        ...

    def encode(self, Y: Floats) -> Floats:
        """What was read, with one column per output."""
        ...


class StreamNumbers:
    """Numbers, as many in every chunk as in the first."""

    def __init__(self) -> None:
        self._known: Targets | None = None

    def read(self, y: Any) -> Floats:
        Y, flat = outputs(y)
        if self._known is None:
            self._known = Targets(Y[:0], flat)
        if (self._known.flat, self._known.Y.shape[1]) != (flat, Y.shape[1]):
            raise ValueError(f"y has shape {np.shape(y)}, unlike the chunks before it")
        return Y

    def settle(self) -> Targets:
        assert self._known is not None
        return self._known

    def encode(self, Y: Floats) -> Floats:
        return Y


class StreamLabels:
    """Labels, which travel as numbers until all classes are known."""

    def __init__(self) -> None:
        self._seen: Any = None
        self._classes: Any = None

    def read(self, y: Any) -> Floats:
        labels = np.asarray(y)
        if labels.ndim != 1:
            raise ValueError(f"y has shape {labels.shape}; labels must be one-dimensional")
        if labels.dtype.kind not in "biuf" or not np.isfinite(labels).all():
            raise ValueError("the labels of a stream must be finite numbers; encode strings first")
        if self._classes is None:
            self._seen = np.union1d(labels[:0] if self._seen is None else self._seen, labels)
        else:
            unknown = labels[~np.isin(labels, self._classes)]
            if len(unknown):
                raise ValueError(
                    f"label {unknown[0]!r} was not among the first samples, whose classes are {self._classes.tolist()}"
                    "; give a callable that returns a fresh iterator, so that all labels can be seen first"
                )
        return labels.astype(np.float64)[:, None]

    def settle(self) -> Targets:
        self._classes = read_labels(self._seen)[0]
        return Targets(signs(np.empty(0, dtype=np.intp), len(self._classes)), classes=self._classes)

    def encode(self, Y: Floats) -> Floats:
        return signs(np.searchsorted(self._classes, Y[:, 0]), len(self._classes))
