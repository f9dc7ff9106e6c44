"""Limit on the memory that reading a file may take, in proportion to the file's size.

JSON and strings can need far more memory than their length: ``{}`` in a list is three bytes and a whole dictionary in
memory, and an array of strings gives every string the width of the longest. Therefore code that allocates more than a
few bytes because of a file's content first takes the amount from one `Budget`. The amounts are upper estimates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mercer.runtime.errors import ModelFormatError

# Bytes of memory allowed for every file, and for each byte of its header and of its arrays.
BASE_BYTES: Final = 2**26
PER_HEADER_BYTE: Final = 16
PER_ARRAY_BYTE: Final = 4

# Bytes of memory for each of these characters of JSON, which count the parsed value and the value built from it: a
# dictionary of up to five items, a list of up to four, an item of a larger dictionary, an item of a list with a number.
_COSTS: Final = {b"{": 368, b"[": 176, b":": 104, b",": 48}
_PER_STRING: Final = 56
_PIECE: Final = 1 << 20
_QUOTE: Final = ord('"')


class Budget:
    """Bytes of memory that may still be allocated while a file is read; `grant` adds more once its size is known."""

    def __init__(self) -> None:
        self.left = BASE_BYTES

    def grant(self, header_bytes: int, array_bytes: int) -> None:
        """Add the memory for a file with these numbers of bytes in header and arrays."""
        self.left += PER_HEADER_BYTE * header_bytes + PER_ARRAY_BYTE * array_bytes

    def take(self, nbytes: int, subject: str) -> None:
        """Take `nbytes` from the budget; raise ModelFormatError, with `subject` in the message, if fewer are left."""
        if nbytes > self.left:
            raise ModelFormatError(
                f"{subject:.200} would take {nbytes} bytes of memory, but only {max(self.left, 0)} are left of the "
                f"limit for a file of this size ({BASE_BYTES} bytes, {PER_HEADER_BYTE} for each byte of its header and "
                f"{PER_ARRAY_BYTE} for each byte of its arrays)"
            )
        self.left -= nbytes

    def take_json(self, text: bytes | str, subject: str) -> None:
        """Take the memory for the text, its parsed values, and the values built from them."""
        if not text.isascii():
            raise ModelFormatError(f"{subject} is not valid JSON for mercer: it contains characters that are not ASCII")
        marks = dict.fromkeys(_COSTS, 0)
        strings, letters, has_escapes = 0, 0, False
        for piece, is_in_string, escapes in _pieces(text):
            for mark in marks:
                marks[mark] += int(np.count_nonzero((piece == mark[0]) & ~is_in_string))
            strings += int(np.count_nonzero(piece == _QUOTE))
            letters += int(np.count_nonzero(is_in_string))
            has_escapes = has_escapes or escapes
        needed_bytes = sum(cost * marks[mark] for mark, cost in _COSTS.items())
        # One character beyond Latin-1, written as an escape, makes all characters of its string up to four bytes wide.
        copies = 2 if isinstance(text, bytes) else 1  # the bytes of the text, and its characters
        self.take(
            copies * len(text) + needed_bytes + strings // 2 * _PER_STRING + (4 if has_escapes else 1) * letters,
            subject,
        )


def _pieces(text: bytes | str) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.bool_], bool]]:
    """Yield pieces of the text: characters, a mask of those inside strings, and whether there are \\u escapes."""
    start, n_quotes = 0, 0
    while start < len(text):
        piece = text[start : start + _PIECE]
        content = piece.encode() if isinstance(piece, str) else piece
        if len(content) > 1 and (len(content) - len(content.rstrip(b"\\"))) % 2:
            content = content[:-1]  # keep a backslash together with the next character
        start += len(content)
        content = content.replace(rb"\\", b"__")
        has_escapes = rb"\u" in content
        characters = np.frombuffer(content.replace(rb"\"", b"__"), dtype=np.uint8)
        quotes = np.cumsum(characters == _QUOTE, dtype=np.uint8) + np.uint8(n_quotes)  # modulo 256, which keeps parity
        n_quotes = int(quotes[-1]) & 1
        yield characters, (quotes & 1).astype(np.bool_), has_escapes
