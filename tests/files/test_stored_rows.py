"""Data larger than memory through one door: files, folders, memory maps and iterators, read by every machine alike."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import warnings

import numpy as np
import pandas
import polars
import pytest
import scipy.sparse as sp

import mercer
from contracts.names_contract import check_names_contract
from mercer.cli.main import main
from mercer.files.libsvm_text import write_libsvm
from mercer.files.stored_rows import StoredRows
from places.engines.inline import in_chunks

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


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("make", SOURCES)
def test_every_source_holds_the_same_rows(make, tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.files.stored_rows._TEXT_BYTES", 1000)
    monkeypatch.setattr("mercer.files.stored_rows._CHUNK_BYTES", 1000)
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
    with pytest.raises(ValueError, match="contains no files"):
        mercer.stored_rows(tmp_path)
    np.save(tmp_path / "a.npy", X)
    (tmp_path / "b.svm").write_text("1 1:2\n")
    with pytest.raises(ValueError, match="LIBSVM texts and NumPy files; it must contain one kind"):
        mercer.stored_rows(tmp_path)
    with pytest.raises(ValueError, match="float32, float64 or integers"):
        mercer.stored_rows(np.arange(4))
    with pytest.raises(TypeError, match="give a path"):
        mercer.stored_rows(3)
    with pytest.raises(ValueError, match="holds no samples"):
        mercer.stored_rows([])
    with pytest.raises(ValueError, match="others do not"):
        mercer.stored_rows([(X, y), (X, None)])
    polars.DataFrame({"a": ["x", "y"], "b": [1, 2]}).write_parquet(tmp_path / "c.parquet")
    with pytest.raises(ValueError, match=r"column 'a' of .* holds String, not numbers"):
        mercer.stored_rows(tmp_path / "c.parquet", target="b")
    with pytest.raises(ValueError, match="no column 'label'"):
        mercer.stored_rows(tmp_path / "c.parquet", target="label")


# --- names of columns -------------------------------------------------------------------------------------------------

FRAMES = {
    "pandas": lambda rows, names: pandas.DataFrame(rows, columns=names),
    "polars": lambda rows, names: polars.DataFrame(rows, schema=names),
    "Arrow": lambda rows, names: polars.DataFrame(rows, schema=names).to_arrow(),
}
NAMES, OTHER = list("abcd"), [2, 0, 3, 1]


def write_parts(folder, order=range(4), names=NAMES, more=()):
    """Two Parquet files, the second with its columns in another order, under other names, or with more of them."""
    folder.mkdir(exist_ok=True)
    first = polars.DataFrame(X[:150], schema=NAMES).with_columns(label=polars.Series(y[:150]))
    second = polars.DataFrame(X[150:][:, order], schema=[names[k] for k in order])
    second = second.with_columns(polars.lit(1.0).alias(name) for name in more)
    first.write_parquet(folder / "part.2.parquet")
    second.with_columns(label=polars.Series(y[150:])).write_parquet(folder / "part.10.parquet")
    return folder


def whole(rows):
    return np.concatenate([one.load() for one in rows.X.sources])


def test_columns_of_files_are_found_by_name(tmp_path):
    rows = mercer.stored_rows(write_parts(tmp_path / "rows", OTHER), target="label")
    assert rows.names == tuple(NAMES)
    np.testing.assert_array_equal(whole(rows), X)  # part.2 before part.10, both in the order of the first
    np.testing.assert_array_equal(rows.y, y)


@pytest.mark.parametrize(
    ("given", "told"),
    [({"names": list("zbcd")}, "lacks 'a' and also has 'z'"), ({"more": ["e"]}, "also has 'e'")],
)
def test_other_columns_are_refused_by_name(given, told, tmp_path):
    with pytest.raises(ValueError, match=rf"columns of .*part.10.parquet' are not those of .*part.2.parquet'.* {told}"):
        mercer.stored_rows(write_parts(tmp_path / "rows", **given), target="label")


@pytest.mark.parametrize("kind", FRAMES)
def test_chunks_that_are_frames_have_names(kind):
    frame = FRAMES[kind]
    first, second = (frame(X[:150], NAMES), y[:150]), (frame(X[150:][:, OTHER], [NAMES[k] for k in OTHER]), y[150:])
    rows = mercer.stored_rows(iter([first, second]))
    np.testing.assert_array_equal(whole(rows), X)
    model = mercer.NystromRLSClassifier(n_landmarks=40, random_state=0).fit(rows)
    stream = mercer.PegasosSVC(random_state=0).fit_stream(rows, classes=[0, 1])
    for fitted in (model, stream):
        assert list(fitted.feature_names_in_) == NAMES
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fitted.predict(frame(X, NAMES))
        with pytest.raises(ValueError, match="feature names should match"):
            fitted.predict(second[0])
    with pytest.raises(ValueError, match="chunk 1 are not those of chunk 0: it lacks 'a' and also has 'z'"):
        mercer.stored_rows([first, (frame(X, list("zbcd")), y)])
    with pytest.raises(ValueError, match="chunk 1 has no column names, but the chunks before it have"):
        mercer.stored_rows([first, (X, y)])


def as_parquet_rows(rows, names):
    with tempfile.TemporaryDirectory() as folder:
        for k, some in enumerate((slice(0, 120), slice(120, None))):
            polars.DataFrame(rows[some], schema=names).write_parquet(f"{folder}/{k}.parquet")
        return mercer.stored_rows(folder).X


@pytest.mark.parametrize("place", [*FRAMES.values(), as_parquet_rows], ids=[*FRAMES, "stored rows"])
def test_names_keep_their_contract(place):
    check_names_contract(place, X, y)


@pytest.mark.parametrize("place", FRAMES.values(), ids=FRAMES)
def test_names_of_frames_keep_their_contract_in_chunks(place):
    with in_chunks((70, 0, 100)):
        check_names_contract(place, X, y)


def test_models_of_folders_know_their_columns(tmp_path, capsys):
    folder = write_parts(tmp_path / "rows", OTHER)
    rows = mercer.stored_rows(folder, target="label")
    model, here = mercer.SVC(gamma=0.5).fit(rows.X, rows.y), mercer.SVC(gamma=0.5).fit(X, y)
    assert list(model.feature_names_in_) == NAMES
    table = pandas.DataFrame(X, columns=NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.predict(table), here.predict(X))
        np.testing.assert_array_equal(model.predict(rows.X), here.predict(X))
    other = mercer.SVC(gamma=0.5).fit(table[list("bacd")], y)
    for fitted, given in ((model, table[list("bacd")]), (other, rows.X)):
        with pytest.raises(ValueError, match="feature names should match"):
            fitted.predict(given)
    # On the terminal columns are found by name, whatever else a table holds.
    assert main(["train", str(folder), str(tmp_path / "m.mercer"), "--target", "label", "-g", "0.5", "-q"]) == 0
    for columns in (NAMES, ["d", "label", "b", "more", "a", "c"]):
        table.assign(label=y, more="x")[columns].to_csv(tmp_path / "new.csv", index=False)
        assert main(["predict", *(str(tmp_path / name) for name in ("new.csv", "m.mercer", "out.csv"))]) == 0
        np.testing.assert_array_equal(pandas.read_csv(tmp_path / "out.csv")["predicted"], here.predict(X))
    table[["a", "b", "d"]].to_csv(tmp_path / "new.csv", index=False)
    assert main(["predict", str(tmp_path / "new.csv"), str(tmp_path / "m.mercer")]) != 0
    assert "lacks the column 'c'" in capsys.readouterr().err


# --- numbers that are no float64, and folders -------------------------------------------------------------------------

LARGE = 2**53 + 1
REFUSED = {
    "integers": np.array([[LARGE, 1]]),
    "unsigned": np.array([[np.iinfo(np.uint64).max, 1]], dtype=np.uint64),
    "complex": np.array([[1 + 2j, 1]]),
    "longdouble": np.array([[1.0, 2.0]], dtype=np.longdouble),
    "half": np.array([[1.0, 2.0]], dtype=np.float16),
    "objects": np.array([[1.0, "2"]], dtype=object),
    "dates": np.array([["2020-01-01", "2020-01-02"]], dtype="M8[D]"),
    "sparse integers": sp.csr_array(np.array([[LARGE, 1]])),
    "sparse complex": sp.csr_array(np.array([[1 + 2j, 1]])),
    "masked": np.ma.masked_array([[1.0, 2.0]], mask=[[True, False]]),
    "pandas": pandas.DataFrame({"a": [LARGE], "b": [1]}),
    "pandas, nullable": pandas.DataFrame({"a": [LARGE, None], "b": [1, 2]}, dtype="Int64"),
    "polars": polars.DataFrame({"a": [LARGE, None], "b": [1, 2]}),
    "text": polars.DataFrame({"a": ["1"], "b": [1]}),
    "one dimension": np.ones(3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_float64_would_round_or_cut_is_refused(name, tmp_path):
    refused = r"beyond 2\*\*53|chunk 0 holds|column 'a' of chunk 0 holds|chunk 0 must be a matrix"
    with pytest.raises(ValueError, match=refused):
        mercer.stored_rows([(REFUSED[name], np.zeros(1))])
    if name == "polars":
        REFUSED[name].write_parquet(tmp_path / "a.parquet")
        with pytest.raises(ValueError, match=r"column 'a' of .* holds integers beyond 2\*\*53"):
            mercer.stored_rows(tmp_path)
    if name in ("complex", "integers", "half"):
        np.save(tmp_path / "a.npy", REFUSED[name])
        with pytest.raises(ValueError, match=r"a.npy holds"):
            mercer.stored_rows(tmp_path)


def test_numbers_of_other_types_are_converted(tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.files.stored_rows._CHUNK_BYTES", 1000)
    whole_numbers = np.round(100 * X)
    for k, dtype in enumerate(("i4", "u1", ">f8", "f4", "f8", "?")):
        values = np.abs(whole_numbers).clip(0, 1 if dtype == "?" else 200).astype(dtype)
        np.save(tmp_path / "a.npy", values)
        np.testing.assert_array_equal(whole(mercer.stored_rows(tmp_path)), values.astype(np.float64))
        rows = mercer.stored_rows([(values[:70], y[:70]), (values[70:].astype(np.float64), y[70:])])
        np.testing.assert_array_equal(whole(rows), values.astype(np.float64))
        assert {one.load().dtype for one in rows.X.sources} == {np.dtype(np.float64)}, (k, dtype)
    (tmp_path / "a.npy").unlink()
    flags = polars.DataFrame({"a": X[:, 0] > 0, "b": [None, *X[1:, 1]], "c": whole_numbers[:, 2].astype(int)})
    flags.write_parquet(tmp_path / "b.parquet")
    found, truth = whole(mercer.stored_rows(tmp_path)), np.column_stack([X[:, 0] > 0, X[:, 1], whole_numbers[:, 2]])
    truth[0, 1] = np.nan
    np.testing.assert_array_equal(found, truth)


def test_folders_in_folders_are_refused(tmp_path):
    write_parts(tmp_path / "rows")
    (tmp_path / "rows" / "_SUCCESS").touch()
    (tmp_path / "rows" / ".crc").mkdir()
    assert mercer.stored_rows(tmp_path / "rows", target="label").X.shape == X.shape
    write_parts(tmp_path / "rows" / "k=1")
    with pytest.raises(ValueError, match=r"contains the folder 'k=1', whose files would be ignored.*scan_parquet"):
        mercer.stored_rows(tmp_path / "rows", target="label")


# --- copies in temporary files ----------------------------------------------------------------------------------------

CHILD = """
    import sys, numpy as np, mercer
    rows = mercer.stored_rows((np.ones((100, 50)), np.zeros(100)) for _ in range(20))
    print(rows.X.scratch.path, flush=True)
    sys.stdin.read()
"""


def start(folder, **options):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD)],
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@pytest.mark.thorough
@pytest.mark.skipif(os.name != "posix", reason="signals and locks as POSIX has them")
def test_copies_of_processes_that_were_killed_are_removed_by_the_next(tmp_path):
    """SIGTERM, as `docker stop` sends it, leaves no time to; a process that lives keeps its own."""
    first, second = start(tmp_path), start(tmp_path)
    try:
        folders = [child.stdout.readline().strip() for child in (first, second)]
        first.send_signal(signal.SIGTERM)
        first.communicate()
        assert sorted(map(str, tmp_path.iterdir())) == sorted(folders)
        (tmp_path / "mercer-rows-of-somebody.txt").touch()
        third = start(tmp_path)
        own = third.stdout.readline().strip()
        assert {one.name for one in tmp_path.iterdir() if one.is_dir()} == {
            os.path.basename(k) for k in (own, folders[1])
        }
        third.communicate("")
        assert {one.name for one in tmp_path.iterdir() if one.is_dir()} == {os.path.basename(folders[1])}
    finally:
        for child in (first, second):
            child.kill()
            child.communicate()


def test_a_disk_that_is_full_is_told(tmp_path):
    resource = pytest.importorskip("resource", reason="limits of files as POSIX has them")
    child = start(tmp_path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)))
    told = child.communicate("")[1].splitlines()[-1]
    assert "OSError" in told
    assert f"a copy of rows, 0.04 MB, could not be written to '{tmp_path}/mercer-rows-" in told
    assert "TMPDIR" in told
    assert not any(tmp_path.iterdir())


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_leaves_copies_to_its_parent():
    code = """
        import os, signal, numpy as np, mercer
        X = np.random.default_rng(0).normal(size=(80, 3))
        kept = mercer.stored_rows([(X, X[:, 0])])
        def fit():
            return mercer.SVC(gamma=0.5).fit(kept.X, X[:, 0] > 0).certificate_
        before, child = fit(), os.fork()
        if child == 0:
            signal.alarm(60)
            raise SystemExit(0 if fit() == before else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert kept.X.scratch.path.exists()  # the child has left it alone
        assert fit() == before
    """
    subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], check=True, timeout=120)
