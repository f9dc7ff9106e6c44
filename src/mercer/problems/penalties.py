"""Increasing penalties Ω(‖f‖) on the norm of a function (Igel, theorem 4.3).

Users can write their own: any object with two methods of a number r ≥ 0:

    value(r)        Ω(r), increasing and convex for r ≥ 0
    derivative(r)   Ω′(r); where it jumps, as at r = 0, any value between the two sides

The representer theorem requires only that Ω increases. A proof of optimality requires that it is convex too: then
f ↦ Ω(‖f‖) is convex.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

__all__ = ["Norm", "Penalty", "SquaredNorm"]


@runtime_checkable
class Penalty(Protocol):
    """Penalty on the norm of f: two functions of r = ‖f‖. Your own class needs no base class."""

    def value(self, r: float) -> float:
        """Return Ω(r), increasing and convex."""

    def derivative(self, r: float) -> float:
        """Return Ω′(r), positive for r > 0."""


@dataclass(frozen=True)
class SquaredNorm:
    """The penalty ‖f‖²."""

    def value(self, r: float) -> float:
        return r * r

    def derivative(self, r: float) -> float:
        return 2.0 * r


@dataclass(frozen=True)
class Norm:
    """The penalty ‖f‖, which makes f exactly 0 if λ is large (Igel, section 2.2)."""

    def value(self, r: float) -> float:
        return r

    def derivative(self, r: float) -> float:
        return 1.0


PENALTIES: dict[str, Penalty] = {"squared_norm": SquaredNorm(), "norm": Norm()}


@dataclass(frozen=True)
class UserPenalty:
    """A user's penalty, infinite where its value or derivative overflows, as with `math.exp`."""

    penalty: Penalty

    def value(self, r: float) -> float:
        return _value_or_inf(self.penalty.value, r)

    def derivative(self, r: float) -> float:
        return _value_or_inf(self.penalty.derivative, r)


def _value_or_inf(function: Callable[[float], float], r: float) -> float:
    """Return function(r), or infinity if it overflows."""
    try:
        with np.errstate(over="ignore"):
            return float(function(r))
    except OverflowError:
        return math.inf


def is_known_penalty(penalty: Any) -> bool:
    """Return whether the penalty is one of this module's, which increase and are convex; a user's may not be."""
    return type(penalty) in (SquaredNorm, Norm)


def check_penalty(penalty: UserPenalty) -> None:
    """Raise if a user's derivative disagrees with differences of the value from 10⁻³ to 10³, or does not increase."""
    last = 0.0
    for r in np.geomspace(1e-3, 1e3, 61).tolist():
        step = 1e-5 * r
        value_below, value_above, slope = penalty.value(r - step), penalty.value(r + step), penalty.derivative(r)
        if not all(map(math.isfinite, (value_below, value_above, slope))):
            if r > 1:  # overflow, as of exp(r)
                return
            raise ValueError(f"penalty.value and penalty.derivative must be finite numbers, but are not at r={r:.6g}")
        if slope <= 0:
            raise ValueError(
                f"penalty.derivative(r) is {slope:.6g} at r={r:.6g}: a penalty must increase with the norm"
            )
        if slope < last * (1 - 1e-9):
            raise ValueError(
                f"penalty.derivative(r) falls from {last:.6g} to {slope:.6g} before r={r:.6g}: the penalty is not "
                "convex, and no gap would prove a minimum; give a convex one"
            )
        difference = (value_above - value_below) / (2 * step)
        noise = 1e-9 * (abs(value_above) + abs(value_below)) / step  # rounding left by cancellation in the difference
        if abs(difference - slope) > 1e-3 * slope + noise:
            raise ValueError(
                f"penalty.derivative(r) is {slope:.6g} at r={r:.6g}, but differences of penalty.value give "
                f"{difference:.6g}; correct the derivative"
            )
        last = slope
