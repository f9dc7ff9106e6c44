"""Row hashes of the core: one row has one hash, however it is stored; bad arguments are refused by name."""

import numpy as np
import pytest
import scipy.sparse

from mercer import _core


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(700, 33)).astype(np.float32)
    X[X < 0.7] = 0.0
    return X


def csr(X, index=np.int32):
    S = scipy.sparse.csr_array(X)
    return S.data, S.indices.astype(index), S.indptr.astype(index)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_one_row_has_one_hash_however_stored(rows, n_threads):
    truth = _core.hash_rows(rows, n_threads)
    assert truth.dtype == np.uint64
    assert truth.shape == (700,)
    assert len(set(truth.tolist())) == 700
    zeros = rows.astype(np.float64)
    zeros[zeros == 0.0] = -0.0
    wide = np.zeros((700, 70))
    wide[:, ::2][:, :33] = rows
    frozen = rows.copy()
    frozen.flags.writeable = False
    for same in (
        rows.astype(np.float64),
        np.asfortranarray(rows),
        zeros,
        wide[:, ::2][:, :33],
        frozen,
    ):
        np.testing.assert_array_equal(_core.hash_rows(same, n_threads), truth)
    np.testing.assert_array_equal(_core.hash_rows(rows[::-1], n_threads), truth[::-1])
    for index in (np.int32, np.int64):
        for X in (rows, rows.astype(np.float64)):
            np.testing.assert_array_equal(_core.hash_rows_csr(*csr(X, index), n_threads), truth)


def test_stored_zeros_do_not_count(rows):
    data, indices, indptr = csr(rows)
    before = _core.hash_rows_csr(data, indices, indptr, 1)
    emptied = rows.copy()
    emptied[5] = 0.0
    data[indptr[5] : indptr[6]] = -0.0
    after = _core.hash_rows_csr(data, indices, indptr, 1)
    assert (before != after).sum() == 1
    np.testing.assert_array_equal(after, _core.hash_rows(emptied, 1))


def test_a_hash_knows_the_column():
    X = np.eye(64)
    assert len(set(_core.hash_rows(X, 1).tolist())) == 64
    assert len(set(_core.hash_rows(np.arange(10_000.0)[:, None], 1).tolist())) == 10_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indices": np.zeros(3, np.int32)}, "indices must have as many elements as data"),
        ({"indptr": np.array([0, 5, 3], np.int32)}, "indptr must not decrease"),
        ({"indptr": np.array([0, 10**6], np.int32)}, "indptr must not decrease and must stay"),
        ({"indptr": np.array([-4, 2], np.int64)}, "indptr must not decrease"),
        ({"indptr": np.zeros(0, np.int32)}, "indptr must have one element more"),
        ({"data": np.zeros(4, int)}, "data must be a contiguous one-dimensional float32 or float64 array"),
        ({"indices": np.zeros(4)}, "indices must be a contiguous one-dimensional int32 or int64 array"),
    ],
)
def test_a_csr_matrix_that_is_none_is_refused(rows, change, message):
    arguments = {**dict(zip(("data", "indices", "indptr"), csr(rows), strict=True)), **change}
    with pytest.raises(ValueError, match=message):
        _core.hash_rows_csr(*arguments.values(), 2)


def test_a_dense_matrix_that_is_none_is_refused():
    for bad in (np.zeros(3), np.zeros((2, 2), int), [[1.0]], np.zeros((2, 2), dtype=">f8")):
        with pytest.raises(ValueError, match="X must be a two-dimensional float32 or float64 array"):
            _core.hash_rows(bad, 1)
    assert _core.hash_rows(np.zeros((0, 4)), 2).shape == (0,)
    assert _core.hash_rows(np.zeros((4, 0)), 2).shape == (4,)


def test_none_is_no_array():
    with pytest.raises(TypeError, match=r"hash_rows\(X: numpy.typing.NDArray"):
        _core.hash_rows(None, 1)
