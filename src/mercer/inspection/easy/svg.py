"""Pictures of a report as SVG: curves, clouds of points and swarms, in the colours of the page around them.

A picture is text, and needs neither a program nor the network. Its colours are CSS classes, so that it follows the page
into dark mode and onto paper. All text is escaped.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mercer.runtime.control_characters import escape_controls
from mercer.samples.arrays import Flags, Floats
from mercer.tables.units import TIME, format_quantity

Label = Callable[[float], str]  # a number as the text of a tick
_LOW, _MIDDLE, _HIGH = (47, 111, 208), (142, 79, 168), (224, 67, 58)  # colours of small, middling and large values
_STRIP = 400.0, 34.0  # width and height of one row of a swarm
_CLOCK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)  # seconds


def escape(text: str) -> str:
    """Escape a text for HTML and SVG; control characters are written out."""
    return html.escape(escape_controls(text))


def quantity(value: float, unit: str = "") -> str:
    """Write a number with its unit for HTML: with a minus sign, and without a line break before the unit."""
    return format_quantity(value, unit).replace("-", "−").replace(" ", "\N{NO-BREAK SPACE}")


def tick_places(low: float, high: float, max_ticks: int = 5, unit: str = "") -> list[float]:
    """Return at most `max_ticks` round numbers from low to high.

    They are multiples of 1, 2 or 5 times a power of ten, or of seconds, minutes and hours if the unit is a time.
    """
    if not (math.isfinite(low) and math.isfinite(high) and high > low):
        return [low] if math.isfinite(low) else []
    least = (high - low) / max_ticks
    step = 10.0 ** math.floor(math.log10(least))
    step *= next(factor for factor in (1, 2, 5, 10, 20) if least <= step * factor or factor == 20)
    if unit == TIME:
        step = next((clock for clock in _CLOCK_STEPS if least <= clock), 86400.0 * math.ceil(least / 86400.0))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


@dataclass
class Plot:
    """Axes with round ticks and the marks drawn between them; `svg` returns the picture."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    label: str  # read aloud in place of the picture
    width: float = 340.0
    height: float = 220.0
    left: float = 52.0
    marks: list[str] = field(default_factory=list)

    _top, _right, _bottom = 10.0, 12.0, 24.0

    def x(self, value: float) -> float:
        """Horizontal place of a value."""
        return self.left + (self.width - self.left - self._right) * _share(value, self.x_range)

    def y(self, value: float) -> float:
        """Vertical place of a value."""
        return self._top + (self.height - self._top - self._bottom) * (1.0 - _share(value, self.y_range))

    def x_ticks(self, places: Iterable[float], label: Label) -> None:
        """Draw labels below the horizontal axis, as many as fit beside one another."""
        end = -math.inf
        for place in places:
            text, middle = label(place), self.x(place)
            half_width = 2 + 3.6 * len(text)
            middle = min(max(middle, half_width), self.width - half_width)
            if middle - half_width < end:
                continue
            end = middle + half_width + 8
            self.marks.append(f'<text x="{middle:.1f}" y="{self.height - 6:.1f}" class="mid">{escape(text)}</text>')

    def y_ticks(self, places: Iterable[float], label: Label) -> None:
        """Draw labels and lines for the vertical axis."""
        right = self.width - self._right
        for place in places:
            y = self.y(place)
            self.marks.append(f'<line x1="{self.left:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}" class="grid"/>')
            text = escape(label(place))
            self.marks.append(f'<text x="{self.left - 6:.1f}" y="{y + 4:.1f}" class="end">{text}</text>')

    def line(self, x: Sequence[float] | Floats, y: Sequence[float] | Floats, kind: str = "curve") -> None:
        """Draw a line through points."""
        places = " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in zip(x, y, strict=True))
        self.marks.append(f'<polyline points="{places}" class="{kind}"/>')

    def band(self, x: Sequence[float], low: Sequence[float], high: Sequence[float]) -> None:
        """Fill the area between two lines."""
        forward = [(self.x(a), self.y(b)) for a, b in zip(x, low, strict=True)]
        backward = [(self.x(a), self.y(b)) for a, b in zip(reversed(x), reversed(high), strict=True)]
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in (*forward, *backward))
        self.marks.append(f'<polygon points="{points}" class="band"/>')

    def dots(self, x: Floats, y: Floats, kind: str = "dot", size: float = 2.2) -> None:
        """Draw points; those outside the axes are left out."""
        is_inside = (x >= self.x_range[0]) & (x <= self.x_range[1]) & (y >= self.y_range[0]) & (y <= self.y_range[1])
        self.marks += [
            f'<circle cx="{self.x(a):.1f}" cy="{self.y(b):.1f}" r="{size}" class="{kind}"/>'
            for a, b in zip(x[is_inside].tolist(), y[is_inside].tolist(), strict=True)
        ]

    def rug(self, x: Floats) -> None:
        """Draw a short line on the horizontal axis for each value."""
        bottom = self.height - self._bottom
        places = np.unique(np.round([self.x(a) for a in x if self.x_range[0] <= a <= self.x_range[1]], 1))
        path = "".join(f"M{a:.1f} {bottom:.1f}v-5" for a in places.tolist())
        self.marks.append(f'<path d="{path}" class="rug"/>')

    def svg(self) -> str:
        """Return the picture."""
        body = "".join(self.marks)
        size = f'viewBox="0 0 {self.width:g} {self.height:g}"'
        return f'<svg {size} role="img" aria-label="{escape(self.label)}" class="plot">{body}</svg>'


def margin_for(labels: Iterable[str]) -> float:
    """Return a margin that is wide enough for these labels of the vertical axis."""
    return 12.0 + 6.6 * max(map(len, labels), default=0)


def _share(value: float, span: tuple[float, float]) -> float:
    low, high = span
    return (value - low) / (high - low) if high > low else 0.5


def swarm_strip(values: Floats, shades: Floats, span: tuple[float, float], label: str) -> str:
    """Draw one row of a swarm: a point for each value, coloured by `shades` from 0 to 1; NaN is grey."""
    width, height = _STRIP
    middle, zero = height / 2, 8 + (width - 16) * _share(0.0, span)
    marks = [f'<line x1="{zero:.1f}" y1="0" x2="{zero:.1f}" y2="{height:g}" class="zero"/>']
    places = 8 + (width - 16) * np.array([_share(value, span) for value in values])
    for x, dy, shade in zip(places, _offsets(places, middle - 4), shades, strict=True):
        fill = ' class="grey"' if np.isnan(shade) else f' fill="{_colour(float(shade))}"'
        marks.append(f'<circle cx="{x:.1f}" cy="{middle + dy:.1f}" r="3"{fill}/>')
    size = f'viewBox="0 0 {width:g} {height:g}"'
    return f'<svg {size} role="img" aria-label="{escape(label)}" class="strip">{"".join(marks)}</svg>'


def dot_strip(values: Sequence[float], span: tuple[float, float], label: str, kinds: Sequence[str]) -> str:
    """Draw values as points of these kinds on a line from the lower to the upper end of `span`."""
    width, height = _STRIP[0], 24.0
    line = f'<line x1="8" y1="12" x2="{width - 8:g}" y2="12" class="grid"/>'
    dots = "".join(
        f'<circle cx="{8 + (width - 16) * _share(value, span):.1f}" cy="12" r="7" class="{kind}"/>'
        for value, kind in zip(values, kinds, strict=True)
    )
    size = f'viewBox="0 0 {width:g} {height:g}"'
    return f'<svg {size} role="img" aria-label="{escape(label)}" class="strip">{line}{dots}</svg>'


def _offsets(places: Floats, span: float) -> Floats:
    """Return vertical offsets that separate points whose places are close: 0, then steps up and down in turn."""
    out = np.zeros(len(places))
    counts: dict[int, int] = {}
    for k in np.argsort(places, kind="stable"):
        bin_number = round(float(places[k]) / 4.0)
        rank = counts[bin_number] = counts.get(bin_number, -1) + 1
        out[k] = math.ceil(rank / 2) * (1 if rank % 2 else -1)
    return out * min(4.0, span / max(1.0, float(np.abs(out).max(initial=0.0))))


def _colour(share: float) -> str:
    """Colour of a share between 0, blue, and 1, red; all of them are visible on white and on black."""
    start, end, part = (_LOW, _MIDDLE, 2 * share) if share < 0.5 else (_MIDDLE, _HIGH, 2 * share - 1)
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in zip(start, end, strict=True))


def truth_plot(truth: Floats, answers: Floats, half_width: float, outlying: Flags, tick: Label, unit: str) -> Plot:
    """Draw true numbers against predicted ones, with the diagonal, and a band of ± `half_width` around it.

    The axes leave outlying targets out.
    """
    is_inside = ~outlying
    low = float(min(truth[is_inside].min(), answers[is_inside].min()))
    high = float(max(truth[is_inside].max(), answers[is_inside].max()))
    margin = 0.03 * (high - low) or 1.0
    span = low - margin, high + margin
    ticks = tick_places(*span, unit=unit)
    left = margin_for(map(tick, ticks))
    plot = Plot(span, span, "true against predicted numbers of held-out rows", 400.0, 330.0, left)
    plot.y_ticks(ticks, tick)
    plot.x_ticks(ticks, tick)
    if math.isfinite(half_width):
        ends = np.linspace(*span, 60)
        lower, upper = (np.clip(ends + sign * half_width, *span).tolist() for sign in (-1, 1))
        plot.band(ends.tolist(), lower, upper)
    plot.line(span, span, "ideal")
    plot.dots(answers, truth, size=2.0 if len(truth) > 150 else 2.8)
    return plot


def reliability_plot(probability: Floats, observed_share: Floats, low: Floats, high: Floats) -> Plot:
    """Draw how often something happened, with an interval, against how probable it was said to be."""
    ticks = [0.0, 0.25, 0.5, 0.75, 1.0]
    left = margin_for(map(percent, ticks))
    plot = Plot((0.0, 1.0), (0.0, 1.0), "observed shares against predicted probabilities", 400.0, 330.0, left)
    plot.y_ticks(ticks, percent)
    plot.x_ticks(ticks, percent)
    plot.line((0.0, 1.0), (0.0, 1.0), "ideal")
    for p, least, most in zip(probability.tolist(), low.tolist(), high.tolist(), strict=True):
        plot.line((p, p), (least, most), "whisker")
    plot.line(probability, observed_share)
    plot.dots(probability, observed_share, size=3.6)
    return plot


def percent(value: float) -> str:
    """Write a share as a whole percentage."""
    return f"{value:.0%}"
