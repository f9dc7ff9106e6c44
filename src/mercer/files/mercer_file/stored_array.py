"""An array in a ``.mercer`` file: what the header says of it, checked, and its bytes, against their checksum."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from mercer.errors import ModelFormatError

DTYPES: Final = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8")
_CHUNK: Final = 1 << 20

Array = NDArray[Any]


@dataclass(frozen=True)
class Entry:
    """Where one array lies; the reader of the header has checked it against the file's size."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: str
    offset: int
    nbytes: int
    sha256: str


def checked_entry(where: str, name: str, dtype: str, shape: Any, order: Any, offset: int, sha256: Any) -> Entry:
    """What a header says of an array, or ModelFormatError."""
    if order not in ("C", "F"):
        raise ModelFormatError(f"{where}: order {order!r} is neither 'C' nor 'F'")
    if not isinstance(shape, list) or len(shape) > 8 or not all(is_count(length) for length in shape):
        raise ModelFormatError(f"{where}: shape {shape!r} is not a list of at most 8 counts")
    itemsize = np.dtype(dtype).itemsize
    # NumPy multiplies the lengths that are not zero even if the array is empty; Python's integers are exact.
    if math.prod(max(length, 1) for length in shape) * itemsize > sys.maxsize:
        raise ModelFormatError(f"{where}: shape {shape!r} is larger than any memory")
    if not isinstance(sha256, str):
        raise ModelFormatError(f"{where}: its checksum must be a string")
    return Entry(name, np.dtype(dtype), tuple(shape), order, offset, math.prod(shape) * itemsize, sha256)


def is_count(value: Any) -> bool:
    """Whether it is a whole number from 0 on."""
    return type(value) is int and value >= 0  # bool is an int to isinstance, and no count


def parsed_json(text: bytes | str, where: str) -> dict[str, Any]:
    """A JSON object, in which no key stands twice."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a key stands twice in one object")
        return found

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    try:
        plain = text.decode() if isinstance(text, bytes) else text
        value = json.loads(plain, object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"{where} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ModelFormatError(f"{where} must be a JSON object")
    return value


def pieces(buffer: memoryview) -> Iterator[memoryview]:
    """The buffer in pieces, between which Ctrl-C is answered."""
    return (buffer[start : start + _CHUNK] for start in range(0, len(buffer), _CHUNK))


def digest_of(buffer: memoryview) -> str:
    """The SHA-256 of a buffer, in hexadecimal."""
    digest = hashlib.sha256()
    for part in pieces(buffer):
        digest.update(part)
    return digest.hexdigest()


def read_array(file: BinaryIO, entry: Entry, where: str, mmap: bool) -> Array:
    """The array at the file's position, read-only; with ``mmap`` a view of the file."""
    mapped = mmap and entry.nbytes > 0
    flat: Array = np.empty(0 if mapped else entry.nbytes, dtype=np.uint8)
    if mapped:
        flat = np.asarray(np.memmap(file, dtype=np.uint8, mode="r", offset=entry.offset, shape=(entry.nbytes,)))
        file.seek(entry.offset + entry.nbytes)
    digest = hashlib.sha256()
    for part in pieces(flat.data):
        if not mapped and file.readinto(part) != len(part):  # type: ignore[attr-defined]  # typeshed's BinaryIO omits readinto
            raise ModelFormatError(f"{where} was truncated while it was read, inside array {entry.name!r}")
        digest.update(part)
    if digest.hexdigest() != entry.sha256:
        raise ModelFormatError(
            f"{where} is damaged: array {entry.name!r}, {entry.nbytes} bytes from byte {entry.offset}, "
            "does not match its checksum"
        )
    if entry.dtype == np.bool_ and entry.nbytes and flat.max() > 1:
        raise ModelFormatError(f"{where}: array {entry.name!r} is boolean but holds bytes other than 0 and 1")
    array: Array = flat.view(entry.dtype).reshape(entry.shape, order="F" if entry.order == "F" else "C")
    array = array.astype(entry.dtype.newbyteorder("="), copy=False)
    array.flags.writeable = False
    return array
