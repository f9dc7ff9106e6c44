"""Bounds on kernel values hold for kernels whose diagonal says nothing, too."""

import numpy as np
import pytest

from mercer.kernels import Gaussian, Linear, Polynomial, Sigmoid
from mercer.places import gram_for


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(gamma=0.5),
        3.0 * Linear(),
        Sigmoid(gamma=1.0, coef0=-1.0),
        Polynomial(gamma=1.0, degree=3, coef0=-2.0),
        Sigmoid(gamma=1.0, coef0=-1.0) + Gaussian(gamma=0.5),
    ],
    ids=repr,
)
def test_no_value_exceeds_the_product_of_its_roots(kernel):
    X = np.random.default_rng(0).normal(size=(30, 4))
    X[0] = 0.5 * X[0] / np.linalg.norm(X[0])
    X[1] = 2.0 * X[0] / np.linalg.norm(X[0])
    gram = gram_for(kernel, X, 10**8, 1)
    K = np.abs(gram.full())
    r = gram.entry_bounds
    assert (np.outer(r, r) * (1 + 1e-12) >= K).all()
    if gram.positive_definite == "yes":
        np.testing.assert_allclose(r, np.sqrt(np.diag(K)))
    else:
        assert (np.outer(*2 * [np.sqrt(np.diag(K))]) * (1 + 1e-6) < K).any()  # else nothing was tested
