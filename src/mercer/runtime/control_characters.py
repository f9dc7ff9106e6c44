"""Characters that a terminal or a page obeys instead of showing, written as escapes."""

from __future__ import annotations

# All control characters but newline and tab, and those that turn the direction of writing. In labels and names of a
# file they could erase a report and paint another.
_OBEYED = {
    code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    for code in (*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    if chr(code) not in "\n\t"
}


def escape_controls(text: str) -> str:
    """``text`` with every such character as its escape, ``\\x1b`` for one."""
    return text.translate(_OBEYED)
