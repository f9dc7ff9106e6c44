"""What displays share: where they draw, in which colours and words, and their numbers as a frame of pandas."""

from __future__ import annotations

import colorsys
import math
import textwrap
from typing import Any, ClassVar, Self

import numpy as np

from mercer.optional import require

# One for each class, as far as there are that many; distinguishable also by those who see fewer colours.
COLOURS = ("#3b6fb6", "#d1603d", "#4f9d69", "#8f6bb0", "#c9a227", "#5aa5a5", "#a05070", "#7a7a7a")

# Classes whose colours a reader can still match with a legend; more are written where they are, or not told apart.
MOST_IN_LEGEND = 10
# Curves of single samples that one picture can show.
MOST_CURVES = 60
# Where a logarithmic axis draws zero: below every gap that float64 can tell from it.
SMALLEST_SHOWN = 1e-16
# Characters of a name in a legend or beside an axis: beyond, it would take the room of the picture.
_MOST_CHARACTERS = 32
# Mean width of a character of matplotlib's default font, as a share of the font's size.
_CHARACTER_WIDTH = 0.56
# Axes in which a legend of three lines in small print hides a third of the picture.
_NARROW_INCHES = 2.6
# Of hues: steps by it come nowhere near an earlier one for long.
_GOLDEN_RATIO = 0.618033988749895


class Picture:
    """A display of one picture: `_draw` draws it, and `_purpose` says what needs matplotlib."""

    ax_: Any = None
    figure_: Any = None
    _purpose: ClassVar[str]
    _inches: ClassVar[tuple[float, float]] = (6.4, 4.4)

    def plot(self, ax: Any = None) -> Self:
        """Draw onto ``ax``, or onto new axes.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; default: a new figure.
        """
        ax = axes_for(ax, self._purpose, self._inches)
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError


def axes_for(ax: Any, purpose: str, inches: tuple[float, float] = Picture._inches) -> Any:
    """The caller's axes, or those of a new figure."""
    if ax is not None:
        return ax
    return require("matplotlib.pyplot", purpose).subplots(figsize=inches, layout="constrained")[1]


def panels_for(axes: Any, what: str, shape: tuple[int, int], inches: tuple[float, float]) -> Any:
    """The caller's axes for several panels, as many as the shape has, or those of a new figure; in a list."""
    if axes is None:
        axes = require("matplotlib.pyplot", f"drawing {what}").subplots(*shape, figsize=inches, layout="constrained")[1]
    axes = np.asarray(axes).ravel()
    if len(axes) != math.prod(shape):
        raise ValueError(f"{what} is drawn into {math.prod(shape)} axes, but {len(axes)} were given")
    return axes


def frame(purpose: str, columns: dict[Any, Any], index: Any = None) -> Any:
    """A pandas DataFrame."""
    return require("pandas", purpose).DataFrame(columns, index=index)


def colours(n: int) -> list[Any]:
    """n colours; of many, neighbours in the list are unlike each other."""
    if n <= len(COLOURS):
        return list(COLOURS[:n])
    if n <= 20:
        name = "tab10" if n <= 10 else "tab20"
        return list(require("matplotlib", "drawing classes").colormaps[name].colors[:n])
    return [colorsys.hls_to_rgb(k * _GOLDEN_RATIO % 1, (0.35, 0.5, 0.65)[k % 3], 0.7) for k in range(n)]


def ink(ax: Any) -> Any:
    """The colour of lines and points on empty ground: black, or white in a dark style."""
    return ax.title.get_color()


def literal(text: str) -> str:
    """Text that matplotlib shows as it is: neither a formula, nor left out of a legend for its underscore."""
    return " " * text.startswith("_") + text.replace("$", r"\$")


def short(name: Any, most: int = _MOST_CHARACTERS) -> str:
    """A name, shown as it is, that does not take the room of the picture; its middle is left out."""
    text = str(name)
    if len(text) <= most:
        return literal(text)
    head = most // 2
    return literal(f"{text[:head].rstrip()}…{text[head + 1 - most :].lstrip()}")


def wrapped(text: str, ax: Any, points: float) -> str:
    """Text in lines that are as wide as the axes, for a font of this size."""
    return textwrap.fill(text, max(int(_width(ax) * 72 / (_CHARACTER_WIDTH * points)), 12))


def legend(ax: Any, **options: Any) -> Any:
    """A legend that is smaller in a narrow picture, and for which axes make no room."""
    made = ax.legend(fontsize="small" if _width(ax) > _NARROW_INCHES else "xx-small", **options)
    made.set_in_layout(False)
    return made


def _width(ax: Any) -> float:
    """In inches."""
    return float(ax.get_position().width * ax.figure.get_figwidth())
