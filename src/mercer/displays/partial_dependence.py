"""The picture of a partial dependence: a curve with those of single samples behind it, or contours."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer.explain import PartialDependence, partial_dependence
from mercer.optional import require

# The most curves of single samples that are drawn, at equal steps through the data.
_MOST_CURVES = 60


class PartialDependenceDisplay:
    """The picture of a `PartialDependence`.

    Parameters
    ----------
    dependence : PartialDependence
        What `partial_dependence` returned.

    Attributes
    ----------
    ax_ : matplotlib axes
    figure_ : matplotlib figure
    lines_ : list of lines, one per output
    individual_lines_ : list of lines, one per sample shown
    contour_ : contours of two features
    """

    def __init__(self, dependence: PartialDependence) -> None:
        self.dependence = dependence

    @classmethod
    def from_estimator(cls, model: Any, X: Any, features: Any, *, ax: Any = None, **options: Any) -> Self:
        """Compute the partial dependence of a trained machine, with the options of that method, and draw it."""
        return cls(partial_dependence(model, X, features, **options)).plot(ax=ax)

    def plot(self, ax: Any = None, output: int | None = None) -> Self:
        """Draw into axes, or into a new figure; of several outputs all, or the one with this number."""
        if ax is None:
            pyplot = require("matplotlib.pyplot", "plotting a partial dependence")
            _, ax = pyplot.subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self.lines_: list[Any] = []
        self.individual_lines_: list[Any] = []
        found = self.dependence
        shown = list(range(len(found.output_names))) if output is None else [output]
        axes = len(found.features)
        average = found.average.reshape(*found.average.shape[:axes], -1)
        ax.set_xlabel(found.feature_names[0])
        if axes == 2:
            self._contours(average, shown)
            return self
        if found.individual is not None:
            self._curves(found.individual.reshape(*found.individual.shape[:2], -1), shown)
        for k in shown:
            self.lines_ += ax.plot(found.grid[0], average[:, k], linewidth=2.5, label=found.output_names[k])
        if len(shown) > 1:
            ax.legend()
        ax.set_ylabel("mean of f" if len(shown) > 1 else _label(found.output_names[shown[0]]))
        ax.spines[["top", "right"]].set_visible(False)
        return self

    def to_frame(self) -> Any:
        """What is drawn, as a pandas DataFrame."""
        return self.dependence.to_frame()

    def _curves(self, individual: Any, shown: list[int]) -> None:
        step = max(1, -(-len(individual) // _MOST_CURVES))
        for k in shown:
            for curve in individual[::step, :, k]:
                colour = "0.6" if len(shown) == 1 else f"C{k % 10}"
                self.individual_lines_ += self.ax_.plot(
                    self.dependence.grid[0], curve, color=colour, alpha=0.35, linewidth=0.6
                )

    def _contours(self, average: Any, shown: list[int]) -> None:
        if len(shown) > 1:
            raise ValueError(f"contours show one of the {len(shown)} outputs; choose one by output=")
        found = self.dependence
        values = average[:, :, shown[0]].T
        self.contour_ = self.ax_.contourf(*found.grid, values, levels=12, cmap="coolwarm")
        self.figure_.colorbar(self.contour_, ax=self.ax_, label=_label(found.output_names[shown[0]]))
        self.ax_.set_ylabel(found.feature_names[1])
        self.values_ = np.asarray(values)


def _label(name: str) -> str:
    return "mean of f" if name == "f" else f"mean of f, for {name}"
