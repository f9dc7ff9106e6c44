"""Every tuned number: constants of mercer's modules, and `constexpr` of `src/core`, which can be built so that it reads
them from the environment."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_NUMBER = re.compile(r"_?[A-Z][A-Z0-9_]*")
_ENVIRONMENT = "MERCER_CONSTANT_"


@dataclass(frozen=True)
class Number:
    """One constant: its file below the root, its line, its name, its value and the comment above or behind it."""

    file: str
    line: int
    name: str
    value: Any
    comment: str

    @property
    def key(self) -> str:
        return f"{self.file}:{self.name}"


# --- which numbers there are ----------------------------------------------------------------------------------------


def python_numbers() -> Iterator[Number]:
    """Names in capitals that modules of mercer give to numbers, or to tuples of numbers."""
    for path in sorted((ROOT / "src/mercer").rglob("*.py")):
        lines = path.read_text().splitlines()
        for node in ast.parse("\n".join(lines)).body:
            if isinstance(node, ast.Assign):
                target, value = node.targets[0], node.value
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                target, value = node.target, node.value
            else:
                continue
            for name, part in _named(target, value):
                number = _evaluated(part)
                if _NUMBER.fullmatch(name) and number is not None:
                    yield Number(
                        str(path.relative_to(ROOT)), node.lineno, name, number, _comment(lines, node.lineno, "#")
                    )


def _named(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The names of one assignment with their expressions, those of `A, B = 1, 2` one by one."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, part in zip(target.elts, value.elts, strict=True):
            yield from _named(one, part)


def _evaluated(expression: ast.expr) -> Any:
    """The number, or tuple of numbers, that literals and operators make; None for anything else."""
    try:
        value = eval(compile(ast.Expression(expression), "", "eval"), {"__builtins__": {}})
    except Exception:
        return None
    parts = value if isinstance(value, tuple) else (value,)
    return value if parts and all(type(part) in (int, float) for part in parts) else None


def _comment(lines: list[str], line: int, mark: str) -> str:
    """The comment behind a line (counted from 1), or the last sentence of the one above it."""
    behind = lines[line - 1].partition(f"  {mark}")[2].strip()
    above = []
    while line >= 2 and lines[line - 2].lstrip().startswith(mark):
        line -= 1
        above.insert(0, lines[line - 1].lstrip().removeprefix(mark).strip())
    return behind or " ".join(above)


_CONSTEXPR = re.compile(
    r"^(?P<head>\s*(?:inline |static )*)constexpr (?P<type>std::\w+|double|float|int) (?P<rest>k[A-Z]\w* = .*;)"
)


def core_numbers() -> Iterator[Number]:
    """The `constexpr k…` of the core, outside functions, that have a number on the same line."""
    for path in sorted((ROOT / "src/core").rglob("*.?pp")):
        lines = path.read_text().splitlines()
        for at, line in enumerate(lines, 1):
            found = _CONSTEXPR.match(line)
            if found:
                for name, value in re.findall(r"(k[A-Z]\w*) = ([^,;]+)", found["rest"]):
                    yield Number(str(path.relative_to(ROOT)), at, name, value.strip(), _comment(lines, at, "//"))


# --- a core whose constants are read from the environment -----------------------------------------------------------

_READ = """
#include <cstdlib>
#include <string>
namespace mercer_constants {
template <typename T>
inline T number(const char* key, T value) {
    const char* factor = std::getenv(key);
    return factor == nullptr ? value : static_cast<T>(static_cast<double>(value) * std::atof(factor));
}
}  // namespace mercer_constants
"""


def variable(key: str) -> str:
    """The name under which the core looks for a factor of this number."""
    return _ENVIRONMENT + re.sub(r"\W", "_", key)


def build_core(folder: Path) -> tuple[Path, set[str]]:
    """mercer with such a core, in `folder`; and the keys of the constants that must stay constant to compile."""
    fixed: set[str] = set()
    shutil.copytree(
        ROOT, folder / "tree", ignore=shutil.ignore_patterns(".git", "build", ".mypy_cache", "*.so", "wheels*")
    )
    build = folder / "build"
    while True:
        _write_core(folder / "tree", fixed)
        done = _compiled(folder / "tree", build)
        if done.returncode == 0:
            for made in build.glob("_core*"):
                if made.suffix in (".so", ".pyd"):
                    shutil.copy(made, folder / "tree/src/mercer")
            return folder / "tree/src", fixed
        wrong = _blamed(done.stdout + done.stderr, folder / "tree")
        if wrong <= fixed:
            sys.exit("the core does not compile:\n" + (done.stdout + done.stderr)[-4000:])
        fixed |= wrong


def _write_core(tree: Path, fixed: set[str]) -> None:
    """Rewrite the declarations of constants in the copy of the sources."""
    for path in sorted((ROOT / "src/core").rglob("*.?pp")):
        name = str(path.relative_to(ROOT))
        lines = path.read_text().splitlines()
        changed = False
        for at, line in enumerate(lines):
            found = _CONSTEXPR.match(line)
            names = re.findall(r"(k[A-Z]\w*) =", line)
            if not found or any(f"{name}:{one}" in fixed for one in names):
                continue
            kind, rest = found["type"], found["rest"]
            for one in names:
                read = f'::mercer_constants::number<{kind}>("{variable(f"{name}:{one}")}", '
                rest = re.sub(rf"\b{one} = ([^,;]+)", rf"{one} = {read}\1)", rest)
            head = found["head"] if "static" in found["head"] else found["head"].replace("inline ", "") + "static "
            inline = "inline " if "static" in found["head"] and "inline" not in found["head"] else ""
            lines[at] = f"{inline}{head}const {kind} {rest}"
            changed = True
        text = "\n".join(lines) + "\n"
        if changed:
            guard = "#pragma once\n" if "#pragma once" in text else ""
            text = guard + '#include "constants_read.hpp"\n' + text.replace("#pragma once\n", "", 1)
        target = tree / name
        if target.read_text() != text:
            target.write_text(text)
    read = tree / "src/core/constants_read.hpp"
    if not read.exists():
        read.write_text("#pragma once\n" + _READ)


def _compiled(tree: Path, build: Path) -> subprocess.CompletedProcess[str]:
    import nanobind

    configure = [
        "cmake",
        "-S",
        str(tree),
        "-B",
        str(build),
        "-G",
        "Ninja",
        "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_UNITY_BUILD=OFF",
    ]
    configure += [f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind.cmake_dir()}"]
    configure += [f"-DCMAKE_CXX_FLAGS=-I{tree}/src/core"]
    done = subprocess.run(configure, capture_output=True, text=True)
    return (
        done
        if done.returncode
        else subprocess.run(["cmake", "--build", str(build), "--", "-k", "0"], capture_output=True, text=True)
    )


def _blamed(messages: str, tree: Path) -> set[str]:
    """The keys of the constants that the compiler's errors are about: those named in them, wherever they stand."""
    named = set(re.findall(r"‘(?:const [^‘’]*?)?(?:\w+::)*(k[A-Z]\w*)(?:<[^‘’]*>)?’", messages))
    for place in re.findall(rf"{re.escape(str(tree))}/(src/core/[\w/.]+):(\d+):\d+: error", messages):
        line = (tree / place[0]).read_text().splitlines()[int(place[1]) - 1]
        named |= set(re.findall(r"\bk[A-Z]\w*\b", line))
    return {number.key for number in core_numbers() if number.name in named}
