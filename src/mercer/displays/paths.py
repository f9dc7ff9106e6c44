"""What changes along a path: in C, in λ, and with fewer and fewer vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mercer.compression import compress
from mercer.compression.target import in_float64
from mercer.displays.annotations import Axes, DataFrame, MaybeArray, MaybeAxes, Panels
from mercer.displays.drawing import (
    COLOURS,
    MOST_CURVES,
    Display,
    axes_for,
    colours,
    frame,
    ink,
    machine_and_rows,
    panels_for,
)
from mercer.estimators.ridge_path import RidgePath
from mercer.paths.c_path import CPath
from mercer.tables.asked import ask


class CPathDisplay(Display):
    """The picture of a CPath: α, margin, support vectors and, with samples, the error against C.

    Parameters
    ----------
    path : CPath
        What is drawn.

    Attributes
    ----------
    axes_ : array of four matplotlib axes
    figure_ : matplotlib figure
    lines_ : list of lists of lines, one list per axis
    """

    def __init__(self, path: CPath) -> None:
        self.path = path

    @classmethod
    def from_path(cls, path: CPath, X: Any = None, y: MaybeArray = None, axes: Panels = None) -> Self:
        """A path, drawn; the error is that of the samples X with labels y."""
        return cls(path).plot(axes, X=X, y=y)

    def plot(self, axes: Panels = None, *, X: Any = None, y: MaybeArray = None) -> Self:
        """Draw into four axes, or into a new figure."""
        axes = panels_for(axes, "a path in C", (2, 2), (10, 7))
        path, Cs = self.path, self.prices()
        alpha = np.array([path.alpha(C) for C in Cs])
        shown = _most_moved(alpha)
        dots = {"marker": "o" if len(path.C_) < 4 else None}  # which a line would not show
        self.lines_ = [
            axes[0].semilogx(Cs, alpha[:, shown] / Cs[:, None], linewidth=0.8),
            axes[1].loglog(path.C_, path.margin_, color=COLOURS[0], **dots),
            axes[2].semilogx(path.C_, path.n_support_, color=COLOURS[0], label="all", **dots)
            + axes[2].semilogx(path.C_, path.n_free_, color=COLOURS[1], label="on the margin", **dots),
        ]
        axes[2].legend()
        axes[0].set(title="α/C" + (f" of {len(shown)} samples" if len(shown) < alpha.shape[1] else ""))
        axes[1].set(title="margin 1/‖w‖")
        axes[2].set(title="support vectors")
        if X is not None:
            self.lines_.append(axes[3].semilogx(Cs, path.error(X, y, Cs), color=COLOURS[0]))
            axes[3].set(title="share of errors")
        else:
            self.lines_.append(axes[3].semilogx(path.C_, path.intercept_, color=COLOURS[0], **dots))
            axes[3].set(title="b")
        for axis in axes:
            axis.set_xlabel("C")
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def plot_elbow(self, X: ArrayLike, C: float, ax: MaybeAxes = None) -> Axes:
        """One step: which samples of a plane lie on the margin at C, which inside it, and the lines f = −1, 0, 1."""
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != 2:
            raise ValueError(f"samples in a plane have 2 features, but X has shape {X.shape}")
        ax = axes_for(ax, "plotting a path", (6.4, 4.8))
        low, high = X.min(axis=0), X.max(axis=0)
        sides = [np.linspace(a - 0.1 * (b - a), b + 0.1 * (b - a), 80) for a, b in zip(low, high, strict=True)]
        grid = np.stack(np.meshgrid(*sides), axis=-1)
        f = self.path.decision_function(grid.reshape(-1, 2), [C]).reshape(80, 80)
        ax.contour(*sides, f, levels=[-1, 0, 1], colors=[ink(ax)], linestyles=["--", "-", "--"], linewidths=1)
        alpha, own = self.path.alpha(C), self.path.decision_function(X, [C])[:, 0]
        free = (alpha > 0) & (np.abs(np.abs(own) - 1) < 1e-6)
        sides_of = np.where(own > 0, COLOURS[1], COLOURS[0])
        for which, size, edge, label in (
            (alpha == 0, 12, "none", "α = 0"),
            ((alpha > 0) & ~free, 45, "none", "inside"),
            (free, 60, ink(ax), "on the margin"),
        ):
            ax.scatter(*X[which].T, c=sides_of[which], s=size, edgecolors=edge, linewidths=1.5, label=label, zorder=3)
        # Below the picture, where it hides no sample and stands still in a film.
        legend = ax.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.06), ncols=3, frameon=False)
        for handle in legend.legend_handles:
            handle.set_facecolor("0.6")
        ax.set_title(f"C = {C:.4g}")
        return ax

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame with one line per breakpoint: C, margin, b, and how many samples are where."""
        path = self.path
        columns = {
            "C": path.C_,
            "margin": path.margin_,
            "intercept": path.intercept_,
            "n_free": path.n_free_,
            "n_bounded": path.n_bounded_,
            "n_support": path.n_support_,
        }
        return frame("CPathDisplay.to_frame", columns)

    def prices(self) -> np.ndarray:
        """Where curves are drawn: from below the first breakpoint to above the last one, as far as the path goes."""
        low, high = self.path.C_range_
        breaks = self.path.C_ if len(self.path.C_) else np.ones(1)
        low, high = max(low, 0.5 * float(breaks[0])), min(high, 2 * float(breaks[-1]))
        return np.geomspace(low * (1 + 1e-12), high * (1 - 1e-12), 120)


def _most_moved(alpha: np.ndarray) -> np.ndarray:
    """The samples whose α changes most."""
    if alpha.shape[1] <= MOST_CURVES:
        return np.arange(alpha.shape[1])
    return np.argsort(-np.ptp(alpha / alpha.max(), axis=0), kind="stable")[:MOST_CURVES]


class RidgePathDisplay(Display):
    """The picture of a RidgePath: leave-one-out error, coefficient norm and degrees of freedom against λ.

    Parameters
    ----------
    path : RidgePath
        What to draw.

    Attributes
    ----------
    axes_ : array of three matplotlib axes
    figure_ : matplotlib figure
    lines_ : list of lists of lines
        One list per axis.
    """

    def __init__(self, path: RidgePath) -> None:
        self.path = path

    @classmethod
    def from_estimator(cls, estimator: Any, axes: Panels = None) -> Self:
        """The path of a fitted machine, drawn.

        Parameters
        ----------
        estimator : RLSRegressorCV or RLSClassifierCV, or a model that ends in one
            Fitted.
        axes : three matplotlib axes, optional
            Where to draw; default: a new figure.
        """
        machine = ask(estimator).machine
        if not hasattr(machine, "path_"):
            raise TypeError(
                f"RidgePathDisplay draws the path over λ of a fitted RLSRegressorCV or RLSClassifierCV, and "
                f"{type(machine).__name__} has none; fit one of these"
            )
        return cls(machine.path_).plot(axes)

    def plot(self, axes: Panels = None) -> Self:
        """Draw into three axes, or into a new figure.

        Parameters
        ----------
        axes : three matplotlib axes, optional
            Where to draw; default: a new figure.
        """
        axes = panels_for(axes, "a path", (1, 3), (12, 3.5))
        path = self.path
        shown = (
            (np.sqrt(path.loo_errors), "leave-one-out error (rms)"),
            (path.norms, "norm of f"),
            (path.dof[:, None], "effective degrees of freedom"),
        )
        self.lines_ = []
        for axis, (values, title) in zip(axes, shown, strict=True):
            self.lines_.append(axis.semilogx(path.lams, values))
            for line, colour in zip(self.lines_[-1], colours(values.shape[1]), strict=True):
                line.set_color(colour)
            chosen = axis.axvline(path.lam, color="0.6", linestyle=":", label=f"λ = {path.lam:.3g}")
            axis.set(xlabel="λ", title=title)
        axes[0].legend(handles=[chosen], fontsize="small")
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame with one line per λ; of several outputs, errors and norms have a column each."""
        path = self.path
        columns: dict[str, object] = {"lam": path.lams, "dof": path.dof, "score": path.scores}
        for name, table in (("loo_error", path.loo_errors), ("gcv", path.gcv), ("norm", path.norms)):
            outputs = table.shape[1]
            columns |= {name if outputs == 1 else f"{name} {k}": table[:, k] for k in range(outputs)}
        return frame("RidgePathDisplay.to_frame", columns)


class CompressionDisplay(Display):
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
        self,
        n_vectors: ArrayLike,
        errors: ArrayLike,
        scores: ArrayLike,
        n_original: int,
        original_score: float,
        kept: MaybeArray = None,
    ) -> None:
        self.n_vectors, self.errors, self.scores = (np.asarray(part) for part in (n_vectors, errors, scores))
        self.n_original, self.original_score = n_original, original_score
        self.kept = None if kept is None else np.asarray(kept)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        n_vectors: Sequence[float] = (0.02, 0.05, 0.1, 0.2, 0.4),
        train: tuple[Any, ArrayLike] | None = None,
        retrain: str = "values",
        ax: MaybeAxes = None,
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

    def to_frame(self) -> DataFrame:
        """The numbers as a pandas DataFrame, one row for each compressed machine."""
        columns = {"n_vectors": self.n_vectors, "error": self.errors, "score": self.scores}
        if self.kept is not None:
            columns["kept"] = self.kept
        return frame("CompressionDisplay.to_frame", columns)

    def plot(self, ax: MaybeAxes = None) -> Self:
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


def _apart(sizes: np.ndarray) -> list[int]:
    """The sizes that are written below the axis: of those close to each other, the largest."""
    kept: list[int] = []
    for size in reversed(sizes.tolist()):
        if not kept or size * 1.25 <= kept[-1]:  # below an axis of 4 inches they do not touch
            kept.append(size)
    return kept[::-1]
