"""Ctrl-C leaves a long call of LAPACK behind."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from mercer.inspection.features import Nystrom, mercer_expansion
from mercer.kernels import Gaussian
from mercer.notes.theory import iteration_path
from mercer.runtime.long_calls import call_interruptibly

X = np.random.default_rng(0).normal(size=(30, 2))


def test_results_and_errors_are_those_of_the_call():
    assert call_interruptibly(divmod, 7, 2) == (3, 1)
    with pytest.raises(np.linalg.LinAlgError), np.errstate(over="ignore"):
        call_interruptibly(np.linalg.inv, np.zeros((2, 2)))
    with np.errstate(over="raise"):
        assert call_interruptibly(np.geterr)["over"] == "raise"
    with_thread: list[int] = []
    other = threading.Thread(target=lambda: with_thread.append(call_interruptibly(threading.get_ident)))
    other.start()
    other.join()
    assert with_thread == [other.ident]  # which never hears Ctrl-C


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
@pytest.mark.parametrize(
    "ask",
    [
        lambda: iteration_path(X=X, y=X[:, 0], kernel=Gaussian(gamma=1.0)),
        lambda: Nystrom(Gaussian(gamma=1.0), n_components=10).fit(X),
        lambda: mercer_expansion(X, kernel=Gaussian(gamma=1.0), n_terms=3),
    ],
    ids=["iteration_path", "Nystrom", "mercer_expansion"],
)
def test_ctrl_c_is_heard_during_an_eigenvalue_problem(monkeypatch, ask):
    """As long as a decomposition of thousands of rows takes, for which a test has no time."""
    begun, released = threading.Event(), threading.Event()

    def endless(K):
        begun.set()
        released.wait(60)
        raise np.linalg.LinAlgError

    def press():
        if begun.wait(60) and not released.is_set():
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

    sent: list[float] = []
    monkeypatch.setattr(np.linalg, "eigh", endless)
    presser = threading.Thread(target=press)
    presser.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            ask()
        assert time.monotonic() - sent[0] < 10.0
    finally:
        released.set()
        begun.set()
        presser.join()
