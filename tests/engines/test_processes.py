"""A pool of processes as an engine: contracts, machines, deaths, and what is left behind."""

import gc
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer
from contracts.gram_contract import check_gram_contract
from contracts.samples_contract import check_samples_contract
from engines.cluster_claims import GIVEN, KERNEL, MACHINES, X, check_machine, check_reference, cuts, killing, y
from mercer.engines.chunked import gram as chunked_gram
from mercer.engines.processes import ENGINE, engine
from mercer.engines.processes.pool import Scratch
from mercer.gram import gram_for
from test_house import CELLS

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def two_processes(monkeypatch):
    monkeypatch.setattr(chunked_gram, "OUTER_ROWS", 100)
    monkeypatch.setattr(engine, "_FEWEST_ROWS", 64)
    with mercer.config_context(device="processes:2"):
        yield


@pytest.fixture(autouse=True, scope="module")
def ended():
    yield
    ENGINE.close()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ("SVC, pairs", "LinearSVC", "chunking") else pytest.mark.thorough)
        for name in MACHINES
    ],
)
def test_machines_are_those_of_this_machine(name):
    check_machine(name, lambda machine, X, y: machine.fit(X, y))


@pytest.mark.thorough
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize(("name", "kind"), CELLS)
def test_every_machine_reaches_the_reference_value(name, kind, given, monkeypatch):
    def fit(machine, X, y, weight, sizes):
        scratch = Scratch()
        whole = scratch.stored(X)
        rows = engine.FileRows([whole.part(*cut) for cut in cuts(len(y), sizes)], scratch)
        return machine.fit(rows, y, sample_weight=weight)

    monkeypatch.setattr(chunked_gram, "OUTER_ROWS", 16)
    check_reference(name, kind, given, fit)


def test_contracts():
    rows = X[:70]
    check_samples_contract(ENGINE.samples(rows), rows)
    check_gram_contract(gram_for(KERNEL, ENGINE.samples(rows)), KERNEL(rows), 1e-12)


def test_a_memory_map_stays_where_it_is(tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    placed = ENGINE.samples(mapped[50:])
    assert not any(placed.chunks._scratch.path.iterdir())
    np.testing.assert_array_equal(placed.host(), X[50:])
    found = mercer.SVC(kernel=KERNEL).fit(mapped, y)
    rows = mercer.stored_rows(tmp_path / "X.npy")
    with mercer.config_context(device="cpu"):
        here, again = mercer.SVC(kernel=KERNEL).fit(X, y), mercer.SVC(kernel=KERNEL).fit(rows.X, y)
        np.testing.assert_array_equal(again.predict(rows.X), here.predict(X))
    assert found.certificate_ == again.certificate_
    assert abs(found.certificate_.dual - here.certificate_.dual) <= found.certificate_.gap + here.certificate_.gap


def test_a_process_that_dies_is_replaced(monkeypatch):
    monkeypatch.setattr(chunked_gram, "OUTER_ROWS", 40)
    pool, before = ENGINE.pool(), mercer.SVC(kernel=KERNEL, tol=1e-6).fit(X, y)
    end = killing(lambda: [w._process.pid for w in pool.workers if w._process is not None], 0.02, count=3)
    after = mercer.SVC(kernel=KERNEL, tol=1e-6).fit(X, y)
    assert end()
    assert after.certificate_ == before.certificate_


@pytest.mark.thorough
def test_what_kills_every_process_is_told(monkeypatch):
    monkeypatch.setattr("mercer.engines.processes.pool._DEATHS", 2)

    def deadly(A, B):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(RuntimeError, match=r"died 2 times on one chunk; .* use smaller chunks"):
        gram_for(mercer.kernels.FromFunction(deadly).bind(X), ENGINE.samples(X)).product(np.ones(len(X)))


def test_errors_and_limits_end_a_fit_and_leave_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rng = np.random.default_rng(1)
    many = rng.normal(size=(3000, 8))

    def wrong(A, B):
        raise KeyError("in the kernel")

    with pytest.raises(KeyError, match="in the kernel"):
        mercer.SVC(kernel=wrong).fit(X, y)
    begun = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = mercer.SVC(C=1e4, tol=1e-12, max_time=2.0).fit(many, many[:, 0] * many[:, 1] > rng.normal(size=3000))
    assert time.monotonic() - begun < 20
    assert model.certificate_.gap > 0
    del model
    gc.collect()
    assert not any(tmp_path.iterdir())


def test_what_is_refused():
    with mercer.config_context(device="processes:x"), pytest.raises(ValueError, match="how many processes"):
        mercer.SVC().fit(X, y)
    with pytest.raises(TypeError, match="strings are not computed in processes"):
        ENGINE.samples(["a", "b"])


@pytest.mark.thorough
@pytest.mark.alone
@pytest.mark.skipif(os.name != "posix", reason="signals between processes as POSIX has them")
def test_ctrl_c_ends_a_fit_and_its_processes(tmp_path):
    child = textwrap.dedent(
        """
        import numpy as np, mercer
        from mercer.engines.chunked import gram
        gram.OUTER_ROWS = 500
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(6000, 8)), rng.integers(2, size=6000)
        model = mercer.SVC(C=1e4, tol=1e-12)
        with mercer.config_context(device="processes:2"):
            mercer.SVC().fit(X[:100], y[:100])
            try:
                print("fitting", flush=True)
                model.fit(X, y)
            except KeyboardInterrupt:
                print(hasattr(model, "certificate_"), flush=True)
            print(mercer.SVC().fit(X[:100], y[:100]).converged_, flush=True)
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
