"""Version 1 of the .mercer file, which is read and no longer written: damaged or hostile, it is refused."""

import hashlib
import json
import struct

import numpy as np
import pytest

from mercer.errors import ModelFormatError
from mercer.files.container import read_container, write_container
from reference.address_space import address_space
from reference.forgery import version_1

ARRAYS = {
    "matrix": np.arange(12, dtype=np.float64).reshape(3, 4),
    "columns": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "flags": np.array([True, False, True]),
    "empty": np.empty((0, 7), dtype=np.int64),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.mercer"


@pytest.fixture
def content(path):
    write_container(path, {"name": "α"}, ARRAYS)
    return version_1(path.read_bytes())


def forged(header, payload=b"", version=1, magic=b"\x89MERCER\n", length=None):
    """A file with a correct header checksum around whatever header is given."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    digest = hashlib.sha256(text).digest()
    return struct.pack("<8sIQ32s", magic, version, len(text) if length is None else length, digest) + text + payload


def entry(**changes):
    plain = {
        "name": "a",
        "dtype": "<f8",
        "shape": [0],
        "order": "C",
        "offset": 0,
        "sha256": hashlib.sha256().hexdigest(),
    }
    return plain | changes


def test_it_is_read(path, content):
    path.write_bytes(content)
    for mmap in (False, True):
        header, arrays = read_container(path, mmap)
        assert header == {"name": "α"}
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(arrays[name], array)
            assert arrays[name].dtype == array.dtype
        assert arrays["columns"].flags.f_contiguous


def test_damage_to_every_byte(path, content):
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << (position % 8)
        for bad in (damaged, content[:position]):
            path.write_bytes(bad)
            with pytest.raises(ModelFormatError):
                read_container(path)
    path.write_bytes(content + b"\0")
    with pytest.raises(ModelFormatError, match="1 bytes follow"):
        read_container(path)


HOSTILE = {
    "another version": (forged({}, version=2), "version 2 behind"),
    "header longer than the file": (forged({}, length=2**63), "truncated or damaged"),
    "not UTF-8": (forged(b"\xff\xfe"), "not valid JSON"),
    "not JSON": (forged(b"{"), "not valid JSON"),
    "NaN": (forged(b'{"content": {"a": NaN}, "arrays": []}'), "not valid JSON"),
    "a key twice": (forged(b'{"content": {"a": 1, "a": 2}, "arrays": []}'), "twice"),
    "nested too deeply": (forged(b"[" * 100_000 + b"]" * 100_000), "JSON"),
    "a list": (forged([]), "JSON object"),
    "no arrays": (forged({"content": {}}), "'arrays'"),
    "content is a list": (forged({"content": [], "arrays": []}), "'content' must be an object"),
    "entry is a number": (forged({"content": {}, "arrays": [1]}), "described by exactly"),
    "entry has a path": (forged({"content": {}, "arrays": [entry(path="../x")]}), "described by exactly"),
    "name is a number": (forged({"content": {}, "arrays": [entry(name=1)]}), "name must be a string"),
    "dtype object": (forged({"content": {}, "arrays": [entry(dtype="|O")]}), "dtype '|O'"),
    "dtype is a list": (forged({"content": {}, "arrays": [entry(dtype=[["a", "<f8"]])]}), "dtype"),
    "order": (forged({"content": {}, "arrays": [entry(order="K")]}), "order 'K'"),
    "shape is a number": (forged({"content": {}, "arrays": [entry(shape=3)]}), "shape 3"),
    "negative length": (forged({"content": {}, "arrays": [entry(shape=[-1])]}), "shape"),
    "boolean length": (forged({"content": {}, "arrays": [entry(shape=[True])]}), "shape"),
    "fractional length": (forged({"content": {}, "arrays": [entry(shape=[1.0])]}), "shape"),
    "overflowing shape": (
        forged({"content": {}, "arrays": [entry(shape=[2**32, 2**32, 2**32])]}),
        "any memory",
    ),
    "huge but empty": (forged({"content": {}, "arrays": [entry(shape=[0, 2**62])]}), "any memory"),
    "many dimensions": (forged({"content": {}, "arrays": [entry(shape=[1] * 65)]}), "shape"),
    "2^60 elements": (
        forged({"content": {}, "arrays": [entry(shape=[2**59], offset=256)]}),
        "truncated or damaged",
    ),
    "offset in the header": (forged({"content": {}, "arrays": [entry(offset=0)]}), "begin at byte 0"),
    "offset negative": (forged({"content": {}, "arrays": [entry(offset=-64)]}), "offset -64"),
    "checksum is a number": (forged({"content": {}, "arrays": [entry(sha256=1)]}), "checksum must be"),
    "overlap": (
        forged(
            {"content": {}, "arrays": [entry(shape=[8], offset=384), entry(name="b", shape=[8], offset=384)]},
            bytes(200),
        ),
        "'b' is said to begin",
    ),
    "same name": (
        forged({"content": {}, "arrays": [entry(offset=384), entry(offset=384)]}, bytes(9)),
        "two arrays are named 'a'",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_header_is_refused_before_it_costs_memory(path, case):
    data, message = HOSTILE[case]
    path.write_bytes(data)
    with address_space(64 << 20), pytest.raises(ModelFormatError, match=message):
        read_container(path)
