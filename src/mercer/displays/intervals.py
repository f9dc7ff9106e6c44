"""Prediction intervals and the targets that they were to hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.arrays import Floats
from mercer.displays.drawing import COLOURS, Picture, frame, ink, legend, short
from mercer.displays.plane import column_and_name


@dataclass(eq=False)
class IntervalDisplay(Picture):
    """Intervals against a feature, or in the order of their middle, with the targets inside and outside of them.

    Parameters
    ----------
    low, high : arrays of shape (n_samples,)
        The ends of the intervals.
    y : array of shape (n_samples,), or None
        The targets.
    prediction : array of shape (n_samples,), or None
        What was predicted.
    x : array of shape (n_samples,), or None
        What is drawn along; None for the rank of the middle of the interval.
    name : str
        Of x.
    band : bool
        Whether the intervals are drawn as a band, which suits those that follow x; else as a line for each.

    Attributes
    ----------
    coverage : float
        The share of the targets inside.
    ax_, figure_ : matplotlib's axes and figure
        Set by `plot`.
    """

    low: Floats
    high: Floats
    y: Any = None
    prediction: Any = None
    x: Any = None
    name: str = ""
    band: bool = True
    _purpose = "drawing intervals"

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, alpha: float = 0.1, feature: Any = None, ax: Any = None
    ) -> Self:
        """Ask a model for intervals, and draw.

        Parameters
        ----------
        estimator : a model with `predict_interval`, or QuantileSVR with several quantiles
            Of quantiles, the interval goes from the smallest to the largest.
        X : samples
            As the estimator takes them.
        y : array of shape (n_samples,), optional
            Their targets.
        alpha : float, default=0.1
            The share of targets that may be missed, for `predict_interval`.
        feature : int or str, optional
            The column to draw along, by number or name; by default the only one there is, or the rank of the
            interval's middle. Along one of several columns each interval is a line of its own.
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.
        """
        if hasattr(estimator, "predict_interval"):
            low, high = estimator.predict_interval(X, alpha=alpha)
            prediction = estimator.predict(X)
        elif len(getattr(estimator, "quantiles_", ())) > 1:
            table = np.sort(estimator.predict(X), axis=1)
            low, high = table[:, 0], table[:, -1]
            prediction = table[:, table.shape[1] // 2] if table.shape[1] % 2 else None
        else:
            raise TypeError(
                f"{type(estimator).__name__} gives no intervals: draw what model.calibrate(X, y) gives, or a "
                "QuantileSVR with several quantiles"
            )
        if feature is None and getattr(estimator, "n_features_in_", 0) == 1:
            feature = 0
        x, name = (None, "") if feature is None else column_and_name(X, feature, estimator)
        band = x is None or getattr(estimator, "n_features_in_", 1) == 1
        return cls.from_predictions(y, low, high, prediction=prediction, x=x, name=name, band=band, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        low: Any,
        high: Any,
        *,
        prediction: Any = None,
        x: Any = None,
        name: str = "",
        band: bool = True,
        ax: Any = None,
    ) -> Self:
        """Draw from targets and intervals.

        Parameters
        ----------
        y : array of shape (n_samples,), or None
            The targets.
        low, high : arrays of shape (n_samples,)
            The ends of the intervals.
        prediction : array of shape (n_samples,), optional
            What was predicted.
        x : array of shape (n_samples,), optional
            What to draw along; default: the rank of the interval's middle.
        name : str, default=""
            Of x.
        band : bool, default=True
            A band suits intervals that follow x; without it each is a line.
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.
        """
        given = (low, high, y, prediction, x)
        parts = [None if part is None else np.asarray(part, dtype=np.float64) for part in given]
        shapes = {part.shape for part in parts if part is not None}
        if len(shapes) != 1 or parts[0] is None or parts[1] is None or parts[0].ndim != 1:
            raise ValueError(f"low, high, y, prediction and x must be lists of the same length, not of shapes {shapes}")
        if any(np.isnan(part).any() for part in parts if part is not None):
            raise ValueError("low, high, y, prediction and x must be numbers, but some are NaN: leave these out")
        if wrong := int((parts[0] > parts[1]).sum()):
            raise ValueError(
                f"an interval goes from low to high, but low > high in {wrong} of {len(parts[0])}: swap them"
            )
        return cls(parts[0], parts[1], parts[2], parts[3], parts[4], name, band).plot(ax)

    @property
    def inside(self) -> Any:
        """Which targets their intervals hold."""
        if self.y is None:
            raise ValueError("without y it is not known which targets lie inside")
        return (self.low <= self.y) & (self.y <= self.high)

    @property
    def coverage(self) -> float:
        """The share of the targets inside."""
        return float(np.mean(self.inside))

    def _draw(self, ax: Any) -> None:
        x, low, high = self.x, *self._finite_ends()
        endless = int((~np.isfinite(self.low) | ~np.isfinite(self.high)).sum())
        middle = 0.5 * (low + high)
        if x is None:
            x = np.empty(len(middle))
            x[np.argsort(middle, kind="stable")] = np.arange(len(middle))
        order = np.argsort(x, kind="stable")
        line: dict[str, Any] = {"linestyle": "none", "marker": "_", "markersize": 5}
        if self.band and len(x) > 1:
            line = {"linewidth": 1.2}
            ax.fill_between(x[order], low[order], high[order], color=COLOURS[0], alpha=0.25, linewidth=0)
        else:
            ax.vlines(x, low, high, color=COLOURS[0], alpha=0.35, linewidth=1.5)
        ax.collections[-1].set_label("interval" + (f", {endless} without end" if endless else ""))
        if self.prediction is not None:
            ax.plot(x[order], self.prediction[order], color=COLOURS[0], label="prediction", **line)
        if self.y is not None:
            inside = self.inside
            for which, size, colour, word in ((inside, 8, ink(ax), "inside"), (~inside, 14, COLOURS[1], "outside")):
                label = f"{int(which.sum())} {word}"
                ax.scatter(x[which], self.y[which], s=size, color=colour, alpha=0.8, linewidths=0, label=label)
            ax.set_title(f"{self.coverage:.1%} of the targets are inside")
        ax.set(xlabel=short(self.name, 60) if self.x is not None else "rank of the interval's middle", ylabel="y")
        if endless:  # what has no end reaches the edge of the picture
            bottom = low.min() if np.isneginf(self.low).any() else None
            ax.set_ylim(bottom, high.max() if np.isposinf(self.high).any() else None)
        legend(ax)

    def _finite_ends(self) -> tuple[Floats, Floats]:
        """Ends that can be drawn: infinite ones lie beyond everything else."""
        given = (self.low, self.high, self.y, self.prediction)
        known = [part[np.isfinite(part)] for part in given if part is not None]
        seen = np.concatenate([*known, [0.0] if not any(map(len, known)) else []])
        room = 0.2 * float(np.ptp(seen)) or 1.0
        return np.clip(self.low, seen.min() - room, None), np.clip(self.high, None, seen.max() + room)

    def to_frame(self) -> Any:
        """A pandas DataFrame with one line per sample."""
        columns = {"low": self.low, "high": self.high}
        for name, values in (("y", self.y), ("prediction", self.prediction), (self.name or "x", self.x)):
            if values is not None:
                columns[name] = values
        if self.y is not None:
            columns["inside"] = self.inside
        return frame("IntervalDisplay.to_frame", columns)
