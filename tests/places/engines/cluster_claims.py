"""What holds on every engine of chunks: the same machines as on this machine, certified, in every layout of chunks."""

from __future__ import annotations

import os
import signal
import threading
from itertools import cycle, pairwise

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import mercer
from mercer.kernels import Gaussian
from test_architecture import KINDS, REFERENCES, by_hand, problem, target_of

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 5))
y = (X[:, 0] + 0.4 * rng.normal(size=400) > 0).astype(int)
three = np.digitize(X[:, 0] + 0.3 * rng.normal(size=400), [-0.5, 0.5])
t = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=400)
NEW = rng.normal(size=(60, 5))
KERNEL = Gaussian(0.3)

MACHINES = {
    "SVC": (mercer.SVC(kernel=KERNEL), y),
    "SVC, pairs": (mercer.SVC(kernel=KERNEL), three),
    "SVR": (mercer.SVR(kernel=KERNEL), t),
    "NuSVC": (mercer.NuSVC(nu=0.3, kernel=KERNEL), y),
    "OneClassSVM": (mercer.OneClassSVM(nu=0.2, kernel=KERNEL), None),
    "chunking": (mercer.SVC(kernel=KERNEL, solver="chunking", cache_size=0.05), y),
    "LinearSVC": (mercer.LinearSVC(), three),
    "LinearSVR": (mercer.LinearSVR(), t),
    "linear RLS": (mercer.RLSRegressor(kernel="linear"), t),
    "RLS": (mercer.RLSRegressor(kernel=KERNEL), t),
    "RLS, cg": (mercer.RLSRegressor(kernel=KERNEL, solver="cg", lam=0.1), t),
    "NystromRLS": (mercer.NystromRLS(kernel=KERNEL, n_landmarks=40, random_state=0), t),
}


def check_machine(name, fit):
    """`fit(machine, X, y)` trains where the rows are; X and its answers are arrays of this machine."""
    machine, target = MACHINES[name]
    machine = clone(machine)
    if "tol" in machine.get_params():
        machine.set_params(tol=1e-7)
    with mercer.config_context(device="cpu"):
        here = clone(machine).fit(X, target)
    there = fit(machine, X, target)
    one, other = there.certificate_, here.certificate_
    assert one.gap_measures == other.gap_measures
    assert one.proves == other.proves
    assert there.converged_
    assert abs(one.dual - other.dual) <= 1e-6 * abs(other.dual) + one.gap + other.gap
    f, g = (np.asarray(model.predict(NEW)) for model in (there, here))
    if f.dtype.kind in "iU":
        assert np.array_equal(f, g)
    else:
        np.testing.assert_allclose(f, g, atol=1e-3)
    assert there.fit_report_


GIVEN = {"dense": (10**6,), "csr": (7, 0, 19, 1), "weighted": (5,)}  # and sizes of chunks, again and again


def check_reference(name, kind, given, fit):
    """`fit(machine, X, y, weight, sizes)` reaches the value of a naive solver, in chunks of these sizes."""
    reference = REFERENCES[name]
    X, y = problem()
    target = target_of(reference.target, X, y)
    options = {} if kind == "rows" else {"kernel": KINDS[kind]()}
    K = X @ X.T if kind == "rows" else by_hand(X, X) if kind in ("callable", "precomputed") else options["kernel"](X)
    X_ = K if kind == "precomputed" else sp.csr_array(X) if given == "csr" else X
    weight = np.arange(len(y)) % 4 * 0.5 if given == "weighted" else np.ones(len(y))
    used = weight > 0
    model = fit(reference.model(**options), X_, target, weight, GIVEN[given])
    value = reference.value(K[np.ix_(used, used)], target[used], weight[used])
    assert reference.right(model.certificate_, value), (model.certificate_, value)
    assert model.converged_


def cuts(n, sizes):
    """Where chunks of these sizes begin and end, until n rows are in one."""
    ends, again = [0], cycle(sizes)
    while ends[-1] < n:
        ends.append(min(n, ends[-1] + next(again)))
    return list(pairwise(ends))


def killing(pids, after, count=1):
    """A thread that kills `count` of the processes, one after another."""

    def kill():
        for _ in range(count):
            if ended.wait(after):
                return
            for pid in pids()[:1]:
                try:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                except ProcessLookupError:
                    pass

    ended, killed = threading.Event(), []
    thread = threading.Thread(target=kill)
    thread.start()

    def end():
        ended.set()
        thread.join()
        return killed

    return end
