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
from mercer.notes.theory.few_errors import (
    centre_columns,
    inseparable_rows,
    is_positive,
    largest_margin,
    scale_columns,
)
from mercer.samples.arrays import Flags, Floats, freeze, host, is_sparse, n_samples
from mercer.samples.matrices import as_matrix

Rules = SVC | Sequence[Callable[[Any], ArrayLike]]
# All subsets of the points are tried.
_MOST_POINTS = 12
# Of coordinates from a kernel matrix: shares of the largest eigenvalue, and margins of rows of length 1, that are 0 up
# to rounding (the first number), or surely are not (the second).
_EIGENVALUES, _MARGINS = (1e-13, 1e-11), (1e-11, 1e-8)


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
        counts if a hyperplane separates it strictly, which is proven for linear kernels; ValueError is raised where
        rounding hides it. Callables take X and return a number for each point, ≥ 0 for the label +1, or booleans.

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


class _Points(NamedTuple):
    """Coordinates of points, with a constant one for a bias, in which hyperplanes go through the origin."""

    rows: Floats
    exact: bool  # False for coordinates from the eigenvectors of a kernel matrix


def _coordinates(machine: SVC, X: Any) -> _Points:
    """Return coordinates in which the hyperplanes of the machine separate the points as in its feature space."""
    kernel = as_kernel(machine.kernel, degree=machine.degree, gamma=machine.gamma, coef0=machine.coef0).bind(X)
    has_bias, recipe, n = machine.bias is not False, kernel.recipe(), n_samples(X)
    if kernel.accepts == "vectors":
        rows = np.asarray(as_matrix(X).toarray() if is_sparse(X) else as_matrix(X), dtype=np.float64)
        if kernel.strictly_positive_definite == "yes" and len(np.unique(rows, axis=0)) == n:
            return _Points(np.eye(n), True)  # the φ(x) are linearly independent
    if recipe is not None and recipe.linear:
        rows = scale_columns(np.column_stack([centre_columns(rows), np.ones(n)]) if has_bias else rows)
        _check_rows((rows != 0).any(axis=1))
        return _Points(rows, True)
    K = np.asarray(kernel(X), dtype=np.float64)
    if has_bias:
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        K += K.diagonal().max() or 1.0
    lengths = np.sqrt(K.diagonal())
    _check_rows(lengths > 0)
    values, eigenvectors = np.linalg.eigh(K / np.outer(lengths, lengths))
    noise, least = (share * values[-1] for share in _EIGENVALUES)
    if ((np.abs(values) > noise) & (values < least)).any():
        raise ValueError(
            f"rounding hides the rank of the kernel matrix: its eigenvalues are {values / values[-1]} times the "
            "largest; pass fewer points, or other parameters of the kernel"
        )
    is_kept = values >= least
    return _Points(np.asarray(eigenvectors[:, is_kept] * np.sqrt(values[is_kept])), False)


def _check_rows(nonzero: Flags) -> None:
    """Raise ValueError if φ(x) = 0 for a point."""
    if not nonzero.all():
        raise ValueError(f"φ(x) = 0 for point {int(np.argmin(nonzero))}, which lies on every hyperplane; use bias=True")


def _separable_labellings(points: _Points) -> Floats:
    """Return all labellings that a hyperplane through the origin separates: prefixes grow by one point at a time."""
    Z = points.rows
    labellings = [np.ones(1)]  # the first label is +1; the others follow from the symmetry w → −w
    for m in range(1, len(Z)):
        candidates = [np.append(labels, sign) for labels in labellings for sign in (-1.0, 1.0)]
        are_independent = np.linalg.matrix_rank(Z[: m + 1], tol=1e-6) == m + 1
        labellings = [y for y in candidates if are_independent or _is_separable(y[:, None] * Z[: m + 1], points.exact)]
    return np.unique(np.vstack([labellings, np.negative(labellings)]), axis=0)


def _is_separable(signed_points: Floats, exact: bool) -> bool:
    """Return whether a w has ⟨w, row⟩ > 0 for all rows; raise ValueError if rounding hides it."""
    w, weights, margin = largest_margin(signed_points)
    if not exact:
        undecided, is_separable = _MARGINS[0] < margin <= _MARGINS[1], margin > _MARGINS[1]
    else:
        is_separable = bool(is_positive(signed_points, w).all())
        undecided = not is_separable and not len(inseparable_rows(signed_points, weights))
    if undecided:
        raise ValueError(
            f"rounding hides whether a hyperplane separates {len(signed_points)} of the points: the largest margin "
            f"found is {margin:.1g}; scale the features, or pass fewer points"
        )
    return is_separable
