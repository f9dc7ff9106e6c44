"""Early stopping by the smoothed error on validation data (Igel, section 2.2)."""

from __future__ import annotations

import math


class SmoothedRule:
    """Early-stopping rule: stop once the mean of the last `window` errors exceeds its minimum by the share `rise`."""

    def __init__(self, window: int, rise: float) -> None:
        self._window, self._rise = window, rise
        self.errors: list[float] = []
        self._least_error = math.inf

    def record(self, error: float) -> tuple[bool, bool]:
        """Record the error after a step; return whether to stop, and whether this error is the smallest so far."""
        is_best = error < min(self.errors, default=math.inf)
        self.errors.append(error)
        recent = self.errors[-self._window :]
        smoothed = sum(recent) / len(recent)
        self._least_error = min(self._least_error, smoothed)
        return smoothed > self._least_error + self._rise * abs(self._least_error), is_best
