"""The joint multi-class machines of Crammer and Singer (2001) and of Weston and Watkins (1999).

With one function f_k(x) = ⟨w_k, φ(x)⟩ + b_k per class and the excess e_ik = f_k(x_i) + 1 − [k = y_i], both minimise

    ½ Σ_k ‖w_k‖² + Σ_i C_i loss_i

    Crammer–Singer    loss_i = max_k (e_ik − e_{i,y_i})             = max_k (1 − [k = y_i] + f_k(x_i) − f_{y_i}(x_i))
    Weston–Watkins    loss_i = Σ_{k≠y_i} max(0, e_ik − e_{i,y_i})   = Σ_{k≠y_i} max(0, 1 − (f_{y_i}(x_i) − f_k(x_i)))

The duals differ in their bounds only. With multipliers α_ik ≥ 0 for k ≠ y_i, and β_ik = −α_ik, β_{i,y_i} = Σ_k α_ik,

    maximise  Σ_i β_{i,y_i} − ½ Σ_k β_k'(K + shift) β_k
    subject to  Crammer–Singer  Σ_k α_ik ≤ C_i,      Weston–Watkins  α_ik ≤ C_i

so that Σ_k β_ik = 0 for every sample. The gradient of the dual is −e up to a constant per sample. The biases are

    none           b = 0, shift = 0
    regularised    ½ Σ_k b_k² joins the objective: the kernel k + 1, shift = 1 and b_k = Σ_i β_ik
    balanced       free, as for the binary machine: shift = 0 and one equality per class, Σ_i β_ik = 0, whose multiplier
                   is b_k (Σ_k b_k = 0, because only differences of the f_k matter)

The margin is 1, as in Crammer and Singer and in LIBLINEAR. In Weston and Watkins and in BSVM it is 2: their machine at
C is ours at C/2 with f doubled, and predicts the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.samples.arrays import Floats, Indices

# Relative distances from its bound within which a multiplier, and the sum of a sample's multipliers, count as on it.
_MULTIPLIER_TOLERANCE = 8 * float(np.finfo(float).eps)
_SUM_TOLERANCE = 1e-13


@dataclass(frozen=True, eq=False)
class JointProblem:
    """A joint multi-class problem: labels 0 … n_classes − 1, a bound per sample, the machine and its bias.

    `shared` is True if the multipliers of a sample share its bound (Crammer–Singer), False if each has this bound
    (Weston–Watkins). `b` is the part of the biases that does not follow from β: the multipliers of the balanced problem
    once they are known.
    """

    y: Indices
    C: Floats
    n_classes: int
    shared: bool
    shift: float = 0.0
    balanced: bool = False
    b: Floats | None = None

    def __post_init__(self) -> None:
        if len(self.y) != len(self.C):
            raise ValueError(f"y has {len(self.y)} samples but C has {len(self.C)}: they must agree")
        if len(self.y) and not (self.y.min() >= 0 and self.y.max() < self.n_classes):
            raise ValueError(f"labels must be between 0 and {self.n_classes - 1}")
        if not (np.isfinite(self.C) & (self.C > 0)).all():
            raise ValueError("every C must be finite and positive")

    @property
    def n(self) -> int:
        return len(self.y)

    def offsets(self, beta: Floats) -> Floats:
        """Return the biases b_k, one per class."""
        fixed_b = np.zeros(self.n_classes) if self.b is None else self.b
        return np.asarray(fixed_b + self.shift * beta.sum(axis=0) if self.shift else fixed_b)

    def excess(self, u: Floats, b: Floats, rows: Indices | None = None) -> Floats:
        """Return the excess e of the given rows, or of all; `u` is Kβ on these rows."""
        y = self.y if rows is None else self.y[rows]
        e: Floats = u + (b + 1.0)
        e[np.arange(len(y)), y] -= 1.0
        return e

    def movable(self, beta: Floats, rows: Indices | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return masks of the β that may fall, and that may rise, while others of the same sample compensate."""
        y, C = (self.y, self.C) if rows is None else (self.y[rows], self.C[rows])
        label = np.arange(len(y)), y
        if self.shared:
            down, up = np.ones(beta.shape, dtype=bool), beta < 0
            up[label] = beta[label] < C
        else:
            # Each β moves by itself, and the β of the label moves in the opposite direction.
            down, up = beta > -C[:, None], beta < 0
            down[label] = up[label] = False
        return down, up

    def within_bounds(self, beta: Floats, rows: Indices | None = None) -> Floats:
        """Return β with its multipliers clipped to their bounds and each label's β as their sum.

        As a rule this moves β by a few roundings. A multiplier that reaches a bound up to rounding is set exactly to
        it. If the multipliers of a sample share a bound, their sum is set to it instead, and they are scaled.
        """
        y, C = (self.y, self.C) if rows is None else (self.y[rows], self.C[rows])
        label = np.arange(len(y)), y
        alpha = np.maximum(-beta, 0.0)
        alpha[label] = 0.0
        alpha[alpha <= _MULTIPLIER_TOLERANCE * C[:, None]] = 0.0
        if not self.shared:
            alpha = np.where(alpha >= (1 - _MULTIPLIER_TOLERANCE) * C[:, None], C[:, None], alpha)
        total = alpha.sum(axis=1)
        if self.shared:
            at_bound = total >= C * (1 - _SUM_TOLERANCE)
            alpha[at_bound] *= (C[at_bound] / total[at_bound])[:, None]
            total = np.where(at_bound, C, total)
        beta = -alpha
        beta[label] = total
        return beta

    def violations(self, beta: Floats, e: Floats, rows: Indices | None = None, error: Floats | float = 0.0) -> Floats:
        """Return each sample's KKT violation: the largest difference of gradients that a feasible move could exploit.

        With a bound `error` on the error of e, the result is the largest violation within that error.
        """
        down, up = self.movable(beta, rows)
        highest, lowest = e + error, e - error
        top = np.where(down, highest, -np.inf).max(axis=1)
        bottom = np.where(up, lowest, np.inf).min(axis=1)
        if self.shared:
            return np.asarray(top - bottom)
        y = self.y if rows is None else self.y[rows]
        label = np.arange(len(y)), y
        return np.asarray(np.maximum(np.maximum(top - lowest[label], highest[label] - bottom), 0.0))

    def losses(self, e: Floats, error: Floats | float = 0.0) -> Floats:
        """Return C_i loss_i of each sample, the largest for any e within the error."""
        label = np.arange(self.n), self.y
        errors = np.broadcast_to(error, e.shape)
        x = e - e[label][:, None] + (errors + errors[label][:, None])
        x[label] = 0.0
        excess = np.maximum(x, 0.0)
        return np.asarray(self.C * (excess.max(axis=1) if self.shared else excess.sum(axis=1)))

    def gap_terms(self, beta: Floats, e: Floats) -> Floats:
        """Return each sample's part of the gap, C_i loss_i − Σ_k α_ik (e_ik − e_{i,y_i}), as a sum of terms ≥ 0."""
        label = np.arange(self.n), self.y
        if self.shared:
            slack = e.max(axis=1)[:, None] - e
            alpha = -beta
            alpha[label] = self.C - beta[label]
            return np.asarray((alpha * slack).sum(axis=1))
        x = e - e[label][:, None]  # 0 for the label
        return np.asarray(((self.C[:, None] + beta) * np.maximum(x, 0.0) + beta * np.minimum(x, 0.0)).sum(axis=1))
