"""The page: an SVM under your hand, in the browser, solved by the library's own core and certified while you drag.

`page()` is one HTML file with everything in it: it makes no request, and works from a disk. Its parts are in ``web``;
``core.wasm`` there is the C++ core, which page/build.py compiles.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path

WEB = Path(__file__).parent / "web"
# In the order in which they need each other.
_SCRIPTS = ("core.js", "draw.js", "formats.js", "sets.js", "app.js")


def page() -> str:
    """The page as the text of one HTML file.

    Examples
    --------
    >>> from mercer import toy
    >>> toy.page().splitlines()[0]
    '<!DOCTYPE html>'
    """
    parts = {
        "style": _read("style.css"),
        "wasm": base64.b64encode((WEB / "core.wasm").read_bytes()).decode(),
        "script": "\n".join(map(_as_one_script, _SCRIPTS)),
    }
    return re.sub(r"/\*\{(\w+)\}\*/", lambda found: parts[found[1]], _read("index.html"))


def _as_one_script(name: str) -> str:
    """A module without its imports and exports: names are unique in all of them, so that they can share one scope."""
    text = re.sub(r"^import\s[^;]*;\n", "", _read(name), flags=re.MULTILINE)
    return re.sub(r"^export ", "", text, flags=re.MULTILINE)


def _read(name: str) -> str:
    return (WEB / name).read_text(encoding="utf-8")
