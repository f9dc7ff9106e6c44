"""Interactive page: an SVM in the browser that is solved and certified by mercer's core while you drag its points.

`page()` returns one self-contained HTML file that makes no requests and works from disk. Its sources are in ``web``;
``core.wasm`` is the C++ core, which page/build.py compiles.
"""

from __future__ import annotations

import base64
import html
import re
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

WEB = Path(__file__).parent / "web"
_HOME = "mercer's documentation"
# Each script may use those before it.
SCRIPTS = (
    "core.js", "formats.js", "sets.js", "state.js", "draw.js", "diagrams.js", "solve.js", "panels.js",
    "surroundings.js", "app.js",
)  # fmt: skip


def link(
    task: str, points: Iterable[tuple[float, float, int]], names: Sequence[str] | None = None, **numbers: float
) -> str:
    """Return the fragment of an address with which the page shows these points.

    Parameters
    ----------
    task : {"classify", "regress", "novelty"}
        Kind of problem.
    points : iterable of (float, float, int)
        x, y and class (0 to 3) of each point; for a regression y is the target.
    names : sequence of two str, optional
        Names of the axes.
    **numbers
        Values of the sliders: C, gamma, degree, coef0, epsilon, nu.

    Returns
    -------
    str
        Fragment that begins with "#".

    Examples
    --------
    >>> from mercer.notes import toy
    >>> toy.link("classify", [(0.5, -1.0, 0), (2.0, 1.0, 1)], C=10)
    '#task=classify&C=10&points=0.5,-1,0;2,1,1'
    """
    settings = "".join(f"&{name}={value:g}" for name, value in numbers.items())
    if names is not None:
        settings += "".join(f"&{axis}={quote(name, safe='')}" for axis, name in zip("xy", names, strict=True))
    return f"#task={task}{settings}&points=" + ";".join(f"{x:.6g},{y:.6g},{c}" for x, y, c in points)


def page(start: str = "", home: str = "") -> str:
    """Return the page as the text of one HTML file.

    Parameters
    ----------
    start : str, default=""
        Fragment from `link` that the page shows if its address has none.
    home : str, default=""
        Address of the documentation, which the page links to: http, https or relative. Without one there is no link.

    Returns
    -------
    str
        HTML text.

    Examples
    --------
    >>> from mercer.notes import toy
    >>> toy.page().splitlines()[0]
    '<!DOCTYPE html>'
    """
    if not re.match(r"https?://|[^:]*$", home):
        raise ValueError(f"home={home!r} is neither an http address nor a relative one")
    parts = {
        "style": _read("style.css"),
        "wasm": base64.b64encode(zlib.compress((WEB / "core.wasm").read_bytes(), 9)).decode(),
        "script": "\n".join(map(_strip_imports, SCRIPTS)),
        "start": html.escape(start, quote=True),
        "home": f'<a href="{html.escape(home, quote=True)}" target="_top" title="{_HOME}">Docs</a>' if home else "",
    }
    return re.sub(r"/\*\{(\w+)\}\*/", lambda match: parts[match[1]], _read("index.html"))


def _strip_imports(name: str) -> str:
    """Return a module without its imports and exports; names are unique in all modules, which share one scope."""
    text = re.sub(r"^import\s[^;]*;\n", "", _read(name), flags=re.MULTILINE)
    return re.sub(r"^export ", "", text, flags=re.MULTILINE)


def _read(name: str) -> str:
    """Return the text of a source file of the page."""
    return (WEB / name).read_text(encoding="utf-8")
