"""The picture of a partial dependence: a curve with those of single samples behind it, or contours."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer.displays.drawing import MOST_CURVES, MOST_IN_LEGEND, axes_for, colours, short
from mercer.explain import PartialDependence, partial_dependence


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
    def from_estimator(
        cls, model: Any, X: Any, features: Any, *, output: int | None = None, ax: Any = None, **options: Any
    ) -> Self:
        """Compute the partial dependence of a trained machine, with the options of that method, and draw it.

        Parameters
        ----------
        model : estimator
            Fitted.
        X : samples
            Over which the other features are averaged.
        features : int, str, or a pair of them
            The columns to draw along.
        output : int, optional
            Of several outputs the one to draw; default: all, which contours cannot show.
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.
        **options : of `partial_dependence`
            Such as `grid_resolution` and `individual`.
        """
        return cls(partial_dependence(model, X, features, **options)).plot(ax=ax, output=output)

    def plot(self, ax: Any = None, output: int | None = None) -> Self:
        """Draw into axes, or into a new figure; of several outputs all, or the one with this number."""
        known = len(self.dependence.output_names)
        if output is not None and not 0 <= output < known:
            raise ValueError(f"output={output!r} is none of the {known} outputs, from 0 on")
        ax = axes_for(ax, "plotting a partial dependence", (6.4, 4.8))
        self.ax_, self.figure_ = ax, ax.figure
        self.lines_: list[Any] = []
        self.individual_lines_: list[Any] = []
        found = self.dependence
        shown = list(range(len(found.output_names))) if output is None else [output]
        axes = len(found.features)
        average = found.average.reshape(*found.average.shape[:axes], -1)
        ax.set_xlabel(short(found.feature_names[0], 60))
        if axes == 2:
            self._contours(average, shown)
            return self
        if found.individual is not None:
            self._curves(found.individual.reshape(*found.individual.shape[:2], -1), shown)
        in_legend = 1 < len(shown) <= MOST_IN_LEGEND
        for k, colour in zip(shown, colours(len(shown)), strict=True):
            style = {"color": colour, "linewidth": 2.5 if len(shown) <= MOST_IN_LEGEND else 1.0}
            style["marker"] = "o" if len(found.grid[0]) == 1 else None
            self.lines_ += ax.plot(found.grid[0], average[:, k], label=short(found.output_names[k]), **style)
        if in_legend:
            ax.legend()
        several = "mean of f" if in_legend else f"mean of f, {len(shown)} outputs"
        ax.set_ylabel(several if len(shown) > 1 else _label(found.output_names[shown[0]]))
        ax.spines[["top", "right"]].set_visible(False)
        return self

    def to_frame(self) -> Any:
        """What is drawn, as a pandas DataFrame."""
        return self.dependence.to_frame()

    def _curves(self, individual: Any, shown: list[int]) -> None:
        step = max(1, -(-len(individual) // MOST_CURVES))
        for k, own in zip(shown, colours(len(shown)), strict=True):
            for curve in individual[::step, :, k]:
                colour = "0.6" if len(shown) == 1 else own
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
        self.ax_.set_ylabel(short(found.feature_names[1], 60))
        self.values_ = np.asarray(values)


def _label(name: str) -> str:
    return "mean of f" if name == "f" else f"mean of f, for {short(name)}"
