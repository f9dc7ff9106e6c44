"""The memory that reading a file may take: it follows from the file's size, and every allocation asks for it first.

JSON and strings can ask for far more than they are long: ``{}`` is three bytes of a list and a dictionary in memory,
and an array of strings gives every string the width of the longest. So whoever allocates more than a few bytes because
of what a file says takes the amount out of one `Budget`, before allocating. What is asked for is an upper estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mercer.runtime.errors import ModelFormatError

# Bytes of memory that every file may take, and those for each byte of its header and of its arrays.
BASE: Final = 2**26
PER_HEADER_BYTE: Final = 16
PER_ARRAY_BYTE: Final = 4

# Bytes for what JSON writes with each of these characters, once as it is parsed and once as values are made of it: a
# dictionary of up to five items, a list of up to four, an item of a larger dictionary, an item of a list with a number.
_COSTS: Final = {b"{": 368, b"[": 176, b":": 104, b",": 48}
_PER_STRING: Final = 56
_PIECE: Final = 1 << 20
_QUOTE: Final = ord('"')


class Budget:
    """Memory that may still be allocated while one file is read; none before the file's size was told."""

    def __init__(self) -> None:
        self.left = BASE

    def grant(self, header_bytes: int, array_bytes: int) -> None:
        """Add what a file with so many bytes of each kind may take."""
        self.left += PER_HEADER_BYTE * header_bytes + PER_ARRAY_BYTE * array_bytes

    def take(self, nbytes: int, what: str) -> None:
        """Raise ModelFormatError unless so many bytes are left; they are then spent."""
        if nbytes > self.left:
            raise ModelFormatError(
                f"{what:.200} would take {nbytes} bytes of memory, and {max(self.left, 0)} are left of what a file of "
                f"this size may take ({BASE} bytes, {PER_HEADER_BYTE} for each byte of its header and {PER_ARRAY_BYTE} "
                "for each byte of its arrays)"
            )
        self.left -= nbytes

    def take_json(self, text: bytes | str, what: str) -> None:
        """Take what the text, its values as they are parsed, and the values made of them may allocate."""
        if not text.isascii():
            raise ModelFormatError(f"{what} is not valid JSON of mercer's: it holds characters that are not ASCII")
        marks = dict.fromkeys(_COSTS, 0)
        strings, letters, wide = 0, 0, False
        for piece, inside, escapes in _pieces(text):
            for mark in marks:
                marks[mark] += int(np.count_nonzero((piece == mark[0]) & ~inside))
            strings += int(np.count_nonzero(piece == _QUOTE))
            letters += int(np.count_nonzero(inside))
            wide = wide or escapes
        needed = sum(cost * marks[mark] for mark, cost in _COSTS.items())
        # One character beyond Latin, which is written as an escape, gives all of its string up to four bytes each.
        copies = 2 if isinstance(text, bytes) else 1  # of the text: its bytes and its characters
        self.take(copies * len(text) + needed + strings // 2 * _PER_STRING + (4 if wide else 1) * letters, what)


def _pieces(text: bytes | str) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.bool_], bool]]:
    """The text in pieces: its characters, whether each is inside a string, and whether there are escapes by number."""
    start, within = 0, 0
    while start < len(text):
        piece = text[start : start + _PIECE]
        plain = piece.encode() if isinstance(piece, str) else piece
        if len(plain) > 1 and (len(plain) - len(plain.rstrip(b"\\"))) % 2:
            plain = plain[:-1]  # a backslash goes with what follows it
        start += len(plain)
        plain = plain.replace(rb"\\", b"__")
        escapes = rb"\u" in plain
        characters = np.frombuffer(plain.replace(rb"\"", b"__"), dtype=np.uint8)
        quotes = np.cumsum(characters == _QUOTE, dtype=np.uint8) + np.uint8(within)  # modulo 256, which keeps parity
        within = int(quotes[-1]) & 1
        yield characters, (quotes & 1).astype(np.bool_), escapes
