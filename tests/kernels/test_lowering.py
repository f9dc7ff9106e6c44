"""Recipes: what lowers, into what, and that a recipe gives the kernel's own values."""

import math

import numpy as np
import pytest

from mercer.kernels import (
    Chi2,
    Cosine,
    FromFunction,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Sigmoid,
    Tanimoto,
)
from mercer.kernels.recipe import Recipe
from reference.recipes import evaluate

rng = np.random.default_rng(4)
X, Z = rng.normal(size=(9, 3)), rng.normal(size=(6, 3))
M = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.2], [0.0, 0.2, 0.5]])
L = np.linalg.cholesky(M)
poly = Polynomial(degree=2, gamma=0.5, coef0=1.0)

LOWERED = [
    (Linear(), Recipe("dot", "identity")),
    (poly, Recipe("dot", "polynomial", (0.5, 1.0, 2.0))),
    (Sigmoid(0.5, 1.0), Recipe("dot", "sigmoid", (0.5, 1.0))),
    (Cosine(), Recipe("dot", "identity", normalise=True)),
    (Gaussian(0.5), Recipe("sqdist", "gaussian", (0.5,))),
    (Gaussian(sigma=2.0), Recipe("sqdist", "gaussian", (0.125,))),
    (Gaussian(M=M), Recipe("sqdist", "gaussian", (1.0,), factor=L)),
    (Matern(math.inf, 2.0), Recipe("sqdist", "gaussian", (0.125,))),
    (Laplacian(0.5), Recipe("l1", "laplacian", (0.5,))),
    (3 * Linear(), Recipe("dot", "identity", scale=3.0)),
    (3 * Gaussian(0.5) * 2, Recipe("sqdist", "gaussian", (0.5,), scale=6.0)),
    (Gaussian(0.5) * Gaussian(0.25), Recipe("sqdist", "gaussian", (0.75,))),
    (2 * Gaussian(M=M) * Gaussian(M=M), Recipe("sqdist", "gaussian", (2.0,), scale=2.0, factor=L)),
    (Laplacian(0.5) * (2 * Laplacian(0.25)), Recipe("l1", "laplacian", (0.75,), scale=2.0)),
    (Gaussian(0.5) ** 3, Recipe("sqdist", "gaussian", (1.5,))),
    ((2 * Gaussian(0.5)) ** 3, Recipe("sqdist", "gaussian", (1.5,), scale=8.0)),
    (Linear() ** 3, Recipe("dot", "polynomial", (1.0, 0.0, 3.0))),
    ((2 * Linear()) ** 3, Recipe("dot", "polynomial", (1.0, 0.0, 3.0), scale=8.0)),
    (Linear() * Linear(), Recipe("dot", "polynomial", (1.0, 0.0, 2.0))),
    (Cosine() ** 2, Recipe("dot", "polynomial", (1.0, 0.0, 2.0), normalise=True)),
    (poly**2, Recipe("dot", "polynomial", (0.5, 1.0, 4.0))),
    (poly * poly**2, Recipe("dot", "polynomial", (0.5, 1.0, 6.0))),
    (Linear() + 2, Recipe("dot", "polynomial", (1.0, 2.0, 1.0))),
    (3 * Linear() + 2, Recipe("dot", "polynomial", (3.0, 2.0, 1.0))),
    ((3 * Linear() + 2) ** 2, Recipe("dot", "polynomial", (3.0, 2.0, 2.0))),
    (Polynomial(1, 0.5, 1.0) + 2, Recipe("dot", "polynomial", (0.5, 3.0, 1.0))),
    (Linear() + 2 * Linear(), Recipe("dot", "identity", scale=3.0)),
    (Gaussian(0.5) + Gaussian(0.5), Recipe("sqdist", "gaussian", (0.5,), scale=2.0)),
    ((3 * Gaussian(0.5)).normalised(), Recipe("sqdist", "gaussian", (0.5,))),
    (Gaussian(0.5) + 1, Recipe("sqdist", "gaussian", (0.5,), constant=1.0)),
    (2 * (3 * Gaussian(0.5) + 1), Recipe("sqdist", "gaussian", (0.5,), scale=6.0, constant=2.0)),
    (Gaussian(0.5) + 1 + Gaussian(0.5) + 2, Recipe("sqdist", "gaussian", (0.5,), scale=2.0, constant=3.0)),
    ((Gaussian(0.5) + 1) + (2 * Gaussian(0.5) + 4), Recipe("sqdist", "gaussian", (0.5,), scale=3.0, constant=5.0)),
    ((3 * Gaussian(0.5) + 1).normalised(), Recipe("sqdist", "gaussian", (0.5,), scale=0.75, constant=0.25)),
    (poly + 1, Recipe("dot", "polynomial", (0.5, 1.0, 2.0), constant=1.0)),
    (Sigmoid(0.5, 1.0) + 1, Recipe("dot", "sigmoid", (0.5, 1.0), constant=1.0)),
]


@pytest.mark.parametrize(("kernel", "recipe"), LOWERED, ids=lambda case: repr(case) if hasattr(case, "diag") else "")
def test_what_lowers(kernel, recipe):
    assert kernel.recipe() == recipe
    assert hash(kernel.recipe()) == hash(recipe)
    np.testing.assert_allclose(evaluate(recipe, X, Z), kernel(X, Z), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(
    "kernel",
    [
        Matern(),
        Matern(0.5),
        Chi2(),
        Tanimoto(),
        FromFunction(lambda a, b: a @ b.T),
        Gaussian(0.5) + Gaussian(0.25),
        Gaussian(0.5) + Linear(),
        Gaussian(0.5) * Laplacian(0.5),
        Gaussian(0.5) * Gaussian(M=M),
        Gaussian(M=M) * Gaussian(M=2 * M),
        Linear() * Cosine(),
        poly * Linear(),
        Sigmoid(0.5) ** 2,
        (Gaussian(0.5) + 1) ** 2,
        (Gaussian(0.5) + 1) * Gaussian(0.5),
        Linear().exp(),
        Linear().normalised(),
        Gaussian(0.5).of(np.asarray),
        Gaussian(0.5).scaled_by(len),
        (1e200 * Linear()) ** 2,
        Gaussian(1e308) * Gaussian(1e308),
        1e200 * (1e200 * Linear()),
    ],
    ids=repr,
)
def test_what_does_not_lower(kernel):
    assert kernel.recipe() is None


def test_linear():
    assert Linear().recipe().linear
    assert (2 * Linear()).recipe().linear
    assert not Cosine().recipe().linear
    assert not (Linear() ** 2).recipe().linear
    assert not Gaussian(1.0).recipe().linear
    assert not Recipe("dot", "identity", factor=np.eye(2)).linear


def test_recipes_are_values():
    recipe = Gaussian(M=M).recipe()
    assert recipe == Gaussian(M=M.copy()).recipe()
    assert recipe != Gaussian(M=2 * M).recipe()
    assert recipe != Gaussian(1.0).recipe()
    assert recipe != "recipe"
    with pytest.raises(AttributeError):
        recipe.scale = 2.0
