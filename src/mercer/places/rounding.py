"""Bounds on the error of a computed u = Kβ, row by row, for the worst case of rounding.

With t the number of terms of an inner sum, v the unit roundoff of the kernel values (2⁻²⁴ or 2⁻⁵³), w = 2⁻⁵³ that of
the sums, ‖β‖₁ over m columns, s the kernel's scale, and N_i half the squared length of row i as the core stores it:

    Gaussian, from norms   |δu_i| ≤ s‖β‖₁ [ln 2 · v(t + t' + 10)(3N_i + 1.07) · 1.1 + σ]
     with a weighted sum   |δu_i| ≤ Σ_j |β_j| k_ij [ln 2 · v(t_i + 10)(N_i + N_j) + σ] · 1.1, in float32
    from differences       |δu_i| ≤ s‖β‖₁ [0.41 v(t + 10) + σ]
    inner products         |δu_i| ≤ s Σ_j |β_j| (p(t + 10)v + σ) T_ij^p · 1.1,   T_ij = γ‖x_i‖‖x_j‖ + |coef0|

where σ = 24v + (40 + m/64)w counts the ending and the sum over columns, and t' the terms of a norm, which is summed in
float64 too: t' = t if v = w, and negligible if v = 2⁻²⁴. t_i is the number of entries of a sparse row i.

docs/certificate.md has the derivations, and the assumptions about processor and compiler. All numbers are upper bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer import _core
from mercer.kernels.recipe import Recipe
from mercer.samples.arrays import Floats, Precision

# Unit roundoffs of float32 and float64, 2⁻²⁴ and 2⁻⁵³.
SINGLE, DOUBLE = float(np.finfo(np.float32).eps) / 2, float(np.finfo(np.float64).eps) / 2
# Number of terms of a float32 sum before it is added to another one (src/core/simd/summation.hpp).
_RUN = _core.FEATURES_PER_RUN
# Roundings of a kernel value after its inner sum, and of the at most twelve products that a tile sums.
_ENDING_ROUNDINGS = 24
# Float64 sums run over at most this many tiles before they are added up (src/core/simd/summation.hpp).
_TILES = _core.GROUPS_PER_SUM
# Such a sum has at least this many rows, unless this many bytes hold fewer, and always a tile of six. Sparse rows are
# added in strips of at least eight.
_SUMMED_ROWS, _SUMMED_BYTES, _TILE_ROWS, _STRIP_ROWS = 64, _core.ROW_BLOCK_BYTES, 6, 8
# Maximum over D of D 2^-D, and the exponent D above which the core returns 0 for 2^-D.
_MOST_TIMES_POWER, _LOWEST_EXPONENT = 0.531, 130.0
# An exponent's error up to this size changes a power of two by less than 1.1 times its first-order change.
_LARGEST_EXPONENT_ERROR = 0.125
_SECOND_ORDER_FACTOR = 1.1
# Bound on what is lost because float32 values below 2^-125, and products below float32's range, are set to 0.
_UNDERFLOW_BOUND = 2.0**-120
# Added to the mean of N_j in the weights of the weighted sum, so that the weights are positive.
_LEAST_OFFSET = 0.05
# Roundings that dividing both rows by their lengths adds to a cosine in float32.
_LENGTH_ROUNDINGS = 3.0
# Smallest normal number, in place of powers that underflow.
_LEAST_SHARE = float(np.finfo(float).tiny)
# Powers up to this degree are expanded, so that each column counts with its own length.
_LARGEST_EXPANDED_DEGREE = 12


@dataclass(frozen=True)
class Rounding:
    """Error bounds for one recipe on samples with at most `terms` terms per inner sum."""

    recipe: Recipe
    terms: int
    sparse: bool
    mapped: int = 0  # features before a factor was applied, 0 without one

    def errors(
        self,
        sizes: Floats,
        sources: Floats,
        coefficients: Floats,
        level: Precision,
        n_columns: int | None = None,
        in_sequence: int = 0,
    ) -> Floats:
        """Return bounds on |computed − true| for rows with N_i = `sizes` and columns with N_j = `sources`, times β.

        One source may represent `n_columns` columns that are no longer than it; its coefficient is then their ‖β‖₁.
        If a library adds the terms in an order of its own, `in_sequence` bounds the number of successive additions.
        """
        is_float32 = level == np.float32
        v, ending = SINGLE if is_float32 else DOUBLE, self.recipe.ending
        magnitudes = np.abs(coefficients)
        l1, m = float(magnitudes.sum()), n_columns or len(coefficients)
        sum_error, t = self._sums(m, v) + in_sequence * DOUBLE, self._inner_terms(v)
        with np.errstate(over="ignore", invalid="ignore"):
            if ending in ("gaussian", "laplacian"):
                longest = float(sources.max(initial=0.0)) if self.mapped else 0.0
                out = self._radial(sizes, longest, l1, v, t, sum_error, level)
            else:
                out = self._products(np.sqrt(2 * sizes), np.sqrt(2 * sources), magnitudes, v, t, sum_error)
            if is_float32:
                out = out + self._range_loss(np.sqrt(2 * sizes), np.sqrt(2 * sources), magnitudes)
        if self.recipe.constant:
            out = out + DOUBLE * (m + 4) * self.recipe.constant * l1
        return np.where(np.isnan(out), np.inf, out) if math.isnan(out.sum()) else out

    def entry_bounds(self, sizes: Floats) -> Floats:
        """Return numbers r with |k(x_i, x_j)| ≤ r_i r_j for rows with these N_i, by the Cauchy–Schwarz inequality."""
        recipe, squares = self.recipe, np.ones_like(sizes)  # 1 bounds exponentials and tanh
        with np.errstate(over="ignore"):
            if recipe.ending == "identity":
                squares = 2 * sizes
            elif recipe.ending == "polynomial":
                gamma, coef0, degree = recipe.numbers
                squares = (2 * gamma * sizes + abs(coef0)) ** degree
            # The factor covers N_i that were rounded to float32.
            return np.sqrt(_SECOND_ORDER_FACTOR * (recipe.scale * squares + abs(recipe.constant)))

    def _sums(self, m: int, v: float) -> float:
        """Return σ, the relative error of a kernel value's ending and of the sum over m columns."""
        longest = m / _STRIP_ROWS if self.sparse else _TILES + m / self._rows_per_sum
        return _ENDING_ROUNDINGS * v + (longest + 8) * DOUBLE

    def _inner_terms(self, v: float) -> int:
        """Return the largest number of successive additions in an inner sum with unit roundoff v."""
        t = self.terms
        return min(t, _RUN) + math.ceil(t / _RUN) if v == SINGLE and not self.sparse else t

    @staticmethod
    def _small_exponent_errors(sizes: Any, v: float, c: Any) -> Any:
        """Return whether Gaussian exponents D have small errors up to 130, above which 2^-D is 0; N_j ≤ 2N_i + 2D."""
        return v * c * (5 * sizes + 4 * _LOWEST_EXPONENT) <= _LARGEST_EXPONENT_ERROR

    @property
    def _rows_per_sum(self) -> float:
        """Smallest average number of rows in a partial sum of dense rows."""
        return max(_TILE_ROWS, min(_SUMMED_ROWS, _SUMMED_BYTES / (8 * max(1, self.terms)) - 2 * _TILE_ROWS))

    def _range_loss(self, a: Floats, b: Floats, magnitudes: Floats) -> Floats:
        """Return a bound on what is lost as numbers fall below float32's normal range; ∞ if they exceed its range."""
        longest, numbers = float(b.max(initial=0.0)), self.recipe.numbers
        values = np.ones_like(a)
        if self.recipe.ending == "identity":
            values = a * longest
        elif self.recipe.ending == "polynomial":
            values = (numbers[0] * a * longest + abs(numbers[1])) ** numbers[2]
        values = 1.0 + self.recipe.scale * values
        limits = np.finfo(np.float32)
        loss = len(magnitudes) * float(limits.smallest_subnormal) * values
        return np.where(16 * values * float(magnitudes.max(initial=0.0)) < float(limits.max), loss, np.inf)

    def estimated_errors(self, sizes: Floats, sources: Floats, squares: Floats, aligned: Callable[[], float]) -> Floats:
        """Estimate the errors that float32 kernel values cause in sums; the estimate is about three times too large.

        `squares` are the squared coefficients, with a column per sum. The result is no bound, since roundings are taken
        to be independent: it serves to choose a precision for predictions. `aligned()` is the largest mean of cos²
        between the columns and any row: sums of products of one sign have larger roundings.
        """
        a, b, recipe = np.sqrt(2 * sizes), np.sqrt(2 * sources), self.recipe
        gamma, coef0, degree = (*recipe.numbers, 0.0, 1.0)[:3] if recipe.numbers else (1.0, 0.0, 1.0)
        longest, norm = float(b.max(initial=0.0)), math.sqrt(float(np.max(squares.sum(axis=0), initial=0.0)))
        with np.errstate(over="ignore", invalid="ignore"):
            if recipe.ending in ("gaussian", "laplacian"):
                largest_value = self._exponents(sizes)
                error = norm * largest_value
            elif recipe.ending == "sigmoid":
                largest_value = gamma * longest * a + abs(coef0) + 1
                error = norm * largest_value
            else:
                degree = degree if recipe.ending == "polynomial" else 1.0
                largest_value = (gamma * longest * a + abs(coef0)) ** degree
                mean_square = aligned()
                cosine = min(1.0, 2 * math.sqrt(mean_square))  # most cosines are no larger than this
                inner_roundings = math.sqrt(self._inner_terms(SINGLE) * mean_square)
                roundings = 1 + inner_roundings + _LENGTH_ROUNDINGS * cosine * recipe.normalise
                powers = _powers(gamma * cosine * a, b, abs(coef0), int(2 * degree), squares)
                error = degree * roundings * np.sqrt(powers)
            overflow = float(np.finfo(np.float32).max) / 4
            factor = gamma if recipe.ending in ("polynomial", "sigmoid") else 1.0  # others scale the samples
            fits_float32 = (1 / overflow < factor < overflow) & (recipe.scale * largest_value < overflow)
            return np.where(fits_float32, SINGLE * recipe.scale * error, np.inf)

    def common_error(self, sizes: Floats) -> Floats:
        """Estimate the relative error, equal in all values of a row, that rounding the row's norm to float32 causes."""
        is_radial = self.recipe.ending in ("gaussian", "laplacian")
        return SINGLE * self._exponents(sizes) if is_radial else np.zeros(len(sizes))

    def _exponents(self, sizes: Floats) -> Floats:
        """Estimate the error of each row's exponents in units of the roundoff, which is about their size."""
        gaussian = self.recipe.ending == "gaussian" or self.sparse
        return 3 * (sizes if gaussian else np.sqrt(2 * self.terms * sizes)) + 1

    def typical_value(self, sources: Floats, norm: float) -> float:
        """Estimate the size of a sum with coefficients of this 2-norm at a sample of the median column's length.

        `sources` are N_j = ½‖x_j‖² of the columns. The result is not a bound, and is 0 if float32 cannot represent such
        coefficients.
        """
        square, value = 2 * float(np.median(sources)) if len(sources) else 0.0, 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            if self.recipe.ending == "identity":
                value = square
            elif self.recipe.ending == "polynomial":
                gamma, coef0, degree = self.recipe.numbers
                value = float(np.float64(gamma * square + abs(coef0)) ** degree)
        size = self.recipe.scale * norm * value
        return size if norm > float(np.finfo(np.float32).tiny) / SINGLE else 0.0

    def _radial(
        self, sizes: Floats, longest: float, l1: float, v: float, t: int, sum_error: float, level: Precision
    ) -> Floats:
        """Return bounds for radial kernels: k = 2^−D, D has an error of v·c·(N_i + N_j), and N_j ≤ 2N_i + 2D.

        `l1` is ‖β‖₁; v, t and σ = `sum_error` are those of the module docstring. If samples are mapped by a Cholesky
        factor, `sizes` come from the absolute values of the terms, N' ≥ N, and only the `longest` N'_j is known.
        """
        scale, c = self.recipe.scale, t + 10
        if level == np.float64:
            c += t  # the roundings of the norms
        if self.mapped:
            mapping = 8 * (self.mapped + 2) * DOUBLE * (sizes + longest)
            unmapped_bound = replace(self, mapped=0)._radial(sizes, longest, l1, v, t, sum_error, level)
            trivial_bound = scale * l1 * (1 + sum_error)
            bound = unmapped_bound + _SECOND_ORDER_FACTOR * math.log(2) * scale * l1 * mapping
            return np.where(mapping <= _LARGEST_EXPONENT_ERROR, np.minimum(bound, trivial_bound), trivial_bound)
        if level == "exact":  # sums of sparse rows in twice the precision keep a tiny error relative to the norms
            trace = 4 * ((t + 4) * v) ** 2 * (3 * sizes + 2 * _MOST_TIMES_POWER)
            error = _SECOND_ORDER_FACTOR * math.log(2) * (_MOST_TIMES_POWER * v * c + trace) + sum_error
            return scale * l1 * np.where(trace <= _LARGEST_EXPONENT_ERROR, error, 1.0 + sum_error)
        if self.recipe.ending == "gaussian":
            slope, intercept = 3 * sizes, 2 * _MOST_TIMES_POWER
            are_all_small = bool(self._small_exponent_errors(float(sizes.max(initial=0.0)), v, c))
            is_small: Any = are_all_small or self._small_exponent_errors(sizes, v, c)
        else:  # |x_j|₁ ≤ |x_i|₁ + D; from dense rows D is a sum of differences, from sparse ones of norms
            length = sizes if self.sparse else np.sqrt(2 * self.terms * sizes)
            slope, intercept = 2 * length if self.sparse else 4 / c * length, _MOST_TIMES_POWER
            is_small = v * (c * (_LOWEST_EXPONENT + slope)) <= _LARGEST_EXPONENT_ERROR
        error = np.minimum(
            _SECOND_ORDER_FACTOR * math.log(2) * v * c * (slope + intercept) + sum_error, 1.0 + sum_error
        )
        return scale * l1 * (error if is_small is True else np.where(is_small, error, 1.0 + sum_error))

    def _products(self, a: Floats, b: Floats, magnitudes: Floats, v: float, t: int, sum_error: float) -> Floats:
        """Return bounds for kernels of inner products; rows have the lengths a, columns b, and `magnitudes` is |β|.

        v and t are those of the module docstring, and `sum_error` is its σ.
        """
        recipe, l1 = self.recipe, float(magnitudes.sum())
        t += 4 * (self.mapped + 2) * (self.mapped > 0)
        if recipe.normalise and v == DOUBLE:
            t += t + 8  # roundings of the lengths that rows are divided by
        smallest = float(np.finfo(np.float32 if v == SINGLE else np.float64).smallest_subnormal)
        # What underflow takes from entries and from products is multiplied by γ.
        underflow = 64 * t * smallest * max((1.0, *recipe.numbers[:1])) * (1.0 + a + float(b.max(initial=0.0)))
        if recipe.ending == "identity":
            products = float(magnitudes @ b) * a
            return _SECOND_ORDER_FACTOR * recipe.scale * (((t + 8) * v + sum_error) * products + underflow * l1)
        gamma, coef0, degree = (*recipe.numbers, 1.0)[:3]
        if recipe.ending == "sigmoid":
            base = gamma * float(magnitudes @ b) * a + abs(coef0) * l1
            return _SECOND_ORDER_FACTOR * recipe.scale * ((t + 8) * v * base + (sum_error + underflow) * l1)
        relative_error = degree * (t + 10) * v
        if relative_error > _LARGEST_EXPONENT_ERROR:
            return np.full(len(a), np.inf)
        powers = _powers(gamma * a, b, abs(coef0), int(degree), magnitudes)
        overflow = float(np.finfo(np.float32 if v == SINGLE else np.float64).max) / 4
        largest = recipe.scale * (gamma * a * float(b.max(initial=0.0)) + abs(coef0)) ** degree
        powers = np.where((powers < overflow) & (largest < overflow), powers, np.inf)
        return (
            _SECOND_ORDER_FACTOR
            * recipe.scale
            * ((relative_error + sum_error + degree * underflow) * powers + degree * underflow * l1)
        )


class WeightedSumBound:
    """Bounds for u = Kβ in float32 with a Gaussian kernel, from g_i = Σ_j |β_j|(N_j + M) k_ij, computed along with u.

    With N_j ≥ L for all columns, Σ_j |β_j|(N_i + N_j) k_ij ≤ g_i max(1, (N_i + L)/(M + L)), and Σ_j |β_j| k_ij ≤
    g_i/(M + L). M is about the mean of N_j, so that both lose little.
    """

    def __init__(self, rounding: Rounding, sources: Floats, coefficients: Floats) -> None:
        self._rounding, self._magnitudes = rounding, np.abs(coefficients)
        self._l1, self._m = float(self._magnitudes.sum()), len(coefficients)
        self._low, self._offset = float(sources.min()), float(sources.mean()) + _LEAST_OFFSET
        self.coefficients = self._magnitudes * (sources + self._offset)

    def errors(self, sizes: Floats, weighted_sums: Floats, terms: Any) -> Floats:
        """Return bounds on |computed − true| for rows with N_i = `sizes`, g_i = `weighted_sums` and `terms` terms."""
        rounding, v, scale = self._rounding, SINGLE, self._rounding.recipe.scale
        sums, c = rounding._sums(self._m, v), np.minimum(rounding._inner_terms(v), terms) + 10
        smallest_weight = self._low + self._offset
        with np.errstate(over="ignore", invalid="ignore"):
            first_order = (
                math.log(2) * v * c * np.maximum(1.0, (sizes + self._low) / smallest_weight) + sums / smallest_weight
            )
            error = _SECOND_ORDER_FACTOR * first_order * weighted_sums + _UNDERFLOW_BOUND * scale * (
                self._l1 + self._m
            ) * (1 + sizes)
            trivial = scale * self._l1 * (1.0 + sums)
            out = np.where(rounding._small_exponent_errors(sizes, v, c), np.minimum(error, trivial), trivial)
            out = out + rounding._range_loss(sizes, sizes[:0], self._magnitudes)
        out = out + DOUBLE * (self._m + 4) * rounding.recipe.constant * self._l1
        return np.where(np.isnan(out), np.inf, out)


def _powers(a: Floats, b: Floats, coef0: float, degree: int, magnitudes: Floats) -> Floats:
    """Return an upper bound on Σ_j |β_j| (a_i b_j + coef0)^degree for every i, the largest over the columns of |β|."""
    longest = float(b.max(initial=0.0))
    if degree > _LARGEST_EXPANDED_DEGREE:
        return np.asarray(magnitudes.sum(axis=0).max() * (a * longest + coef0) ** degree)
    # γ‖x‖‖z‖ may be of ordinary size even if powers of ‖z‖ alone underflow, so that lengths are divided by the longest.
    # Powers of these ratios that underflow count as the smallest normal number.
    a, shares = a * longest, b / longest if longest > 0 else b
    out = np.zeros(len(a))
    for q in range(degree, -1, -1):
        factor = math.comb(degree, q) * coef0 ** (degree - q)
        out = out * a + (factor * float(np.max(np.maximum(shares**q, _LEAST_SHARE) @ magnitudes)) if factor else 0.0)
    return out


def generic_error(d: int, conditioning: float = 1.0, n_factors: int = 1) -> float:
    """Return a bound ≤ 1 on the error of a kernel value that NumPy computes from d features, in units of √(k_ii k_jj).

    A product of several `n_factors`, such as a power, has the roundings of all of them. The cancellation in distances
    counts once: kernels fall with the distance, so that the product is small whenever many errors would add up.

    Squared distances are recomputed from differences if they are below 10⁻⁴ of the norms (samples/distances.py). If
    samples are mapped by a factor L, their relative error grows with its `conditioning` κ: (d + 1)κu from
    |M − LLᵀ| ≤ γ|L||L|ᵀ, and (d + 2)(10⁴ + 2κ)u at most from products with L.
    """
    relative_error = DOUBLE * (1e4 * (d + 20) + 2 * (d + 2) * conditioning + (n_factors - 1) * (4 * d + 40))
    return min(1.0, relative_error) if n_factors == 1 or relative_error <= _LARGEST_EXPONENT_ERROR else math.inf


def conditioning(factor: Floats) -> float:
    """Return the largest ratio of ‖|x|ᵀ|F|‖² to ‖xᵀF‖² over all x, for any units of the features.

    The rounding of Cholesky's factor and of products with it is relative to the numerator; the denominator is a
    squared distance.
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    units = factor / np.where(lengths > 0, lengths, 1.0)[:, None]
    smallest = float(np.linalg.svd(units, compute_uv=False)[-1]) - len(factor) * DOUBLE * 64
    largest = float(np.linalg.norm(np.abs(units), 2))
    return (largest / smallest) ** 2 if smallest > 0 else math.inf
