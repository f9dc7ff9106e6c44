"""Where a picture is drawn and what its numbers come as: axes of matplotlib, a frame of pandas."""

from __future__ import annotations

from typing import Any

from mercer.optional import require

# One for each class, as far as there are that many; distinguishable also by those who see fewer colours.
COLOURS = ("#3b6fb6", "#d1603d", "#4f9d69", "#8f6bb0", "#c9a227", "#5aa5a5", "#a05070", "#7a7a7a")


def axes_for(ax: Any, purpose: str, size: tuple[float, float] = (6.4, 4.4)) -> Any:
    """The caller's axes, or those of a new figure."""
    if ax is not None:
        return ax
    return require("matplotlib.pyplot", purpose).subplots(figsize=size, layout="constrained")[1]


def frame(purpose: str, columns: dict[Any, Any], index: Any = None) -> Any:
    """A pandas DataFrame."""
    return require("pandas", purpose).DataFrame(columns, index=index)


def colours(n: int) -> list[Any]:
    """n colours."""
    if n <= len(COLOURS):
        return list(COLOURS[:n])
    name = "tab10" if n <= 10 else "tab20" if n <= 20 else "gist_rainbow"
    return list(require("matplotlib", "drawing classes").colormaps[name].resampled(n)(range(n)))
