"""The running u = Kβ of a stored K stays within its bound, whatever steps and starts came before."""

from fractions import Fraction

import numpy as np
import pytest

from mercer.kernels import Gaussian
from mercer.places import gram_for
from mercer.places.host.stored_gram import StoredField, StoredGram
from mercer.problems.classification import soft_margin
from mercer.problems.regression import epsilon_insensitive


@pytest.mark.parametrize("twins", [False, True])
def test_u_is_within_its_bound_along_rising_and_falling_C(twins):
    rng = np.random.default_rng(0)
    n, kernel = 90, Gaussian(0.2)
    X, y = rng.normal(size=(n, 3)), np.resize([1.0, -1.0], n)
    rows = np.flatnonzero(np.arange(n) % 5 > 0)
    field = StoredField(StoredGram.of(gram_for(kernel, X)), rows, twins=twins)
    true = [[Fraction(float(k)) for k in row] for row in kernel(X)]  # correct to float64, far below float32's errors
    for C in (0.1, 1000.0, 3.0, 1e5):
        price = np.full(len(rows), C)
        problem = epsilon_insensitive(rng.normal(size=n)[rows], price, 0.1) if twins else soft_margin(y[rows], price)
        field.start(problem)
        beta, steps, _ = field.pair_steps(problem, 1e-6, 200 * len(rows), 10.0)
        assert steps > 0
        coefficients = np.zeros(n)
        np.add.at(coefficients, rows[problem.row], beta)
        exact = [sum(k * Fraction(float(c)) for k, c in zip(row, coefficients, strict=True)) for row in true]
        off = np.array([float(abs(Fraction(float(u)) - e)) for u, e in zip(field.u, exact, strict=True)])
        assert (off <= field.e + 1e-12 * C).all()
        assert field.e.max() < 1e-3 * np.abs(coefficients).sum()


@pytest.mark.parametrize("size", [1.0, 1e-39, 1e-44, 1e-46, 1e-60])
def test_errors_count_what_float32_loses_below_its_normal_numbers(size):
    """A falsified bound: there rounding is absolute, and smaller values become 0."""
    rng = np.random.default_rng(1)
    kernel = size * Gaussian(0.2)
    X, c = rng.normal(size=(30, 3)), rng.normal(size=30) / size
    stored = StoredGram.of(gram_for(kernel, X))
    values = stored.table.values
    exact = [sum(Fraction(float(k)) * Fraction(float(one)) for k, one in zip(row, c, strict=True)) for row in kernel(X)]
    kept = [sum(Fraction(float(k)) * Fraction(float(one)) for k, one in zip(row, c, strict=True)) for row in values]
    off = np.array([float(abs(a - b)) for a, b in zip(exact, kept, strict=True)])
    assert (off <= stored.errors(c)).all()


def test_values_of_several_blocks_are_rounded():
    """More rows than a block has: both sides of the diagonal are there."""
    X = np.random.default_rng(0).normal(size=(1100, 3))
    gram = gram_for(Gaussian(0.3), X)
    np.testing.assert_allclose(gram.float32_matrix().values, Gaussian(0.3)(X), atol=1e-7)
