"""Minimisation of any convex loss over the kernel's space, with a penalty on the norm.

minimise  Σ w_p ℓ(z_p, (Af)_p) + λΩ(‖f‖)     over f = Σ_j c_j k(x_j, ·) + b

Usually A is the identity, so that the loss is a sum over samples, and Ω(‖f‖) = ‖f‖² = c'Kc. By the representer theorem
(Igel, theorem 4.3) no other f does better, for every loss of the values at the samples and every increasing Ω.
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
    """The arrays of one problem; y = ±1 for a classification loss.

    `combine` is A as a CSR matrix, or None for the identity; y and weight have an entry for each of its rows. A problem
    with such a matrix has no bias.
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
        """True if the penalty is λ‖f‖²."""
        return type(self.penalty) is SquaredNorm

    def apply_combine(self, f: Floats) -> Floats:
        """Return Af, the values that the loss depends on."""
        return f if self.combine is None else np.asarray(self.combine @ f)

    def apply_transpose(self, g: Floats) -> Floats:
        """Return A'g: the gradient with respect to f if the gradient with respect to Af is g."""
        return g if self.combine is None else np.asarray(self.combine.T @ g)

    def value(self, t: Floats) -> float:
        """Return the loss Σ w_p ℓ(z_p, t_p)."""
        return inner(self.weight, self.loss.value(self.y, t))

    def gradient(self, t: Floats) -> Floats:
        """Return the gradient g = wℓ′, one entry for each of t."""
        return np.asarray(self.weight * self.loss.gradient(self.y, t))

    def curvature(self, t: Floats) -> Floats:
        """Return the curvature wℓ″, one entry for each of t."""
        return np.asarray(self.weight * self.loss.curvature(self.y, t))
