"""Ranges and results file of grid.py: lines such as log2c=5 log2g=-7 rate=78.8889, one for each grid cell."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

# Exponents of a grid cell; None for a parameter that is not searched.
Cell = tuple[float | None, ...]


def parse_exponents(text: str) -> list[float] | None:
    """Parse ``begin,end,step`` as the numbers from begin to end, both included; ``null`` means no search."""
    if text == "null":
        return None
    try:
        begin, end, step = (float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither begin,end,step, such as -5,15,2, nor null") from None
    if step == 0 or (end - begin) / step < 0 or abs(end - begin) / abs(step) > 10_000:
        raise argparse.ArgumentTypeError(f"{text!r}: the steps do not lead from begin to end, or are more than 10,000")
    count = int((end - begin) / step + 1e-9) + 1
    return [begin + k * step for k in range(count)]


def read_rates(path: Path, letters: str = "cg", word: str = "rate") -> dict[Cell, float]:
    """Return the scores in a results file by the exponents of their cells.

    A line has a letter of `letters` for each parameter, and the score after `word`.
    """
    pattern = re.compile(r"\s+".join([*(rf"log2{letter}=(\S+)" for letter in letters), rf"{word}=(\S+)"]))
    rates = {}
    for line in path.read_text().splitlines():
        match = pattern.fullmatch(line.strip())
        if match is None:
            raise ValueError(f"{path} is not a results file of mercer tune or grid.py: it contains the line {line!r}")
        *cell, rate = (None if part == "None" else float(part) for part in match.groups())
        if rate is not None:
            rates[tuple(cell)] = rate
    return rates


def format_line(cell: Cell, rate: float, letters: str = "cg", word: str = "rate") -> str:
    """Return the line of a results file for one cell."""
    values = ["None" if exponent is None else f"{exponent:g}" for exponent in cell]
    parts = [f"log2{letter}={value}" for letter, value in zip(letters, values, strict=True)]
    return " ".join([*parts, f"{word}={rate:g}"])
