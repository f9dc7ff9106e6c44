"""The core's steps of Pegasos check what memory safety needs."""

import re

import numpy as np
import pytest
from scipy import sparse

from mercer import _core

X = np.random.default_rng(0).normal(size=(40, 3))


CORE = {
    "draws": ({"draws": np.array([40])}, "draws holds an index"),
    "negative draw": ({"draws": np.array([-1])}, "draws holds an index"),
    "y": ({"y": np.ones(39)}, "y has 39 elements"),
    "theta": ({"theta": np.zeros(5), "total": np.zeros(5)}, "theta must have one element per feature"),
    "total": ({"total": np.zeros(4)}, "total has 4 elements"),
    "t": ({"t": -1}, "t must not be negative"),
    "counts": ({"counts": np.zeros(3, dtype=np.int64)}, "counts has 3 elements"),
}


@pytest.mark.parametrize("name", CORE)
@pytest.mark.parametrize("form", ["dense", "csr", "kernel"])
def test_the_core_checks_what_memory_safety_needs(form, name):
    change, text = CORE[name]
    n = 40 if form == "kernel" else 3
    call = {"y": np.ones(40), "draws": np.arange(40), "lam": 1.0, "t": 0, "project": False, "norm2": 0.0}
    call |= {"theta": np.zeros(n), "total": np.zeros(n), "counts": None, **change}
    S = sparse.csr_array(X)
    run = {
        "dense": lambda: _core.pegasos_dense(np.array(X), **call),
        "csr": lambda: _core.pegasos_csr(S.data, S.indices, S.indptr, 3, **call),
        "kernel": lambda: _core.pegasos_kernel(np.eye(40), np.arange(40), 0.0, np.zeros(40), **call),
    }
    with pytest.raises(ValueError, match=re.escape(text)):
        run[form]()


def test_the_core_refuses_broken_matrices():
    S = sparse.csr_array(X)
    call = (np.ones(40), np.arange(40), 1.0, 0, False, 0.0, np.zeros(3), np.zeros(3), None)
    few = (np.ones(40), np.array([1, 2]), *call[2:])
    for rest in (call, few):
        with pytest.raises(ValueError, match="indices holds a feature"):
            _core.pegasos_csr(S.data, np.where(S.indices == 2, 3, S.indices).astype(np.int32), S.indptr, 3, *rest)
    with pytest.raises(ValueError, match="indptr must not decrease"):
        _core.pegasos_csr(S.data, S.indices, S.indptr[::-1].copy(), 3, *call)
    with pytest.raises(ValueError, match="slot points beyond"):
        _core.pegasos_kernel(
            np.eye(40)[:5], np.arange(40), 0.0, np.zeros(40), *call[:6], np.zeros(40), np.zeros(40), None
        )
