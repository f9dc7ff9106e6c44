"""Any convex loss of a function from the kernel's space, with a price on its norm.

minimise  Σ w_p ℓ(z_p, (Af)_p) + λΩ(‖f‖)     over f = Σ_j c_j k(x_j, ·) + b

Mostly A is the identity, a sum over samples, and Ω(‖f‖) = ‖f‖² = c'Kc. By the representer theorem (Igel, theorem 4.3)
no other f does better, whatever the loss is of the values at the samples, and for every increasing Ω.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.problems.losses import Loss
from mercer.problems.penalties import PENALTIES, Penalty, SquaredNorm
from mercer.samples.arrays import Floats, inner


@dataclass(frozen=True, eq=False)
class RepresenterProblem:
    """The arrays of one problem; y = ±1 where the loss is one of classification.

    `combine` is A as a CSR matrix, or None for the identity; y and weight have an entry for each of its rows. A problem
    with one has no bias.
    """

    y: Floats
    weight: Floats
    loss: Loss
    lam: float
    bias: bool
    penalty: Penalty = PENALTIES["squared_norm"]
    combine: Any = None

    @property
    def squared(self) -> bool:
        """Whether the penalty is λ‖f‖²."""
        return type(self.penalty) is SquaredNorm

    def of(self, f: Floats) -> Floats:
        """What the loss is of: Af."""
        return f if self.combine is None else np.asarray(self.combine @ f)

    def back(self, g: Floats) -> Floats:
        """A'g: the gradient by f of a loss whose gradient by Af is g."""
        return g if self.combine is None else np.asarray(self.combine.T @ g)

    def value(self, t: Floats) -> float:
        """Σ w_p ℓ(z_p, t_p)."""
        return inner(self.weight, self.loss.value(self.y, t))

    def gradient(self, t: Floats) -> Floats:
        """g = wℓ′, one entry for each of t."""
        return np.asarray(self.weight * self.loss.gradient(self.y, t))

    def curvature(self, t: Floats) -> Floats:
        """wℓ″, one entry for each of t."""
        return np.asarray(self.weight * self.loss.curvature(self.y, t))
