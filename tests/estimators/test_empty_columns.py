"""Machines of weights on CSR rows with more columns than entries: columns without an entry cost nothing but a zero."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from mercer import LinearSVC, LinearSVR, RLSRegressor, linear_path

D = 1 << 17
rng = np.random.default_rng(0)
USED = np.sort(rng.choice(D, 40, replace=False))
SMALL = sparse.random_array((200, 40), density=0.2, rng=rng, format="csr")
WIDE = sparse.csr_array((SMALL.data, USED[SMALL.indices], SMALL.indptr), shape=(200, D))
LABELS, NUMBERS = rng.integers(3, size=200), rng.normal(size=200)
MACHINES = {
    "LinearSVC": (LinearSVC(tol=1e-9), LABELS),
    "LinearSVC, hinge": (LinearSVC(loss="hinge", tol=1e-9), LABELS),
    "LinearSVC, joint": (LinearSVC(multiclass="crammer_singer", bias=False, tol=1e-9), LABELS),
    "LinearSVR": (LinearSVR(tol=1e-9), NUMBERS),
    "RLSRegressor": (RLSRegressor(kernel="linear", solver="lsqr"), NUMBERS),
}


@pytest.mark.parametrize("name", MACHINES)
def test_the_machine_is_that_of_the_used_columns(name):
    machine, y = MACHINES[name]
    narrow = np.atleast_2d(machine.fit(SMALL, y).coef_).copy()
    tracemalloc.start()
    wide = np.atleast_2d(machine.fit(WIDE, y).coef_)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert machine.converged_
    np.testing.assert_allclose(wide[:, USED], narrow, rtol=1e-5, atol=1e-6)
    assert np.count_nonzero(wide) <= narrow.size
    assert peak < (2 * len(wide) + 3) * 8 * D + 1_000_000  # w, a copy of it, and what checks it
    assert len(machine.predict(WIDE)) == 200


def test_a_path_too():
    y = LABELS > 0
    narrow, wide = (linear_path(X, y, Cs=[0.1, 1.0], tol=1e-9) for X in (SMALL, WIDE))
    np.testing.assert_allclose(wide.coef[:, USED], narrow.coef, rtol=1e-5, atol=1e-6)
    assert wide.coef.shape == (2, D)
