"""How far a computed u = Kβ can be from the true one, row by row: worst cases of rounding, never estimates.

With t the number of terms of an inner sum, v the unit roundoff of the kernel values (2⁻²⁴ or 2⁻⁵³), w = 2⁻⁵³ that of
the sums, ‖β‖₁ over m columns, s the kernel's scale, and N_i half the squared length of row i as the core stores it:

    Gaussian, from norms   |δu_i| ≤ s‖β‖₁ [ln 2 · v(t + t' + 10)(3N_i + 1.07) · 1.1 + σ]
     with a sum beside u   |δu_i| ≤ Σ_j |β_j| k_ij [ln 2 · v(t_i + 10)(N_i + N_j) + σ] · 1.1, in float32
    from differences       |δu_i| ≤ s‖β‖₁ [0.41 v(t + 10) + σ]
    inner products         |δu_i| ≤ s Σ_j |β_j| (p(t + 10)v + σ) T_ij^p · 1.1,   T_ij = γ‖x_i‖‖x_j‖ + |coef0|

where σ = 24v + (40 + m/64)w counts the ending and the sum over columns, and t' the terms of a norm, which is summed in
float64 too: t' = t where v = w, and nothing beside v = 2⁻²⁴. t_i is the number of entries of a sparse row i.

docs/certificate.md has the derivations, and what is assumed of processor and compiler. All numbers are upper bounds.
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

# Unit roundoffs, half of a last digit of 1: 2⁻²⁴ and 2⁻⁵³.
SINGLE, DOUBLE = float(np.finfo(np.float32).eps) / 2, float(np.finfo(np.float64).eps) / 2
# Terms of a float32 sum before it is added to another one (src/core/simd/summation.hpp).
_RUN = _core.FEATURES_PER_RUN
# Roundings of a kernel value after its inner sum, and of the at most twelve products that a tile sums.
_ENDING = 24
# Float64 sums run over at most this many tiles before they are added up (src/core/simd/summation.hpp).
_TILES = _core.GROUPS_PER_SUM
# Such a sum has at least this many rows, unless this many bytes hold fewer, and always a tile of six. Sparse rows are
# added in strips of at least eight.
_SUMMED_ROWS, _SUMMED_BYTES, _TILE_ROWS, _STRIP_ROWS = 64, _core.ROW_BLOCK_BYTES, 6, 8
# max over D of D 2^-D, and exponents below which the core returns 0.
_MOST_TIMES_POWER, _LOWEST_EXPONENT = 0.531, 130.0
# An error of an exponent up to here changes a power of two by less than 1.1 times what its derivative says.
_LARGEST_EXPONENT_ERROR = 0.125
_SECOND_ORDER = 1.1
# Float32 values below 2^-125 are 0, and so are products with coefficients that leave float32's range.
_FLUSHED = 2.0**-120
# What is added to each N_j, beyond their mean, in the sum beside: it may be small, but not zero.
_LEAST_ADDED = 0.05
# What the lengths that both rows were divided by add to the roundings of a cosine in float32.
_OF_LENGTHS = 3.0
_LEAST_SHARE = float(np.finfo(float).tiny)
# Powers up to here are expanded, so that each column counts with its own length.
_LARGEST_EXPANDED_DEGREE = 12


@dataclass(frozen=True)
class Rounding:
    """The bounds for one recipe on samples with at most `terms` terms per inner sum."""

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
        columns: int | None = None,
        in_sequence: int = 0,
    ) -> Floats:
        """|computed − true| ≤ result, for rows with these N_i, columns with these N_j and coefficients β_j.

        One column may stand for several `columns` that are no longer than it, its coefficient for the sum of theirs.
        A library may have made the sums, in any order with at most `in_sequence` additions one after another.
        """
        single = level == np.float32
        v, ending = SINGLE if single else DOUBLE, self.recipe.ending
        absolute = np.abs(coefficients)
        l1, m = float(absolute.sum()), columns or len(coefficients)
        sums, t = self._sums(m, v) + in_sequence * DOUBLE, self._inner_terms(v)
        with np.errstate(over="ignore", invalid="ignore"):
            if ending in ("gaussian", "laplacian"):
                longest = float(sources.max(initial=0.0)) if self.mapped else 0.0
                out = self._radial(sizes, longest, l1, v, t, sums, level)
            else:
                out = self._products(np.sqrt(2 * sizes), np.sqrt(2 * sources), absolute, v, t, sums)
            if single:
                out = out + self._out_of_range(np.sqrt(2 * sizes), np.sqrt(2 * sources), absolute)
        if self.recipe.constant:
            out = out + DOUBLE * (m + 4) * self.recipe.constant * l1
        return np.where(np.isnan(out), np.inf, out) if math.isnan(out.sum()) else out

    def reach(self, sizes: Floats) -> Floats:
        """r with |k(x_i, x_j)| ≤ r_i r_j for rows with these N_i, by Cauchy and Schwarz."""
        recipe, squares = self.recipe, np.ones_like(sizes)  # of exponentials and tanh
        with np.errstate(over="ignore"):
            if recipe.ending == "identity":
                squares = 2 * sizes
            elif recipe.ending == "polynomial":
                gamma, coef0, degree = recipe.numbers
                squares = (2 * gamma * sizes + abs(coef0)) ** degree
            # N_i may be rounded to float32.
            return np.sqrt(_SECOND_ORDER * (recipe.scale * squares + abs(recipe.constant)))

    def _sums(self, m: int, v: float) -> float:
        """σ."""
        longest = m / _STRIP_ROWS if self.sparse else _TILES + m / self._rows_per_sum
        return _ENDING * v + (longest + 8) * DOUBLE

    def _inner_terms(self, v: float) -> int:
        t = self.terms
        return min(t, _RUN) + math.ceil(t / _RUN) if v == SINGLE and not self.sparse else t

    @staticmethod
    def _small_exponent_errors(sizes: Any, v: float, c: Any) -> Any:
        """Whether Gaussian exponents that matter err little: N_j ≤ 2N_i + 2D, and D beyond the lowest is no value."""
        return v * c * (5 * sizes + 4 * _LOWEST_EXPONENT) <= _LARGEST_EXPONENT_ERROR

    @property
    def _rows_per_sum(self) -> float:
        """How many rows a partial sum of dense rows has at least, on average."""
        return max(_TILE_ROWS, min(_SUMMED_ROWS, _SUMMED_BYTES / (8 * max(1, self.terms)) - 2 * _TILE_ROWS))

    def _out_of_range(self, a: Floats, b: Floats, absolute: Floats) -> Floats:
        """What float32 loses of coefficients, and of products with them, that are not normal numbers of float32."""
        longest, numbers = float(b.max(initial=0.0)), self.recipe.numbers
        values = np.ones_like(a)
        if self.recipe.ending == "identity":
            values = a * longest
        elif self.recipe.ending == "polynomial":
            values = (numbers[0] * a * longest + abs(numbers[1])) ** numbers[2]
        values = 1.0 + self.recipe.scale * values
        limits = np.finfo(np.float32)
        lost = len(absolute) * float(limits.smallest_subnormal) * values
        return np.where(16 * values * float(absolute.max(initial=0.0)) < float(limits.max), lost, np.inf)

    def likely(self, sizes: Floats, sources: Floats, squares: Floats, aligned: Callable[[], float]) -> Floats:
        """About three times what float32 kernel values do to sums with coefficients of these squares, a column per sum.

        No bound, since roundings are taken to be independent: it chooses a precision for predictions. `aligned` is the
        largest mean of cos² between the columns and any row: products of one sign round more when they are summed.
        """
        a, b, recipe = np.sqrt(2 * sizes), np.sqrt(2 * sources), self.recipe
        gamma, coef0, degree = (*recipe.numbers, 0.0, 1.0)[:3] if recipe.numbers else (1.0, 0.0, 1.0)
        longest, norm = float(b.max(initial=0.0)), math.sqrt(float(np.max(squares.sum(axis=0), initial=0.0)))
        with np.errstate(over="ignore", invalid="ignore"):
            if recipe.ending in ("gaussian", "laplacian"):
                largest = self._exponents(sizes)
                moved = norm * largest
            elif recipe.ending == "sigmoid":
                largest = gamma * longest * a + abs(coef0) + 1
                moved = norm * largest
            else:
                degree = degree if recipe.ending == "polynomial" else 1.0
                largest = (gamma * longest * a + abs(coef0)) ** degree
                square = aligned()
                near = min(1.0, 2 * math.sqrt(square))  # most products are no larger than this share of both lengths
                summed = math.sqrt(self._inner_terms(SINGLE) * square)
                roundings = 1 + summed + _OF_LENGTHS * near * recipe.normalise
                powers = _powers(gamma * near * a, b, abs(coef0), int(2 * degree), squares)
                moved = degree * roundings * np.sqrt(powers)
            most = float(np.finfo(np.float32).max) / 4
            factor = gamma if recipe.ending in ("polynomial", "sigmoid") else 1.0  # others scale the samples
            fits = (1 / most < factor < most) & (recipe.scale * largest < most)
            return np.where(fits, SINGLE * recipe.scale * moved, np.inf)

    def in_common(self, sizes: Floats) -> Floats:
        """About what the rounding of a row's own float32 norm does to all its values alike, as a share of them."""
        radial = self.recipe.ending in ("gaussian", "laplacian")
        return SINGLE * self._exponents(sizes) if radial else np.zeros(len(sizes))

    def _exponents(self, sizes: Floats) -> Floats:
        gaussian = self.recipe.ending == "gaussian" or self.sparse
        return 3 * (sizes if gaussian else np.sqrt(2 * self.terms * sizes)) + 1

    def usual(self, sources: Floats, norm: float) -> float:
        """About the size of a sum with coefficients of this 2-norm at a sample as long as the usual column.

        0 where float32 does not hold such coefficients. No bound either.
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
        self, sizes: Floats, longest: float, l1: float, v: float, t: int, sums: float, level: Precision
    ) -> Floats:
        """Exponents err by v·c·(N_i + N_j), and N_j ≤ 2N_i + 2D, D being the true exponent of k = 2^−D.

        Behind a factor `sizes` are the lengths of what was summed, N' ≥ N, and nothing is known of N'_j but the
        `longest`; that factor is one of Cholesky's.
        """
        scale, c = self.recipe.scale, t + 10
        if level == np.float64:
            c += t  # the sums that norms are
        if self.mapped:
            mapping = 8 * (self.mapped + 2) * DOUBLE * (sizes + longest)
            plain = replace(self, mapped=0)._radial(sizes, longest, l1, v, t, sums, level)
            most = scale * l1 * (1 + sums)
            moved = plain + _SECOND_ORDER * math.log(2) * scale * l1 * mapping
            return np.where(mapping <= _LARGEST_EXPONENT_ERROR, np.minimum(moved, most), most)
        if level == "exact":  # sums of sparse rows in twice the precision leave a trace of their norms
            trace = 4 * ((t + 4) * v) ** 2 * (3 * sizes + 2 * _MOST_TIMES_POWER)
            error = _SECOND_ORDER * math.log(2) * (_MOST_TIMES_POWER * v * c + trace) + sums
            return scale * l1 * np.where(trace <= _LARGEST_EXPONENT_ERROR, error, 1.0 + sums)
        if self.recipe.ending == "gaussian":
            slope, rest = 3 * sizes, 2 * _MOST_TIMES_POWER
            all_small = bool(self._small_exponent_errors(float(sizes.max(initial=0.0)), v, c))
            small: Any = all_small or self._small_exponent_errors(sizes, v, c)
        else:  # |x_j|₁ ≤ |x_i|₁ + D; from dense rows D is a sum of differences, from sparse ones of norms
            length = sizes if self.sparse else np.sqrt(2 * self.terms * sizes)
            slope, rest = 2 * length if self.sparse else 4 / c * length, _MOST_TIMES_POWER
            small = v * (c * (_LOWEST_EXPONENT + slope)) <= _LARGEST_EXPONENT_ERROR
        error = np.minimum(_SECOND_ORDER * math.log(2) * v * c * (slope + rest) + sums, 1.0 + sums)
        return scale * l1 * (error if small is True else np.where(small, error, 1.0 + sums))

    def _products(self, a: Floats, b: Floats, absolute: Floats, v: float, t: int, sums: float) -> Floats:
        recipe, l1 = self.recipe, float(absolute.sum())
        t += 4 * (self.mapped + 2) * (self.mapped > 0)
        if recipe.normalise and v == DOUBLE:
            t += t + 8  # the lengths that rows were divided by
        smallest = float(np.finfo(np.float32 if v == SINGLE else np.float64).smallest_subnormal)
        # Of entries and of products; γ multiplies what was lost.
        underflow = 64 * t * smallest * max((1.0, *recipe.numbers[:1])) * (1.0 + a + float(b.max(initial=0.0)))
        if recipe.ending == "identity":
            products = float(absolute @ b) * a
            return _SECOND_ORDER * recipe.scale * (((t + 8) * v + sums) * products + underflow * l1)
        gamma, coef0, degree = (*recipe.numbers, 1.0)[:3]
        if recipe.ending == "sigmoid":
            base = gamma * float(absolute @ b) * a + abs(coef0) * l1
            return _SECOND_ORDER * recipe.scale * ((t + 8) * v * base + (sums + underflow) * l1)
        relative = degree * (t + 10) * v
        if relative > _LARGEST_EXPONENT_ERROR:
            return np.full(len(a), np.inf)
        powers = _powers(gamma * a, b, abs(coef0), int(degree), absolute)
        overflow = float(np.finfo(np.float32 if v == SINGLE else np.float64).max) / 4
        largest = recipe.scale * (gamma * a * float(b.max(initial=0.0)) + abs(coef0)) ** degree
        powers = np.where((powers < overflow) & (largest < overflow), powers, np.inf)
        return (
            _SECOND_ORDER * recipe.scale * ((relative + sums + degree * underflow) * powers + degree * underflow * l1)
        )


class SumBeside:
    """Bounds for u = Kβ in float32, K a Gaussian, from g_i = Σ_j |β_j|(N_j + M) k_ij as computed beside it.

    With N_j ≥ L for all columns, Σ_j |β_j|(N_i + N_j) k_ij ≤ g_i max(1, (N_i + L)/(M + L)), and Σ_j |β_j| k_ij ≤
    g_i/(M + L). M is about the mean of N_j, so that both lose little.
    """

    def __init__(self, rounding: Rounding, sources: Floats, coefficients: Floats) -> None:
        self._rounding, self._absolute = rounding, np.abs(coefficients)
        self._l1, self._m = float(self._absolute.sum()), len(coefficients)
        self._low, self._added = float(sources.min()), float(sources.mean()) + _LEAST_ADDED
        self.coefficients = self._absolute * (sources + self._added)

    def errors(self, sizes: Floats, beside: Floats, terms: Any) -> Floats:
        """|computed − true| ≤ result, for rows with these N_i and g_i, and this many terms of inner sums at most."""
        own, v, scale = self._rounding, SINGLE, self._rounding.recipe.scale
        sums, c = own._sums(self._m, v), np.minimum(own._inner_terms(v), terms) + 10
        least = self._low + self._added
        with np.errstate(over="ignore", invalid="ignore"):
            first_order = math.log(2) * v * c * np.maximum(1.0, (sizes + self._low) / least) + sums / least
            error = _SECOND_ORDER * first_order * beside + _FLUSHED * scale * (self._l1 + self._m) * (1 + sizes)
            most = scale * self._l1 * (1.0 + sums)
            out = np.where(own._small_exponent_errors(sizes, v, c), np.minimum(error, most), most)
            out = out + own._out_of_range(sizes, sizes[:0], self._absolute)
        out = out + DOUBLE * (self._m + 4) * own.recipe.constant * self._l1
        return np.where(np.isnan(out), np.inf, out)


def _powers(a: Floats, b: Floats, coef0: float, degree: int, absolute: Floats) -> Floats:
    """At least Σ_j |β_j| (a_i b_j + coef0)^degree, for every i, and any column of |β| if there are several."""
    longest = float(b.max(initial=0.0))
    if degree > _LARGEST_EXPANDED_DEGREE:
        return np.asarray(absolute.sum(axis=0).max() * (a * longest + coef0) ** degree)
    # γ‖x‖‖z‖ may be of ordinary size where powers of ‖z‖ alone are 0. Powers of shares that are 0 count as the least.
    a, shares = a * longest, b / longest if longest > 0 else b
    out = np.zeros(len(a))
    for q in range(degree, -1, -1):
        factor = math.comb(degree, q) * coef0 ** (degree - q)
        out = out * a + (factor * float(np.max(np.maximum(shares**q, _LEAST_SHARE) @ absolute)) if factor else 0.0)
    return out


def generic_error(d: int, conditioning: float = 1.0, factors: int = 1) -> float:
    """The relative error of a kernel value that NumPy computes from d features, in units of √(k_ii k_jj), at most 1.

    A product of several `factors`, such as a power, has the roundings of all of them. What cancelled in distances
    counts once: kernels fall with the distance, so that where many factors would add that up, their product is small.

    Squared distances are recomputed from differences below 10⁻⁴ of the norms they come from (samples/distances.py).
    Behind a factor L their relative error grows with its `conditioning` κ: (d + 1)κu from |M − LLᵀ| ≤ γ|L||L|ᵀ, and
    (d + 2)(10⁴ + 2κ)u at most from products with L.
    """
    relative = DOUBLE * (1e4 * (d + 20) + 2 * (d + 2) * conditioning + (factors - 1) * (4 * d + 40))
    return min(1.0, relative) if factors == 1 or relative <= _LARGEST_EXPONENT_ERROR else math.inf


def conditioning(factor: Floats) -> float:
    """How many times ‖|x|ᵀ|F|‖² can be larger than ‖xᵀF‖², whatever the features' units.

    The first is what rounding of Cholesky's factor and of products with it is relative to, the second a distance.
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    units = factor / np.where(lengths > 0, lengths, 1.0)[:, None]
    smallest = float(np.linalg.svd(units, compute_uv=False)[-1]) - len(factor) * DOUBLE * 64
    largest = float(np.linalg.norm(np.abs(units), 2))
    return (largest / smallest) ** 2 if smallest > 0 else math.inf
