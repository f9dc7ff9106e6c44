"""Shared parts of displays: base classes, axes, colours, labels, data frames, and the marking of support vectors."""

from __future__ import annotations

import colorsys
import datetime
import math
import textwrap
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from mercer.estimators.fitting.reports.dual_margins import free_vectors
from mercer.inspection.displays.types import Axes, DataFrame, Figure, MaybeArray, MaybeAxes, Panels
from mercer.runtime.optional import require
from mercer.samples.arrays import Floats, Indices, is_sparse
from mercer.tables.axis import Axis
from mercer.tables.units import TIME, format_clock, format_quantity
from mercer.tables.unwrap import unwrap

# Colours of classes, distinguishable with colour blindness.
COLOURS = ("#3b6fb6", "#d1603d", "#4f9d69", "#8f6bb0", "#c9a227", "#5aa5a5", "#a05070", "#7a7a7a")

# Largest number of entries in a legend; more classes are labelled among their samples, or not distinguished.
MOST_IN_LEGEND = 10
# Largest number of categories on an axis.
MOST_LEVELS = 40
# Largest number of curves of single samples in a plot.
MOST_CURVES = 60
# Value that stands for 0 on a logarithmic axis, below every gap that float64 can distinguish from 0.
SMALLEST_SHOWN = 1e-16


class Display:
    """Base class of displays; its repr is one line, since the arrays in its attributes may be long."""

    def __repr__(self) -> str:
        has_figure = getattr(self, "figure_", None) is not None
        return f"{type(self).__name__}({'figure_ holds the plot' if has_figure else 'not drawn: call plot()'})"


class Picture(Display):
    """Base class of displays with one plot; after `plot`, `ax_` and `figure_` are its axes and figure.

    Subclasses implement `_draw`; `_purpose` completes the message that matplotlib is missing.
    """

    ax_: Axes = None
    figure_: Figure = None
    _purpose: ClassVar[str]
    _inches: ClassVar[tuple[float, float]] = (6.4, 4.4)

    def plot(self, ax: MaybeAxes = None) -> Self:
        """Draw the plot, and set `ax_` and `figure_`.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        self
            The display.
        """
        ax = axes_for(ax, self._purpose, self._inches)
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw(self, ax: Axes) -> None:
        raise NotImplementedError


def axes_for(ax: MaybeAxes, purpose: str, inches: tuple[float, float] = Picture._inches) -> Axes:
    """Return the given axes, or those of a new figure."""
    if ax is not None:
        return ax
    return require("matplotlib.pyplot", purpose).subplots(figsize=inches, layout="constrained")[1]


def panels_for(axes: Panels, subject: str, shape: tuple[int, int], inches: tuple[float, float]) -> np.ndarray:
    """Return the given axes, or those of a new figure, as a flat array with one entry per panel."""
    if axes is None:
        pyplot = require("matplotlib.pyplot", f"drawing {subject}")
        axes = pyplot.subplots(*shape, figsize=inches, layout="constrained")[1]
    axes = np.asarray(axes).ravel()
    if len(axes) != math.prod(shape):
        raise ValueError(f"{subject} is drawn into {math.prod(shape)} axes, but {len(axes)} were given")
    return axes


def frame(purpose: str, columns: Mapping[Any, object], index: MaybeArray = None) -> DataFrame:
    """Build a pandas DataFrame; raise if pandas is missing."""
    return require("pandas", purpose).DataFrame(columns, index=index)


def colours(n: int) -> list[Any]:
    """Return n colours; if there are many, neighbours in the list differ strongly."""
    if n <= len(COLOURS):
        return list(COLOURS[:n])
    if n <= 20:
        name = "tab10" if n <= 10 else "tab20"
        return list(require("matplotlib", "drawing classes").colormaps[name].colors[:n])
    golden_ratio = (math.sqrt(5) - 1) / 2  # multiples of it are spread evenly over the hues
    return [colorsys.hls_to_rgb(k * golden_ratio % 1, (0.35, 0.5, 0.65)[k % 3], 0.7) for k in range(n)]


def foreground(ax: Axes) -> Any:
    """Return the colour of lines and points on an empty background: black, or white in a dark style."""
    return ax.title.get_color()


def escape_text(text: str) -> str:
    """Escape text so that matplotlib neither reads it as a formula nor hides it in legends for a leading underscore."""
    return " " * text.startswith("_") + text.replace("$", r"\$")


def shorten(name: object, max_length: int = 32) -> str:
    """Shorten a name to `max_length` characters by omitting its middle, and escape it."""
    text = str(name)
    if len(text) <= max_length:
        return escape_text(text)
    head = max_length // 2
    return escape_text(f"{text[:head].rstrip()}…{text[head + 1 - max_length :].lstrip()}")


def wrap_text(text: str, ax: Axes, points: float) -> str:
    """Wrap text to the width of the axes, for a font of this size."""
    # The mean width of a character in matplotlib's default font is 0.56 of the font's size.
    return textwrap.fill(text, max(int(_width(ax) * 72 / (0.56 * points)), 12))


def legend(ax: Axes, **options: object) -> Any:
    """Add a legend that the layout ignores, with smaller letters in a narrow plot."""
    # In axes narrower than 2.6 inches, three lines in small print would hide a third of the plot.
    box = ax.legend(fontsize="small" if _width(ax) > 2.6 else "xx-small", **options)
    box.set_in_layout(False)
    return box


def _width(ax: Axes) -> float:
    """Return the width of axes in inches."""
    return float(ax.get_position().width * ax.figure.get_figwidth())


def machine_and_rows(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the machine inside a model, and X as that machine reads it."""
    unwrapped = unwrap(model)
    return unwrapped.machine, unwrapped.rows(X)


def cell_text(cell: Any) -> str:
    """Return a cell of a table as a short text."""
    if isinstance(cell, np.datetime64 | datetime.datetime):
        return str(np.datetime64(cell).astype("datetime64[s]")).removesuffix("T00:00:00").replace("T", " ")
    if isinstance(cell, bool | np.bool_ | str) or cell is None:
        return "missing" if cell is None else str(cell)
    return f"{cell:.4g}" if isinstance(cell, float | int | np.number) else str(cell)


def check_levels_fit(axis: Axis) -> None:
    """Raise ValueError if a column has more categories than fit on an axis."""
    if len(axis.levels) > MOST_LEVELS:
        raise ValueError(
            f"the column {axis.name!r} has {len(axis.levels)} categories, and an axis has room for {MOST_LEVELS}; "
            "choose other columns"
        )


def set_ticks_of(axis: Axis, side: Any) -> None:
    """Set the dates or categories of a column as ticks of `side`, which is `ax.xaxis` or `ax.yaxis`."""
    if axis.kind == "date":
        dates = require("matplotlib.dates", "drawing dates")
        side.set_major_locator(locator := dates.AutoDateLocator())
        side.set_major_formatter(dates.ConciseDateFormatter(locator))
    elif axis.kind == "category":
        check_levels_fit(axis)
        side.set_ticks(range(len(axis.levels)), [shorten(cell_text(level), 20) for level in axis.levels])
        if side.axis_name == "x" and sum(min(len(cell_text(level)), 20) for level in axis.levels) > 60:
            side.set_tick_params(rotation=90)


def show_unit(side: Any, unit: str) -> None:
    """Append a unit to the label of a matplotlib axis of numbers, and write them as 200,000 and not 2e5."""
    ticker = require("matplotlib.ticker", "drawing units")
    side.set_major_locator(ticker.MaxNLocator(5))
    write = format_clock if unit == TIME else lambda value: format_quantity(value).replace("-", "−")
    side.set_major_formatter(ticker.FuncFormatter(lambda value, _: write(value)))
    if unit != TIME:
        side.set_label_text(f"{side.get_label_text()}, {escape_text(unit)}")


def support_vector_rows(machine: Any, X: Any) -> tuple[Indices | None, Indices | None]:
    """Return the rows of X that are free support vectors, and those that are bounded ones.

    X has the form in which the machine reads samples. Both results are None if the machine has no support vectors, or
    if X has another number of columns.
    """
    vectors = getattr(machine, "support_vectors_", None)
    if vectors is None or vectors.shape[1:] != np.shape(X)[1:]:
        return None, None
    is_free = dict(zip((row.tobytes() for row in _dense(vectors)), _is_free(machine).tolist(), strict=True))
    kinds = [is_free.get(row.tobytes()) for row in _dense(X)]
    return np.flatnonzero([kind is True for kind in kinds]), np.flatnonzero([kind is False for kind in kinds])


def _dense(rows: Any) -> Floats:
    return np.ascontiguousarray(rows.toarray() if is_sparse(rows) else rows, dtype=np.float64) + 0.0  # no −0


def _is_free(machine: Any) -> np.ndarray:
    """Return which support vectors are free, 0 < α < C, in at least one of the binary problems."""
    free = free_vectors(machine)
    if free is not None:
        return np.asarray(free)
    size = np.abs(machine.dual_coef_)
    # LIBSVM's files do not contain C; the largest α stands for it.
    box = np.full(size.shape[1], size.max(initial=0.0))
    if hasattr(machine, "certificate_"):  # a multiclass machine with one joint problem
        box = np.repeat(machine.C * np.asarray(machine.class_weight_), machine.n_support_)
    return np.asarray(((size > 0) & (size < box * (1 - 1e-9))).any(axis=0))
