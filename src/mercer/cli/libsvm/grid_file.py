"""grid.py's ranges and its file of results: log2c=5 log2g=-7 rate=78.8889, one line for each cell."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

# The exponents of a cell; None where a parameter is not searched.
Cell = tuple[float | None, ...]


def exponents(text: str) -> list[float] | None:
    """``begin,end,step`` as the numbers from begin to end, both included; ``null`` leaves the parameter as it is."""
    if text == "null":
        return None
    try:
        begin, end, step = (float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not begin,end,step, such as -5,15,2, nor null") from None
    if step == 0 or (end - begin) / step < 0 or abs(end - begin) / abs(step) > 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} does not lead from its begin to its end in at most 10,000 steps")
    count = int((end - begin) / step + 1e-9) + 1
    return [begin + k * step for k in range(count)]


def read_rates(path: Path, letters: str = "cg", word: str = "rate") -> dict[Cell, float]:
    """The cells that a file of results holds, by their exponents; `letters` are those of the parameters."""
    pattern = re.compile(r"\s+".join([*(rf"log2{letter}=(\S+)" for letter in letters), rf"{word}=(\S+)"]))
    found = {}
    for line in path.read_text().splitlines():
        match = pattern.fullmatch(line.strip())
        if match is None:
            raise ValueError(f"{path} is not a file of results of mercer tune or grid.py: it has the line {line!r}")
        *cell, rate = (None if part == "None" else float(part) for part in match.groups())
        if rate is not None:
            found[tuple(cell)] = rate
    return found


def line_of(cell: Cell, rate: float, letters: str = "cg", word: str = "rate") -> str:
    """A line of such a file."""
    told = " ".join(f"log2{letter}={_told(exponent)}" for letter, exponent in zip(letters, cell, strict=True))
    return f"{told} {word}={rate:g}"


def _told(exponent: float | None) -> str:
    return "None" if exponent is None else f"{exponent:g}"
