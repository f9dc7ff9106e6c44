"""The decision of a machine in two dimensions: regions, margins, and which samples hold them up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.arrays import Floats
from mercer.displays.drawing import MOST_IN_LEGEND, Picture, colours, frame, ink, legend, literal, short, wrapped
from mercer.displays.plane import Plane
from mercer.displays.support import machine_and_rows, rings
from mercer.optional import require

_OPAQUE_ROWS = 400  # rows: beyond, points of a picture 6.4 inches wide begin to hide each other

_RING = 4  # points: what a ring takes of the picture

_SMALL_PRINT = 8  # points: the line below a picture
# One image in an SVG or PDF: as 40,000 shapes it took five seconds to write.
_CELLS: Any = {"shading": "auto", "rasterized": True}


@dataclass(eq=False)
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
        The grid in the two features shown.
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

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
        Set by `plot`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercer import SVC
    >>> from mercer.displays import DecisionDisplay
    >>> X, y = make_moons(100, noise=0.1, random_state=0)
    >>> display = DecisionDisplay.from_estimator(SVC(C=10).fit(X, y), X, y)  # doctest: +SKIP
    """

    xx0: Floats
    xx1: Floats
    response: Any
    values: Any = None
    classes: Any = None
    points: Any = None
    codes: Any = None
    free: Any = None
    bounded: Any = None
    names: tuple[str, str] = ("feature 0", "feature 1")
    targets: Any = None
    rest: str = ""
    novelty: bool = False
    _purpose = "drawing a decision"
    _inches = (6.4, 4.8)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        features: Any = (0, 1),
        resolution: int = 200,
        margin: float = 0.1,
        ax: Any = None,
        names: Any = None,
        at: Any = None,
    ) -> Self:
        """Evaluate a fitted estimator on a grid around X, and draw.

        Parameters
        ----------
        estimator : estimator
            Fitted; also a Pipeline that ends in one, or what `mercer.tabular` makes.
        X : array or frame of shape (n_samples, n_features)
            Rows among which those that are support vectors are ringed. A frame's columns name the axes.
        y : array of shape (n_samples,), optional
            Colours of the points: classes, or the numbers of a regression.
        features : pair of int or str, default=(0, 1)
            The columns that span the picture, by number or name. Where there are more, the others stand at their means
            (what is no number, at its most frequent value), and the picture says so.
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
        known = getattr(estimator, "feature_names_in_", None)
        plane = Plane.through(X, features, names, known, resolution, margin, at)
        return cls.on_plane(plane, estimator, X, y).plot(ax)

    @classmethod
    def on_plane(cls, plane: Plane, estimator: Any, X: Any, y: Any) -> Self:
        """What a fitted estimator decides on a plane through X, not drawn yet."""
        machine, seen = machine_and_rows(estimator, X)
        classes = getattr(machine, "classes_", None)
        scored = hasattr(estimator, "decision_function")
        values = None
        if classes is None or len(classes) == 2:
            ask = estimator.decision_function if scored else estimator.predict
            values = np.asarray(ask(plane.rows), dtype=np.float64)
            if values.size != plane.xx0.size:
                raise ValueError(
                    f"a picture shows one value at each point, but this model predicts {values.shape[-1]}: draw a "
                    "model of a single output"
                )
            values = values.reshape(plane.xx0.shape)
        response = values
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
        )

    def _draw(self, ax: Any) -> None:
        norm = None
        if self.classes is not None:
            self._draw_regions(ax)
        else:
            norm = self._draw_values(ax)
        self._draw_points(ax, norm)
        ax.set(xlabel=short(self.names[0], 60), ylabel=short(self.names[1], 60))
        if self.rest:
            below = {"xycoords": ax.xaxis.label, "xytext": (0, -3), "textcoords": "offset points"}
            text = literal(wrapped(self.rest, ax, _SMALL_PRINT))
            ax.annotate(text, (0.5, 0), **below, ha="center", va="top", fontsize=_SMALL_PRINT, alpha=0.8)

    def to_frame(self) -> Any:
        """A pandas DataFrame with one line per point of the grid: where it is, the class, and f where there is one."""
        columns = {name: grid.ravel() for name, grid in zip(self.names, (self.xx0, self.xx1), strict=True)}
        if self.classes is not None:
            columns["class"] = np.asarray(self.classes)[self.response.ravel()]
        if self.values is not None:
            columns["f"] = self.values.ravel()
        return frame("DecisionDisplay.to_frame", columns)

    def _draw_regions(self, ax: Any) -> None:
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

    def _draw_values(self, ax: Any) -> Any:
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

    def _lines(self, ax: Any, values: Floats, styles: dict[float, str]) -> None:
        levels = [level for level in styles if values.min() < level < values.max()]
        if levels:
            line = [styles[level] for level in levels]
            ax.contour(self.xx0, self.xx1, values, levels=levels, linestyles=line, colors=[ink(ax)], linewidths=1)

    def _draw_points(self, ax: Any, norm: Any) -> None:
        if self.points is None:
            return
        x, z = self.points.T
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
                size, alpha = _ink(_RING * len(rows))
                ring = {"s": 60 * size, "alpha": alpha, "linewidths": size, "linestyles": line, "zorder": 4}
                label = f"{name} support vectors"
                named.append(ax.scatter(x[rows], z[rows], facecolors="none", edgecolors=dark, label=label, **ring))
        if named:
            # The best place is found by looking at every point.
            loc = "best" if len(x) <= 5 * _OPAQUE_ROWS else "upper right"
            for handle in legend(ax, handles=named, loc=loc).legend_handles:
                handle.set_alpha(1)

    def _draw_classes(self, ax: Any, style: dict[str, Any]) -> list[Any]:
        """The samples of each class; returns those that belong into a legend."""
        effects = require("matplotlib.patheffects", "drawing a decision")
        halo = [effects.withStroke(linewidth=2, foreground=ax.get_facecolor())]
        drawn = []
        for c, (label, colour) in enumerate(zip(self.classes, colours(len(self.classes)), strict=True)):
            here = self.points[self.codes == c]
            drawn.append(ax.scatter(*here.T, color=[colour], label=short(label), **style))
            if len(self.classes) > MOST_IN_LEGEND and len(here):
                where = {"ha": "center", "va": "center", "fontsize": "small", "zorder": 5, "path_effects": halo}
                ax.text(*np.nanmedian(here, axis=0), short(label, 12), **where)
        return drawn if len(self.classes) <= MOST_IN_LEGEND else []


def _ink(n: int) -> tuple[float, float]:
    """Relative size and opacity of n marks, so that many of them leave the picture to be seen."""
    crowd = max(n / _OPAQUE_ROWS, 1.0)
    return max(crowd**-0.25, 0.25), max(crowd**-0.5, 0.1)


def _codes(labels: Any, classes: Any) -> Any:
    number = {label: code for code, label in enumerate(np.asarray(classes).tolist())}
    return np.array([number.get(label, -1) for label in np.asarray(labels).tolist()])
