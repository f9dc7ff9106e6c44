"""Do predictions mean what they say? Prediction intervals with their targets, and the reliability of probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from mercer.inspection.displays.decision import column_axis
from mercer.inspection.displays.drawing import COLOURS, Picture, frame, ink, legend, short, ticks_of
from mercer.inspection.displays.types import Axes, Column, DataFrame, MaybeArray, MaybeAxes
from mercer.runtime.parameters import integer
from mercer.samples.arrays import Flags, Floats, Indices
from mercer.tables.unwrap import ask


@dataclass(eq=False, repr=False)
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
    """

    low: Floats
    high: Floats
    y: Floats | None = None
    prediction: Floats | None = None
    x: Floats | None = None
    name: str = ""
    band: bool = True
    _purpose = "drawing intervals"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: MaybeArray = None,
        *,
        alpha: float = 0.1,
        feature: Column | None = None,
        ax: MaybeAxes = None,
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
        if hasattr(estimator, "predict_interval") and not is_classifier(estimator):
            low, high = estimator.predict_interval(X, alpha=alpha)
            prediction = estimator.predict(X)
        elif len(getattr(ask(estimator).machine, "quantiles_", ())) > 1:
            table = np.sort(estimator.predict(X), axis=1)
            low, high = table[:, 0], table[:, -1]
            prediction = table[:, table.shape[1] // 2] if table.shape[1] % 2 else None
        else:
            raise TypeError(
                f"{type(estimator).__name__} gives no intervals to IntervalDisplay: draw what model.calibrate(X, y) of "
                "a regression gives, or a QuantileSVR with several quantiles"
            )
        if feature is None and getattr(estimator, "n_features_in_", 0) == 1:
            feature = 0
        axis = None if feature is None else column_axis(X, feature, estimator)
        band = axis is None or (getattr(estimator, "n_features_in_", 1) == 1 and axis.kind != "category")
        x, name = (None, "") if axis is None else (axis.places, axis.name)
        drawn = cls.from_predictions(y, low, high, prediction=prediction, x=x, name=name, band=band, ax=ax)
        if axis is not None:
            ticks_of(axis, drawn.ax_.xaxis)
        return drawn

    @classmethod
    def from_predictions(
        cls,
        y: MaybeArray,
        low: ArrayLike,
        high: ArrayLike,
        *,
        prediction: MaybeArray = None,
        x: MaybeArray = None,
        name: str = "",
        band: bool = True,
        ax: MaybeAxes = None,
    ) -> Self:
        """Draw from targets and intervals.

        Parameters
        ----------
        y, low, high, prediction, x, name, band
            As the class takes them.
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
    def inside(self) -> Flags:
        """Which targets their intervals hold."""
        if self.y is None:
            raise ValueError("without y it is not known which targets lie inside")
        return (self.low <= self.y) & (self.y <= self.high)

    @property
    def coverage(self) -> float:
        """The share of the targets inside."""
        return float(np.mean(self.inside))

    def _draw(self, ax: Axes) -> None:
        x, low, high = self.x, *self._finite_ends()
        endless = int((~np.isfinite(self.low) | ~np.isfinite(self.high)).sum())
        middle = 0.5 * (low + high)
        if x is None:
            x = np.empty(len(middle))
            x[np.argsort(middle, kind="stable")] = np.arange(len(middle))
        order = np.argsort(x, kind="stable")
        line: dict[str, object] = {"linestyle": "none", "marker": "_", "markersize": 5}
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

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame with one line per sample."""
        columns: dict[str, np.ndarray] = {"low": self.low, "high": self.high}
        for name, values in (("y", self.y), ("prediction", self.prediction), (self.name or "x", self.x)):
            if values is not None:
                columns[name] = values
        if self.y is not None:
            columns["inside"] = self.inside
        return frame("IntervalDisplay.to_frame", columns)


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(Picture):
    """The observed share of positive samples against their mean predicted probability, in bins of equal counts.

    Bars are Wilson's 95 % intervals of the share: where they miss the diagonal, probabilities are wrong by more than
    chance explains. The title has the mean distance from the diagonal, weighed by the samples in each bin.

    Parameters
    ----------
    mean_probability, share : arrays of shape (n_bins,)
        Of the samples in each bin: the mean of their probabilities, and the share that is positive.
    counts : array of int
        How many samples each bin has.
    positive : label
        Whose probability it is; "predicted class" where each sample's largest one is meant.

    Attributes
    ----------
    low, high : arrays of shape (n_bins,)
        The ends of the intervals.
    error : float
        Σ counts |share − mean probability| / Σ counts, the expected calibration error.
    """

    mean_probability: Floats
    share: Floats
    counts: Indices
    positive: object
    _purpose = "drawing the reliability of probabilities"
    _inches = (5.2, 4.8)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, n_bins: int = 10, pos_label: object = None, ax: MaybeAxes = None
    ) -> Self:
        """Ask a classifier for probabilities of samples that it was not trained on, and draw.

        Parameters
        ----------
        estimator : a classifier with `predict_proba`
            Such as what `model.calibrate(X, y)` gives.
        X, y : samples and labels
            Others than it was trained and calibrated on.
        n_bins : int, default=10
            How many bins; fewer where many probabilities are equal.
        pos_label : label, optional
            The class whose probability is judged. By default the second of two; of several, the class predicted.
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.
        """
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(f"{type(estimator).__name__} gives no probabilities: draw what model.calibrate(X, y) gives")
        classes, p, y = np.asarray(estimator.classes_), estimator.predict_proba(X), np.asarray(y)
        if pos_label is None and len(classes) > 2:
            best = np.argmax(p, axis=1)
            rows = np.arange(len(p))
            return cls.from_predictions(
                classes[best] == y, p[rows, best], n_bins=n_bins, pos_label="predicted class", ax=ax
            )
        positive = classes[1] if pos_label is None else pos_label
        found = np.flatnonzero(classes == positive)
        if len(found) != 1:
            raise ValueError(f"pos_label={pos_label!r} is none of the classes {classes.tolist()}")
        return cls.from_predictions(y == positive, p[:, found[0]], n_bins=n_bins, pos_label=positive, ax=ax)

    @classmethod
    def from_predictions(
        cls, y: ArrayLike, probability: ArrayLike, *, n_bins: int = 10, pos_label: object = None, ax: MaybeAxes = None
    ) -> Self:
        """Draw from outcomes and probabilities.

        Parameters
        ----------
        y : array of shape (n_samples,)
            Labels, or True where a sample is positive.
        probability : array of shape (n_samples,)
            That each sample is positive.
        pos_label : label, optional
            Which label is positive; only a name where y is True or False. By default 1, where labels are 0 or −1 and 1.
        n_bins, ax
            As `from_estimator` takes them.
        """
        integer("n_bins", n_bins, 1, "the number of bins")
        y, p = np.asarray(y), np.asarray(probability, dtype=np.float64)
        if y.ndim != 1 or y.shape != p.shape or not ((p >= 0) & (p <= 1)).all() or len(y) == 0:
            raise ValueError(
                f"there must be one probability from 0 to 1 for each of the labels, but their shapes are {p.shape} and "
                f"{y.shape}, and the probabilities go from {p.min(initial=1):g} to {p.max(initial=0):g}"
            )
        hit, pos_label = _positive(y, pos_label)
        edges = np.unique(np.quantile(p, np.linspace(0, 1, n_bins + 1)))
        place = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, max(len(edges) - 2, 0))
        counts = np.bincount(place)
        used = counts > 0
        sums = (np.bincount(place, weights=values)[used] / counts[used] for values in (p, hit.astype(np.float64)))
        mean_probability, share = sums
        return cls(mean_probability, share, counts[used], pos_label).plot(ax)

    def _interval(self) -> tuple[Floats, Floats]:
        """Wilson's."""
        n, z = self.counts, 1.959963984540054  # standard deviations within which 95 % of a normal law lies
        middle = (self.share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(self.share * (1 - self.share) / n + z**2 / (4 * n**2))
        return middle - half, middle + half

    @property
    def low(self) -> Floats:
        """The lower ends of the intervals."""
        return self._interval()[0]

    @property
    def high(self) -> Floats:
        """Their upper ends."""
        return self._interval()[1]

    @property
    def error(self) -> float:
        """The expected calibration error."""
        return float(self.counts @ np.abs(self.share - self.mean_probability) / self.counts.sum())

    def _draw(self, ax: Axes) -> None:
        ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--", label="what was said")
        name = short(self.positive)
        below, above = np.maximum(self.share - self.low, 0), np.maximum(self.high - self.share, 0)
        ax.errorbar(
            self.mean_probability,
            self.share,
            [below, above],
            fmt="o-",
            color=COLOURS[0],
            markersize=4,
            linewidth=1.2,
            elinewidth=0.8,
            capsize=2,
            label=f"{_counted(int(self.counts.sum()), 'sample')} in {_counted(len(self.counts), 'bin')}",
        )
        of_prediction = isinstance(self.positive, str) and self.positive == "predicted class"
        ax.set(
            xlabel="probability of the predicted class" if of_prediction else f"predicted probability of {name}",
            ylabel="share that is right" if of_prediction else f"share of {name}",
            title=f"mean distance from the diagonal {self.error:.3f}",
            xlim=(-0.02, 1.02),
            ylim=(-0.02, 1.02),
            aspect="equal",
        )
        legend(ax)

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame with one line per bin."""
        columns = {
            "mean_probability": self.mean_probability,
            "share": self.share,
            "low": self.low,
            "high": self.high,
            "count": self.counts,
        }
        return frame("ReliabilityDisplay.to_frame", columns)


def _positive(y: np.ndarray, pos_label: object) -> tuple[Flags, object]:
    """Which samples are positive, and the label that makes them so."""
    if y.dtype == bool:
        return y, True if pos_label is None else pos_label
    labels = np.unique(y)
    if pos_label is None:
        if not set(labels.tolist()) <= {-1, 0, 1}:
            some = ", ".join(map(repr, labels[:5].tolist()))
            raise ValueError(f"y has the labels {some}{' …' * (len(labels) > 5)}: say by pos_label which is positive")
        pos_label = 1
    elif pos_label not in labels.tolist():
        raise ValueError(f"no label in y is pos_label={pos_label!r}; if none is positive, give y as True and False")
    return y == pos_label, pos_label


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}" + "s" * (n != 1)
