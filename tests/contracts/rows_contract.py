"""What every `Rows` and every `LinearGram` must do, wherever the samples live.

X are the same samples as a float64 array. Values are compared with NumPy's, bounds with sums in rational numbers.
"""

from __future__ import annotations

import math

import numpy as np

from contracts.gram_contract import exact_numbers, share_used
from mercer.places.ball import Ball
from mercer.problems.least_squares import LeastSquares
from mercer.problems.linear_problem import hinge
from mercer.problems.multiclass import JointProblem

# What the sums of NumPy and of an engine may differ by, as a share of the sum of absolute values.
ROUNDING = 1e-13


def close(found, true, size):
    assert found.dtype == np.float64
    assert found.shape == true.shape
    assert (np.abs(found - true) <= ROUNDING * size).all()


def check_rows_contract(rows, X):
    """`rows` are those of X; so are their parts."""
    _check_rows(rows, X)
    n = len(X)
    m, which = max(1, n // 3), np.random.default_rng(3).permutation(n)[: n // 2 + 1]
    again = np.arange(len(which))[::2]
    parts = [
        (rows.first(m), X[:m]),
        (rows.take(which), X[which]),
        (rows.take(which).take(again), X[which[again]]),
        (rows.take(which).first(1), X[which[:1]]),
        (rows.first(m).take(np.array([0, 0])), X[[0, 0]]),
    ]
    for part, values in parts:
        assert part.origin == rows.origin
        _check_rows(part, values)


def _check_rows(rows, X):
    rng = np.random.default_rng(0)
    n, d = X.shape
    assert (rows.n, rows.d) == (n, d)
    assert np.count_nonzero(X) <= rows.stored <= n * d
    w, c = rng.normal(size=d), rng.normal(size=n) * (rng.random(n) < 0.7)
    before = w.copy(), c.copy()
    size, of_c = np.abs(X) @ np.abs(w), np.abs(X).T @ np.abs(c)
    close(rows.product(w), X @ w, size)
    close(rows.product(w, 0.5), X @ w + 0.5, size + 0.5)
    close(rows.transposed(c), X.T @ c, of_c)
    np.testing.assert_array_equal(rows.transposed(np.zeros(n)), np.zeros(d))
    close(rows.squared_lengths, (X * X).sum(axis=1), (X * X).sum(axis=1))
    I, J = rng.permutation(n)[: n // 2 + 1], rng.permutation(n)
    close(rows.gram(I, J), X[I] @ X[J].T, np.abs(X[I]) @ np.abs(X[J]).T)
    Z, weight = np.column_stack([X[I], np.ones(len(I))]), rng.random(len(I))
    close(np.tril(rows.outer(I, weight)), np.tril((Z.T * weight) @ Z), (np.abs(Z).T * weight) @ np.abs(Z))

    close(rows.product_bound(w, 0.5).value, X @ w + 0.5, size + 0.5)
    close(rows.precise_product(w).value, X @ w, size)
    for enough in (0.0, np.inf):
        hi, lo, _ = rows.combination(c, enough)
        close(hi + lo, X.T @ c, of_c)
        close(hi, X.T @ c, of_c)
    close(rows.gram_product(c).value, X @ (X.T @ c), np.abs(X) @ of_c)
    for given, then in zip((w, c), before, strict=True):
        np.testing.assert_array_equal(given, then)


def check_descent_contract(rows, X):
    """`rows.descent` solves a machine without bias to the optimum, and keeps w = X'β and β inside its box."""
    rng = np.random.default_rng(4)
    n = len(X)
    problem = hinge(rng.choice([-1.0, 1.0], n), rng.uniform(0.5, 2.0, n), 0.0, squared=True)
    beta, w, b, seed = np.zeros(n), np.zeros(X.shape[1]), np.zeros(1), np.array([7], dtype=np.uint64)
    limits = 1e-10, np.inf, 100_000, np.inf, True
    box = problem.p, problem.lower, problem.upper, problem.d, problem.epsilon
    taken, violation, _, ended = rows.descent.descend(
        *box, rows.squared_lengths, 0.0, beta, w, b, 0.0, True, seed, *limits
    )
    assert ended == "converged"
    assert taken > 0
    assert violation <= 1e-10
    assert ((problem.lower <= beta) & (beta <= problem.upper)).all()
    np.testing.assert_allclose(w, X.T @ beta, atol=1e-9)
    h = problem.p - X @ (X.T @ beta) - problem.d * beta
    assert np.where(beta < problem.upper, h, 0.0).max() <= 1e-8
    assert np.where(beta > problem.lower, h, 0.0).min() >= -1e-8

    joint = JointProblem(rng.integers(0, 3, n), rng.uniform(0.5, 2.0, n), 3, shared=True)
    beta, w, w_bias = np.zeros((n, 3)), np.zeros(3 * X.shape[1]), np.zeros(3)
    numbers = joint.y.astype(np.int64), joint.C, rows.squared_lengths, 0.0, beta.reshape(-1), w, w_bias, seed
    taken, violation, _, ended = rows.descent.descend_joint(*numbers, *limits)
    assert ended == "converged"
    assert taken > 0
    assert violation <= 1e-10
    np.testing.assert_allclose(w.reshape(-1, 3), X.T @ beta, atol=1e-9)
    np.testing.assert_allclose(beta.sum(axis=1), 0.0, atol=1e-9)
    e = joint.excess(X @ (X.T @ beta), np.zeros(3))
    assert joint.violations(joint.within_bounds(beta), e).max() <= 1e-8


def check_rows_bounds(rows, X, w, c, shift):
    """No error exceeds its bound, not by the last bit; the share of each bound that the worst error took, by verb.

    X holds exact numbers (Fraction), those of the samples before a vector was taken off included.
    """
    w_, c_ = exact_numbers(w), exact_numbers(c)
    Xw, combined = X @ w_, X.T @ c_
    found = {
        "product_bound": share_used(*rows.product_bound(w, shift), Xw + exact_numbers(shift)),
        "precise_product": share_used(*rows.precise_product(w), Xw),
        "gram_product": share_used(*rows.gram_product(c), X @ combined),
    }
    for name, enough in (("combination", 0.0), ("combination, float64", np.inf)):
        hi, lo, error = rows.combination(c, enough)
        found[name] = _share_of_length((hi, lo), error, combined)
    return found


def _share_of_length(parts, error, true):
    assert not math.isnan(error)
    if error == math.inf:
        return 0.0
    off = sum(exact_numbers(part) for part in parts) - true
    square, allowed = sum(x * x for x in off), exact_numbers(error).item() ** 2
    assert square <= allowed
    return math.sqrt(square / allowed) if allowed else 0.0


# --- K = scale·XXᵀ through X --------------------------------------------------------------------------------------


def check_linear_gram_contract(linear, X, scale):
    """`linear` multiplies with X, and K = scale·XXᵀ; sparse samples have no centre, but pieces have."""
    rng = np.random.default_rng(0)
    n, d = X.shape
    assert (linear.n, linear.d, linear.scale) == (n, d, scale)
    W, C, weight = rng.normal(size=(d, 2)), rng.normal(size=(n, 3)), rng.random(n)
    centre = X.mean(axis=0) if n else np.zeros(d)
    for about in (None,) if linear.sparse else (None, centre):
        part = X if about is None else X - about
        size, of_C = np.abs(part) @ np.abs(W), np.abs(part).T @ np.abs(C)
        close(linear.times(W, about), part @ W, size)
        close(linear.times_bound(Ball(W, np.zeros_like(W)), about).value, part @ W, size)
        close(linear.transposed(C, about), part.T @ C, of_C)
        close(linear.times(W[:, 0], about), part @ W[:, 0], size[:, 0])
        close(linear.transposed(C[:, 0], about), part.T @ C[:, 0], of_C[:, 0])
        none = Ball(C, np.zeros_like(C))
        close(linear.transposed_bound(none, np.abs(C), about).value, part.T @ C, of_C)
        close(linear.transposed_squares(weight, about), weight @ part**2, weight @ part**2)
    for about in (None, centre):
        seen, whole = 0, X if about is None else X - about
        for rows, part in linear.dense_blocks(about):
            assert rows.start == seen
            seen = rows.stop
            np.testing.assert_array_equal(part, whole[rows])
        assert seen == n
    for bias in (False, True):
        sums = linear.sums(LeastSquares(C, weight, np.arange(n), n, bias, 1.0))
        less, less_y = X - sums.x, C - sums.y
        size = np.abs(X).T * weight
        close(sums.xx, (less.T * weight) @ less, 4 * size @ np.abs(X))
        close(sums.xy, (less.T * weight) @ less_y, 4 * size @ (np.abs(C) + np.abs(sums.y)))
        close(sums.yy, weight @ less_y**2, 4 * weight @ C**2 + ROUNDING)
        np.testing.assert_allclose(sums.weight, weight.sum())
        assert sums.bias == bias
        assert bias or not (sums.x.any() or sums.y.any())
    narrow, used = linear.without_empty_columns()
    full = np.zeros((d, n))
    full[slice(None) if used is None else used] = narrow.transposed(np.eye(n))
    np.testing.assert_array_equal(full, linear.transposed(np.eye(n)))
    assert narrow.scale == scale


def check_linear_gram_bounds(linear, X, W, C, centre=None):
    """As `check_rows_bounds`, for balls W and C; the bound `norm_bound` is no more than a few roundings too large."""
    part = X if centre is None else X - exact_numbers(centre)
    found = {}
    for name, ball, matrix in (("times_bound", W, part), ("transposed_bound", C, part.T)):
        rest = () if name == "times_bound" else (ball.size,)
        # The values may be anywhere in their balls: at both ends, and as they are.
        for sign in (0, 1, -1):
            true = matrix @ (exact_numbers(ball.value) + sign * exact_numbers(ball.error))
            share = share_used(*getattr(linear, name)(ball, *rest, centre), true)
            found[name] = max(share, found.get(name, 0.0))
    longest = max((sum(x * x for x in row) for row in X), default=0)
    assert exact_numbers(linear.scale).item() * longest <= exact_numbers(linear.norm_bound).item() ** 2
    return found


def check_sums_bounds(linear, X, Y, weight, bias):
    """No entry j, k of the sums is further from the true one than e_j e_k; the share of it that was used."""
    n = len(weight)
    sums = linear.sums(LeastSquares(Y, weight, np.arange(n), n, bias, 1.0))
    x, y, w, e = (exact_numbers(part) for part in (sums.x, sums.y, weight, sums.error))
    one, d = exact_numbers(np.ones((n, 1))), linear.d
    Z = np.hstack([one, X - x, exact_numbers(Y) - y])
    true, allowed = (Z.T * w) @ Z, np.multiply.outer(e, e)
    of_x, of_y = slice(1, d + 1), slice(d + 1, None)
    found = [(0, 0, sums.weight), (of_x, of_x, sums.xx), (of_x, of_y, sums.xy)]
    if bias:
        found += [(0, of_x, sums.rest_x), (0, of_y, sums.rest_y)]
    used = 0.0
    for j, k, values in found:
        off, bound = (np.ravel(part) for part in (np.abs(exact_numbers(values) - true[j, k]), allowed[j, k]))
        assert (off <= bound).all()
        used = max([used, *(float(a / b) for a, b in zip(off, bound, strict=True) if b > 0)])
    return used
