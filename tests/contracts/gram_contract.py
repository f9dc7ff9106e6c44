"""What every Gram matrix and every Field must do, whatever computes the kernel values behind it."""

from __future__ import annotations

import numpy as np

from mercer.problems.working_set import violation


def check_gram_contract(gram, K, atol):
    """`gram` is the matrix K, of which `atol` is the accepted error in float64."""
    rng = np.random.default_rng(0)
    n = len(K)
    assert gram.n == n
    np.testing.assert_allclose(gram.diagonal, np.diag(K), atol=atol)

    I, J = rng.permutation(n)[: n // 3], rng.permutation(n)[: n // 2]
    block = gram.block(I, J)
    assert block.dtype == np.float64
    np.testing.assert_allclose(block, K[np.ix_(I, J)], atol=atol)

    coefficients = rng.normal(size=n) * (rng.random(n) < 0.5)
    np.testing.assert_allclose(gram.product(coefficients), K @ coefficients, atol=10 * n * atol)
    np.testing.assert_allclose(gram.product(coefficients, I), K[I] @ coefficients, atol=10 * n * atol)
    np.testing.assert_array_equal(gram.product(np.zeros(n)), np.zeros(n))

    C = rng.normal(size=(n, 3))
    for columns in (C, C[:, :1]):
        for by_column in (False, True):
            got = gram.products(columns, by_column=by_column)
            assert got.dtype == np.float64
            np.testing.assert_allclose(got, K @ columns, atol=10 * n * atol)

    full = gram.full(np.float64)
    assert full.dtype == np.float64
    assert full.strides[1] == 8
    np.testing.assert_allclose(full, K, atol=atol)
    full[:] = 0.0  # it is the caller's: the matrix stays as it is
    np.testing.assert_allclose(gram.block(I, J), K[np.ix_(I, J)], atol=atol)

    rows = np.sort(rng.permutation(n)[: n // 2])
    part = gram.view(rows)
    assert part.n == len(rows)
    np.testing.assert_allclose(part.block(np.arange(5), np.arange(part.n)), K[np.ix_(rows[:5], rows)], atol=atol)
    again = part.view(np.arange(0, part.n, 2))
    np.testing.assert_allclose(again.diagonal, np.diag(K)[rows[::2]], atol=atol)
    local = rng.normal(size=part.n)
    np.testing.assert_allclose(part.product(local), K[np.ix_(rows, rows)] @ local, atol=10 * n * atol)


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
        field.move(J, target)
        np.testing.assert_array_equal(field.beta[J], target)
        exact = K @ problem.row_coefficients(field.beta, len(K))
        np.testing.assert_allclose(field.u[field.rows], exact[field.rows], atol=(step + 1) * atol * n)
        field.shrink()
        # What is active is exactly what is free or could still be chosen, or everything.
        assert set(problem.row[field.active]) == set(field.rows)

    field.unshrink()
    assert not field.shrunk
    np.testing.assert_array_equal(field.active, np.arange(n))
    exact = K @ problem.row_coefficients(field.beta, len(K))
    np.testing.assert_allclose(field.u, exact, atol=10 * atol * n)
    h = problem.gradient(field.beta, field.u)
    expected = violation(h, *problem.movable(field.beta), problem.group, len(problem.totals))
    for got, wanted in zip(field.violation(), expected, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-12 * (1 + np.abs(h).max()))
