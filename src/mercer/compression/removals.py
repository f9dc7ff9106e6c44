"""Vectors that are not needed at all: equal ones, those of a linear kernel beyond its weight vectors, and those whose
φ(x) is a combination of others'."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import linalg

from mercer.arrays import Floats, Indices, is_sparse, n_samples, take
from mercer.compression.distance import distances
from mercer.compression.span import Span
from mercer.gram.host_rows import weight_vectors
from mercer.gram.linear_gram import linear_scale
from mercer.kernels.matrices import dense
from mercer.rkhs import Expansion, row_keys

# Roundings of k(x, x), per vector, below which δ(x) = ‖φ(x) − Pφ(x)‖² is zero as far as float64 can tell.
_DEPENDENT_ROUNDINGS = 4
# ‖w − w'‖ that is called rounding, as a share of ‖w‖.
_EXACT_SHARE = 1e-8
# The most vectors among which dependence is looked for; their kernel matrix takes 800 MB.
_LARGEST_MATRIX = 10_000


def without_needless(expansion: Expansion, thorough: bool) -> Expansion:
    """An expansion of these functions, up to rounding, on fewer vectors where that is possible.

    Vectors under a strictly positive definite kernel are independent; whether they are to rounding is asked only if the
    search is `thorough`.
    """
    scale = linear_scale(expansion.kernel)
    outputs = len(expansion.b)
    if scale is not None and not is_sparse(expansion.vectors):
        W = weight_vectors(expansion.vectors, expansion.coefficients)  # features × outputs
        features = len(W)
        if min(features, outputs) < n_samples(expansion.vectors):
            if outputs <= features:
                return replace(expansion, vectors=np.ascontiguousarray(W.T), coefficients=np.eye(outputs) / scale)
            return replace(expansion, vectors=np.eye(features), coefficients=W / scale)
    merged = _merged(expansion)
    independent = expansion.kernel.strictly_positive_definite == "yes"
    if n_samples(merged.vectors) > _LARGEST_MATRIX or (independent and not thorough):
        return merged
    return _independent(merged)


def _merged(expansion: Expansion) -> Expansion:
    """Every vector once."""
    if not expansion.kernel.mergeable:
        return expansion
    table, places = dense(expansion.coefficients), dict[Any, int]()
    member = np.array([places.setdefault(key, len(places)) for key in row_keys(expansion.vectors)], dtype=np.intp)
    first = np.unique(member, return_index=True)[1]
    sums = np.zeros((len(first), table.shape[1]))
    np.add.at(sums, member, table)
    used = np.flatnonzero(sums.any(axis=1))
    if len(used) == len(table):
        return expansion
    return replace(expansion, vectors=take(expansion.vectors, first[used]), coefficients=sums[used])


def _independent(expansion: Expansion) -> Expansion:
    """Without vectors that others span, by a pivoted Cholesky factorisation."""
    n = n_samples(expansion.vectors)
    if n < 2:
        return expansion
    K = expansion.kernel(expansion.vectors)
    tolerance = _DEPENDENT_ROUNDINGS * n * 2.0**-53 * float(np.abs(K.diagonal()).max())
    _, pivots, rank, _ = linalg.lapack.dpstrf(K, tol=tolerance, lower=1)
    if rank >= n:
        return expansion
    order = pivots.astype(np.intp) - 1
    found = moved_onto(expansion, np.sort(order[:rank]), K)
    # Coefficients may be large, and w small beside them: then even a rounding of k(x, x) is needed.
    near = distances(expansion, found) <= _EXACT_SHARE * expansion.norms()
    return found if near.all() else expansion


def moved_onto(expansion: Expansion, kept: Indices, K: Floats) -> Expansion:
    """The projection of all functions onto the span of some of the vectors, whose kernel matrix K is."""
    table = dense(expansion.coefficients)
    vectors: Any = take(expansion.vectors, kept)
    span = Span(expansion.kernel, vectors)
    coefficients = span.coefficients(span.coordinates_of(K[kept] @ table))
    return replace(expansion, vectors=vectors, coefficients=coefficients)
