"""Many classes one against one: every pair uses only the vectors that lie near its own two classes.

A machine of k classes has k(k − 1)/2 pairs. If each of them used all vectors, the sums over vectors would take longer
than the kernel values. So classes form groups of those that lie near one another, a vector belongs to the group of the
class that the original gives it, and the pair (i, j) is a combination of the vectors of i's and j's groups:

    minimise over a, b  ½ Σ_n ω_n (f_ij(x_n) − f'_ij(x_n) − b)² + ½λ ‖f_ij − f'_ij‖²,   x_n of the classes i and j

Samples of other classes do not matter to it: they are decided by the pairs of their own class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.estimators.fitting.pipeline.state import has_function_per_class
from mercer.inspection.compression.matching import Samples, matched
from mercer.inspection.compression.target import Span, Target
from mercer.places.expansion import Expansion
from mercer.samples.arrays import Floats, Indices, n_samples, row_blocks, rows_between, take
from mercer.samples.labels import wins

# How many pairs a vector serves at most. (Letter, 26 classes and 642 vectors: predict takes 0.16 of the original's time
# with 100 pairs, 0.36 with all 325; 0.13 points of accuracy are lost with 100 pairs, and 0.25 with 75.)
_PAIRS_PER_VECTOR = 100
# The fewest vectors of a group; where one would have fewer, every pair uses them all, which are few.
_FEWEST_VECTORS = 10


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of every class, and of every vector."""

    of_class: Indices
    of_vector: Indices

    def vectors(self, first: int, second: int) -> Indices:
        """Which vectors the pair of two classes uses."""
        own = self.of_class[[first, second]]
        return np.flatnonzero((self.of_vector == own[0]) | (self.of_vector == own[1]))


def groups_for(machine: Any, target: Target, span: Span) -> Groups | None:
    """Groups of classes; None where every pair may as well use all vectors."""
    if not hasattr(machine, "break_ties") or has_function_per_class(machine):
        return None
    k = len(machine.classes_)
    size = max(1, _PAIRS_PER_VECTOR // max(1, k - 1))
    if 2 * size > k:
        return None
    nearest = _classes(target, span.vectors, k)
    groups = _near_ones(_squared_distances(span, nearest, k), size)
    found = Groups(groups, groups[nearest])
    return found if np.bincount(found.of_vector, minlength=groups.max() + 1).min() >= _FEWEST_VECTORS else None


def matched_in_groups(
    target: Target, span: Span, groups: Groups, samples: Samples, report: Callable[[float], None]
) -> Expansion:
    """The machine on these vectors, group by group, with coefficients and b of every pair fitted to its samples."""
    k, expansion = len(groups.of_class), target.expansion
    order = np.argsort(groups.of_vector, kind="stable")
    span, groups = Span(span.kernel, take(span.vectors, order)), Groups(groups.of_class, groups.of_vector[order])
    own = _classes(target, samples.X, k)
    rows_of = [np.flatnonzero(own == c) for c in range(k)]
    first, second = np.triu_indices(k, 1)
    table, b = np.zeros((len(order), len(first))), np.array(expansion.b)
    for pair, (i, j) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        report(pair / len(first))
        used = groups.vectors(i, j)
        rows = samples.at_most(np.concatenate([rows_of[i], rows_of[j]]), len(used))
        table[used, pair], b[pair] = _fitted(target, pair, take(span.vectors, used), take(samples.X, rows), samples)
    return Expansion(expansion.kernel, span.vectors, sp.csr_array(table), b)


def _fitted(target: Target, pair: int, Z: Any, X: Any, samples: Samples) -> tuple[Floats, float]:
    """Coefficients and b of one pair."""
    own, span = target.one(pair), Span(target.expansion.kernel, Z)
    if n_samples(X):
        coordinates, b = matched(None, own, span, replace(samples, X=X))
    else:
        coordinates, b = own.projection(span), own.expansion.b
    return span.coefficients(coordinates)[:, 0], float(b[0])


def _classes(target: Target, X: Any, k: int) -> Indices:
    """The class that the original gives each sample."""
    found = np.zeros(n_samples(X), dtype=np.intp)
    for some in row_blocks(len(found), 8 * len(target.expansion.b)):
        values = target.values(rows_between(X, some)) + target.expansion.b
        found[some] = np.argmax(wins(values, k), axis=1)
    return found


def _squared_distances(span: Span, nearest: Indices, k: int) -> Floats:
    """‖m_i − m_j‖² of the means m_i of the classes' vectors in the kernel's space."""
    member = np.eye(k)[nearest]
    member /= np.maximum(1, member.sum(axis=0))
    means = Target(Expansion(span.kernel, span.vectors, member, np.zeros(k)))
    products = member.T @ means.own_values
    own = products.diagonal()
    return np.asarray(own[:, None] + own - 2 * products)


def _near_ones(apart: Floats, size: int) -> Indices:
    """Groups of `size` classes: each begins with the class that is farthest from all that are left."""
    groups, left, number = np.zeros(len(apart), dtype=np.intp), list(range(len(apart))), 0
    while left:
        members = [max(left, key=lambda i: float(apart[i, left].sum()))]
        left.remove(members[0])
        while left and len(members) < size:
            members.append(min(left, key=lambda i: float(apart[i, members].sum())))
            left.remove(members[-1])
        groups[members] = number
        number += 1
    return groups
