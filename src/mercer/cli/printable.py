"""Text as far as the terminal can show it: some consoles know no Greek."""

from __future__ import annotations

import sys

_ASCII = str.maketrans(
    {
        "γ": "gamma",
        "‖": "||",
        "×": "x",
        "·": "-",
        "−": "-",
        "≤": "<=",
        "●": "x",
        "○": "o",
        "→": "->",
        "…": "...",
        "½": "1/2",
        "²": "^2",
    }
)


def printable(text: str) -> str:
    """``text``, spelt out where standard output cannot encode it."""
    encoding = sys.stdout.encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    return text
