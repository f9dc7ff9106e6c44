"""Cholesky in the core: against NumPy, on every level, through strides, indefinite, interrupted, bad arguments."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from mercer import _core
from reference.child import core_only, run_python

DTYPES = [np.float32, np.float64]
SIZES = [1, 2, 11, 12, 13, 31, 32, 33, 95, 96, 97, 191, 192, 193, 204, 300, 500]


def definite(n, dtype, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, 9))
    return np.asarray(x @ x.T + 4.0 * np.eye(n), dtype=dtype)


def assert_factor(L, A):
    """L = chol(A) up to the rounding of A's type."""
    expected = np.linalg.cholesky(A.astype(np.float64))
    eps = np.finfo(A.dtype).eps
    np.testing.assert_allclose(np.tril(L), expected, rtol=0, atol=20 * eps * len(A) ** 0.5 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_factor_and_solve_like_numpy(n, dtype):
    A = definite(n, dtype)
    L = A.copy()
    assert _core.cholesky(L, 1) == -1
    assert_factor(L, A)
    np.testing.assert_array_equal(np.triu(L, 1), np.triu(A, 1))
    for m in (1, 3, 40):
        B = np.random.default_rng(m).normal(size=(n, m)).astype(dtype)
        X = B.copy()
        _core.cholesky_solve(L, X, 1)
        expected = np.linalg.solve(A.astype(np.float64), B.astype(np.float64))
        size = np.abs(expected).max() * np.linalg.cond(A.astype(np.float64))
        np.testing.assert_allclose(X, expected, rtol=0, atol=20 * np.finfo(dtype).eps * size)


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_enough_to_be_shared(dtype):
    A = definite(1100, dtype)
    one, two = A.copy(), A.copy()
    assert _core.cholesky(one, 1) == -1
    assert _core.cholesky(two, 3) == -1
    np.testing.assert_array_equal(one, two)
    assert_factor(one, A)
    B = np.random.default_rng(1).normal(size=(1100, 70)).astype(dtype)
    x, y = B.copy(), B.copy()
    _core.cholesky_solve(one, x, 1)
    _core.cholesky_solve(one, y, 3)
    np.testing.assert_array_equal(x, y)
    assert np.abs(A.astype(np.float64) @ x - B).max() < 1e4 * np.finfo(dtype).eps


def test_more_right_hand_sides_than_are_packed_at_a_time():
    A = definite(30, np.float64)
    L, B = A.copy(), np.random.default_rng(0).normal(size=(30, 2500))
    assert _core.cholesky(L, 2) == -1
    X = B.copy()
    _core.cholesky_solve(L, X, 2)
    np.testing.assert_allclose(A @ X, B, atol=1e-11)


@pytest.mark.parametrize("level", _core.levels())
def test_every_level(level):
    code = """
        import numpy as np
        from mercer import _core
        for n in (5, 100, 250):
            x = np.random.default_rng(n).normal(size=(n, 9))
            A = x @ x.T + 4.0 * np.eye(n)
            L, X = A.copy(), np.eye(n)
            assert _core.cholesky(L, 2) == -1
            _core.cholesky_solve(L, X, 2)
            assert np.abs(np.tril(L) - np.linalg.cholesky(A)).max() < 1e-12
            assert np.abs(A @ X - np.eye(n)).max() < 1e-12
        print(_core.level())
    """
    assert run_python(code, env=core_only(MERCER_SIMD=level)).strip() == level


@pytest.mark.parametrize("dtype", DTYPES)
def test_only_the_lower_triangle_is_read_and_written(dtype):
    n = 210
    A = definite(n, dtype)
    upper = np.triu_indices(n, 1)
    wide = np.full((n, n + 7), np.nan, dtype=dtype)
    inside = wide[:, 2 : 2 + n]
    inside[...] = A
    inside[upper] = np.nan
    assert _core.cholesky(inside, 2) == -1
    assert_factor(np.where(np.tri(n, dtype=bool), inside, 0), A)
    assert np.isnan(inside[upper]).all()
    assert np.isnan(np.delete(wide, np.s_[2 : 2 + n], axis=1)).all()
    X = np.eye(n, dtype=dtype)
    _core.cholesky_solve(inside, X, 2)
    np.testing.assert_allclose(A.astype(np.float64) @ X, np.eye(n), atol=2000 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 13, 200, 450])
@pytest.mark.parametrize("pivot", [0.0, -1.0, np.nan, -np.inf])
def test_the_first_bad_pivot(n, dtype, pivot):
    for bad in {0, n // 2, n - 1}:
        A = np.diag(np.arange(1.0, n + 1)).astype(dtype)
        A[bad, bad] = pivot
        A[n - 1, n - 1] = pivot
        assert _core.cholesky(A, 2) == bad


def test_indefinite_like_lapack():
    rng = np.random.default_rng(0)
    for n in (20, 150, 400):
        A = definite(n, np.float64)
        A[n // 2 :, n // 2 :] -= 30.0 * np.eye(n - n // 2)
        bad = _core.cholesky(A.copy(), 2)
        good, all_of_it = A[:bad, :bad], A[: bad + 1, : bad + 1]
        assert np.linalg.eigvalsh(good).min(initial=1.0) > 0 > np.linalg.eigvalsh(all_of_it).min()
        V = rng.normal(size=(n, n))
        assert _core.cholesky(-V @ V.T, 2) == 0


def test_huge_and_tiny_numbers():
    for scale in (1e-300, 1e-30, 1e30, 1e300):
        A = definite(100, np.float64) * scale
        L = A.copy()
        assert _core.cholesky(L, 1) == -1
        np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(A), rtol=1e-9, atol=1e-14 * scale**0.5)


def test_nothing_to_do():
    empty = np.empty((0, 0))
    assert _core.cholesky(empty, 1) == -1
    _core.cholesky_solve(empty, np.empty((0, 4)), 1)
    _core.cholesky_solve(np.eye(3), np.empty((3, 0)), 1)


def read_only(a):
    a.flags.writeable = False
    return a


def unaligned(shape, dtype):
    raw = np.zeros(int(np.prod(shape)) * np.dtype(dtype).itemsize + 1, np.uint8)
    return raw[1:].view(dtype).reshape(shape)


@pytest.mark.parametrize(
    "A",
    [
        3.0,
        [[1.0]],
        np.eye(3, dtype=np.int64),
        np.eye(3, dtype=np.float16),
        np.eye(3, dtype=complex),
        np.ones(4),
        np.ones((2, 2, 2)),
        np.ones((3, 4)),
        np.ones((0, 4)),
        np.asfortranarray(definite(3, np.float64)),
        np.ones((6, 6))[::2, ::2],
        np.ones((4, 4))[::-1],
        np.ones((4, 4))[:, ::-1],
        np.lib.stride_tricks.as_strided(np.ones(8), (4, 4), (8, 8)),
        np.broadcast_to(np.ones(4), (4, 4)),
        read_only(np.eye(3)),
        unaligned((3, 3), np.float64),
        np.eye(3, dtype=">f8"),
    ],
    ids=lambda A: None,
)
def test_bad_matrices_are_named(A):
    with pytest.raises(ValueError, match=r"^A "):
        _core.cholesky(A, 1)


@pytest.mark.parametrize(
    ("L", "B", "named"),
    [
        (np.ones((3, 4)), np.ones((3, 1)), "L"),
        (np.asfortranarray(definite(3, np.float64)), np.ones((3, 1)), "L"),
        (unaligned((3, 3), np.float32), np.ones((3, 1), np.float32), "L"),
        (np.eye(3), np.ones(3), "B"),
        (np.eye(3), np.ones((4, 1)), "B"),
        (np.eye(3), np.ones((3, 1), np.float32), "B"),
        (np.eye(3, dtype=np.float32), np.ones((3, 1)), "B"),
        (np.eye(3), np.ones((3, 2), order="F"), "B"),
        (np.eye(3), np.ones((3, 4))[:, ::2], "B"),
        (np.eye(3), read_only(np.ones((3, 1))), "B"),
        (np.eye(3), unaligned((3, 2), np.float64), "B"),
    ],
)
def test_bad_arguments_of_solve_are_named(L, B, named):
    with pytest.raises(ValueError, match=rf"^{named} "):
        _core.cholesky_solve(L, B, 1)


@pytest.mark.parametrize("n_threads", [0, -1])
def test_threads_are_counted_from_one(n_threads):
    with pytest.raises(ValueError, match=r"^n_threads "):
        _core.cholesky(np.eye(3), n_threads)
    with pytest.raises(ValueError, match=r"^n_threads "):
        _core.cholesky_solve(np.eye(3), np.ones((3, 1)), n_threads)


def test_zeros_on_the_diagonal_do_no_harm():
    X = np.ones((50, 2))
    with np.errstate(all="ignore"):
        _core.cholesky_solve(np.zeros((50, 50)), X, 2)
    assert not np.isfinite(X).any()


CHILD = textwrap.dedent(
    """
    import sys, time
    import numpy as np
    from mercer import _core

    n = 8000
    A, B = np.zeros((n, n)), np.ones((n, 4000))
    A[np.arange(n), np.arange(n)] = 1.0
    for call in map(str.strip, sys.stdin):
        try:
            print("running", flush=True)
            if call == "factor":
                _core.cholesky(A, 2)
            else:
                _core.cholesky_solve(A, B, 2)
            end = "finished"
        except KeyboardInterrupt:
            at = time.monotonic()
            end = "interrupted"
        print(end, at if end == "interrupted" else 0.0, flush=True)
    """
)


@pytest.fixture(scope="module")
def child():
    """One process for both calls: its matrices take a second to be made."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        env=core_only(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    yield process
    process.kill()
    process.communicate()


@pytest.mark.alone
@pytest.mark.skipif(os.name != "posix", reason="signals between processes as POSIX has them")
@pytest.mark.parametrize("call", ["factor", "solve"])
def test_interrupt_within_a_fifth_of_a_second(child, call):
    delays = []
    for moment in (0.05, 0.15, 0.3):
        child.stdin.write(f"{call}\n")
        assert child.stdout.readline().strip() == "running"
        time.sleep(moment)
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        end, at = child.stdout.readline().split()
        assert end == "interrupted", f"over before the signal came, {moment} s after it began"
        delays.append(float(at) - sent)
    # A busy machine may keep any process waiting once; a call that cannot be interrupted is late every time.
    assert sorted(delays)[1] < 0.2, delays
    assert max(delays) < 1.0, delays
