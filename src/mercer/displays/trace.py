"""The picture and the film of a textbook algorithm's steps."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer.displays.drawing import COLOURS, SMALLEST_SHOWN, panels_for
from mercer.fitting.families.shared_docs import shared_docs
from mercer.optional import require
from mercer.parameters import positive
from mercer.teaching.record import Trace


class TraceDisplay:
    """The picture of a Trace: the dual value, and the violation with the size of each step.

    Parameters
    ----------
    trace : Trace
        What to draw.

    Attributes
    ----------
    axes_ : array of two matplotlib axes
    figure_ : matplotlib figure
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def to_frame(self) -> Any:
        """A pandas DataFrame with one line per step, as `Trace.to_frame` has it."""
        return self.trace.to_frame()

    def plot(self, axes: Any = None) -> Self:
        """Draw into two axes, or into a new figure; steps that the box cut short are marked.

        Parameters
        ----------
        axes : two matplotlib axes, optional
            Where to draw; default: a new figure.
        """
        axes = panels_for(axes, "a trace", (1, 2), (9, 3.5))
        steps = np.arange(1, len(self.trace) + 1)
        clipped = np.array([step.clipped for step in self.trace], dtype=bool)
        dual = np.array([step.dual for step in self.trace])
        axes[0].plot(np.r_[0, steps], np.r_[0.0, dual], color=COLOURS[0])
        axes[0].plot(steps[clipped], dual[clipped], "|", color=COLOURS[1], label="cut short by the box")
        axes[0].set(xlabel="step", title="dual value")
        for name, colour in (("violation", COLOURS[1]), ("size", COLOURS[0])):
            values = np.array([getattr(step, name) for step in self.trace])
            axes[1].semilogy(steps, np.maximum(values, SMALLEST_SHOWN), color=colour, label=name)
        axes[1].set(xlabel="step", title=f"{self.trace.method} {self.trace.rule}".strip())
        axes[1].legend()
        if clipped.any():
            axes[0].legend()
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    @shared_docs
    def film(self, *, interval_ms: float = 200.0, figure: Any = None) -> Any:
        """A frame per step: α of every sample, the chosen ones in colour, and the dual value so far.

        Parameters
        ----------
        %(film)s
        """
        positive("interval_ms", interval_ms)
        if len(self.trace) == 0:
            raise ValueError("the trace has no steps to be shown: nothing violates tol at α = 0")
        pyplot, animation = (
            require(name, "a film of a trace") for name in ("matplotlib.pyplot", "matplotlib.animation")
        )
        figure = pyplot.figure(figsize=(9, 3.5), layout="constrained") if figure is None else figure
        left, right = figure.subplots(1, 2)
        steps = self.trace.steps
        bars = left.bar(np.arange(self.trace.problem.n), np.zeros(self.trace.problem.n))
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

        self.axes_, self.figure_ = np.array([left, right]), figure
        return animation.FuncAnimation(figure, draw, frames=len(steps), interval=interval_ms, repeat=False)
