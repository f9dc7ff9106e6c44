"""Samples whose squares leave float64: entries below 10⁻¹⁵⁴ or above 10¹⁵⁴, or nearly so, are scaled by powers of two.

Such a scaling is exact. Where all entries are of an ordinary size nothing is done, and nothing changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Floats, Indices, is_sparse
from mercer.kernels.matrices import dense, over_rows, strips, with_data

# Of entries that are 0 or of a size between these, differences are 0 or at least 2⁻⁴³³, since they have 53 digits: no
# square, sum of squares or product of two is lost.
_SMALLEST, _LARGEST = 2.0**-380, 2.0**380


def ordinary(*samples: Any) -> bool:
    """Whether squares and products of all entries, and squares of their differences, are numbers of full precision."""
    return all(_is_ordinary(X) for X in samples)


def _is_ordinary(X: Any) -> bool:
    if X.dtype == np.float32:  # all of whose numbers are
        return True
    if is_sparse(X):
        return _are_ordinary(X.data)
    return all(_are_ordinary(X[rows]) for rows in strips(X))


def _are_ordinary(entries: Any) -> bool:
    sizes = np.abs(entries)
    return not (((sizes < _SMALLEST) & (sizes != 0)) | (sizes > _LARGEST)).any()


def exponents(X: Any) -> Indices:
    """For each row the e with 2^(e−1) ≤ max |x| < 2^e; 0 for a row of zeros."""
    largest = over_rows(np.maximum, np.abs(X.data), X) if is_sparse(X) else np.abs(X).max(axis=1, initial=0.0)
    return np.asarray(np.frexp(largest)[1], dtype=np.intp)


def times_power(X: Any, exponent: Any) -> Any:
    """X · 2^exponent, with one exponent or one for each row."""
    if not is_sparse(X):
        return np.ldexp(X, np.broadcast_to(np.reshape(exponent, (-1, 1)), X.shape))
    per_entry = np.repeat(np.broadcast_to(exponent, X.shape[0]), np.diff(X.indptr))
    return with_data(X, np.ldexp(X.data, per_entry))


def length_of_differences(X: Any, Z: Any) -> Floats:
    """‖x_i − z_i‖ of pairs of rows, whatever their size."""
    difference = dense(X) - dense(Z)
    exponent = exponents(difference)
    difference = times_power(difference, -exponent)
    return np.asarray(np.ldexp(np.sqrt(np.einsum("ij,ij->i", difference, difference)), exponent))
