"""Container format of ``.mercer`` files: JSON and raw little-endian arrays with checksums, and no code.

It is a safetensors file, which other programs can open too:

    offset 0   uint64    length of the header in bytes
           8   header    JSON, {"__metadata__": {...}, NAME: {"dtype", "shape", "data_offsets"}, ...}, then spaces
               arrays    one after the other, nothing between them or after the last

The metadata are strings: the format, its version, the SHA-256 of the header (computed with zeros in its place), the
content, and the order and SHA-256 of each array, the last two as JSON. An array of order "F" is written as its
transpose. The header ends at a multiple of 64, and wide numbers come first, so that mapped arrays are aligned. Every
byte of a file is covered by a checksum.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.files.atomic_write import replacing
from mercer.files.mercer_file.budget import Budget
from mercer.runtime.errors import ModelFormatError

VERSION: Final = 1
_LENGTH: Final = struct.Struct("<Q")
_FORMAT: Final = b'{"__metadata__":{"format":"mercer","version":"'
_BEGINNING: Final = _FORMAT + f'{VERSION}","sha256":"'.encode()
_DIGEST_BLANK: Final = b"0" * 64
_FIELDS: Final = {"dtype", "shape", "data_offsets"}
DTYPES: Final = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8")
# Names of these types in safetensors.
_DTYPE_NAMES: Final = dict(
    zip(DTYPES, ("BOOL", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "F32", "F64"), strict=True)
)
_DTYPE_BY_NAME: Final = {name: dtype for dtype, name in _DTYPE_NAMES.items()}
HEAD: Final = _LENGTH.size + len(_FORMAT)  # number of bytes by which a .mercer file is recognised

Array = NDArray[Any]


@dataclass(frozen=True)
class _Entry:
    """Header entry of an array, checked against the file's size."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: str
    offset: int
    nbytes: int
    sha256: str


def is_container(head: bytes) -> bool:
    """Return True if a file that begins with these bytes, at least `HEAD` of them, is a .mercer file of any version."""
    return head[_LENGTH.size :].startswith(_FORMAT)


def write_container(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, Array],
    check: Callable[[dict[str, Any], Budget], object] | None = None,
) -> None:
    """Write ``header`` (plain JSON values, finite numbers) and ``arrays`` to ``path``, atomically.

    First the header is parsed as a reader would parse it, and ``check`` is called with the content and what is left of
    the reader's memory budget; if ``check`` raises an error, nothing is written.
    """
    buffers: dict[str, memoryview] = {}
    checksums: dict[str, dict[str, str]] = {}
    tensors: dict[str, dict[str, Any]] = {}
    for name, array in arrays.items():
        dtype = array.dtype.newbyteorder("<")
        if dtype.str not in DTYPES:
            raise TypeError(f"array {name!r} has dtype {array.dtype}, which a .mercer file cannot hold")
        order = _order(array)
        buffers[name] = np.asarray(array, dtype=dtype).ravel(order=order).view(np.uint8).data
        checksums[name] = {"order": order, "sha256": _sha256(buffers[name])}
        shape = list(array.shape if order == "C" else array.shape[::-1])
        tensors[name] = {"dtype": _DTYPE_NAMES[dtype.str], "shape": shape}
    names = sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize)
    end = 0
    for name in names:
        tensors[name]["data_offsets"] = [end, end := end + len(buffers[name])]
    metadata = {
        "format": "mercer",
        "version": str(VERSION),
        "sha256": _DIGEST_BLANK.decode(),
        "content": _json(header),
        "arrays": _json(checksums),
    }
    text = _json({"__metadata__": metadata} | {name: tensors[name] for name in names}).encode("ascii")
    text += b" " * (-(len(text) + _LENGTH.size) % 64)
    start = len(_BEGINNING)
    text = text[:start] + hashlib.sha256(text).hexdigest().encode() + text[start + len(_DIGEST_BLANK) :]
    budget = Budget()
    content, _ = _parse_header(text, end, "the model", budget)
    if check is not None:
        check(content, budget)
    with replacing(path) as file:
        file.write(_LENGTH.pack(len(text)) + text)
        for name in names:
            for part in _pieces(buffers[name]):
                file.write(part)


def _json(value: Any) -> str:
    """Return a value as compact JSON."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _order(array: Array) -> Literal["C", "F"]:
    """Return the memory order of an array; in the other order a matrix product may round differently."""
    is_by_columns = array.ndim > 1 and not array.flags.c_contiguous and abs(array.strides[0]) < abs(array.strides[-1])
    return "F" if is_by_columns else "C"


def read_container(
    path: str | os.PathLike[str], mmap: bool = False, budget: Budget | None = None
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read a container; return its content and its arrays, which are read-only and, with ``mmap``, views of the file.

    The file's size determines ``budget``. Memory for the header is taken from the budget here; code that builds values
    from the content takes memory from it too.

    Raises
    ------
    ModelFormatError
        If the file is damaged, or the header needs more memory than the file's size allows. Memory for an array is
        allocated only after the header and the offsets of all arrays were checked, so the arrays of a hostile file
        take no more memory than their own bytes, and its header no more than `mercer_file.budget` allows.
    OSError
        If ``path`` is missing, unreadable, or not a regular file.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        where = repr(os.fspath(path))
        head = file.read(HEAD)
        file.seek(0)
        if not is_container(head):
            raise ModelFormatError(
                f"{where} is not a mercer model file: it does not begin with {_FORMAT!r} after 8 bytes, nor does it "
                "begin like a model of LIBSVM, LIBLINEAR or SVMlight; read a pickle with pickle or joblib, if you "
                "trust it"
            )
        content, entries = _read_header(file, size, where, Budget() if budget is None else budget)
        end = file.tell()
        for entry in entries:
            end = entry.offset + entry.nbytes
            if end > size:
                raise ModelFormatError(
                    f"{where} is truncated or damaged: array {entry.name!r} ends at byte {end}, "
                    f"but the file has {size} bytes"
                )
        if end != size:
            raise ModelFormatError(f"{where} is damaged: {size - end} bytes follow the last array")
        mapped = np.memmap(file, dtype=np.uint8, mode="r", shape=(size,)) if mmap else None
        return content, {entry.name: _read_array(file, entry, where, mapped) for entry in entries}


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading; raise OSError for a folder, a device, a pipe or a socket."""
    # O_NONBLOCK: opening a pipe without a writer must not block.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(f"{os.fspath(path)!r} is a directory, not a model file")
        raise OSError(f"{os.fspath(path)!r} is a device, pipe or socket, not a model file")
    return os.fdopen(descriptor, "rb")


def _read_header(file: BinaryIO, size: int, where: str, budget: Budget) -> tuple[dict[str, Any], list[_Entry]]:
    """Read the header; return the content and the entries of the arrays."""
    (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
    if length > size - _LENGTH.size:
        raise ModelFormatError(
            f"{where} is truncated or damaged: its header has {length} bytes from byte {_LENGTH.size}, "
            f"but the file has only {size} bytes"
        )
    return _parse_header(file.read(length), size - _LENGTH.size - length, where, budget)


def _parse_header(text: bytes, array_bytes: int, where: str, budget: Budget) -> tuple[dict[str, Any], list[_Entry]]:
    """Parse a header; return the content and the entries of the arrays, which have `array_bytes` bytes in all."""
    if not text.startswith(_BEGINNING):
        version = re.match(rb"[0-9]{1,9}", text[len(_FORMAT) :][:9])
        number = int(version[0]) if version else 0
        advice = "update mercer to read it" if number > VERSION else "it is damaged"
        raise ModelFormatError(f"{where} has format version {number}; this mercer reads {VERSION}: {advice}")
    start, stop = len(_BEGINNING), len(_BEGINNING) + len(_DIGEST_BLANK)
    digest = hashlib.sha256(text[:start] + _DIGEST_BLANK)
    digest.update(memoryview(text)[stop:])
    if text[start:stop] != digest.hexdigest().encode():
        raise ModelFormatError(f"{where} is damaged: its header's checksum does not match")
    budget.grant(len(text), array_bytes)
    tensors = _parse_json(text, f"{where}: the header", budget)
    begin = _LENGTH.size + len(text)
    del text
    metadata = tensors.pop("__metadata__")
    names = {"format", "version", "sha256", "content", "arrays"}
    if metadata.keys() != names or not all(isinstance(value, str) for value in metadata.values()):
        raise ModelFormatError(f"{where}: the metadata must be exactly the strings {sorted(names)}")
    content = _parse_json(metadata["content"], f"{where}: the content", budget)
    checksums = _parse_json(metadata["arrays"], f"{where}: the list of arrays", budget)
    if checksums.keys() != tensors.keys():
        raise ModelFormatError(f"{where}: the arrays and their checksums have different names")
    return content, _entries(tensors, checksums, begin, where)


def _entries(tensors: dict[str, Any], checksums: dict[str, Any], start: int, where: str) -> list[_Entry]:
    """Return the entries of the arrays, each checked."""
    entries = []
    end = 0
    for name, item in tensors.items():
        location, checksum = f"{where}: array {name!r}", checksums[name]
        if not isinstance(item, dict) or item.keys() != _FIELDS:
            raise ModelFormatError(f"{location} must be described by exactly {sorted(_FIELDS)}")
        if not isinstance(checksum, dict) or checksum.keys() != {"order", "sha256"}:
            raise ModelFormatError(f"{location} must have an order and a checksum")
        shape, order, sha256 = item["shape"], checksum["order"], checksum["sha256"]
        dtype_text = _DTYPE_BY_NAME.get(item["dtype"]) if isinstance(item["dtype"], str) else None
        if dtype_text is None:
            raise ModelFormatError(f"{location}: dtype {item['dtype']!r} is none of {', '.join(_DTYPE_BY_NAME)}")
        if order not in ("C", "F"):
            raise ModelFormatError(f"{location}: order {order!r} is neither 'C' nor 'F'")
        # isinstance would accept a bool as an int.
        if not isinstance(shape, list) or len(shape) > 8 or not all(type(n) is int and n >= 0 for n in shape):
            raise ModelFormatError(f"{location}: shape {shape!r} is not a list of at most 8 counts")
        dtype = np.dtype(dtype_text)
        # NumPy multiplies the nonzero lengths even if the array is empty, which may overflow; Python's integers do not.
        if math.prod(max(length, 1) for length in shape) * dtype.itemsize > sys.maxsize:
            raise ModelFormatError(f"{location}: shape {shape!r} is larger than any memory")
        if not isinstance(sha256, str):
            raise ModelFormatError(f"{location}: its checksum must be a string")
        nbytes = math.prod(shape) * dtype.itemsize
        if item["data_offsets"] != [end, end + nbytes]:
            raise ModelFormatError(
                f"{location} has the offsets {item['data_offsets']!r:.60}, but according to its shape and the arrays "
                f"before it they must be {[end, end + nbytes]}"
            )
        lengths = tuple(shape if order == "C" else shape[::-1])
        entries.append(_Entry(name, dtype, lengths, order, start + end, nbytes, sha256))
        end += nbytes
    return entries


def _parse_json(text: bytes | str, where: str, budget: Budget) -> dict[str, Any]:
    """Parse a JSON object without duplicate keys, after taking its memory from the budget."""
    budget.take_json(text, where)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        unique_pairs = dict(pairs)
        if len(unique_pairs) != len(pairs):
            raise ValueError("a key occurs twice in one object")
        return unique_pairs

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    try:
        json_text = text.decode() if isinstance(text, bytes) else text
        value = json.loads(json_text, object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"{where} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ModelFormatError(f"{where} must be a JSON object")
    return value


def _pieces(buffer: memoryview) -> Iterator[memoryview]:
    """Split a buffer into pieces, between which Ctrl-C can interrupt."""
    return (buffer[start : start + (1 << 20)] for start in range(0, len(buffer), 1 << 20))


def _sha256(buffer: memoryview) -> str:
    """Return the SHA-256 of a buffer, in hexadecimal."""
    digest = hashlib.sha256()
    for part in _pieces(buffer):
        digest.update(part)
    return digest.hexdigest()


def _read_array(file: BinaryIO, entry: _Entry, where: str, mapped: Array | None) -> Array:
    """Read the array at the file's position, or take it from the ``mapped`` file; the result is read-only."""
    flat: Array = np.empty(entry.nbytes if mapped is None else 0, dtype=np.uint8)
    if mapped is not None:
        flat = np.asarray(mapped[entry.offset : entry.offset + entry.nbytes])
    digest = hashlib.sha256()
    for part in _pieces(flat.data):
        if mapped is None and file.readinto(part) != len(part):  # type: ignore[attr-defined]  # typeshed's BinaryIO omits readinto
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
