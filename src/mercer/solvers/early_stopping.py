"""When an iteration should end: the smoothed error of a validation part has risen considerably (Igel, section 2.2)."""

from __future__ import annotations

import math


class SmoothedRule:
    """The mean of the last `window` errors must exceed its least value so far by the share `rise`."""

    def __init__(self, window: int, rise: float) -> None:
        self._window, self._rise = window, rise
        self.errors: list[float] = []
        self._least = math.inf

    def take(self, error: float) -> tuple[bool, bool]:
        """Whether training stops after a step with this error, and whether its error is the least so far."""
        best = error < min(self.errors, default=math.inf)
        self.errors.append(error)
        recent = self.errors[-self._window :]
        smoothed = sum(recent) / len(recent)
        self._least = min(self._least, smoothed)
        return smoothed > self._least + self._rise * abs(self._least), best
