"""How far a C file's outputs are from Python's, computed as the file does before it is written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Floats
from mercer.files.exported_parts import Parts
from mercer.kernels import Recipe
from mercer.kernels.matrices import dense
from mercer.kernels.recipe import ArrayArithmetic, ended

# Half of the largest float: sums are rounded.
_HALF_LARGEST = 0.5 * float(np.finfo(np.float32).max)


def largest_difference(parts: Parts, rows: Floats, found: Floats) -> float:
    """How far outputs at some rows are from those of float64, as a share of the largest of each output."""
    if not len(rows):
        return 0.0
    wanted = _outputs(parts, rows, np.float64)
    size = np.abs(wanted).max(axis=0)
    with np.errstate(invalid="ignore"):
        off = np.abs(found - wanted).max(axis=0) / np.where(size > 0, size, 1.0)
    return float(off.max()) if np.isfinite(off).all() else np.inf


def float_outputs(parts: Parts, dtype: str) -> tuple[Floats, Floats]:
    """The examples as rows of float or double, and the outputs that a file of this type computes of them."""
    kind = np.float64 if dtype == "float64" else np.float32
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        rows = parts.examples.astype(kind).astype(np.float64)
        return rows, _outputs(parts, rows, kind)


def _outputs(parts: Parts, rows: Floats, kind: Any) -> Floats:
    """Outputs with every number and every kernel value in a type; the file's sums lose next to nothing."""
    recipe, seen = parts.recipe, prepared(parts.recipe, scaled_rows(parts, rows.astype(kind)))
    vectors = prepared(recipe, parts.vectors).astype(kind)
    K = np.array([_values(recipe, vectors, x) for x in seen], dtype=np.float64).reshape(len(seen), len(vectors))
    out = K @ dense(parts.table).astype(kind) + parts.offset.astype(kind)
    if parts.ball:
        own = np.array([_values(recipe, x[None], x)[0] for x in seen], dtype=np.float64)
        out = 2 * out - (recipe.scale * own + recipe.constant)[:, None]
    return np.asarray(out)


def largest_entry(parts: Parts) -> float | None:
    """How large entries of rows may be without any number of a float32 file overflowing; None for all that float holds.

    Distances may overflow: the kernel of an infinite one is 0, as that of a very large one is.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        for power in range(38, -46, -1):
            for entry in (3.0 * 10.0**power, 10.0**power):
                if _largest_number(parts, entry) <= _HALF_LARGEST:
                    return entry if power < 38 else None
    return 0.0


def _largest_number(parts: Parts, entry: float) -> float:
    """At least the largest number on the way from a row with entries up to this size to its outputs."""
    recipe, row, numbers = parts.recipe, np.full(parts.n_features, entry), [0.0]
    for scaling in parts.scalings:
        row = (row + np.abs(scaling.shift)) / np.abs(scaling.divisor)
        if scaling.low is not None and scaling.high is not None:
            row = np.minimum(row, max(abs(scaling.low), abs(scaling.high)))
    if recipe.factor is not None:
        row = row @ np.abs(recipe.factor)
        numbers.append(row.max())
    if recipe.inner != "dot":
        return float(np.max(numbers)) if recipe.numbers[0] > 0 else np.inf
    row = np.ones_like(row) if recipe.normalise else row
    vectors = np.abs(prepared(recipe, parts.vectors))
    if parts.ball:
        vectors = np.vstack([vectors, row])
    t = float((vectors @ row).max(initial=0.0))
    numbers += [row.max(initial=0.0), t]
    t = ended(recipe.ending, recipe.numbers, t, _Sizes(numbers))
    outputs = np.abs(dense(parts.table)).sum(axis=0) * t + np.abs(parts.offset)
    own = abs(recipe.scale) * t + abs(recipe.constant) if parts.ball else 0.0
    return float(np.nan_to_num(np.max([*numbers, t, 2 * outputs.max() + own]), nan=np.inf))


@dataclass(frozen=True)
class _Sizes:
    """Arithmetic with bounds on the sizes of numbers; those on the way are noted. Kernels of distances need none."""

    seen: list[Any]

    def times(self, t: float, factor: float) -> float:
        return t * abs(factor)

    def plus(self, t: float, number: float) -> float:
        self.seen.append(t + abs(number))
        return t + abs(number)

    def exp(self, t: float) -> float:
        return math.inf

    def tanh(self, t: float) -> float:
        return 1.0

    def power(self, t: float, degree: float) -> float:
        return float(np.float64(t) ** int(degree))


def scaled_rows(parts: Parts, rows: Floats) -> Floats:
    """Rows after all scalings, in their own type."""
    for scaling in parts.scalings:
        for part in in_parts(scaling.shift, rows.dtype.name):
            rows = rows - part.astype(rows.dtype)
        rows = rows / scaling.divisor.astype(rows.dtype)
        if scaling.low is not None and scaling.high is not None:
            rows = np.clip(rows, scaling.low, scaling.high)
    return rows


def _values(recipe: Recipe, vectors: Floats, x: Floats) -> Floats:
    """k of each vector and x, but for scale and constant, in their own type."""
    if recipe.inner == "dot":
        t = vectors @ x
    else:
        difference = vectors - x
        t = (difference * difference if recipe.inner == "sqdist" else np.abs(difference)).sum(axis=1)
    return np.asarray(ended(recipe.ending, recipe.numbers, t, ArrayArithmetic()))


def prepared(recipe: Recipe, rows: Floats) -> Floats:
    """Rows after the recipe's matrix, and scaled to length 1 where it says so, in their own type."""
    if recipe.factor is not None:
        rows = rows @ recipe.factor.astype(rows.dtype)
    if recipe.normalise:
        for length in (np.abs(rows).max(axis=1, initial=0.0, keepdims=True), None):
            length = np.linalg.norm(rows, axis=1, keepdims=True) if length is None else length
            rows = rows / np.where(length > 0, length, rows.dtype.type(1))
    return rows


def in_parts(shift: Floats, dtype: str) -> list[Floats]:
    """What to subtract in turn, so that a float loses nothing of a shift: the number itself, and what rounding left."""
    rest = shift - shift.astype(dtype)
    return [shift, rest] if rest.any() else [shift]
