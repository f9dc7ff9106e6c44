"""Rows in files, computed in this process chunk by chunk: contracts, machines, threads, memory, and what is left."""

import gc
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import tracemalloc

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer
from contracts.gram_contract import check_gram_contract
from contracts.samples_contract import check_samples_contract
from mercer.places import gram_for
from mercer.places.chunked import gram as chunked_gram
from mercer.places.chunked.stored import ENGINE
from mercer.places.chunked.stored.engine import FileRows
from mercer.places.chunked.stored.files import MappedArray, Scratch
from places.engines.cluster_claims import GIVEN, KERNEL, MACHINES, X, check_machine, check_reference, cuts, y
from test_architecture import CELLS

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def small_working_sets(monkeypatch):
    monkeypatch.setattr(chunked_gram, "OUTER_ROWS", 100)


def stored(X, sizes=(90, 0, 64)):
    """Rows in files, in chunks of these sizes, again and again."""
    scratch = Scratch()
    whole = scratch.store(X)
    return FileRows([whole.part(*cut) for cut in cuts(X.shape[0], sizes)], scratch)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ("SVC, pairs", "LinearSVC", "chunking") else pytest.mark.thorough)
        for name in MACHINES
    ],
)
def test_machines_are_those_of_this_machine(name):
    check_machine(name, lambda machine, X, y: machine.fit(stored(X), y))


@pytest.mark.thorough
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize(("name", "kind"), CELLS)
def test_every_machine_reaches_the_reference_value(name, kind, given, monkeypatch):
    def fit(machine, X, y, weight, sizes):
        return machine.fit(stored(X, sizes), y, sample_weight=weight)

    monkeypatch.setattr(chunked_gram, "OUTER_ROWS", 16)
    check_reference(name, kind, given, fit)


def test_contracts():
    rows = X[:70]
    check_samples_contract(ENGINE.samples(stored(rows, (30,))), rows)
    check_gram_contract(gram_for(KERNEL, ENGINE.samples(stored(rows, (30,)))), KERNEL(rows), 1e-12)
    check_samples_contract(ENGINE.samples(rows), rows)  # an array that was given beside rows in files


def test_a_memory_map_stays_where_it_is(tmp_path):
    np.save(tmp_path / "X.npy", X)
    rows = mercer.stored_rows(np.load(tmp_path / "X.npy", mmap_mode="r")[50:])
    assert not any(rows.X.scratch.path.iterdir())
    np.testing.assert_array_equal(ENGINE.samples(rows.X).host(), X[50:])
    rows = mercer.stored_rows(tmp_path / "X.npy")
    here, found = mercer.SVC(kernel=KERNEL).fit(X, y), mercer.SVC(kernel=KERNEL).fit(rows.X, y)
    np.testing.assert_array_equal(found.predict(rows.X), here.predict(X))
    assert abs(found.certificate_.dual - here.certificate_.dual) <= found.certificate_.gap + here.certificate_.gap


def test_threads_change_no_bit():
    rows = stored(X)
    for name in ("SVC", "SVR", "NystromRLS"):
        machine, target = MACHINES[name]
        one, two = (machine.set_params(n_jobs=n).fit(rows, target) for n in (1, 2))
        assert one.certificate_ == two.certificate_


@pytest.mark.parametrize("machine", [mercer.SVC(kernel=KERNEL), mercer.RLSRegressor(kernel="linear")], ids=str)
def test_a_fit_needs_memory_for_few_chunks(machine, monkeypatch):
    """Chunks of 1 MB, working sets of 100 rows and a few numbers per sample, where X takes 32 MB."""
    monkeypatch.setattr("mercer.files.stored_rows._CHUNK_BYTES", 1 << 20)
    d, rng = 100, np.random.default_rng(0)
    target = rng.permutation(np.repeat([-1.0, 1.0], 20_000))
    many = rng.normal(size=(40_000, d)) / 10
    many[:, 0] += target
    rows, size = mercer.stored_rows(many), many.nbytes
    del many
    tracemalloc.start()
    try:
        assert machine.fit(rows.X, target).converged_
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size / 2


def test_an_empty_file_is_no_file(tmp_path):
    np.save(tmp_path / "1.npy", X[:0])
    with pytest.raises(ValueError, match="holds no samples"):
        mercer.stored_rows(tmp_path)
    np.save(tmp_path / "2.npy", X)
    assert mercer.stored_rows(tmp_path).X.shape == X.shape
    assert MappedArray(str(tmp_path / "1.npy"), "<f8", 128, (0, 5)).load().shape == (0, 5)


def test_errors_and_limits_end_a_fit_and_leave_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rng = np.random.default_rng(1)
    many = rng.normal(size=(3000, 8))

    def wrong(A, B):
        raise KeyError("in the kernel")

    with pytest.raises(KeyError, match="in the kernel"):
        mercer.SVC(kernel=wrong).fit(stored(X), y)
    model, target = mercer.SVC(C=1e4, tol=1e-12, max_time=1.0), many[:, 0] * many[:, 1] > rng.normal(size=3000)
    begun = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model.fit(stored(many, (1000,)), target)
    assert time.monotonic() - begun < 20
    assert model.certificate_.gap > 0
    del model
    gc.collect()
    assert not any(tmp_path.iterdir())


def test_what_is_refused():
    for device in ("processes", "processes:4"):
        with (
            mercer.config_context(device=device),
            pytest.raises(ValueError, match=r"mercer\.stored_rows.*device='dask'"),
        ):
            mercer.SVC().fit(X, y)
    with pytest.raises(TypeError, match="strings cannot be combined with rows in files"):
        ENGINE.samples(["a", "b"])


@pytest.mark.thorough
@pytest.mark.alone
@pytest.mark.skipif(os.name != "posix", reason="signals between processes as POSIX has them")
def test_ctrl_c_ends_a_fit_and_its_copies(tmp_path):
    child = textwrap.dedent(
        """
        import numpy as np, mercer
        from mercer.places.chunked import gram
        gram.OUTER_ROWS = 500
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(6000, 8)), rng.integers(2, size=6000)
        model = mercer.SVC(C=1e4, tol=1e-12)
        rows, few = mercer.stored_rows(X), mercer.stored_rows(X[:100])
        try:
            print("fitting", flush=True)
            model.fit(rows.X, y)
        except KeyboardInterrupt:
            print(hasattr(model, "certificate_"), flush=True)
        print(mercer.SVC().fit(few.X, y[:100]).converged_, flush=True)
        """
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout.readline() == "fitting\n"
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "False\n"
        assert process.stdout.readline() == "True\n"
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()
    assert not any(tmp_path.glob("mercer-*"))
