"""A kernel's terms give its values, and what is no sum of products has none."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from mercer.kernels import (
    ANOVA,
    Bessel,
    Chi2,
    Cosine,
    FromFunction,
    Gaussian,
    Gower,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Spectrum,
    Tanimoto,
)
from reference.terms import term_value

RNG = np.random.default_rng(3)
X, Z = RNG.uniform(0.0, 1.5, size=(4, 3)), RNG.uniform(0.0, 1.5, size=(5, 3))


@pytest.mark.parametrize(
    ("kernel", "n_terms"),
    [
        (Gaussian(gamma=0.5), 1),
        (Gaussian(M=np.diag([1.0, 2.0, 3.0])), 1),
        (Matern(nu=np.inf), 1),
        (Laplacian(gamma=0.5) ** 3, 1),
        (Chi2(gamma=0.7) * 2.0 + 1.0, 2),
        (Polynomial(degree=4, gamma=0.3, coef0=-0.2), 1),
        ((Linear() + 1.0) ** 3, 1),
        ((Gaussian(gamma=0.5) + Linear()) ** 2, 3),
        (Gaussian(gamma=0.5) + 2 * Gaussian(gamma=0.5), 1),
        ((0.5 * Linear() + 1.0).exp() * Gaussian(gamma=0.1), 1),
        ((Gaussian(gamma=0.5) + 3.0).normalised(), 2),
        (ANOVA(gamma=0.5), 3),
        (ANOVA(order=2, gamma=0.5), 3),
        (ANOVA(gamma=0.5) ** 2, 6),
        (Gower(gamma=0.5), 1),
        (Gaussian(gamma=0.5).on([0, 2]) * Laplacian(gamma=0.2).on([1]), 1),
        (Gaussian(gamma=0.5).on([2]) + Polynomial(degree=2, gamma=0.3, coef0=0.2).on([0, 1]), 2),
        (Gaussian(gamma=0.5).on([2, 0]) * Linear().on([1]), 1),
        ((Linear().on([1]).on([0, 2]) + 1.0) ** 2 + Linear(), 2),
        ((0.5 * Linear().on([1, 2])).exp(), 1),
    ],
    ids=repr,
)
def test_terms_add_up_to_the_kernel(kernel, n_terms):
    terms = kernel.terms(3)
    assert len(terms) == n_terms
    values = [[sum(term_value(term, x, z) for term in terms) for z in Z] for x in X]
    np.testing.assert_allclose(kernel(X, Z), values, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    "kernel",
    [
        Cosine(),
        Tanimoto(),
        Matern(nu=2.5),
        Spectrum(2),
        FromFunction(lambda A, B: A @ B.T),
        Gaussian(M=[[2.0, 1.0], [1.0, 2.0]]),
        Gaussian(gamma=1.0).exp(),
        Linear().normalised(),
        Gaussian(gamma=1.0) * Cosine(),
        Polynomial(degree=17, gamma=1.0),
        Polynomial(degree=16, gamma=1e300),
        (Linear() + 1.0) ** 17,
        Gaussian(gamma=1.0).of(np.log),
        Bessel(),
        Gower([0]),
        Linear().on([0]) * Linear().on([1]),
        Cosine().on([0]),
    ],
    ids=repr,
)
def test_others_have_none(kernel):
    assert kernel.terms(3) is None


def test_terms_end_where_the_core_has_no_more_coefficients():
    """(⟨x, z⟩/2 + 1)^n as the binomial theorem has it, up to the last power that the core's series hold."""
    level = (Path(__file__).parents[2] / "src/core/simd/level.hpp").read_text()
    coefficients = int(re.search(r"kMaxSeries = (\d+)", level)[1])
    for left in range(1, coefficients):
        one, other = Polynomial(left, 0.5, 1.0), Polynomial(coefficients - 1 - left or 1, 0.5, 1.0)
        degree = left + (coefficients - 1 - left or 1)
        product, more = (one * other).terms(3), (one * other * Linear()).terms(3)
        if degree < coefficients:
            [term] = product
            np.testing.assert_allclose(
                term.polynomial, [math.comb(degree, k) / 2**k for k in range(degree + 1)], rtol=1e-14
            )
        else:
            assert product is None
        assert (more is None) == (degree + 1 >= coefficients)
