"""Plots along a path: over C, over λ, over the number of vectors, and over the steps of a textbook algorithm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.estimators.ridge_path import RidgePath
from mercer.inspection.compression import compress
from mercer.inspection.compression.target import in_float64
from mercer.inspection.displays.drawing import (
    MOST_CURVES,
    MOST_IN_LEGEND,
    SMALLEST_SHOWN,
    Display,
    colours,
    frame,
    machine_and_rows,
    panels_for,
)
from mercer.inspection.displays.types import DataFrame, MaybeArray, Panels
from mercer.model_selection.paths.c_path import CPath
from mercer.samples.arrays import Floats
from mercer.tables.unwrap import unwrap

if TYPE_CHECKING:
    from mercer.notes.teaching.record import Steps


@dataclass(frozen=True, eq=False)
class Panel:
    """One panel of a `PathDisplay`: curves over the points `x` of a path.

    `curves` maps labels to values, or to a table with a column for each curve; labels that begin with an underscore are
    not shown. `formats` maps labels to format strings of matplotlib, for curves that are not plain lines.
    """

    title: str
    x: NDArray[Any]
    curves: dict[str, Floats]
    formats: Mapping[str, str]
    log: bool = False  # whether the vertical axis is logarithmic


class PathDisplay(Display):
    """Plot quantities along a path, one panel for each: over C, λ, the number of vectors or the steps of an algorithm.

    Parameters
    ----------
    along : str
        Label of the horizontal axes.
    panels : list of Panel
        Panels to draw.
    columns : dict of arrays
        Columns of `to_frame`.
    chosen : float, optional
        Chosen point of the path, marked by a line.
    log : bool, default=True
        Whether the horizontal axes are logarithmic.

    Attributes
    ----------
    axes_ : array of matplotlib axes
        Axes of the panels; set by `plot`.
    figure_ : matplotlib figure
        Figure of the panels.
    lines_ : list of lists of lines
        Curves, one list per panel.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercer import SVC
    >>> from mercer.inspection.displays import PathDisplay
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> display = PathDisplay.from_compression(SVC(C=10).fit(X, y), X, y)  # doctest: +SKIP
    """

    def __init__(
        self,
        along: str,
        panels: Sequence[Panel],
        columns: Mapping[str, object],
        *,
        chosen: float | None = None,
        log: bool = True,
    ) -> None:
        self.along, self.panels, self.columns = along, list(panels), dict(columns)
        self.chosen, self.log = chosen, log

    @classmethod
    def from_svm_path(cls, path: CPath, axes: Panels = None, *, X: Any = None, y: MaybeArray = None) -> Self:
        """Plot α, the margin, the number of support vectors and the error of an SVM against C.

        Parameters
        ----------
        path : CPath
            Result of `mercer.svm_path`.
        axes : four matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        X, y : samples and labels, optional
            Samples for the error rate in the last panel, which otherwise shows b.
        """
        Cs = _C_values(path)
        alpha = np.array([path.alpha(C) for C in Cs])
        samples = _most_changed(alpha)
        title = "α/C" + (f" of {len(samples)} samples" if len(samples) < alpha.shape[1] else "")
        dots = {"_": "o-", "all": "o-", "on the margin": "o-"} if len(path.C_) < 4 else {}  # single points have no line
        error = None if X is None else path.error(X, y, Cs)
        panels = [
            Panel(title, Cs, {"_": alpha[:, samples] / Cs[:, None]}, {}),
            Panel("margin 1/‖w‖", path.C_, {"_": path.margin_}, dots, log=True),
            Panel("support vectors", path.C_, {"all": path.n_support_, "on the margin": path.n_free_}, dots),
            Panel("b", path.C_, {"_": path.intercept_}, dots)
            if error is None
            else Panel("error rate", Cs, {"_": error}, {}),
        ]
        columns = {
            "C": path.C_,
            "margin": path.margin_,
            "intercept": path.intercept_,
            "n_free": path.n_free_,
            "n_bounded": path.n_bounded_,
            "n_support": path.n_support_,
        }
        return cls("C", panels, columns).plot(axes)

    @classmethod
    def from_ridge_path(cls, path: Any, axes: Panels = None) -> Self:
        """Plot the leave-one-out error, the norm of f and the degrees of freedom against λ.

        Parameters
        ----------
        path : RidgePath or estimator
            Path, or a fitted RLSRegressorCV or RLSClassifierCV, or a model that ends in one.
        axes : three matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        """
        if not isinstance(path, RidgePath):
            machine = unwrap(path).machine
            path = getattr(machine, "path_", None)
            if path is None:
                raise TypeError(
                    f"PathDisplay draws the path over λ of a fitted RLSRegressorCV or RLSClassifierCV, and "
                    f"{type(machine).__name__} has none; fit one of these"
                )
        quantities = (
            ("leave-one-out error (rms)", np.sqrt(path.loo_errors)),
            ("norm of f", path.norms),
            ("effective degrees of freedom", path.dof[:, None]),
        )
        columns: dict[str, object] = {"lam": path.lams, "dof": path.dof, "score": path.scores}
        for name, table in (("loo_error", path.loo_errors), ("gcv", path.gcv), ("norm", path.norms)):
            outputs = table.shape[1]
            columns |= {name if outputs == 1 else f"{name} {k}": table[:, k] for k in range(outputs)}
        panels = [Panel(title, path.lams, {"_": values}, {}) for title, values in quantities]
        return cls("λ", panels, columns, chosen=path.lam).plot(axes)

    @classmethod
    def from_compression(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        n_vectors: Sequence[float] = (0.02, 0.05, 0.1, 0.2, 0.4),
        train: tuple[Any, ArrayLike] | None = None,
        retrain: str = "values",
        axes: Panels = None,
    ) -> Self:
        """Compress a fitted model to several sizes; plot error, score and kept labels against the number of vectors.

        The error is the largest ‖w − w'‖ of the outputs. The kept labels are the share of samples whose label is
        provably that of the original.

        Parameters
        ----------
        estimator : estimator
            Fitted model, as for `mercer.compress`.
        X, y : samples and targets
            Samples to score on.
        n_vectors : sequence of int, or float below 1
            Numbers of vectors, or shares of them.
        train : pair (X, y), optional
            Training samples to which coefficients are fitted; by default the coefficients are those of the projection.
        retrain : {"values", "loss"}, default="values"
            How coefficients are fitted, as in `mercer.compress`.
        axes : pair of matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        """
        if not hasattr(estimator, "score"):
            raise TypeError(
                f"{type(estimator).__name__} has no score to plot: compare predictions and `compression_.error` of "
                "mercer.compress(model, n) for several n"
            )
        fit_options = {} if train is None else {"X": train[0], "y": train[1], "retrain": retrain}
        reports, scores, kept_shares = [], [], []
        for count in n_vectors:
            compressed_model = compress(estimator, count, **fit_options)
            machine, rows = machine_and_rows(compressed_model, X)
            reports.append(machine.compression_)
            scores.append(float(compressed_model.score(X, y)))
            if hasattr(compressed_model, "classes_") and reports[-1].proves_labels:
                kept_shares.append(float(reports[-1].keeps_label(in_float64(rows)).mean()))
        sizes = np.array([report.n_vectors for report in reports])
        errors = np.array([float(np.max(report.error)) for report in reports])
        columns = {"n_vectors": sizes, "error": errors, "score": np.array(scores)}
        columns |= {"kept": np.array(kept_shares)} if kept_shares else {}
        order = np.argsort(sizes, kind="stable")
        original_scores = np.full(len(sizes), float(estimator.score(X, y)))
        curves = {"score": columns["score"][order], f"original, {reports[0].n_vectors_before} vectors": original_scores}
        curves |= {"labels provably kept": columns["kept"][order]} if kept_shares else {}
        formats = dict(zip(curves, ("o-", ":", "s--"), strict=False))
        panels = [
            Panel("distance ‖w − w'‖ from the original", sizes[order], {"_": errors[order]}, {"_": "o-"}),
            Panel("score and kept labels" if kept_shares else "score", sizes[order], curves, formats),
        ]
        return cls("vectors", panels, columns).plot(axes)

    @classmethod
    def from_steps(cls, run: Steps, axes: Panels = None) -> Self:
        """Plot the dual value, the violation and the step size of a textbook algorithm.

        Parameters
        ----------
        run : Steps
            Result of `mercer.steps`; steps that were clipped at the box constraints are marked.
        axes : two matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        """
        steps = np.arange(len(run) + 1)
        dual = np.array([run.problem.dual(run.start), *(step.dual for step in run)])
        is_clipped = np.array([False, *(step.clipped for step in run)], dtype=bool)
        curves = {"_": dual} | ({"clipped at the box": np.where(is_clipped, dual, np.nan)} if is_clipped.any() else {})
        sizes = {
            name: np.maximum([getattr(step, name) for step in run], SMALLEST_SHOWN) for name in ("violation", "size")
        }
        panels = [
            Panel("dual value", steps, curves, {"clipped at the box": "|"}),
            Panel(f"{run.method} {run.rule}".strip(), steps[1:], sizes, {}, log=True),
        ]
        names = ("chosen", "size", "clipped", "gain", "dual", "violation", "b")
        columns = {name: [getattr(step, name) for step in run] for name in names}
        return cls("step", panels, columns, log=False).plot(axes)

    def plot(self, axes: Panels = None) -> Self:
        """Draw the panels.

        Parameters
        ----------
        axes : matplotlib axes, optional
            Axes to draw on, one for each panel; by default those of a new figure.

        Returns
        -------
        self
            The display.
        """
        shape = (2, 2) if len(self.panels) == 4 else (1, len(self.panels))
        inches = (10.0, 7.0) if len(self.panels) == 4 else (0.5 + 4.0 * len(self.panels), 3.6)
        axes = panels_for(axes, "a path", shape, inches)
        self.lines_: list[list[Any]] = []
        for axis, panel in zip(axes, self.panels, strict=True):
            self.lines_.append(_draw_panel(axis, panel))
            if self.chosen is not None:
                mark = f"{self.along} = {self.chosen:.3g}" if axis is axes[0] else None
                axis.axvline(self.chosen, color="0.6", linestyle=":", label=mark)
            axis.set(xlabel=self.along, title=panel.title)
            if self.log:
                axis.set_xscale("log")
            if self.log and panel.x.dtype.kind in "iu":  # few sizes, which become the ticks
                ticks = _select_ticks(np.unique(panel.x))
                axis.set_xticks(ticks, [str(n) for n in ticks])
                axis.minorticks_off()
            if axis.get_legend_handles_labels()[0]:
                axis.legend(fontsize="small")
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def to_frame(self) -> DataFrame:
        """Return the quantities as a pandas DataFrame, a row for each point of the path."""
        return frame("PathDisplay.to_frame", self.columns)


def _draw_panel(axis: Any, panel: Panel) -> list[Any]:
    """Draw the curves of a panel, and return their lines."""
    tables = {label: values[:, None] if values.ndim == 1 else values for label, values in panel.curves.items()}
    paint = colours(sum(table.shape[1] for table in tables.values()))
    lines: list[Any] = []
    for label, table in tables.items():
        for values in table.T:
            style = {"color": paint[len(lines)], "linewidth": 0.8 if len(paint) > MOST_IN_LEGEND else None}
            lines += axis.plot(panel.x, values, panel.formats.get(label, "-"), label=label, **style)
    if panel.log:
        axis.set_yscale("log")
    return lines


def _C_values(path: CPath) -> Floats:
    """Return values of C to draw, from half the first breakpoint to twice the last one, in the range of the path."""
    low, high = path.C_range_
    breaks = path.C_ if len(path.C_) else np.ones(1)
    low, high = max(low, 0.5 * float(breaks[0])), min(high, 2 * float(breaks[-1]))
    return np.geomspace(low * (1 + 1e-12), high * (1 - 1e-12), 120)


def _most_changed(alpha: Floats) -> np.ndarray:
    """Return the indices of the samples whose α changes most, at most as many as a plot shows."""
    if alpha.shape[1] <= MOST_CURVES:
        return np.arange(alpha.shape[1])
    return np.argsort(-np.ptp(alpha / alpha.max(), axis=0), kind="stable")[:MOST_CURVES]


def _select_ticks(sizes: np.ndarray) -> list[int]:
    """Select sizes for ticks; among sizes close to one another, only the largest."""
    ticks: list[int] = []
    for size in reversed(sizes.tolist()):
        if not ticks or size * 1.25 <= ticks[-1]:  # so that labels do not touch below an axis of 4 inches
            ticks.append(size)
    return ticks[::-1]
