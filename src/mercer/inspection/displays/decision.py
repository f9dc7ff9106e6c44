"""Plot of a decision function over two features: regions, margins and support vectors.

Two features vary over a grid; the others are fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mercer.inspection.displays.drawing import (
    MOST_IN_LEGEND,
    Picture,
    cell_text,
    check_levels_fit,
    colours,
    escape_text,
    foreground,
    frame,
    legend,
    machine_and_rows,
    set_ticks_of,
    shorten,
    support_vector_rows,
    wrap_text,
)
from mercer.inspection.displays.types import At, Axes, Column, Columns, DataFrame, MaybeArray, MaybeAxes, Names
from mercer.runtime.optional import require
from mercer.samples.arrays import Floats, Indices, is_sparse
from mercer.tables.axis import Axis
from mercer.tables.cells import is_missing
from mercer.tables.encodings import DroppedColumn, Words
from mercer.tables.frame import column_of, frame_of
from mercer.tables.unwrap import frame_like, unwrap


@dataclass(frozen=True, eq=False)
class Plane:
    """Grid over two features, with the other features fixed.

    `rows` holds the grid points as an array or a frame like X, which the model can predict. `axes` describes the two
    columns of X, and `points` holds the samples in them. `rest` states the values of the other features.
    """

    xx0: Floats
    xx1: Floats
    rows: Any
    axes: tuple[Axis, Axis]
    names: tuple[str, str]
    rest: str

    @property
    def points(self) -> Floats:
        """Coordinates of the samples in the two features."""
        return np.column_stack([axis.places for axis in self.axes])

    @classmethod
    def build(
        cls,
        X: Any,
        features: Columns | None,
        names: Names,
        model: Any,
        resolution: int,
        margin: float = 0.1,
        at: At = None,
    ) -> Plane:
        """Build the grid over two features, given by index or name; by default the first two that the model uses.

        `at` maps indices or names of other features to their values; by default these have a typical value.
        """
        unwrapped = unwrap(model)
        titles = column_names(X, names, getattr(model, "feature_names_in_", None))
        if len(titles) < 2:
            raise ValueError(f"a plot needs two features, but X has {len(titles)}")
        table = frame_of(X.toarray() if is_sparse(X) else X)
        if features is None:  # the first two columns that are used and fit on an axis
            kinds = [unwrapped.encoding(name, k) for k, name in enumerate(table.names)]
            positions = [k for k, kind in enumerate(kinds) if not isinstance(kind, DroppedColumn | Words)]
            features = positions[:2] if len(positions) > 1 else (0, 1)
        i, j = _column_pair(features, titles)
        axes = [Axis.of(titles[k], column_of(X, k), unwrapped.encoding(table.names[k], k)) for k in (i, j)]
        xx0, xx1 = np.meshgrid(*(_axis_values(axis, margin, resolution) for axis in axes))
        settings = _check_fixed_values({} if at is None else at, titles, (i, j))
        defaults = [settings[k] if k in settings else _typical_value(column) for k, column in enumerate(table.columns)]
        cells: list[Any] = [np.full(xx0.size, value) for value in defaults]
        cells[i], cells[j] = axes[0].at(xx0.ravel()), axes[1].at(xx1.ravel())
        rows = frame_like(X, table.names, cells)
        others = [k for k in range(len(titles)) if k not in (i, j)]
        text = _typical_text([(titles[k], defaults[k]) for k in others if k not in settings])
        text = "; ".join(part for part in (_values_text((titles[k], v) for k, v in settings.items()), text) if part)
        return cls(xx0, xx1, rows, (axes[0], axes[1]), (titles[i], titles[j]), text)


def _column_pair(features: Columns, titles: list[str]) -> tuple[int, int]:
    """Return the indices of two different columns, given by index or name."""
    columns = [column_number(feature, titles) for feature in features]
    if len(columns) != 2 or None in columns or columns[0] == columns[1]:
        can_list_titles = len(titles) <= 20 and titles != [f"feature {k}" for k in range(len(titles))]
        raise ValueError(
            f"features={features!r} must be two different columns of the {len(titles)} in X, by index from 0 or "
            f"by name{': ' + ', '.join(titles) if can_list_titles else ''}"
        )
    return columns[0], columns[1]  # type: ignore[return-value]  # None raises above


def column_number(column: Any, titles: list[str]) -> int | None:
    """Return the index of a column given by index or name; None if there is no such column."""
    k = titles.index(column) if isinstance(column, str) and column in titles else column
    is_integer = isinstance(k, int | np.integer) and not isinstance(k, bool)
    return int(k) if is_integer and 0 <= k < len(titles) else None


def _axis_values(axis: Axis, margin: float, resolution: int) -> Floats:
    """Return the grid along one axis as numbers: all categories, or `resolution` values over the range of the data."""
    if axis.kind == "category":
        check_levels_fit(axis)  # raises before the model is evaluated at all levels
        return np.arange(float(len(axis.levels)))
    finite = axis.places[np.isfinite(axis.places)]
    if not len(finite):
        raise ValueError(f"the column {axis.name!r}, {axis.kind}, cannot be drawn on an axis: choose other features")
    low, high = float(finite.min()), float(finite.max())
    border = margin * (high - low) if high > low else 1.0
    return np.linspace(low - border, high + border, resolution)


def _typical_value(column: Any) -> Any:
    """Return a typical value of a column: the mean of numbers, the median of dates, otherwise the mode."""
    if column.dtype.kind in "iuf":
        finite = column[np.isfinite(column)]
        return float(finite.mean()) if len(finite) else np.nan
    if column.dtype.kind == "M":
        dates = np.sort(column[~np.isnat(column)])
        return dates[len(dates) // 2] if len(dates) else np.datetime64("NaT", "s")
    cells = [item for item in column.tolist() if not is_missing(item)] if column.dtype.kind == "O" else list(column)
    return Counter(cells).most_common(1)[0][0] if cells else None


def _typical_text(others: list[tuple[str, object]]) -> str:
    """Describe the typical values of features that are not on an axis; return "" if there are none."""
    if not others:
        return ""
    statistics = {
        "mean" if isinstance(v, float) else "median" if isinstance(v, np.datetime64) else "mode" for _, v in others
    }
    statistic_text = " or ".join(sorted(statistics)).replace("mode", "most frequent value")
    if len(others) > 3:  # more do not fit on one line below a plot 6.4 inches wide
        return f"the other {len(others)} features at their {statistic_text}"
    return f"{_values_text(others)} ({statistic_text})"


def _values_text(values: Iterable[tuple[str, object]]) -> str:
    """Return "at name = value, …" for pairs of a name and a value; "" if there are none."""
    texts = [
        f"{name} = {value:.3g}" if isinstance(value, float) else f"{name} = {cell_text(value)}"
        for name, value in values
    ]
    return f"at {', '.join(texts)}" if texts else ""


def _check_fixed_values(at: Any, titles: list[str], shown: tuple[int, int]) -> dict[int, Any]:
    """Check the values of other features that `at` gives; return them by column index."""
    if not isinstance(at, Mapping):
        raise TypeError(
            f"at={at!r} must be a dict from columns, by index from 0 or by name, to their values, such as "
            f"{{{titles[-1]!r}: 0.0}}"
        )
    out = {}
    for key, value in at.items():
        k = column_number(key, titles)
        if k is None or k in shown:
            raise ValueError(
                f"at={at!r} must give values for columns other than the two that are shown, by index from 0 or by "
                f"name; {key!r} is not one of them"
            )
        out[k] = float(value) if isinstance(value, int | float | np.number) else value
    return out


def column_names(X: Any, names: Names = None, fitted_names: Names = None) -> list[str]:
    """Return a name for each column: from `names`, from the frame, from `fitted_names`, or "feature" and a number."""
    titles = names if names is not None else frame_of(X).names if hasattr(X, "columns") else fitted_names
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    if len(shape) != 2:
        raise ValueError(f"a plot needs a matrix of samples, but X has shape {shape}")
    n = shape[1]
    if titles is None or (names is None and len(titles) != n):
        return [f"feature {k}" for k in range(n)]
    if len(titles) != n:
        raise ValueError(f"names has {len(titles)} names, but X has {n} columns")
    return [str(name) for name in titles]


def column_axis(X: Any, feature: Column, model: object) -> Axis:
    """Return the axis of one column, given by index or name."""
    titles = column_names(X, None, getattr(model, "feature_names_in_", None))
    k = column_number(feature, titles)
    if k is None:
        raise ValueError(f"feature={feature!r} is none of the {len(titles)} columns, by index from 0 or by name")
    name = frame_of(X).names[k] if hasattr(X, "columns") else ""
    return Axis.of(titles[k], column_of(X, k), unwrap(model).encoding(name, k))


# Largest number of points that are drawn opaque; more begin to hide one another in a plot 6.4 inches wide.
_OPAQUE_ROWS = 400

# A mesh is rasterised in SVG and PDF files: writing it as 40,000 shapes took five seconds.
_MESH_OPTIONS: dict[str, Any] = {"shading": "auto", "rasterized": True}


@dataclass(eq=False, repr=False)
class DecisionDisplay(Picture):
    """Plot the decision regions of a classifier with margins, or the values of a regression, and the samples.

    The lines are f = 0 and, dashed, f = ±1 for two classes; the boundaries of the regions for several; f = 0 for
    novelty detection. In a regression the samples share the colour scale of f, so that a sample with a large residual
    differs from its surroundings. Free support vectors, which lie on the margin, have a solid ring; bounded ones,
    inside the margin or on the wrong side, a dotted ring. Many samples are drawn smaller and transparent. If there are
    more than ten classes, their names are written among their samples instead of in a legend.

    Parameters
    ----------
    xx0, xx1 : arrays of shape (resolution, resolution)
        Grid over the two features: dates in days since 1970, categories by the index of their level.
    response : array of the same shape
        Index of the predicted class, or the predicted value.
    values : array of the same shape, or None
        f on the grid if there is a single f: two classes, regression or novelty detection.
    classes : array of shape (n_classes,), or None
        Class labels; None for regression and novelty detection.
    points : array of shape (n_samples, 2), or None
        Samples in the two features.
    codes : array of shape (n_samples,), or None
        Index of each sample's class, −1 if it is none of `classes`.
    free, bounded : arrays of int, or None
        Indices of the points that are free and bounded support vectors.
    names : pair of str
        Names of the two features.
    targets : array of shape (n_samples,), or None
        Targets y of a regression.
    rest : str
        Values of the other features; printed below the plot.
    novelty : bool
        Whether f = 0 is a boundary without classes, as in novelty detection.
    axes : pair, or None
        Axes of the two features, which may be dates or categories; set by `from_estimator`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercer import SVC
    >>> from mercer.inspection.displays import DecisionDisplay
    >>> X, y = make_moons(100, noise=0.1, random_state=0)
    >>> display = DecisionDisplay.from_estimator(SVC(C=10).fit(X, y), X, y)  # doctest: +SKIP
    """

    xx0: Floats
    xx1: Floats
    response: np.ndarray
    values: Any = None
    classes: Any = None
    points: Any = None
    codes: Indices | None = None
    free: Indices | None = None
    bounded: Indices | None = None
    names: tuple[str, str] = ("feature 0", "feature 1")
    targets: Floats | None = None
    rest: str = ""
    novelty: bool = False
    axes: tuple[Axis, Axis] | None = None
    _purpose = "drawing a decision"
    _inches = (6.4, 4.8)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: MaybeArray = None,
        *,
        features: Columns | None = None,
        resolution: int = 200,
        margin: float = 0.1,
        ax: MaybeAxes = None,
        names: Names = None,
        at: At = None,
    ) -> Self:
        """Evaluate a fitted estimator on a grid around X and plot it.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator; also a Pipeline, a `mercer.tabular` model, a search or a calibrated model.
        X : array or frame of shape (n_samples, n_features)
            Samples to draw; those that are support vectors are ringed. The columns of a frame name the axes.
        y : array of shape (n_samples,), optional
            Classes or targets, which colour the points.
        features : pair of int or str, optional
            Columns on the axes, by index or name; by default the first two that the model uses. They may be dates or
            categories, whose points are spread a little. Other columns are fixed at their mean (dates at their median,
            categories at their most frequent value), and the plot says so.
        resolution : int, default=200
            Number of grid points along each axis.
        margin : float, default=0.1
            Border around the data, as a share of their range.
        ax : matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        names : sequence of str, optional
            Names of all columns; by default those of the frame, or those that the estimator was fitted with.
        at : dict, optional
            Values of other columns, by index or name, instead of their typical value.

        Returns
        -------
        DecisionDisplay
            The display, drawn.
        """
        plane = Plane.build(X, features, names, estimator, resolution, margin, at)
        return cls.on_plane(plane, estimator, X, y).plot(ax)

    @classmethod
    def on_plane(cls, plane: Plane, estimator: Any, X: Any, y: MaybeArray) -> Self:
        """Evaluate a fitted estimator on a grid, without drawing it."""
        if not hasattr(estimator, "decision_function") and not hasattr(estimator, "predict"):
            raise TypeError(
                f"DecisionDisplay draws predictions, and {type(estimator).__name__} predicts nothing; use a "
                "classifier, a regressor, a novelty detector or a clustering with `predict`"
            )
        machine, rows = machine_and_rows(estimator, X)
        classes = getattr(machine, "classes_", None)
        has_decision_function = hasattr(estimator, "decision_function")
        values = None
        if classes is None or (len(classes) == 2 and has_decision_function):
            evaluate = estimator.decision_function if has_decision_function else estimator.predict
            values = np.asarray(evaluate(plane.rows), dtype=np.float64)
            if values.size != plane.xx0.size:
                raise ValueError(
                    f"a plot shows one value at each point, but this model predicts {values.shape[-1]}: use a model "
                    "with a single output"
                )
            values = values.reshape(plane.xx0.shape)
        response: Any = values
        if classes is not None:
            response = _codes(estimator.predict(plane.rows), classes).reshape(plane.xx0.shape)
        free, bounded = support_vector_rows(machine, rows)
        has_numeric_targets = y is not None and classes is None and not has_decision_function
        return cls(
            plane.xx0,
            plane.xx1,
            response,
            values,
            classes,
            plane.points,
            None if y is None or classes is None else _codes(y, classes),
            free,
            bounded,
            plane.names,
            targets=np.asarray(y, dtype=np.float64).ravel() if has_numeric_targets else None,
            rest=plane.rest,
            novelty=classes is None and has_decision_function,
            axes=plane.axes,
        )

    def _draw(self, ax: Axes) -> None:
        norm = None
        if self.classes is not None:
            self._draw_regions(ax)
        else:
            norm = self._draw_values(ax)
        self._draw_points(ax, norm)
        ax.set(xlabel=shorten(self.names[0], 60), ylabel=shorten(self.names[1], 60))
        for axis, axis_of_plot in zip(self.axes or (), (ax.xaxis, ax.yaxis), strict=False):
            set_ticks_of(axis, axis_of_plot)
        if self.rest:
            label_offset = {"xycoords": ax.xaxis.label, "xytext": (0, -3), "textcoords": "offset points"}
            text = escape_text(wrap_text(self.rest, ax, 8))
            ax.annotate(text, (0.5, 0), **label_offset, ha="center", va="top", fontsize=8, alpha=0.8)

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with a row per grid point: coordinates, predicted class, and f if there is one."""
        grids: list[np.ndarray] = [self.xx0.ravel(), self.xx1.ravel()]
        if self.axes is not None:
            grids = [axis.at(grid) for axis, grid in zip(self.axes, grids, strict=True)]
        columns: dict[str, Any] = dict(zip(self.names, grids, strict=True))
        if self.classes is not None:
            columns["class"] = np.asarray(self.classes)[self.response.ravel()]
        if self.values is not None:
            columns["f"] = self.values.ravel()
        return frame("DecisionDisplay.to_frame", columns)

    def _draw_regions(self, ax: Axes) -> None:
        """Draw the predicted classes, and the boundaries between them."""
        colors = require("matplotlib.colors", "drawing a decision")
        shades = colors.ListedColormap(colours(len(self.classes)))
        largest_code = max(len(self.classes) - 1, 1)
        style = {"cmap": shades, "alpha": 0.25, "vmin": 0, "vmax": largest_code}
        ax.pcolormesh(self.xx0, self.xx1, self.response, **style, **_MESH_OPTIONS)
        if self.values is not None:
            self._draw_lines(ax, self.values, {-1.0: "--", 0.0: "-", 1.0: "--"})
        else:
            for code in np.unique(self.response)[:-1]:  # the boundaries of the last class are those of the others
                self._draw_lines(ax, (self.response == code).astype(np.float64), {0.5: "-"})

    def _draw_values(self, ax: Axes) -> Any:
        """Draw f as colours with a colour bar; return the scale of the colours."""
        colors = require("matplotlib.colors", "drawing a decision")
        if self.novelty:
            norm, cmap, label = colors.CenteredNorm(), "RdBu", "f(x)"
        else:
            values = self.response.ravel()
            if self.targets is not None:  # without the extremes, so that outliers do not compress the scale
                values = np.concatenate([values, np.nanquantile(self.targets, [0.01, 0.99])])
            norm, cmap = colors.Normalize(np.nanmin(values), np.nanmax(values)), "viridis"
            label = "f(x)" if self.targets is None else "f(x) (background), y (points)"
        style = {"norm": norm, "cmap": cmap, "alpha": 0.6 if self.novelty else None}
        mesh = ax.pcolormesh(self.xx0, self.xx1, self.response, **style, **_MESH_OPTIONS)
        ax.figure.colorbar(mesh, ax=ax, label=label)
        if self.novelty:
            self._draw_lines(ax, self.values, {0.0: "-"})
        return norm

    def _draw_lines(self, ax: Axes, values: Floats, styles: dict[float, str]) -> None:
        """Draw contour lines of values, each level in its line style."""
        if any(axis.kind == "category" for axis in self.axes or ()):
            return  # there is no boundary between categories
        levels = [level for level in styles if values.min() < level < values.max()]
        if levels:
            line = [styles[level] for level in levels]
            ax.contour(
                self.xx0, self.xx1, values, levels=levels, linestyles=line, colors=[foreground(ax)], linewidths=1
            )

    def _draw_points(self, ax: Axes, norm: Any) -> None:
        """Draw the samples, in the colours of their classes or targets, and rings around support vectors."""
        if self.points is None:
            return
        x, z = self._positions()
        size, alpha = _mark_style(len(x))
        line_colour = foreground(ax)
        style = {"s": 16 * size, "alpha": alpha, "linewidths": 0, "zorder": 3}
        handles = []
        if self.codes is not None:
            handles = self._draw_classes(ax, style)
        elif self.targets is not None:
            edge = {"edgecolors": "white", "linewidths": 0.6 if alpha == 1 else 0, "s": 24 * size}
            ax.scatter(x, z, c=self.targets, norm=norm, cmap="viridis", **(style | edge))
        else:
            ax.scatter(x, z, color=line_colour, **style)
        for name, rows, line in (("free", self.free, "-"), ("bounded", self.bounded, ":")):
            if rows is not None and len(rows):
                size, alpha = _mark_style(4 * len(rows))  # a ring covers the area of four points
                ring = {"s": 60 * size, "alpha": alpha, "linewidths": size, "linestyles": line, "zorder": 4}
                label = f"{name} support vectors"
                handles.append(
                    ax.scatter(x[rows], z[rows], facecolors="none", edgecolors=line_colour, label=label, **ring)
                )
        if handles:
            # loc="best" looks at every point, which is slow for many.
            loc = "best" if len(x) <= 5 * _OPAQUE_ROWS else "upper right"
            for handle in legend(ax, handles=handles, loc=loc).legend_handles:
                handle.set_alpha(1)

    def _positions(self) -> Floats:
        """Return the coordinates at which points are drawn; those of a category are spread over a band of width 0.6."""
        out = np.array(self.points, dtype=np.float64).T
        for k, axis in enumerate(self.axes or ()):
            if axis.kind == "category":
                step = (0.618033988749895, 0.7548776662466927)[k]  # multiples of the step modulo 1 fill [0, 1) evenly
                out[k] += 0.6 * (np.arange(out.shape[1]) * step % 1.0 - 0.5)
        return out

    def _draw_classes(self, ax: Axes, style: Mapping[str, object]) -> list[Any]:
        """Draw the samples of each class; return the artists for the legend."""
        effects = require("matplotlib.patheffects", "drawing a decision")
        halo = [effects.withStroke(linewidth=2, foreground=ax.get_facecolor())]
        artists = []
        for c, (label, colour) in enumerate(zip(self.classes, colours(len(self.classes)), strict=True)):
            points = self._positions()[:, self.codes == c].T
            artists.append(ax.scatter(*points.T, color=[colour], label=shorten(label), **style))
            if len(self.classes) > MOST_IN_LEGEND and len(points):
                text_style = {"ha": "center", "va": "center", "fontsize": "small", "zorder": 5, "path_effects": halo}
                ax.text(*np.nanmedian(points, axis=0), shorten(label, 12), **text_style)
        return artists if len(self.classes) <= MOST_IN_LEGEND else []


def _mark_style(n: int) -> tuple[float, float]:
    """Return the relative size and the opacity of n marks; many marks are small and transparent."""
    density = max(n / _OPAQUE_ROWS, 1.0)
    return max(density**-0.25, 0.25), max(density**-0.5, 0.1)


def _codes(labels: ArrayLike, classes: ArrayLike) -> Indices:
    """Return the index of each label in `classes`; −1 for a label that is not among them."""
    number = {label: code for code, label in enumerate(np.asarray(classes).tolist())}
    return np.array([number.get(label, -1) for label in np.asarray(labels).tolist()])
