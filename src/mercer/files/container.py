"""The bytes of a ``.mercer`` file: a JSON header and raw little-endian arrays with checksums, and no code.

    offset 0   8 bytes   the magic number, \\x89MERCER\\n
           8   uint32    format version
          12   uint64    length of the header in bytes
          20   32 bytes  SHA-256 of the header
          52   header    JSON, {"content": ..., "arrays": [{name, dtype, shape, order, offset, sha256}, ...]}
               arrays    as listed, each at the next multiple of 64, zeros between, nothing after the last

There is exactly one valid layout for a header, so every byte of a file is covered by a checksum or known.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import struct
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.errors import ModelFormatError
from mercer.files.atomic_write import replacing

VERSION: Final = 1
MAGIC: Final = b"\x89MERCER\n"  # the high bit and the newline show transfers that are not 8-bit clean, as in PNG
ALIGNMENT: Final = 64
DTYPES: Final = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8")
_PREAMBLE: Final = struct.Struct("<8sIQ32s")
_CHUNK: Final = 1 << 20

Array = NDArray[Any]


@dataclass(frozen=True)
class _Entry:
    """Where one array lies, checked against the file's size."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: str
    offset: int
    nbytes: int
    sha256: str


def write_container(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write ``header`` (plain JSON values, finite numbers) and ``arrays`` to ``path``, atomically."""
    entries: list[dict[str, Any]] = []
    buffers: list[memoryview] = []
    for name, array in arrays.items():
        dtype = array.dtype.newbyteorder("<")
        if dtype.str not in DTYPES:
            raise TypeError(f"array {name!r} has dtype {array.dtype}, which a .mercer file cannot hold")
        order = _order(array)
        flat = np.asarray(array, dtype=dtype).ravel(order=order)
        buffer = flat.view(np.uint8).data
        digest = hashlib.sha256()
        for part in _pieces(buffer):
            digest.update(part)
        entries.append(
            {
                "name": name,
                "dtype": dtype.str,
                "shape": list(array.shape),
                "order": order,
                "sha256": digest.hexdigest(),
            }
        )
        buffers.append(buffer)
    text = _lay_out(header, entries, [len(buffer) for buffer in buffers])
    with replacing(path) as file:
        file.write(_PREAMBLE.pack(MAGIC, VERSION, len(text), hashlib.sha256(text).digest()))
        file.write(text)
        for entry, buffer in zip(entries, buffers, strict=True):
            file.write(bytes(entry["offset"] - file.tell()))
            for part in _pieces(buffer):
                file.write(part)


def _order(array: Array) -> Literal["C", "F"]:
    """Rows or columns first, as they lie in memory: a product of matrices may round otherwise in the other order."""
    by_columns = array.ndim > 1 and not array.flags.c_contiguous and abs(array.strides[0]) < abs(array.strides[-1])
    return "F" if by_columns else "C"


def _pieces(buffer: memoryview) -> Iterator[memoryview]:
    """The buffer in pieces, between which Ctrl-C is answered."""
    return (buffer[start : start + _CHUNK] for start in range(0, len(buffer), _CHUNK))


def _lay_out(header: Mapping[str, Any], entries: list[dict[str, Any]], sizes: list[int]) -> bytes:
    """Give each entry its offset and return the header's bytes, whose length those offsets depend on."""
    start = 0
    while True:
        end = start
        for entry, size in zip(entries, sizes, strict=True):
            entry["offset"] = _aligned(end)
            end = entry["offset"] + size
        document = {"content": header, "arrays": entries}
        text = json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")
        # Offsets only gain digits when the header grows, so this ends after two or three rounds.
        if _PREAMBLE.size + len(text) == start:
            return text
        start = _PREAMBLE.size + len(text)


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def read_container(path: str | os.PathLike[str], mmap: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read what `write_container` wrote; the arrays are read-only, and with ``mmap`` views of the file.

    Raises
    ------
    ModelFormatError
        If any byte is not what it must be. Nothing is allocated for an array before the header and the place
        of every array have been checked, so a hostile file costs no more memory than its own size.
    OSError
        If ``path`` is missing, unreadable, or not a regular file.
    """
    with _open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        where = repr(os.fspath(path))
        content, entries = _read_header(file, size, where)
        arrays = {}
        for entry in entries:
            _expect_zeros(file, entry.offset - file.tell(), where)
            arrays[entry.name] = _read_array(file, entry, where, mmap)
    return content, arrays


def _open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    # O_NONBLOCK: opening a pipe nobody writes to must fail, not wait.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(f"{os.fspath(path)!r} is a directory, not a model file")
        raise OSError(f"{os.fspath(path)!r} is a device, pipe or socket, not a model file")
    return os.fdopen(descriptor, "rb")


def _read_header(file: BinaryIO, size: int, where: str) -> tuple[dict[str, Any], list[_Entry]]:
    preamble = file.read(_PREAMBLE.size)
    if preamble[: len(MAGIC)] != MAGIC[: len(preamble)] or not preamble:
        raise ModelFormatError(
            f"{where} is not a mercer model file: it does not begin with {MAGIC!r}. Models of LIBSVM, LIBLINEAR and "
            "SVMlight become one by `mercer convert`; a pickle is read by pickle or joblib, if you trust it"
        )
    if len(preamble) < _PREAMBLE.size:
        raise ModelFormatError(f"{where} is truncated: {size} bytes are too few for the {_PREAMBLE.size} at its start")
    _, version, length, digest = _PREAMBLE.unpack(preamble)
    if version != VERSION:
        advice = "update mercer to read it" if version > VERSION else "it is damaged"
        raise ModelFormatError(f"{where} has format version {version}; this mercer reads version {VERSION}: {advice}")
    if length > size - _PREAMBLE.size:
        raise ModelFormatError(
            f"{where} is truncated or damaged: its header has {length} bytes from byte {_PREAMBLE.size}, "
            f"but the file has {size} bytes in all"
        )
    text = file.read(length)
    if hashlib.sha256(text).digest() != digest:
        raise ModelFormatError(f"{where} is damaged: its header's checksum does not match")
    header = _parse(text, where)
    if header.keys() != {"content", "arrays"}:
        raise ModelFormatError(f"{where}: the header must hold 'content' and 'arrays', not {sorted(header)}")
    content, listed = header["content"], header["arrays"]
    if not isinstance(content, dict) or not isinstance(listed, list):
        raise ModelFormatError(f"{where}: the header's 'content' must be an object and its 'arrays' a list")
    entries: dict[str, _Entry] = {}
    end = _PREAMBLE.size + length
    for number, item in enumerate(listed):
        entry = _check_entry(item, f"{where}: array {number}")
        if entry.name in entries:
            raise ModelFormatError(f"{where}: two arrays are named {entry.name!r}")
        if entry.offset != _aligned(end):
            raise ModelFormatError(
                f"{where}: array {entry.name!r} is said to begin at byte {entry.offset}, "
                f"but what comes before it puts it at byte {_aligned(end)}"
            )
        end = entry.offset + entry.nbytes
        if end > size:
            raise ModelFormatError(
                f"{where} is truncated or damaged: array {entry.name!r} ends at byte {end}, "
                f"but the file has {size} bytes"
            )
        entries[entry.name] = entry
    if end != size:
        raise ModelFormatError(f"{where}: the model ends at byte {end}, but {size - end} bytes follow it")
    return content, list(entries.values())


def _parse(text: bytes, where: str) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a key stands twice in one object")
        return found

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    try:
        header = json.loads(text.decode(), object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"{where}: the header is not valid JSON: {error}") from None
    if not isinstance(header, dict):
        raise ModelFormatError(f"{where}: the header must be a JSON object")
    return header


def _check_entry(item: Any, where: str) -> _Entry:
    fields = {"name", "dtype", "shape", "order", "offset", "sha256"}
    if not isinstance(item, dict) or item.keys() != fields:
        raise ModelFormatError(f"{where} must be described by exactly {sorted(fields)}")
    name, dtype, shape, order = item["name"], item["dtype"], item["shape"], item["order"]
    if not isinstance(name, str):
        raise ModelFormatError(f"{where}: its name must be a string")
    if dtype not in DTYPES:
        raise ModelFormatError(f"{where}, {name!r}: dtype {dtype!r} is none of {', '.join(DTYPES)}")
    if order not in ("C", "F"):
        raise ModelFormatError(f"{where}, {name!r}: order {order!r} is neither 'C' nor 'F'")
    if not isinstance(shape, list) or len(shape) > 8 or not all(_is_count(length) for length in shape):
        raise ModelFormatError(f"{where}, {name!r}: shape {shape!r} is not a list of at most 8 counts")
    itemsize = np.dtype(dtype).itemsize
    # NumPy multiplies the lengths that are not zero even if the array is empty; Python's integers are exact.
    if math.prod(max(length, 1) for length in shape) * itemsize > sys.maxsize:
        raise ModelFormatError(f"{where}, {name!r}: shape {shape!r} is larger than any memory")
    if not _is_count(item["offset"]):
        raise ModelFormatError(f"{where}, {name!r}: offset {item['offset']!r} is not a count")
    if not isinstance(item["sha256"], str):
        raise ModelFormatError(f"{where}, {name!r}: its checksum must be a string")
    nbytes = math.prod(shape) * itemsize
    return _Entry(name, np.dtype(dtype), tuple(shape), order, item["offset"], nbytes, item["sha256"])


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0  # bool is an int to isinstance, and no count


def _expect_zeros(file: BinaryIO, count: int, where: str) -> None:
    position = file.tell()
    if file.read(count) != bytes(count):
        raise ModelFormatError(f"{where} is damaged: the {count} bytes from byte {position} must be zero")


def _read_array(file: BinaryIO, entry: _Entry, where: str, mmap: bool) -> Array:
    mapped = mmap and entry.nbytes > 0
    flat: Array = np.empty(0 if mapped else entry.nbytes, dtype=np.uint8)
    if mapped:
        flat = np.asarray(np.memmap(file, dtype=np.uint8, mode="r", offset=entry.offset, shape=(entry.nbytes,)))
        file.seek(entry.offset + entry.nbytes)
    digest = hashlib.sha256()
    for part in _pieces(flat.data):
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
