"""What fewer vectors cost: the error in the kernel's space and the score against the number of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from mercer.compression import compress
from mercer.compression.target import in_float64
from mercer.displays.drawing import COLOURS, frame, panels_for
from mercer.displays.support import machine_and_rows

# Numbers below an axis of 4 inches do not touch if each is this many times the last one.
_TICK_RATIO = 1.25
# Shares of the vectors that are tried.
_SHARES = (0.02, 0.05, 0.1, 0.2, 0.4)


class CompressionDisplay:
    """The error ‖w − w'‖ and the score of a machine on fewer and fewer vectors.

    Parameters
    ----------
    n_vectors : array of int
        How many vectors each compressed machine has.
    errors : array of float
        ‖w − w'‖ of each, the largest of its outputs.
    scores : array of float
        Of each on the samples: accuracy, or R².
    n_original : int
        How many vectors the original has.
    original_score : float
        Of the original.
    kept : array of float, or None
        The share of the samples whose label is provably the original's; None for a regression.

    Attributes
    ----------
    axes_, figure_ : matplotlib's two axes, of the error and of the score, and figure
        Set by `plot`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercer import SVC
    >>> from mercer.displays import CompressionDisplay
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> display = CompressionDisplay.from_estimator(SVC(C=10).fit(X, y), X, y)  # doctest: +SKIP
    """

    def __init__(
        self, n_vectors: Any, errors: Any, scores: Any, n_original: int, original_score: float, kept: Any = None
    ) -> None:
        self.n_vectors, self.errors, self.scores = (np.asarray(part) for part in (n_vectors, errors, scores))
        self.n_original, self.original_score = n_original, original_score
        self.kept = None if kept is None else np.asarray(kept)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        n_vectors: Sequence[float] = _SHARES,
        train: Any = None,
        retrain: str = "values",
        ax: Any = None,
    ) -> Self:
        """Compress a fitted machine to several sizes, score each on X, y, and draw.

        Parameters
        ----------
        estimator : estimator
            As `mercer.compress` takes it.
        X, y : the samples to score on
        n_vectors : sequence of int, or float below 1
            Numbers of vectors, or shares of them.
        train : pair (X, y), optional
            The training samples, which coefficients are then fitted to; without them they are those of the projection.
        retrain : {"values", "loss"}, default="values"
            As in `mercer.compress`.
        ax : pair of matplotlib axes, optional
            Where to draw; default: a new figure.
        """
        if not hasattr(estimator, "score"):
            raise TypeError(
                f"{type(estimator).__name__} has no score to draw: compare predictions and `compression_.error` of "
                "mercer.compress(model, n) for several n"
            )
        given = {} if train is None else {"X": train[0], "y": train[1], "retrain": retrain}
        found, scores, kept = [], [], []
        for count in n_vectors:
            small = compress(estimator, count, **given)
            machine, seen = machine_and_rows(small, X)
            found.append(machine.compression_)
            scores.append(float(small.score(X, y)))
            if hasattr(small, "classes_") and found[-1].proves_labels:
                kept.append(float(found[-1].keeps_label(in_float64(seen)).mean()))
        sizes = [one.n_vectors for one in found]
        errors = [float(np.max(one.error)) for one in found]
        before = found[0].n_vectors_before
        original = float(estimator.score(X, y))
        return cls(sizes, errors, scores, before, original, kept or None).plot(ax)

    def to_frame(self) -> Any:
        """The numbers as a pandas DataFrame, one row for each compressed machine."""
        columns = {"n_vectors": self.n_vectors, "error": self.errors, "score": self.scores}
        if self.kept is not None:
            columns["kept"] = self.kept
        return frame("CompressionDisplay.to_frame", columns)

    def plot(self, ax: Any = None) -> Self:
        """Draw into two axes, or into a new figure.

        Parameters
        ----------
        ax : pair of matplotlib axes, optional
            Where to draw; default: a new figure.
        """
        axes = panels_for(ax, "a compression", (1, 2), (9, 3.6))
        order = np.argsort(self.n_vectors, kind="stable")
        x = self.n_vectors[order]
        axes[0].plot(x, self.errors[order], "o-", color=COLOURS[0])
        axes[0].set(ylabel="‖w − w'‖", title="distance from the original", ylim=(0, None))
        axes[1].plot(x, self.scores[order], "o-", color=COLOURS[1], label="score")
        axes[1].axhline(self.original_score, color="0.5", linestyle=":", label=f"original, {self.n_original} vectors")
        if self.kept is not None:
            axes[1].plot(x, self.kept[order], "s--", color=COLOURS[2], label="labels provably kept")
        axes[1].set(title="score, and labels kept" if self.kept is not None else "score")
        axes[1].legend()
        for one in axes:
            one.set_xscale("log")
            ticks = _apart(np.unique(x))
            one.set_xticks(ticks, [str(n) for n in ticks])
            one.minorticks_off()
            one.set_xlabel("vectors")
        self.axes_, self.figure_ = axes, axes[0].figure
        return self


def _apart(sizes: Any) -> list[Any]:
    """The sizes that are written below the axis: of those close to each other, the largest."""
    kept: list[Any] = []
    for size in reversed(sizes.tolist()):
        if not kept or size * _TICK_RATIO <= kept[-1]:
            kept.append(size)
    return kept[::-1]
