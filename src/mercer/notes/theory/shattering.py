"""Dichotomies, shattering, VC dimension and growth function of rules on finitely many points, by enumeration.

A class of rules shatters points if it labels them in all 2^n ways. Its VC dimension d on a set is the size of the
largest subset that it shatters, and its growth function Π(m) the largest number of labellings of m points, at most
Σ_{i≤d} C(m, i) (Sauer's lemma).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mercer.estimators import SVC
from mercer.kernels.names import as_kernel
from mercer.notes.theory.few_errors import largest_margin
from mercer.samples.arrays import Floats, freeze, host, n_samples

Rules = SVC | Sequence[Callable[[Any], ArrayLike]]
# All subsets of the points are tried.
_MOST_POINTS = 12
# Eigenvalues below this share of the largest count as 0; smaller margins of rows of length 1 are no separation.
_NO_EIGENVALUE, _NO_MARGIN = 1e-11, 1e-8


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
        counts if a hyperplane separates it strictly. Callables take X and return a number for each point, ≥ 0 for
        the label +1, or booleans.

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
        return _separable_labellings(_coordinates(rules, X))
    if not len(rules) or not all(map(callable, rules)):
        raise TypeError(f"rules={rules!r:.80} must be an SVC, or a list of functions from X to a number per point")
    return np.unique([_labels(rule, X, n) for rule in rules], axis=0)


def _labels(rule: Callable[[Any], ArrayLike], X: Any, n: int) -> Floats:
    """Return the labels ±1 of the points by one rule."""
    values = np.asarray(rule(X))
    if values.shape != (n,) or values.dtype.kind not in "biuf" or np.isnan(values).any():
        raise ValueError(f"a rule must return a number for each of {n} points; {rule!r} returned {values!r:.80}")
    return np.where(values if values.dtype.kind == "b" else values >= 0, 1.0, -1.0)


def _coordinates(machine: SVC, X: Any) -> Floats:
    """Return coordinates of the points whose inner products are k, or k + 1 with a bias, scaled to length 1."""
    kernel = as_kernel(machine.kernel, degree=machine.degree, gamma=machine.gamma, coef0=machine.coef0)
    K = np.asarray(kernel.bind(X)(X), dtype=np.float64) + float(machine.bias is not False)
    lengths = np.sqrt(K.diagonal())
    if not (lengths > 0).all():
        raise ValueError(f"φ(x) = 0 for point {int(np.argmin(lengths))}, which lies on every hyperplane; use bias=True")
    values, vectors = np.linalg.eigh(K / np.outer(lengths, lengths))
    kept = values > _NO_EIGENVALUE * values[-1]
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def _separable_labellings(Z: Floats) -> Floats:
    """Return all labellings that a hyperplane through the origin separates: prefixes grow by one point at a time."""
    found = [np.ones(1)]  # the first label is +1; the others follow from the symmetry w → −w
    for m in range(1, len(Z)):
        longer = [np.append(labels, sign) for labels in found for sign in (-1.0, 1.0)]
        independent = np.linalg.matrix_rank(Z[: m + 1], tol=1e-6) == m + 1
        found = [y for y in longer if independent or largest_margin(y[:, None] * Z[: m + 1])[2] > _NO_MARGIN]
    return np.unique(np.vstack([found, np.negative(found)]), axis=0)
