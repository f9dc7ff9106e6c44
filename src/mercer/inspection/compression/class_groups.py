"""Compression of one-vs-one machines with many classes: each pair uses only the vectors near its two classes.

A machine of k classes has k(k − 1)/2 pairs. If each of them used all vectors, the sums over vectors would take longer
than the kernel values. So classes that lie near one another form groups, a vector belongs to the group of the class
that the original predicts for it, and the pair (i, j) is a combination of the vectors of i's and j's groups:

    minimise over a, b  ½ Σ_n ω_n (f_ij(x_n) − f'_ij(x_n) − b)² + ½λ ‖f_ij − f'_ij‖²,   x_n of the classes i and j

Samples of other classes do not matter to a pair: the pairs of their own class decide about them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.estimators.fitting.pipeline.state import has_function_per_class
from mercer.inspection.compression.matching import FitSamples, match_values
from mercer.inspection.compression.target import Span, TargetFunctions
from mercer.places.expansion import Expansion
from mercer.samples.arrays import Floats, Indices, n_samples, row_blocks, rows_between, take
from mercer.samples.labels import wins

# Largest number of pairs that use a vector. (Letter, 26 classes, 642 vectors: predict takes 0.16 of the original's time
# with 100 pairs, 0.36 with all 325; 0.13 points of accuracy are lost with 100 pairs, and 0.25 with 75.)
_PAIRS_PER_VECTOR = 100
# Smallest number of vectors in a group; if a group would have fewer, every pair uses all vectors.
_FEWEST_VECTORS = 10


@dataclass(frozen=True, eq=False)
class ClassGroups:
    """Group number of each class and of each vector."""

    class_group: Indices
    vector_group: Indices

    def vectors(self, first: int, second: int) -> Indices:
        """Return the indices of the vectors that a pair of classes uses."""
        groups = self.class_group[[first, second]]
        return np.flatnonzero((self.vector_group == groups[0]) | (self.vector_group == groups[1]))


def group_classes(machine: Any, target: TargetFunctions, span: Span) -> ClassGroups | None:
    """Group the classes and the vectors of a span; return None if every pair should use all vectors."""
    if not hasattr(machine, "break_ties") or has_function_per_class(machine):
        return None
    k = len(machine.classes_)
    size = max(1, _PAIRS_PER_VECTOR // max(1, k - 1))
    if 2 * size > k:
        return None
    vector_class = _predicted_classes(target, span.vectors, k)
    groups = _group_nearest(_squared_distances(span, vector_class, k), size)
    vector_group = groups[vector_class]
    if np.bincount(vector_group, minlength=groups.max() + 1).min() < _FEWEST_VECTORS:
        return None
    return ClassGroups(groups, vector_group)


def match_in_groups(
    target: TargetFunctions, span: Span, groups: ClassGroups, samples: FitSamples, report: Callable[[float], None]
) -> Expansion:
    """Fit each pair's coefficients and b to samples; return the expansion, with the span's vectors sorted by group."""
    k, expansion = len(groups.class_group), target.expansion
    order = np.argsort(groups.vector_group, kind="stable")
    span, groups = (
        Span(span.kernel, take(span.vectors, order)),
        ClassGroups(groups.class_group, groups.vector_group[order]),
    )
    predicted_classes = _predicted_classes(target, samples.X, k)
    class_rows = [np.flatnonzero(predicted_classes == c) for c in range(k)]
    first, second = np.triu_indices(k, 1)
    table, b = np.zeros((len(order), len(first))), np.array(expansion.b)
    for pair, (i, j) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        report(pair / len(first))
        pair_vectors = groups.vectors(i, j)
        rows = samples.limit_rows(np.concatenate([class_rows[i], class_rows[j]]), len(pair_vectors))
        table[pair_vectors, pair], b[pair] = _fit_pair(
            target, pair, take(span.vectors, pair_vectors), take(samples.X, rows), samples
        )
    return Expansion(expansion.kernel, span.vectors, sp.csr_array(table), b)


def _fit_pair(target: TargetFunctions, pair: int, Z: Any, X: Any, samples: FitSamples) -> tuple[Floats, float]:
    """Return the coefficients and b of one pair on the vectors Z, fitted to the samples X."""
    function, span = target.single_output(pair), Span(target.expansion.kernel, Z)
    if n_samples(X):
        coordinates, b = match_values(None, function, span, replace(samples, X=X))
    else:
        coordinates, b = function.projection(span), function.expansion.b
    return span.coefficients(coordinates)[:, 0], float(b[0])


def _predicted_classes(target: TargetFunctions, X: Any, k: int) -> Indices:
    """Return the index of the class that the original machine predicts for each sample."""
    classes = np.zeros(n_samples(X), dtype=np.intp)
    for block in row_blocks(len(classes), 8 * len(target.expansion.b)):
        values = target.values(rows_between(X, block)) + target.expansion.b
        classes[block] = np.argmax(wins(values, k), axis=1)
    return classes


def _squared_distances(span: Span, vector_class: Indices, k: int) -> Floats:
    """Return ‖m_i − m_j‖² for all pairs of classes; m_i is the mean of class i's vectors in feature space."""
    member = np.eye(k)[vector_class]
    member /= np.maximum(1, member.sum(axis=0))
    class_means = TargetFunctions(Expansion(span.kernel, span.vectors, member, np.zeros(k)))
    products = member.T @ class_means.values_at_vectors
    squares = products.diagonal()
    return np.asarray(squares[:, None] + squares - 2 * products)


def _group_nearest(distances: Floats, size: int) -> Indices:
    """Form groups of `size` near classes greedily, and return the group of each class.

    A group starts with the class farthest from all other remaining classes, and takes the nearest ones.
    """
    groups, remaining, number = np.zeros(len(distances), dtype=np.intp), list(range(len(distances))), 0
    while remaining:
        members = [max(remaining, key=lambda i: float(distances[i, remaining].sum()))]
        remaining.remove(members[0])
        while remaining and len(members) < size:
            members.append(min(remaining, key=lambda i: float(distances[i, members].sum())))
            remaining.remove(members[-1])
        groups[members] = number
        number += 1
    return groups
