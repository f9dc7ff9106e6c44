"""Sites of the sources where a slip of the pen could be made, and the texts with the slip in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# An operator as it is written, and what it becomes.
_COMPARED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_COMBINED: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
_RENAMED = {
    "min": "max",
    "max": "min",
    "maximum": "minimum",
    "minimum": "maximum",
    "any": "all",
    "all": "any",
    "argmax": "argmin",
    "argmin": "argmax",
    "floor": "ceil",
    "ceil": "floor",
    "zeros": "ones",
    "ones": "zeros",
    "isnan": "isinf",
    "abs": "positive",
}
# Slips in C++: a pattern, and what it becomes.
_CPP = [
    (r" < ", " <= "),
    (r" <= ", " < "),
    (r" > ", " >= "),
    (r" >= ", " > "),
    (r" == ", " != "),
    (r" != ", " == "),
    (r" && ", " || "),
    (r" \|\| ", " && "),
    (r" \+ ", " - "),
    (r" - ", " + "),
    (r" \* ", " / "),
    (r" / ", " * "),
    (r" \+= ", " -= "),
    (r" -= ", " += "),
    (r"std::max\b", "std::min"),
    (r"std::min\b", "std::max"),
    (r"\b0\.5\b", "1.0"),
    (r"\b2\.0\b", "1.0"),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
]


@dataclass(frozen=True)
class Site:
    """One slip: the text of `file` from `start` to `end` becomes `new`, in the function of line `function`."""

    file: str
    line: int
    start: int
    end: int
    new: str
    function: int

    def applied(self, text: str) -> str:
        """Return the file's text with the slip in it."""
        return text[: self.start] + self.new + text[self.end :]

    def shown(self, text: str) -> str:
        """Return the line of the slip as it was and as it is."""
        before, after = text.splitlines(), self.applied(text).splitlines()
        return f"{self.file}:{self.line}\n    - {before[self.line - 1].strip()}\n    + {after[self.line - 1].strip()}"


def python_sites(path: Path, root: Path) -> list[Site]:
    """Return every site of a Python module that lies in a function."""
    text = path.read_text()
    found = _Finder(text, path.relative_to(root).as_posix())
    found.visit(ast.parse(text))
    return found.sites


def cpp_sites(path: Path, root: Path) -> list[Site]:
    """Return every site of a C++ file outside of comments, directives and declarations of templates."""
    text, file, sites, offset = path.read_text(), path.relative_to(root).as_posix(), list[Site](), 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        code = line.split("//")[0]
        if code.strip() and not code.lstrip().startswith(("#", "template", "static_assert", "using", "typedef", "*")):
            for pattern, new in _CPP:
                sites += [
                    Site(file, number, offset + found.start(), offset + found.end(), new, 0)
                    for found in re.finditer(pattern, code)
                ]
        offset += len(line)
    return sites


class _Finder(ast.NodeVisitor):
    """Collects sites; annotations, decorators, texts and what only an error message needs are left out."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file, self.sites, self.function = text, file, list[Site](), 0
        lines = text.splitlines(keepends=True)
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line))
        self.lines = lines

    def place(self, line: int, column: int) -> int:
        """Turn a line and a column in bytes into a place in the text."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.place(node.lineno, node.col_offset), self.place(node.end_lineno, node.end_col_offset)

    def source(self, node: ast.expr) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def add(self, node: ast.expr | ast.stmt, new: str, start: int | None = None, end: int | None = None) -> None:
        if self.function:
            first, last = self.span(node)
            start, end = first if start is None else start, last if end is None else end
            line = self.text.count("\n", 0, start) + 1
            self.sites.append(Site(self.file, line, start, end, new, self.function))

    def between(self, left: ast.expr, right: ast.expr, old: str, new: str, node: ast.expr) -> None:
        """Replace the operator that stands between two operands."""
        start, end = self.span(left)[1], self.span(right)[0]
        at = self.text.find(old, start, end)
        if at >= 0:
            self.add(node, new, at, at + len(old))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outer, self.function = self.function, min([node.lineno, *(one.lineno for one in node.decorator_list)])
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        for statement in node.body:
            self.visit(statement)
        self.function = outer

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None: ...

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None: ...

    def visit_Assert(self, node: ast.Assert) -> None: ...

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node.value, ast.Call):
            self.add(node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.add(node, "pass")
        self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self.add(node.test, f"not ({self.source(node.test)})")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.add(node.test, f"not ({self.source(node.test)})")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            self.between(left, right, *_COMPARED[type(operator)], node)
            left = right
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        self.between(node.values[0], node.values[1], old, new, node)
        self.add(node, f"({self.source(node.values[0])})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self.add(node, f"({self.source(node.operand)})")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = (node.left, node.right)
        if not any(isinstance(one, ast.JoinedStr) or _is_text(one) for one in texts):
            if type(node.op) in _COMBINED:
                self.between(node.left, node.right, *_COMBINED[type(node.op)], node)
            if isinstance(node.op, ast.Add | ast.Sub | ast.Mult):  # a term is forgotten
                self.add(node, f"({self.source(node.left)})")
                self.add(node, f"({self.source(node.right)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self.add(node, str(not value))
        elif isinstance(value, int):
            self.add(node, str(value + 1))
        elif isinstance(value, float):
            self.add(node, repr(2 * value if value else 1.0))

    def visit_Call(self, node: ast.Call) -> None:
        in_module = isinstance(node.func, ast.Attribute)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _RENAMED:
            end = self.span(node.func)[1]
            self.add(node, _RENAMED[name] if in_module or name != "abs" else "float", end - len(name), end)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        if not (isinstance(node.value, ast.Name) and node.value.id[:1].isupper()):  # a type
            self.visit(node.slice)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def all_sites(root: Path, words: list[str], language: str) -> Iterator[Site]:
    """Yield every site of the sources whose path holds one of the words, or of all."""
    pattern, find = (
        ("src/mercer/**/*.py", python_sites) if language == "python" else ("src/core/**/*.[ch]pp", cpp_sites)
    )
    for path in sorted(root.glob(pattern)):
        relative = path.relative_to(root).as_posix()
        if "src/core/bind/" not in relative and (not words or any(word in relative for word in words)):
            yield from find(path, root)
