"""How a fit came to its end: duality gap and violation against time, recorded by a callback."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from mercer.arrays import Floats
from mercer.displays.drawing import COLOURS, SMALLEST_SHOWN, Picture, frame, legend


class ConvergenceRecord:
    """A callback of scikit-learn (1.9 or newer) that keeps the gap and the violation before every outer step of a fit.

    The last entry is that of the certificate. Sub-problems, such as the pairs of several classes, are solved one after
    another while a callback watches.

    Attributes
    ----------
    seconds, violation, gap : lists of float
        Since the fit began; NaN where a solver does not tell.
    tasks : list of str
        The sub-problem of each entry; "certificate" for the last one.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercer import SVC
    >>> from mercer.displays import ConvergenceRecord
    >>> record = ConvergenceRecord()
    >>> model = SVC().set_callbacks(record).fit(*make_moons(3000, noise=0.3, random_state=0))
    >>> record.tasks[-1], record.gap[-1] == model.certificate_.gap
    ('certificate', True)
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.seconds: list[float] = []
        self.violation: list[float] = []
        self.gap: list[float] = []
        self.tasks: list[str] = []
        self._begun, self._task = time.monotonic(), ""

    def setup(self, estimator: Any, context: Any) -> None:
        """A fit begins."""
        self._begin()

    def on_fit_task_begin(self, estimator: Any, context: Any, *, metadata: Any = None, **unused: Any) -> None:
        """A sub-problem, or an outer step of it, begins."""
        if context.task_name != "step":
            self._task = context.task_name
        elif metadata is not None and "reached" in metadata:
            words = metadata["reached"]()
            self._add(getattr(words, "violation", math.nan), getattr(words, "gap", math.nan), self._task)

    def on_fit_task_end(self, estimator: Any, context: Any, **unused: Any) -> None:
        """A sub-problem, or an outer step of it, ends."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """The fit is over."""
        certificate = getattr(estimator, "certificate_", None)
        if certificate is not None:
            self._add(certificate.violation, certificate.gap, "certificate")

    def _add(self, violation: float, gap: float, task: str) -> None:
        self.seconds.append(time.monotonic() - self._begun)
        self.violation.append(float(violation))
        self.gap.append(float(gap))
        self.tasks.append(task)


@dataclass(eq=False)
class ConvergenceDisplay(Picture):
    """Gap and violation of a fit against time, on a logarithmic scale.

    Parameters
    ----------
    seconds, violation, gap : arrays of shape (n_entries,)
        Since the fit began.
    tasks : list of str
        The sub-problem of each entry; the last one is the certificate.
    tol : float, or None
        The violation that was to be reached.

    Attributes
    ----------
    lines_ : list of lines
        The gap and the violation; set by `plot`.
    ax_, figure_ : matplotlib's axes and figure
        Set by `plot`.
    """

    seconds: Floats
    violation: Floats
    gap: Floats
    tasks: list[str]
    tol: float | None = None
    lines_: Any = field(default=None, init=False, repr=False)
    _purpose = "drawing a fit's convergence"

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, sample_weight: Any = None, ax: Any = None
    ) -> Self:
        """Train a copy of an estimator, and draw how it went.

        Parameters
        ----------
        estimator : a machine of mercer
            Not changed by this.
        X, y, sample_weight : what it is trained on
            As for its `fit`.
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.
        """
        machine, record = clone(estimator), ConvergenceRecord()
        if not hasattr(machine, "set_callbacks"):
            raise ImportError("callbacks need scikit-learn 1.9 or newer, and a machine of mercer")
        machine.set_callbacks(record)
        machine.fit(X, y, **({} if sample_weight is None else {"sample_weight": sample_weight}))
        return cls.from_record(record, tol=getattr(machine, "tol", None), ax=ax)

    @classmethod
    def from_record(cls, record: ConvergenceRecord, *, tol: float | None = None, ax: Any = None) -> Self:
        """Draw what a callback has kept.

        Parameters
        ----------
        record : ConvergenceRecord
            Of a fit that is over.
        tol : float, optional
            The violation that was to be reached, drawn as a line.
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.
        """
        if not record.seconds:
            raise ValueError("this record has seen no fit: give it to model.set_callbacks(record) before model.fit")
        seconds, violation, gap = (np.array(values) for values in (record.seconds, record.violation, record.gap))
        return cls(seconds, violation, gap, list(record.tasks), tol).plot(ax)

    def _draw(self, ax: Any) -> None:
        self.lines_ = []
        for name, values, colour in (("gap", self.gap, COLOURS[0]), ("violation", self.violation, COLOURS[1])):
            there = np.isfinite(values)
            shown = np.maximum(values[there], SMALLEST_SHOWN)
            self.lines_ += ax.semilogy(
                self.seconds[there], shown, "o-", markersize=3, linewidth=1, color=colour, label=name
            )
        if self.tol is not None:
            ax.axhline(self.tol, color=COLOURS[1], linewidth=0.8, linestyle="--", label=f"tol = {self.tol:g}")
        ends = [k for k in range(1, len(self.tasks)) if self.tasks[k] != self.tasks[k - 1]]
        for k in ends[:-1]:
            ax.axvline(self.seconds[k], color="0.8", linewidth=0.8, zorder=0)
        ax.set(xlabel="seconds", title=f"{len(set(self.tasks) - {'certificate'})} problems" if len(ends) > 1 else None)
        legend(ax)

    def to_frame(self) -> Any:
        """A pandas DataFrame with one line per entry."""
        columns = {"seconds": self.seconds, "task": self.tasks, "violation": self.violation, "gap": self.gap}
        return frame("ConvergenceDisplay.to_frame", columns)
