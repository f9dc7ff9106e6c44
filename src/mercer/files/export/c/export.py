"""A machine as one C99 file that predicts as Python does, without heap and without libraries beyond
<math.h>.

The file has constant tables and two functions, NAME_decision and NAME_predict. Sums over vectors are compensated
(Kahan), so that float32 loses what kernel values lose, and no more.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

import mercer
from mercer.files.atomic_write import replacing
from mercer.files.export.c.text import floats, function, in_comment, in_order, integers, number, prediction, prototypes
from mercer.files.export.parts import LARGEST_DIFFERENCE, Parts, checked_name, in_parts, prepared_rows
from mercer.kernels.recipe import Recipe, ended
from mercer.samples.arrays import Floats, is_sparse
from mercer.samples.matrices import dense

# The largest degree of a polynomial, which a C file writes as a product.
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

    ``NAME_decision(x, f)`` computes the machine's outputs (f of two classes or of a novelty detector, a value for each
    pair of classes or each class, the numbers of a regression), and ``NAME_predict(x)`` returns the label: an integer,
    a string, or ±1 for novelty; the number of a regression with one output. The file uses no heap. Its only library is
    <math.h>, for exp, tanh and sqrt where the kernel needs them.

    Parameters
    ----------
    model : estimator
        Fitted; a kernel or linear machine of mercer's, also after `compress`, or a Pipeline of StandardScaler and
        MinMaxScaler and one, which become part of the file. The kernels are those that the core computes: linear,
        polynomial, Gaussian, Laplacian, sigmoid, cosine, and multiples of one of them.
    path : str or path-like, optional
        The file to write; without one, only the text is returned.
    dtype : {"float32", "float64"}, default="float32"
        What rows are, and what is computed with: float or double.
    name : str, default="model"
        What the names in the file begin with.
    X : array of shape (n_samples, n_features), optional
        Rows like those to come, such as the training samples. The file's arithmetic is tried at some of them instead of
        the machine's own vectors.

    Returns
    -------
    str
        The file's text.

    Raises
    ------
    TypeError
        For a model or kernel that cannot be written this way; the message names it.
    ValueError
        Where 32 bits are too few for the model: its outputs at some of its own vectors, or of X, would be off by more
        than a hundredth of the largest. The file's first lines say by how much they are.

    Notes
    -----
    A float32 file says how large entries of rows may be: beyond, numbers overflow float on the way (a polynomial of
    degree 7 at entries of 10⁶), and labels may not be Python's.

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
    name, parts = checked_name(name), Parts.of(model, X)
    if parts.recipe.ending == "polynomial" and (parts.recipe.numbers[2] % 1 or parts.recipe.numbers[2] > _MOST_FACTORS):
        raise TypeError(
            f"a C file cannot compute the kernel of {parts.told}: its degree is no whole number up to {_MOST_FACTORS}"
        )
    body, (rows, found) = _float_body(parts, name, dtype), _float_outputs(parts, dtype)
    off = parts.difference(rows, found)
    if not off <= LARGEST_DIFFERENCE:
        raise ValueError(
            f"a C file of dtype={dtype!r} is too coarse for this model: at its own vectors, or at rows mixed from "
            f"them, the outputs would be off by {off:.2g} of the largest; standardise the features before training, "
            "or export with dtype='float64'"
        )
    text = "\n".join([*_head(parts, dtype, off), *body, ""])
    if path is not None:
        with replacing(path) as file:
            file.write(text.encode("ascii"))
    return text


def _head(parts: Parts, dtype: str, off: float) -> list[str]:
    n = len(parts.examples) + len(parts.around)
    tried = f"   Outputs differed from Python's by at most {off:.1e} of the largest at {n} rows tried." if n else ""
    end = _largest_entry(parts) if dtype == "float32" else None
    ends = f"   Entries of rows may be up to {end or 0:g} in size; beyond, float overflows and labels may be others."
    return [
        f"/* {in_comment(parts.told)}; {parts.n_features} features.",
        *[tried] * bool(tried),
        *[ends] * (end is not None),
        f"   Written by mercer {in_comment(mercer.__version__)}: C99, {dtype}, no heap, no library but math.h. */",
    ]


def _float_body(parts: Parts, name: str, dtype: str) -> list[str]:
    real, tail = ("double", "") if dtype == "float64" else ("float", "f")
    recipe = parts.recipe
    lines = ["", "#include <math.h>", "", *prototypes(parts, name, real), ""]
    for k, scaling in enumerate(parts.scalings):
        for place, part in zip(("", "_rest"), in_parts(scaling.shift, dtype), strict=False):
            lines += floats(f"{name}_shift{k}{place}", part, dtype)
        lines += floats(f"{name}_divisor{k}", scaling.divisor, dtype)
    if recipe.factor is not None:
        lines += floats(f"{name}_factor", recipe.factor, dtype)
    lines += floats(f"{name}_vectors", prepared_rows(recipe, parts.vectors), dtype)
    table = parts.table
    sparse = is_sparse(table) and 2 * table.nnz < table.shape[0] * table.shape[1]
    if sparse:
        table = table.tocsr()
        lines += integers("long", f"{name}_starts", table.indptr) + integers("int", f"{name}_outputs", table.indices)
    lines += floats(f"{name}_coefficients", table.data if sparse else dense(table), dtype)
    lines += floats(f"{name}_b", parts.offset, dtype)
    lines += ["", *_kernel(recipe, name, real, tail, dtype, parts.width), ""]
    body = [*_row(parts, name, real, tail, dtype), *_sums(parts, name, real, sparse)]
    if parts.ball:  # R² − ‖φ(x) − a‖² = 2f − k(x, x)
        scale, constant = number(recipe.scale, dtype), number(recipe.constant, dtype)
        body.append(f"f[0] = 2 * f[0] - ({scale} * {name}_kernel(x, x) + {constant});")
    if parts.rank is not None:
        body += in_order(parts.rank, real)
    lines += function(f"void {name}_decision(const {real} *x, {real} *f)", body)
    return [*lines, *prediction(parts, name, real, f"fabs{tail}")]


def _kernel(recipe: Recipe, name: str, real: str, tail: str, dtype: str, width: int) -> list[str]:
    """k of two rows that were prepared, but for scale and constant, which are in the coefficients and in b."""
    term = {"dot": "x[j] * z[j]", "sqdist": "(x[j] - z[j]) * (x[j] - z[j])", "l1": f"fabs{tail}(x[j] - z[j])"}
    lines = [f"{real} t = 0;", "int j;", f"for (j = 0; j < {width}; j++) t += {term[recipe.inner]};"]
    value = ended(recipe.ending, recipe.numbers, "t", _Expressions(dtype, tail, lines))
    return function(f"static {real} {name}_kernel(const {real} *x, const {real} *z)", [*lines, f"return {value};"])


@dataclass(frozen=True)
class _Expressions:
    """Arithmetic with expressions of C; `lines` are statements before the one that they stand in."""

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


def _row(parts: Parts, name: str, real: str, tail: str, dtype: str) -> list[str]:
    """Lines that turn x into a row as the vectors are."""
    recipe, d = parts.recipe, parts.n_features
    unit = f"{real} v[{parts.width}];" if recipe.factor is not None or recipe.normalise else ""
    lines = [f"{real} s[{d}];"] * bool(parts.scalings) + [unit] * bool(unit)
    lines += [f"{real} c[{len(parts.b)}];", "int i, o;"]
    loop = f"for (i = 0; i < {d}; i++) "
    for k, scaling in enumerate(parts.scalings):
        rest = f" - {name}_shift{k}_rest[i]" * (len(in_parts(scaling.shift, dtype)) > 1)
        lines.append(f"{loop}s[i] = (x[i] - {name}_shift{k}[i]{rest}) / {name}_divisor{k}[i];")
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
        # First by the largest entry, so that no square overflows or underflows.
        lines += ["c[0] = 0;", f"{loop}if (fabs{tail}(x[i]) > c[0]) c[0] = fabs{tail}(x[i]);"]
        lines += [f"{loop}v[i] = c[0] > 0 ? x[i] / c[0] : 0;", "c[0] = 0;", f"{loop}c[0] += v[i] * v[i];"]
        lines += [f"c[0] = c[0] > 0 ? sqrt{tail}(c[0]) : 1;", f"{loop}v[i] = v[i] / c[0];", "x = v;"]
    return lines


def _sums(parts: Parts, name: str, real: str, sparse: bool) -> list[str]:
    """f[o] = Σ_i coefficient_io k(vector_i, x) + b_o, with c[o] what the sum has lost so far."""
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


# --- how far the outputs are from Python's, computed as the file does before it is written ----------------------------

# Half of the largest float: sums are rounded.
_HALF_LARGEST = 0.5 * float(np.finfo(np.float32).max)


def _float_outputs(parts: Parts, dtype: str) -> tuple[Floats, Floats]:
    """The rows to try as float or double, and the outputs that a file of this type computes of them."""
    if not len(parts.examples):
        return parts.examples, parts.outputs(parts.examples, np.float64)
    rows = parts.rows_to_try(dtype, f"a C file of dtype={dtype!r}").astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return rows, parts.outputs(rows, np.dtype(dtype).type)


def _largest_entry(parts: Parts) -> float | None:
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
    vectors = np.abs(prepared_rows(recipe, parts.vectors))
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
