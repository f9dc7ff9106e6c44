"""Every pair of columns as a picture of its own: what two columns alone tell about the classes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier

from mercer.arrays import is_sparse
from mercer.displays.annotations import Axes, Column, Columns, DataFrame, Figure, Names, Panels
from mercer.displays.decision import DecisionDisplay, Plane, column_names, column_number
from mercer.displays.drawing import MOST_IN_LEGEND, Display, frame, short
from mercer.runtime.optional import require


@dataclass(eq=False, repr=False)
class DecisionPairsDisplay(Display):
    """The regions of a classifier trained on each pair of columns alone, with its share of errors.

    A matrix of pictures, as by partimat in R's klaR. Each panel is a copy of the estimator that was trained on two
    columns; the errors are those on the samples it was trained on, so that they are rather too few.

    Parameters
    ----------
    panels : dict from pairs of names to DecisionDisplay
        What each pair decides.
    errors : dict from pairs of names to float
        The share of samples that it gets wrong.
    names : list of str
        Of the columns.

    Attributes
    ----------
    axes_ : array of matplotlib axes
        Set by `plot`.
    figure_ : matplotlib figure
        Set by `plot`.
    """

    panels: dict[tuple[str, str], DecisionDisplay]
    errors: dict[tuple[str, str], float]
    names: list[str]
    axes_: np.ndarray | None = field(default=None, init=False, repr=False)
    figure_: Figure = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        features: Columns | None = None,
        names: Names = None,
        resolution: int = 80,
        axes: Panels = None,
    ) -> Self:
        """Train a copy of a classifier on each pair of columns, and draw.

        Parameters
        ----------
        estimator : classifier
            Not changed by this; also a Pipeline that ends in one, or a `Tabular`.
        X : array or frame of shape (n_samples, n_features)
            The samples.
        y : array of shape (n_samples,)
            Their classes.
        features : list of int or str, optional
            The columns to pair, by number or name; all, if they are no more than seven.
        names : sequence of str, optional
            Names of all columns; default: those of the frame.
        resolution : int, default=80
            Points of the grid of each picture along each axis.
        axes : array of matplotlib axes, optional
            Where to draw, (k − 1) × (k − 1) for k columns; default: a new figure.
        """
        if not is_classifier(estimator):
            raise TypeError(
                f"pairs of columns are compared by their errors, and {type(estimator).__name__} is no classifier"
            )
        if is_sparse(X):
            raise TypeError(
                f"DecisionPairsDisplay trains {type(estimator).__name__} on columns of numbers, and a sparse matrix is "
                "not made dense without being asked; give X[:, columns].toarray() of 2 to 7 columns"
            )
        titles = column_names(X, names)
        chosen = list(range(len(titles))) if features is None else [_number(one, titles) for one in features]
        # All pairs of seven columns still fit onto a screen.
        if not 2 <= len(set(chosen)) == len(chosen) <= 7:
            raise ValueError(
                f"{len(chosen)} columns are to be paired, but they must be 2 to 7 different ones; choose in features"
            )
        target, panels, errors = np.asarray(y), {}, {}
        for i, j in itertools.combinations(chosen, 2):
            part = X[[X.columns[i], X.columns[j]]] if hasattr(X, "columns") else np.asarray(X)[:, [i, j]]
            model = clone(estimator).fit(part, y)
            pair = (titles[i], titles[j])
            panel = DecisionDisplay.on_plane(Plane.through(part, (0, 1), pair, model, resolution), model, part, y)
            panel.free = panel.bounded = None  # rings would hide the points of a small picture
            panels[pair] = panel
            errors[pair] = float(np.mean(np.asarray(model.predict(part)) != target))
        return cls(panels, errors, [titles[k] for k in chosen]).plot(axes)

    def plot(self, axes: Panels = None) -> Self:
        """Draw into axes, or into a new figure.

        Parameters
        ----------
        axes : array of matplotlib axes, optional
            (k − 1) × (k − 1) of them for k columns; default: a new figure.
        """
        side = len(self.names) - 1
        if axes is None:
            size = (2.6 * side + 0.8, 2.4 * side + 0.4)
            pyplot = require("matplotlib.pyplot", "drawing pairs of columns")
            _, axes = pyplot.subplots(side, side, figsize=size, layout="constrained", squeeze=False)
        axes = np.atleast_2d(np.asarray(axes))
        if axes.shape != (side, side):
            raise ValueError(f"pairs of {side + 1} columns are drawn into {side} × {side} axes, not {axes.shape}")
        best = min(self.errors.values())
        for row, column in np.ndindex(side, side):
            ax: Axes = axes[row, column]
            if column > row:
                ax.set_axis_off()
                continue
            pair = (self.names[column], self.names[row + 1])
            self.panels[pair].plot(ax=ax)
            if ax.get_legend() is not None:
                ax.get_legend().remove()
            wrong = self.errors[pair]
            ax.set_title(f"{wrong:.1%} errors", fontsize="small", fontweight="bold" if wrong == best else "normal")
            below, beside = (short(name, 22) for name in pair)  # more characters do not fit beside a panel
            ax.set(xlabel=below if row == side - 1 else "", ylabel=beside if column == 0 else "")
            ax.tick_params(labelsize="x-small")
        self._legend(axes)
        self.axes_, self.figure_ = axes, axes[0, 0].figure
        return self

    def _legend(self, axes: np.ndarray) -> None:
        """The classes, once, in the empty corner if there is one."""
        handles, labels = axes[0, 0].get_legend_handles_labels()
        if len(handles) <= MOST_IN_LEGEND:  # more are named within the panels
            axes[0, -1].legend(handles, labels, loc="upper right" if len(axes) > 1 else "best", fontsize="small")

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame with one line per pair, the best one first."""
        pairs = sorted(self.errors, key=lambda pair: self.errors[pair])
        columns = {
            "first": [pair[0] for pair in pairs],
            "second": [pair[1] for pair in pairs],
            "error": [self.errors[pair] for pair in pairs],
        }
        return frame("DecisionPairsDisplay.to_frame", columns)


def _number(column: Column, titles: list[str]) -> int:
    found = column_number(column, titles)
    if found is None:
        raise ValueError(f"{column!r} in features is none of the {len(titles)} columns, by number from 0 or by name")
    return found
