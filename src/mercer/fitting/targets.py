"""Targets of least squares as numbers, and classifiers that fit ±1 for each class against all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import ClassifierMixin

from mercer.arrays import Floats, Indices, freeze
from mercer.data.labels import class_weights, codes_among, read_labels, signs
from mercer.fitting.attached import ClassifierMethods
from mercer.fitting.kinds import Labels, fitted
from mercer.fitting.machine import Machine
from mercer.fitting.one_against_rest import OneAgainstRest


@dataclass(frozen=True, eq=False)
class Targets:
    """One column of numbers per output, and what else was learnt from y."""

    Y: Floats
    flat: bool = False  # whether y was a plain list of numbers
    classes: Any = None
    codes: Any = None  # each sample's class
    factor: Any = None  # each class's, on the weights of its samples


class SignClassifier(ClassifierMethods, OneAgainstRest, ClassifierMixin, Machine):  # type: ignore[misc]  # scikit-learn is untyped
    """A classifier that fits ±1: one output per class, or one for two classes."""

    FITTED = fitted(classes_=Labels(required=True))

    def _targets(self, y: Any, classes: Any = None) -> Targets:
        """±1 for each class; `classes` are those known before."""
        if classes is None:
            classes, codes = read_labels(y)
        else:
            codes = codes_among(classes, y)
        return Targets(signs(codes, len(classes)), classes=classes, codes=codes)

    def _weigh(self, target: Targets, codes: Indices, weight: Floats) -> tuple[Floats, Targets]:
        class_weights(None, target.classes, codes, weight)  # every class needs weight
        return weight, target

    def _conclude_targets(self, target: Targets) -> None:
        self.classes_ = freeze(target.classes)
