"""Minimisation of any convex loss over the kernel's space, with a penalty on the norm.

minimise  Σ w_p ℓ(z_p, (Af)_p) + λΩ(‖f‖)     over f = Σ_j c_j k(x_j, ·) + b

Usually A is the identity, so that the loss is a sum over samples, and Ω(‖f‖) = ‖f‖² = c'Kc. By the representer theorem
(Igel, theorem 4.3) no other f does better, for every loss of the values at the samples and every increasing Ω.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.problems.classification import soft_margin
from mercer.problems.dual_problem import DualProblem
from mercer.problems.losses import EpsilonInsensitive, Hinge, Loss, Pinball, has_corners
from mercer.problems.penalties import PENALTIES, Penalty, SquaredNorm
from mercer.problems.regression import epsilon_insensitive, quantile
from mercer.problems.tangents import Tangents
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

    @property
    def is_piecewise_linear(self) -> bool:
        """True if the loss is minimised by a dual."""
        return type(self.loss) in (Hinge, Pinball, EpsilonInsensitive, Tangents)

    def dual(self) -> DualProblem | None:
        """Return the dual for a piecewise linear loss and λ‖f‖², divided by 2λ; None for another problem.

            λ‖f‖² + Σ w_i ℓ(y_i, f(x_i))  =  2λ · [½‖f‖² + Σ C_i ℓ(y_i, f(x_i))],    C_i = w_i/2λ

        The signed dual variables β of the expression in brackets are the coefficients of f.
        """
        if not (self.squared and self.is_piecewise_linear):
            return None
        y, C, loss = self.y, self.weight / (2 * self.lam), self.loss
        if isinstance(loss, Tangents):
            dual = loss.dual(C)
        elif isinstance(loss, Hinge):
            dual = soft_margin(y, C)
        elif isinstance(loss, Pinball):
            dual = quantile(y, C, loss.tau)
        else:
            assert isinstance(loss, EpsilonInsensitive)
            dual = epsilon_insensitive(y, C, loss.epsilon) if loss.epsilon > 0 else quantile(y, 2 * C, 0.5)
        return dual if self.bias else dual.without_bias()

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
        """Return the curvature wℓ″, one entry for each of t; 0 for a loss with corners, which has none."""
        loss: Any = self.loss
        return np.zeros(len(t)) if has_corners(loss) else np.asarray(self.weight * loss.curvature(self.y, t))
