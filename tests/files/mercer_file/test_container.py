"""The bytes of a .mercer file: what was written comes back, and nothing else is ever accepted."""

import hashlib
import json
import os
import socket
import stat
import struct
import sys
import threading
import time

import numpy as np
import pytest

from mercer.files.mercer_file.container import DTYPES, read_container, write_container
from mercer.runtime.errors import ModelFormatError
from reference.address_space import address_space
from reference.forgery import forge, sealed, sealed_text

if os.name == "posix":
    import resource

posix = pytest.mark.skipif(os.name != "posix", reason="pipes, links, modes and limits are POSIX")
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's own files")

BEGINNING = b'{"__metadata__":{"format":"mercer","version":"1","sha256":"' + b"0" * 64
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


def forged(content="{}", arrays="{}", payload=b"", version="1", length=None, **tensors):
    """A file with a correct header checksum around whatever is given."""
    told = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in (("content", content), ("arrays", arrays))
    }
    data = sealed(told, tensors, payload, version)
    return data if length is None else struct.pack("<Q", length) + data[8:]


def tensor(**changes):
    """An empty array, by itself in a file."""
    plain = {"dtype": "F64", "shape": [0], "data_offsets": [0, 0], "order": "C", "sha256": hashlib.sha256().hexdigest()}
    plain |= changes
    kept = {key: plain.pop(key) for key in ("order", "sha256")}
    return forged(arrays={"a": kept}, a=plain)


def test_round_trip(path, content):
    header, arrays = read_container(path)
    assert header == HEADER
    assert arrays.keys() == ARRAYS.keys()
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
    "another safetensors file": (struct.pack("<Q", 2) + b"{}", "does not begin with"),
    "newer version": (forged(version="2"), "update mercer"),
    "version zero": (forged(version="0"), "version 0"),
    "no version": (forged(version="two"), "damaged"),
    "header longer than the file": (forged(length=2**63), "truncated or damaged"),
    "not UTF-8": (sealed_text(BEGINNING + b"\xff"), "not valid JSON"),
    "not JSON": (sealed_text(BEGINNING), "not valid JSON"),
    "NaN": (forged(content='{"a": NaN}'), "not valid JSON"),
    "a key twice": (forged(content='{"a": 1, "a": 2}'), "twice"),
    "nested too deeply": (forged(content="[" * 100_000 + "]" * 100_000), "JSON"),
    "a list": (forged(content=[]), "JSON object"),
    "metadata of others": (sealed({"content": "{}", "arrays": "{}", "path": "../x"}, {}), "exactly the strings"),
    "metadata missing": (sealed({"content": "{}"}, {}), "exactly the strings"),
    "metadata that are no strings": (sealed({"content": {}, "arrays": "{}"}, {}), "exactly the strings"),
    "an array without a checksum": (
        forged(a={"dtype": "F64", "shape": [0], "data_offsets": [0, 0]}),
        "different names",
    ),
    "a checksum without an array": (forged(arrays={"a": {}}), "different names"),
    "array is a number": (forged(arrays={"a": {}}, a=1), "described by exactly"),
    "array has a path": (tensor(path="../x"), "described by exactly"),
    "no order": (forged(arrays={"a": {}}, a={"dtype": "F64", "shape": [0], "data_offsets": [0, 0]}), "order"),
    "dtype object": (tensor(dtype="|O"), "dtype '|O'"),
    "dtype of others": (tensor(dtype="BF16"), "dtype 'BF16'"),
    "dtype is a list": (tensor(dtype=[["a", "<f8"]]), "dtype"),
    "order": (tensor(order="K"), "order 'K'"),
    "shape is a number": (tensor(shape=3), "shape 3"),
    "negative length": (tensor(shape=[-1]), "shape"),
    "boolean length": (tensor(shape=[True]), "shape"),
    "fractional length": (tensor(shape=[1.0]), "shape"),
    "overflowing shape": (tensor(shape=[2**32, 2**32, 2**32]), "any memory"),
    "huge but empty": (tensor(shape=[0, 2**62]), "any memory"),
    "many dimensions": (tensor(shape=[1] * 65), "shape"),
    "2^59 elements": (tensor(shape=[2**59], data_offsets=[0, 2**62]), "truncated or damaged"),
    "offset behind": (tensor(data_offsets=[8, 8]), "they must be"),
    "offset negative": (tensor(data_offsets=[-8, -8]), "they must be"),
    "offset is a word": (tensor(data_offsets="all"), "they must be"),
    "checksum is a number": (tensor(sha256=1), "checksum must be"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_header_is_refused_before_it_costs_memory(path, case):
    data, message = HOSTILE[case]
    path.write_bytes(data)
    with address_space(64 << 20), pytest.raises(ModelFormatError, match=message):
        read_container(path)


def test_the_library_reads_it(path, content):
    """A file is a safetensors file: the same arrays, those by columns transposed, and our JSON."""
    library = pytest.importorskip("safetensors")
    with library.safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
        assert set(file.keys()) == set(ARRAYS)
        for name, array in ARRAYS.items():
            read = file.get_tensor(name)
            np.testing.assert_array_equal(read, array.T if name == "columns" else array)
            assert read.dtype == array.dtype
    assert metadata["format"] == "mercer"
    assert metadata["version"] == "1"
    assert json.loads(metadata["content"]) == HEADER
    assert json.loads(metadata["arrays"])["columns"]["order"] == "F"


def test_a_view_by_columns_stays_by_columns(path):
    """The components of a decomposition are such: rows cut out of a matrix that lies by columns."""
    wide = np.asfortranarray(np.arange(20.0).reshape(5, 4))
    write_container(path, {}, {"a": wide[:2], "b": wide.T[:2], "c": wide[::2, ::-1]})
    read = read_container(path)[1]
    for name, array in (("a", wide[:2]), ("b", wide.T[:2]), ("c", wide[::2, ::-1])):
        np.testing.assert_array_equal(read[name], array)
    assert read["a"].flags.f_contiguous
    assert read["b"].flags.c_contiguous


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
    path.write_bytes(forge(path.read_bytes(), lambda document: document["arrays"][0].update(dtype="|b1")))
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
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o664, 0o4755])
def test_what_was_private_stays_private(path, content, mode):
    """Whatever the umask says of new files; a program of the owner's rights is not made of data."""
    path.chmod(mode)
    before = os.umask(0o022)
    try:
        write_container(path, {"new": 1}, {})
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode & 0o777
    assert read_container(path)[0] == {"new": 1}


@posix
def test_the_group_is_kept_or_gets_no_more_than_everybody(path, content, monkeypatch):
    other = next(
        (group for group in os.getgroups() if group != path.stat().st_gid), 54321 if os.getuid() == 0 else None
    )
    if other is not None:
        os.chown(path, -1, other)
        path.chmod(0o660)
        write_container(path, {}, {})
        assert (path.stat().st_gid, stat.S_IMODE(path.stat().st_mode)) == (other, 0o660)

    def refuse(*_):
        raise PermissionError("not a group of this user")

    monkeypatch.setattr(os, "fchown", refuse)
    real = os.fstat
    monkeypatch.setattr(os, "fstat", lambda descriptor: _InAnotherGroup(real(descriptor)))
    path.chmod(0o664)
    write_container(path, {}, {})
    monkeypatch.undo()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


ACCESS, DEFAULT, NOBODY = "system.posix_acl_access", "system.posix_acl_default", 0xFFFFFFFF


def _acl(group, named, others):
    """An access control list as acl(5) has it in Linux's extended attributes: user 12345 is named."""
    entries = [(0x01, 6, NOBODY), (0x02, named, 12345), (0x04, group, NOBODY), (0x10, group | named, NOBODY)]
    entries.append((0x20, others, NOBODY))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def _set_or_skip(where, name, value):
    try:
        os.setxattr(where, name, value)
    except (AttributeError, OSError) as error:
        pytest.skip(f"no access control lists here: {error}")


def test_access_control_lists_are_kept(path, content, monkeypatch):
    """The mode shows a list's mask in the place of the group: without the list, the group would get it."""
    private = _acl(group=0, named=6, others=0)
    _set_or_skip(path, ACCESS, private)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    write_container(path, {"new": 1}, {})
    assert os.getxattr(path, ACCESS) == private
    assert stat.S_IMODE(path.stat().st_mode) == 0o660

    def refuse(*_):
        raise PermissionError("no list may be set")

    with monkeypatch.context() as patched:
        patched.setattr(os, "setxattr", refuse)
        write_container(path, {"new": 2}, {})
    assert read_container(path)[0] == {"new": 2}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600  # neither the group nor the named user
    _set_or_skip(path, ACCESS, _acl(group=4, named=0, others=4))
    with monkeypatch.context() as patched:
        patched.setattr(os, "setxattr", refuse)
        write_container(path, {}, {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600  # or the named user could read it as one of the others
    _set_or_skip(path, ACCESS, _acl(group=6, named=6, others=4))
    with monkeypatch.context() as patched:
        patched.setattr(os, "fchown", refuse)
        real = os.fstat
        patched.setattr(os, "fstat", lambda descriptor: _InAnotherGroup(real(descriptor)))
        write_container(path, {}, {})
    kept = [_ACL_ENTRY.unpack_from(os.getxattr(path, ACCESS), 4 + 8 * k)[:2] for k in range(5)]
    assert kept == [(0x01, 6), (0x02, 6), (0x04, 4), (0x10, 6), (0x20, 4)]


_ACL_ENTRY = struct.Struct("<HHI")


def test_a_file_without_a_list_gets_none_from_its_folder(path, content):
    path.chmod(0o600)
    _set_or_skip(path.parent, DEFAULT, _acl(group=6, named=6, others=6))
    write_container(path, {"new": 1}, {})
    with pytest.raises(OSError, match="No data"):
        os.getxattr(path, ACCESS)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    write_container(path.with_name("fresh"), {}, {})  # where there was no file, the folder's default decides
    assert _ACL_ENTRY.unpack_from(os.getxattr(path.with_name("fresh"), ACCESS), 12)[:2] == (0x02, 6)


class _InAnotherGroup:
    """What fstat says of a file, but for its group."""

    def __init__(self, found):
        self.st_gid, self.st_mode, self.st_size = found.st_gid + 1, found.st_mode, found.st_size


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
