"""Write the table of public functions in docs/api.md from their signatures: python docs/api_table.py.

The page is in the repository, so that it can be read there. A test compares both, and checks that every function
follows the rule above the table.
"""

import importlib
import inspect
import re
from pathlib import Path

PAGE = Path(__file__).parent / "api.md"
BEGIN, END = "<!-- table of functions -->\n", "<!-- end of the table -->\n"


def listed():
    """Yield the full name of everything that the page lists."""
    module = "mercer"
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.match(r"   ([\w.]+)$", line):
            yield f"{module}.{found[1]}"


def thing(name):
    """Return the object with a full name such as mercer.theory.risk, looked up as attributes of the longest module."""
    parts = name.split(".")
    for k in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:k]))
        except ImportError:
            continue
        for part in parts[k:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"{name} cannot be imported")


def functions():
    """Return the functions that the page lists, by their full names."""
    return {name: thing(name) for name in listed() if inspect.isfunction(thing(name))}


def split(function):
    """Return the positional parameters of a function, and those that must be given by name."""
    parameters = inspect.signature(function).parameters.values()
    by_place = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    return by_place, [p for p in parameters if p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]


def table():
    """Return the table in Markdown."""
    lines = ["| function | positional parameters |", "|---|---|"]
    for name, function in functions().items():
        by_place, named = split(function)
        first = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in by_place]
        lines.append(f"| `{name.removeprefix('mercer.')}` | `({', '.join(first + ['…'] * bool(named))})` |")
    return "\n".join(lines) + "\n"


def page():
    """Return the text of the page with a new table."""
    text = PAGE.read_text(encoding="utf-8")
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return f"{text[:begin]}\n{table()}\n{text[end:]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
