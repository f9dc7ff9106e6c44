"""Plots of explanations and of partial dependence."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer.inspection.displays.drawing import (
    COLOURS,
    MOST_CURVES,
    MOST_IN_LEGEND,
    Display,
    Picture,
    axes_for,
    cell_text,
    colours,
    foreground,
    set_ticks_of,
    shorten,
)
from mercer.inspection.displays.types import Axes, DataFrame, MaybeArray, MaybeAxes
from mercer.inspection.explain import Explanation, explain, partial_dependence
from mercer.inspection.explain.partial_dependence import PartialDependence
from mercer.runtime.optional import require
from mercer.runtime.parameters import integer, one_of
from mercer.samples.arrays import Floats, Indices
from mercer.tables.axis import Axis

_KINDS = ("bar", "beeswarm")
_RAISES, _LOWERS, _OTHERS = COLOURS[1], COLOURS[0], "0.6"
# Colours from low to high; the middle is visible on white and on black.
_SCALE = ("#2f6fd0", "#8e4fa8", "#e0433a")


class ExplanationDisplay(Picture):
    """Plot the Shapley values of an `Explanation`.

    "bar" shows the mean |value| of each feature, stacked if there are several outputs (more than ten are summed), or
    the signed values of a single sample. "beeswarm" shows every sample as a point at its Shapley value, coloured by the
    value of the feature.

    Parameters
    ----------
    explanation : Explanation
        Result of `explain`.
    kind : {"bar", "beeswarm"}, default="bar"
        Kind of plot.
    max_features : int, default=10
        Number of features shown: those with the largest mean |value|.

    Attributes
    ----------
    features_ : array of int
        Indices of the features shown, from top to bottom.
    bars_ : list
        Containers of bars, one per output.
    points_ : list
        Scatter plots, one per feature.
    """

    _purpose = "plotting an explanation"

    def __init__(self, explanation: Explanation, kind: str = "bar", max_features: int = 10) -> None:
        one_of("kind", kind, _KINDS)
        self.explanation = explanation
        self.kind = kind
        self.max_features = integer("max_features", max_features, 1, "the number of features to show")
        if kind == "beeswarm" and explanation.several:
            raise ValueError(
                f"a beeswarm shows one output, but there are {len(explanation.output_names)}; choose one with "
                "explanation.output(name) or explanation.of_class(label)"
            )

    @classmethod
    def from_explanation(
        cls, explanation: Explanation, *, kind: str = "bar", max_features: int = 10, ax: MaybeAxes = None
    ) -> Self:
        """Plot an explanation; the parameters are those of the class, and `ax`."""
        return cls(explanation, kind, max_features).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        background: Any,
        *,
        background_weight: MaybeArray = None,
        kind: str = "bar",
        max_features: int = 10,
        ax: MaybeAxes = None,
    ) -> Self:
        """Explain samples by a fitted model and plot the result; see `explain` for X and the background."""
        explanation = explain(model, X, background, background_weight=background_weight)
        return cls(explanation, kind, max_features).plot(ax)

    @property
    def _largest_features(self) -> Indices:
        """Indices of the features with the largest mean |value| over all outputs."""
        e = self.explanation
        sizes = e.importance.sum(axis=1) if e.several else e.importance
        return np.argsort(-sizes, kind="stable")[: self.max_features]

    @property
    def _inches(self) -> tuple[float, float]:  # type: ignore[override]  # the height depends on the number of features
        return 6.4, max(2.4, 1.56 + 0.36 * len(self._largest_features))

    def _draw(self, ax: Axes) -> None:
        self.features_, self.ax_, self.figure_ = self._largest_features, ax, ax.figure
        self.bars_: list[object] = []
        self.points_: list[object] = []
        if self.kind == "beeswarm":
            self._draw_beeswarm()
        elif self._signed:
            self._draw_sample()
        else:
            self._draw_bars()
        ax.spines[["top", "right"]].set_visible(False)

    def to_frame(self) -> DataFrame:
        """Return what is drawn as a pandas DataFrame: a row per feature, or per feature and sample in a beeswarm.

        For a single sample the values are signed, and a second column has the values of its features.
        """
        pandas = require("pandas", "a frame of an explanation")
        e, shown_features = self.explanation, self._largest_features
        names = [e.feature_names[j] for j in shown_features]
        if self._signed:
            columns = {e.output_names[0]: e.values[0, shown_features], "data": e.data[0, shown_features]}
            return pandas.DataFrame(columns, index=pandas.Index(names, name="feature"))
        if self.kind == "bar":
            table = e.importance.reshape(e.values.shape[1], -1)[shown_features]
            return pandas.DataFrame(table, index=pandas.Index(names, name="feature"), columns=list(e.output_names))
        return pandas.DataFrame(
            {
                "feature": np.repeat(names, len(e)),
                "sample": np.tile(np.arange(len(e)), len(shown_features)),
                "value": e.values[:, shown_features].T.ravel(),
                "data": e.data[:, shown_features].T.ravel(),
            }
        )

    @property
    def _signed(self) -> bool:
        """True if the plot shows the signed values of a single sample."""
        return self.kind == "bar" and len(self.explanation) == 1 and not self.explanation.several

    # --- kinds -----------------------------------------------------------------------------------------------------

    def _draw_bars(self) -> None:
        """Draw the mean |value| of each feature."""
        e = self.explanation
        table = e.importance.reshape(e.values.shape[1], -1)
        names, note = e.output_names, ""
        if table.shape[1] > MOST_IN_LEGEND:
            note = f", summed over {table.shape[1]} outputs"
            table, names = table.sum(axis=1, keepdims=True), ("all",)
        heights, left = table[self.features_], np.zeros(len(self.features_))
        for k, (name, colour) in enumerate(zip(names, colours(len(names)), strict=True)):
            positions = np.arange(len(heights))
            bars = self.ax_.barh(positions, heights[:, k], left=left, height=0.7, label=shorten(name), color=colour)
            self.bars_.append(bars)
            left = left + heights[:, k]
        self._label_rows()
        n_others = len(table) - len(heights)
        sum_of_others = float(table.sum() - heights.sum())
        label = f"mean |Shapley value|{note}" + f"\n{n_others} other features: {sum_of_others:.3g} in total" * (
            n_others > 0
        )
        self.ax_.set_xlabel(label)
        if len(names) > 1:
            self.ax_.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))

    def _draw_sample(self) -> None:
        """Draw the signed values of a single sample."""
        e, values = self.explanation, self.explanation.values[0]
        other_features = np.setdiff1d(np.arange(len(values)), self.features_)
        heights = np.append(values[self.features_], [values[other_features].sum()] if len(other_features) else [])
        colours = [_RAISES if v > 0 else _LOWERS for v in heights[: len(self.features_)]] + [_OTHERS] * (
            len(other_features) > 0
        )
        self.bars_.append(self.ax_.barh(np.arange(len(heights)), heights, height=0.7, color=colours))
        names = [f"{shorten(e.feature_names[j])} = {shorten(cell_text(e.data[0, j]), 24)}" for j in self.features_]
        self._label_rows(
            [*names, f"{len(other_features)} others" if len(other_features) > 1 else "1 other"]
            if len(other_features)
            else names
        )
        self.ax_.axvline(0.0, color=foreground(self.ax_), linewidth=0.8)
        total = float(e.base_values[0] + values.sum())
        self.ax_.set_xlabel(self._value_label)
        self.ax_.set_title(f"f = {total:.4g}, background {float(e.base_values[0]):.4g}", fontsize="medium")

    def _draw_beeswarm(self) -> None:
        """Draw each sample as a point."""
        e = self.explanation
        colors = require("matplotlib.colors", "plotting an explanation")
        # Missing values and categories are neither low nor high.
        scale = colors.LinearSegmentedColormap.from_list("", _SCALE).with_extremes(bad=_OTHERS)
        for row, j in enumerate(self.features_):
            # Rows are 1 apart and about 80 points wide.
            heights = row + 0.38 * swarm_offsets(e.values[:, j], 80)
            points = self.ax_.scatter(
                e.values[:, j],
                heights,
                c=_shade(Axis.of(e.feature_names[j], e.data[:, j])),
                cmap=scale,
                vmin=0,
                vmax=1,
                s=12,
                linewidths=0,
                plotnonfinite=True,
            )
            self.points_.append(points)
        self._label_rows()
        self.ax_.axvline(0.0, color=foreground(self.ax_), linewidth=0.8, zorder=0)
        self.ax_.set_xlabel(self._value_label)
        bar = self.figure_.colorbar(self.points_[0], ax=self.ax_, ticks=[0, 1], aspect=40, pad=0.02)
        bar.ax.set_yticklabels(["low", "high"])
        bar.set_label("value of the feature", labelpad=-8)
        bar.outline.set_visible(False)

    @property
    def _value_label(self) -> str:
        """Label of the axis of values."""
        (name,) = self.explanation.output_names
        return "Shapley value" if name == "f" else f"Shapley value, for {shorten(name)}"

    def _label_rows(self, names: list[str] | None = None) -> None:
        """Label the rows, the first one on top."""
        names = [shorten(self.explanation.feature_names[j]) for j in self.features_] if names is None else names
        self.ax_.set_yticks(np.arange(len(names)), names)
        self.ax_.set_ylim(len(names) - 0.4, -0.6)


def swarm_offsets(values: Floats, n_bins: int) -> Floats:
    """Return offsets between −1 and 1 that separate points of similar value, larger where there are more points."""
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    if high == low:
        return np.zeros(len(values))
    bin_of = np.minimum(((values - low) / (high - low) * n_bins).astype(np.intp), n_bins - 1)
    counts = np.bincount(bin_of, minlength=n_bins)
    order = np.argsort(bin_of, kind="stable")
    begin = np.cumsum(counts) - counts
    rank = np.empty(len(values))
    rank[order] = np.arange(len(values)) - begin[bin_of[order]]
    # Steps 0, 1, −1, 2, −2, … from the middle of the row outwards.
    step = np.ceil(rank / 2) * np.where(rank % 2 == 1, 1.0, -1.0)
    return np.asarray(step / max(1.0, counts.max() / 2))


def _shade(axis: Axis) -> Floats:
    """Scale a feature to [0, 1] between its 5 % and 95 % quantiles, so that outliers do not compress the colours.

    NaN stands for missing values and categories.
    """
    column = axis.places
    finite_values = column[np.isfinite(column)]
    if axis.kind == "category" or not len(finite_values):
        return np.full(len(column), np.nan)
    low, high = np.quantile(finite_values, (0.05, 0.95))
    if low == high:
        low, high = float(finite_values.min()), float(finite_values.max())
    return np.where(np.isnan(column), column, 0.5) if low == high else np.clip((column - low) / (high - low), 0.0, 1.0)


class PartialDependenceDisplay(Display):
    """Plot a `PartialDependence`: a curve over one feature, or a map over two.

    Parameters
    ----------
    dependence : PartialDependence
        Result of `partial_dependence`.

    Attributes
    ----------
    ax_ : matplotlib axes
        Axes of the plot.
    figure_ : matplotlib figure
        Figure of the plot.
    lines_ : list of lines
        Curves of the mean, one per output.
    individual_lines_ : list of lines
        Curves of single samples.
    contour_ : contour set or mesh
        Map of two features.
    """

    def __init__(self, dependence: PartialDependence) -> None:
        self.dependence = dependence

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, features: Any, *, output: int | None = None, ax: MaybeAxes = None, **options: Any
    ) -> Self:
        """Compute the partial dependence of a fitted model and plot it.

        Parameters
        ----------
        model : estimator
            Fitted model.
        X : samples
            Samples over which the other features are averaged.
        features : int, str, or a pair of them
            Columns on the axes, by index or name.
        output : int, optional
            Index of the output to draw; by default all. A map of two features shows one output.
        ax : matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        **options
            Options of `partial_dependence`, such as `grid_resolution` and `individual`.
        """
        return cls(partial_dependence(model, X, features, **options)).plot(ax=ax, output=output)

    def plot(self, ax: MaybeAxes = None, output: int | None = None) -> Self:
        """Draw the partial dependence.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        output : int, optional
            Index of the output to draw; by default all. A map of two features shows one output.

        Returns
        -------
        self
            The display.
        """
        n_outputs = len(self.dependence.output_names)
        if output is not None and not 0 <= output < n_outputs:
            raise ValueError(f"output={output!r} is none of the {n_outputs} outputs, counted from 0")
        ax = axes_for(ax, "plotting a partial dependence", (6.4, 4.8))
        self.ax_, self.figure_ = ax, ax.figure
        self.lines_: list[object] = []
        self.individual_lines_: list[object] = []
        result = self.dependence
        outputs = list(range(n_outputs)) if output is None else [output]
        n_features = len(result.features)
        average = result.average.reshape(*result.average.shape[:n_features], -1)
        ax.set_xlabel(shorten(result.feature_names[0], 60))
        named_grids = zip(result.feature_names, result.grid, strict=True)
        axes = [Axis.of(name, cells, category=cells.dtype.kind == "O") for name, cells in named_grids]
        self._coordinates = [axis.places for axis in axes]
        self._categorical = [axis.kind == "category" for axis in axes]
        for axis, axis_of_plot in zip(axes, (ax.xaxis, ax.yaxis), strict=False):
            set_ticks_of(axis, axis_of_plot)
        if n_features == 2:
            self._draw_map(average, outputs)
            return self
        if result.individual is not None:
            self._draw_curves(result.individual.reshape(*result.individual.shape[:2], -1), outputs)
        in_legend = 1 < len(outputs) <= MOST_IN_LEGEND
        for k, colour in zip(outputs, colours(len(outputs)), strict=True):
            style = {"color": colour, "linewidth": 2.5 if len(outputs) <= MOST_IN_LEGEND else 1.0}
            style["marker"] = "o" if len(result.grid[0]) == 1 or self._categorical[0] else None
            style["linestyle"] = "none" if self._categorical[0] else "-"  # no line between categories
            self.lines_ += ax.plot(self._coordinates[0], average[:, k], label=shorten(result.output_names[k]), **style)
        if in_legend:
            ax.legend()
        label = "mean of f" if in_legend else f"mean of f, {len(outputs)} outputs"
        ax.set_ylabel(label if len(outputs) > 1 else _mean_label(result.output_names[outputs[0]]))
        ax.spines[["top", "right"]].set_visible(False)
        return self

    def to_frame(self) -> DataFrame:
        """Return the partial dependence as a pandas DataFrame."""
        return self.dependence.to_frame()

    def _draw_curves(self, individual: Floats, outputs: list[int]) -> None:
        """Draw the curves of single samples."""
        step = max(1, -(-len(individual) // MOST_CURVES))
        for k, output_colour in zip(outputs, colours(len(outputs)), strict=True):
            for curve in individual[::step, :, k]:
                colour = "0.6" if len(outputs) == 1 else output_colour
                self.individual_lines_ += self.ax_.plot(
                    self._coordinates[0], curve, color=colour, alpha=0.35, linewidth=0.6
                )

    def _draw_map(self, average: Floats, outputs: list[int]) -> None:
        """Draw contours over two features, or a mesh if one is categorical."""
        if len(outputs) > 1:
            raise ValueError(f"a map shows one of the {len(outputs)} outputs; choose one with output=")
        result = self.dependence
        values = average[:, :, outputs[0]].T
        if any(self._categorical):
            rows, columns = (np.argsort(places) for places in self._coordinates)
            sides = self._coordinates[0][rows], self._coordinates[1][columns]
            self.contour_ = self.ax_.pcolormesh(*sides, values[np.ix_(columns, rows)], cmap="coolwarm")
        else:
            self.contour_ = self.ax_.contourf(*self._coordinates, values, levels=12, cmap="coolwarm")
        self.figure_.colorbar(self.contour_, ax=self.ax_, label=_mean_label(result.output_names[outputs[0]]))
        self.ax_.set_ylabel(shorten(result.feature_names[1], 60))
        self.values_ = np.asarray(values)


def _mean_label(name: str) -> str:
    """Return the axis label for the mean of an output."""
    return "mean of f" if name == "f" else f"mean of f, for {shorten(name)}"
