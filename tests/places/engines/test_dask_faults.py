"""Faults of a Dask cluster besides deaths: rows that change, workers that hang or lack memory, two clusters."""

import os
import signal
import time

import numpy as np
import pytest

import mercer
from mercer.places.chunked import gram as chunked_gram
from mercer.solvers.dual import certified
from places.engines.cluster_claims import KERNEL, X, y

distributed = pytest.importorskip("distributed", reason="Dask is not installed: python -m pip install 'mercer[dask]'")
dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402  # after the skip without Dask

from mercer.places.chunked.dask import ENGINE  # noqa: E402  # after the skip without Dask
from places.engines.test_dask import LAYOUTS, drawn, lately, placed  # noqa: E402  # after the skip without Dask

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("dask"), pytest.mark.thorough]


@pytest.fixture(scope="module")
def two_workers():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as made:
        yield made


@pytest.fixture(autouse=True)
def client(two_workers, monkeypatch):
    monkeypatch.setattr(chunked_gram, "OUTER_ROWS", 100)
    with distributed.Client(two_workers) as client:
        yield client


def test_rows_that_change_when_they_are_made_again_are_refused(client):
    """The scheduler makes chunks again that were lost; targets and proofs belong to the rows of the start."""
    parts = [dask.delayed(drawn, pure=False)(pure) for pure in (True, False)]
    rows = da.concatenate([da.from_delayed(part, (200, 5), np.float64) for part in parts])
    samples = ENGINE.samples(rows)
    assert samples.hash().shape == (400,)
    client.restart()
    assert samples.chunks.map(lately, [(), None], (0.0,))
    with pytest.raises(RuntimeError, match="computed again with other rows than it had when the fit began"):
        mercer.SVC(kernel=KERNEL).fit(samples, y)


@pytest.mark.skipif(os.name != "posix", reason="signals between processes as POSIX has them")
@pytest.mark.parametrize("at", ["samples", "certificate"])
def test_max_time_ends_a_fit_with_a_stuck_worker(at, two_workers, client, monkeypatch):
    """While the samples are looked at first, and in the certificate's pass."""
    monkeypatch.setattr("mercer.estimators.fitting.pipeline.fit._LEAST_GRACE", 1.0)
    rows, pids = placed(X, LAYOUTS["small"]).persist(), [one.pid for one in two_workers.workers.values()]
    distributed.wait(rows)
    stopped, certify = [], certified.certify_dual

    def stop(*given):
        stopped.append(os.kill(pids[0], signal.SIGSTOP))
        return certify(*given)

    monkeypatch.setattr(certified, "certify_dual", stop)
    try:
        if at == "samples":
            os.kill(pids[0], signal.SIGSTOP)
        begun = time.monotonic()
        with pytest.raises(TimeoutError, match="workers have not answered"):
            mercer.SVC(kernel=KERNEL, max_time=2.0).fit(rows, y)
        assert time.monotonic() - begun < 15
        assert bool(stopped) == (at == "certificate")
    finally:
        os.kill(pids[0], signal.SIGCONT)
    monkeypatch.setattr(certified, "certify_dual", certify)
    assert mercer.SVC(kernel=KERNEL).fit(rows, y).converged_


def test_an_array_on_another_cluster_is_told(client):
    rows = placed(X).persist()
    made = distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None)
    with made, distributed.Client(made):
        with pytest.raises(ValueError, match=r"X was persisted on the cluster at .*as_current"):
            mercer.SVC(kernel=KERNEL).fit(rows, y)
        with client.as_current():
            assert mercer.SVC(kernel=KERNEL).fit(rows, y).converged_


def test_workers_that_lack_memory_end_a_fit_after_two_rounds():
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit="400MB", dashboard_address=None
        ) as made,
        distributed.Client(made),
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
    ):
        rows = ENGINE.samples(placed(X, (400,)))
        with pytest.raises(RuntimeError, match="for lack of memory repeatedly during one step"):
            rows.chunks.map(greedy, [()], ())


def greedy(chunk):
    held = []
    for _ in range(100):
        held.append(np.ones(5_000_000))
        time.sleep(0.05)
    return len(held)
