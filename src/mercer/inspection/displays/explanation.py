"""The pictures of an explanation, and of a partial dependence."""

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
    colours,
    ink,
    short,
    ticks_of,
    told,
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
# From low to high over a middle that is seen on white and on black.
_SCALE = ("#2f6fd0", "#8e4fa8", "#e0433a")


class ExplanationDisplay(Picture):
    """The picture of an `Explanation`.

    "bar" shows the mean |value| of each feature, with several outputs beside one another (more than ten are added up),
    or the signed values of one sample. "beeswarm" shows every sample as a point at its value, coloured by what the
    feature is.

    Parameters
    ----------
    explanation : Explanation
        What `explain` returned.
    kind : {"bar", "beeswarm"}, default="bar"
        The picture.
    max_features : int, default=10
        The features with the largest mean |value| are shown.

    Attributes
    ----------
    features_ : array of int
        The columns shown, from top to bottom.
    bars_ : list of containers of bars, one per output
    points_ : list of scatters, one per feature
    """

    _purpose = "plotting an explanation"

    def __init__(self, explanation: Explanation, kind: str = "bar", max_features: int = 10) -> None:
        one_of("kind", kind, _KINDS)
        self.explanation = explanation
        self.kind = kind
        self.max_features = integer("max_features", max_features, 1, "the number of features to show")
        if kind == "beeswarm" and explanation.several:
            raise ValueError(
                f"a beeswarm shows one output, but there are {len(explanation.output_names)}; choose one by "
                "explanation.output(name) or explanation.of_class(label)"
            )

    @classmethod
    def from_explanation(
        cls, explanation: Explanation, *, kind: str = "bar", max_features: int = 10, ax: MaybeAxes = None
    ) -> Self:
        """An explanation, drawn."""
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
        """Explain samples by a trained machine and draw the result."""
        found = explain(model, X, background, background_weight=background_weight)
        return cls(found, kind, max_features).plot(ax)

    @property
    def _shown(self) -> Indices:
        """The features with the largest mean |value|, over all outputs."""
        e = self.explanation
        sizes = e.importance.sum(axis=1) if e.several else e.importance
        return np.argsort(-sizes, kind="stable")[: self.max_features]

    @property
    def _inches(self) -> tuple[float, float]:  # type: ignore[override]  # as high as it has features
        return 6.4, max(2.4, 1.56 + 0.36 * len(self._shown))

    def _draw(self, ax: Axes) -> None:
        self.features_, self.ax_, self.figure_ = self._shown, ax, ax.figure
        self.bars_: list[object] = []
        self.points_: list[object] = []
        if self.kind == "beeswarm":
            self._beeswarm()
        elif self._signed:
            self._sample()
        else:
            self._bars()
        ax.spines[["top", "right"]].set_visible(False)

    def to_frame(self) -> DataFrame:
        """What is drawn, as a pandas DataFrame: a row per feature, or per feature and sample in a beeswarm.

        Of one sample the values have their signs, and what its features are stands beside them.
        """
        pandas = require("pandas", "a frame of what is drawn")
        e, shown = self.explanation, self._shown
        names = [e.feature_names[j] for j in shown]
        if self._signed:
            columns = {e.output_names[0]: e.values[0, shown], "data": e.data[0, shown]}
            return pandas.DataFrame(columns, index=pandas.Index(names, name="feature"))
        if self.kind == "bar":
            table = e.importance.reshape(e.values.shape[1], -1)[shown]
            return pandas.DataFrame(table, index=pandas.Index(names, name="feature"), columns=list(e.output_names))
        return pandas.DataFrame(
            {
                "feature": np.repeat(names, len(e)),
                "sample": np.tile(np.arange(len(e)), len(shown)),
                "value": e.values[:, shown].T.ravel(),
                "data": e.data[:, shown].T.ravel(),
            }
        )

    @property
    def _signed(self) -> bool:
        """Whether bars are the values of one sample, with their signs."""
        return self.kind == "bar" and len(self.explanation) == 1 and not self.explanation.several

    # --- kinds -----------------------------------------------------------------------------------------------------

    def _bars(self) -> None:
        e = self.explanation
        table = e.importance.reshape(e.values.shape[1], -1)
        names, summed = e.output_names, ""
        if table.shape[1] > MOST_IN_LEGEND:
            summed = f", added up over {table.shape[1]} outputs"
            table, names = table.sum(axis=1, keepdims=True), ("all",)
        heights, left = table[self.features_], np.zeros(len(self.features_))
        for k, (name, colour) in enumerate(zip(names, colours(len(names)), strict=True)):
            places = np.arange(len(heights))
            drawn = self.ax_.barh(places, heights[:, k], left=left, height=0.7, label=short(name), color=colour)
            self.bars_.append(drawn)
            left = left + heights[:, k]
        self._rows()
        others = len(table) - len(heights)
        together = float(table.sum() - heights.sum())
        label = f"mean |Shapley value|{summed}" + f"\n{others} others have {together:.3g} together" * (others > 0)
        self.ax_.set_xlabel(label)
        if len(names) > 1:
            self.ax_.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))

    def _sample(self) -> None:
        """One sample: what each feature adds, with its sign."""
        e, values = self.explanation, self.explanation.values[0]
        rest = np.setdiff1d(np.arange(len(values)), self.features_)
        heights = np.append(values[self.features_], [values[rest].sum()] if len(rest) else [])
        colours = [_RAISES if v > 0 else _LOWERS for v in heights[: len(self.features_)]] + [_OTHERS] * (len(rest) > 0)
        self.bars_.append(self.ax_.barh(np.arange(len(heights)), heights, height=0.7, color=colours))
        names = [f"{short(e.feature_names[j])} = {short(told(e.data[0, j]), 24)}" for j in self.features_]
        self._rows([*names, f"{len(rest)} others" if len(rest) > 1 else "1 other"] if len(rest) else names)
        self.ax_.axvline(0.0, color=ink(self.ax_), linewidth=0.8)
        total = float(e.base_values[0] + values.sum())
        self.ax_.set_xlabel(self._value)
        self.ax_.set_title(f"f = {total:.4g}, background {float(e.base_values[0]):.4g}", fontsize="medium")

    def _beeswarm(self) -> None:
        e = self.explanation
        colors = require("matplotlib.colors", "plotting an explanation")
        # Holes, and categories, are neither low nor high.
        scale = colors.LinearSegmentedColormap.from_list("", _SCALE).with_extremes(bad=_OTHERS)
        for place, j in enumerate(self.features_):
            # Rows lie 1 apart and are 80 points wide.
            heights = place + 0.38 * swarm(e.values[:, j], 80)
            drawn = self.ax_.scatter(
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
            self.points_.append(drawn)
        self._rows()
        self.ax_.axvline(0.0, color=ink(self.ax_), linewidth=0.8, zorder=0)
        self.ax_.set_xlabel(self._value)
        bar = self.figure_.colorbar(self.points_[0], ax=self.ax_, ticks=[0, 1], aspect=40, pad=0.02)
        bar.ax.set_yticklabels(["low", "high"])
        bar.set_label("value of the feature", labelpad=-8)
        bar.outline.set_visible(False)

    @property
    def _value(self) -> str:
        """What the values add up to, for an axis."""
        (name,) = self.explanation.output_names
        return "Shapley value" if name == "f" else f"Shapley value, for {short(name)}"

    def _rows(self, names: list[str] | None = None) -> None:
        """What each row is, the first one on top."""
        names = [short(self.explanation.feature_names[j]) for j in self.features_] if names is None else names
        self.ax_.set_yticks(np.arange(len(names)), names)
        self.ax_.set_ylim(len(names) - 0.4, -0.6)


def swarm(values: Floats, bins: int) -> Floats:
    """Heights between −1 and 1 that set apart points of about the same value, the more of them the higher."""
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    if high == low:
        return np.zeros(len(values))
    bin_of = np.minimum(((values - low) / (high - low) * bins).astype(np.intp), bins - 1)
    counts = np.bincount(bin_of, minlength=bins)
    order = np.argsort(bin_of, kind="stable")
    begin = np.cumsum(counts) - counts
    rank = np.empty(len(values))
    rank[order] = np.arange(len(values)) - begin[bin_of[order]]
    # 0, 1, −1, 2, −2, … from the middle of the row outwards.
    step = np.ceil(rank / 2) * np.where(rank % 2 == 1, 1.0, -1.0)
    return np.asarray(step / max(1.0, counts.max() / 2))


def _shade(axis: Axis) -> Floats:
    """A feature's values between 0 and 1, by quantiles, so that one outlier does not make all others look alike.

    NaN stands for a hole, and for a category.
    """
    column = axis.places
    known = column[np.isfinite(column)]
    if axis.kind == "category" or not len(known):
        return np.full(len(column), np.nan)
    low, high = np.quantile(known, (0.05, 0.95))
    if low == high:
        low, high = float(known.min()), float(known.max())
    return np.where(np.isnan(column), column, 0.5) if low == high else np.clip((column - low) / (high - low), 0.0, 1.0)


class PartialDependenceDisplay(Display):
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
        cls, model: Any, X: Any, features: Any, *, output: int | None = None, ax: MaybeAxes = None, **options: Any
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

    def plot(self, ax: MaybeAxes = None, output: int | None = None) -> Self:
        """Draw into axes, or into a new figure; of several outputs all, or the one with this number."""
        known = len(self.dependence.output_names)
        if output is not None and not 0 <= output < known:
            raise ValueError(f"output={output!r} is none of the {known} outputs, from 0 on")
        ax = axes_for(ax, "plotting a partial dependence", (6.4, 4.8))
        self.ax_, self.figure_ = ax, ax.figure
        self.lines_: list[object] = []
        self.individual_lines_: list[object] = []
        found = self.dependence
        shown = list(range(len(found.output_names))) if output is None else [output]
        axes = len(found.features)
        average = found.average.reshape(*found.average.shape[:axes], -1)
        ax.set_xlabel(short(found.feature_names[0], 60))
        named = zip(found.feature_names, found.grid, strict=True)
        along = [Axis.of(name, cells, category=cells.dtype.kind == "O") for name, cells in named]
        self._along = [axis.places for axis in along]
        self._named = [axis.kind == "category" for axis in along]
        for axis, side in zip(along, (ax.xaxis, ax.yaxis), strict=False):
            ticks_of(axis, side)
        if axes == 2:
            self._contours(average, shown)
            return self
        if found.individual is not None:
            self._curves(found.individual.reshape(*found.individual.shape[:2], -1), shown)
        in_legend = 1 < len(shown) <= MOST_IN_LEGEND
        for k, colour in zip(shown, colours(len(shown)), strict=True):
            style = {"color": colour, "linewidth": 2.5 if len(shown) <= MOST_IN_LEGEND else 1.0}
            style["marker"] = "o" if len(found.grid[0]) == 1 or self._named[0] else None
            style["linestyle"] = "none" if self._named[0] else "-"  # nothing lies between two categories
            self.lines_ += ax.plot(self._along[0], average[:, k], label=short(found.output_names[k]), **style)
        if in_legend:
            ax.legend()
        several = "mean of f" if in_legend else f"mean of f, {len(shown)} outputs"
        ax.set_ylabel(several if len(shown) > 1 else _label(found.output_names[shown[0]]))
        ax.spines[["top", "right"]].set_visible(False)
        return self

    def to_frame(self) -> DataFrame:
        """What is drawn, as a pandas DataFrame."""
        return self.dependence.to_frame()

    def _curves(self, individual: Floats, shown: list[int]) -> None:
        step = max(1, -(-len(individual) // MOST_CURVES))
        for k, own in zip(shown, colours(len(shown)), strict=True):
            for curve in individual[::step, :, k]:
                colour = "0.6" if len(shown) == 1 else own
                self.individual_lines_ += self.ax_.plot(self._along[0], curve, color=colour, alpha=0.35, linewidth=0.6)

    def _contours(self, average: Floats, shown: list[int]) -> None:
        if len(shown) > 1:
            raise ValueError(f"contours show one of the {len(shown)} outputs; choose one by output=")
        found = self.dependence
        values = average[:, :, shown[0]].T
        if any(self._named):
            rows, columns = (np.argsort(places) for places in self._along)
            sides = self._along[0][rows], self._along[1][columns]
            self.contour_ = self.ax_.pcolormesh(*sides, values[np.ix_(columns, rows)], cmap="coolwarm")
        else:
            self.contour_ = self.ax_.contourf(*self._along, values, levels=12, cmap="coolwarm")
        self.figure_.colorbar(self.contour_, ax=self.ax_, label=_label(found.output_names[shown[0]]))
        self.ax_.set_ylabel(short(found.feature_names[1], 60))
        self.values_ = np.asarray(values)


def _label(name: str) -> str:
    return "mean of f" if name == "f" else f"mean of f, for {short(name)}"
