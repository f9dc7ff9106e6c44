"""Version 1 of the bytes of a ``.mercer`` file, which is read and no longer written.

offset 0   8 bytes   the magic number, \\x89MERCER\\n
       8   uint32    format version
      12   uint64    length of the header in bytes
      20   32 bytes  SHA-256 of the header
      52   header    JSON, {"content": ..., "arrays": [{name, dtype, shape, order, offset, sha256}, ...]}
           arrays    as listed, each at the next multiple of 64, zeros between, nothing after the last
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any, BinaryIO, Final

from mercer.errors import ModelFormatError
from mercer.files.stored_array import Entry, checked_entry, parsed_json

MAGIC_1: Final = b"\x89MERCER\n"  # the high bit and the newline show transfers that are not 8-bit clean, as in PNG
_ALIGNMENT: Final = 64
_PREAMBLE: Final = struct.Struct("<8sIQ32s")
_FIELDS: Final = {"name", "dtype", "shape", "order", "offset", "sha256"}


def read_header_1(file: BinaryIO, size: int, where: str) -> tuple[dict[str, Any], list[Entry]]:
    """The content and the arrays' places, with the file at the end of the header."""
    preamble = file.read(_PREAMBLE.size)
    if len(preamble) < _PREAMBLE.size:
        raise ModelFormatError(f"{where} is truncated: {size} bytes are too few for the {_PREAMBLE.size} at its start")
    _, version, length, digest = _PREAMBLE.unpack(preamble)
    if version != 1:
        raise ModelFormatError(f"{where} has version {version} behind the beginning of version 1: it is damaged")
    if length > size - _PREAMBLE.size:
        raise ModelFormatError(
            f"{where} is truncated or damaged: its header has {length} bytes from byte {_PREAMBLE.size}, "
            f"but the file has {size} bytes in all"
        )
    text = file.read(length)
    if hashlib.sha256(text).digest() != digest:
        raise ModelFormatError(f"{where} is damaged: its header's checksum does not match")
    header = parsed_json(text, f"{where}: the header")
    if header.keys() != {"content", "arrays"}:
        raise ModelFormatError(f"{where}: the header must hold 'content' and 'arrays', not {sorted(header)}")
    content, listed = header["content"], header["arrays"]
    if not isinstance(content, dict) or not isinstance(listed, list):
        raise ModelFormatError(f"{where}: the header's 'content' must be an object and its 'arrays' a list")
    entries: dict[str, Entry] = {}
    end = _PREAMBLE.size + length
    for number, item in enumerate(listed):
        place = f"{where}: array {number}"
        if not isinstance(item, dict) or item.keys() != _FIELDS:
            raise ModelFormatError(f"{place} must be described by exactly {sorted(_FIELDS)}")
        entry = checked_entry(place, **item)
        if entry.name in entries:
            raise ModelFormatError(f"{where}: two arrays are named {entry.name!r}")
        if entry.offset != _aligned(end):
            raise ModelFormatError(
                f"{where}: array {entry.name!r} is said to begin at byte {entry.offset}, "
                f"but what comes before it puts it at byte {_aligned(end)}"
            )
        end = entry.offset + entry.nbytes
        entries[entry.name] = entry
    return content, list(entries.values())


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
