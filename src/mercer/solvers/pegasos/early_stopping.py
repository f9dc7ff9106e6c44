"""Early stopping: the loss on samples that training does not see, and the iterates with which it was lowest."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mercer.arrays import Floats, inner
from mercer.problems.pegasos import PegasosProblem
from mercer.solvers.pegasos.iterates import Iterates


class EarlyStopping:
    """The validation loss after each epoch: the mean hinge, summed over the machines.

    `outputs` computes ⟨w, φ(x_i)⟩ on the validation part, whose problem is `held_out`. Training should stop when the
    loss has not fallen by more than `tol` per machine for `patience` epochs.
    """

    def __init__(
        self,
        held_out: PegasosProblem,
        outputs: Callable[[Floats], Floats],
        average: str,
        tol: float,
        patience: int,
    ) -> None:
        self._held_out, self._outputs, self._average = held_out, outputs, average
        self._tol, self._patience = tol * len(held_out.signs), patience
        self._lowest, self._since = math.inf, 0
        self.losses: list[float] = []
        self.best: Iterates | None = None

    def should_stop(self, iterates: Iterates) -> bool:
        """Take an epoch's loss; whether it has not fallen for too long."""
        w = iterates.output(self._held_out.lam, self._average)
        loss = sum(self._mean_hinge(machine, w[machine]) for machine in range(len(w)))
        if self.best is None or loss < min(self.losses, default=math.inf):
            self.best = iterates.copy()
        self.losses.append(loss)
        fallen = loss < self._lowest - self._tol
        self._lowest, self._since = (loss, 0) if fallen else (self._lowest, self._since + 1)
        return self._since >= self._patience

    def _mean_hinge(self, machine: int, w: Floats) -> float:
        hinge = np.maximum(0.0, 1.0 - self._held_out.signs[machine] * self._outputs(w))
        return inner(self._held_out.probability, hinge)
