"""The decision of a machine in two dimensions: regions, margins, and which samples hold them up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.arrays import Floats, is_sparse
from mercer.fitting.dual_status import free_vectors
from mercer.optional import require

_COLOURS = ("#3b6fb6", "#d1603d", "#4f9d69", "#8f6bb0", "#c9a227", "#5aa5a5", "#a05070", "#7a7a7a")


@dataclass(eq=False)
class DecisionDisplay:
    """Regions of the classes (or the values of a regression), the lines f = 0 and f = ±1, and the support vectors.

    Free support vectors, which lie on the margin, have a full ring; bounded ones, which are inside it or on its wrong
    side, a dotted one.

    Parameters
    ----------
    xx0, xx1 : arrays of shape (resolution, resolution)
        The grid in the two features shown.
    response : array of the same shape
        The index of the class predicted, or the decision value.
    values : array of the same shape, or None
        f on the grid, where there is one f: two classes, regression or one-class.

    Attributes
    ----------
    ax_, figure_ : matplotlib's, after `plot`.

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
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        features: tuple[int, int] = (0, 1),
        resolution: int = 200,
        margin: float = 0.1,
        ax: Any = None,
        names: Any = None,
    ) -> DecisionDisplay:
        """Evaluate a fitted estimator, or a Pipeline that ends in one, on a grid around X, and draw.

        Parameters
        ----------
        estimator : estimator
        X : array of shape (n_samples, n_features)
            Rows among which those that are support vectors are ringed.
        y : array of shape (n_samples,), optional
            Colours of the points.
        features : pair of int, default=(0, 1)
            The columns that span the picture. Where there are more, the others stand at their means.
        resolution : int, default=200
            Points of the grid along each axis.
        margin : float, default=0.1
            Room around the data, as a share of their range.
        ax : matplotlib axes, optional
        names : sequence of str, optional
            Names of all columns.
        """
        X = np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] < 2:
            raise ValueError(f"a picture needs two features, but X has shape {X.shape}")
        if len(features) != 2 or not all(0 <= j < X.shape[1] for j in features) or features[0] == features[1]:
            raise ValueError(f"features={features!r} must be two different columns of the {X.shape[1]} there are")
        i, j = features
        ends = [_ends(X[:, k], margin) for k in (i, j)]
        xx0, xx1 = np.meshgrid(*(np.linspace(low, high, resolution) for low, high in ends))
        grid = np.tile(X.mean(axis=0), (xx0.size, 1))
        grid[:, i], grid[:, j] = xx0.ravel(), xx1.ravel()
        machine = estimator[-1] if hasattr(estimator, "steps") else estimator
        classes = getattr(machine, "classes_", None)
        values = None
        if classes is None or len(classes) == 2:
            ask = estimator.decision_function if hasattr(estimator, "decision_function") else estimator.predict
            values = np.asarray(ask(grid), dtype=np.float64)
            if values.size != xx0.size:
                raise ValueError(
                    f"a picture shows one value at each point, but this model predicts {values.shape[-1]}: draw a "
                    "model of a single output"
                )
            values = values.reshape(xx0.shape)
        response = values
        if classes is not None:
            answer = estimator.predict(grid)
            response = np.array([list(classes).index(label) for label in answer]).reshape(xx0.shape)
        piped = hasattr(estimator, "steps") and len(estimator) > 1
        free, bounded = _rings(machine, estimator[:-1].transform(X) if piped else X)
        titles = list(names) if names is not None else [f"feature {k}" for k in range(X.shape[1])]
        display = cls(
            xx0,
            xx1,
            response,
            values,
            classes,
            X[:, [i, j]],
            _codes(y, classes),
            free,
            bounded,
            (str(titles[i]), str(titles[j])),
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> DecisionDisplay:
        """Draw onto ``ax``, or onto new axes."""
        pyplot = require("matplotlib.pyplot", "drawing a decision")
        colors = require("matplotlib.colors", "drawing a decision")
        ax = pyplot.subplots(layout="constrained")[1] if ax is None else ax
        if self.classes is not None:
            shades = colors.ListedColormap([_COLOURS[c % len(_COLOURS)] for c in range(len(self.classes))])
            top = max(len(self.classes) - 1, 1)
            ax.pcolormesh(self.xx0, self.xx1, self.response, cmap=shades, alpha=0.25, vmin=0, vmax=top, shading="auto")
        else:
            mesh = ax.pcolormesh(self.xx0, self.xx1, self.response, cmap="RdBu", alpha=0.6, shading="auto")
            ax.figure.colorbar(mesh, ax=ax, label="f(x)")
        if self.values is not None and self.classes is not None:
            self._lines(ax, [-1.0, 0.0, 1.0], ["--", "-", "--"])
        elif self.values is not None:
            self._lines(ax, [0.0], ["-"])
        self._draw_points(ax)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _lines(self, ax: Any, levels: list[float], styles: list[str]) -> None:
        inside = [k for k, level in enumerate(levels) if self.values.min() < level < self.values.max()]
        if inside:
            ax.contour(
                self.xx0,
                self.xx1,
                self.values,
                levels=[levels[k] for k in inside],
                linestyles=[styles[k] for k in inside],
                colors="black",
                linewidths=1,
            )

    def _draw_points(self, ax: Any) -> None:
        if self.points is None:
            return
        x, z = self.points.T
        if self.codes is not None and self.classes is not None:
            for c, label in enumerate(self.classes):
                here = self.codes == c
                ax.scatter(x[here], z[here], s=16, color=_COLOURS[c % len(_COLOURS)], label=str(label), zorder=3)
        else:
            ax.scatter(x, z, s=16, color="black", zorder=3)
        rings = [("free support vectors", self.free, "-"), ("bounded support vectors", self.bounded, ":")]
        for name, rows, style in rings:
            if rows is not None and len(rows):
                ax.scatter(
                    x[rows],
                    z[rows],
                    s=60,
                    facecolors="none",
                    edgecolors="black",
                    linestyles=style,
                    label=name,
                    zorder=4,
                )
        if ax.get_legend_handles_labels()[1]:
            ax.legend(loc="best", fontsize="small")


def _ends(column: Floats, margin: float) -> tuple[float, float]:
    low, high = float(column.min()), float(column.max())
    room = margin * (high - low) if high > low else 1.0
    return low - room, high + room


def _rings(machine: Any, X: Any) -> tuple[Any, Any]:
    """Rows of X, as the machine sees them, that are free and bounded support vectors."""
    vectors = getattr(machine, "support_vectors_", None)
    if vectors is None or vectors.shape[1:] != X.shape[1:]:
        return None, None
    rows = np.asarray(vectors.toarray() if is_sparse(vectors) else vectors, dtype=np.float64) + 0.0  # no −0
    free = dict(zip((row.tobytes() for row in rows), _free(machine).tolist(), strict=True))
    kinds = [free.get(row.tobytes()) for row in np.asarray(X, dtype=np.float64) + 0.0]
    # Two of them, which the checker cannot count in a generator.
    return tuple(np.flatnonzero([kind is wanted for kind in kinds]) for wanted in (True, False))  # type: ignore[return-value]


def _free(machine: Any) -> Any:
    """Which support vectors are inside their box in the machine of some pair."""
    free = free_vectors(machine)
    if free is not None:
        return free
    size = np.abs(machine.dual_coef_)
    box = np.full(size.shape[1], size.max(initial=0.0))  # LIBSVM's files do not say C; the largest is at it
    if hasattr(machine, "certificate_"):  # a joint machine
        box = np.repeat(machine.C * np.asarray(machine.class_weight_), machine.n_support_)
    return ((size > 0) & (size < box * (1 - 1e-9))).any(axis=0)


def _codes(y: Any, classes: Any) -> Any:
    if y is None or classes is None:
        return None
    known = list(classes)
    return np.array([known.index(label) if label in known else -1 for label in np.asarray(y)])
