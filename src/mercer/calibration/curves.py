"""The curve from decision values to probabilities: one for each plane between classes, and classes from planes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mercer.arrays import Flags, Floats, Indices
from mercer.calibration.coupling import couple
from mercer.calibration.isotonic import fit_steps
from mercer.calibration.sigmoid import Sigmoids, fit_sigmoids
from mercer.calibration.temperature import fit_softmax, fit_temperature
from mercer.calibration.venn_abers import fit_venn_abers
from mercer.data.labels import REST, Pair, between, every_pair


class Curves(Protocol):
    """P of the positive side of every plane."""

    def probabilities(self, f: Floats) -> Floats:
        """From decision values, both with a column for each plane."""

    def of_plane(self, k: int, f: Floats) -> Floats:
        """P of the positive side of plane k, from its decision values f."""


FitCurves = Callable[[Floats, Flags, Floats, Indices], Curves]
METHODS: dict[str, FitCurves] = {
    "sigmoid": fit_sigmoids,
    "isotonic": fit_steps,
    "temperature": fit_temperature,
    "venn-abers": fit_venn_abers,
}


@dataclass(frozen=True, eq=False)
class ClassProbabilities:
    """Probabilities of classes from the decision values of the planes between them."""

    curves: Curves
    n_classes: int
    against_rest: bool

    def __call__(self, f: Floats) -> Floats:
        """A column for each class."""
        p = self.curves.probabilities(f)
        if self.n_classes == 2:
            return np.column_stack([1.0 - p[:, 0], p[:, 0]])
        if not self.against_rest:
            return couple(p, self.n_classes)
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / self.n_classes)

    def scores(self, f: Floats) -> Floats:
        """How well a sample fits each class: its least probability against another one, or that against the rest.

        One against one, the planes of a class are enough for its score.
        """
        p = self.curves.probabilities(f)
        if self.n_classes == 2:
            return np.column_stack([-f[:, 0], f[:, 0]])
        if self.against_rest:
            return p
        out = np.ones((len(f), self.n_classes))
        for column, (first, second) in enumerate(every_pair(self.n_classes)):
            out[:, first] = np.minimum(out[:, first], p[:, column])
            out[:, second] = np.minimum(out[:, second], 1.0 - p[:, column])
        return out

    def own_scores(self, f: Floats, codes: Indices) -> Floats:
        """How well each sample fits its own class; only the planes of that class are asked."""
        if self.n_classes == 2 or self.against_rest:
            return self.scores(f)[np.arange(len(f)), codes]
        out = np.ones(len(f))
        members = [np.flatnonzero(codes == k) for k in range(self.n_classes)]
        for column, (first, second) in enumerate(every_pair(self.n_classes)):
            rows = np.concatenate([members[first], members[second]])
            p = self.curves.of_plane(column, f[rows, column])
            out[rows] = np.minimum(out[rows], np.where(codes[rows] == first, p, 1.0 - p))
        return out


def fit_curves(method: str, f: Floats, codes: Indices, weight: Floats, pairs: list[Pair], k: int) -> ClassProbabilities:
    """The curves of all planes, each from the decision values of the samples that it separates."""
    against_rest = pairs[0][1] == REST
    if method == "temperature" and against_rest and k > 2:
        counted = weight > 0
        softmax = fit_softmax(f[counted], codes[counted], weight[counted])
        return ClassProbabilities(softmax, k, against_rest)
    values, positive, weights, starts = [], [], [], [0]
    for column, pair in enumerate(pairs):
        rows, sides = between(pair, codes)
        rows, sides = rows[weight[rows] > 0], sides[weight[rows] > 0]
        values.append(f[rows, column])
        positive.append(sides > 0)
        weights.append(weight[rows])
        starts.append(starts[-1] + len(rows))
    parts = (np.concatenate(values), np.concatenate(positive), np.concatenate(weights))
    curves = METHODS[method](*parts, np.array(starts[:-1]))
    return ClassProbabilities(curves, k, against_rest)


def libsvm_probabilities(machine: Any, X: Any) -> Floats:
    """Class probabilities of a machine with the sigmoids of LIBSVM's -b 1, P = 1 / (1 + exp(A f + B)) for each pair.

    They are those of the command line but for the last digits: LIBSVM ends its search for coupled ones early.
    """
    curves = Sigmoids(-np.asarray(machine.probA_), -np.asarray(machine.probB_))
    return ClassProbabilities(curves, len(machine.classes_), against_rest=False)(machine._decision(X))
