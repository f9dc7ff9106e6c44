"""Where a picture is drawn, in which colours and words, and what its numbers come as: a frame of pandas."""

from __future__ import annotations

import colorsys
import textwrap
from typing import Any

from mercer.optional import require

# One for each class, as far as there are that many; distinguishable also by those who see fewer colours.
COLOURS = ("#3b6fb6", "#d1603d", "#4f9d69", "#8f6bb0", "#c9a227", "#5aa5a5", "#a05070", "#7a7a7a")

# Classes whose colours a reader can still match with a legend; more are written where they are, or not told apart.
MOST_IN_LEGEND = 10
# Characters of a name in a legend or beside an axis: beyond, it would take the room of the picture.
_MOST_CHARACTERS = 32
# Mean width of a character of matplotlib's default font, as a share of the font's size.
_CHARACTER_WIDTH = 0.56
# Of hues: steps by it come nowhere near an earlier one for long.
_GOLDEN_RATIO = 0.618033988749895


def axes_for(ax: Any, purpose: str, size: tuple[float, float] = (6.4, 4.4)) -> Any:
    """The caller's axes, or those of a new figure."""
    if ax is not None:
        return ax
    return require("matplotlib.pyplot", purpose).subplots(figsize=size, layout="constrained")[1]


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


def short(name: Any, most: int = _MOST_CHARACTERS) -> str:
    """A name that does not take the room of the picture; its middle is left out."""
    text = str(name)
    if len(text) <= most:
        return text
    head = most // 2
    return f"{text[:head].rstrip()}…{text[head + 1 - most :].lstrip()}"


def wrapped(text: str, ax: Any, points: float) -> str:
    """Text in lines that are as wide as the axes, for a font of this size."""
    inches = ax.get_position().width * ax.figure.get_figwidth()
    return textwrap.fill(text, max(int(inches * 72 / (_CHARACTER_WIDTH * points)), 12))
