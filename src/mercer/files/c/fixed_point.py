"""A machine in fixed point, for processors without floating point: C99 without any library.

Every number v is an integer near v·2^bits, with bits of its own for rows, vectors, coefficients and outputs. A Gaussian
or Laplacian is

    exp(−γt) = 2^(−n) 2^(−i/256) 2^(−r),   γt/ln 2 = n + i/256 + r:  a shift, a table, and three terms of a series.

Rows and vectors have 23 bits beside their sign, so that squares of differences of up to 2¹⁵ features fit into 64 bits.
Rows beyond the range, which is four times that of the machine's vectors or of the rows it is told of, are taken as its
end; under a linear kernel that is told of none it is at least ±256 after scaling.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mercer.arrays import Floats
from mercer.files.c.text import function, in_order, integers, prediction, prototypes
from mercer.files.exported_parts import Parts, before, scaled_rows
from mercer.kernels.matrices import dense

# Bits of a scaled row and of a vector, without the sign, and how many times the largest entry of a vector a row may be.
_ROW_BITS, _ROOM, _MOST_FEATURES = 23, 4.0, 1 << 15
# Bits of a kernel value, of a coefficient, of a row before it is scaled, of an output, of a factor.
_BITS = 30
# Bits after the point of an exponent of 2, of its place in the table, and an exponent whose value is zero.
_EXPONENT_BITS, _TABLE_BITS, _ZERO_EXPONENT = 24, 8, 31


@dataclass(frozen=True)
class _Formats:
    """How many bits stand behind the point."""

    row: int  # as given
    room: int  # bits of a row as given, in all
    scaled: int  # as compared with vectors
    vector: int
    value: int  # a kernel value
    coefficient: int
    dot: int  # bits that an inner product loses
    product: int  # bits that a product of value and coefficient loses before it is added
    output: int


def fixed_point_body(parts: Parts, name: str) -> list[str]:
    """The file after its head."""
    _check(parts)
    table, b = dense(parts.table), parts.offset
    formats = _formats(parts, table, b)
    lines = ["", "#include <stdint.h>", "", *_words(formats, name), *prototypes(parts, name, "int32_t"), ""]
    lines += integers("int32_t", f"{name}_vectors", _whole(parts.vectors, formats.vector))
    lines += integers("int32_t", f"{name}_coefficients", _whole(table, formats.coefficient))
    total = formats.value + formats.coefficient - formats.product
    lines += integers("int64_t", f"{name}_b", _whole(b, total)) + _scaling_tables(parts, formats, name) + [""]
    lines += function(
        f"static int64_t {name}_shifted(int64_t v, int bits)",
        [
            "/* rounds down, whatever the compiler does with the sign */",
            "return v < 0 ? -((-v - 1) >> bits) - 1 : v >> bits;",
        ],
    )
    lines += _kernel(parts, formats, name)
    lines += function(f"void {name}_decision(const int32_t *x, int32_t *f)", _decision(parts, formats, name, total))
    return [*lines, *prediction(parts, name, "int32_t", "")]


def fixed_point_outputs(parts: Parts) -> tuple[Floats, Floats]:
    """The examples and mixed rows, rounded, and their outputs, with vectors, kernel values and coefficients rounded."""
    table, b = dense(parts.table), parts.offset
    formats = _formats(parts, table, b)
    given = np.rint(np.ldexp(np.vstack([parts.examples, parts.around]), formats.row))
    end = 2.0**formats.room - 1
    seen, bits = np.clip(given, -end, end), formats.row
    for scaling in parts.scalings:
        seen = (seen - np.rint(np.ldexp(scaling.shift, bits))) * np.ldexp(1.0 / scaling.divisor, formats.scaled - bits)
        if scaling.low is not None and scaling.high is not None:
            seen = np.clip(seen, scaling.low * 2.0**formats.scaled, scaling.high * 2.0**formats.scaled)
        end = 2.0**_ROW_BITS - 1
        seen, bits = np.clip(np.floor(seen), -end, end), formats.scaled
    vectors = _whole(parts.vectors, formats.vector).astype(np.float64)
    out = np.empty((len(seen), len(b)))
    for row, x in enumerate(seen):
        if parts.recipe.inner == "dot":
            t = np.ldexp(vectors @ x, -formats.vector - formats.scaled)
        else:
            difference = np.ldexp(vectors - x, -formats.scaled)
            t = (difference**2 if parts.recipe.inner == "sqdist" else np.abs(difference)).sum(axis=1)
            t = np.exp(-parts.recipe.numbers[0] * t)
        k = np.floor(np.ldexp(t, formats.value))
        out[row] = np.ldexp(k @ _whole(table, formats.coefficient), -formats.value - formats.coefficient) + b
    return np.ldexp(given, -formats.row), parts.in_order(out)


def _check(parts: Parts) -> None:
    recipe = parts.recipe
    plain = recipe.factor is None and not recipe.normalise and recipe.ending in ("identity", "gaussian", "laplacian")
    if not plain or parts.ball or parts.decides == "scores":
        raise TypeError(
            "in fixed point there are Gaussian, Laplacian and linear kernels only, and neither SVDD nor break_ties; "
            "export with dtype='float32'"
        )
    if not parts.has_rows:
        raise ValueError(
            "a linear machine keeps no samples, and fixed point must know how large rows are; give export_c(…, X=rows) "
            "some like those to come, or train in a Pipeline with StandardScaler"
        )
    if parts.n_features > _MOST_FEATURES:
        raise TypeError(f"in fixed point there are at most {_MOST_FEATURES} features, not {parts.n_features}")


def _bits_for(largest: float, room: int) -> int:
    """Bits behind the point with which numbers up to `largest` stay below 2^room."""
    return room - max(-30, math.floor(math.log2(max(largest, 1e-30))) + 1)


def _formats(parts: Parts, table: Floats, b: Floats) -> _Formats:
    largest = float(np.abs(parts.vectors).max(initial=0.0))
    seen = float(np.abs(scaled_rows(parts, parts.examples)).max(initial=0.0))
    vector = scaled = _bits_for(_ROOM * max(largest, seen), _ROW_BITS)
    end = max(0.0 if parts.told_rows else 256.0, _ROOM * seen)
    if parts.recipe.inner == "dot":  # the vectors, which may be weights, do not tell how large rows are
        vector, scaled = _bits_for(largest, _ROW_BITS), _bits_for(end, _ROW_BITS)
    row, room = scaled, _ROW_BITS
    if parts.scalings:
        given = (before(parts.scalings, parts.vectors), parts.examples)
        entry = max(float(np.abs(rows).max(initial=0.0)) for rows in given)
        row, room = _bits_for(_ROOM * entry, _BITS), _BITS
        if parts.recipe.inner == "dot":
            ends = np.full((1, parts.n_features), end)
            for scaling in parts.scalings[::-1]:
                ends = ends * np.abs(scaling.divisor) + np.abs(scaling.shift)
            row = _bits_for(max(float(ends.max()), _ROOM * entry * parts.told_rows), _BITS)
    value, lost, most = _BITS, 0, 1.0
    if parts.recipe.inner == "dot":
        lost = max(0, 2 * _ROW_BITS + math.ceil(math.log2(max(2, parts.n_features))) - _BITS)
        value, most = vector + scaled - lost, 2.0 ** (_BITS - vector - scaled + lost)
    coefficient = _bits_for(float(np.abs(table).max(initial=0.0)), _BITS)
    bound = float((np.abs(table).sum(axis=0) * most + np.abs(b)).max(initial=1e-30))
    product = max(0, value + coefficient - _bits_for(bound, 61))
    # Of classes, outputs beyond 4096 are taken as it, so that those near zero are told apart.
    usual = min(bound, 4096.0) if parts.labels is not None else bound
    output = min(_bits_for(usual, _BITS), value + coefficient - product)
    return _Formats(row, room, scaled, vector, value, coefficient, lost, product, output)


def _words(formats: _Formats, name: str) -> list[str]:
    upper, end = name.upper(), 2.0 ** (formats.room - formats.row)
    return [
        f"/* A row holds {upper}_FIXED(v) for each of its numbers v, between -{end:g} and {end:g}.",
        f"   What is in f, or predicted as a number, is 2^{formats.output} times as large as it is in Python. */",
        f"#define {upper}_FRACTION_BITS {formats.row}",
        f"#define {upper}_OUTPUT_BITS {formats.output}",
        f"#define {upper}_FIXED(v) ((int32_t)((v) * {2.0**formats.row!r} + ((v) < 0 ? -0.5 : 0.5)))",
    ]


def _whole(values: Floats, bits: int) -> np.ndarray:
    return np.rint(np.ldexp(np.asarray(values, dtype=np.float64), bits)).astype(np.int64)


def _scaling_tables(parts: Parts, formats: _Formats, name: str) -> list[str]:
    """(x − shift) · factor / 2^bits, in the format of rows first and in that of vectors then."""
    lines, bits_before = [], formats.row
    for k, scaling in enumerate(parts.scalings):
        factor = np.ldexp(1.0 / scaling.divisor, formats.scaled - bits_before)
        bits = np.clip(_BITS - 1 - np.ceil(np.log2(np.maximum(np.abs(factor), 1e-30))), 0, 62).astype(np.int64)
        shift = _whole(scaling.shift, bits_before)
        if (np.abs(shift) >= 2**31).any():
            raise TypeError("the scaler's numbers are too far apart for fixed point; export with dtype='float32'")
        lines += integers("int32_t", f"{name}_shift{k}", shift)
        lines += integers("int32_t", f"{name}_factor{k}", np.rint(np.ldexp(factor, bits)).astype(np.int64))
        lines += integers("unsigned char", f"{name}_bits{k}", bits)
        bits_before = formats.scaled
    return lines


def _kernel(parts: Parts, formats: _Formats, name: str) -> list[str]:
    recipe, head = parts.recipe, f"static int64_t {name}_kernel(const int32_t *x, const int32_t *z)"
    term = {"dot": "(int64_t)x[j] * z[j]", "sqdist": "d * d", "l1": "(d < 0 ? -d : d)"}[recipe.inner]
    body = ["int64_t t = 0;", "int j;", f"for (j = 0; j < {parts.n_features}; j++) {{"]
    body += ["  const int64_t d = (int64_t)x[j] - z[j];"] * (recipe.inner != "dot") + [f"  t += {term};", "}"]
    if recipe.inner == "dot":
        return function(head, [*body, f"return {name}_shifted(t, {formats.dot});"])
    # The exponent of 2 for one unit of t.
    rate = recipe.numbers[0] * math.log2(math.e) * 2.0 ** (-formats.scaled * (2 if recipe.inner == "sqdist" else 1))
    limit = min(2.0**62, _ZERO_EXPONENT / rate) if rate > 0 else 2.0**62
    first = max(0, math.ceil(math.log2(limit)) - 31)
    then = max(0, 29 - math.ceil(math.log2(max(rate, 2.0**-90) * 2.0 ** (_EXPONENT_BITS + first))))
    factor = round(rate * 2.0 ** (_EXPONENT_BITS + first + then)) if then <= 62 else 0
    powers = np.rint(2.0**_BITS * 2.0 ** (-np.arange(1 << _TABLE_BITS) / (1 << _TABLE_BITS))).astype(np.int64)
    left = _EXPONENT_BITS - _TABLE_BITS
    return [
        *integers("int32_t", f"{name}_powers", powers),
        "",
        *function(
            head,
            [
                *body,
                f"if (t >= INT64_C({int(limit)})) return 0;",
                f"t = ((t >> {first}) * INT64_C({factor})) >> {min(then, 62)};",
                "{",
                f"  const int whole = (int)(t >> {_EXPONENT_BITS});",
                f"  const int64_t rest = ((t & {(1 << left) - 1}) * INT64_C({round(math.log(2) * 2.0**32)})) >> "
                f"{32 + _EXPONENT_BITS - _BITS};",
                f"  const int64_t series = {1 << _BITS} - rest + ((rest * rest) >> {_BITS + 1});",
                f"  if (whole >= {_ZERO_EXPONENT}) return 0;",
                f"  return (({name}_powers[(t >> {left}) & {(1 << _TABLE_BITS) - 1}] * series) >> {_BITS}) >> whole;",
                "}",
            ],
        ),
    ]


def _decision(parts: Parts, formats: _Formats, name: str, total: int) -> list[str]:
    d, p, n, end = parts.n_features, len(parts.b), len(parts.vectors), (1 << _ROW_BITS) - 1
    lines = [f"int32_t s[{d}];", f"int64_t sums[{p}];", "int i, o;"]
    lines += [f"int32_t c[{p}];"] * (parts.rank is not None)
    clamp = f"s[i] = (int32_t)(v < -{end} ? -{end} : v > {end} ? {end} : v);"
    loop = f"for (i = 0; i < {d}; i++) {{"
    if not parts.scalings:
        lines += [loop, "  const int64_t v = x[i];", f"  {clamp}", "}"]
    for k, scaling in enumerate(parts.scalings):
        moved = f"((int64_t){'s' if k else 'x'}[i] - {name}_shift{k}[i]) * {name}_factor{k}[i]"
        lines += [loop, f"  int64_t v = {name}_shifted({moved}, {name}_bits{k}[i]);"]
        if scaling.low is not None and scaling.high is not None:
            low, high = (int(_whole(np.array([edge]), formats.scaled)[0]) for edge in (scaling.low, scaling.high))
            lines.append(f"  v = v < {low} ? {low} : v > {high} ? {high} : v;")
        lines += [f"  {clamp}", "}"]
    most = 2**31 - 1
    lines += [
        f"for (o = 0; o < {p}; o++) sums[o] = {name}_b[o];",
        f"for (i = 0; i < {n}; i++) {{",
        f"  const int64_t k = {name}_kernel(s, {name}_vectors[i]);",
        f"  for (o = 0; o < {p}; o++) sums[o] += {name}_shifted(k * {name}_coefficients[i][o], {formats.product});",
        "}",
        f"for (o = 0; o < {p}; o++) {{",
        f"  const int64_t v = {name}_shifted(sums[o], {total - formats.output});",
        f"  f[o] = (int32_t)(v < -{most} ? -{most} : v > {most} ? {most} : v);",
        "}",
    ]
    return lines if parts.rank is None else [*lines, *in_order(parts.rank, "int32_t")]
