"""Courses of fits: gap and violation against time, and a film of a textbook algorithm's steps."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone

from mercer.inspection.displays.drawing import COLOURS, SMALLEST_SHOWN, Picture, frame, legend
from mercer.inspection.displays.types import Axes, DataFrame, Figure, MaybeArray, MaybeAxes
from mercer.model_selection.held_out.machines import weight_option
from mercer.runtime.optional import require
from mercer.runtime.parameters import positive
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Floats
from mercer.tables.unwrap import ask

if TYPE_CHECKING:
    from mercer.notes.teaching.record import Steps


class ConvergenceRecord:
    """A callback of scikit-learn that keeps the gap and the violation before every outer step of a fit.

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
    >>> from mercer.inspection.displays import ConvergenceRecord
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

    def setup(self, estimator: object, context: object) -> None:
        """A fit begins."""
        self._begin()

    def on_fit_task_begin(self, estimator: object, context: Any, *, metadata: Any = None, **unused: object) -> None:
        """A sub-problem, or an outer step of it, begins."""
        if context.task_name != "step":
            self._task = context.task_name
        elif metadata is not None and "reached" in metadata:
            words = metadata["reached"]()
            self._add(getattr(words, "violation", math.nan), getattr(words, "gap", math.nan), self._task)

    def on_fit_task_end(self, estimator: object, context: object, **unused: object) -> None:
        """A sub-problem, or an outer step of it, ends."""

    def teardown(self, estimator: object, context: object) -> None:
        """The fit is over."""
        certificate = getattr(estimator, "certificate_", None)
        if certificate is not None:
            self._add(certificate.violation, certificate.gap, "certificate")

    def _add(self, violation: float, gap: float, task: str) -> None:
        self.seconds.append(time.monotonic() - self._begun)
        self.violation.append(float(violation))
        self.gap.append(float(gap))
        self.tasks.append(task)


@dataclass(eq=False, repr=False)
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
        cls, estimator: Any, X: Any, y: MaybeArray = None, *, sample_weight: MaybeArray = None, ax: MaybeAxes = None
    ) -> Self:
        """Train a copy of an estimator, and draw how it went.

        Parameters
        ----------
        estimator : a machine of mercer
            Not changed by this; also a model that has one inside. What a fitted search has chosen is kept.
        X, y, sample_weight : what it is trained on
            As for its `fit`.
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.
        """
        asked, record = ask(estimator), ConvergenceRecord()
        around = [layer for layer in asked.layers if not hasattr(layer, "predict_interval")]  # whose folds are fits too
        model = ask(around[0]).settled() if around else clone(asked.machine)
        machine = ask(model).machine
        if not hasattr(machine, "set_callbacks"):
            raise TypeError(
                f"ConvergenceDisplay watches a fit by callbacks, which {type(machine).__name__} does not have: draw a "
                "machine of mercer"
            )
        machine.set_callbacks(record)
        model.fit(X, y, **weight_option(model, sample_weight))
        return cls.from_record(record, tol=getattr(machine, "tol", None), ax=ax)

    @classmethod
    def from_record(cls, record: ConvergenceRecord, *, tol: float | None = None, ax: MaybeAxes = None) -> Self:
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

    def _draw(self, ax: Axes) -> None:
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

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame with one line per entry."""
        columns = {"seconds": self.seconds, "task": self.tasks, "violation": self.violation, "gap": self.gap}
        return frame("ConvergenceDisplay.to_frame", columns)


@shared_docs
def film_steps(run: Steps, *, interval_ms: float = 200.0, figure: Figure | None = None) -> Any:
    """Return an animation, a frame per step: α of every sample, the chosen ones in colour, and the dual value.

    Parameters
    ----------
    run : Steps
        What to show.
    %(film)s
    """
    positive("interval_ms", interval_ms)
    if len(run) == 0:
        raise ValueError("there are no steps to be shown: nothing violates tol at α = 0")
    pyplot, animation = (require(name, "a film of steps") for name in ("matplotlib.pyplot", "matplotlib.animation"))
    figure = pyplot.figure(figsize=(9, 3.5), layout="constrained") if figure is None else figure
    left, right = figure.subplots(1, 2)
    steps = run.steps
    bars = left.bar(np.arange(run.problem.n), np.zeros(run.problem.n))
    left.set(xlabel="sample", title="α", ylim=(0, 1.05 * max(float(step.alpha.max()) for step in steps) or 1.0))
    (line,) = right.plot([], [], color=COLOURS[0])
    duals = np.array([0.0, *(step.dual for step in steps)])
    reach = float(duals.max() - duals.min()) or 1.0
    right.set(xlabel="step", title="dual value", xlim=(0, len(steps)))
    right.set_ylim(float(duals.min()), float(duals.min()) + 1.05 * reach)

    def draw(k: int) -> list[Any]:
        for i, bar in enumerate(bars):
            bar.set_height(steps[k].alpha[i])
            bar.set_color(COLOURS[i in steps[k].chosen])
        line.set_data(np.arange(k + 2), duals[: k + 2])
        return [*bars, line]

    return animation.FuncAnimation(figure, draw, frames=len(steps), interval=interval_ms, repeat=False)
