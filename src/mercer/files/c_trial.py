"""How far a C file's outputs are from Python's, computed as the file does before it is written."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Floats
from mercer.files.c_parts import Parts
from mercer.kernels import Recipe
from mercer.kernels.matrices import dense


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
    numbers = [t.dtype.type(value) for value in recipe.numbers]
    if recipe.ending in ("gaussian", "laplacian"):
        return np.asarray(np.exp(-numbers[0] * t))
    if recipe.ending == "identity":
        return np.asarray(t)
    t = numbers[0] * t + numbers[1]
    return np.asarray(np.tanh(t) if recipe.ending == "sigmoid" else t ** int(recipe.numbers[2]))


def prepared(recipe: Recipe, rows: Floats) -> Floats:
    """Rows after the recipe's matrix, and scaled to length 1 where it says so, in their own type."""
    if recipe.factor is not None:
        rows = rows @ recipe.factor.astype(rows.dtype)
    if recipe.normalise:
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows / np.where(lengths > 0, lengths, rows.dtype.type(1))
    return rows


def in_parts(shift: Floats, dtype: str) -> list[Floats]:
    """What to subtract in turn, so that a float loses nothing of a shift: the number itself, and what rounding left."""
    rest = shift - shift.astype(dtype)
    return [shift, rest] if rest.any() else [shift]
