"""What a fit tells: a line a second for people, scikit-learn's callbacks for programs, warnings at the user's line."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from mercer import _core
from mercer.errors import warn_user
from mercer.solution import Report

try:  # scikit-learn has callbacks from 1.9 on
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks
except ImportError:

    class CallbackSupport:  # type: ignore[no-redef]  # stands in for the mixin of newer versions
        """No callbacks in this scikit-learn."""

    def with_callbacks(method: Any) -> Any:
        return method


__all__ = ["CallbackSupport", "Progress", "warn_user", "with_callbacks"]


class Progress:
    """The reports of one fit, which has `n_tasks` sub-problems."""

    def __init__(self, estimator: Any, verbose: bool, n_tasks: int, X: Any, y: Any) -> None:
        self._estimator = estimator
        self._verbose = verbose
        self._n_tasks = n_tasks
        self._begun = time.monotonic()
        self._next_line = self._begun
        self._root: Any = None
        self._task: Any = None
        self._step: Any = None
        if getattr(estimator, "_skl_callbacks", None):
            self._root = estimator._init_callback_context(max_subtasks=n_tasks)
            self._root.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    @property
    def watched(self) -> bool:
        """Whether callbacks follow the fit; they expect one sub-problem after the other."""
        return self._root is not None

    @property
    def silent(self) -> bool:
        """Whether nobody is told anything."""
        return self._root is None and not self._verbose

    def begin(self, name: str) -> Report:
        """A sub-problem starts; the solver calls what is returned before each of its outer steps."""
        if self._root is not None:
            self._task = self._root.subcontext(task_name=name or "solve", max_subtasks=None)
            self._task.call_on_fit_task_begin(estimator=self._estimator)
        return partial(self._report, f"{name}: " if name and self._n_tasks > 1 else "")

    def end(self) -> None:
        """The sub-problem is solved."""
        if self._task is not None:
            self._end_step()
            self._task.call_on_fit_task_end(estimator=self._estimator)
            self._task = None

    def close(self, X: Any, y: Any) -> None:
        """The fit is over."""
        if self._root is not None:
            self._root.call_on_fit_task_end(estimator=self._estimator, X=X, y=y)

    def _report(self, name: str, words: Callable[[], str]) -> None:
        _core.check_stop()
        if self._task is not None:
            self._end_step()
            self._step = self._task.subcontext(task_name="step")
            self._step.call_on_fit_task_begin(estimator=self._estimator)
        now = time.monotonic()
        if self._verbose and now >= self._next_line:
            self._next_line = now + 1.0
            print(f"[mercer] {name}{now - self._begun:7.1f} s  {words()}", flush=True)

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.call_on_fit_task_end(estimator=self._estimator)
            self._step = None
