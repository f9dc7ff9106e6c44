"""Lagrangian of a trained margin machine, with all its multipliers (docs/certificate.md, "The Lagrangian").

Igel, chapter 3; Li, section 2.2; Rosasco.

    L(w, b, ξ, α, r) = ½‖w‖² + Σ C_iξ_i − Σ α_i[y_i(⟨w, φ(x_i)⟩ + b) − 1 + ξ_i] − Σ r_iξ_i            1-norm slack
                       ½‖w‖² + ½Σ C_iξ_i² − Σ α_i[y_i(⟨w, φ(x_i)⟩ + b) − 1 + ξ_i]                     2-norm slack
                       ½‖w‖² − Σ α_i[y_i(⟨w, φ(x_i)⟩ + b) − 1]                                        hard margin

At the optimum, with r = C − α, it is a saddle point: no other multipliers ≥ 0 make it larger, no other (w, b, ξ) make
it smaller. Its largest value over multipliers is the primal value, its least over (w, b, ξ) the dual one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mercer.samples.arrays import Floats, Indices


@dataclass(frozen=True, eq=False, repr=False)
class Lagrangian:
    """Lagrangian L of a trained machine at its (w, b, ξ) and multipliers (α, r); a call evaluates it elsewhere.

    Values are plain float64; bounds on their rounding are in the certificate.

    Attributes
    ----------
    slack : {"l1", "l2", "none"}
        Form of the slack variables; "none" for the hard margin.
    rows : array of int
        Training row of each entry of the arrays below, in ascending order. Equal rows are one sample, whose C is the
        sum of theirs; rows without weight are left out.
    y, C : arrays
        Labels ±1, and the penalty C_i of each slack.
    alpha : array
        Multipliers of y_i f(x_i) ≥ 1 − ξ_i.
    f : array
        ⟨w, φ(x_i)⟩, without b.
    b : float
        Bias; 0 without one.
    free : bool
        True if the bias is free.
    square : float
        ‖w‖².
    """

    slack: str
    rows: Indices
    y: Floats
    C: Floats
    alpha: Floats
    f: Floats
    b: float
    free: bool
    square: float

    @property
    def xi(self) -> Floats:
        """Slacks ξ_i = max(0, 1 − y_i f(x_i)); 0 for the hard margin."""
        if self.slack == "none":
            return np.zeros(len(self.y))
        return np.asarray(np.maximum(0.0, 1.0 - self.y * (self.f + self.b)))

    @property
    def r(self) -> Floats:
        """Multipliers C_i − α_i of ξ_i ≥ 0 (Rosasco's ζ, Igel's β); 0 where ξ_i ≥ 0 is no constraint."""
        return self.C - self.alpha if self.slack == "l1" else np.zeros(len(self.y))

    def __call__(
        self,
        *,
        f: ArrayLike | None = None,
        square: float | None = None,
        b: float | None = None,
        xi: ArrayLike | None = None,
        alpha: ArrayLike | None = None,
        r: ArrayLike | None = None,
    ) -> float:
        """Return L at another w (given by its values f and ‖w‖²), b, ξ, α or r; the others are those of the fit."""
        if (f is None) != (square is None):
            raise ValueError("another w needs both its values f and its square ‖w‖², but only one of them was given")
        values, slacks, multipliers, slack_multipliers = (
            fitted if given is None else self._checked(given)
            for fitted, given in ((self.f, f), (self.xi, xi), (self.alpha, alpha), (self.r, r))
        )
        bias, half_square = self.b if b is None else float(b), 0.5 * (self.square if square is None else float(square))
        margins = self.y * (values + bias) - 1.0 + slacks
        return float(half_square + self._penalty(slacks) - multipliers @ margins - slack_multipliers @ slacks)

    def _checked(self, values: ArrayLike) -> Floats:
        """Return an array with one number per sample; raise ValueError otherwise."""
        array = np.asarray(values, dtype=np.float64)
        if array.shape != self.y.shape:
            raise ValueError(
                f"expected an array of {len(self.y)} numbers, one for each of `rows`, got shape {array.shape}"
            )
        return array

    def _penalty(self, slacks: Floats) -> float:
        """Return Σ C_iξ_i or ½Σ C_iξ_i², by the form of the slacks; 0 for the hard margin."""
        if self.slack == "none":
            return 0.0
        return float(self.C @ slacks if self.slack == "l1" else 0.5 * self.C @ slacks**2)

    @property
    def saddle(self) -> tuple[float, float, float]:
        """Least L over (w, b, ξ) at these multipliers, L, and the largest L over multipliers at this point.

        By the saddle-point inequalities all three are equal at the optimum; the first is the dual and the last the
        primal value. The first is −∞ where b is free and Σα_iy_i is not 0 up to rounding. For the hard
        margin, the last is that of the multiple of (w, b) with least margin 1, the shortest one without a violation.
        """
        squared_slack_term = 0.5 * float(np.sum(self.alpha**2 / self.C)) if self.slack == "l2" else 0.0
        least = float(self.alpha.sum()) - 0.5 * self.square - squared_slack_term
        is_balanced = abs(self.stationarity["b"]) <= 1e-9 * float(self.alpha.sum())
        upper = 0.5 * self.square + self._penalty(self.xi)
        if self.slack == "none":
            least_margin = float((self.y * (self.f + self.b)).min())
            upper = upper / least_margin**2 if least_margin > 0 else np.inf
        return least if is_balanced else -np.inf, self(), upper

    @property
    def stationarity(self) -> dict[str, float]:
        """∂L/∂b = −Σα_iy_i, and the largest |∂L/∂ξ_i|; ∂L/∂w = w − Σα_iy_iφ(x_i) is 0, as w is this sum."""
        gradient = self.alpha * 0.0
        if self.slack == "l1":
            gradient = self.C - self.alpha - self.r
        elif self.slack == "l2":
            gradient = self.C * self.xi - self.alpha
        return {"b": -float(self.y @ self.alpha) if self.free else 0.0, "ξ": float(np.abs(gradient).max(initial=0.0))}

    @property
    def complementarity(self) -> dict[str, Floats]:
        """Products α_i[y_i f(x_i) − 1 + ξ_i] and r_iξ_i, which are 0 at the optimum."""
        return {"α": self.alpha * (self.y * (self.f + self.b) - 1.0 + self.xi), "r": self.r * self.xi}

    @property
    def slater(self) -> float:
        """Least margin by which a point satisfies the constraints (Slater's condition); > 0 is strict feasibility.

        The point is (w, b, ξ + 1); for the hard margin it is (2w, 2b), so that the least y_i f(x_i) must exceed ½.
        """
        margins = self.y * (self.f + self.b)
        if self.slack == "none":
            return float(2.0 * margins.min() - 1.0)
        return float(np.minimum(margins + self.xi, self.xi + 1.0).min())

    def __repr__(self) -> str:
        lower, value, upper = self.saddle
        numbers = f"dual {lower:.10g}, L = {value:.10g}, primal {upper:.10g}, Slater {self.slater:.3g}"
        return f"Lagrangian({len(self.y)} samples: {numbers})"
