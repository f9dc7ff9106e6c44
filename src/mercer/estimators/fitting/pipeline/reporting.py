"""Progress reports of a fit: printed lines, scikit-learn's callbacks, and warnings at the user's line."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from numpy.typing import ArrayLike
from sklearn import callback
from sklearn.callback import CallbackSupportMixin as CallbackSupport

from mercer import _core
from mercer.runtime.errors import warn_user
from mercer.runtime.progress import ProgressEstimate, Reporter
from mercer.samples.arrays import Data
from mercer.solvers.solution import ProgressReporter

__all__ = ["CallbackSupport", "Progress", "warn_user", "with_callbacks"]


Method = TypeVar("Method", bound=Callable[..., Any])


def with_callbacks(method: Method) -> Method:
    """Decorate a `fit` method with scikit-learn's support for callbacks, keeping its type."""
    wrapper: Method = callback.with_callbacks(method)
    return wrapper


class Progress:
    """Progress reports of one fit with `n_tasks` sub-problems."""

    def __init__(self, estimator: Any, verbose: bool, n_tasks: int, X: Data, y: ArrayLike | None) -> None:
        self._estimator = estimator
        self._reporter = Reporter(verbose)
        self._n_tasks, self._n_done = n_tasks, 0
        self._root: Any = None
        self._task: Any = None
        self._step: Any = None
        if getattr(estimator, "_skl_callbacks", None):
            self._root = estimator._init_callback_context(max_subtasks=n_tasks)
            self._root.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    @property
    def watched(self) -> bool:
        """True if callbacks watch the fit; sub-problems are then solved one after another."""
        return self._root is not None

    def begin(self, name: str) -> ProgressReporter:
        """Begin a sub-problem and return the function that its solver calls before each outer step."""
        if self._root is not None:
            self._task = self._root.subcontext(task_name=name or "solve", max_subtasks=None)
            self._task.call_on_fit_task_begin(estimator=self._estimator)
        return partial(
            self._report, f"{name}: " if name and self._n_tasks > 1 else "", ProgressEstimate(time.monotonic())
        )

    def end(self) -> None:
        """End the current sub-problem."""
        self._n_done += 1
        if self._task is not None:
            self._end_step()
            self._task.call_on_fit_task_end(estimator=self._estimator)
            self._task = None

    def close(self, X: Data, y: ArrayLike | None, trained: Any) -> None:
        """End the fit and report its result."""
        if self._reporter.shows:
            self._reporter.close(_summary(trained))
        if self._root is not None:
            self._root.call_on_fit_task_end(estimator=self._estimator, X=X, y=y)

    def _report(
        self, name: str, estimate: ProgressEstimate, line: Callable[[], str], goal_ratio: float = math.nan
    ) -> None:
        """Pass a step of the current sub-problem on to the callbacks, and print its line if one is due."""
        _core.check_stop()
        if self._task is not None:
            self._end_step()
            self._step = self._task.subcontext(task_name="step")
            # Callbacks have to call "reached" at once: a later call would describe a later state of the solver.
            self._step.call_on_fit_task_begin(estimator=self._estimator, metadata={"reached": line})
        if self._reporter.is_due:
            share = estimate.share(time.monotonic(), goal_ratio)
            if self._n_tasks > 1:  # assume that all sub-problems take the same time
                share = min(1.0, (self._n_done + (share or 0.0)) / self._n_tasks) or None
            self._reporter.report(name + line(), share)

    def _end_step(self) -> None:
        """End the current step of the callbacks, if one has begun."""
        if self._step is not None:
            self._step.call_on_fit_task_end(estimator=self._estimator)
            self._step = None


def _summary(estimator: Any) -> str:
    """Return the last line of the report on a fit."""
    support, proof = getattr(estimator, "support_", None), getattr(estimator, "certificate_", None)
    words = [] if support is None else [f"{len(support):>7,} support vectors"]
    if proof is not None:
        words.append(f"violation {proof.violation:.3e}  gap  {proof.gap:.3e}")
    return "  ".join([*words, getattr(estimator, "stop_reason_", "done")])
