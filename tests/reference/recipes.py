"""Recipes in plain NumPy: what every faster reading of a recipe must give."""

from __future__ import annotations

import numpy as np

from mercer.samples.matrices import dense


def evaluate(recipe, X, Z):
    """The block k(x_i, z_j)."""
    x, z = _prepared(recipe, X), _prepared(recipe, Z)
    if recipe.inner == "dot":
        t = x @ z.T
    else:
        difference = x[:, None, :] - z[None, :, :]
        t = (difference**2 if recipe.inner == "sqdist" else np.abs(difference)).sum(axis=2)
    with np.errstate(over="ignore"):
        return recipe.scale * _ending(recipe, t) + recipe.constant


def _prepared(recipe, X):
    x = np.asarray(dense(X), dtype=np.float64)
    if recipe.factor is not None:
        x = x @ recipe.factor
    if recipe.normalise:
        length = np.linalg.norm(x, axis=1, keepdims=True)
        x = x / np.where(length > 0, length, 1.0)
    return x


def _ending(recipe, t):
    if recipe.ending == "identity":
        return t
    if recipe.ending == "polynomial":
        gamma, coef0, degree = recipe.numbers
        return (gamma * t + coef0) ** int(degree)
    if recipe.ending == "sigmoid":
        gamma, coef0 = recipe.numbers
        return np.tanh(gamma * t + coef0)
    (gamma,) = recipe.numbers
    return np.exp(-gamma * t)
