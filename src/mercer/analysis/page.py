"""Names and what is said of each, as lines of at most 100 columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable

Line = tuple[str, str] | None  # a name and what is said of it; None is an empty line
WIDTH, _INDENT = 100, 15


def page(facts: Iterable[Line]) -> list[str]:
    """The lines; what does not fit goes on under itself."""
    lines: list[str] = []
    for fact in facts:
        if fact is None:
            lines += [""] if lines and lines[-1] else []
            continue
        name, text = fact
        inner = len(text) - len(text.lstrip())
        step = " " * (_INDENT + inner + _hanging(text.lstrip()))
        wrapped = textwrap.wrap(
            text,
            WIDTH,
            initial_indent=f"  {name:<{_INDENT - 2}}",
            subsequent_indent=step,
            break_long_words=False,
            break_on_hyphens=False,
            replace_whitespace=False,
            drop_whitespace=True,
        )
        lines += [line.rstrip() for line in wrapped] or [f"  {name}"]
    return lines


def _hanging(text: str) -> int:
    """Where the second part of a text begins that has two of them, as a column's name and what became of it."""
    first, gap, rest = text.partition("  ")
    return len(first) + len(gap) + len(rest) - len(rest.lstrip()) if gap and len(first) <= 40 else 0


def quantity(value: float, unit: str = "") -> str:
    """A number with four digits as people write it, 71,310 € or 0.04213, and not 7.131e+04."""
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if 1e15 > size >= 1e3:
        digits = 3 - math.floor(math.log10(size))
        text = f"{round(value, digits):,.0f}"
    else:
        text = f"{value:.4g}"
    return f"{text} {unit}".rstrip() if unit not in ("$", "£", "¥", "₹") else f"{unit}{text}"
