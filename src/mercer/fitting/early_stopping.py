"""Early stopping: the loss on a part of the samples that training does not see, and the iterates that were best."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.arrays import Floats, Indices, inner, take
from mercer.data.merging import Merged
from mercer.gram.gram import Gram
from mercer.solvers.pegasos import Iterates, LinearSpace


class Judge:
    """The validation part: its loss after each epoch, and the iterates that were best."""

    def __init__(self, model: Any, outputs: Callable[[Floats], Floats], signs: Floats, weight: Floats) -> None:
        self._model, self._outputs, self._signs = model, outputs, signs
        self._probability = weight / weight.sum()
        self._lowest, self._since = math.inf, 0
        self.losses: list[float] = []
        self.best: Iterates | None = None

    @classmethod
    def of(cls, model: Any, merged: Merged, gram: Gram | None, rows: Indices, held_out: Indices) -> Judge | None:
        if len(held_out) == 0:
            return None
        bias = model.bias == "regularized"
        if gram is None:
            outputs = LinearSpace(take(merged.X, held_out), bias=bias).outputs
        else:

            def outputs(w: Floats) -> Floats:
                coefficients = np.zeros(gram.n)
                coefficients[rows] = w
                return np.asarray(gram.product(coefficients, held_out) + float(bias) * w.sum())

        codes = merged.y[held_out]
        return cls(model, outputs, model._signs(codes), merged.weight[held_out] * model.class_weight_[codes])

    def is_tired_of(self, iterates: Iterates) -> bool:
        """Judge an epoch; whether the loss has not fallen for too long."""
        w = iterates.output(self._model.lam, self._model.average)
        hinge = [np.maximum(0.0, 1.0 - signs * self._outputs(w[k])) for k, signs in enumerate(self._signs)]
        loss = float(sum(inner(self._probability, part) for part in hinge))
        self.losses.append(loss)
        if self.best is None or loss < min(self.losses[:-1], default=math.inf):
            self.best = iterates.resized(slice(None))
        enough = loss < self._lowest - self._model.tol * len(w)
        self._lowest, self._since = (loss, 0) if enough else (self._lowest, self._since + 1)
        return bool(self._since >= self._model.n_iter_no_change)
