"""Convergence of fits: gap and violation against time, and an animation of a textbook algorithm's steps."""

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
from mercer.tables.unwrap import unwrap

if TYPE_CHECKING:
    from mercer.notes.teaching.record import Steps


class ConvergenceRecord:
    """Callback of scikit-learn that records the gap and the violation before every outer step of a fit.

    The last entry is that of the certificate. With a callback, sub-problems such as the pairs of several classes are
    solved one after another.

    Attributes
    ----------
    seconds : list of float
        Time of each entry since the fit began.
    violation, gap : lists of float
        KKT violation and duality gap; NaN if the solver does not report them.
    tasks : list of str
        Sub-problem of each entry; "certificate" for the last one.

    See Also
    --------
    ConvergenceDisplay : Plot a record.

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
        self._start_time, self._task = time.monotonic(), ""

    def setup(self, estimator: object, context: object) -> None:
        """Start a new record when a fit begins."""
        self._begin()

    def on_fit_task_begin(self, estimator: object, context: Any, *, metadata: Any = None, **unused: object) -> None:
        """Record an entry when a sub-problem or one of its outer steps begins."""
        if context.task_name != "step":
            self._task = context.task_name
        elif metadata is not None and "reached" in metadata:
            state = metadata["reached"]()
            self._add(getattr(state, "violation", math.nan), getattr(state, "gap", math.nan), self._task)

    def on_fit_task_end(self, estimator: object, context: object, **unused: object) -> None:
        """Do nothing when a sub-problem or one of its outer steps ends."""

    def teardown(self, estimator: object, context: object) -> None:
        """Record the certificate when the fit is over."""
        certificate = getattr(estimator, "certificate_", None)
        if certificate is not None:
            self._add(certificate.violation, certificate.gap, "certificate")

    def _add(self, violation: float, gap: float, task: str) -> None:
        self.seconds.append(time.monotonic() - self._start_time)
        self.violation.append(float(violation))
        self.gap.append(float(gap))
        self.tasks.append(task)


@dataclass(eq=False, repr=False)
class ConvergenceDisplay(Picture):
    """Plot the duality gap and the KKT violation of a fit against time, on a logarithmic scale.

    Parameters
    ----------
    seconds : array of shape (n_entries,)
        Time of each entry since the fit began.
    violation, gap : arrays of shape (n_entries,)
        KKT violation and duality gap.
    tasks : list of str
        Sub-problem of each entry; the last one is the certificate.
    tol : float, or None
        Tolerance of the fit, drawn as a line.

    Attributes
    ----------
    lines_ : list of lines
        Curves of the gap and the violation; set by `plot`.

    See Also
    --------
    ConvergenceRecord : Callback that records a fit.
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
        """Train a copy of an estimator and plot its convergence.

        Parameters
        ----------
        estimator : estimator
            Estimator of mercer, or a model that contains one; it is not changed. Parameters that a fitted search has
            chosen are kept.
        X, y, sample_weight : arrays
            Training data, as for `fit`.
        ax : matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        """
        unwrapped, record = unwrap(estimator), ConvergenceRecord()
        # Calibrations are left out, since their folds are fits too.
        layers = [layer for layer in unwrapped.layers if not hasattr(layer, "predict_interval")]
        model = unwrap(layers[0]).without_searches() if layers else clone(unwrapped.machine)
        machine = unwrap(model).machine
        if not hasattr(machine, "set_callbacks"):
            raise TypeError(
                f"ConvergenceDisplay observes a fit through callbacks, which {type(machine).__name__} does not have: "
                "use an estimator of mercer"
            )
        machine.set_callbacks(record)
        model.fit(X, y, **weight_option(model, sample_weight))
        return cls.from_record(record, tol=getattr(machine, "tol", None), ax=ax)

    @classmethod
    def from_record(cls, record: ConvergenceRecord, *, tol: float | None = None, ax: MaybeAxes = None) -> Self:
        """Plot the convergence that a callback has recorded.

        Parameters
        ----------
        record : ConvergenceRecord
            Record of a completed fit.
        tol : float, optional
            Tolerance of the fit, drawn as a line.
        ax : matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        """
        if not record.seconds:
            raise ValueError("this record has seen no fit: pass it to model.set_callbacks(record) before model.fit")
        seconds, violation, gap = (np.array(values) for values in (record.seconds, record.violation, record.gap))
        return cls(seconds, violation, gap, list(record.tasks), tol).plot(ax)

    def _draw(self, ax: Axes) -> None:
        self.lines_ = []
        for name, values, colour in (("gap", self.gap, COLOURS[0]), ("violation", self.violation, COLOURS[1])):
            is_finite = np.isfinite(values)
            shown_values = np.maximum(values[is_finite], SMALLEST_SHOWN)
            self.lines_ += ax.semilogy(
                self.seconds[is_finite], shown_values, "o-", markersize=3, linewidth=1, color=colour, label=name
            )
        if self.tol is not None:
            ax.axhline(self.tol, color=COLOURS[1], linewidth=0.8, linestyle="--", label=f"tol = {self.tol:g}")
        ends = [k for k in range(1, len(self.tasks)) if self.tasks[k] != self.tasks[k - 1]]
        for k in ends[:-1]:
            ax.axvline(self.seconds[k], color="0.8", linewidth=0.8, zorder=0)
        ax.set(xlabel="seconds", title=f"{len(set(self.tasks) - {'certificate'})} problems" if len(ends) > 1 else None)
        legend(ax)

    def to_frame(self) -> DataFrame:
        """Return the entries as a pandas DataFrame, a row for each."""
        columns = {"seconds": self.seconds, "task": self.tasks, "violation": self.violation, "gap": self.gap}
        return frame("ConvergenceDisplay.to_frame", columns)


@shared_docs
def film_steps(run: Steps, *, interval_ms: float = 200.0, figure: Figure | None = None) -> Any:
    """Animate the steps of a textbook algorithm: α of every sample, the chosen ones in colour, and the dual value.

    Parameters
    ----------
    run : Steps
        Steps to show, one per frame.
    %(film)s

    Returns
    -------
    matplotlib.animation.FuncAnimation
        The animation.
    """
    positive("interval_ms", interval_ms)
    if len(run) == 0:
        raise ValueError("there are no steps to show: no sample violates tol at the first α")
    pyplot, animation = (
        require(name, "an animation of steps") for name in ("matplotlib.pyplot", "matplotlib.animation")
    )
    figure = pyplot.figure(figsize=(9, 3.5), layout="constrained") if figure is None else figure
    left, right = figure.subplots(1, 2)
    steps = run.steps
    bars = left.bar(np.arange(run.problem.n), np.zeros(run.problem.n))
    left.set(xlabel="sample", title="α", ylim=(0, 1.05 * max(float(step.alpha.max()) for step in steps) or 1.0))
    (line,) = right.plot([], [], color=COLOURS[0])
    duals = np.array([run.problem.dual(run.start), *(step.dual for step in steps)])
    height = float(duals.max() - duals.min()) or 1.0
    right.set(xlabel="step", title="dual value", xlim=(0, len(steps)))
    right.set_ylim(float(duals.min()), float(duals.min()) + 1.05 * height)

    def draw(k: int) -> list[Any]:
        for i, bar in enumerate(bars):
            bar.set_height(steps[k].alpha[i])
            bar.set_color(COLOURS[i in steps[k].chosen])
        line.set_data(np.arange(k + 2), duals[: k + 2])
        return [*bars, line]

    return animation.FuncAnimation(figure, draw, frames=len(steps), interval=interval_ms, repeat=False)
