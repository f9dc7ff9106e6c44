"""The picture of a path in C."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer.displays.drawing import COLOURS, MOST_CURVES, axes_for, frame, ink, panels_for
from mercer.paths.c_path import CPath

# Points at which curves are drawn.
_POINTS = 120
# Fewer breakpoints than a line shows.
_FEW_BREAKPOINTS = 4


class CPathDisplay:
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
    def from_path(cls, path: CPath, X: Any = None, y: Any = None, axes: Any = None) -> Self:
        """A path, drawn; the error is that of the samples X with labels y."""
        return cls(path).plot(axes, X=X, y=y)

    def plot(self, axes: Any = None, *, X: Any = None, y: Any = None) -> Self:
        """Draw into four axes, or into a new figure."""
        axes = panels_for(axes, "a path in C", (2, 2), (10, 7))
        path, Cs = self.path, self.prices()
        alpha = np.array([path.alpha(C) for C in Cs])
        shown = _most_moved(alpha)
        dots = {"marker": "o" if len(path.C_) < _FEW_BREAKPOINTS else None}
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

    def plot_elbow(self, X: Any, C: float, ax: Any = None) -> Any:
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

    def to_frame(self) -> Any:
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
        return np.geomspace(low * (1 + 1e-12), high * (1 - 1e-12), _POINTS)


def _most_moved(alpha: np.ndarray) -> np.ndarray:
    """The samples whose α changes most."""
    if alpha.shape[1] <= MOST_CURVES:
        return np.arange(alpha.shape[1])
    return np.argsort(-np.ptp(alpha / alpha.max(), axis=0), kind="stable")[:MOST_CURVES]
