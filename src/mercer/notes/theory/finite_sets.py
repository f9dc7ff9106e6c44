"""Dichotomies, shattering, VC dimension and growth function of rules on finitely many points, by enumeration.

A class of rules shatters points if it labels them in all 2^n ways. Its VC dimension d on a set is the size of the
largest subset that it shatters, and its growth function Π(m) the largest number of labellings of m points, at most
Σ_{i≤d} C(m, i) (Sauer's lemma).

Hyperplanes are decided in rational numbers. With w = Σ β_jφ(x_j), ⟨w, φ(x_i)⟩ = (Kβ)_i, so that the rows of K, plus 1
for a bias, are coordinates z_i of the points. By Gordan's theorem a hyperplane separates labels y if and only if there
is no λ ≥ 0, λ ≠ 0, with Σ λ_iy_iz_i = 0. If there is one, there is also one on a smallest dependent set of points,
whose λ is unique up to a factor. Any r + 1 points contain such a set, where r is the rank, and each one is found so.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mercer.estimators import SVC
from mercer.kernels.names import as_kernel
from mercer.kernels.recipe import Recipe
from mercer.notes.theory.few_errors import null_vector, reduce_rows
from mercer.samples.arrays import Floats, freeze, host, is_sparse, n_samples
from mercer.samples.matrices import as_matrix

Rules = SVC | Sequence[Callable[[Any], ArrayLike]]
# All subsets of the points are tried.
_MOST_POINTS = 12
# Smallest eigenvalue of a kernel matrix with ones on its diagonal that is surely not 0, whatever its values' rounding.
_SURELY_POSITIVE = 1e-9


class Shattering(NamedTuple):
    """Result of `shattering`.

    Attributes
    ----------
    dichotomies : array of shape (n_dichotomies, n)
        Different labellings of the points, −1 or +1.
    vc_dimension : int
        Size of the largest subset of the points that the rules shatter.
    shattered : tuple of int
        Indices of such a subset.
    growth : tuple of int
        Π(0), …, Π(n): the largest number of labellings of m of these points.
    sauer : tuple of int
        Sauer's upper bounds Σ_{i≤d} C(m, i) on them, with d = `vc_dimension`.
    """

    dichotomies: Floats
    vc_dimension: int
    shattered: tuple[int, ...]
    growth: tuple[int, ...]
    sauer: tuple[int, ...]


def shattering(X: Any, rules: Rules) -> Shattering:
    """Compute the dichotomies of points by a class of rules, its VC dimension on them, and its growth function.

    Parameters
    ----------
    X : array or list
        At most 12 points.
    rules : SVC or sequence of callables
        A machine stands for all hyperplanes of its feature space, through the origin for ``bias=False``; a labelling
        counts if a hyperplane separates it strictly. This is decided in rational numbers for linear, polynomial and
        strictly positive definite kernels and for kernels of other objects whose values are integers; for other
        kernels, ValueError is raised unless φ(x) is clearly linearly independent. Callables take X and return a
        number for each point, ≥ 0 for the label +1, or booleans.

    Returns
    -------
    Shattering
        `dichotomies`, `vc_dimension`, `shattered`, `growth` and `sauer`.

    Examples
    --------
    >>> from mercer import SVC
    >>> from mercer.notes.theory import shattering
    >>> square = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> lines = shattering(square, SVC(kernel="linear"))  # all but the two labellings of XOR
    >>> len(lines.dichotomies), lines.vc_dimension, lines.growth, lines.sauer
    (14, 3, (1, 2, 4, 8, 14), (1, 2, 4, 8, 15))
    >>> thresholds = [lambda X, t=t: X[:, 0] >= t for t in (-0.5, 0.5, 1.5, 2.5)]
    >>> shattering([[0.0], [1.0], [2.0]], thresholds).growth
    (1, 2, 3, 4)
    """
    n = n_samples(X)
    table = dichotomies_of(rules, X)
    codes = (table > 0) @ (1 << np.arange(n))
    growth, largest = [0] * (n + 1), 0
    for subset in range(2**n):
        size, count = subset.bit_count(), len(np.unique(codes & subset))
        growth[size] = max(growth[size], count)
        if count == 2**size and size > largest.bit_count():
            largest = subset
    d = largest.bit_count()
    sauer = tuple(sum(math.comb(m, i) for i in range(d + 1)) for m in range(n + 1))
    return Shattering(freeze(table), d, tuple(i for i in range(n) if largest >> i & 1), tuple(growth), sauer)


def dichotomies_of(rules: Rules, X: Any, max_points: int | None = _MOST_POINTS) -> Floats:
    """Return the different labellings ±1 of points by rules, one per row; `max_points` limits the number of points."""
    X = host(X) if isinstance(rules, SVC) else np.asarray(host(X))
    n = n_samples(X)
    limit = _MOST_POINTS if isinstance(rules, SVC) else max_points
    if n < 1 or (limit is not None and n > limit):
        raise ValueError(f"X has {n} points, but all labellings of 1 to {limit} points are tried; pass fewer")
    if isinstance(rules, SVC):
        return _separable_labellings(rules, X)
    if not len(rules) or not all(map(callable, rules)):
        raise TypeError(f"rules={rules!r:.80} must be an SVC, or a list of functions from X to a number per point")
    return np.unique([_labels(rule, X, n) for rule in rules], axis=0)


def _labels(rule: Callable[[Any], ArrayLike], X: Any, n: int) -> Floats:
    """Return the labels ±1 of the points by one rule."""
    values = np.asarray(rule(X))
    if values.shape != (n,) or values.dtype.kind not in "biuf" or np.isnan(values).any():
        raise ValueError(f"a rule must return a number for each of {n} points; {rule!r} returned {values!r:.80}")
    return np.where(values if values.dtype.kind == "b" else values >= 0, 1.0, -1.0)


def _separable_labellings(machine: SVC, X: Any) -> Floats:
    """Return all labellings that a hyperplane of the machine separates."""
    columns = _coordinates(machine, X)
    rank, n = len(columns), n_samples(X)
    for i in range(n):
        if not any(column[i] for column in columns):
            raise ValueError(f"φ(x) = 0 for point {i}, which lies on every hyperplane; use bias=True")
    labels = np.array(list(itertools.product((-1.0, 1.0), repeat=n)))
    separable = np.ones(len(labels), dtype=bool)
    for rows in map(list, itertools.combinations(range(n), rank + 1)):
        dependency = null_vector([[column[i] for i in rows] for column in columns], rank + 1)
        signs = labels[:, rows] * [(x > 0) - (x < 0) for x in dependency or ()]
        separable &= (signs < 0).any(axis=1) & (signs > 0).any(axis=1)
    return labels[separable]


def _coordinates(machine: SVC, X: Any) -> list[list[Fraction]]:
    """Return linearly independent coordinates of the points, each a number for every point.

    Hyperplanes through the origin separate them as those of the machine do in its feature space.
    """
    kernel = as_kernel(machine.kernel, degree=machine.degree, gamma=machine.gamma, coef0=machine.coef0).bind(X)
    recipe, n, biased = kernel.recipe(), n_samples(X), machine.bias is not False
    vectors = kernel.accepts == "vectors"
    rows = np.asarray(as_matrix(X).toarray() if is_sparse(X) else as_matrix(X), dtype=np.float64) if vectors else None
    if rows is not None and kernel.strictly_positive_definite == "yes":  # the φ(x) of different x are independent
        group = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
        return [[Fraction(int(i == k)) for i in group] for k in range(group.max() + 1)]
    if rows is not None and recipe is not None and _is_polynomial(recipe):
        exact = [[Fraction(x) for x in row] for row in rows.tolist()]
        gamma, coef0, degree = (Fraction(x) for x in recipe.numbers or (1, 0, 1))
        constant = Fraction(recipe.constant) / Fraction(recipe.scale) + biased
        K = [[(gamma * sum(map(mul, x, z)) + coef0) ** int(degree) + constant for z in exact] for x in exact]
    else:
        values = np.asarray(kernel(X), dtype=np.float64)
        if _is_nonsingular(values, biased):
            return [[Fraction(int(i == k)) for i in range(n)] for k in range(n)]
        if vectors or (values != np.round(values)).any():
            raise ValueError(
                "the φ(x) may be linearly dependent, and rounding of the kernel's values hides which labellings a "
                "hyperplane separates; use a linear, polynomial or strictly positive definite kernel, or fewer points"
            )
        K = [[Fraction(x) + biased for x in row] for row in values.tolist()]
    return K[: len(reduce_rows(K, n))]


def _is_polynomial(recipe: Recipe) -> bool:
    """Return whether a kernel is a polynomial of ⟨x, z⟩."""
    is_polynomial = recipe.inner == "dot" and recipe.ending in ("identity", "polynomial")
    return is_polynomial and not recipe.normalise and recipe.factor is None


def _is_nonsingular(K: Floats, biased: bool) -> bool:
    """Return whether a kernel matrix, plus a constant for a bias, is clearly positive definite."""
    K = K + float(np.abs(K.diagonal()).max()) * biased
    if (K.diagonal() <= 0).any():
        return False
    lengths = np.sqrt(K.diagonal())
    return bool(np.linalg.eigvalsh(K / np.outer(lengths, lengths))[0] > _SURELY_POSITIVE)
