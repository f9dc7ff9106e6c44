"""‖w − w'‖ of two machines with the same kernel, as a bound that rounding cannot break.

    ‖w − w'‖² = Σ_i Σ_j c_i c_j k(v_i, v_j),      c = (β, −β') on the vectors of both

The sum cancels: its terms may be 10¹⁰ times larger than what is left. So kernel values and sums are computed in twice
the precision, and what even that may have lost is added. Kernels for which only float64 is at hand get a wider bound.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mercer.arrays import Floats, Indices, gamma, is_sparse, n_samples, row_blocks, stack, take
from mercer.compression import twofold
from mercer.compression.exact_products import Sliced, product
from mercer.compression.kernel_values import TwofoldValues, has_twofold_values
from mercer.expansion import Expansion
from mercer.gram.linear_gram import linear_scale
from mercer.gram.rounding import conditioning, generic_error
from mercer.kernels.matrices import dense

# Kernel values that are formed at a time: eight temporary arrays of them stay in the second-level cache.
_BLOCK_VALUES = 1 << 17
# Slices of a matrix product: those that nearly always do, and those for outputs whose ‖w − w'‖² may be off by more than
# this share.
_SLICES, _MORE_SLICES, _CLOSE = 4, 6, 1e-9
# A kernel value takes as long as its products with the coefficients of this many outputs.
_PRODUCTS_PER_VALUE = 25
# Values of k(v, v) whose roots, times rounding, are still normal numbers.
VANISHING = 1e-280


def distances(one: Expansion, other: Expansion, report: Callable[[float], None] = lambda share: None) -> Floats:
    """At least ‖w − w'‖ for each output, b apart; `report` is told which share is done, and may raise."""
    found = np.zeros(len(one.b))
    if one is other:
        return found
    vectors = stack(one.vectors, other.vectors)
    C = np.concatenate([dense(one.coefficients), -dense(other.coefficients)])
    parts = _parts(C)
    for number, outputs in enumerate(parts):
        found[outputs] = _distances(one, vectors, C[:, outputs], partial(_part_of, report, number, len(parts)))
    return found


def _part_of(report: Callable[[float], None], number: int, parts: int, share: float) -> None:
    report((number + share) / parts)


def _distances(one: Expansion, vectors: Any, C: Floats, report: Callable[[float], None]) -> Floats:
    """‖w − w'‖, from above, of outputs that share kernel values."""
    found, wanted = np.zeros(C.shape[1]), np.arange(C.shape[1])
    for slices in (_SLICES, _MORE_SLICES):
        squares, errors = _squares(one, vectors, C[:, wanted], slices, report)
        found[wanted] = np.sqrt(np.maximum(squares + errors, 0.0)) * (1 + 2.0**-50)
        wanted = wanted[errors > _CLOSE * squares]
        if len(wanted) == 0 or not has_twofold_values(one.kernel, vectors):
            break
    return found


def _parts(C: Floats) -> list[Indices]:
    """Outputs that share kernel values: all of them, or each alone if each uses so few vectors that this is cheaper."""
    every, (n, p) = np.arange(C.shape[1]), C.shape
    alone = float(np.sum(np.count_nonzero(C, axis=0).astype(float) ** 2))
    return [every[o : o + 1] for o in every] if p > 1 and alone < n**2 * (1 + p / _PRODUCTS_PER_VALUE) else [every]


def _squares(
    one: Expansion, vectors: Any, C: Floats, slices: int, report: Callable[[float], None]
) -> tuple[Floats, Floats]:
    """‖w − w'‖² of each output, and how far it may be off."""
    used = np.flatnonzero(C.any(axis=1))
    vectors, C = take(vectors, used), np.ascontiguousarray(C[used])
    if not len(C):
        return np.zeros(C.shape[1]), np.zeros(C.shape[1])
    refuse_vanishing(one.kernel, vectors)
    lengths = lengths_of(one.kernel, vectors, C)
    with np.errstate(over="ignore", invalid="ignore"):
        if linear_scale(one.kernel) is not None and not is_sparse(vectors):
            squares, errors = _of_weights(linear_scale(one.kernel) or 0.0, vectors, C)
        elif has_twofold_values(one.kernel, vectors):
            values = TwofoldValues(one.kernel, vectors, slices)
            squares, errors = _in_twice_the_precision(values, C, lengths, slices, report)
        else:
            squares, errors = _in_float64(one, vectors, C, lengths, report)
    if not np.isfinite(squares + errors).all():
        raise FloatingPointError(
            f"‖w − w'‖² overflows float64 with {one.kernel!r}: its values or the coefficients are too large; scale the "
            "features"
        )
    refuse_negative(one, squares, errors)
    return squares, errors


def refuse_vanishing(kernel: Any, vectors: Any) -> None:
    """An error if some k(v, v) is so small that products with its root underflow, without being zero."""
    diagonal = np.abs(kernel.diag(vectors))
    small = diagonal < VANISHING
    if small.any():
        rows = take(vectors, np.flatnonzero(small))
        plain = hasattr(rows, "shape")
        small = np.asarray(abs(rows).sum(axis=1)).ravel() > 0 if plain else diagonal[small] > 0
    if small.any():
        raise FloatingPointError(
            f"k(v, v) of some vectors is below {VANISHING:.0e} under {kernel!r}, where float64 keeps too few digits to "
            "prove anything; scale the features up"
        )


def lengths_of(kernel: Any, vectors: Any, C: Floats) -> Floats:
    """Σ_j |c_j| √k(v_j, v_j), which bounds ‖w‖, rounded up."""
    roots = np.sqrt(np.abs(kernel.diag(vectors))) if n_samples(vectors) else np.zeros(0)
    return np.asarray(roots @ np.abs(C)) * (1 + 2 * gamma(len(C) + 10))


def longest(kernel: Any, vectors: Any) -> float:
    """The largest √k(v, v), rounded up."""
    diagonal = np.abs(kernel.diag(vectors)) if n_samples(vectors) else np.zeros(1)
    return float(np.sqrt(diagonal.max())) * (1 + gamma(64))


def apart_at(vectors: Any, one: Expansion, other: Expansion) -> Floats:
    """At least |⟨w − w', φ(v)⟩| at each of these vectors, the largest of each output."""
    values, m = np.zeros(len(one.b)), one.coefficients.shape[0] + other.coefficients.shape[0]
    if one is other or n_samples(vectors) == 0:
        return values
    for some in row_blocks(n_samples(vectors), 8 * m):
        rows = take(vectors, np.arange(some.start, some.stop))
        f, g = (one.kernel(rows, each.vectors) @ each.coefficients for each in (one, other))
        values = np.maximum(values, np.abs(f - g).max(axis=0))
    lengths = lengths_of(one.kernel, one.vectors, dense(one.coefficients))
    lengths = lengths + lengths_of(one.kernel, other.vectors, dense(other.coefficients))
    share = value_error(one.kernel, one.vectors) + gamma(m + 64)
    return np.asarray(values * (1 + gamma(8)) + share * lengths * longest(one.kernel, vectors))


def refuse_negative(one: Expansion, squares: Floats, errors: Floats) -> None:
    """An error if a square is negative by more than rounding: the kernel has no space to measure in."""
    if (squares < -errors).any():
        raise ValueError(
            f"{one.kernel!r} is not positive definite: ‖w − w'‖² = {float(squares.min()):.3g} is negative, so that "
            "there is no distance to bound; compress a machine with a positive definite kernel"
        )


def _in_twice_the_precision(
    values: TwofoldValues, C: Floats, lengths: Floats, slices: int, report: Callable[[float], None]
) -> tuple[Floats, Floats]:
    n, p = C.shape
    right = Sliced.of(np.ascontiguousarray(C.T), None, n, slices)
    step = max(1, _BLOCK_VALUES // n)
    total = (np.zeros(p), np.zeros(p))
    largest = 0.0
    for start in range(0, n, step):
        report((start / n) * (2 - start / n))
        rows = slice(start, min(n, start + step))
        K = values(rows, slice(start, n))  # the rest by symmetry
        for part in K:
            part[:, rows.stop - start :] *= 2.0
        left = Sliced.of(*K, n, slices)
        largest = max(largest, float(left.scale.max(initial=0.0)))
        U = product(left, right.columns(slice(start, n)))
        own = twofold.multiply(U, (C[rows], np.zeros_like(C[rows])))
        total = twofold.add(total, twofold.sum_rows(own))
    squares = total[0] + total[1]
    lost = 2 * right.product_error(n) * largest * right.scale * np.abs(C).sum(axis=0)
    rounded = (values.error + (n / step + 64) * twofold.SUM_ERROR) * lengths**2
    return squares, 1.01 * (rounded + lost) + 2.0**-52 * np.abs(squares)


def _of_weights(scale: float, vectors: Any, C: Floats) -> tuple[Floats, Floats]:
    """‖Σ_j c_j x_j‖² times the scale of a linear kernel, whose w − w' has a number for each feature."""
    X, n = np.asarray(vectors, dtype=np.float64), len(C)
    with np.errstate(divide="ignore"):
        sizes = np.log2(np.abs(X).max(axis=1, initial=0.0))
    unit = np.ldexp(1.0, np.where(np.isfinite(sizes), np.ceil(sizes), 0.0).astype(np.int32))[:, None]
    left, right = (Sliced.of(np.ascontiguousarray(part.T), None, n, _MORE_SLICES) for part in (C * unit, X / unit))
    high, low = product(left, right)
    weights, lost = np.abs(high + low), left.product_error(n) * np.outer(left.scale, right.scale)
    squares = scale * np.einsum("ij,ij->i", weights, weights)
    errors = scale * np.einsum("ij,ij->i", 2 * weights + lost, lost) + gamma(len(right.scale) + 16) * squares
    return squares, 1.01 * errors


def _in_float64(
    one: Expansion, vectors: Any, C: Floats, lengths: Floats, report: Callable[[float], None]
) -> tuple[Floats, Floats]:
    n, squares = len(C), np.zeros(C.shape[1])
    step = max(1, 8 * _BLOCK_VALUES // n)
    for start in range(0, n, step):
        report(start / n)
        rows = slice(start, min(n, start + step))
        K = one.kernel(take(vectors, np.arange(rows.start, rows.stop)), vectors)
        squares += np.einsum("ij,ij->j", C[rows], K @ C)
    errors = (gamma(n + n // step + 8) + value_error(one.kernel, vectors)) * lengths**2
    return squares, 1.01 * errors


def value_error(kernel: Any, vectors: Any) -> float:
    """The error of a kernel value that NumPy or the core computes in float64, as a share of √(k(x, x) k(z, z))."""
    if kernel.given:  # k is what the function returns
        return 0.0
    if not hasattr(vectors, "shape"):
        return gamma(64)
    features = vectors.shape[1]
    if is_sparse(vectors):
        features = int(np.diff(vectors.indptr).max(initial=0))
    recipe = kernel.recipe()
    mapped = recipe is not None and recipe.factor is not None
    return generic_error(features, conditioning(recipe.factor) if mapped else 1.0)
