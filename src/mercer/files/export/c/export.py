"""C export: a machine as one C99 file that predicts as Python does, without heap and with <math.h> as only library.

The file has constant arrays and two functions, NAME_decision and NAME_predict. Sums over vectors are compensated
(Kahan), so that in float32 only the rounding of kernel values matters.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

import mercer
from mercer.files.atomic_write import replacing
from mercer.files.export.c.text import (
    floats,
    function,
    in_comment,
    integers,
    number,
    prediction,
    prototypes,
    sort_lines,
)
from mercer.files.export.parts import LARGEST_DIFFERENCE, Parts, check_c_name, prepared_rows, shift_parts
from mercer.kernels.recipe import Recipe, apply_ending
from mercer.samples.arrays import Floats, is_sparse
from mercer.samples.matrices import dense

# Largest degree of a polynomial kernel, which a C file writes as a product.
_MOST_FACTORS = 100
DTYPES = ("float32", "float64")


def export_c(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    dtype: str = "float32",
    name: str = "model",
    X: Any = None,
) -> str:
    """Write a fitted machine as one C99 file that predicts as Python does.

    ``NAME_decision(x, f)`` computes the machine's outputs (f for two classes or novelty detection, a value for each
    pair of classes or each class, the numbers of a regression), and ``NAME_predict(x)`` returns the label: an integer,
    a string, or ±1 for novelty; for a regression with one output, the number. The file uses no heap. Its only library
    is <math.h>, for exp, tanh and sqrt if the kernel needs them.

    Parameters
    ----------
    model : estimator
        Fitted kernel or linear machine of mercer, also after `compress`, or a Pipeline of StandardScaler and
        MinMaxScaler before one, which become part of the file. The kernel must be linear, polynomial, Gaussian,
        Laplacian, sigmoid or cosine, or a multiple of one of these.
    path : str or path-like, optional
        File to write; without it, only the text is returned.
    dtype : {"float32", "float64"}, default="float32"
        Type of rows and arithmetic: float or double.
    name : str, default="model"
        Prefix of all names in the file.
    X : array of shape (n_samples, n_features), optional
        Typical rows, such as the training samples. The file's arithmetic is tested at some of them instead of the
        machine's own vectors.

    Returns
    -------
    str
        Text of the file.

    Raises
    ------
    TypeError
        If the model or kernel cannot be written this way; the message names it.
    ValueError
        If float32 is too coarse for the model: its outputs at some of its own vectors, or of X, would be off by more
        than a hundredth of the largest. The file's first lines state the difference.

    Notes
    -----
    A float32 file states how large the entries of rows may be: with larger ones, intermediate numbers overflow (such as
    a polynomial of degree 7 at entries of 10⁶), and labels may differ from Python's.

    Examples
    --------
    >>> import mercer
    >>> from mercer.files.export.c.export import export_c
    >>> model = mercer.SVC(kernel="linear").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> text = export_c(model, name="step")
    >>> "int step_predict(const float *x)" in text
    True
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype={dtype!r} must be one of {', '.join(map(repr, DTYPES))}")
    name, parts = check_c_name(name), Parts.of(model, X)
    if parts.recipe.ending == "polynomial" and (parts.recipe.numbers[2] % 1 or parts.recipe.numbers[2] > _MOST_FACTORS):
        raise TypeError(
            f"a C file cannot compute the kernel of {parts.description}: its degree is not an integer up to "
            f"{_MOST_FACTORS}"
        )
    body, (rows, outputs) = _float_body(parts, name, dtype), _float_outputs(parts, dtype)
    difference = parts.difference(rows, outputs)
    if not difference <= LARGEST_DIFFERENCE:
        raise ValueError(
            f"a C file of dtype={dtype!r} is too coarse for this model: at its own vectors, or at rows mixed from "
            f"them, the outputs would be off by {difference:.2g} of the largest; standardise the features before "
            "training, or export with dtype='float64'"
        )
    text = "\n".join([*_head_comment(parts, dtype, difference), *body, ""])
    if path is not None:
        with replacing(path) as file:
            file.write(text.encode("ascii"))
    return text


def _head_comment(parts: Parts, dtype: str, difference: float) -> list[str]:
    """Return the comment at the beginning of the file."""
    n = len(parts.examples) + len(parts.mixed_examples)
    accuracy = f"   Outputs differed from Python's by at most {difference:.1e} of the largest at {n} rows tried."
    largest = _largest_entry(parts) if dtype == "float32" else None
    range_text = (
        f"   Entries of rows may be up to {largest or 0:g} in size; larger ones overflow, and labels may be wrong."
    )
    return [
        f"/* {in_comment(parts.description)}; {parts.n_features} features.",
        *[accuracy] * (n > 0),
        *[range_text] * (largest is not None),
        f"   Written by mercer {in_comment(mercer.__version__)}: C99, {dtype}, no heap, no library except math.h. */",
    ]


def _float_body(parts: Parts, name: str, dtype: str) -> list[str]:
    """Return the arrays and functions of the file."""
    real, tail = ("double", "") if dtype == "float64" else ("float", "f")
    recipe = parts.recipe
    lines = ["", "#include <math.h>", "", *prototypes(parts, name, real), ""]
    for k, scaling in enumerate(parts.scalings):
        for suffix, part in zip(("", "_rest"), shift_parts(scaling.shift, dtype), strict=False):
            lines += floats(f"{name}_shift{k}{suffix}", part, dtype)
        lines += floats(f"{name}_divisor{k}", scaling.divisor, dtype)
    if recipe.factor is not None:
        lines += floats(f"{name}_factor", recipe.factor, dtype)
    lines += floats(f"{name}_vectors", prepared_rows(recipe, parts.vectors), dtype)
    table = parts.table
    is_sparse_table = is_sparse(table) and 2 * table.nnz < table.shape[0] * table.shape[1]
    if is_sparse_table:
        table = table.tocsr()
        lines += integers("long", f"{name}_starts", table.indptr) + integers("int", f"{name}_outputs", table.indices)
    lines += floats(f"{name}_coefficients", table.data if is_sparse_table else dense(table), dtype)
    lines += floats(f"{name}_b", parts.offset, dtype)
    lines += ["", *_kernel_lines(recipe, name, real, tail, dtype, parts.width), ""]
    body = [*_prepare_row_lines(parts, name, real, tail, dtype), *_sum_lines(parts, name, real, is_sparse_table)]
    if parts.ball:  # R² − ‖φ(x) − a‖² = 2f − k(x, x)
        scale, constant = number(recipe.scale, dtype), number(recipe.constant, dtype)
        body.append(f"f[0] = 2 * f[0] - ({scale} * {name}_kernel(x, x) + {constant});")
    if parts.rank is not None:
        body += sort_lines(parts.rank, real)
    lines += function(f"void {name}_decision(const {real} *x, {real} *f)", body)
    return [*lines, *prediction(parts, name, real, f"fabs{tail}")]


def _kernel_lines(recipe: Recipe, name: str, real: str, tail: str, dtype: str, width: int) -> list[str]:
    """Return the function for k of two prepared rows, without scale and constant, which are in coefficients and b."""
    term = {"dot": "x[j] * z[j]", "sqdist": "(x[j] - z[j]) * (x[j] - z[j])", "l1": f"fabs{tail}(x[j] - z[j])"}
    lines = [f"{real} t = 0;", "int j;", f"for (j = 0; j < {width}; j++) t += {term[recipe.inner]};"]
    value = apply_ending(recipe.ending, recipe.numbers, "t", _Expressions(dtype, tail, lines))
    return function(f"static {real} {name}_kernel(const {real} *x, const {real} *z)", [*lines, f"return {value};"])


@dataclass(frozen=True)
class _Expressions:
    """Arithmetic on C expressions, for `apply_ending`; `lines` are statements that precede the expression."""

    dtype: str
    tail: str
    lines: list[str]

    def times(self, t: str, factor: float) -> str:
        return f"{number(factor, self.dtype)} * {t}"

    def plus(self, t: str, added: float) -> str:
        return f"{t} + {number(added, self.dtype)}"

    def exp(self, t: str) -> str:
        return f"exp{self.tail}({t})"

    def tanh(self, t: str) -> str:
        return f"tanh{self.tail}({t})"

    def power(self, t: str, degree: float) -> str:
        self.lines.append(f"t = {t};")
        return " * ".join(["t"] * int(degree)) or "1"


def _prepare_row_lines(parts: Parts, name: str, real: str, tail: str, dtype: str) -> list[str]:
    """Return lines that scale x, and multiply and normalise it as the vectors were."""
    recipe, d = parts.recipe, parts.n_features
    unit = f"{real} v[{parts.width}];" if recipe.factor is not None or recipe.normalise else ""
    lines = [f"{real} s[{d}];"] * bool(parts.scalings) + [unit] * bool(unit)
    lines += [f"{real} c[{len(parts.b)}];", "int i, o;"]
    loop = f"for (i = 0; i < {d}; i++) "
    for k, scaling in enumerate(parts.scalings):
        minus_rest = f" - {name}_shift{k}_rest[i]" * (len(shift_parts(scaling.shift, dtype)) > 1)
        lines.append(f"{loop}s[i] = (x[i] - {name}_shift{k}[i]{minus_rest}) / {name}_divisor{k}[i];")
        if scaling.low is not None and scaling.high is not None:
            low, high = number(scaling.low, dtype), number(scaling.high, dtype)
            lines.append(f"{loop}s[i] = s[i] < {low} ? {low} : s[i] > {high} ? {high} : s[i];")
        lines.append("x = s;")
    if recipe.factor is not None:
        lines += [
            f"for (o = 0; o < {parts.width}; o++) {{",
            "  v[o] = 0;",
            f"  {loop}v[o] += x[i] * {name}_factor[i][o];",
            "}",
            "x = v;",
        ]
    if recipe.normalise:
        loop = f"for (i = 0; i < {parts.width}; i++) "
        # Divide by the largest entry first, so that no square overflows or underflows.
        lines += ["c[0] = 0;", f"{loop}if (fabs{tail}(x[i]) > c[0]) c[0] = fabs{tail}(x[i]);"]
        lines += [f"{loop}v[i] = c[0] > 0 ? x[i] / c[0] : 0;", "c[0] = 0;", f"{loop}c[0] += v[i] * v[i];"]
        lines += [f"c[0] = c[0] > 0 ? sqrt{tail}(c[0]) : 1;", f"{loop}v[i] = v[i] / c[0];", "x = v;"]
    return lines


def _sum_lines(parts: Parts, name: str, real: str, sparse: bool) -> list[str]:
    """Return lines for f[o] = Σ_i coefficient_io k(vector_i, x) + b_o; c[o] is the compensation of Kahan's sum."""
    outputs, n = len(parts.b), len(parts.vectors)
    lines = [f"for (o = 0; o < {outputs}; o++) {{", f"  f[o] = {name}_b[o];", "  c[o] = 0;", "}"]
    entry, term = f"{name}_coefficients[i][o]", f"for (o = 0; o < {outputs}; o++) {{"
    if sparse:
        entry, term = f"{name}_coefficients[e]", f"for (e = {name}_starts[i]; e < {name}_starts[i + 1]; e++) {{"
    return [
        *lines,
        f"for (i = 0; i < {n}; i++) {{",
        f"  const {real} k = {name}_kernel(x, {name}_vectors[i]);",
        *["  long e;"] * sparse,
        f"  {term}",
        f"    {real} term, sum;",
        *[f"    o = {name}_outputs[e];"] * sparse,
        f"    term = {entry} * k - c[o];",
        "    sum = f[o] + term;",
        "    c[o] = (sum - f[o]) - term;",
        "    f[o] = sum;",
        "  }",
        "}",
    ]


# --- accuracy, computed with the file's arithmetic before it is written ----------------------------------------------

# Half of the largest float, since sums are rounded.
_HALF_LARGEST = 0.5 * float(np.finfo(np.float32).max)


def _float_outputs(parts: Parts, dtype: str) -> tuple[Floats, Floats]:
    """Return the test rows in this type, and the outputs that the file computes for them."""
    if not len(parts.examples):
        return parts.examples, parts.outputs(parts.examples, np.float64)
    rows = parts.rows_to_try(dtype, f"a C file of dtype={dtype!r}").astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return rows, parts.outputs(rows, np.dtype(dtype).type)


def _largest_entry(parts: Parts) -> float | None:
    """Return the largest entry of rows for which no number of a float32 file overflows; None if every float is allowed.

    Distances may overflow: the kernel of an infinite distance is 0, like that of a very large one.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        for power in range(38, -46, -1):
            for entry in (3.0 * 10.0**power, 10.0**power):
                if _largest_number(parts, entry) <= _HALF_LARGEST:
                    return entry if power < 38 else None
    return 0.0


def _largest_number(parts: Parts, entry: float) -> float:
    """Return an upper bound on all intermediate numbers for a row with entries up to this size."""
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
    vectors = np.abs(prepared_rows(recipe, parts.vectors))
    if parts.ball:
        vectors = np.vstack([vectors, row])
    t = float((vectors @ row).max(initial=0.0))
    numbers += [row.max(initial=0.0), t]
    t = apply_ending(recipe.ending, recipe.numbers, t, _UpperBounds(numbers))
    outputs = np.abs(dense(parts.table)).sum(axis=0) * t + np.abs(parts.offset)
    diagonal = abs(recipe.scale) * t + abs(recipe.constant) if parts.ball else 0.0
    return float(np.nan_to_num(np.max([*numbers, t, 2 * outputs.max() + diagonal]), nan=np.inf))


@dataclass(frozen=True)
class _UpperBounds:
    """Arithmetic on upper bounds of absolute values, for `apply_ending`; `bounds` collects those of sums."""

    bounds: list[Any]

    def times(self, t: float, factor: float) -> float:
        return t * abs(factor)

    def plus(self, t: float, number: float) -> float:
        self.bounds.append(t + abs(number))
        return t + abs(number)

    def exp(self, t: float) -> float:
        return math.inf

    def tanh(self, t: float) -> float:
        return 1.0

    def power(self, t: float, degree: float) -> float:
        return float(np.float64(t) ** int(degree))
