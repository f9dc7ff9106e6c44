"""The kernel matrix as a picture, ordered by class: what the machine is given to tell classes apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from mercer.arrays import Floats, Indices, n_samples, take
from mercer.displays.drawing import Picture, frame, short
from mercer.displays.support import machine_and_rows
from mercer.fitting.families.shared_docs import shared_docs
from mercer.kernels import Kernel, as_kernel
from mercer.parameters import integer

# Characters of a class's name; and of all names that stand side by side below a picture 4 inches wide.
_MOST_CHARACTERS, _LEVEL_CHARACTERS = 20, 36


@dataclass(eq=False)
class GramDisplay(Picture):
    """Kernel values between samples, those of a class beside each other.

    A kernel that suits the classes shows large values in blocks along the diagonal, and small ones elsewhere.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel values in the order of the picture.
    rows : array of int
        Which of the samples given stand in the rows.
    labels : array, or None
        Their classes.
    n_samples : int
        How many samples were given; if they are more than are shown, the picture says so.

    Attributes
    ----------
    ax_, figure_ : matplotlib's axes and figure
        Set by `plot`.
    image_ : matplotlib image
        Set by `plot`.
    """

    K: Floats
    rows: Indices
    labels: Any
    n_samples: int
    _purpose = "drawing a kernel matrix"
    _inches = (5.6, 4.6)
    image_: Any = field(default=None, init=False, repr=False)

    @classmethod
    @shared_docs
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None, *, max_samples: int = 500, ax: Any = None) -> Self:
        """Take the kernel of a fitted machine, and draw.

        Parameters
        ----------
        estimator : a machine with a kernel
            Fitted; also a Pipeline that ends in one, or what `mercer.tabular` makes.
        X : samples
            As the estimator takes them.
        %(order of a matrix)s
        """
        machine, seen = machine_and_rows(estimator, X)
        if not hasattr(machine, "kernel_"):
            raise TypeError(f"{type(machine).__name__} has no kernel; its matrix is that of Linear(): use from_kernel")
        return cls.from_kernel(machine.kernel_, seen, y, max_samples=max_samples, ax=ax)

    @classmethod
    @shared_docs
    def from_kernel(cls, kernel: Any, X: Any, y: Any = None, *, max_samples: int = 500, ax: Any = None) -> Self:
        """Evaluate a kernel on samples, and draw.

        Parameters
        ----------
        kernel : str, Kernel or callable
            As for `SVC`; with "precomputed" X is the matrix.
        X : samples
            As the kernel takes them.
        %(order of a matrix)s
        """
        integer("max_samples", max_samples, 1, "the number of rows in the picture")
        found: Kernel = as_kernel(kernel)
        X = np.asarray(X) if hasattr(X, "columns") else X
        n, given = n_samples(X), None if y is None else np.asarray(y)
        if given is not None and given.shape != (n,):
            raise ValueError(f"y must have one value for each of the {n} samples, not the shape {given.shape}")
        order = np.arange(n) if given is None else np.argsort(given, kind="stable")
        rows = order[np.linspace(0, n - 1, min(n, max_samples)).round().astype(np.intp)]
        if found.accepts == "gram":
            K = np.asarray(X, dtype=np.float64)[np.ix_(rows, rows)]
        else:
            K = found.bind(X)(take(np.asarray(X) if isinstance(X, list) and found.accepts == "vectors" else X, rows))
        return cls(K, rows, None if given is None else given[rows], n).plot(ax)

    def _draw(self, ax: Any) -> None:
        signed = bool(self.K.min() < 0)
        size = float(np.abs(self.K).max())
        limits = {"vmin": -size, "vmax": size, "cmap": "RdBu"} if signed else {"vmin": 0.0, "cmap": "viridis"}
        self.image_ = ax.imshow(self.K, interpolation="nearest", **limits)
        ax.figure.colorbar(self.image_, ax=ax, label="k(x, z)")
        classes = self._classes()
        if classes is None:
            ax.set(xlabel="sample", ylabel="sample" if self.labels is None else "sample, in the order of y")
        else:
            names, counts = classes
            ends = np.cumsum(counts)
            for end in ends[:-1]:
                for line in (ax.axhline, ax.axvline):
                    line(end - 0.5, color="black" if signed else "white", linewidth=1)
            shown = [short(name, _MOST_CHARACTERS) for name in names]
            crowded = sum(map(len, shown)) > _LEVEL_CHARACTERS
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_ticks(ends - counts / 2 - 0.5, shown, fontsize="small" if crowded else None)
            if crowded and max(map(len, shown)) > 1:
                ax.tick_params(axis="x", labelrotation=90)
        if len(self.rows) < self.n_samples:
            ax.set_title(f"{len(self.rows)} of {self.n_samples:,} samples", fontsize="small")

    def _classes(self) -> tuple[Any, Any] | None:
        """The classes and how many rows each has; None where y has numbers that are no classes."""
        if self.labels is None:
            return None
        names, counts = np.unique(self.labels, return_counts=True)
        return (names, counts) if len(names) <= max(20, len(self.labels) // 10) else None

    def to_frame(self) -> Any:
        """A pandas DataFrame of kernel values, whose index and columns are the numbers of the samples."""
        return frame("GramDisplay.to_frame", dict(zip(self.rows.tolist(), self.K.T, strict=True)), index=self.rows)
