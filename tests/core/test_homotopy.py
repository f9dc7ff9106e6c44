"""The core's homotopy as Python sees it: rows that Python computes, what it refuses, and how it is abandoned."""

import signal
import threading

import numpy as np
import pytest

from mercer import _core
from mercer.kernels import Gaussian
from mercer.places.choose import gram_for
from mercer.problems.classification import soft_margin
from mercer.solvers.homotopy import KernelRows, affine, constant_family, path_at, scaled_bounds

N = 30


def sample_problem(seed=0, n=N, gamma=0.5):
    """A soft margin at C = 1 and its Gaussian kernel matrix."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    K = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    return soft_margin(y, np.ones(n)), K


def stored(problem, K):
    return _core.HomotopyMatrix(K.diagonal().copy(), problem.d, problem.row, K)


def violation(problem, K, beta, C):
    """How far β is from optimal at C: the largest gradient that may grow less the smallest that may shrink."""
    h = problem.p - K @ beta
    assert abs(beta.sum()) < 1e-12 * np.abs(beta).sum()
    assert ((C * problem.lower <= beta) & (beta <= C * problem.upper)).all()
    return h[beta < C * problem.upper].max() - h[beta > C * problem.lower].min()


@pytest.mark.parametrize("seed", range(5))
def test_rows_may_be_computed_as_they_are_needed(seed):
    problem, K = sample_problem(seed)
    asked = []

    def rows(which):
        asked.extend(which.tolist())
        return np.ascontiguousarray(K[which])

    computed = _core.HomotopyMatrix(K.diagonal().copy(), problem.d, problem.row, None, rows, lambda c: K @ c)
    start = np.random.default_rng(seed).uniform(problem.lower, problem.upper)
    paths = []
    for matrix in (stored(problem, K), computed):
        path = _core.settle(matrix, constant_family(problem), start).with_family(scaled_bounds(problem), 1.0)
        found = []
        while path.advance(50.0, recompute_far=True):
            found.append(path.t)
            assert violation(problem, K, path.beta(path.t), path.t) < 1e-8
            path.apply()
        paths.append(found)
        assert violation(problem, K, path.beta(50.0), 50.0) < 1e-8
    assert len(paths[0]) > 5
    np.testing.assert_allclose(paths[0], paths[1], rtol=1e-9)
    assert asked


def test_a_copy_leaves_the_first_one_as_it_was():
    problem, K = sample_problem()
    path = _core.settle(stored(problem, K), constant_family(problem), np.zeros(N)).with_family(
        scaled_bounds(problem), 1.0
    )
    before, sides = path.beta(1.0), path.side
    other = path.with_family(scaled_bounds(problem), 1.0)
    while other.advance(20.0, recompute_far=True):
        other.apply()
    assert (other.side != sides).any()
    np.testing.assert_array_equal(path.side, sides)
    np.testing.assert_array_equal(path.beta(1.0), before)
    np.testing.assert_array_equal(path.order, np.flatnonzero(sides == 0)[np.argsort(np.argsort(path.order))])


def test_equations_that_are_singular_are_told():
    """Two free variables with the same row."""
    problem, K = sample_problem(n=4)
    K[1], K[:, 1], K[1, 1] = K[0], K[:, 0], K[0, 0]
    with pytest.raises(_core.Stalled, match="singular"):
        _core.Homotopy(stored(problem, K), scaled_bounds(problem), np.array([0, 0, -1, -1], dtype=np.int8), 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"row": np.full(N, N)}, "out of range"),
        ({"row": np.arange(N - 1)}, "elements"),
        ({"d": np.zeros(N, dtype=np.float32)}, "d must be a contiguous"),
        ({"values": np.zeros((N, N - 1))}, "a row and a column for each"),
        ({"values": None}, "rows and product are needed"),
        ({"values": np.asfortranarray(np.eye(N) + np.tri(N))}, "C-contiguous"),
    ],
)
def test_matrices_that_do_not_fit_are_refused(change, message):
    problem, K = sample_problem()
    given = {"diagonal": K.diagonal().copy(), "d": problem.d, "row": problem.row, "values": K} | change
    with pytest.raises(ValueError, match=message):
        _core.HomotopyMatrix(**given)


def test_families_and_sides_that_do_not_fit_are_refused():
    problem, K = sample_problem()
    matrix, sides = stored(problem, K), np.full(N, -1, dtype=np.int8)
    p, zero = affine(problem.p), affine(np.zeros(N))
    with pytest.raises(ValueError, match="two rows"):
        _core.Family(problem.p[None], zero, zero, None)
    with pytest.raises(ValueError, match="same shape"):
        _core.Family(p, zero[:, 1:].copy(), zero, None)
    short = _core.Family(affine(problem.p[1:]), affine(problem.lower[1:]), affine(problem.upper[1:]), None)
    with pytest.raises(ValueError, match="a variable for each"):
        _core.Homotopy(matrix, short, sides[1:], 1.0)
    with pytest.raises(ValueError, match="a variable for each"):
        _core.settle(matrix, short, np.zeros(N - 1))
    for wrong in (sides[1:], sides.astype(np.int64), np.full(N, 2, dtype=np.int8)):
        with pytest.raises(ValueError, match="side must be"):
            _core.Homotopy(matrix, scaled_bounds(problem), wrong, 1.0)
    path = _core.Homotopy(matrix, scaled_bounds(problem), sides, 1.0)
    with pytest.raises(ValueError, match="a total where this one has"):
        path.with_family(_core.Family(p, zero, zero, None), 0.0)
    for v, side, message in ((N, 1, "out of range"), (-1, 1, "out of range"), (0, 0, "-1 or 1")):
        with pytest.raises(ValueError, match=message):
            path.fix(v, side)
    with pytest.raises(ValueError, match="out of range"):
        path.distance(N)
    with pytest.raises(ValueError, match="elements"):
        path.gradient(1.0, np.zeros(N - 1))
    with pytest.raises(ValueError, match="elements"):
        path.sum_of(np.zeros(N + 1))


@pytest.mark.parametrize("answer", [np.zeros((1, N - 1)), np.zeros((1, N), dtype=np.float32), None])
def test_rows_that_are_none_are_refused(answer):
    problem, K = sample_problem()
    matrix = _core.HomotopyMatrix(K.diagonal().copy(), problem.d, problem.row, None, lambda _: answer, lambda c: K @ c)
    with pytest.raises(ValueError, match="rows must"):
        _core.settle(matrix, constant_family(problem), np.full(N, 0.5))


def test_an_error_of_a_kernel_is_the_users():
    class Broken(Exception):
        pass

    def rows(which):
        raise Broken

    problem, K = sample_problem()
    matrix = _core.HomotopyMatrix(K.diagonal().copy(), problem.d, problem.row, None, rows, lambda c: K @ c)
    with pytest.raises(Broken):
        _core.settle(matrix, constant_family(problem), np.full(N, 0.5))


def test_ctrl_c_ends_a_long_call():
    """From the middle of their box 1,200 variables, none of which depends on others, take seconds to settle."""
    problem, K = sample_problem(n=1200, gamma=500.0)
    matrix, start = stored(problem, K), 0.5 * (problem.lower + problem.upper)
    timer = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        _core.settle(matrix, constant_family(problem), start)
    timer.join()


def test_the_path_of_kernel_rows_is_that_of_the_core():
    """`KernelRows` gives a Gram's rows to the core, whether it keeps all of K or none of it."""
    X = np.random.default_rng(1).normal(size=(N, 2))
    problem, _ = sample_problem()
    K = Gaussian(gamma=0.5)(X)
    gram = gram_for(Gaussian(gamma=0.5), X)
    for keep in (True, False):
        rows = KernelRows(gram, keep=keep)
        assert (rows.full_matrix is None) == (not keep)
        path = path_at(problem, rows, np.where(problem.p > 0, 1, -1).astype(np.int8), 0.0)
        np.testing.assert_allclose(path.gradient(1.0, problem.p), problem.p - K @ problem.p, atol=1e-12)
