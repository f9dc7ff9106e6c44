"""Escaping of control characters, which a terminal or a web page would obey instead of showing."""

from __future__ import annotations

# All control characters except newline and tab, and the characters that change the writing direction. In labels and
# column names of a file they could overwrite a printed report with another text.
_ESCAPES = {
    code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    for code in (*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    if chr(code) not in "\n\t"
}


def escape_controls(text: str) -> str:
    """Return the text with every control character replaced by its escape sequence, such as ``\\x1b``."""
    return text.translate(_ESCAPES)
