"""Saving when things go wrong, mapping files into memory, and skops."""

import os
import random
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import SVC
from mercer.files.atomic_write import replacing
from mercer.runtime.errors import ModelFormatError

posix = pytest.mark.skipif(os.name != "posix", reason="signals, limits and /dev/full are POSIX")
X, y = make_classification(80, 5, random_state=0)


def _has_nameless_files():
    try:
        os.close(os.open("/tmp", os.O_WRONLY | os.O_TMPFILE))
    except (AttributeError, OSError):
        return False
    return os.path.isdir("/proc/self/fd")


NAMELESS = _has_nameless_files()

SAVER = """
import os, sys
import mercer
models = [mercer.load(path) for path in sys.argv[2:]]
for _ in sys.stdin:
    child = os.fork()  # so that one import serves them all
    if child == 0:
        print(os.getpid(), flush=True)
        while True:
            for model in models:
                mercer.save(model, sys.argv[1])
    os.waitpid(child, 0)
"""


@posix
def test_killed_while_saving(tmp_path):
    """SIGKILL at twelve random moments: the file is always one of the two models, whole."""
    path, sources = tmp_path / "model.mercer", [tmp_path / "1.mercer", tmp_path / "2.mercer"]
    wide = np.random.default_rng(0).normal(size=(3000, 60))  # large enough that a save takes a while
    for C, source in zip((1.0, 2.0), sources, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            mercer.save(SVC(C=C, kernel="linear", max_iter=2).fit(wide, np.arange(3000) % 2), source)
    mercer.save(SVC(C=1.0).fit(X, y), path)
    rng = random.Random(1)
    arguments = [sys.executable, "-c", SAVER, *map(str, (path, *sources))]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        for _ in range(4):
            process.stdin.write(b"again\n")
            saving = int(process.stdout.readline())
            try:
                for _ in range(3):
                    time.sleep(rng.uniform(0, 0.05))
                    assert mercer.load(path).C in (1.0, 2.0)
            finally:
                os.kill(saving, signal.SIGKILL)
            assert mercer.load(path).C in (1.0, 2.0)
        process.stdin.close()
    if NAMELESS:
        assert {entry.name for entry in tmp_path.iterdir()} == {"model.mercer", "1.mercer", "2.mercer"}


def test_what_a_killed_process_left_is_removed(tmp_path, monkeypatch):
    """Where files cannot be without a name: the next save removes it, but nothing that is being written."""
    monkeypatch.setattr(os, "O_TMPFILE", 0, raising=False)
    path = tmp_path / "model.mercer"
    left = tmp_path / ".model.mercer.0123456789abcdef.tmp"
    others = [tmp_path / name for name in (".model.mercer.tmp", ".other.mercer.0123456789abcdef.tmp")]
    for file in (left, *others):
        file.write_bytes(b"half")
    model = SVC().fit(X, y)
    with replacing(path) as file:
        file.write(b"in the middle")
        (writing,) = [one for one in tmp_path.iterdir() if one.name.startswith(".model.mercer.") and one not in others]
        mercer.save(model, path)
        assert writing.exists()
        mercer.save(model, tmp_path / "other.mercer")
    assert path.read_bytes() == b"in the middle"
    assert {entry.name for entry in tmp_path.iterdir()} == {"model.mercer", "other.mercer", ".model.mercer.tmp"}


@pytest.mark.skipif(not NAMELESS, reason="needs files without a name")
def test_nothing_has_a_name_before_it_is_whole(tmp_path):
    with replacing(tmp_path / "model.mercer") as file:
        file.write(b"half")
        assert list(tmp_path.iterdir()) == []
    assert (tmp_path / "model.mercer").read_bytes() == b"half"


@posix
def test_a_full_disk_while_saving_a_model(tmp_path):
    """A file system that runs full in the middle of the arrays leaves the old model and no debris."""
    path = tmp_path / "model.mercer"
    old = SVC().fit(X, y)
    mercer.save(old, path)
    resource = pytest.importorskip("resource")
    wide = np.random.default_rng(0).normal(size=(500, 200))
    new = SVC().fit(wide, np.arange(500) % 2)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))  # Python ignores the signal that comes with it
    try:
        with pytest.raises(OSError, match="File too large"):
            mercer.save(new, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    np.testing.assert_array_equal(mercer.load(path).decision_function(X), old.decision_function(X))
    assert os.listdir(tmp_path) == ["model.mercer"]


@pytest.mark.parametrize("rows", [X, sp.csr_array(X * (X > 0)), X.astype(np.float32)], ids=["dense", "csr", "float32"])
def test_mapped_into_memory(tmp_path, rows):
    path = tmp_path / "model.mercer"
    model = SVC().fit(rows, y)
    mercer.save(model, path)
    mapped = mercer.load(path, mmap=True)
    np.testing.assert_array_equal(mapped.decision_function(rows), model.decision_function(rows))
    vectors = mapped.support_vectors_
    array = vectors.data if sp.issparse(vectors) else vectors
    assert not array.flags.owndata
    assert not array.flags.writeable
    mercer.save(SVC(C=7).fit(X, y), path)  # replaces the file; what is mapped stays
    np.testing.assert_array_equal(mapped.decision_function(rows), model.decision_function(rows))


def test_a_damaged_file_is_not_mapped(tmp_path):
    path = tmp_path / "model.mercer"
    mercer.save(SVC().fit(X, y), path)
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFormatError, match="does not match its checksum"):
        mercer.load(path, mmap=True)


def test_skops():
    """skops saves what scikit-learn's rules let it see; the types it must be told to trust are mercer's own."""
    skops = pytest.importorskip("skops.io")
    model = SVC(C=3.0).fit(X, y)
    content = skops.dumps(model)
    trusted = skops.get_untrusted_types(data=content)
    assert all(name.startswith(("mercer.", "numpy.", "scipy.sparse.")) for name in trusted)
    again = skops.loads(content, trusted=trusted)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
