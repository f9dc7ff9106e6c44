"""Ctrl-C and stop flags end an explanation."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from mercer import SVR, _core
from mercer.inspection.rkhs import Function

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 60))
MODEL = SVR(C=10.0, epsilon=0.0).fit(X, X[:, 0] * X[:, 1])


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_ctrl_c_ends_it():
    pressed = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    pressed.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):  # the whole would take a minute
        MODEL.explain(np.tile(X, (4, 1)), X)
    assert time.monotonic() - begun < 5.0


def test_gradients_are_taken_in_blocks_between_which_ctrl_c_is_heard(monkeypatch):
    rows, sizes = np.tile(X, (18, 1))[:7001], []
    gradient = Function.gradient

    def watched(function, some):
        sizes.append(len(some) * len(function.vectors))
        return gradient(function, some)

    whole = np.abs(MODEL.function_.gradient(rows)).mean(axis=0)
    monkeypatch.setattr(Function, "gradient", watched)
    np.testing.assert_allclose(MODEL.gradient_importance(rows), whole, rtol=1e-12)
    assert max(sizes) <= (16 << 20) / 8  # values at a time: some hundredths of a second
    assert sum(sizes) == 7001 * 400


def test_a_time_limit_ends_it():
    with pytest.raises(_core.OutOfTime), _core.TimeLimit(0.1):
        MODEL.explain(np.tile(X, (4, 1)), X)
