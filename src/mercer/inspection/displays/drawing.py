"""What displays share: where they draw, in which colours and words, their numbers as a frame, and support vectors."""

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
from mercer.tables.unwrap import ask

# One for each class, as far as there are that many; distinguishable also by those who see fewer colours.
COLOURS = ("#3b6fb6", "#d1603d", "#4f9d69", "#8f6bb0", "#c9a227", "#5aa5a5", "#a05070", "#7a7a7a")

# Classes whose colours a reader can still match with a legend; more are written where they are, or not told apart.
MOST_IN_LEGEND = 10
# Categories that an axis has room to name.
MOST_LEVELS = 40
# Curves of single samples that one picture can show.
MOST_CURVES = 60
# Where a logarithmic axis draws zero: below every gap that float64 can tell from it.
SMALLEST_SHOWN = 1e-16


class Display:
    """A display, which a prompt shows as one line; its arrays are attributes, and may be long."""

    def __repr__(self) -> str:
        drawn = getattr(self, "figure_", None) is not None
        return f"{type(self).__name__}({'figure_ holds the picture' if drawn else 'not drawn: call plot()'})"


class Picture(Display):
    """A display of one picture, whose axes and figure are then `ax_` and `figure_`.

    `_draw` draws it, and `_purpose` says what needs matplotlib.
    """

    ax_: Axes = None
    figure_: Figure = None
    _purpose: ClassVar[str]
    _inches: ClassVar[tuple[float, float]] = (6.4, 4.4)

    def plot(self, ax: MaybeAxes = None) -> Self:
        """Draw onto ``ax``, or onto new axes; they and their figure are `ax_` and `figure_` then.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.
        """
        ax = axes_for(ax, self._purpose, self._inches)
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw(self, ax: Axes) -> None:
        raise NotImplementedError


def axes_for(ax: MaybeAxes, purpose: str, inches: tuple[float, float] = Picture._inches) -> Axes:
    """The caller's axes, or those of a new figure."""
    if ax is not None:
        return ax
    return require("matplotlib.pyplot", purpose).subplots(figsize=inches, layout="constrained")[1]


def panels_for(axes: Panels, what: str, shape: tuple[int, int], inches: tuple[float, float]) -> np.ndarray:
    """The caller's axes for several panels, as many as the shape has, or those of a new figure; in a list."""
    if axes is None:
        axes = require("matplotlib.pyplot", f"drawing {what}").subplots(*shape, figsize=inches, layout="constrained")[1]
    axes = np.asarray(axes).ravel()
    if len(axes) != math.prod(shape):
        raise ValueError(f"{what} is drawn into {math.prod(shape)} axes, but {len(axes)} were given")
    return axes


def frame(purpose: str, columns: Mapping[Any, object], index: MaybeArray = None) -> DataFrame:
    """A pandas DataFrame."""
    return require("pandas", purpose).DataFrame(columns, index=index)


def colours(n: int) -> list[Any]:
    """n colours; of many, neighbours in the list are unlike each other."""
    if n <= len(COLOURS):
        return list(COLOURS[:n])
    if n <= 20:
        name = "tab10" if n <= 10 else "tab20"
        return list(require("matplotlib", "drawing classes").colormaps[name].colors[:n])
    golden = (math.sqrt(5) - 1) / 2  # steps by this part of the circle come nowhere near an earlier hue for long
    return [colorsys.hls_to_rgb(k * golden % 1, (0.35, 0.5, 0.65)[k % 3], 0.7) for k in range(n)]


def ink(ax: Axes) -> Any:
    """The colour of lines and points on empty ground: black, or white in a dark style."""
    return ax.title.get_color()


def literal(text: str) -> str:
    """Text that matplotlib shows as it is: neither a formula, nor left out of a legend for its underscore."""
    return " " * text.startswith("_") + text.replace("$", r"\$")


def short(name: object, most: int = 32) -> str:
    """A name, shown as it is, that does not take the room of the picture; its middle is left out."""
    text = str(name)
    if len(text) <= most:
        return literal(text)
    head = most // 2
    return literal(f"{text[:head].rstrip()}…{text[head + 1 - most :].lstrip()}")


def wrapped(text: str, ax: Axes, points: float) -> str:
    """Text in lines that are as wide as the axes, for a font of this size."""
    # A character of matplotlib's default font has a mean width of 0.56 of the font's size.
    return textwrap.fill(text, max(int(_width(ax) * 72 / (0.56 * points)), 12))


def legend(ax: Axes, **options: object) -> Any:
    """A legend that is smaller in a narrow picture, and for which axes make no room."""
    # In axes below 2.6 inches three lines in small print would hide a third of the picture.
    made = ax.legend(fontsize="small" if _width(ax) > 2.6 else "xx-small", **options)
    made.set_in_layout(False)
    return made


def _width(ax: Axes) -> float:
    """In inches."""
    return float(ax.get_position().width * ax.figure.get_figwidth())


def machine_and_rows(model: Any, X: Any) -> tuple[Any, Any]:
    """The machine inside a model, and X as it sees it."""
    asked = ask(model)
    return asked.machine, asked.rows(X)


def told(cell: Any) -> str:
    """A cell of a table in a few characters."""
    if isinstance(cell, np.datetime64 | datetime.datetime):
        return str(np.datetime64(cell).astype("datetime64[s]")).removesuffix("T00:00:00").replace("T", " ")
    if isinstance(cell, bool | np.bool_ | str) or cell is None:
        return "missing" if cell is None else str(cell)
    return f"{cell:.4g}" if isinstance(cell, float | int | np.number) else str(cell)


def expect_room(axis: Axis) -> None:
    """Raise ValueError where a column has more categories than fit on an axis."""
    if len(axis.levels) > MOST_LEVELS:
        raise ValueError(
            f"the column {axis.name!r} has {len(axis.levels)} categories, and an axis has room for {MOST_LEVELS}; "
            "choose other columns"
        )


def ticks_of(axis: Axis, side: Any) -> None:
    """Give one side of a picture (`ax.xaxis` or `ax.yaxis`) the dates or categories of a column."""
    if axis.kind == "date":
        dates = require("matplotlib.dates", "drawing dates")
        side.set_major_locator(found := dates.AutoDateLocator())
        side.set_major_formatter(dates.ConciseDateFormatter(found))
    elif axis.kind == "category":
        expect_room(axis)
        side.set_ticks(range(len(axis.levels)), [short(told(one), 20) for one in axis.levels])
        if side.axis_name == "x" and sum(min(len(told(one)), 20) for one in axis.levels) > 60:
            side.set_tick_params(rotation=90)


def rings(machine: Any, X: Any) -> tuple[Indices | None, Indices | None]:
    """Rows of X, as the machine sees them, that are free and bounded support vectors; None where it has none."""
    vectors = getattr(machine, "support_vectors_", None)
    if vectors is None or vectors.shape[1:] != np.shape(X)[1:]:
        return None, None
    free = dict(zip((row.tobytes() for row in _dense(vectors)), _free(machine).tolist(), strict=True))
    kinds = [free.get(row.tobytes()) for row in _dense(X)]
    return np.flatnonzero([kind is True for kind in kinds]), np.flatnonzero([kind is False for kind in kinds])


def _dense(rows: Any) -> Floats:
    return np.ascontiguousarray(rows.toarray() if is_sparse(rows) else rows, dtype=np.float64) + 0.0  # no −0


def _free(machine: Any) -> np.ndarray:
    """Which support vectors are inside their box in the machine of some pair."""
    free = free_vectors(machine)
    if free is not None:
        return np.asarray(free)
    size = np.abs(machine.dual_coef_)
    box = np.full(size.shape[1], size.max(initial=0.0))  # LIBSVM's files do not say C; the largest is at it
    if hasattr(machine, "certificate_"):  # a joint machine
        box = np.repeat(machine.C * np.asarray(machine.class_weight_), machine.n_support_)
    return np.asarray(((size > 0) & (size < box * (1 - 1e-9))).any(axis=0))
