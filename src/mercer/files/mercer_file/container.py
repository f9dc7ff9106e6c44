"""The bytes of a ``.mercer`` file: JSON and raw little-endian arrays with checksums, and no code.

A file is a safetensors file, which other programs can open too:

    offset 0   uint64    length of the header in bytes
           8   header    JSON, {"__metadata__": {...}, NAME: {"dtype", "shape", "data_offsets"}, ...}, then spaces
               arrays    one after the other, nothing between them or after the last

The metadata are strings: the format, its version, the SHA-256 of the header (with zeros in its own place), the content
and, for each array, its order and SHA-256, both as JSON. An array whose order is "F" is written as its transpose. The
header ends at a multiple of 64, and wide numbers come first, so that mapped arrays are aligned. So every byte of a file
is covered by a checksum.
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
_NO_DIGEST: Final = b"0" * 64
_FIELDS: Final = {"dtype", "shape", "data_offsets"}
DTYPES: Final = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8")
# safetensors' names of them.
_NAMES: Final = dict(
    zip(DTYPES, ("BOOL", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "F32", "F64"), strict=True)
)
_BY_NAME: Final = {name: dtype for dtype, name in _NAMES.items()}
HEAD: Final = _LENGTH.size + len(_FORMAT)  # as many bytes show whether a file is ours

Array = NDArray[Any]


@dataclass(frozen=True)
class _Entry:
    """Entry of the header for an array, checked against the file's size."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: str
    offset: int
    nbytes: int
    sha256: str


def is_container(head: bytes) -> bool:
    """Tell if a file that begins with these bytes, `HEAD` of them or more, is a .mercer file of any version."""
    return head[_LENGTH.size :].startswith(_FORMAT)


def write_container(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, Array],
    check: Callable[[dict[str, Any], Budget], object] | None = None,
) -> None:
    """Write ``header`` (plain JSON values, finite numbers) and ``arrays`` to ``path``, atomically.

    Before that the header is read back as a reader will, and ``check`` is called with it and with what is left of the
    reader's budget; if it raises an error, nothing is written.
    """
    buffers: dict[str, memoryview] = {}
    kept: dict[str, dict[str, str]] = {}
    tensors: dict[str, dict[str, Any]] = {}
    for name, array in arrays.items():
        dtype = array.dtype.newbyteorder("<")
        if dtype.str not in DTYPES:
            raise TypeError(f"array {name!r} has dtype {array.dtype}, which a .mercer file cannot hold")
        order = _order(array)
        buffers[name] = np.asarray(array, dtype=dtype).ravel(order=order).view(np.uint8).data
        kept[name] = {"order": order, "sha256": _digest_of(buffers[name])}
        shape = list(array.shape if order == "C" else array.shape[::-1])
        tensors[name] = {"dtype": _NAMES[dtype.str], "shape": shape}
    names = sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize)
    end = 0
    for name in names:
        tensors[name]["data_offsets"] = [end, end := end + len(buffers[name])]
    metadata = {
        "format": "mercer",
        "version": str(VERSION),
        "sha256": _NO_DIGEST.decode(),
        "content": _json(header),
        "arrays": _json(kept),
    }
    text = _json({"__metadata__": metadata} | {name: tensors[name] for name in names}).encode("ascii")
    text += b" " * (-(len(text) + _LENGTH.size) % 64)
    start = len(_BEGINNING)
    text = text[:start] + hashlib.sha256(text).hexdigest().encode() + text[start + len(_NO_DIGEST) :]
    budget = Budget()
    content, _ = _parsed_header(text, end, "the model", budget)
    if check is not None:
        check(content, budget)
    with replacing(path) as file:
        file.write(_LENGTH.pack(len(text)) + text)
        for name in names:
            for part in _pieces(buffers[name]):
                file.write(part)


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _order(array: Array) -> Literal["C", "F"]:
    """Rows or columns first, as they lie in memory: a product of matrices may round otherwise in the other order."""
    by_columns = array.ndim > 1 and not array.flags.c_contiguous and abs(array.strides[0]) < abs(array.strides[-1])
    return "F" if by_columns else "C"


def read_container(
    path: str | os.PathLike[str], mmap: bool = False, budget: Budget | None = None
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read what `write_container` wrote; the arrays are read-only, and with ``mmap`` views of the file.

    The file's size grants ``budget`` its memory, out of which the header is paid here; whoever makes values of the
    content takes from it too.

    Raises
    ------
    ModelFormatError
        If any byte is not what it must be, or the header asks for more memory than its size grants. Nothing is
        allocated for an array before the header and the place of every array have been checked, so the arrays of a
        hostile file cost no more memory than their own bytes, and its header what `mercer_file.budget` says.
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
                "begin as a model of LIBSVM, LIBLINEAR or SVMlight does; a pickle is read by pickle or joblib, if you "
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
    """Open a file for reading; OSError for a folder, a device, a pipe or a socket."""
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


def _read_header(file: BinaryIO, size: int, where: str, budget: Budget) -> tuple[dict[str, Any], list[_Entry]]:
    """The content and the arrays' places, with the file at the end of the header."""
    (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
    if length > size - _LENGTH.size:
        raise ModelFormatError(
            f"{where} is truncated or damaged: its header has {length} bytes from byte {_LENGTH.size}, "
            f"but the file has {size} bytes in all"
        )
    return _parsed_header(file.read(length), size - _LENGTH.size - length, where, budget)


def _parsed_header(text: bytes, array_bytes: int, where: str, budget: Budget) -> tuple[dict[str, Any], list[_Entry]]:
    """The content and the arrays' places that a header tells, of a file with so many bytes of arrays."""
    if not text.startswith(_BEGINNING):
        version = re.match(rb"[0-9]{1,9}", text[len(_FORMAT) :][:9])
        told = int(version[0]) if version else 0
        advice = "update mercer to read it" if told > VERSION else "it is damaged"
        raise ModelFormatError(f"{where} has format version {told}; this mercer reads {VERSION}: {advice}")
    start, stop = len(_BEGINNING), len(_BEGINNING) + len(_NO_DIGEST)
    digest = hashlib.sha256(text[:start] + _NO_DIGEST)
    digest.update(memoryview(text)[stop:])
    if text[start:stop] != digest.hexdigest().encode():
        raise ModelFormatError(f"{where} is damaged: its header's checksum does not match")
    budget.grant(len(text), array_bytes)
    tensors = _parsed_json(text, f"{where}: the header", budget)
    begin = _LENGTH.size + len(text)
    del text
    metadata = tensors.pop("__metadata__")
    names = {"format", "version", "sha256", "content", "arrays"}
    if metadata.keys() != names or not all(isinstance(value, str) for value in metadata.values()):
        raise ModelFormatError(f"{where}: the metadata must be exactly the strings {sorted(names)}")
    content = _parsed_json(metadata["content"], f"{where}: the content", budget)
    kept = _parsed_json(metadata["arrays"], f"{where}: the list of arrays", budget)
    if kept.keys() != tensors.keys():
        raise ModelFormatError(f"{where}: the arrays and their checksums have different names")
    return content, _entries(tensors, kept, begin, where)


def _entries(tensors: dict[str, Any], kept: dict[str, Any], start: int, where: str) -> list[_Entry]:
    entries = []
    end = 0
    for name, item in tensors.items():
        place, more = f"{where}: array {name!r}", kept[name]
        if not isinstance(item, dict) or item.keys() != _FIELDS:
            raise ModelFormatError(f"{place} must be described by exactly {sorted(_FIELDS)}")
        if not isinstance(more, dict) or more.keys() != {"order", "sha256"}:
            raise ModelFormatError(f"{place} must have an order and a checksum")
        shape, order, sha256 = item["shape"], more["order"], more["sha256"]
        found = _BY_NAME.get(item["dtype"]) if isinstance(item["dtype"], str) else None
        if found is None:
            raise ModelFormatError(f"{place}: dtype {item['dtype']!r} is none of {', '.join(_BY_NAME)}")
        if order not in ("C", "F"):
            raise ModelFormatError(f"{place}: order {order!r} is neither 'C' nor 'F'")
        # bool is an int to isinstance, and no count
        if not isinstance(shape, list) or len(shape) > 8 or not all(type(n) is int and n >= 0 for n in shape):
            raise ModelFormatError(f"{place}: shape {shape!r} is not a list of at most 8 counts")
        dtype = np.dtype(found)
        # NumPy multiplies the lengths that are not zero even if the array is empty; Python's integers are exact.
        if math.prod(max(length, 1) for length in shape) * dtype.itemsize > sys.maxsize:
            raise ModelFormatError(f"{place}: shape {shape!r} is larger than any memory")
        if not isinstance(sha256, str):
            raise ModelFormatError(f"{place}: its checksum must be a string")
        nbytes = math.prod(shape) * dtype.itemsize
        if item["data_offsets"] != [end, end + nbytes]:
            raise ModelFormatError(
                f"{place} is said to lie at bytes {item['data_offsets']!r:.60}, but its shape and what comes "
                f"before it put it at {[end, end + nbytes]}"
            )
        lengths = tuple(shape if order == "C" else shape[::-1])
        entries.append(_Entry(name, dtype, lengths, order, start + end, nbytes, sha256))
        end += nbytes
    return entries


def _parsed_json(text: bytes | str, where: str, budget: Budget) -> dict[str, Any]:
    """A JSON object, in which no key stands twice; its memory is taken from the budget before it is parsed."""
    budget.take_json(text, where)

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


def _pieces(buffer: memoryview) -> Iterator[memoryview]:
    """The buffer in pieces, between which Ctrl-C is answered."""
    return (buffer[start : start + (1 << 20)] for start in range(0, len(buffer), 1 << 20))


def _digest_of(buffer: memoryview) -> str:
    """The SHA-256 of a buffer, in hexadecimal."""
    digest = hashlib.sha256()
    for part in _pieces(buffer):
        digest.update(part)
    return digest.hexdigest()


def _read_array(file: BinaryIO, entry: _Entry, where: str, mapped: Array | None) -> Array:
    """The array at the file's position, read-only; a view of the whole file where that is ``mapped``."""
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
