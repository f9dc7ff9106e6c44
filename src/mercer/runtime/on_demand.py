"""Names of a package that are imported when they are first used, so that `import mercer` loads no other library."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any


def on_demand(
    package: str, homes: Mapping[str, str], meant: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The package's `__getattr__` and `__dir__`; `homes` tells the module of each name, or of a module its own name.

    `meant` is as in `suggesting`.
    """
    missing = suggesting(package, homes, meant or {})

    def get(name: str) -> Any:
        if name not in homes:
            missing(name)
        home = import_module(homes[name])
        found = home if homes[name] == f"{package}.{name}" else getattr(home, name)
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names


def suggesting(
    package: str, names: Iterable[str], meant: Mapping[str, str] = MappingProxyType({})
) -> Callable[[str], Any]:
    """A `__getattr__` that raises, and says which name was probably looked for.

    `meant` tells what other libraries call by another name. Else it is a name that contains what was asked for or whose
    docstring begins with a sentence that does, or the nearest spelling.
    """

    def missing(name: str) -> Any:
        text = f"module {package!r} has no attribute {name!r}"
        likely = None if name.startswith("_") else meant.get(name) or _likely(name, package, list(names))
        if not likely:
            raise AttributeError(text)
        # Python would suggest a second name from the module that the error names.
        raise AttributeError(f"{text}; did you mean {likely}?", name=name, obj=object())

    return missing


def _likely(name: str, package: str, names: list[str]) -> str:
    from difflib import get_close_matches

    known = {own.lower(): own for own in names}
    if name.lower() in known:
        return known[name.lower()]
    near = get_close_matches(name.lower(), known, n=1, cutoff=0.8)
    words = _words(name)
    loaded = vars(sys.modules[package])
    alike = [own for own in names if own[0].isupper() == name[0].isupper()]  # classes for a class
    described = [own for own in alike if words in _words(own) or words in _summary(loaded.get(own))]
    # More than three names are no suggestion.
    return " or ".join(described) if 0 < len(described) <= 3 else "".join(known[own] for own in near)


def _words(name: str) -> str:
    """SquaredExponential and squared_exponential as "squared exponential"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).lower()


def _summary(thing: Any) -> str:
    """The first paragraph of its docstring, if it is loaded and has one."""
    return " ".join((getattr(thing, "__doc__", None) or "").partition("\n\n")[0].lower().split())
