"""Do probabilities mean what they say? Of samples that were given the probability p, the share p should be positive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.arrays import Floats
from mercer.displays.drawing import COLOURS, Picture, frame, legend, short
from mercer.parameters import integer

# Standard deviations within which 95 % of a normal law lies.
_DEVIATIONS = 1.959963984540054


@dataclass(eq=False)
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
    ax_, figure_ : matplotlib's axes and figure
        Set by `plot`.
    """

    mean_probability: Floats
    share: Floats
    counts: Any
    positive: Any
    _purpose = "drawing the reliability of probabilities"
    _inches = (5.2, 4.8)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, n_bins: int = 10, pos_label: Any = None, ax: Any = None
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
        cls, y: Any, probability: Any, *, n_bins: int = 10, pos_label: Any = None, ax: Any = None
    ) -> Self:
        """Draw from outcomes and probabilities.

        Parameters
        ----------
        y : array of shape (n_samples,)
            Labels, or True where a sample is positive.
        probability : array of shape (n_samples,)
            That each sample is positive.
        n_bins : int, default=10
            How many bins; fewer where many probabilities are equal.
        pos_label : label, optional
            Which label is positive; only a name where y is True or False. By default 1, where labels are 0 or −1 and 1.
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.
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
        n, z = self.counts, _DEVIATIONS
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

    def _draw(self, ax: Any) -> None:
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

    def to_frame(self) -> Any:
        """A pandas DataFrame with one line per bin."""
        columns = {
            "mean_probability": self.mean_probability,
            "share": self.share,
            "low": self.low,
            "high": self.high,
            "count": self.counts,
        }
        return frame("ReliabilityDisplay.to_frame", columns)


def _positive(y: Any, pos_label: Any) -> tuple[Any, Any]:
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
