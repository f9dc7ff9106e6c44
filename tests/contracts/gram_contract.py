"""What every Gram, every Field and every Evaluation must do, whatever computes the kernel values behind it.

K is the same matrix computed elsewhere, by the kernel in plain NumPy.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np

from mercer.places.host.blocks import BlockSize, run_device_rounds
from mercer.places.host.pair_place import Layout
from mercer.problems.dual_problem import violation
from mercer.problems.multiclass import JointProblem
from mercer.samples.arrays import rows_between

ANSWERS = ("yes", "no", "depends", "unknown")
FLOAT32 = 1e-5  # of the largest entry of K, per unit of Σ|coefficients|


def check_products_contract(gram, K, atol):
    """`gram` multiplies by K, of which `atol` is the accepted error in float64: what a certificate needs."""
    rng = np.random.default_rng(0)
    n = len(K)
    assert gram.n == n
    assert gram.positive_definite in ANSWERS
    assert set(gram.precisions) <= {np.float32, np.float64}
    assert gram.precisions[-1] is np.float64

    I = rng.permutation(n)[: n // 3]
    coefficients = rng.normal(size=n) * (rng.random(n) < 0.5)
    before = coefficients.copy()
    np.testing.assert_allclose(gram.product(coefficients), K @ coefficients, atol=10 * n * atol)
    np.testing.assert_allclose(gram.product(coefficients, I), K[I] @ coefficients, atol=10 * n * atol)
    np.testing.assert_array_equal(gram.product(np.zeros(n)), np.zeros(n))
    single = gram.product(coefficients, dtype=np.float32)
    assert single.dtype == np.float64
    rounding = FLOAT32 * np.abs(K).max() * np.abs(coefficients).sum()
    np.testing.assert_allclose(single, K @ coefficients, atol=rounding)
    np.testing.assert_array_equal(coefficients, before)

    C = np.column_stack([coefficients, rng.normal(size=(n, 2))])
    for columns in (C, C[:, :1], np.tile(C, (1, 3))):
        for rows in (None, I):
            got, true = gram.products(columns, rows), K @ columns
            assert got.dtype == np.float64
            np.testing.assert_allclose(got, true if rows is None else true[rows], atol=10 * n * atol)
    rounding = FLOAT32 * np.abs(K).max() * np.abs(C).sum(axis=0).max()
    np.testing.assert_allclose(gram.products(C, dtype=np.float32), K @ C, atol=rounding)


def check_gram_contract(gram, K, atol):
    """`gram` is the matrix K, of which `atol` is the accepted error in float64; so are its views and copies."""
    _check_gram(gram, K, atol)
    rng = np.random.default_rng(3)
    n = len(K)
    rows = np.sort(rng.permutation(n)[: n // 2])
    again = np.arange(0, len(rows), 2)
    parts = {
        "view": (gram.view(rows), rows),
        "view of a view": (gram.view(rows).view(again), rows[again]),
        "in any order": (gram.view(rows[::-1].copy()), rows[::-1]),
        "copied": (gram.copied(rows, 10**6), rows),
        "copy of a view": (gram.view(rows).copied(again, 10**6), rows[again]),
        "streamed": (gram.streamed(), np.arange(n)),
        "streamed view": (gram.view(rows).streamed(), rows),
    }
    for part, which in parts.values():
        _check_gram(part, K[np.ix_(which, which)], atol)
    few = rows[:: max(1, len(rows) // 8)]
    check_factor_contract(gram.view(few), K[np.ix_(few, few)], atol)
    check_eigensystem_contract(gram.view(few), K[np.ix_(few, few)], atol)
    check_landmark_factor_contract(gram, K)
    check_landmark_factor_contract(gram.view(rows), K[np.ix_(rows, rows)])
    gram.share()  # what is shared from now on is still K
    _check_gram(gram, K, atol)
    _check_gram(gram.view(rows), K[np.ix_(rows, rows)], atol)

    # A counterexample is known to the matrix and to whatever was or will be made of it.
    gram.refute()
    for part in (gram, parts["view"][0], parts["streamed"][0], gram.view(rows), gram.copied(rows, 10**6)):
        assert part.positive_definite == "no"


def _check_gram(gram, K, atol):
    check_products_contract(gram, K, atol)
    rng = np.random.default_rng(1)
    n = len(K)
    np.testing.assert_allclose(gram.diagonal, np.diag(K), atol=atol)
    assert gram.diagonal.dtype == np.float64
    assert gram.budget > 0
    assert gram.chunk_rows > 0
    assert gram.outer_rows >= 0
    assert gram.kernel.bound
    assert not (gram.concurrent and not gram.recomputes_cheaply)
    if gram.linear is not None:
        linear = gram.linear
        assert linear.n == n
        product = linear.scale * linear.times(linear.transposed(np.eye(n)))
        np.testing.assert_allclose(product, K, atol=max(atol, 1e-12))

    I, J = rng.permutation(n)[: n // 3], rng.permutation(n)[: n // 2]
    before = gram.evaluations
    block = gram.block(I, J)
    assert gram.evaluations - before in (0, len(I) * len(J))
    assert block.dtype == np.float64
    np.testing.assert_allclose(block, K[np.ix_(I, J)], atol=atol)
    assert gram.block(I[:0], J).shape == (0, len(J))

    for dtype, error in ((np.float64, atol), (np.float32, FLOAT32 * np.abs(K).max())):
        full = gram.full(dtype)
        assert full.dtype == dtype
        assert full.strides[1] == full.itemsize
        np.testing.assert_allclose(full, K, atol=max(error, atol))
    table = gram.float32_matrix()
    rounded = table.values
    few = np.where(np.arange(n) % 7 == 3, rng.normal(size=n), 0.0)
    for some in (few, rng.normal(size=n)):
        wanted = rounded.astype(np.float64) @ some
        np.testing.assert_allclose(table.product(some), wanted, atol=1e-14 * n * np.abs(K).max() * np.abs(some).max())
    assert table.largest == np.abs(rounded).max()
    assert rounded.dtype == np.float32
    np.testing.assert_array_equal(rounded, rounded.T)
    np.testing.assert_array_equal(np.diagonal(rounded), gram.diagonal.astype(np.float32))
    np.testing.assert_allclose(rounded, gram.full(), atol=FLOAT32 * np.abs(K).max())
    full[:] = block[:] = rounded[:] = 0.0  # they are the caller's: the matrix stays as it is
    np.testing.assert_allclose(gram.block(I, J), K[np.ix_(I, J)], atol=atol)

    c = rng.normal(size=n)
    assert np.float64 in gram.levels
    for level in gram.levels:
        u, error = gram.product_bound(c, J, level)
        assert (np.abs(u - K[J] @ c) <= error + atol * np.abs(c).sum()).all()
        np.testing.assert_array_equal(gram.errors(c, J, level) >= 0, True)
    assert (np.abs(K) <= np.outer(gram.entry_bounds, gram.entry_bounds) * (1 + 1e-12) + atol).all()
    assert gram.proof.n == n
    layout = Layout.of([J[: n // 4], J[n // 4 :]], np.array([[0, 1]]))
    pairs = gram.pairs(layout, 1)
    assert pairs is None or (pairs.row_errors >= 0).all()
    check_joint_field_contract(gram, JointProblem(np.arange(n) % 3, np.ones(n), 3, shared=True), K, np.float64, atol)

    smallest = np.linalg.eigvalsh(0.5 * (K + K.T))[0]
    if gram.positive_definite == "yes" or smallest >= 0:
        assert gram.looks_positive_definite()


def check_bounds(gram, K, C, level=np.float64):
    """No product is further from the true one than its bound, not by the last bit; returns how much of one was used.

    `gram` is anything BoundedProducts, K its matrix in exact numbers (Fraction), and C has a column for each product.
    """
    true = K @ exact_numbers(C)
    balls = [np.column_stack(part) for part in zip(*(gram.product_bound(c, None, level) for c in C.T), strict=True)]
    used = share_used(*balls, true)
    rows = np.arange(len(K) - 1, -1, -2)
    some = gram.product_bound(np.ascontiguousarray(C[:, 0]), rows, level)
    used = max(used, share_used(*(part[:, None] for part in some), true[rows, :1]))
    reach = exact_numbers(gram.entry_bounds)
    assert (np.abs(K) <= reach[:, None] * reach).all()
    return used


def check_bounds_of_several(gram, K, C, level=np.float64):
    """`check_bounds` for products with all columns at once, and for the bounds that are made without a product."""
    for rows in (np.arange(len(K)), np.arange(0, len(K), 2)):
        true = (K @ exact_numbers(C))[rows]
        share_used(*gram.product_bound(C, rows, level), true)
        for k, c in enumerate(C.T):
            share_used(gram.product(c, rows), gram.errors(c, rows), true[:, k])


def check_bounds_of_values(gram, K, level=np.float64):
    """The bounds of a product with one column hold for the values themselves, wherever they are read."""
    unit, everything = np.eye(len(K)), np.arange(len(K))
    errors = np.column_stack([gram.errors(column, None, level) for column in unit])
    used = share_used(gram.full(level), errors, K)
    if level == np.float64:
        back = np.ascontiguousarray(everything[::-1])
        share_used(gram.block(everything, back), errors[:, back], K[:, back])
        share_used(gram.float64_matrix().products(unit), errors, K)
    return used


def share_used(value, error, true):
    """The largest share of its bound that an error takes, which is at most 1; an infinite bound claims nothing."""
    assert not np.isnan(error).any()
    known = np.isfinite(error)
    off = np.abs(exact_numbers(np.where(known, value, 0.0)) - true)
    bound = exact_numbers(np.where(known, error, 0.0))
    assert (off <= bound)[known].all()
    return float(max((a / b for a, b in zip(off[known], bound[known], strict=True) if b > 0), default=0.0))


def exact_numbers(values):
    """Floats, or Decimals, as Fractions."""
    values = np.asarray(values)
    return np.array([Fraction(x) for x in values.ravel().tolist()], dtype=object).reshape(values.shape)


def _check_inside(field, J, target, K, atol):
    """The problem on J is the whole one with all others held, also when some of J move and others are dropped."""
    problem, beta, u = field.problem, field.beta.copy(), field.u.copy()
    inside, everything = field.inner_field(J), np.arange(len(J))
    np.testing.assert_array_equal(inside.beta, beta[J])
    np.testing.assert_array_equal(inside.active, everything)
    for name in ("lower", "upper", "d", "group"):
        np.testing.assert_array_equal(getattr(inside.problem, name), getattr(problem, name)[J])
    sums = [beta[J][problem.group[J] == g].sum() for g in range(len(problem.totals))]
    np.testing.assert_allclose(inside.problem.totals, sums, atol=1e-12 * (1 + np.abs(beta).sum()))
    np.testing.assert_allclose(inside.gradient(everything), field.gradient(J), atol=atol)
    for some in (everything[::3], everything[1::3]):
        np.testing.assert_allclose(inside.block(some), K[np.ix_(problem.row[J[some]], problem.row[J[some]])], atol=atol)
        inside.move(some, target[some])
        inside.shrink()
    inside.unshrink()
    after = beta.copy()
    after[J] = np.where(everything % 3 < 2, target, beta[J])
    np.testing.assert_array_equal(inside.beta, after[J])
    rows = problem.row[J]
    exact = field.u[rows] + K[rows] @ problem.row_coefficients(after - beta, len(K))
    h = problem.p[J] - exact - problem.d[J] * after[J]
    np.testing.assert_allclose(inside.gradient(everything), h, atol=atol * (1 + np.abs(after).max()))
    np.testing.assert_array_equal(field.beta, beta)
    np.testing.assert_array_equal(field.u, u)


def check_landmark_factor_contract(gram, K):
    """`gram` factors A = K_JJ + K_nJᵀ diag(weight) K_nJ; a jitter j on K_JJ leaves a residual of about jx of R = Ax."""
    rng = np.random.default_rng(7)
    J, weight = rng.permutation(len(K))[: len(K) // 4], rng.uniform(0, 3, len(K)) * (np.arange(len(K)) % 5 > 0)
    size = np.abs(K).max()
    if np.linalg.eigvalsh(0.5 * (K + K.T) / (size or 1.0))[0] < -1e-9:
        return
    x = rng.normal(size=(len(J), 2))
    for w in (weight, np.zeros(len(K))):
        A = K[np.ix_(J, J)] + (K[:, J].T * w) @ K[:, J]
        got = gram.landmark_factor(J, w, 2).solve(A @ x)
        assert got.dtype == np.float64
        np.testing.assert_allclose(A @ got, A @ x, rtol=0, atol=1e-8 * np.abs(A).sum())


def check_factor_contract(gram, K, atol):
    """`gram`, of few samples, factors K + diag(d) for d of any size, to the residual that `Factor.solve` states.

    K and all products are rational. Where a 2 × 2 minor is negative or an entry of the diagonal, there is no factor.
    """
    n, rng = len(K), np.random.default_rng(4)
    size = np.abs(K).max() or 1.0
    dominant = 2 * np.abs(K).sum(axis=1) + 0.1 * size
    R = rng.integers(-9, 10, size=(n, 2)) * np.array([size, 1e-40 * size])
    kept = gram.float64_matrix()
    _check_kept_products(kept, K, rng.normal(size=(n, 2)), atol)
    np.testing.assert_allclose(kept.extremes, (K.min(), K.max()), rtol=0, atol=atol)
    np.testing.assert_allclose(kept.column(n // 2), K[:, n // 2], rtol=0, atol=atol)
    np.testing.assert_allclose(kept.column(0, np.arange(n)[::-2]), K[::-2, 0], rtol=0, atol=atol)
    kept.column(0)[:] = np.nan  # it is the caller's
    for d in (dominant, dominant * 10.0 ** rng.integers(0, 100, n)):
        for precision, accepted in ((np.float64, atol), (np.float32, max(atol, FLOAT32 * size))):
            if precision == np.float64 or 1e-25 < size < 1e25:
                _check_factor(gram.factor(d, precision), K, d, R, precision, accepted)
        rows = rng.permutation(n)[: n // 2 + 1]
        _check_factor(kept.factor(d), K, d, R, np.float64, atol)
        _check_factor(kept.factor(d[rows], rows), K[np.ix_(rows, rows)], d[rows], R[rows], np.float64, atol)
    _check_kept_products(kept, K, rng.normal(size=(n, 1)), atol)  # factors are made of copies

    if np.linalg.eigvalsh(K / size)[0] > -1e-9:  # a ridge of a hundredth is enough
        _check_factor(gram.factor(np.full(n, 0.01 * size)), K, np.full(n, 0.01 * size), R, np.float64, atol)
    semidefinite = gram.factor(np.zeros(n))  # there may be one, and then it is as good as any
    if semidefinite is not None:
        _check_residual(semidefinite, K, np.zeros(n), R, np.float64, atol)
    for impossible in (-dominant, np.where(np.arange(n) == n - 1, -2 * dominant, dominant), np.full(n, np.inf)):
        assert gram.factor(impossible) is None
        assert kept.factor(impossible) is None
    between = np.abs(K - np.diag(np.diag(K)))
    pair = np.unravel_index(np.argmax(between), K.shape)
    if between[pair] > 1e-3 * size:
        assert gram.factor(np.where(np.isin(np.arange(n), pair), 0.5 * between[pair] - np.diag(K), dominant)) is None


def _check_factor(factor, K, d, R, precision, atol):
    assert factor is not None
    _check_residual(factor, K, d, R, precision, atol)
    # L = L(A + E) with |E_ij| ≤ (n + 20)u√(a_ii a_jj), and no eigenvalue of A with the diagonal 1 is below 0.01: the
    # determinant is off by n times the largest eigenvalue of E with that diagonal over the smallest, at most.
    n, unit, roots = len(K), _unit(precision), np.sqrt(np.diag(K) + d)
    off = n * (n + 20) * unit + (atol / np.outer(roots, roots)).sum()
    log, pivots = _log_determinant(K, d), factor.pivots
    assert pivots.shape == (n,)
    assert pivots.dtype == np.float64
    assert abs(2 * np.log(pivots).sum() - log) <= 110 * n * off + 1e-14 * np.abs(np.log(pivots)).sum()


def _check_residual(factor, K, d, R, precision, atol):
    before, Z = R.copy(), factor.solve(R)
    assert Z.dtype == np.float64
    np.testing.assert_array_equal(R, before)
    A = exact_numbers(K) + np.diag(exact_numbers(d))
    left = np.abs(A @ exact_numbers(Z) - exact_numbers(R))
    roots, n = np.sqrt(np.abs(np.diag(K) + d)), len(K)
    allowed = (4 * n + 20) * _unit(precision) * np.outer(roots, roots @ np.abs(Z)) + atol * np.abs(Z).sum(axis=0)
    assert (left <= exact_numbers(allowed)).all()


def _check_kept_products(kept, K, C, atol):
    n, before = len(K), C.copy()
    some = np.arange(n)[::-2]
    for got, part, c in ((kept.products(C), K, C), (kept.products(C[some], some), K[:, some], C[some])):
        left = np.abs(exact_numbers(part) @ exact_numbers(c) - exact_numbers(got))
        allowed = (n + 4) * 2.0**-53 * np.abs(part) @ np.abs(c) + atol * np.abs(c).sum(axis=0)
        assert (left <= exact_numbers(allowed)).all()
    np.testing.assert_array_equal(C, before)


def _unit(precision):
    return float(np.finfo(precision).eps) / 2


def _log_determinant(K, d):
    """Of K + diag d in rational arithmetic; its logarithm to fifty digits."""
    A, determinant = exact_numbers(K) + np.diag(exact_numbers(d)), Fraction(1)
    for k in range(len(A)):
        assert A[k, k] > 0
        determinant *= A[k, k]
        A[k + 1 :, k + 1 :] -= np.outer(A[k + 1 :, k] / A[k, k], A[k, k + 1 :])
    with localcontext(prec=50):
        return float(Decimal(determinant.numerator).ln() - Decimal(determinant.denominator).ln())


def check_eigensystem_contract(gram, K, atol):
    """What `eigh` and `kept().leading` find are the eigenvectors of this K, of few samples, scaled and centred."""
    n, rng = len(K), np.random.default_rng(5)
    for scale, centred in product((np.ones(n), rng.integers(1, 300, n) / 16), (False, True)):
        s = exact_numbers(scale)
        S = s[:, None] * exact_numbers(K) * s
        rows = [float(x) for x in np.abs(S).sum(axis=1)]
        size, off = max(1e-290, *rows), n * atol * float(scale.max() ** 2)  # zeros are such numbers
        if centred:
            P = np.diag(exact_numbers(np.ones(n))) - np.outer(s, s) / (s @ s)
            S = P @ S @ P
        found, m = gram.eigh(scale, centred), n - centred
        assert found.values.shape == (m,)
        Q = found.combined(np.eye(m))
        _check_eigenvectors(S, found.values, Q, 40 * n * 2.0**-53, size, off)
        if centred:
            np.testing.assert_allclose(Q.T @ scale / np.linalg.norm(scale), 0.0, atol=40 * n * 2.0**-53)
        R, A = rng.normal(size=(n, 2)), rng.normal(size=(m, 3))
        np.testing.assert_allclose(found.coordinates(R), Q.T @ R, atol=1e-14 * n)
        np.testing.assert_allclose(found.combined(A), Q @ A, atol=1e-14 * n)
        np.testing.assert_allclose(found.squared(A), Q**2 @ A, atol=1e-14 * n)

        few, less = max(1, n // 2), rng.integers(0, 8, n) * np.abs(K).max() / 8
        c = scale**2 / np.sum(scale**2)  # centred in this way S is the same
        values, U = gram.float64_matrix().leading(scale, few, c if centred else None)
        assert values.shape == (few,)
        _check_eigenvectors(S, values[::-1], U[:, ::-1], 1e-12, size, off)
        largest = np.sort(np.append(found.values, np.zeros(int(centred))))[::-1][:few]
        np.testing.assert_allclose(values, largest, rtol=0, atol=n * (1e-12 * size + off))
        values, U = gram.float64_matrix().leading(scale, None, None, less)
        if not centred:
            S -= np.diag(s * exact_numbers(less) * s)
            assert values.shape == (n,)
            _check_eigenvectors(S, values[::-1], U[:, ::-1], 1e-12, 2 * size, off)
        first = np.argmax(np.abs(U) >= (1 - 1e-6) * np.abs(U).max(axis=0), axis=0)  # of those as large
        assert (U[first, np.arange(n)] > 0).all()


def _check_eigenvectors(S, values, Q, share, size, off):
    """Orthonormal but for `share`, and SQ = QΛ but for that share of `size`, in rational arithmetic; values increase.

    `off` is what S itself may be off by. Every eigenvalue of S is then as close to its place in Λ but for a factor √n,
    as Weyl's theorem says.
    """
    assert (np.diff(values) >= 0).all()
    exact = exact_numbers(Q)
    assert (np.abs(S @ exact - exact * exact_numbers(values)) <= Fraction(share * size + off)).all()
    assert (np.abs(exact.T @ exact - np.eye(len(values), dtype=int)) <= Fraction(share)).all()


def check_field_contract(gram, problem, K, dtype, atol):
    """A field on `gram` for `problem`: u follows β through moves, shrinking and its undoing."""
    rng = np.random.default_rng(1)
    field = gram.field(problem, dtype=dtype)
    n = problem.n_variables
    np.testing.assert_allclose(field.u, K @ problem.row_coefficients(field.beta, len(K)), atol=atol)

    for step in range(6):
        J = field.violators(n // 4, keep=0.5)
        assert len(J) <= n // 4
        assert len(np.unique(J)) == len(J)
        assert np.isin(J, field.active).all()
        if len(problem.totals) == 1:
            # The worst pair is always in the set: without it a step may gain nothing.
            worst, tops, bottoms = field.violation()
            h, (up, low) = field.gradient(J), (member[J] for member in problem.movable(field.beta))
            assert h[up].max() == tops[0]
            assert h[low].min() == bottoms[0]
            assert worst == max(0.0, tops[0] - bottoms[0])

        block = field.block(J)
        np.testing.assert_allclose(block, K[np.ix_(problem.row[J], problem.row[J])], atol=atol)
        target = np.clip(field.beta[J] + rng.normal(size=len(J)), problem.lower[J], problem.upper[J])
        bound = np.where(rng.random(len(J)) < 0.5, problem.lower[J], problem.upper[J])
        target = np.where((rng.random(len(J)) < 0.4) & np.isfinite(bound), bound, target)
        _check_inside(field, np.sort(J), target[np.argsort(J)], K, (step + 1) * atol * n)
        if step % 2:
            field.block(J[::2])  # the block of J is no longer at hand
        field.move(J, target)
        np.testing.assert_array_equal(field.beta[J], target)
        exact = K @ problem.row_coefficients(field.beta, len(K))
        rows = np.unique(problem.row[field.active])
        np.testing.assert_allclose(field.u[rows], exact[rows], atol=(step + 1) * atol * n)
        field.shrink()

    field.unshrink()
    assert not field.shrunk
    np.testing.assert_array_equal(field.active, np.arange(n))
    sums = [field.beta[problem.group == g].sum() for g in range(len(problem.totals))]
    before = field.violation()[0]
    taken, _ = run_device_rounds(field, BlockSize(n, n), 0.5 * before, 10**6)
    assert taken >= 0
    assert taken == 0 or field.violation()[0] < before
    assert ((problem.lower <= field.beta) & (field.beta <= problem.upper)).all()
    after = [field.beta[problem.group == g].sum() for g in range(len(problem.totals))]
    np.testing.assert_allclose(after, sums, atol=1e-12 * n)
    exact = K @ problem.row_coefficients(field.beta, len(K))
    np.testing.assert_allclose(field.u, exact, atol=10 * atol * n)
    h = problem.gradient(field.beta, field.u)
    expected = violation(h, *problem.movable(field.beta), problem.group, len(problem.totals))
    for got, wanted in zip(field.violation(), expected, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-12 * (1 + np.abs(h).max()))


def check_joint_field_contract(gram, problem, K, dtype, atol):
    """A joint field on `gram` for `problem`: u follows β through moves, shrinking and its undoing."""
    rng = np.random.default_rng(2)
    n, classes = problem.n, problem.n_classes

    def inside(rows):
        alpha = rng.dirichlet(np.ones(classes), len(rows)) * (rng.random((len(rows), 1)) < 0.7)
        return problem.within_bounds(-problem.C[rows, None] * np.round(2 * alpha) / 2, rows)

    beta = inside(np.arange(n))
    field = gram.joint_field(problem, beta, K @ beta, dtype)
    assert field.gram.n == n
    field.set_problem(replace(problem, b=np.arange(classes) / 8))
    problem = field.problem
    assert not field.shrunk
    for step in range(6):
        slack = 10 * (step + 1) * n * max(atol, np.finfo(dtype).eps) * max(1.0, np.abs(K).max())
        e = problem.excess(K @ field.beta, problem.offsets(field.beta))
        np.testing.assert_allclose(field.b, problem.offsets(field.beta), atol=slack)
        if not field.shrunk:
            worst = problem.violations(field.beta, e).max()
            np.testing.assert_allclose(field.violation(), worst, atol=slack)
        J = field.violators(n // 4, keep=0.5)
        assert len(J) <= n // 4
        assert len(np.unique(J)) == len(J)
        np.testing.assert_allclose(field.excess(J), e[J], atol=slack)
        np.testing.assert_allclose(field.block(J), K[np.ix_(J, J)], atol=slack)
        before, target = field.beta.copy(), inside(J)
        field.move(J, target)
        before[J] = target
        np.testing.assert_array_equal(field.beta, before)
        field.shrink(field.violation())
    field.unshrink()
    assert not field.shrunk
    np.testing.assert_allclose(field.u, K @ field.beta, atol=10 * slack)


class EvaluatedBy:
    """An Evaluation of an engine, for samples of this machine."""

    def __init__(self, engine, kernel, vectors, coefficients, columns=None):
        vectors, self.engine = None if vectors is None else engine.samples(vectors), engine
        self.inner = engine.evaluation(kernel, vectors, coefficients, columns)

    def add(self, out, X, n_threads):
        self.inner.add(out, self.engine.samples(X), n_threads)


def check_evaluation_contract(evaluation, X, values, atol):
    """`evaluation` adds these `values`, K(X, vectors) @ coefficients, with one thread or several, again and again."""
    for n_threads in (1, 2, 1):
        out = np.ones(values.shape)
        evaluation.add(out, X, n_threads)
        np.testing.assert_allclose(out, 1 + values, atol=atol)
    none = np.ones((0, values.shape[1]))
    evaluation.add(none, rows_between(X, slice(0, 0)), 1)
