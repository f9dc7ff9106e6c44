"""Plots of predictive uncertainty: prediction intervals with their targets, and reliability of probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from mercer.inspection.displays.decision import column_axis
from mercer.inspection.displays.drawing import COLOURS, Picture, foreground, frame, legend, set_ticks_of, shorten
from mercer.inspection.displays.types import Axes, Column, DataFrame, MaybeArray, MaybeAxes
from mercer.runtime.parameters import integer
from mercer.samples.arrays import Flags, Floats, Indices
from mercer.tables.unwrap import unwrap


@dataclass(eq=False, repr=False)
class IntervalDisplay(Picture):
    """Plot prediction intervals against a feature, or by rank, with the targets inside and outside of them.

    Parameters
    ----------
    low, high : arrays of shape (n_samples,)
        Ends of the intervals.
    y : array of shape (n_samples,), or None
        Targets.
    prediction : array of shape (n_samples,), or None
        Point predictions.
    x : array of shape (n_samples,), or None
        Values on the horizontal axis; None for the rank of the interval's centre.
    name : str
        Name of x.
    band : bool
        Whether to draw the intervals as a band, which suits intervals that are a function of x, or as a line each.

    Attributes
    ----------
    coverage : float
        Share of the targets inside of their interval.
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
        """Predict intervals and plot them.

        Parameters
        ----------
        estimator : estimator
            Fitted model with `predict_interval`, or a QuantileSVR with several quantiles, whose interval goes from the
            smallest to the largest.
        X : samples
            Samples, as for the estimator.
        y : array of shape (n_samples,), optional
            Targets of the samples.
        alpha : float, default=0.1
            Share of targets that may be missed, for `predict_interval`.
        feature : int or str, optional
            Column on the horizontal axis, by index or name. By default it is the only column, or else the rank of the
            interval's centre. If X has several columns, each interval is a separate line.
        ax : matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        """
        if hasattr(estimator, "predict_interval") and not is_classifier(estimator):
            low, high = estimator.predict_interval(X, alpha=alpha)
            prediction = estimator.predict(X)
        elif len(getattr(unwrap(estimator).machine, "quantiles_", ())) > 1:
            table = np.sort(estimator.predict(X), axis=1)
            low, high = table[:, 0], table[:, -1]
            prediction = table[:, table.shape[1] // 2] if table.shape[1] % 2 else None
        else:
            raise TypeError(
                f"{type(estimator).__name__} has no intervals for IntervalDisplay: use what model.calibrate(X, y) of a "
                "regression returns, or a QuantileSVR with several quantiles"
            )
        if feature is None and getattr(estimator, "n_features_in_", 0) == 1:
            feature = 0
        axis = None if feature is None else column_axis(X, feature, estimator)
        band = axis is None or (getattr(estimator, "n_features_in_", 1) == 1 and axis.kind != "category")
        x, name = (None, "") if axis is None else (axis.places, axis.name)
        display = cls.from_predictions(y, low, high, prediction=prediction, x=x, name=name, band=band, ax=ax)
        if axis is not None:
            set_ticks_of(axis, display.ax_.xaxis)
        return display

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
        """Plot given intervals and targets.

        Parameters
        ----------
        y, low, high, prediction, x, name, band
            Parameters of the class.
        ax : matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        """
        columns = (low, high, y, prediction, x)
        parts = [None if column is None else np.asarray(column, dtype=np.float64) for column in columns]
        shapes = {part.shape for part in parts if part is not None}
        if len(shapes) != 1 or parts[0] is None or parts[1] is None or parts[0].ndim != 1:
            raise ValueError(f"low, high, y, prediction and x must be lists of the same length, not of shapes {shapes}")
        if any(np.isnan(part).any() for part in parts if part is not None):
            raise ValueError("low, high, y, prediction and x must be numbers, but some are NaN: remove these")
        if count := int((parts[0] > parts[1]).sum()):
            raise ValueError(
                f"an interval goes from low to high, but low > high in {count} of {len(parts[0])} intervals: swap them"
            )
        return cls(parts[0], parts[1], parts[2], parts[3], parts[4], name, band).plot(ax)

    @property
    def inside(self) -> Flags:
        """Mask of the targets that are inside their intervals."""
        if self.y is None:
            raise ValueError("without y it is not known which targets lie inside")
        return (self.low <= self.y) & (self.y <= self.high)

    @property
    def coverage(self) -> float:
        """Share of the targets inside of their interval."""
        return float(np.mean(self.inside))

    def _draw(self, ax: Axes) -> None:
        x, low, high = self.x, *self._finite_ends()
        n_infinite = int((~np.isfinite(self.low) | ~np.isfinite(self.high)).sum())
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
        ax.collections[-1].set_label("interval" + (f", {n_infinite} infinite" if n_infinite else ""))
        if self.prediction is not None:
            ax.plot(x[order], self.prediction[order], color=COLOURS[0], label="prediction", **line)
        if self.y is not None:
            is_inside = self.inside
            for mask, size, colour, word in (
                (is_inside, 8, foreground(ax), "inside"),
                (~is_inside, 14, COLOURS[1], "outside"),
            ):
                label = f"{int(mask.sum())} {word}"
                ax.scatter(x[mask], self.y[mask], s=size, color=colour, alpha=0.8, linewidths=0, label=label)
            ax.set_title(f"{self.coverage:.1%} of the targets are inside")
        ax.set(xlabel=shorten(self.name, 60) if self.x is not None else "rank of the interval's centre", ylabel="y")
        if n_infinite:  # infinite intervals reach the edge of the plot
            bottom = low.min() if np.isneginf(self.low).any() else None
            ax.set_ylim(bottom, high.max() if np.isposinf(self.high).any() else None)
        legend(ax)

    def _finite_ends(self) -> tuple[Floats, Floats]:
        """Return the ends of the intervals, with infinite ones replaced by values beyond all others."""
        columns = (self.low, self.high, self.y, self.prediction)
        finite_parts = [column[np.isfinite(column)] for column in columns if column is not None]
        finite = np.concatenate([*finite_parts, [0.0] if not any(map(len, finite_parts)) else []])
        border = 0.2 * float(np.ptp(finite)) or 1.0
        return np.clip(self.low, finite.min() - border, None), np.clip(self.high, None, finite.max() + border)

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with a row per sample."""
        columns: dict[str, np.ndarray] = {"low": self.low, "high": self.high}
        for name, values in (("y", self.y), ("prediction", self.prediction), (self.name or "x", self.x)):
            if values is not None:
                columns[name] = values
        if self.y is not None:
            columns["inside"] = self.inside
        return frame("IntervalDisplay.to_frame", columns)


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(Picture):
    """Plot the observed share of positive samples against their predicted probability, in bins of equal counts.

    Error bars are Wilson's 95 % intervals of the share: if one misses the diagonal, the probabilities are wrong by more
    than chance explains. The title shows the expected calibration error.

    Parameters
    ----------
    mean_probability, share : arrays of shape (n_bins,)
        Mean predicted probability and share of positive samples in each bin.
    counts : array of int
        Number of samples in each bin.
    positive : label
        Class whose probability is shown; "predicted class" for the largest probability of each sample.

    Attributes
    ----------
    low, high : arrays of shape (n_bins,)
        Ends of Wilson's intervals.
    error : float
        Expected calibration error, Σ counts |share − mean probability| / Σ counts.
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
        """Predict probabilities of samples that the classifier was not trained on, and plot their reliability.

        Parameters
        ----------
        estimator : estimator
            Fitted classifier with `predict_proba`, such as the result of `model.calibrate(X, y)`.
        X, y : samples and labels
            Samples that were used neither for training nor for calibration.
        n_bins : int, default=10
            Number of bins; there are fewer if many probabilities are equal.
        pos_label : label, optional
            Class whose probability is assessed. By default the second of two classes, and the predicted class if there
            are more.
        ax : matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        """
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(f"{type(estimator).__name__} has no probabilities: use the result of model.calibrate(X, y)")
        classes, p, y = np.asarray(estimator.classes_), estimator.predict_proba(X), np.asarray(y)
        if pos_label is None and len(classes) > 2:
            best = np.argmax(p, axis=1)
            rows = np.arange(len(p))
            return cls.from_predictions(
                classes[best] == y, p[rows, best], n_bins=n_bins, pos_label="predicted class", ax=ax
            )
        positive = classes[1] if pos_label is None else pos_label
        column = np.flatnonzero(classes == positive)
        if len(column) != 1:
            raise ValueError(f"pos_label={pos_label!r} is none of the classes {classes.tolist()}")
        return cls.from_predictions(y == positive, p[:, column[0]], n_bins=n_bins, pos_label=positive, ax=ax)

    @classmethod
    def from_predictions(
        cls, y: ArrayLike, probability: ArrayLike, *, n_bins: int = 10, pos_label: object = None, ax: MaybeAxes = None
    ) -> Self:
        """Plot the reliability of given probabilities.

        Parameters
        ----------
        y : array of shape (n_samples,)
            Labels, or True for positive samples.
        probability : array of shape (n_samples,)
            Probability that each sample is positive.
        pos_label : label, optional
            Positive label; if y is True or False, only its name. By default 1, for labels 0 or −1 and 1.
        n_bins, ax
            Parameters of `from_estimator`.
        """
        integer("n_bins", n_bins, 1, "the number of bins")
        y, p = np.asarray(y), np.asarray(probability, dtype=np.float64)
        if y.ndim != 1 or y.shape != p.shape or not ((p >= 0) & (p <= 1)).all() or len(y) == 0:
            raise ValueError(
                f"there must be one probability from 0 to 1 for each of the labels, but their shapes are {p.shape} and "
                f"{y.shape}, and the probabilities go from {p.min(initial=1):g} to {p.max(initial=0):g}"
            )
        is_positive, pos_label = _positive(y, pos_label)
        edges = np.unique(np.quantile(p, np.linspace(0, 1, n_bins + 1)))
        bins = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, max(len(edges) - 2, 0))
        counts = np.bincount(bins)
        used = counts > 0
        mean_probability, share = (
            np.bincount(bins, weights=values)[used] / counts[used] for values in (p, is_positive.astype(np.float64))
        )
        return cls(mean_probability, share, counts[used], pos_label).plot(ax)

    def _wilson_interval(self) -> tuple[Floats, Floats]:
        """Return the lower and upper ends of Wilson's 95 % interval of each share."""
        n, z = self.counts, 1.959963984540054  # 97.5 % quantile of the normal distribution
        middle = (self.share + z**2 / (2 * n)) / (1 + z**2 / n)
        half_width = z / (1 + z**2 / n) * np.sqrt(self.share * (1 - self.share) / n + z**2 / (4 * n**2))
        return middle - half_width, middle + half_width

    @property
    def low(self) -> Floats:
        """Lower ends of Wilson's intervals."""
        return self._wilson_interval()[0]

    @property
    def high(self) -> Floats:
        """Upper ends of Wilson's intervals."""
        return self._wilson_interval()[1]

    @property
    def error(self) -> float:
        """Expected calibration error."""
        return float(self.counts @ np.abs(self.share - self.mean_probability) / self.counts.sum())

    def _draw(self, ax: Axes) -> None:
        ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--", label="perfectly calibrated")
        name = shorten(self.positive)
        length_below, length_above = np.maximum(self.share - self.low, 0), np.maximum(self.high - self.share, 0)
        ax.errorbar(
            self.mean_probability,
            self.share,
            [length_below, length_above],
            fmt="o-",
            color=COLOURS[0],
            markersize=4,
            linewidth=1.2,
            elinewidth=0.8,
            capsize=2,
            label=f"{_count_text(int(self.counts.sum()), 'sample')} in {_count_text(len(self.counts), 'bin')}",
        )
        is_predicted_class = isinstance(self.positive, str) and self.positive == "predicted class"
        ax.set(
            xlabel="probability of the predicted class" if is_predicted_class else f"predicted probability of {name}",
            ylabel="share of correct predictions" if is_predicted_class else f"share of {name}",
            title=f"expected calibration error {self.error:.3f}",
            xlim=(-0.02, 1.02),
            ylim=(-0.02, 1.02),
            aspect="equal",
        )
        legend(ax)

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with a row per bin."""
        columns = {
            "mean_probability": self.mean_probability,
            "share": self.share,
            "low": self.low,
            "high": self.high,
            "count": self.counts,
        }
        return frame("ReliabilityDisplay.to_frame", columns)


def _positive(y: np.ndarray, pos_label: object) -> tuple[Flags, object]:
    """Return which samples are positive, and the positive label."""
    if y.dtype == bool:
        return y, True if pos_label is None else pos_label
    labels = np.unique(y)
    if pos_label is None:
        if not set(labels.tolist()) <= {-1, 0, 1}:
            first = ", ".join(map(repr, labels[:5].tolist()))
            raise ValueError(
                f"y has the labels {first}{' …' * (len(labels) > 5)}: name the positive one with pos_label"
            )
        pos_label = 1
    elif pos_label not in labels.tolist():
        raise ValueError(f"no label in y is pos_label={pos_label!r}; if none is positive, pass y as True and False")
    return y == pos_label, pos_label


def _count_text(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1."""
    return f"{n:,} {noun}" + "s" * (n != 1)
