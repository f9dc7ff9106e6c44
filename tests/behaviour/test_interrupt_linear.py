"""Ctrl-C during the fits of linear machines: answered soon, and the estimator is as it was."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(os.name != "posix", reason="signals between processes as POSIX has them"),
]

CHILD = textwrap.dedent(
    """
    import sys, time
    import numpy as np
    from scipy import sparse
    from mercer import LinearSVC, LinearSVR

    for kind in map(str.strip, sys.stdin):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(20_000, 60)) * 10.0 ** rng.uniform(-2, 2, 60)
        y = rng.integers(0, 2, 20_000)             # labels without any rule
        options = {"tol": 1e-12, "C": 1e4, "max_iter": 10**9}
        if kind == "svr":
            model = LinearSVR(**options, solver="dual")
        elif kind == "joint":
            model, y = LinearSVC(**options, multiclass="crammer_singer", bias=False), rng.integers(0, 4, 20_000)
        elif kind == "newton":
            options["tol"] = 1e-300  # never met, and each step takes a while
            X, y = rng.normal(size=(30_000, 400)), rng.integers(0, 2, 30_000)
            model = LinearSVC(**options, loss="hinge", solver="newton")
        else:
            model = LinearSVC(**options, loss="hinge", solver="dual")
            X = sparse.csr_array(X) if kind == "csr" else X
        before = dict(vars(model))
        print("fitting", flush=True)
        try:
            model.fit(X, y)
            print("finished", 0.0, 0, flush=True)
        except KeyboardInterrupt:
            print("interrupted", time.monotonic(), int(vars(model) == before), flush=True)
    """
)


@pytest.fixture(scope="module")
def child():
    """One process for every kind: its imports take longer than a fit is given."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("kind", ["csr", "dense", "svr", "joint", "newton"])
def test_a_fit_is_interrupted(child, kind):
    child.stdin.write(f"{kind}\n")
    assert child.stdout.readline().strip() == "fitting"
    time.sleep(0.4)
    sent = time.monotonic()
    child.send_signal(signal.SIGINT)
    end, at, untouched = child.stdout.readline().split()
    assert end == "interrupted"
    assert float(at) - sent < 1.0  # a fifth of a second on an idle machine
    assert untouched == "1"
