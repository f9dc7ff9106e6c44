"""Ctrl-C ends a compression at once and leaves the machine as it was; large machines do not fill the memory."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import mercer
from mercer.inspection.compression import reduction
from mercer.kernels import Gaussian
from mercer.places.expansion import Expansion

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 10))
MODEL = mercer.RLSRegressor(lam=0.1).fit(X, X[:, 0] * X[:, 1])


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
@pytest.mark.parametrize("after", [0.05, 0.6])
def test_ctrl_c_ends_it(after):
    before = dict(vars(MODEL))
    pressed: list[float] = []

    def press():
        pressed.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):  # the whole takes many seconds
        mercer.compress(MODEL, 300, X=X)
    assert time.process_time() - pressed[0] < 0.2  # processor time: others may be busy too
    assert vars(MODEL) == before


def test_more_vectors_than_fit_into_memory_are_refused():
    kernel, n = Gaussian(gamma=1.0), 10_002
    expansion = Expansion(kernel, np.zeros((n, 1)), np.ones((n, 1)), np.zeros(1))
    model = mercer.SVR().fit([[0.0], [1.0]], [0.0, 1.0])
    model._expansion_ = expansion
    with pytest.raises(ValueError, match="at most 10000"):
        mercer.compress(model, 10_001)


def test_of_many_vectors_some_are_candidates(monkeypatch):
    monkeypatch.setattr(reduction, "_MOST_CANDIDATES", 50)
    small = mercer.compress(MODEL, 6)
    assert small.compression_.n_vectors == 6
    f, g = (machine.predict(X) for machine in (MODEL, small))
    assert (np.abs(f - g) <= small.compression_.bound(X)).all()


def test_it_says_what_it_does(capsys):
    mercer.compress(MODEL, 4, verbose=True)
    said = capsys.readouterr()
    assert "900 vectors to 4" in said.out + said.err
