"""Groups of equal rows of dense arrays, against those of sparse ones."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import _core
from mercer.samples.merging import merge


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_dense_and_sparse_samples_are_merged_alike(dtype, n_threads):
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 2, (300, 4)).astype(dtype)
    X[X == 0] *= rng.choice([-1, 1], (X == 0).sum())  # zeros of both signs
    y, weight = rng.integers(0, 3, 300), rng.choice([0.0, 0.3, 1.0, 2.5], 300)
    for given in (weight, np.ones(300)):
        dense, sparse = (
            merge(samples, y, given, identical=True, n_threads=n_threads) for samples in (X, sp.csr_array(X))
        )
        assert 0 < len(dense.y) < np.count_nonzero(given)
        for name in ("y", "weight", "rows", "member", "input_weight", "first"):
            np.testing.assert_array_equal(getattr(dense, name), getattr(sparse, name))


@pytest.mark.parametrize(
    ("which", "labels", "n_threads", "message"),
    [
        (np.array([0, 3]), np.zeros(3, dtype=np.int64), 1, "which holds an index that is out of range"),
        (None, np.zeros(2, dtype=np.int64), 1, "labels has 2 elements, but 3 are needed"),
        (None, np.zeros(3, dtype=np.int64), 0, "n_threads must be at least 1"),
    ],
)
def test_the_core_refuses_rows_that_do_not_fit(which, labels, n_threads, message):
    with pytest.raises(ValueError, match=message):
        _core.group_rows(np.zeros((3, 2)), which, labels, n_threads)
