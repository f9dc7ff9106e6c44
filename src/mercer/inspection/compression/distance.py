"""Upper bound on ‖w − w'‖ for two machines with the same kernel, valid despite rounding.

    ‖w − w'‖² = Σ_i Σ_j c_i c_j k(v_i, v_j),      c = (β, −β') on the vectors of both machines

The sum cancels: its terms may be 10¹⁰ times larger than the result. So kernel values and sums are computed in twice the
precision if the core computes the kernel from an inner product or a distance, and a bound on the remaining rounding
error is added. Other kernels are computed in float64, which gives a wider bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mercer import _core
from mercer.kernels import Kernel
from mercer.places.ball import Ball
from mercer.places.expansion import Expansion
from mercer.places.host.linear_gram import linear_scale
from mercer.places.host.source import value_error
from mercer.samples.arrays import Floats, Indices, gamma, is_sparse, n_samples, row_blocks, rows_between, stack, take
from mercer.samples.matrices import dense

# Kernel values in a block of the float64 computation.
_BLOCK_VALUES = 1 << 20
# Cost of computing a kernel value, in multiplications of a value by a coefficient.
_PRODUCTS_PER_VALUE = 25
# Smallest k(v, v) whose square root, times the unit roundoff, is still a normal number.
VANISHING = 1e-280


def distances(one: Expansion, other: Expansion, report: Callable[[float], None] = lambda share: None) -> Floats:
    """Bound ‖w − w'‖ from above for each output, without b.

    `report` is called with the share of the work that is done; it may raise to stop it.
    """
    bounds = np.zeros(len(one.b))
    if one is other:
        return bounds
    vectors = stack(one.vectors, other.vectors)
    C = np.concatenate([dense(one.coefficients), -dense(other.coefficients)])
    groups = _group_outputs(C)
    for number, outputs in enumerate(groups):
        squares = _squares(one.kernel, vectors, C[:, outputs], partial(_report_group, report, number, len(groups)))
        bounds[outputs] = np.sqrt(np.maximum(squares.high, 0.0)) * (1 + 2.0**-50)
    return bounds


def _report_group(report: Callable[[float], None], number: int, n_groups: int, share: float) -> None:
    """Report the share of all groups that is done, where `share` is that of the group `number`."""
    report((number + share) / n_groups)


def _group_outputs(C: Floats) -> list[Indices]:
    """Group the outputs for which kernel values are computed together: all, or each alone if it uses few vectors."""
    outputs, (n, p) = np.arange(C.shape[1]), C.shape
    cost_alone = float(np.sum(np.count_nonzero(C, axis=0).astype(float) ** 2))
    is_cheaper = p > 1 and cost_alone < n**2 * (1 + p / _PRODUCTS_PER_VALUE)
    return [outputs[o : o + 1] for o in outputs] if is_cheaper else [outputs]


def _squares(kernel: Kernel, vectors: Any, C: Floats, report: Callable[[float], None]) -> Ball:
    """Return ‖w − w'‖² of each output, with a bound on its error."""
    support = np.flatnonzero(C.any(axis=1))
    vectors, C = take(vectors, support), np.ascontiguousarray(C[support])
    if not len(C):
        return Ball(np.zeros(C.shape[1]), np.zeros(C.shape[1]))
    check_not_vanishing(kernel, vectors)
    lengths = norm_bounds(kernel, vectors, C)
    with np.errstate(over="ignore", invalid="ignore"):
        if linear_scale(kernel) is not None and not is_sparse(vectors):
            squares = _linear_squares(linear_scale(kernel) or 0.0, vectors, C)
        elif has_doubled_precision(kernel, vectors):
            sums, share = doubled_squares(kernel, vectors, C, report)
            squares = Ball(sums, share * lengths**2).rounded(2)
        else:
            squares = _float64_squares(kernel, vectors, C, lengths, report)
    if not np.isfinite(squares.high).all():
        raise FloatingPointError(
            f"‖w − w'‖² overflows float64 with {kernel!r}: its values or the coefficients are too large; scale the "
            "features"
        )
    if (squares.high < 0).any():
        raise ValueError(
            f"{kernel!r} is not positive definite: ‖w − w'‖² = {float(squares.value.min()):.3g} is negative, so "
            "there is no distance to bound; compress a model with a positive definite kernel"
        )
    return squares


def check_not_vanishing(kernel: Any, vectors: Any) -> None:
    """Raise FloatingPointError if some k(v, v) ≠ 0 is so small that products with its square root underflow."""
    diagonal = np.abs(kernel.diag(vectors))
    is_small = diagonal < VANISHING
    if is_small.any():
        rows = take(vectors, np.flatnonzero(is_small))
        is_matrix = hasattr(rows, "shape")
        is_small = np.asarray(abs(rows).sum(axis=1)).ravel() > 0 if is_matrix else diagonal[is_small] > 0
    if is_small.any():
        raise FloatingPointError(
            f"k(v, v) of some vectors is below {VANISHING:.0e} for {kernel!r}, where float64 keeps too few digits for "
            "a proof; scale the features up"
        )


def norm_bounds(kernel: Any, vectors: Any, C: Floats) -> Floats:
    """Return the upper bound Σ_j |c_j| √k(v_j, v_j) on ‖w‖ for each output, rounded up."""
    roots = np.sqrt(np.abs(kernel.diag(vectors))) if n_samples(vectors) else np.zeros(0)
    return np.asarray(roots @ np.abs(C)) * (1 + 2 * gamma(len(C) + 10))


def largest_length(kernel: Any, vectors: Any) -> float:
    """Return the largest √k(v, v), rounded up."""
    diagonal = np.abs(kernel.diag(vectors)) if n_samples(vectors) else np.zeros(1)
    return float(np.sqrt(diagonal.max())) * (1 + gamma(64))


def differences_at(vectors: Any, one: Expansion, other: Expansion) -> Floats:
    """Return an upper bound on the largest |⟨w − w', φ(v)⟩| over these vectors, for each output."""
    values, m = np.zeros(len(one.b)), one.coefficients.shape[0] + other.coefficients.shape[0]
    if one is other or n_samples(vectors) == 0:
        return values
    for block in row_blocks(n_samples(vectors), 8 * m):
        rows = rows_between(vectors, block)
        f, g = (one.kernel(rows, expansion.vectors) @ expansion.coefficients for expansion in (one, other))
        values = np.maximum(values, np.abs(f - g).max(axis=0))
    lengths = norm_bounds(one.kernel, one.vectors, dense(one.coefficients))
    lengths = lengths + norm_bounds(one.kernel, other.vectors, dense(other.coefficients))
    share = value_error(one.kernel, one.vectors, other.vectors, vectors) + gamma(m + 64)
    return np.asarray(values * (1 + gamma(8)) + share * lengths * largest_length(one.kernel, vectors))


def _linear_squares(scale: float, vectors: Any, C: Floats) -> Ball:
    """Return ‖w − w'‖² for a linear kernel, which is its scale times ‖Σ_j c_j x_j‖², with a bound on its error."""
    X, (n, p) = np.ascontiguousarray(vectors, dtype=np.float64), C.shape
    rows, high, low = _core.dense_rows(X, _core.get_num_threads()), np.empty((p, X.shape[1])), np.empty((p, X.shape[1]))
    for output in range(p):
        rows.doubled_transposed(np.ascontiguousarray(C[:, output]), high[output], low[output])
    weights = np.abs(high + low)
    # Errors of the weights: of sums of n exact products, of the final addition, of products too small to be split.
    slack = 1.01 * gamma(n) ** 2 * (np.abs(C).T @ np.abs(X)) + 2.0**-53 * weights + n * 2.0**-1070
    squares = scale * np.einsum("ij,ij->i", weights, weights)
    errors = scale * np.einsum("ij,ij->i", 2 * weights + slack, slack) + gamma(X.shape[1] + 16) * squares
    return Ball(squares, 1.01 * errors)


def _float64_squares(kernel: Kernel, vectors: Any, C: Floats, lengths: Floats, report: Callable[[float], None]) -> Ball:
    """Return ‖w − w'‖² in float64, by blocks of kernel values, with a bound on its error."""
    n, squares = len(C), np.zeros(C.shape[1])
    step = max(1, _BLOCK_VALUES // n)
    for start in range(0, n, step):
        report(start / n)
        rows = slice(start, min(n, start + step))
        K = kernel(rows_between(vectors, rows), vectors)
        squares += np.einsum("ij,ij->j", C[rows], K @ C)
    errors = (gamma(n + n // step + 8) + value_error(kernel, vectors)) * lengths**2
    return Ball(squares, 1.01 * errors)


# Limits beyond which products leave the range of float64: shortest row relative to the longest, and largest γ.
_SHORTEST_ROW, _LARGEST_GAMMA = 2.0**-400, 2.0**900
# Number of rows that the core sums together, and of kernel values per call, which takes at most about a second.
_ROWS, _VALUES_PER_CALL = 64, 1 << 20


def has_doubled_precision(kernel: Kernel, vectors: Any) -> bool:
    """Return whether the core computes this kernel on these vectors in doubled precision."""
    recipe = kernel.recipe() if kernel.accepts == "vectors" and not kernel.given else None
    if recipe is None or recipe.factor is not None or recipe.normalise or is_sparse(vectors):
        return False
    has_integer_degree = recipe.ending != "polynomial" or recipe.numbers[2] == int(recipe.numbers[2])
    return recipe.ending != "sigmoid" and has_integer_degree


def doubled_squares(
    kernel: Kernel, vectors: Any, C: Floats, report: Callable[[float], None] = lambda share: None
) -> tuple[Floats, float]:
    """Compute Σ_i Σ_j c_i c_j k(v_i, v_j) for each column c of C in doubled precision; return the sums and an error.

    Each sum is rounded to float64 once. The error of a sum before that rounding is at most the returned number times
    (Σ_i |c_i| √k(v_i, v_i))² (src/core/gram/doubled_squares.hpp). So that no square leaves the range of float64,
    features are divided by a power of two that none exceeds, and γ is multiplied to make up for it.
    """
    recipe, X = kernel.recipe(), np.asarray(vectors, dtype=np.float64)
    assert recipe is not None
    n, d = X.shape
    unit = 2.0 ** math.ceil(math.log2(float(np.abs(X).max(initial=0.0)) or 1.0))
    X, C = np.ascontiguousarray(X / unit), np.ascontiguousarray(C)
    gamma, coef0, degree = (*recipe.numbers, 0.0, 1.0)[:3] if recipe.ending == "polynomial" else (1.0, 0.0, 1.0)
    if recipe.inner != "dot":
        gamma = recipe.numbers[0]
    gamma *= unit * (1.0 if recipe.inner == "l1" else unit)
    lengths = np.abs(X).max(axis=1, initial=0.0)
    has_short_rows = recipe.inner == "dot" and bool((lengths[lengths > 0] < _SHORTEST_ROW).any())
    if has_short_rows or not gamma < _LARGEST_GAMMA:
        raise FloatingPointError(
            f"the lengths of samples, or γ times their squares, leave the range of float64 for {kernel!r}, so that "
            "‖w − w'‖ cannot be bounded; scale the features"
        )
    parts: list[Floats] = []
    step = max(_ROWS, _VALUES_PER_CALL // n // _ROWS * _ROWS)
    for start in range(0, n, step):
        report((start / n) * (2 - start / n))
        parameters = recipe.inner, gamma, coef0, int(degree), recipe.scale, recipe.constant
        shares = _core.doubled_squares(X, C, start, min(n, start + step), *parameters, _core.get_num_threads())
        parts += [share.reshape(-1, C.shape[1]) for share in shares]
    squares = np.array([math.fsum(column) for column in np.concatenate(parts).T.tolist()])
    # Error of a kernel value relative to √(k(x, x) k(z, z)), which is at least (γ|x||z| + coef0)ⁿ; the sums add theirs.
    if recipe.inner == "dot":
        value_error = degree * (d + 8) * 2.0**-101 + 2.0**-102
    else:
        value_error = 2.0**-98 + (d + 8) * 2.0**-102
    return squares, 1.01 * (value_error + (640 + n / 64) * 2.0**-104)
