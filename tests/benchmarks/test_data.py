"""Fetching data sets: the same file from rows in any order, checksums, and what is refused, with a host of our own."""

import bz2
import gzip
import hashlib
import http.server
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
if not BENCHMARKS.is_dir():  # a copy of the tests alone has none
    pytest.skip("benchmarks are not here", allow_module_level=True)
sys.path.insert(0, str(BENCHMARKS))

import data  # noqa: E402
import tasks  # noqa: E402

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3)).astype(np.float32)
Y = rng.integers(3, size=20)


@pytest.fixture
def host(tmp_path):
    """A folder and the address under which its files are sent."""
    folder = tmp_path / "host"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *given):
            super().__init__(*given, directory=str(folder))

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def libsvm_text(X, y):
    lines = (
        " ".join([str(label), *(f"{j + 1}:{v!r}" for j, v in enumerate(row.tolist()) if v)])
        for row, label in zip(X, y, strict=True)
    )
    return "\n".join(lines).encode() + b"\n"


def plain_checksum(X, y, Xtest, ytest):
    """The stated bytes, written down one number after another."""
    found = hashlib.sha256()
    for samples, target in ((X, y), (Xtest, ytest)):
        for row in samples:
            for value in row:
                found.update(np.array(value, "<f4").tobytes())
        for value in target:
            found.update(np.array(value, "<f8").tobytes())
    return found.hexdigest()


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("share", [0.7, None])
def test_any_order_of_rows_gives_the_same_file(kind, share):
    source = data.Source(20, 3, share, first=None if share else 12, sparse=kind is not np.asarray)
    mixed = rng.permutation(20) if share else np.r_[rng.permutation(12), 12 + rng.permutation(8)]
    one = data.canonical(kind(X), Y, source)
    other = data.canonical(kind(X[mixed]), Y[mixed], source)
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])
    assert data.checksum(one) == data.checksum(other)
    assert len(one["y"]) == (14 if share else 12)


def test_every_row_is_there_once_and_the_checksum_is_of_the_stated_bytes():
    arrays = data.canonical(X, Y, data.Source(20, 3, 0.7))
    rows = np.column_stack(
        [np.concatenate([arrays["X"], arrays["Xtest"]]), np.concatenate([arrays["y"], arrays["ytest"]])]
    )
    expected = np.column_stack([X, Y])
    np.testing.assert_array_equal(rows[np.lexsort(rows.T)], expected[np.lexsort(expected.T)])
    parts = (arrays[name] for name in ("X", "y", "Xtest", "ytest"))
    assert data.checksum(arrays) == plain_checksum(*parts)
    keys = [
        hashlib.sha256(row.astype("<f4").tobytes() + np.array(y, "<f8").tobytes()).digest()
        for row, y in zip(X, Y, strict=True)
    ]
    np.testing.assert_array_equal(arrays["X"][0], X[keys.index(min(keys))])


@pytest.mark.parametrize("name", ["X", "y", "Xtest", "ytest"])
def test_a_changed_number_changes_the_checksum(name):
    arrays = data.canonical(X, Y, data.Source(20, 3, 0.7))
    changed = arrays[name].copy()
    changed.flat[0] += 1
    assert data.checksum(arrays | {name: changed}) != data.checksum(arrays)


def test_a_drawn_set_is_the_beginning_of_the_whole():
    whole, drawn = (data.canonical(X, Y, data.Source(20, 3, 0.5, draw=draw)) for draw in (None, 10))
    np.testing.assert_array_equal(np.concatenate([drawn["X"], drawn["Xtest"]]), whole["X"])


def test_text_of_libsvm_and_csv_become_files_that_tasks_reads(host, tmp_path, monkeypatch, capsys):
    folder, address = host
    (folder / "a.bz2").write_bytes(bz2.compress(libsvm_text(X[:12], Y[:12] + 1)))
    (folder / "a.t").write_bytes(libsvm_text(X[12:], Y[12:] + 1))
    table = "\n".join(",".join(map(repr, [*map(float, row), float(t)])) for row, t in zip(X, Y + 0.5, strict=True))
    (folder / "r.csv.gz").write_bytes(gzip.compress(table.encode()))
    pixels = data.Source(20, 3, urls=(f"{address}/a.bz2", f"{address}/a.t"), first=12, shift=1.0, scale=2.0)
    sets = {
        "digit": pixels,
        "text": replace(pixels, sparse=True),
        "numbers": data.Source(20, 3, 0.7, urls=(f"{address}/r.csv.gz",), regression=True),
    }
    monkeypatch.setattr(data, "SETS", sets)
    assert data.main([str(tmp_path)]) == 0
    assert "there is none to compare with" in capsys.readouterr().out
    task = tasks.load(tmp_path, "digit")
    expected = ((X.astype(float) + 1) / 2).astype(np.float32)
    np.testing.assert_array_equal(np.sort(task.X, axis=0), np.sort(expected[:12], axis=0))
    assert sorted(task.ytest) == sorted(Y[12:])
    sparse = tasks.load(tmp_path, "text")
    np.testing.assert_array_equal(np.sort(sparse.X.toarray(), axis=0), np.sort(X[:12], axis=0))
    with np.load(tmp_path / "numbers.npz") as file:
        assert sorted([*file["y"], *file["ytest"]]) == sorted(Y + 0.5)
    # The same rows from the files that were just written, in another folder.
    again = tmp_path / "again"
    assert data.main([str(again), "--from", str(tmp_path)]) == 0
    for name in sets:
        assert data.checksum(data.stored(again, name)) == data.checksum(data.stored(tmp_path, name))


def test_a_wrong_checksum_is_refused_and_nothing_is_written(tmp_path, monkeypatch, capsys):
    np.savez(tmp_path / "set.npz", X=X[:12], y=Y[:12], Xtest=X[12:], ytest=Y[12:])
    source = data.Source(20, 3, 0.7, checksum="0" * 64, verified=True)
    monkeypatch.setattr(data, "SETS", {"set": source})
    assert data.main([str(tmp_path / "new"), "--from", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert "set is refused: its checksum is" in told
    assert "0" * 64 in told
    assert not (tmp_path / "new/set.npz").exists()
    # A copy that may be coded differently is kept, and the difference named.
    monkeypatch.setattr(data, "SETS", {"set": replace(source, verified=False)})
    assert data.main([str(tmp_path / "new"), "--from", str(tmp_path)]) == 0
    assert "the copy that the pages were measured with has 0000" in capsys.readouterr().out
    assert (tmp_path / "new/set.npz").exists()
    good = data.checksum(data.stored(tmp_path / "new", "set"))
    monkeypatch.setattr(data, "SETS", {"set": replace(source, checksum=good)})
    assert data.main([str(tmp_path / "new"), "--check"]) == 0


def test_hosts_and_contents_that_are_not_as_they_should_be_are_refused_in_words(host, tmp_path, monkeypatch, capsys):
    folder, address = host
    (folder / "bad.bz2").write_bytes(b"no archive")
    (folder / "few").write_bytes(libsvm_text(X[:5], Y[:5] + 1))
    sets = {
        "absent": data.Source(20, 3, urls=(f"{address}/absent",), first=12),
        "bad": data.Source(20, 3, urls=(f"{address}/bad.bz2",), first=12),
        "few": data.Source(20, 3, urls=(f"{address}/few",), first=12),
        "nowhere": data.Source(20, 3, urls=("http://127.0.0.1:9/x",), first=12),
    }
    monkeypatch.setattr(data, "SETS", sets)
    assert data.main([str(tmp_path)]) == 1
    told = dict(line.split(" is refused: ") for line in capsys.readouterr().err.splitlines())
    assert "404" in told["absent"]
    assert "cannot be decompressed" in told["bad"]
    assert told["few"] == "it has 5 rows of 3 features, not 20 of 3"
    assert "127.0.0.1:9 cannot be reached" in told["nowhere"]
    assert not list(tmp_path.glob("*.npz"))


def test_every_set_states_how_it_is_divided():
    for name, source in data.SETS.items():
        assert (source.share is None) != (source.first is None), name
        assert bool(source.openml) != bool(source.urls), name
        assert not source.verified or len(source.checksum) == 64
    # Pixels divided in either precision are the same numbers.
    grey = np.arange(256)
    np.testing.assert_array_equal((grey / 255.0).astype(np.float32), grey.astype(np.float32) / np.float32(255))
