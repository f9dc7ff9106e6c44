"""The decision of a machine in two dimensions: regions, margins, and which samples hold them up.

Two features vary over a grid, and the others stand still.
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
    colours,
    expect_room,
    frame,
    ink,
    legend,
    literal,
    machine_and_rows,
    rings,
    short,
    ticks_of,
    told,
    wrapped,
)
from mercer.inspection.displays.types import At, Axes, Column, Columns, DataFrame, MaybeArray, MaybeAxes, Names
from mercer.runtime.optional import require
from mercer.samples.arrays import Floats, Indices, is_sparse
from mercer.tables.axis import Axis
from mercer.tables.cells import is_missing
from mercer.tables.encodings import LeftOut, Words
from mercer.tables.frame import column_of, frame_of
from mercer.tables.unwrap import ask, like


@dataclass(frozen=True, eq=False)
class Plane:
    """A grid in two features.

    `rows` are the points of the grid as the model takes them, an array or a frame like X; `axes` are the two columns of
    X, and `points` its rows in them; `rest` says where the others stand.
    """

    xx0: Floats
    xx1: Floats
    rows: Any
    axes: tuple[Axis, Axis]
    names: tuple[str, str]
    rest: str

    @property
    def points(self) -> Floats:
        return np.column_stack([axis.places for axis in self.axes])

    @classmethod
    def through(
        cls,
        X: Any,
        features: Columns | None,
        names: Names,
        model: Any,
        resolution: int,
        margin: float = 0.1,
        at: At = None,
    ) -> Plane:
        """The plane of two features, by number or name, or the first two of use, as a fitted model reads them.

        Other features stand where `at` says, a dictionary from their numbers or names; else where most samples are.
        """
        asked = ask(model)
        titles = column_names(X, names, getattr(model, "feature_names_in_", None))
        if len(titles) < 2:
            raise ValueError(f"a picture needs two features, but X has {len(titles)}")
        table = frame_of(X.toarray() if is_sparse(X) else X)
        if features is None:  # of a table the first two that it uses, and that have a place on an axis
            kinds = [asked.encoding(name, k) for k, name in enumerate(table.names)]
            used = [k for k, kind in enumerate(kinds) if not isinstance(kind, LeftOut | Words)]
            features = used[:2] if len(used) > 1 else (0, 1)
        i, j = _pair(features, titles)
        axes = [Axis.of(titles[k], column_of(X, k), asked.encoding(table.names[k], k)) for k in (i, j)]
        xx0, xx1 = np.meshgrid(*(_along(axis, margin, resolution) for axis in axes))
        chosen = _chosen({} if at is None else at, titles, (i, j))
        typical = [chosen[k] if k in chosen else _typical(column) for k, column in enumerate(table.columns)]
        cells: list[Any] = [np.full(xx0.size, value) for value in typical]
        cells[i], cells[j] = axes[0].at(xx0.ravel()), axes[1].at(xx1.ravel())
        rows = like(X, table.names, cells)
        others = [k for k in range(len(titles)) if k not in (i, j)]
        rest = _where([(titles[k], typical[k]) for k in others if k not in chosen])
        rest = "; ".join(part for part in (_places_text((titles[k], v) for k, v in chosen.items()), rest) if part)
        return cls(xx0, xx1, rows, (axes[0], axes[1]), (titles[i], titles[j]), rest)


def _pair(features: Columns, titles: list[str]) -> tuple[int, int]:
    """The numbers of two different columns that were given by number or name."""
    found = [column_number(feature, titles) for feature in features]
    if len(found) != 2 or None in found or found[0] == found[1]:
        few = len(titles) <= 20 and titles != [f"feature {k}" for k in range(len(titles))]
        raise ValueError(
            f"features={features!r} must be two different columns of the {len(titles)} there are, by number from 0 or "
            f"by name{': ' + ', '.join(titles) if few else ''}"
        )
    return found[0], found[1]  # type: ignore[return-value]  # None is refused above


def column_number(column: Any, titles: list[str]) -> int | None:
    """The number of a column that was given by number or name; None if it is neither."""
    k = titles.index(column) if isinstance(column, str) and column in titles else column
    whole = isinstance(k, int | np.integer) and not isinstance(k, bool)
    return int(k) if whole and 0 <= k < len(titles) else None


def _along(axis: Axis, margin: float, resolution: int) -> Floats:
    """The grid of one side, in the axis' numbers."""
    if axis.kind == "category":
        expect_room(axis)  # before a model is asked at all of them
        return np.arange(float(len(axis.levels)))
    finite = axis.places[np.isfinite(axis.places)]
    if not len(finite):
        raise ValueError(f"the column {axis.name!r}, {axis.kind}, has no place on an axis: choose other features")
    low, high = float(finite.min()), float(finite.max())
    room = margin * (high - low) if high > low else 1.0
    return np.linspace(low - room, high + room, resolution)


def _typical(column: Any) -> Any:
    """The mean of numbers, the middle one of dates, the most frequent of other values."""
    if column.dtype.kind in "iuf":
        finite = column[np.isfinite(column)]
        return float(finite.mean()) if len(finite) else np.nan
    if column.dtype.kind == "M":
        known = np.sort(column[~np.isnat(column)])
        return known[len(known) // 2] if len(known) else np.datetime64("NaT", "s")
    there = [item for item in column.tolist() if not is_missing(item)] if column.dtype.kind == "O" else list(column)
    return Counter(there).most_common(1)[0][0] if there else None


def _where(others: list[tuple[str, object]]) -> str:
    """A line for the reader of the picture; empty where nothing is left out of it."""
    if not others:
        return ""
    ways = {"mean" if isinstance(v, float) else "median" if isinstance(v, np.datetime64) else "mode" for _, v in others}
    how = " or ".join(sorted(ways)).replace("mode", "most frequent value")
    if len(others) > 3:  # more do not fit into one line under a picture 6.4 inches wide
        return f"the other {len(others)} features at their {how}"
    return f"{_places_text(others)} ({how})"


def _places_text(places: Iterable[tuple[str, object]]) -> str:
    texts = [
        f"{name} = {value:.3g}" if isinstance(value, float) else f"{name} = {told(value)}" for name, value in places
    ]
    return f"at {', '.join(texts)}" if texts else ""


def _chosen(at: Any, titles: list[str], shown: tuple[int, int]) -> dict[int, Any]:
    """The caller's places of other features by their numbers."""
    if not isinstance(at, Mapping):
        raise TypeError(
            f"at={at!r} must be a dict from columns, by number from 0 or by name, to their values, such as "
            f"{{{titles[-1]!r}: 0.0}}"
        )
    out = {}
    for key, value in at.items():
        k = column_number(key, titles)
        if k is None or k in shown:
            raise ValueError(
                f"at={at!r} must give values for columns beside the two that are shown, by number from 0 or by name; "
                f"{key!r} is not one of them"
            )
        out[k] = float(value) if isinstance(value, int | float | np.number) else value
    return out


def column_names(X: Any, names: Names = None, known: Names = None) -> list[str]:
    """Of all columns: those given, the frame's, the model's, or their numbers."""
    found = names if names is not None else frame_of(X).names if hasattr(X, "columns") else known
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    if len(shape) != 2:
        raise ValueError(f"a picture needs rows of columns, but X has shape {shape}")
    n = shape[1]
    if found is None or (names is None and len(found) != n):
        return [f"feature {k}" for k in range(n)]
    if len(found) != n:
        raise ValueError(f"names has {len(found)} names, but X has {n} columns")
    return [str(name) for name in found]


def column_axis(X: Any, feature: Column, model: object) -> Axis:
    """One column, by its number or name."""
    titles = column_names(X, None, getattr(model, "feature_names_in_", None))
    k = column_number(feature, titles)
    if k is None:
        raise ValueError(f"feature={feature!r} is none of the {len(titles)} columns, by number from 0 or by name")
    name = frame_of(X).names[k] if hasattr(X, "columns") else ""
    return Axis.of(titles[k], column_of(X, k), ask(model).encoding(name, k))


_OPAQUE_ROWS = 400  # rows: beyond, points of a picture 6.4 inches wide begin to hide each other

# One image in an SVG or PDF: as 40,000 shapes it took five seconds to write.
_CELLS: dict[str, Any] = {"shading": "auto", "rasterized": True}


@dataclass(eq=False, repr=False)
class DecisionDisplay(Picture):
    """Regions of the classes with their boundaries and margins, or the values of a regression, and the samples.

    For two classes the lines are f = 0 and, dashed, f = ±1; for several the boundaries of the regions; for one class
    f = 0. A regression has a scale of colours that its samples share, so that a sample unlike its surroundings is one
    that f misses. Free support vectors, which lie on the margin, have a full ring; bounded ones, which are inside it or
    on its wrong side, a dotted one. Many samples are drawn smaller and transparent. The names of more than ten classes
    stand among their samples, in place of a legend.

    Parameters
    ----------
    xx0, xx1 : arrays of shape (resolution, resolution)
        The grid in the two features shown: dates in days since 1970, categories by their places among the levels.
    response : array of the same shape
        The index of the class predicted, or the value.
    values : array of the same shape, or None
        f on the grid, where there is one f: two classes, regression or one-class.
    classes : array of shape (n_classes,), or None
        The labels; None for a regression and for one class.
    points : array of shape (n_samples, 2), or None
        The samples in the two features.
    codes : array of shape (n_samples,), or None
        The index of each sample's class, −1 where it is none of them.
    free, bounded : arrays of int, or None
        Which of the points are free and bounded support vectors.
    names : pair of str
        Of the two features.
    targets : array of shape (n_samples,), or None
        y of a regression.
    rest : str
        Where the other features stand; printed below the picture.
    novelty : bool
        Whether f = 0 is a boundary although there are no classes.
    axes : pair, or None
        What the two features are, where they may be other than numbers; set by `from_estimator`.

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
        """Evaluate a fitted estimator on a grid around X, and draw.

        Parameters
        ----------
        estimator : estimator
            Fitted; also a Pipeline that ends in one, what `mercer.tabular` makes, a search or a calibrated model.
        X : array or frame of shape (n_samples, n_features)
            Rows among which those that are support vectors are ringed. A frame's columns name the axes.
        y : array of shape (n_samples,), optional
            Colours of the points: classes, or the numbers of a regression.
        features : pair of int or str, optional
            The columns that span the picture, by number or name; by default the first two that the model uses. Also
            dates and categories, whose points are spread a little. Where there are more columns, the others stand at
            their means (dates at their median, what is neither at its most frequent value), and the picture says so.
        resolution : int, default=200
            Points of the grid along each axis.
        margin : float, default=0.1
            Room around the data, as a share of their range.
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.
        names : sequence of str, optional
            Names of all columns; default: those of the frame, or those the estimator was fitted with.
        at : dict, optional
            Where other columns stand, from their numbers or names to values, in place of mean or most frequent value.
        """
        plane = Plane.through(X, features, names, estimator, resolution, margin, at)
        return cls.on_plane(plane, estimator, X, y).plot(ax)

    @classmethod
    def on_plane(cls, plane: Plane, estimator: Any, X: Any, y: MaybeArray) -> Self:
        """What a fitted estimator decides on a plane through X, not drawn yet."""
        if not hasattr(estimator, "decision_function") and not hasattr(estimator, "predict"):
            raise TypeError(
                f"DecisionDisplay draws what a model predicts, and {type(estimator).__name__} predicts nothing; draw a "
                "classifier, a regressor, a novelty detector or a clustering that has `predict`"
            )
        machine, seen = machine_and_rows(estimator, X)
        classes = getattr(machine, "classes_", None)
        scored = hasattr(estimator, "decision_function")
        values = None
        if classes is None or (len(classes) == 2 and scored):
            ask = estimator.decision_function if scored else estimator.predict
            values = np.asarray(ask(plane.rows), dtype=np.float64)
            if values.size != plane.xx0.size:
                raise ValueError(
                    f"a picture shows one value at each point, but this model predicts {values.shape[-1]}: draw a "
                    "model of a single output"
                )
            values = values.reshape(plane.xx0.shape)
        response: Any = values
        if classes is not None:
            response = _codes(estimator.predict(plane.rows), classes).reshape(plane.xx0.shape)
        free, bounded = rings(machine, seen)
        numbers = y is not None and classes is None and not scored
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
            targets=np.asarray(y, dtype=np.float64).ravel() if numbers else None,
            rest=plane.rest,
            novelty=classes is None and scored,
            axes=plane.axes,
        )

    def _draw(self, ax: Axes) -> None:
        norm = None
        if self.classes is not None:
            self._draw_regions(ax)
        else:
            norm = self._draw_values(ax)
        self._draw_points(ax, norm)
        ax.set(xlabel=short(self.names[0], 60), ylabel=short(self.names[1], 60))
        for axis, side in zip(self.axes or (), (ax.xaxis, ax.yaxis), strict=False):
            ticks_of(axis, side)
        if self.rest:
            below = {"xycoords": ax.xaxis.label, "xytext": (0, -3), "textcoords": "offset points"}
            text = literal(wrapped(self.rest, ax, 8))
            ax.annotate(text, (0.5, 0), **below, ha="center", va="top", fontsize=8, alpha=0.8)

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame with one line per point of the grid: where it is, the class, and f where there is one."""
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
        colors = require("matplotlib.colors", "drawing a decision")
        shades = colors.ListedColormap(colours(len(self.classes)))
        top = max(len(self.classes) - 1, 1)
        look = {"cmap": shades, "alpha": 0.25, "vmin": 0, "vmax": top}
        ax.pcolormesh(self.xx0, self.xx1, self.response, **look, **_CELLS)
        if self.values is not None:
            self._lines(ax, self.values, {-1.0: "--", 0.0: "-", 1.0: "--"})
        else:
            for code in np.unique(self.response)[:-1]:  # the last one's boundaries are those of the others
                self._lines(ax, (self.response == code).astype(np.float64), {0.5: "-"})

    def _draw_values(self, ax: Axes) -> Any:
        colors = require("matplotlib.colors", "drawing a decision")
        if self.novelty:
            norm, cmap, label = colors.CenteredNorm(), "RdBu", "f(x)"
        else:
            seen = self.response.ravel()
            if self.targets is not None:  # less its outermost, so that one outlier does not make all else one colour
                seen = np.concatenate([seen, np.nanquantile(self.targets, [0.01, 0.99])])
            norm, cmap = colors.Normalize(np.nanmin(seen), np.nanmax(seen)), "viridis"
            label = "f(x)" if self.targets is None else "f(x), and y of the points"
        look = {"norm": norm, "cmap": cmap, "alpha": 0.6 if self.novelty else None}
        mesh = ax.pcolormesh(self.xx0, self.xx1, self.response, **look, **_CELLS)
        ax.figure.colorbar(mesh, ax=ax, label=label)
        if self.novelty:
            self._lines(ax, self.values, {0.0: "-"})
        return norm

    def _lines(self, ax: Axes, values: Floats, styles: dict[float, str]) -> None:
        if any(axis.kind == "category" for axis in self.axes or ()):
            return  # between two categories there is no boundary to draw
        levels = [level for level in styles if values.min() < level < values.max()]
        if levels:
            line = [styles[level] for level in levels]
            ax.contour(self.xx0, self.xx1, values, levels=levels, linestyles=line, colors=[ink(ax)], linewidths=1)

    def _draw_points(self, ax: Axes, norm: Any) -> None:
        if self.points is None:
            return
        x, z = self._places()
        size, alpha = _ink(len(x))
        dark = ink(ax)
        style = {"s": 16 * size, "alpha": alpha, "linewidths": 0, "zorder": 3}
        named = []
        if self.codes is not None:
            named = self._draw_classes(ax, style)
        elif self.targets is not None:
            edge = {"edgecolors": "white", "linewidths": 0.6 if alpha == 1 else 0, "s": 24 * size}
            ax.scatter(x, z, c=self.targets, norm=norm, cmap="viridis", **(style | edge))
        else:
            ax.scatter(x, z, color=dark, **style)
        for name, rows, line in (("free", self.free, "-"), ("bounded", self.bounded, ":")):
            if rows is not None and len(rows):
                size, alpha = _ink(4 * len(rows))  # a ring takes the room of four points
                ring = {"s": 60 * size, "alpha": alpha, "linewidths": size, "linestyles": line, "zorder": 4}
                label = f"{name} support vectors"
                named.append(ax.scatter(x[rows], z[rows], facecolors="none", edgecolors=dark, label=label, **ring))
        if named:
            # The best place is found by looking at every point.
            loc = "best" if len(x) <= 5 * _OPAQUE_ROWS else "upper right"
            for handle in legend(ax, handles=named, loc=loc).legend_handles:
                handle.set_alpha(1)

    def _places(self) -> Floats:
        """Where points are drawn: those of a category beside each other, within a band of three fifths."""
        out = np.array(self.points, dtype=np.float64).T
        for k, axis in enumerate(self.axes or ()):
            if axis.kind == "category":
                golden = (0.618033988749895, 0.7548776662466927)[k]  # steps that fill a band evenly, and a square
                out[k] += 0.6 * (np.arange(out.shape[1]) * golden % 1.0 - 0.5)
        return out

    def _draw_classes(self, ax: Axes, style: Mapping[str, object]) -> list[Any]:
        """The samples of each class; returns those that belong into a legend."""
        effects = require("matplotlib.patheffects", "drawing a decision")
        halo = [effects.withStroke(linewidth=2, foreground=ax.get_facecolor())]
        drawn = []
        for c, (label, colour) in enumerate(zip(self.classes, colours(len(self.classes)), strict=True)):
            here = self._places()[:, self.codes == c].T
            drawn.append(ax.scatter(*here.T, color=[colour], label=short(label), **style))
            if len(self.classes) > MOST_IN_LEGEND and len(here):
                where = {"ha": "center", "va": "center", "fontsize": "small", "zorder": 5, "path_effects": halo}
                ax.text(*np.nanmedian(here, axis=0), short(label, 12), **where)
        return drawn if len(self.classes) <= MOST_IN_LEGEND else []


def _ink(n: int) -> tuple[float, float]:
    """Relative size and opacity of n marks, so that many of them leave the picture to be seen."""
    crowd = max(n / _OPAQUE_ROWS, 1.0)
    return max(crowd**-0.25, 0.25), max(crowd**-0.5, 0.1)


def _codes(labels: ArrayLike, classes: ArrayLike) -> Indices:
    number = {label: code for code, label in enumerate(np.asarray(classes).tolist())}
    return np.array([number.get(label, -1) for label in np.asarray(labels).tolist()])
