"""Data larger than memory through one door: files, folders, memory maps and iterators, read by every machine alike."""

import numpy as np
import polars
import pytest
import scipy.sparse as sp

import mercer
from mercer.files.libsvm_text import write_libsvm
from mercer.files.stored_rows import StoredRows

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
y = (X[:, 0] + 0.3 * rng.normal(size=300) > 0).astype(int)
PARTS = [slice(0, 100), slice(100, 101), slice(101, 300)]


def as_map(folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r"), {}


def as_folder(folder):
    for k, some in enumerate(PARTS):
        np.save(folder / f"part{k}.npy", X[some])
    return folder, {}


def as_text(folder):
    for k, some in enumerate(PARTS):
        write_libsvm(X[some], y[some], folder / f"part{k}.svm")
    return folder, {}


def as_parquet(folder):
    for k, some in enumerate(PARTS):
        columns = {f"x{j}": X[some, j] for j in range(4)} | {"label": y[some]}
        polars.DataFrame(columns).write_parquet(folder / f"part{k}.parquet")
    return folder, {"target": "label"}


def as_chunks(folder):
    return [(X[some], y[some], np.ones(some.stop - some.start)) for some in PARTS], {}


def as_callable(folder):
    return lambda: iter([(sp.csr_array(X[some]), y[some]) for some in PARTS]), {}


SOURCES = [as_map, as_folder, as_text, as_parquet, as_chunks, as_callable]


@pytest.mark.parametrize("make", SOURCES)
def test_every_source_holds_the_same_rows(make, tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.files.stored_rows._TEXT_BYTES", 1000)
    monkeypatch.setattr("mercer.files.stored_rows._CHUNK_BYTES", 1000)
    monkeypatch.setattr("mercer.engines.processes.engine._CHUNK_BYTES", 1000)
    monkeypatch.setattr("mercer.engines.processes.engine._FEWEST_ROWS", 50)
    source, options = make(tmp_path)
    rows = mercer.stored_rows(source, **options)
    assert isinstance(rows, StoredRows)
    assert rows.X.shape == X.shape
    assert len(rows.X.sources) > 2
    dense = [part.toarray() if sp.issparse(part) else part for part in (one.load() for one in rows.X.sources)]
    np.testing.assert_array_equal(np.concatenate(dense), X)
    if make in (as_map, as_folder):
        assert rows.y is None
        with pytest.raises(ValueError, match="no targets"):
            next(iter(rows))
    else:
        np.testing.assert_array_equal(rows.y, y)
        ridge = mercer.NystromRLSClassifier(n_landmarks=40, random_state=0).fit(rows)
        assert ridge.converged_
        assert ridge.score(X, y) > 0.85
        assert mercer.PegasosSVC(random_state=0).fit_stream(rows, classes=[0, 1]).score(X, y) > 0.8
    folder = rows.X.scratch.path
    del rows
    assert not folder.exists()


def test_what_is_no_set_of_rows_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        mercer.stored_rows(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="holds no files"):
        mercer.stored_rows(tmp_path)
    np.save(tmp_path / "a.npy", X)
    (tmp_path / "b.svm").write_text("1 1:2\n")
    with pytest.raises(ValueError, match="LIBSVM texts and NumPy files; give one kind"):
        mercer.stored_rows(tmp_path)
    with pytest.raises(ValueError, match="float32 or float64"):
        mercer.stored_rows(np.arange(4))
    with pytest.raises(TypeError, match="give a path"):
        mercer.stored_rows(3)
    with pytest.raises(ValueError, match="holds no samples"):
        mercer.stored_rows([])
    with pytest.raises(ValueError, match="others have none"):
        mercer.stored_rows([(X, y), (X, None)])
    polars.DataFrame({"a": ["x", "y"], "b": [1, 2]}).write_parquet(tmp_path / "c.parquet")
    with pytest.raises(ValueError, match=r"column 'a' of .* holds no numbers"):
        mercer.stored_rows(tmp_path / "c.parquet", target="b")
    with pytest.raises(ValueError, match="no column 'label'"):
        mercer.stored_rows(tmp_path / "c.parquet", target="label")
