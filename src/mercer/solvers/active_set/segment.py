"""What a walk knows between two events: values and slopes, of all residuals or of those that may change sign soon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Floats, Indices


@dataclass(frozen=True, eq=False)
class Segment:
    """β of the free variables, b and all residuals from `t` on: a column with the values there, and one with slopes."""

    t: float
    x: Floats
    b: Floats
    rho: Floats
    near: Indices | None = None  # the variables whose residuals these are; None: all
    speed: float = math.nan  # ‖w'‖, from above

    def free_at(self, t: float) -> Floats:
        return np.asarray(self.x[:, 0] + (t - self.t) * self.x[:, 1])

    def rho_at(self, t: float) -> Floats:
        return np.asarray(self.rho[:, 0] + (t - self.t) * self.rho[:, 1])

    def b_at(self, t: float) -> float:
        return float(self.b[0] + (t - self.t) * self.b[1])


@dataclass(eq=False)
class Near:
    """Variables whose residuals are followed, their kernel values with the free ones, and how far w and b may still
    move until another residual could change its sign."""

    which: Indices
    rows: Floats
    w: float
    b: float

    def add_row(self, m: int, row: Floats, places: Any) -> bool:
        """The kernel values of a new free variable, if there is room."""
        if m >= len(self.rows):
            return False
        self.rows[m, : len(self.which)] = row[places[self.which]]
        return True

    def add(self, v: int, column: Floats) -> bool:
        """One more variable, if there is room."""
        if (self.which == v).any():
            return True
        if len(self.which) >= self.rows.shape[1]:
            return False
        self.rows[: len(column), len(self.which)] = column
        self.which = np.append(self.which, v)
        return True
