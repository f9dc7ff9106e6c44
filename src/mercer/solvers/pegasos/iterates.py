"""What the steps change, and the mean of the iterates that comes out: line 7."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Floats


@dataclass(eq=False)
class Iterates:
    """θ of several machines (rows) after t common steps, and Σ θ/t over these steps."""

    theta: Floats
    total: Floats
    marks: Floats  # `total` at the last two powers of two up to t
    norm2: Floats  # ‖θ‖² of each, where the steps kept it
    t: int

    @classmethod
    def zero(cls, machines: int, size: int) -> Iterates:
        shape = (machines, size)
        return cls(np.zeros(shape), np.zeros(shape), np.zeros((2, *shape)), np.zeros(machines), 0)

    def columns(self, which: Any) -> Iterates:
        """A copy with these columns."""
        parts = (self.theta[:, which], self.total[:, which], self.marks[:, :, which])
        theta, total, marks = (np.array(part, order="C") for part in parts)
        return Iterates(theta, total, marks, self.norm2.copy(), self.t)

    def copy(self) -> Iterates:
        return self.columns(slice(None))

    def extended(self, count: int) -> Iterates:
        """A copy with more columns of zeros."""
        theta, total = (np.pad(part, ((0, 0), (0, count))) for part in (self.theta, self.total))
        return Iterates(theta, total, np.pad(self.marks, ((0, 0), (0, 0), (0, count))), self.norm2.copy(), self.t)

    def moved(self, steps: int) -> None:
        """These steps were made, none of them past a power of two but the last."""
        self.t += steps
        if self.t > 0 and self.t & (self.t - 1) == 0:
            self.marks[0] = self.marks[1]
            self.marks[1] = self.total

    def output(self, lam: float, average: str) -> Floats:
        """The mean of all w, of those since `suffix_start`, or the w that the next step would start from."""
        if self.t == 0:
            return np.zeros_like(self.theta)
        if average == "last":
            return np.asarray(self.theta / (lam * (self.t + 1)))
        if average == "all":
            return np.asarray(self.total / (lam * self.t))
        return np.asarray((self.total - self.marks[0]) / (lam * (self.t - suffix_start(self.t))))

    def finite_output(self, lam: float, average: str) -> Floats:
        """`output`, in numbers whose squares are finite too, or an error."""
        with np.errstate(over="ignore", invalid="ignore"):
            w = self.output(lam, average)
            finite = np.isfinite((w * w).sum()) and np.isfinite((self.theta * self.theta).sum())
        if not finite:
            raise FloatingPointError(
                f"the iterates overflowed after {self.t} steps with λ={lam!r}; scale the features or raise λ"
            )
        return w


def suffix_start(t: int) -> int:
    """The largest power of two up to t/2: the mean since then covers between half and three quarters of the steps.

    A power of two rather than half, so that a stream need not know its length.
    """
    return 1 << (t.bit_length() - 2) if t > 1 else 0
