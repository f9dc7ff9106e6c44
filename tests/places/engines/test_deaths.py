"""Workers killed at random moments of thirty fits on Dask: the same model or a clear error, and nothing left."""

import gc
import os
import signal
import tempfile
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

import mercer
from mercer.places.chunked import gram as chunked_gram
from mercer.places.chunked.chunks import Chunks
from places.engines.cluster_claims import KERNEL

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.xdist_group("dask"),
    pytest.mark.timeout(3600),
]
N = 900
X = np.random.default_rng(0).normal(size=(N, 5))
y = (X[:, 0] + 0.4 * np.random.default_rng(1).normal(size=N) > 0).astype(int)
# No fit may take longer than this, however busy the machine is: it would be a hang.
SECONDS = 900


def plans(workers, calls, rng):
    """At which call of a fit how many processes die: one, three one after another, all but one; five times each."""
    for _ in range(5):
        yield {int(rng.integers(calls)): 1}
        yield dict.fromkeys(rng.choice(calls, 3, replace=False).tolist(), 1)
        yield {int(rng.integers(calls)): workers - 1}


class Attack:
    """Kills processes a moment after some calls began, so that a busy machine changes nothing."""

    def __init__(self, monkeypatch, pids, rng):
        self._pids, self._rng, self._ask = pids, rng, Chunks._run_and_count
        self.plan, self.calls, self.killed = {}, 0, 0
        monkeypatch.setattr(Chunks, "_run_and_count", lambda chunks, *given: self.counted(chunks, *given))

    def counted(self, chunks, *given):
        if count := self.plan.get(self.calls):
            timer = threading.Timer(self._rng.uniform(0, 0.05), self._kill, [count])
            timer.start()
        self.calls += 1
        try:
            return self._ask(chunks, *given)
        finally:
            if count:
                timer.join()

    def _kill(self, count):
        for pid in self._rng.permutation(self._pids())[:count].tolist():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.killed += 1

    def fit(self, rows, plan):
        """The certificate, or an error; in a thread, since a hang is what may happen."""
        self.plan, self.calls, found = plan, 0, []

        def fit():
            try:
                found.append(mercer.SVC(kernel=KERNEL, tol=1e-6).fit(rows, y).certificate_)
            except RuntimeError as error:
                found.append(error)

        begun, thread = time.monotonic(), threading.Thread(target=fit, daemon=True)
        thread.start()
        thread.join(SECONDS)
        assert found, "the fit hangs"
        print(f"{plan}: {self.calls} calls, {time.monotonic() - begun:.1f} s, {found[0]!r:.100}")
        return found[0]


def survive(attack, rows, workers, ready, left, rng):
    """Fits under every plan; how many ended with an error."""
    expected, errors = attack.fit(rows, {}), 0
    for plan in plans(workers, attack.calls, rng):
        ready()
        found = attack.fit(rows, plan)
        if isinstance(found, RuntimeError):
            errors += 1
            assert "no worker" in str(found) or "were lost" in str(found), found
        else:
            assert found == expected
        gc.collect()
        assert not left()
    assert attack.killed >= 20
    return errors


@pytest.mark.parametrize("workers", [2, 4])
def test_of_a_dask_cluster(workers, monkeypatch, tmp_path):
    distributed = pytest.importorskip("distributed")
    arrays = pytest.importorskip("dask.array")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(chunked_gram, "OUTER_ROWS", 200)
    made = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    with made, distributed.Client(made) as client:

        def ready():
            for second in range(SECONDS):
                here = len(client.scheduler_info()["workers"])
                if here == workers:
                    return
                if second % 30 == 20:  # one that was killed before it connected stays with the cluster, dead
                    made.scale(here)
                made.scale(workers)
                time.sleep(1)
            pytest.fail("the workers do not come back")

        def tasks():
            for _ in range(100):
                names = client.run_on_scheduler(lambda dask_scheduler: list(map(str, dask_scheduler.tasks)))
                if not any("mercer" in name for name in names):
                    return []
                time.sleep(0.3)
            return names

        def pids():
            return [one.pid for one in made.workers.values() if one.pid]

        rows = arrays.from_array(X, chunks=(N // 6, 5)).persist()
        rng = np.random.default_rng(workers)
        errors = survive(Attack(monkeypatch, pids, rng), rows, workers, ready, tasks, rng)
        print(f"{errors} of 15 fits ended with an error")
    assert not any(tmp_path.glob("mercer-*"))
