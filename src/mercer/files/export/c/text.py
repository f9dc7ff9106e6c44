"""C source text: arrays of constants that read back as the same numbers, and prediction from outputs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mercer.files.export.parts import Parts, is_text


def number(value: float, dtype: str) -> str:
    """Return a constant of type float or double: the shortest text that reads back as the same number."""
    if dtype == "float64":
        return repr(float(value))
    with np.errstate(over="ignore"):
        rounded_value = np.float32(value)
    if not np.isfinite(rounded_value):
        raise ValueError(
            f"a C file of dtype='float32' cannot hold {value:g}, which exceeds float32; export with dtype='float64', "
            "or scale the features"
        )
    return f"{rounded_value!s}f"


def floats(name: str, values: Any, dtype: str) -> list[str]:
    """Return the lines of a C array of constants; every row of a matrix begins a new line."""
    array = np.asarray(values, dtype=np.float64)
    kind = "double" if dtype == "float64" else "float"
    return _table(kind, name, array, [number(value, dtype) for value in array.ravel().tolist()])


def integers(kind: str, name: str, values: Any) -> list[str]:
    """Return the lines of a C array of integers."""
    array = np.asarray(values)
    return _table(kind, name, array, [str(value) for value in array.ravel().tolist()])


def _table(kind: str, name: str, array: np.ndarray, constants: list[str]) -> list[str]:
    """Return the lines of a C array with the shape of `array`."""
    sizes = "".join(f"[{size}]" for size in array.shape)
    if array.ndim == 1:
        return [f"static const {kind} {name}{sizes} = {{", *block(constants), "};"]
    width = array.shape[1]
    lines = [f"static const {kind} {name}{sizes} = {{"]
    for row in range(array.shape[0]):
        row_lines = block(constants[row * width : (row + 1) * width], "   ")
        row_lines[0] = f"  {{{row_lines[0].strip()}"
        row_lines[-1] = f"{row_lines[-1].removesuffix(',')}}},"
        lines += row_lines
    return [*lines, "};"]


def block(constants: Iterable[str], indent: str = "  ") -> list[str]:
    """Join constants by commas in lines of at most 118 characters."""
    lines, line = [], indent
    for constant in constants:
        if len(line) + len(constant) + 2 > 118 and line.strip():
            lines.append(line.rstrip())
            line = indent
        line += f"{constant}, "
    return [*lines, line.rstrip()]


def function(head: str, body: list[str]) -> list[str]:
    """Return the lines of a function."""
    return [head, "{", *(f"  {line}" for line in body), "}", ""]


def in_comment(text: str) -> str:
    """Return the text in ASCII, such that it cannot end a comment."""
    ascii_text = text.encode("ascii", "backslashreplace").decode()
    return " ".join(ascii_text.replace("\\", "/").replace("*/", "* /").replace("/*", "/ *").split())


def string_literal(text: str) -> str:
    """Return a C string literal of the text in UTF-8."""
    out = []
    for byte in text.encode("utf-8"):
        character = chr(byte)
        is_printable = 32 <= byte < 127 and character not in '"\\?'
        out.append(character if is_printable else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def prototypes(parts: Parts, name: str, real: str) -> list[str]:
    """Return the constants and prototypes for callers."""
    lines = [f"#define {name.upper()}_FEATURES {parts.n_features}", f"#define {name.upper()}_OUTPUTS {len(parts.b)}"]
    lines.append(f"void {name}_decision(const {real} *x, {real} *f);")
    head = _predict_head(parts, name, real)
    return [*lines, f"{head};"] if head else lines


def _predict_head(parts: Parts, name: str, real: str) -> str:
    """Return the head of NAME_predict; "" for a regression with several outputs, which has no such function."""
    if parts.labels is None:
        return f"{real} {name}_predict(const {real} *x)" if len(parts.b) == 1 else ""
    kind, _ = _labels(parts.labels)
    return f"{kind}{'' if kind.endswith('*') else ' '}{name}_predict(const {real} *x)"


def _labels(labels: Any) -> tuple[str, list[str]]:
    """Return the C type of the labels, and the labels as constants."""
    array = np.asarray(labels)
    kind, label_list = array.dtype.kind, array.tolist()
    if is_text(array):
        if any("\0" in text for text in label_list):
            raise TypeError("a class label contains a zero character, which would end a C string")
        return "const char *", [string_literal(text) for text in label_list]
    if kind == "f":
        return "double", [repr(label) for label in label_list]
    if kind not in "biu":
        raise TypeError(
            f"class labels in a C file must be text, 64-bit integers or double, not {label_list!r:.80} (dtype "
            f"{array.dtype}); rename the classes"
        )
    if any(label == -(2**63) for label in label_list):
        raise TypeError(f"the label {-(2**63)} has no constant in C; rename the class")
    types = {2**31: ("int", ""), 2**63: ("long long", "LL"), 2**64: ("unsigned long long", "ULL")}
    largest = max(abs(int(label)) for label in label_list)
    name, suffix = next(entry for limit, entry in types.items() if largest < limit)
    return name, [f"{int(label)}{suffix}" for label in label_list]


def prediction(parts: Parts, name: str, real: str, fabs_name: str) -> list[str]:
    """Return the array of labels and the function NAME_predict; no lines for a regression with several outputs."""
    head = _predict_head(parts, name, real)
    if not head:
        return []
    body = [f"{real} f[{len(parts.b)}];", *_prediction_lines(parts, name, real, fabs_name)]
    if parts.labels is None:
        return function(head, body)
    kind, constants = _labels(parts.labels)
    star = "const char *const " if kind.endswith("*") else f"const {kind} "
    table = [f"static {star}{name}_labels[{len(constants)}] = {{", *block(constants), "};", ""]
    return [*table, *function(head, [*body, f"return {name}_labels[best];"])]


def _prediction_lines(parts: Parts, name: str, real: str, fabs_name: str) -> list[str]:
    """Return the C statements that compute f, and then set `best` to the index of the label or return the number."""
    decide, k = f"{name}_decision(x, f);", 0 if parts.labels is None else len(parts.labels)
    if parts.decides == "values":
        return [decide, "return f[0];"]
    if parts.decides == "sign":
        return ["int best;", decide, "best = f[0] >= 0;"]
    largest = ["best = 0;", f"for (i = 1; i < {k}; i++)", "  if ({0}[i] > {0}[best]) best = i;"]
    if parts.decides == "largest":
        return ["int best, i;", decide, *(line.format("f") for line in largest)]
    count = [
        f"for (i = 0; i < {k}; i++) votes[i] = 0;",
        f"for (i = 0, p = 0; i < {k}; i++)",
        f"  for (j = i + 1; j < {k}; j++, p++) votes[f[p] > 0 ? i : j]++;",
    ]
    if parts.decides == "votes":
        return ["int best, i, j, p;", f"int votes[{k}];", decide, *count, *(line.format("votes") for line in largest)]
    return [
        "int best, i, j, p;",
        f"int votes[{k}];",
        f"{real} score[{k}];",
        decide,
        *count,
        f"for (i = 0; i < {k}; i++) score[i] = 0;",
        f"for (i = 0, p = 0; i < {k}; i++)",
        f"  for (j = i + 1; j < {k}; j++, p++) {{",
        "    score[i] += f[p];",
        "    score[j] -= f[p];",
        "  }",
        f"for (i = 0; i < {k}; i++) score[i] = ({real})votes[i] + score[i] / (3 * ({fabs_name}(score[i]) + 1));",
        *(line.format("score") for line in largest),
    ]


def sort_lines(rank: Any, real: str) -> list[str]:
    """Return lines that sort the outputs of quantiles, so that they do not cross."""
    n = len(rank)
    ranks = ", ".join(str(int(position)) for position in rank)
    return [
        f"for (i = 1; i < {n}; i++) {{",
        f"  const {real} value = f[i];",
        "  for (o = i; o > 0 && f[o - 1] > value; o--) f[o] = f[o - 1];",
        "  f[o] = value;",
        "}",
        f"for (i = 0; i < {n}; i++) c[i] = f[i];",
        "{",
        f"  static const int rank[{n}] = {{{ranks}}};",
        f"  for (i = 0; i < {n}; i++) f[i] = c[rank[i]];",
        "}",
    ]
