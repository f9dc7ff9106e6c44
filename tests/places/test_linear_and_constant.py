"""Sums of a linear kernel with a constant in twice the precision, against rational numbers."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.kernels import Linear
from mercer.places import gram_for


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", [Linear() + 1.0, 3.0 * Linear() + 0.1, 0.7 * (Linear() + 2.5)], ids=str)
def test_bounds_hold_where_everything_cancels(kernel, sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3)) * [1.0, 1e3, 1e-3]
    null = np.linalg.svd(np.column_stack([X, np.ones(12)]).T)[2][-1]  # X'null and Σnull are rounding
    gram = gram_for(kernel, sp.csr_matrix(X) if sparse else X, 10**8, 1)
    recipe = kernel.recipe()
    gamma, coef0, degree = (Fraction(v) for v in recipe.numbers)
    assert degree == 1
    exact = [[Fraction(v) for v in row] for row in X.tolist()]
    for beta in (null, rng.normal(size=12), 1e9 * null):
        u, e = gram.product_bound(beta, level=gram.levels[-1])
        weights = [Fraction(v) for v in beta.tolist()]
        for i, row in enumerate(exact):
            values = [
                Fraction(recipe.scale) * (gamma * sum(a * b for a, b in zip(row, other, strict=True)) + coef0)
                + Fraction(recipe.constant)
                for other in exact
            ]
            true = sum(w * v for w, v in zip(weights, values, strict=True))
            assert abs(Fraction(float(u[i])) - true) <= Fraction(float(e[i]))
        cancels = beta[0] in (null[0], 1e9 * null[0])
        assert e.max() <= (1e-28 if cancels else 1e-14) * np.abs(beta).sum() * gram.diagonal.max()
