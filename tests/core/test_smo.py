"""The compiled core as Python sees it: smo against a naive one on every level, bad arguments."""

import os
import time

import numpy as np
import pytest

from mercer import _core
from reference.child import core_only, run_python

INF = np.inf


def gaussian(x, gamma):
    squares = (x**2).sum(axis=1)
    K = np.exp(-gamma * np.maximum(squares[:, None] + squares - 2 * x @ x.T, 0.0))
    np.fill_diagonal(K, 1.0)
    return K


def random_problem(rng, q, kind):
    """p, K, lower, upper, d, group, start: a C-SVC, ε-SVR with twins, ν-SVC, 2-norm or bias-free problem."""
    x = rng.normal(size=(q, 3))
    if kind == "twins":
        x[q // 2 :] = x[: q - q // 2]
    # Values that float32 holds, so that both types are given the same problem.
    K = gaussian(x, 0.5).astype(np.float32).astype(np.float64)
    y = np.where(rng.random(q) < 0.5, 1.0, -1.0)
    p, d, group = y + 0.2 * rng.normal(size=q), np.zeros(q), np.zeros(q, np.int32)
    lower, upper = np.where(y > 0, 0.0, -2.0), np.where(y > 0, 2.0, 0.0)
    if kind == "groups":
        group = (y > 0).astype(np.int32) * 3
    elif kind == "no bias":
        group = np.full(q, -1, np.int32)
    elif kind == "mixed":
        group = rng.integers(-1, 3, q).astype(np.int32)
    elif kind == "unbounded box":
        d = rng.uniform(0.05, 1.0, q)
        lower, upper = np.where(y > 0, 0.0, -INF), np.where(y > 0, INF, 0.0)
    start = np.where(rng.random(q) < 0.5, 0.0, y)
    return p, K, lower, upper, d, group, start


KINDS = ["plain", "twins", "groups", "no bias", "mixed", "unbounded box"]


def violation(h, beta, lower, upper, group):
    worst = 0.0
    for g in np.unique(group):
        up, low = h[(group == g) & (beta < upper)], h[(group == g) & (beta > lower)]
        if g < 0:
            worst = max(worst, up.max(initial=-INF), -low.min(initial=INF))
        else:
            worst = max(worst, up.max(initial=-INF) - low.min(initial=INF))
    return worst


def naive_smo(p, K, lower, upper, d, group, beta, tol):
    """The most violating pair, or variable, over and over; the gradient from scratch every time."""
    Q = K + np.diag(d)
    beta = beta.copy()
    for _ in range(100_000):
        h = p - Q @ beta
        if violation(h, beta, lower, upper, group) <= tol:
            return beta
        best = (0.0, None, None)
        for g in np.unique(group):
            up = np.flatnonzero((group == g) & (beta < upper))
            low = np.flatnonzero((group == g) & (beta > lower))
            if g >= 0 and up.size and low.size:
                i, j = up[h[up].argmax()], low[h[low].argmin()]
                best = max(best, (h[i] - h[j], i, j), key=lambda t: t[0])
            elif g < 0:
                moves = [(h[i], i, None) for i in up] + [(-h[i], None, i) for i in low]
                best = max([best, *moves], key=lambda t: t[0])
        gap, i, j = best
        e = np.zeros_like(beta)
        room = INF
        if i is not None:
            e[i], room = 1.0, min(room, upper[i] - beta[i])
        if j is not None:
            e[j], room = -1.0, min(room, beta[j] - lower[j])
        beta = np.clip(beta + min(gap / max(e @ Q @ e, 1e-12), room) * e, lower, upper)
    raise AssertionError("the naive solver did not converge")


def solve(p, K, lower, upper, d, group, start, tol, dtype=np.float64, max_steps=10**7, max_seconds=INF):
    beta = start.copy()
    with np.errstate(invalid="ignore"):
        h = p - K @ start - d * start
    kept = h.copy()
    result = _core.smo(K.astype(dtype), h, beta, lower, upper, d, group, tol, max_steps, max_seconds)
    np.testing.assert_array_equal(h, kept)
    return beta, *result


def check_against_naive(seed):
    """Called once per instruction set, in a process of its own."""
    rng = np.random.default_rng(seed)
    for kind in KINDS:
        for q in (1, 2, 7, 16, 31):
            problem = random_problem(rng, q, kind)
            p, K, lower, upper, d, group, start = problem
            Q = K + np.diag(d)
            truth = naive_smo(*problem, tol=1e-7)
            best = p @ truth - 0.5 * truth @ Q @ truth
            for dtype, tol in ((np.float64, 1e-7), (np.float32, 1e-4)):
                beta, _, reported, reason = solve(*problem, tol, dtype)
                where = (kind, q, dtype.__name__, _core.level())
                assert reason == "converged", where
                assert reported <= tol, where
                seen = violation(p - Q @ beta, beta, lower, upper, group)
                assert abs(seen - reported) <= (1e-12 if dtype is np.float64 else 1e-5), where
                assert p @ beta - 0.5 * beta @ Q @ beta >= best - 50 * tol, where
                assert np.all((lower <= beta) & (beta <= upper)), where
                for g in np.unique(group[group >= 0]):
                    assert abs(beta[group == g].sum() - start[group == g].sum()) < 1e-12, where


@pytest.mark.parametrize("level", _core.levels())
def test_smo_agrees_with_a_naive_one_on_every_level(level):
    code = f"import test_smo; assert test_smo._core.level() == {level!r}; test_smo.check_against_naive(7)"
    run_core(code, MERCER_SIMD=level)


def run_core(code, **variables):
    """Runs code in a fresh interpreter that can import this file, and returns what it prints."""
    env = core_only(**variables)
    env["PYTHONPATH"] += os.pathsep + os.path.dirname(__file__)
    return run_python(code, env=env)


def test_levels():
    assert _core.levels()[0] == "plain"
    out = run_core("from mercer import _core; print(_core.level(), _core.levels()[-1])", MERCER_SIMD="")
    assert len(set(out.split())) == 1


def test_an_unknown_level_is_an_error_that_names_the_choices():
    code = """
        from mercer import _core
        print(_core.levels())
        try:
            _core.level()
        except ValueError as error:
            print(error)
    """
    out = run_core(code, MERCER_SIMD="sse9")
    assert "MERCER_SIMD='sse9'" in out
    assert "plain" in out.splitlines()[1]


def small_problem(q=40, seed=0):
    return random_problem(np.random.default_rng(seed), q, "plain")


def test_bounded_variables_lie_exactly_on_their_bounds():
    p, K, lower, upper, d, group, start = small_problem()
    upper[upper > 0] = 0.1 + 0.2  # not a short decimal
    beta, _, _, reason = solve(p, K, lower, upper, d, group, np.zeros_like(start), 1e-8)
    assert reason == "converged"
    assert (beta == upper).sum() > 5
    near = np.isclose(beta, upper, rtol=0, atol=1e-9) | np.isclose(beta, lower, rtol=0, atol=1e-9)
    assert np.all((beta == upper) | (beta == lower) | ~near)


def test_no_variable_is_left_beside_its_bound_by_rounding():
    """It would count as a free one, and its gradient alone would decide the bias."""
    p, K, zero, group = np.array([9.0, -9.0]), np.eye(2), np.zeros(2), np.zeros(2, np.int32)
    for place in np.linspace(0.1, 0.9, 81):
        start = np.array([place, np.nextafter(1.0 - place, 0.0)])  # the second has a little less room than the first
        beta, _, _, reason = solve(p, K, zero, np.ones(2), zero, group, start, 1e-9)
        assert reason == "converged"
        np.testing.assert_array_equal(beta, [1.0, 0.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_may_be_strided_and_unaligned(dtype):
    p, K, lower, upper, d, group, start = small_problem()
    expected = solve(p, K, lower, upper, d, group, start, 1e-6, dtype)
    wide = np.full((40, 57), np.nan, dtype)
    wide[:, 3:43] = K
    beta = start.copy()
    h = p - K @ start
    result = _core.smo(wide[:, 3:43], h, beta, lower, upper, d, group, 1e-6, 10**7, INF)
    assert result == expected[1:]
    np.testing.assert_array_equal(beta, expected[0])
    beta = start[::-1].copy()
    flipped = np.ascontiguousarray(K.astype(dtype)[:, ::-1])[::-1]  # a negative row stride
    args = [np.ascontiguousarray(a[::-1]) for a in (lower, upper, d, group)]
    assert _core.smo(flipped, h[::-1].copy(), beta, *args, 1e-6, 10**7, INF)[2] == "converged"


@pytest.mark.parametrize(("k", "room"), [(0.9, INF), (-0.5, INF), (0.9, 0.1)])
def test_one_step_is_the_optimum_of_a_pair(k, room):
    """β = ±t: the slope 2 over the curvature 1 + 2 − 2k + d, or as far as the second variable has room."""
    p, K, d = np.array([1.0, -1.0]), np.array([[1.0, k], [k, 2.0]]), np.array([0.25, 0.5])
    lower, upper = np.array([0.0, -room]), np.array([INF, 0.0])
    beta, steps, left, reason = solve(p, K, lower, upper, d, np.zeros(2, np.int32), np.zeros(2), 1e-9, max_steps=9)
    t = min(2.0 / (3.0 - 2.0 * k + 0.75), room)
    np.testing.assert_allclose(beta, [t, -t], rtol=1e-12)
    assert (steps, reason) == (1, "converged")
    assert left <= 1e-9


def test_max_steps_and_warm_start():
    problem = small_problem()
    beta, steps, reached, reason = solve(*problem, 1e-6, max_steps=0)
    assert (steps, reason) == (0, "max_steps")
    np.testing.assert_array_equal(beta, problem[-1])
    half, steps, better, reason = solve(*problem, 1e-6, max_steps=20)
    assert (steps, reason) == (20, "max_steps")
    assert better < reached
    beta, _, _, reason = solve(*problem[:-1], half, 1e-6)
    assert reason == "converged"
    _, steps, _, _ = solve(*problem[:-1], beta, 2e-6)
    assert steps == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("position", [0, 1, 2, 3, 4, 6])
@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_any_number_that_is_none_ends_the_loop(dtype, position, poison):
    problem = [np.array(a) for a in small_problem()]
    problem[position].flat[3] = poison
    _, steps, reached, reason = solve(*problem, 1e-4, dtype, max_seconds=20.0)
    assert reason in {"converged", "stalled", "nonfinite", "unbounded"}
    assert np.isnan(reached) == (reason == "nonfinite")
    assert steps < 10**6


def test_nonfinite_leaves_beta_alone():
    p, K, lower, upper, d, group, start = small_problem()
    beta, _, reached, reason = solve(p, np.full_like(K, np.nan), lower, upper, d, group, start, 1e-4)
    assert reason == "nonfinite"
    assert np.isnan(reached)
    np.testing.assert_array_equal(beta, start)


@pytest.mark.parametrize("bias", [True, False])
def test_an_unbounded_direction_ends(bias):
    q = 5
    group = np.zeros(q, np.int32) if bias else np.full(q, -1, np.int32)
    box = np.full(q, INF)
    _, _, _, reason = solve(np.arange(q) + 1.0, np.zeros((q, q)), -box, box, np.zeros(q), group, np.zeros(q), 1e-3)
    assert reason == "unbounded"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_tolerance_out_of_reach_ends_stalled(dtype):
    _, steps, reached, reason = solve(*small_problem(), 0.0, dtype, max_seconds=20.0)
    assert reason in {"stalled", "converged"}
    assert reached < 1e-5
    assert steps < 10**6


def slow_problem():
    """Random labels, an almost constant kernel and an enormous box: minutes of steps."""
    rng = np.random.default_rng(0)
    q, C = 1500, 1e9
    K = gaussian(rng.normal(size=(q, 4)), 1e-3)
    y = np.where(rng.random(q) < 0.5, 1.0, -1.0)
    zeros = np.zeros(q)
    return y, K, np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0), zeros, zeros.astype(np.int32), zeros


@pytest.mark.alone
def test_max_seconds_is_kept():
    problem = slow_problem()
    begin = time.perf_counter()
    _, steps, _, reason = solve(*problem, 1e-9, max_steps=10**15, max_seconds=0.1)
    assert reason == "max_seconds"
    assert steps > 0
    assert time.perf_counter() - begin < 1.0


@pytest.mark.alone
def test_ctrl_c_is_answered_at_once():
    code = """
        import os, signal, threading, time
        import test_smo
        problem = test_smo.slow_problem()
        sent = []
        def interrupt():
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(0.3, interrupt).start()
        try:
            test_smo.solve(*problem, 1e-9, max_steps=10**15, max_seconds=30.0)
        except KeyboardInterrupt:
            print(time.perf_counter() - sent[0])
    """
    out = run_core(code)
    assert out, "the solver was not interrupted"
    assert float(out) < 0.2


def good_arguments():
    p, K, lower, upper, d, group, start = small_problem(6)
    return {"K": K, "h": p - K @ start, "beta": start, "lower": lower, "upper": upper, "d": d, "group": group}


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        ("K", lambda a: a[:4], "K must be square"),
        ("K", lambda a: a.T[:, ::2], "K must be square"),
        ("K", np.asfortranarray, "K must have contiguous rows"),
        ("K", lambda a: a.astype(int), "K must be a two-dimensional float32 or float64 array"),
        ("K", lambda a: a.ravel(), "K must be a two-dimensional"),
        ("K", lambda a: a.tolist(), "K must be a two-dimensional"),
        ("h", lambda a: a[:5], "h has 5 elements, but 6 are needed"),
        ("h", lambda a: a.astype(np.float32), "h must be a contiguous one-dimensional float64 array"),
        ("h", lambda a: np.repeat(a, 2)[::2], "h must be a contiguous"),
        ("beta", lambda a: a[:, None], "beta must be a contiguous"),
        ("beta", read_only, "beta must be .* that can be written to"),
        ("beta", lambda a: a.tolist(), "beta must be"),
        ("lower", lambda a: np.append(a, 0.0), "lower has 7 elements"),
        ("upper", lambda a: "abc", "upper must be"),
        ("d", lambda a: a[:0], "d has 0 elements"),
        ("group", lambda a: a.astype(np.int64), "group must be a contiguous one-dimensional int32 array"),
        ("group", lambda a: a - 2, "group must hold group numbers from 0, or -1"),
    ],
)
def test_arrays_that_would_be_unsafe_are_refused_by_name(name, spoil, message):
    arguments = good_arguments()
    arguments[name] = spoil(arguments[name])
    with pytest.raises(ValueError, match=message):
        _core.smo(*arguments.values(), 1e-3, 100, INF)


def test_everything_but_beta_may_be_read_only_and_empty_is_fine():
    arguments = {k: a if k == "beta" else read_only(a) for k, a in good_arguments().items()}
    assert _core.smo(*arguments.values(), 1e-3, 1000, INF)[2] == "converged"
    none = np.zeros(0)
    result = _core.smo(np.zeros((0, 0)), none, none, none, none, none, none.astype(np.int32), 1e-3, 10, INF)
    assert result == (0, 0.0, "converged")


def test_a_group_number_is_only_a_name():
    p, K, lower, upper, d, group, start = small_problem()
    first = solve(p, K, lower, upper, d, group, start, 1e-6)
    again = solve(p, K, lower, upper, d, np.full_like(group, 2**31 - 1), start, 1e-6)
    np.testing.assert_array_equal(first[0], again[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_twins_are_the_matrix_beside_itself(dtype) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(4)
    X = rng.normal(size=(21, 3))
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2)).astype(dtype)
    p = np.concatenate([X[:, 0] - 0.1, X[:, 0] + 0.1])
    lower, upper = np.repeat([0.0, -2.0], 21), np.repeat([2.0, 0.0], 21)
    fixed = (lower, upper, np.zeros(42), np.zeros(42, np.int32), 1e-5, 10_000, float("inf"))
    one, other = np.zeros(42), np.zeros(42)
    found = _core.smo(K, p, one, *fixed, True)
    assert found == _core.smo(np.tile(K, (2, 2)), p, other, *fixed)
    assert found[2] == "converged"
    np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="h "):
        _core.smo(K, p[:21], one, *fixed, True)
