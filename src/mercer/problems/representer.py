"""Any convex loss of a function from the kernel's space, with a price on its norm.

minimise  Σ w_i ℓ(y_i, f(x_i)) + λ c'Kc     over f = Σ_j c_j k(x_j, ·) + b
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.arrays import Floats, inner
from mercer.losses import Loss


@dataclass(frozen=True, eq=False)
class RepresenterProblem:
    """The arrays of one problem; y = ±1 where the loss is one of classification."""

    y: Floats
    weight: Floats
    loss: Loss
    lam: float
    bias: bool

    def value(self, f: Floats) -> float:
        """Σ w_i ℓ(y_i, f_i)."""
        return inner(self.weight, self.loss.value(self.y, f))

    def gradient(self, f: Floats) -> Floats:
        """g = wℓ′, one entry per sample."""
        return np.asarray(self.weight * self.loss.gradient(self.y, f))

    def curvature(self, f: Floats) -> Floats:
        """wℓ″, one entry per sample."""
        return np.asarray(self.weight * self.loss.curvature(self.y, f))
