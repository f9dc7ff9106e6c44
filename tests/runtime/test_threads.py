"""The number of threads, and the pool under forks and many callers."""

import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
import threadpoolctl

from mercer import _core
from mercer.runtime.threads import effective_n_threads
from reference.child import core_only, run_python


@pytest.fixture(autouse=True)
def four_processors(monkeypatch):
    """The rules do not depend on the machine: let it have four processors and no limits."""
    monkeypatch.setattr(joblib, "cpu_count", lambda: 4)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("MERCER_NUM_THREADS", raising=False)
    before = _core.get_num_threads()
    _core.set_num_threads(64)
    yield
    _core.set_num_threads(before)


@pytest.mark.parametrize(
    ("n_jobs", "threads"),
    [(None, 4), (1, 1), (3, 3), (4, 4), (5, 4), (1000, 4), (-1, 4), (-2, 3), (-4, 1), (-5, 1), (-99, 1)],
)
def test_n_jobs(n_jobs, threads):
    assert effective_n_threads(n_jobs) == threads
    if n_jobs is not None:
        assert effective_n_threads(np.int64(n_jobs)) == threads


@pytest.mark.parametrize("n_jobs", [0, 1.0, 2.5, "all", True, [1]])
def test_n_jobs_that_mean_nothing(n_jobs):
    with pytest.raises(ValueError, match=r"n_jobs=.* use None, a positive number, or -1"):
        effective_n_threads(n_jobs)


@pytest.mark.parametrize(
    ("omp", "own", "threads"),
    [
        ("2", None, 2),
        ("9", None, 4),
        ("3,2", None, 3),
        ("many", None, 4),
        ("0", None, 4),
        ("1", "3", 3),
        (None, "2", 2),
    ],
)
def test_environment(monkeypatch, omp, own, threads):
    for name, value in (("OMP_NUM_THREADS", omp), ("MERCER_NUM_THREADS", own)):
        if value is not None:
            monkeypatch.setenv(name, value)
    assert effective_n_threads(None) == threads
    assert effective_n_threads(-1) == 4


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5"])
def test_our_own_variable_must_make_sense(monkeypatch, value):
    monkeypatch.setenv("MERCER_NUM_THREADS", value)
    with pytest.raises(ValueError, match=f"MERCER_NUM_THREADS='{value}' is not a positive whole number"):
        effective_n_threads(None)


def test_set_num_threads():
    _core.set_num_threads(2)
    assert _core.get_num_threads() == 2
    assert effective_n_threads(None) == 2
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        _core.set_num_threads(0)
    with pytest.raises(TypeError):
        _core.set_num_threads(1.5)


def test_threadpoolctl_sees_us_and_limits_us():
    ours = [lib for lib in threadpoolctl.threadpool_info() if lib["internal_api"] == "mercer"]
    assert len(ours) == 1
    assert os.path.samefile(ours[0]["filepath"], _core.__file__)
    assert (ours[0]["user_api"], ours[0]["num_threads"]) == ("blas", 64)
    for limit in ({"limits": 1}, {"limits": 1, "user_api": "blas"}, {"limits": {"blas": 1}}):
        with threadpoolctl.threadpool_limits(**limit):
            assert _core.get_num_threads() == 1
            assert effective_n_threads(None) == 1
            assert effective_n_threads(2) == 2
        assert _core.get_num_threads() == 64
    with threadpoolctl.threadpool_limits(limits=1, user_api="openmp"):
        assert effective_n_threads(None) == 4


def run_core(code, timeout=60):
    return run_python(code, timeout=timeout, env=core_only())


def test_other_libraries_called_core_are_not_ours(tmp_path):
    """numpy, for one, has had a _core for years; a file of that name without our symbols must not match."""
    compiled = tmp_path / "_core_of_somebody.so"
    shutil.copy(np.random.mtrand.__file__, compiled)
    code = f"""
        import ctypes, threadpoolctl
        ctypes.CDLL({str(compiled)!r})
        import mercer.runtime.threads
        print(sum(lib["internal_api"] == "mercer" for lib in threadpoolctl.threadpool_info()))
        with threadpoolctl.threadpool_limits(1):
            pass
    """
    assert run_core(code).split() == ["1"]


def test_a_worker_of_joblib_takes_its_share():
    code = """
        import joblib
        from mercer.runtime.threads import effective_n_threads
        cpus = joblib.cpu_count()
        print(cpus, *joblib.Parallel(n_jobs=2)(joblib.delayed(effective_n_threads)(None) for _ in range(4)))
    """
    cpus, *threads = map(int, run_core(code).split())
    assert threads == [max(1, cpus // 2)] * 4


def test_many_callers_share_the_pool():
    X = np.random.default_rng(0).normal(size=(3000, 40))
    truth = _core.hash_rows(X, 1)
    with ThreadPoolExecutor(8) as callers:
        for hashes in callers.map(lambda _: _core.hash_rows(X, 3), range(64)):
            np.testing.assert_array_equal(hashes, truth)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_starts_anew():
    code = """
        import os, threading, time
        import numpy as np
        from mercer import _core
        X = np.ones((20000, 20))
        truth = _core.hash_rows(X, 4)
        busy = threading.Thread(target=lambda: [_core.hash_rows(X, 4) for _ in range(200)])
        busy.start()
        for _ in range(10):
            child = os.fork()
            if child == 0:
                os._exit(0 if (_core.hash_rows(X, 4) == truth).all() else 1)
            until = time.monotonic() + 10
            while (done := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < until:
                time.sleep(0.005)
            if done[0] == 0:
                os.kill(child, 9)
            print(done[0] == child and done[1] == 0)
        busy.join()
    """
    assert run_core(code).split() == ["True"] * 10


@pytest.mark.skipif(not hasattr(signal, "SIGINT"), reason="needs signals")
@pytest.mark.alone
def test_ctrl_c_stops_all_threads():
    code = """
        import os, signal, threading, time
        import numpy as np
        from mercer import _core
        X = np.lib.stride_tricks.as_strided(np.ones(1000), (10**9, 1000), (0, 8), writeable=False)
        sent = []
        def interrupt():
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(0.3, interrupt).start()
        try:
            _core.hash_rows(X[:10**7], 2)
        except KeyboardInterrupt:
            print(time.perf_counter() - sent[0])
    """
    assert float(run_core(code)) < 0.2


def test_the_interpreter_exits_while_a_thread_is_at_work():
    code = """
        import threading
        import numpy as np
        from mercer import _core
        X = np.lib.stride_tricks.as_strided(np.ones(1000), (10**7, 1000), (0, 8), writeable=False)
        threading.Thread(target=_core.hash_rows, args=(X, 2), daemon=True).start()
        _core.hash_rows(X[:1000], 2)
    """
    run_core(code, timeout=20)


def test_processors_are_counted_again_when_they_change(monkeypatch):
    asked = []
    monkeypatch.setattr(joblib, "cpu_count", lambda: asked.append(1) or 4 - len(asked))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    assert [effective_n_threads(-1) for _ in range(3)] == [3, 3, 3]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    assert effective_n_threads(-1) == 2
    assert len(asked) == 2
