"""The page: an SVM under your hand, in the browser, solved by the library's own core and certified while you drag.

`page()` is one HTML file with everything in it: it makes no request, and works from a disk. Its parts are in ``web``;
``core.wasm`` there is the C++ core, which page/build.py compiles.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable
from pathlib import Path

WEB = Path(__file__).parent / "web"
# In the order in which they need each other.
_SCRIPTS = ("core.js", "draw.js", "formats.js", "sets.js", "app.js")


def link(task: str, points: Iterable[tuple[float, float, int]], **numbers: float) -> str:
    """The end of an address that shows these points: x, y and class of each, 0 to 3; for regression y is the target.

    Parameters
    ----------
    task : "classify", "regress" or "novelty"
    points : iterable of (float, float, int)
    **numbers
        Of the sliders: C, gamma, degree, coef0, epsilon, nu.

    Examples
    --------
    >>> from mercer.notes import toy
    >>> toy.link("classify", [(0.5, -1.0, 0), (2.0, 1.0, 1)], C=10)
    '#task=classify&C=10&points=0.5,-1,0;2,1,1'
    """
    settings = "".join(f"&{name}={value:g}" for name, value in numbers.items())
    return f"#task={task}{settings}&points=" + ";".join(f"{x:.6g},{y:.6g},{c}" for x, y, c in points)


def page(start: str = "") -> str:
    """The page as the text of one HTML file.

    Parameters
    ----------
    start : str, default=""
        What it shows if its own address says nothing: a `link`.

    Examples
    --------
    >>> from mercer.notes import toy
    >>> toy.page().splitlines()[0]
    '<!DOCTYPE html>'
    """
    parts = {
        "style": _read("style.css"),
        "wasm": base64.b64encode((WEB / "core.wasm").read_bytes()).decode(),
        "script": "\n".join(map(_as_one_script, _SCRIPTS)),
        "start": html.escape(start, quote=True),
    }
    return re.sub(r"/\*\{(\w+)\}\*/", lambda found: parts[found[1]], _read("index.html"))


def _as_one_script(name: str) -> str:
    """A module without its imports and exports: names are unique in all of them, so that they can share one scope."""
    text = re.sub(r"^import\s[^;]*;\n", "", _read(name), flags=re.MULTILINE)
    return re.sub(r"^export ", "", text, flags=re.MULTILINE)


def _read(name: str) -> str:
    return (WEB / name).read_text(encoding="utf-8")
