"""The core's solver on a stored matrix: smo on its variables, and u = Kβ of every column, whether it moved or not."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import _core

INF = float("inf")


def problem(dtype, twins: bool):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3))
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    which = np.tile(np.arange(30), 2 if twins else 1)
    p = np.sign(X[:, 0] + 0.3 * rng.normal(size=30))
    lower, upper = np.where(p > 0, 0.0, -2.0), np.where(p > 0, 2.0, 0.0)
    lower[5:9] = upper[5:9] = 0.0
    if twins:
        p = np.concatenate([p - 0.1, p + 0.1])
        lower, upper = np.repeat([0.0, -2.0], 30), np.repeat([2.0, 0.0], 30)
    table = np.ascontiguousarray(K[:, which], dtype)
    return table, which, p, lower, upper, np.zeros(len(p)), np.zeros(len(p), np.int32)


@pytest.mark.parametrize("twins", [False, True])
@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_solves_what_smo_solves(dtype, paired: bool, twins: bool) -> None:  # type: ignore[no-untyped-def]
    """More steps than variables are made on a part of them, and the result is the same."""
    table, which, p, lower, upper, d, group = problem(dtype, twins)
    if not paired:
        group = np.full(len(p), -1, np.int32)
    beta, u, other = np.zeros(len(p)), np.zeros(len(p)), np.zeros(len(p))
    steps, violation, reason = _core.solve_stored(table, which, p, beta, u, lower, upper, d, group, 1e-6, 10_000, INF)
    square = np.ascontiguousarray(table[which])
    _core.smo(square, p, other, lower, upper, d, group, 1e-7, 10_000, INF)
    assert reason == "converged"
    assert steps > 30
    K = square.astype(np.float64)
    np.testing.assert_allclose(u, K @ beta, atol=1e-12)
    h = p - u
    up, low = beta < upper, beta > lower
    true = max(h[up].max(), -h[low].min()) if not paired else h[up].max() - h[low].min()
    # In float32 the steps carry a gradient of size 1 along, rounded by 6e-8 in every update: 3e-7 in 1,600 problems.
    carried = 6e-7 if dtype == np.float32 else 1e-12
    assert true <= 1e-6 + carried
    assert violation == pytest.approx(max(true, 0.0), abs=carried)
    values = [p @ b - 0.5 * b @ K @ b for b in (beta, other)]
    assert values[0] == pytest.approx(values[1], abs=1e-5)
    if not twins:
        assert np.abs(u[5:9]).min() > 1e-3  # u is also that of variables that cannot move


def test_few_steps_are_those_of_smo() -> None:
    table, which, p, lower, upper, d, group = problem(np.float64, False)
    beta, u, other = np.zeros(30), np.zeros(30), np.zeros(30)
    found = _core.solve_stored(table, which, p, beta, u, lower, upper, d, group, 1e-6, 12, INF)
    assert found == _core.smo(table, p, other, lower, upper, d, group, 1e-6, 12, INF)
    np.testing.assert_array_equal(beta, other)


def test_it_goes_on_from_where_it_is() -> None:
    table, which, p, lower, upper, d, group = problem(np.float64, False)
    beta, u = np.zeros(len(p)), np.zeros(len(p))
    _core.solve_stored(table, which, p, beta, u, lower, upper, d, group, 1e-3, 10_000, INF)
    before = beta.copy()
    steps, violation, _ = _core.solve_stored(table, which, p, beta, u, lower, upper, d, group, 2e-3, 10_000, INF)
    assert steps == 0
    assert violation <= 2e-3
    np.testing.assert_array_equal(beta, before)


@pytest.mark.parametrize("name", ["which", "p", "beta", "u", "lower", "upper", "d", "group"])
def test_arrays_of_another_length_are_refused(name: str) -> None:
    table, which, p, lower, upper, d, group = problem(np.float64, False)
    names = ("which", "p", "beta", "u", "lower", "upper", "d", "group")
    given = dict(zip(names, (which, p, np.zeros(30), np.zeros(30), lower, upper, d, group), strict=True))
    given[name] = given[name][:-1].copy()
    with pytest.raises((TypeError, ValueError), match=name):
        _core.solve_stored(table, *given.values(), 1e-3, 10, INF)


def test_a_row_that_is_not_there_is_refused() -> None:
    table, which, *rest = problem(np.float64, False)
    which = which.copy()
    which[3] = 30
    p, lower, upper, d, group = rest
    with pytest.raises((IndexError, ValueError), match="which"):
        _core.solve_stored(table, which, p, np.zeros(30), np.zeros(30), lower, upper, d, group, 1e-3, 10, INF)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_newton_steps_end_what_pair_steps_alone_take_long_for(dtype: type, paired: bool) -> None:
    """A wide kernel and a large C: the free variables depend on one another, and some end at their bounds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 6))
    K = np.ascontiguousarray(np.exp(-0.05 * ((X[:, None] - X) ** 2).sum(axis=2)), dtype)
    p = np.sign(np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=1200))
    lower, upper, d = np.where(p > 0, 0.0, -1e3), np.where(p > 0, 1e3, 0.0), np.zeros(1200)
    lower[:100] = upper[:100] = 0.0
    group = np.full(1200, 0 if paired else -1, np.int32)
    beta, u, other = np.zeros(1200), np.zeros(1200), np.zeros(1200)
    fixed = lower, upper, d, group
    steps, _, reason = _core.solve_stored(K, np.arange(1200), p, beta, u, *fixed, 1e-3, 10**7, INF)
    alone, _, _ = _core.smo(K, p, other, *fixed, 1e-3, 10**7, INF)
    assert reason == "converged"
    assert steps < 0.4 * alone
    assert ((lower <= beta) & (beta <= upper)).all()
    if paired:
        assert abs(beta.sum()) < 1e-9
    K = K.astype(np.float64)
    np.testing.assert_allclose(u, K @ beta, atol=1e-8)
    values = [p @ b - 0.5 * b @ K @ b for b in (beta, other)]
    assert values[0] == pytest.approx(values[1], rel=1e-4)
