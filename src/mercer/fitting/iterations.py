"""What an iterative solver tells while it runs: a line a second, and a step of scikit-learn's callbacks."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from mercer.fitting.progress import Cancelled, Progress


class Iterations(Progress):
    """The reports of a fit whose solver counts iterations and knows how far it is from its target."""

    def follow(self, name: str) -> Callable[[int, float], None]:
        """A solve starts; its solver calls what is returned before every iteration."""
        self.begin(name)
        return partial(self._iterated, f"{name}: " if name else "")

    def _iterated(self, name: str, steps: int, share: float) -> None:
        if self._cancelled:
            raise Cancelled
        if self._task is not None:
            self._end_step()
            self._step = self._task.subcontext(task_name="step")
            self._step.call_on_fit_task_begin(estimator=self._estimator)
        now = time.monotonic()
        if self._verbose and now >= self._next_line:
            self._next_line = now + 1.0
            seconds = now - self._begun
            print(f"[mercer] {name}{seconds:7.1f} s  {steps:>6,} iterations  residual {share:.2e} × target", flush=True)
