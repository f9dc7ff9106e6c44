"""Calls in threads that end together, and leave other fits alone."""

import threading
import time

import numpy as np
import pytest

from mercer import LinearSVC, _core
from mercer.estimators.fitting.pipeline.task import map_in_threads

X = np.ones((2_000, 50))


def endless(_=None):
    while True:
        _core.hash_rows(X, 1)


def test_results_come_in_order():
    assert map_in_threads(lambda k: k * k, range(20), 3) == [k * k for k in range(20)]
    assert map_in_threads(lambda k: k, [], 2) == []


def test_one_that_fails_ends_the_others():
    def call(k):
        if k == 1:
            raise ZeroDivisionError
        endless()

    before = threading.active_count()  # other tests' pools may be alive
    with pytest.raises(ZeroDivisionError):
        map_in_threads(call, range(4), 3)
    assert threading.active_count() <= before
    _core.check_stop()  # this thread watches no flag


def test_a_call_inside_a_call_ends_with_it():
    def outer(k):
        if k == 0:
            time.sleep(0.2)
            raise ZeroDivisionError
        map_in_threads(endless, range(2), 2)

    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        map_in_threads(outer, range(2), 2)
    assert threading.active_count() <= before


def test_fits_in_several_threads_do_not_stop_one_another():
    found = {}

    def fails():
        with pytest.raises(ZeroDivisionError):
            map_in_threads(lambda k: 1 // k, range(2), 2)

    def works():
        def call(k):
            for _ in range(50):
                _core.hash_rows(X, 2)
            return k

        found["works"] = map_in_threads(call, range(4), 2)

    threads = [threading.Thread(target=target) for target in (works, fails, fails)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found["works"] == [0, 1, 2, 3]


@pytest.mark.parametrize(("rows", "threads"), [(100, False), (4000, True)])
def test_classes_of_a_linear_machine_share_threads_only_where_that_pays(monkeypatch, rows, threads):
    called = []

    def alone(call, items, n_threads):
        called.append(n_threads)
        return [call(item) for item in items]

    monkeypatch.setattr("mercer.estimators.fitting.pipeline.task.map_in_threads", alone)
    monkeypatch.setattr("mercer.estimators.fitting.pipeline.fit.effective_n_threads", lambda n_jobs: 2)
    X = np.random.default_rng(0).normal(size=(rows, 6))
    LinearSVC().fit(X, np.arange(rows) % 3)
    assert bool(called) is threads
