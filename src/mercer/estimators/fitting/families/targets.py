"""Targets of least squares as numbers, and base classes of regressors and classifiers fitted to them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin

from mercer.estimators.fitting.families.classifier import OneAgainstRest
from mercer.estimators.fitting.mixins import ClassifierMethods, MachineMethods, ScoresR2
from mercer.estimators.fitting.pipeline.machine import CERTIFIED, KernelChoice, Machine
from mercer.estimators.fitting.pipeline.state import Flag, fitted
from mercer.samples.arrays import Data, Floats, Indices, freeze
from mercer.samples.checks import outputs
from mercer.samples.engine import like_input
from mercer.samples.labels import class_weights, codes_among, read_labels, signs


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets as numbers, with one column per output, and the classes of a classifier."""

    Y: Floats
    flat: bool = False  # True if y was one-dimensional
    classes: Any = None
    codes: Any = None  # class index of each sample
    factor: Any = None  # factor on the sample weights for each class


@dataclass(eq=False, repr=False)
class OutputsMachine(MachineMethods, Machine):
    """Base class of machines with one column of targets per output; subclasses add how targets are read."""

    _FITTED = CERTIFIED

    _: KW_ONLY
    max_time: float | None = None
    kernel: KernelChoice = "rbf"
    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0
    bias: bool = True
    cache_size: float = 1000

    def _targets(self, y: ArrayLike | None, classes: np.ndarray | None = None) -> Targets:
        """Return the targets for y; `classes` are the classes of earlier samples, if any."""
        raise NotImplementedError

    def _conclude_targets(self, target: Targets) -> None:
        """Set the fitted attributes that depend on y alone."""
        raise NotImplementedError

    def _merge_codes(self, target: Targets) -> Any:
        """Return codes that are equal if samples with these targets may be merged; None allows it for all."""
        return None

    def _read(self, y: ArrayLike | None) -> tuple[Indices | None, Any]:
        """Return codes by which equal samples may be merged, and the targets as numbers."""
        target = self._targets(y)
        return self._merge_codes(target), target


class SeveralOutputs(MultiOutputMixin, ScoresR2, OutputsMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """Base class of regressors with one or several outputs."""

    _FITTED = fitted(_flat_=Flag(required=True))

    def _targets(self, y: ArrayLike | None, classes: np.ndarray | None = None) -> Targets:
        return Targets(*outputs(y))

    def _conclude_targets(self, target: Targets) -> None:
        """Set the fitted attributes that depend on y alone."""
        self._flat_ = target.flat

    @like_input
    def predict(self, X: Data) -> Floats:
        """Predict the target of each sample.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`. For a precomputed kernel, the kernel values with the training samples.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_outputs) if y had two dimensions
            Predictions f(x).
        """
        values = self._decision(X)
        return values[:, 0] if self._flat_ else values


class SignClassifier(ClassifierMethods, OneAgainstRest, OutputsMachine):
    """Base class of classifiers fitted to targets ±1, with one output for two classes, else one per class."""

    def _read(self, y: ArrayLike | None) -> tuple[Indices | None, Any]:
        return OutputsMachine._read(self, y)

    def _targets(self, y: ArrayLike | None, classes: np.ndarray | None = None) -> Targets:
        """Return targets ±1 for each class; `classes` are the classes of earlier samples, if any."""
        if classes is None:
            classes, codes = read_labels(y)
        else:
            codes = codes_among(classes, y)
        return Targets(signs(codes, len(classes)), classes=classes, codes=codes)

    def _weigh(self, target: Targets, codes: Indices, weight: Floats) -> tuple[Floats, Targets]:
        """Return the weights and the target unchanged, after a check that every class has weight."""
        class_weights(None, target.classes, codes, weight)  # raises if a class has no weight
        return weight, target

    def _conclude_targets(self, target: Targets) -> None:
        """Set the fitted attributes that depend on y alone."""
        self.classes_ = freeze(target.classes)


# --- targets of streams, whose classes or outputs are known after the first samples or the first pass ----------------


class StreamNumbers:
    """Reader of numerical targets of a stream, which must have the same number of outputs in every chunk.

    `read` returns the targets of a chunk as numbers with a row for each sample, and `encode` turns these into a column
    for each output. `settle` returns the targets that later chunks must agree with, with a Y of no rows.
    """

    def __init__(self) -> None:
        self._known_targets: Targets | None = None

    def read(self, y: ArrayLike) -> Floats:
        """Return the targets of a chunk as numbers, a row for each sample."""
        Y, flat = outputs(y)
        if self._known_targets is None:
            self._known_targets = Targets(Y[:0], flat)
        if (self._known_targets.flat, self._known_targets.Y.shape[1]) != (flat, Y.shape[1]):
            raise ValueError(f"y has shape {np.shape(y)}, unlike the chunks before it")
        return Y

    def settle(self) -> Targets:
        """Return the targets that later chunks must agree with, with a Y of no rows."""
        assert self._known_targets is not None
        return self._known_targets

    def encode(self, Y: Floats) -> Floats:
        return Y


class StreamLabels:
    """Reader of class labels of a stream, which are kept as numbers until all classes are known."""

    def __init__(self) -> None:
        self._seen_labels: Any = None
        self._classes: Any = None

    def read(self, y: ArrayLike) -> Floats:
        """Return the labels of a chunk as numbers in one column; raise ValueError for a label that came too late."""
        labels = np.asarray(y)
        if labels.ndim != 1:
            raise ValueError(f"y has shape {labels.shape}; labels must be one-dimensional")
        if labels.dtype.kind not in "biuf" or not np.isfinite(labels).all():
            raise ValueError("the labels of a stream must be finite numbers; encode strings first")
        if self._classes is None:
            self._seen_labels = np.union1d(labels[:0] if self._seen_labels is None else self._seen_labels, labels)
        else:
            unknown = labels[~np.isin(labels, self._classes)]
            if len(unknown):
                raise ValueError(
                    f"label {unknown[0]!r} was not among the first samples, whose classes are {self._classes.tolist()}"
                    "; give a callable that returns a fresh iterator, so that all labels can be seen first"
                )
        return labels.astype(np.float64)[:, None]

    def settle(self) -> Targets:
        """Fix the classes seen so far, and return targets for them with a Y of no rows."""
        self._classes = read_labels(self._seen_labels)[0]
        return Targets(signs(np.empty(0, dtype=np.intp), len(self._classes)), classes=self._classes)

    def encode(self, Y: Floats) -> Floats:
        return signs(np.searchsorted(self._classes, Y[:, 0]), len(self._classes))


StreamTargets = StreamNumbers | StreamLabels
