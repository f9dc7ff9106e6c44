"""Targets of least squares as numbers, and classifiers that fit ±1 for each class against all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from mercer.arrays import Floats, freeze
from mercer.data.labels import codes_among, read_labels, signs, winner
from mercer.fitting.kinds import Labels, fitted
from mercer.fitting.machine import Machine
from mercer.fitting.no_probabilities import Deciding


@dataclass(frozen=True, eq=False)
class Targets:
    """One column of numbers per output, and what else was learnt from y."""

    Y: Floats
    flat: bool = False  # whether y was a plain list of numbers
    classes: Any = None
    codes: Any = None  # each sample's class
    factor: Any = None  # each class's, on the weights of its samples


class OneAgainstAll(Deciding, ClassifierMixin, Machine):  # type: ignore[misc]  # scikit-learn is untyped
    """A classifier of one output per class (one in all for two classes), of which the largest wins."""

    FITTED = fitted(classes_=Labels(required=True))

    def _targets(self, y: Any, classes: Any = None) -> Targets:
        """±1 for each class; `classes` are those known before."""
        if classes is None:
            classes, codes = read_labels(y)
        else:
            codes = codes_among(classes, y)
        return Targets(signs(codes, len(classes)), classes=classes, codes=codes)

    def _conclude_targets(self, target: Targets) -> None:
        self.classes_ = freeze(target.classes)

    def decision_function(self, X: Any) -> Floats:
        """f(x) for two classes, positive for the second; one column per class for more."""
        values = self._decision(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """The class of each sample: the second of two where f(x) ≥ 0, of more the one with the largest f(x)."""
        won = winner(self._decision(X))
        return np.asarray(self.classes_[won])
