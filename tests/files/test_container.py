"""The bytes of a .mercer file: what was written comes back, and nothing else is ever accepted."""

import hashlib
import json
import os
import socket
import struct
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from mercer.errors import ModelFormatError
from mercer.files.container import DTYPES, MAGIC, VERSION, read_container, write_container

if os.name == "posix":
    import resource

posix = pytest.mark.skipif(os.name != "posix", reason="pipes, links, modes and limits are POSIX")
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's own files")

HEADER = {"name": "α", "numbers": [1, 2.5, None, True], "nested": {"a": []}}
ARRAYS = {
    "matrix": np.arange(12, dtype=np.float64).reshape(3, 4),
    "columns": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "flags": np.array([True, False, True]),
    "empty": np.empty((0, 7), dtype=np.int64),
    "number": np.array(3, dtype=np.int32),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.mercer"


@pytest.fixture
def content(path):
    write_container(path, HEADER, ARRAYS)
    return path.read_bytes()


def forged(header, payload=b"", version=VERSION, magic=MAGIC, length=None):
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


def test_round_trip(path, content):
    header, arrays = read_container(path)
    assert header == HEADER
    assert list(arrays) == list(ARRAYS)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, ARRAYS[name])
        assert array.dtype == ARRAYS[name].dtype
        assert array.shape == ARRAYS[name].shape
        assert not array.flags.writeable
    assert arrays["columns"].flags.f_contiguous


def test_arrays_are_aligned_in_the_file(content):
    start = content.index(ARRAYS["matrix"].tobytes())
    assert start % 64 == 0


def test_same_content_gives_the_same_bytes(path, content):
    write_container(path, HEADER, ARRAYS)
    assert path.read_bytes() == content


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_byte_order(path, dtype):
    values = np.array([0, 1, 1], dtype=dtype)
    for given in (values, values.astype(values.dtype.newbyteorder(">")), values[::-1], values[:, None][::2]):
        write_container(path, {}, {"a": given})
        read = read_container(path)[1]["a"]
        np.testing.assert_array_equal(read, given)
        assert read.dtype.isnative


def test_nan_payloads_and_signed_zeros_survive(path):
    bits = np.array([0x7FF8000000000123, 0x8000000000000000, 0x0000000000000001], dtype=np.uint64)
    write_container(path, {}, {"a": bits.view(np.float64)})
    np.testing.assert_array_equal(read_container(path)[1]["a"].view(np.uint64), bits)


def test_dtypes_that_could_hold_code_are_refused(path):
    with pytest.raises(TypeError, match="'a' has dtype object"):
        write_container(path, {}, {"a": np.array([object()])})
    assert not path.exists()


def test_truncated_at_every_byte(path, content):
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(ModelFormatError):
            read_container(path)


def test_every_byte_flipped(path, content):
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << (position % 8)
        path.write_bytes(damaged)
        with pytest.raises(ModelFormatError):
            read_container(path)


def test_bytes_after_the_end(path, content):
    path.write_bytes(content + b"\0")
    with pytest.raises(ModelFormatError, match="1 bytes follow"):
        read_container(path)


HOSTILE = {
    "not ours": (b"PK\x03\x04" + bytes(100), "does not begin with"),
    "empty file": (b"", "does not begin with"),
    "newer version": (forged({}, version=VERSION + 1), "update mercer"),
    "version zero": (forged({}, version=0), "version 0"),
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
    with _address_space(64 << 20), pytest.raises(ModelFormatError, match=message):
        read_container(path)


@contextmanager
def _address_space(extra):
    """While inside, this process may grow by at most so many bytes (where the system lets us say so)."""
    if sys.platform != "linux":
        yield
        return
    with open("/proc/self/statm") as file:
        limit = int(file.read().split()[0]) * resource.getpagesize() + extra
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_eight_times_the_arrays_take_about_eight_times_the_time(path):
    def seconds(count):
        write_container(path, {}, {f"a{i}": np.empty(0) for i in range(count)})
        taken = []
        for _ in range(2):
            begun = time.process_time()
            read_container(path)
            taken.append(time.process_time() - begun)
        return min(taken)

    assert seconds(8_000) < 24 * seconds(1_000)


def test_booleans_hold_only_zeros_and_ones(path):
    write_container(path, {}, {"a": np.array([2, 3], dtype=np.uint8)})
    text = path.read_bytes()
    forged_header = json.loads(text[52 : text.index(b"\0", 52)])
    forged_header["arrays"][0]["dtype"] = "|b1"
    data = forged(json.dumps(forged_header, separators=(",", ":")).encode())
    path.write_bytes(data.ljust(forged_header["arrays"][0]["offset"], b"\0") + b"\2\3")
    with pytest.raises(ModelFormatError, match="other than 0 and 1"):
        read_container(path)


@posix
@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["missing", "directory", "pipe", "socket", "empty path"])
def test_what_is_no_file_is_an_oserror(tmp_path, kind):
    path = tmp_path / "x"
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        here = os.getcwd()
        os.chdir(tmp_path)  # a socket's path has at most 107 bytes
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("x")
        os.chdir(here)
    given = "" if kind == "empty path" else path
    with pytest.raises(OSError, match=r"No such file|directory|device"):
        read_container(given)
    if kind != "missing":
        with pytest.raises(OSError, match=r"directory|pipe|empty"):
            write_container(given, {}, {})


@linux
def test_devices_are_not_replaced():
    with pytest.raises(OSError, match="device"):
        write_container("/dev/full", {}, {})
    with pytest.raises(OSError, match="device"):
        read_container("/dev/zero")


@posix
def test_a_full_disk_leaves_the_old_file(path, content):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_container(path, {}, {"large": np.ones(100_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == [path.name]


@posix
@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failure_at_the_end_leaves_the_old_file(path, content, monkeypatch, call, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(error):
        write_container(path, {"new": 1}, {})
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == [path.name]


def test_missing_folder_is_an_oserror(tmp_path):
    path = tmp_path / "no" / "x.mercer"
    with pytest.raises(FileNotFoundError) as caught:
        write_container(path, {}, {})
    assert repr(str(path)) in str(caught.value)
    assert ".tmp" not in str(caught.value)


@posix
def test_a_symbolic_link_stays_one(path, content):
    link = path.parent / "link"
    link.symlink_to(path.name)
    write_container(link, {"new": 1}, {})
    assert link.is_symlink()
    assert read_container(path)[0] == {"new": 1}


@posix
def test_the_umask_decides_who_may_read(path):
    before = os.umask(0o027)
    try:
        write_container(path, {}, {})
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


@posix
def test_a_reader_sees_the_old_or_the_new_file(path):
    arrays = [np.full(20_000, value, dtype=np.float64) for value in (1, 2)]
    write_container(path, {"value": 1}, {"a": arrays[0]})
    done = threading.Event()

    def write():
        for i in range(30):
            write_container(path, {"value": 1 + i % 2}, {"a": arrays[i % 2]})
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        header, read = read_container(path)
        assert (read["a"] == header["value"]).all()
    writer.join()
