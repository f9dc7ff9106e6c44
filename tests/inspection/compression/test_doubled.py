"""Sums in twice the precision against decimals of a hundred digits, and what they may err by."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from mercer import _core
from mercer.inspection.compression.distance import doubled_squares, norm_bounds
from mercer.kernels import Gaussian, Laplacian, Linear, Polynomial
from reference import exact_expansions as exact

KERNELS = [
    Gaussian(gamma=0.3),
    2.5 * Gaussian(gamma=0.3) + 0.7,
    Laplacian(gamma=0.2),
    3.0 * Linear(),
    Polynomial(degree=5, gamma=0.4, coef0=1.3),
    Polynomial(degree=2, gamma=0.4, coef0=0.0) + 0.5,
]


def true_square(kernel, X, c):
    """Σ_i Σ_j c_i c_j k(x_i, x_j) as a decimal."""
    c = [Decimal(float(v)) for v in c]
    recipe, n = kernel.recipe(), range(len(c))
    return sum((c[i] * c[j] * exact.value(recipe, X[i], X[j]) for i in n for j in n if c[i] and c[j]), Decimal(0))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_what_is_left_of_sums_that_cancel(kernel, shift):
    """Nearly equal samples with opposite coefficients: terms are up to 10¹⁸ times larger than what is left."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 11)) + shift * (kernel.recipe().inner != "dot")
    X[4:] = X[:4] + 1e-9 * rng.normal(size=(4, 11))
    C = rng.normal(size=(8, 3))
    C[4:] = -C[:4]
    C[[0, 4], 1] = 0.0
    found, share = doubled_squares(kernel, X, C)
    allowed = share * norm_bounds(kernel, X, C) ** 2
    with localcontext() as context:
        context.prec = 100
        for output in range(3):
            true = true_square(kernel, X, C[:, output])
            assert abs(float(Decimal(float(found[output])) - true)) <= allowed[output] + 2.0**-53 * abs(float(true))
            assert abs(float(true)) < 1e-8 * norm_bounds(kernel, X, C)[output] ** 2
    assert share < 1e-26


@pytest.mark.parametrize("exponent", [0.0, 1e-300, 1e-9, 0.3, 0.5 / 16, np.log(2), 1.0, 17.3, 650.0, 699.0, 1e4, 1e300])
def test_exp(exponent):
    """k of two samples, from c = (1, −1) and c = (1, 1)."""
    kernel = Laplacian(gamma=exponent or 1.0)
    X = np.array([[0.0], [1.0 if exponent else 0.0]])
    with localcontext() as context:
        context.prec = 100
        true = (-Decimal(float(exponent))).exp()
        shares = [np.zeros((2, 1)), np.zeros((2, 1))]
        for sign, into in zip((1.0, -1.0), shares, strict=True):
            found = _core.doubled_squares(X, np.array([[1.0], [sign]]), 0, 2, "l1", kernel.gamma, 0.0, 1, 1.0, 0.0, 1)
            into[:] = np.array(found)
            total = sum(Decimal(float(part)) for part in into.ravel())
            assert abs(total - (2 + 2 * int(sign) * true)) < Decimal(2) ** -97


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("d", [1, 7, 8, 17])
def test_blocks_of_rows_add_up(n, d):
    """Every call of a part of the rows, with any number of threads, has the shares of the whole."""
    rng = np.random.default_rng(n + d)
    X, C = rng.normal(size=(n, d)), rng.normal(size=(n, 2))
    kind = ("sqdist", 0.1, 0.0, 1, 1.0, 0.0)
    whole = np.array(_core.doubled_squares(X, C, 0, n, *kind, 1))
    parts = [np.array(_core.doubled_squares(X, C, a, min(n, a + 64), *kind, 3)) for a in range(0, n, 64)]
    np.testing.assert_array_equal(whole, np.concatenate(parts, axis=1))
    np.testing.assert_allclose(
        whole.sum(axis=0).reshape(-1, 2).sum(axis=0), np.einsum("ip,ij,jp->p", C, Gaussian(gamma=0.1)(X), C), rtol=1e-10
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.ones((4, 2), np.float32)}, "X must be a C-contiguous"),
        ({"C": np.ones((3, 1))}, "C must have as many rows"),
        ({"first": 1}, "first must be a multiple of 64"),
        ({"end": 5}, "end must lie between"),
        ({"inner": "cosine"}, "inner must be 'dot'"),
        ({"degree": -1}, "degree must not be negative"),
        ({"n_threads": 0}, "n_threads must be at least 1"),
    ],
)
def test_arguments_that_would_be_unsafe_are_refused_by_name(change, message):
    good = {
        "X": np.ones((4, 2)),
        "C": np.ones((4, 1)),
        "first": 0,
        "end": 4,
        "inner": "dot",
        "gamma": 1.0,
        "coef0": 0.0,
    }
    good |= {"degree": 1, "scale": 1.0, "constant": 0.0, "n_threads": 1}
    _core.doubled_squares(**good)
    with pytest.raises(ValueError, match=f"^{message}"):
        _core.doubled_squares(**good | change)
