"""What a test reads off the page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .browser import CHROMIUM, DRIVER, Browser

needs_browser = pytest.mark.skipif(
    DRIVER is None or CHROMIUM is None, reason="chromium or chromedriver is not installed"
)


def numbers(page: Browser) -> dict[str, float]:
    """The certificate as the page's table has it, to all digits."""
    found: dict[str, float] = page.run(
        "return Object.fromEntries([...document.querySelectorAll('#certificate tr')]"
        ".map((row) => [row.dataset.name, Number(row.dataset.value)]))"
    )
    return found


def state(page: Browser) -> dict[str, Any]:
    """What the link says: the points and every setting."""
    given = page.run("return Object.fromEntries(new URLSearchParams(location.hash.slice(1).replaceAll('+', '%2B')))")
    rows = [[float(value) for value in point.split(",")] for point in given.pop("points").split(";") if point]
    return {**given, "X": np.array(rows).reshape(-1, 3)[:, :2], "c": np.array(rows).reshape(-1, 3)[:, 2].astype(int)}


def at(page: Browser, x: float, y: float) -> tuple[float, float]:
    """Where a point of the usual window is on the screen."""
    box = page.element("#plane")
    return box["left"] + (x + 4) / 8 * box["width"], box["top"] + (3 - y) / 6 * box["height"]


def message(page: Browser) -> str:
    text: str = page.run("return document.getElementById('message').textContent")
    return text
