"""Plots of training samples: kernel values ordered by class, and margins against α."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mercer.estimators.fitting.pipeline.fit import read_samples
from mercer.estimators.fitting.pipeline.state import has_function_per_class
from mercer.inspection.displays.drawing import (
    COLOURS,
    Picture,
    foreground,
    frame,
    legend,
    machine_and_rows,
    shorten,
    wrap_text,
)
from mercer.inspection.displays.types import Axes, DataFrame, MaybeArray, MaybeAxes
from mercer.kernels import Kernel
from mercer.kernels.names import KernelLike, as_kernel
from mercer.problems.margins import Margins
from mercer.runtime.parameters import integer
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Floats, Indices, n_samples, take
from mercer.samples.labels import plane_coefficients, planes


@dataclass(eq=False, repr=False)
class GramDisplay(Picture):
    """Plot a kernel matrix, with the samples ordered by class.

    If a kernel suits the classes, the matrix has large values in blocks along the diagonal and small ones elsewhere.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel values in the order of the plot.
    rows : array of int
        Indices of the samples in the rows of K.
    labels : array, or None
        Classes of these samples.
    n_samples : int
        Number of samples in total; if they are more than are shown, the plot says so.

    Attributes
    ----------
    image_ : matplotlib image
        The image; set by `plot`.
    """

    K: Floats
    rows: Indices
    labels: np.ndarray | None
    n_samples: int
    _purpose = "drawing a kernel matrix"
    _inches = (5.6, 4.6)
    image_: Any = field(default=None, init=False, repr=False)

    @classmethod
    @shared_docs
    def from_estimator(
        cls, estimator: Any, X: Any, y: MaybeArray = None, *, max_samples: int = 500, ax: MaybeAxes = None
    ) -> Self:
        """Plot the kernel matrix of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator with a kernel; also a Pipeline that ends in one, or a `mercer.tabular` model.
        X : samples
            Samples, as for the estimator.
        %(order of a matrix)s
        """
        machine, rows = machine_and_rows(estimator, X)
        if not hasattr(machine, "kernel_"):
            raise TypeError(
                f"{type(machine).__name__} has no kernel; use from_kernel, with Linear() for a linear machine"
            )
        if hasattr(rows, "columns"):
            # Raises if columns have other names than in fit.
            rows = read_samples(machine, rows, machine.kernel_, reset=False)
        return cls.from_kernel(machine.kernel_, rows, y, max_samples=max_samples, ax=ax)

    @classmethod
    @shared_docs
    def from_kernel(
        cls, kernel: KernelLike, X: Any, y: MaybeArray = None, *, max_samples: int = 500, ax: MaybeAxes = None
    ) -> Self:
        """Plot the matrix of a kernel on samples.

        Parameters
        ----------
        kernel : str, Kernel or callable
            Kernel, as for `SVC`; with "precomputed", X is the matrix.
        X : samples
            Samples, as for the kernel.
        %(order of a matrix)s
        """
        integer("max_samples", max_samples, 1, "the number of rows in the plot")
        k: Kernel = as_kernel(kernel)
        X = np.asarray(X) if hasattr(X, "columns") else X
        n, labels = n_samples(X), None if y is None else np.asarray(y)
        if labels is not None and labels.shape != (n,):
            raise ValueError(f"y must have one value for each of the {n} samples, not the shape {labels.shape}")
        order = np.arange(n) if labels is None else np.argsort(labels, kind="stable")
        rows = order[np.linspace(0, n - 1, min(n, max_samples)).round().astype(np.intp)]
        if k.accepts == "gram":
            K = np.asarray(X, dtype=np.float64)[np.ix_(rows, rows)]
        else:
            K = k.bind(X)(take(np.asarray(X) if isinstance(X, list) and k.accepts == "vectors" else X, rows))
        return cls(K, rows, None if labels is None else labels[rows], n).plot(ax)

    def _draw(self, ax: Axes) -> None:
        has_negative_values = bool(self.K.min() < 0)
        size = float(np.abs(self.K).max())
        limits = (
            {"vmin": -size, "vmax": size, "cmap": "RdBu"} if has_negative_values else {"vmin": 0.0, "cmap": "viridis"}
        )
        self.image_ = ax.imshow(self.K, interpolation="nearest", **limits)
        ax.figure.colorbar(self.image_, ax=ax, label="k(x, z)")
        classes = self._classes()
        if classes is None:
            ax.set(xlabel="sample", ylabel="sample" if self.labels is None else "sample, ordered by y")
        else:
            names, counts = classes
            ends = np.cumsum(counts)
            for end in ends[:-1]:
                for line in (ax.axhline, ax.axvline):
                    line(end - 0.5, color="black" if has_negative_values else "white", linewidth=1)
            shown_names = [shorten(name, 20) for name in names]
            is_crowded = sum(map(len, shown_names)) > 36  # more characters do not fit below a plot 4 inches wide
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_ticks(ends - counts / 2 - 0.5, shown_names, fontsize="small" if is_crowded else None)
            if is_crowded and max(map(len, shown_names)) > 1:
                ax.tick_params(axis="x", labelrotation=90)
        if len(self.rows) < self.n_samples:
            ax.set_title(f"{len(self.rows)} of {self.n_samples:,} samples", fontsize="small")

    def _classes(self) -> tuple[np.ndarray, Indices] | None:
        """Return the classes and their numbers of rows; None if y holds numbers that are not classes."""
        if self.labels is None:
            return None
        names, counts = np.unique(self.labels, return_counts=True)
        return (names, counts) if len(names) <= max(20, len(self.labels) // 10) else None

    def to_frame(self) -> DataFrame:
        """Return the kernel values as a pandas DataFrame, with sample indices as index and columns."""
        return frame("GramDisplay.to_frame", dict(zip(self.rows.tolist(), self.K.T, strict=True)), index=self.rows)


_STYLES = {"other": ("0.6", "α = 0"), "free": (COLOURS[0], "0 < α < C"), "bounded": (COLOURS[1], "α = C")}


@dataclass(eq=False, repr=False)
class MarginDisplay(Picture):
    """Plot the functional margin s f(x) of each training sample against its α, for one pair of classes.

    At the optimum, samples with α = 0 have s f(x) ≥ 1, free ones (0 < α < C) lie on s f(x) = 1, and those with α = C
    have s f(x) ≤ 1. Deviations from these conditions are the KKT violation of the fit.

    Parameters
    ----------
    functional_margins, alpha : arrays of shape (n_samples,)
        Functional margins and dual variables of the samples of both classes.
    standings : array of str
        "other", "free" or "bounded", for each sample.
    rows : array of int
        Indices of these samples.
    classes : tuple
        Labels of the negative and of the positive class.
    """

    functional_margins: Floats
    alpha: Floats
    standings: np.ndarray
    rows: Indices
    classes: tuple[object, object]
    _purpose = "drawing margins"

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, *, plane: int = 0, ax: MaybeAxes = None) -> Self:
        """Plot margins and α of a fitted estimator.

        Parameters
        ----------
        estimator : SVC or NuSVC
            Fitted estimator; also a Pipeline that ends in one, or a `mercer.tabular` model.
        X, y : samples and labels
            Training data of the estimator.
        plane : int, default=0
            Index of the hyperplane, if there are several classes.
        ax : matplotlib axes, optional
            Axes to draw on; by default those of a new figure.
        """
        machine, rows = machine_and_rows(estimator, X)
        if not hasattr(machine, "support_") or not hasattr(machine, "margins"):
            raise TypeError(f"{type(machine).__name__} has no α of a margin between classes: use an SVC or NuSVC")
        pairs = planes(len(machine.classes_), has_function_per_class(machine))
        if not isinstance(plane, int | np.integer) or not 0 <= plane < len(pairs):
            raise ValueError(f"plane={plane!r} is none of the {len(pairs)} planes between the classes, counted from 0")
        n = len(np.asarray(y))
        if len(machine.support_) and n <= machine.support_.max():
            raise ValueError(
                f"the {n} samples given cannot be those of the fit, whose sample {machine.support_.max()} is a support "
                "vector: pass the training data"
            )
        margins = machine.margins(rows, y)
        plane_margins: Margins = margins if isinstance(margins, Margins) else margins[plane]
        alpha = np.zeros(n)
        beta = plane_coefficients(machine.dual_coef_, machine.n_support_, pairs, plane)
        alpha[machine.support_] = np.abs(beta)
        standings = np.full(len(plane_margins.rows), "other", dtype=object)
        for name in ("free", "bounded"):
            standings[np.isin(plane_margins.rows, getattr(plane_margins, name))] = name
        rows = plane_margins.rows
        return cls(plane_margins.functional_margins, alpha[rows], standings, rows, plane_margins.classes).plot(ax)

    def _draw(self, ax: Axes) -> None:
        ax.axvline(1.0, color=foreground(ax), linewidth=0.8, linestyle="--")
        ax.axvline(0.0, color=foreground(ax), linewidth=0.8)
        for name, (colour, label) in _STYLES.items():
            is_selected = self.standings == name
            ax.scatter(
                self.functional_margins[is_selected],
                self.alpha[is_selected],
                s=20,
                color=colour,
                alpha=0.7,
                linewidths=0,
                label=f"{label}: {int(is_selected.sum())}",
            )
        title = f"{shorten(self.classes[1])} against {shorten(self.classes[0])}"
        ax.set(xlabel="functional margin s f(x)", ylabel="α")
        ax.set_title(wrap_text(title, ax, ax.title.get_fontsize()))
        legend(ax)

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with a row per sample."""
        columns = {"functional_margin": self.functional_margins, "alpha": self.alpha, "standing": self.standings}
        return frame("MarginDisplay.to_frame", columns, index=self.rows)
