"""Shapley values by their definition, over all subsets of features, and those of one product in 200 digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np


def by_all_subsets(f: Callable[[Any], Any], x: Any, background: Any, weight: Any = None) -> tuple[Any, Any]:
    """φ of every feature (and output) of one sample, and the base value, from f at all 2^d mixtures of x and rows."""
    d, m = len(x), len(background)
    weight = np.full(m, 1 / m) if weight is None else np.asarray(weight) / np.sum(weight)
    masks = (np.arange(2**d)[:, None] >> np.arange(d)) & 1 == 1
    mixed = np.where(masks[:, None, :], np.asarray(x), np.asarray(background))
    worth = np.einsum("smo,m->so", f(mixed.reshape(-1, d)).reshape(2**d, m, -1), weight)
    sizes = masks.sum(axis=1)
    share = np.array([math.factorial(s) * math.factorial(max(0, d - s - 1)) / math.factorial(d) for s in sizes])
    values = []
    for j in range(d):
        without = np.flatnonzero(~masks[:, j])
        values.append(share[without] @ (worth[without + 2**j] - worth[without]))
    return np.array(values), worth[0]


def of_product(of_x: Any, of_z: Any, only: Any) -> list[float]:
    """φ of some features of the game Π_{l ∈ S} F_l Π_{l ∉ S} G_l: the integral of a polynomial, in 200 digits."""
    with localcontext() as context:
        context.prec = 200
        F, G = [Decimal(float(v)) for v in of_x], [Decimal(float(v)) for v in of_z]
        values = []
        for j in only:
            polynomial = [Decimal(1)]
            for low, high in (pair for l, pair in enumerate(zip(G, F, strict=True)) if l != j):
                padded = [*polynomial, Decimal(0)]
                shifted = [Decimal(0), *polynomial]
                polynomial = [low * a + (high - low) * b for a, b in zip(padded, shifted, strict=True)]
            values.append(float((F[j] - G[j]) * sum(c / (k + 1) for k, c in enumerate(polynomial))))
    return values
