"""Arithmetic in twice the precision against decimals of sixty digits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from mercer.compression import twofold
from mercer.compression.exact_products import Sliced, product
from mercer.compression.kernel_values import TwofoldValues
from mercer.kernels import Gaussian, Laplacian, Linear, Polynomial
from reference import exact_expansions as exact

RNG = np.random.default_rng(0)


def off(found, truth):
    """How far high + low is from decimals."""
    pairs = zip(found[0].ravel(), found[1].ravel(), truth, strict=True)
    return [float(abs(Decimal(float(high)) + Decimal(float(low)) - true)) for high, low, true in pairs]


def test_exp():
    high = np.r_[-RNG.uniform(0, 1, 200), -RNG.uniform(0, 600, 200), 0.0, -1e-300, -650.0, -0.5 / 64, -np.log(2)]
    low = high * RNG.uniform(-1, 1, len(high)) * 2.0**-53
    with localcontext() as context:
        context.prec = 60
        truth = [(Decimal(float(a)) + Decimal(float(b))).exp() for a, b in zip(high, low, strict=True)]
        errors = np.array(off(twofold.exp((high, low)), truth)) / np.array([float(t) for t in truth])
    assert errors.max() < twofold.EXP_ERROR
    assert twofold.exp((np.array([-800.0, -np.inf]), np.zeros(2)))[0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("slices", [4, 6])
@pytest.mark.parametrize("spread", [0, 12])
def test_products_of_rows(spread, slices):
    X, Z = (RNG.normal(size=(4, 30)) * 10.0 ** RNG.uniform(-spread, spread, (4, 30)) for _ in range(2))
    left, right = Sliced.of(X, None, 30, slices), Sliced.of(Z, None, 30, slices)
    with localcontext() as context:
        context.prec = 100
        truth = [
            sum(Decimal(a) * Decimal(b) for a, b in zip(x.tolist(), z.tolist(), strict=True)) for x in X for z in Z
        ]
        errors = np.array(off(product(left, right), truth)).reshape(4, 4)
    assert (errors <= left.product_error(30) * np.outer(left.scale, right.scale)).all()


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(gamma=0.3),
        2.5 * Gaussian(gamma=0.3) + 0.7,
        Laplacian(gamma=0.2),
        Linear(),
        Polynomial(degree=5, gamma=0.4, coef0=1.3),
        Polynomial(degree=2, gamma=0.4, coef0=0.0),
    ],
    ids=str,
)
@pytest.mark.parametrize(("shift", "slices", "precise"), [(0.0, 4, 1e-25), (1e6, 4, 1e-13), (1e6, 6, 1e-15)])
def test_kernel_values(kernel, shift, slices, precise):
    X = RNG.normal(size=(7, 5)) + shift * (kernel.recipe().inner != "dot")
    X[3] = X[2]
    values = TwofoldValues(kernel, X, slices)
    with localcontext() as context:
        context.prec = 80
        truth = [exact.value(kernel.recipe(), x, z) for x in X for z in X]
        errors = np.array(off(values(slice(0, 7), slice(0, 7)), truth)).reshape(7, 7)
    size = np.sqrt(np.outer(kernel.diag(X), kernel.diag(X)))
    assert (errors <= values.error * size).all()
    assert values.error < precise
