"""Increasing penalties Ω(‖f‖) on the norm of a function (Igel, theorem 4.3).

Users can write their own: any object with two methods of a number r ≥ 0:

    value(r)        Ω(r), increasing and convex for r ≥ 0
    derivative(r)   Ω′(r); where it jumps, as at r = 0, any value between the two sides

The representer theorem asks only that Ω increases. A proof of the minimum asks that it is convex too, as f ↦ Ω(‖f‖) is
then.
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
    """What a machine needs from a penalty: two functions of r = ‖f‖. A class of your own needs no base."""

    def value(self, r: float) -> float:
        """Ω(r), increasing and convex."""

    def derivative(self, r: float) -> float:
        """Ω′(r), positive for r > 0."""


@dataclass(frozen=True)
class SquaredNorm:
    """‖f‖²."""

    def value(self, r: float) -> float:
        return r * r

    def derivative(self, r: float) -> float:
        return 2.0 * r


@dataclass(frozen=True)
class Norm:
    """‖f‖, which makes f exactly 0 where λ is large (Igel, section 2.2)."""

    def value(self, r: float) -> float:
        return r

    def derivative(self, r: float) -> float:
        return 1.0


PENALTIES: dict[str, Penalty] = {"squared_norm": SquaredNorm(), "norm": Norm()}


@dataclass(frozen=True)
class Own:
    """A user's penalty, infinite where it overflows, as that of `math.exp`."""

    penalty: Penalty

    def value(self, r: float) -> float:
        return _or_inf(self.penalty.value, r)

    def derivative(self, r: float) -> float:
        return _or_inf(self.penalty.derivative, r)


def _or_inf(function: Callable[[float], float], r: float) -> float:
    try:
        with np.errstate(over="ignore"):
            return float(function(r))
    except OverflowError:
        return math.inf


def is_known_penalty(penalty: Any) -> bool:
    """Whether it is one of the penalties above, which are increasing and convex; of any other only its author knows."""
    return type(penalty) in (SquaredNorm, Norm)


def check_penalty(penalty: Own) -> None:
    """Compare a user's derivative with differences of the value, from 10⁻³ to 10³; both must rise."""
    last = 0.0
    for r in np.geomspace(1e-3, 1e3, 61).tolist():
        step = 1e-5 * r
        below, above, slope = penalty.value(r - step), penalty.value(r + step), penalty.derivative(r)
        if not all(map(math.isfinite, (below, above, slope))):
            if r > 1:  # such as exp(r)
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
        found = (above - below) / (2 * step)
        noise = 1e-9 * (abs(above) + abs(below)) / step  # what cancels in the difference
        if abs(found - slope) > 1e-3 * slope + noise:
            raise ValueError(
                f"penalty.derivative(r) is {slope:.6g} at r={r:.6g}, but differences of penalty.value say {found:.6g}; "
                "correct the derivative"
            )
        last = slope
