"""The error for a name that a module does not have, with the name that was probably meant."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any


def missing_name(
    module: str, name: str, names: Collection[str], meant: Mapping[str, str] = MappingProxyType({})
) -> AttributeError:
    """Return the error for `module.name`, which suggests one of the module's `names`.

    `meant` translates names of other libraries. Any other name is compared with the module's names and with the first
    paragraphs of their docstrings, then with their spelling.
    """
    text = f"module {module!r} has no attribute {name!r}"
    likely = None if name.startswith("_") else meant.get(name) or _likely(name, module, names)
    if not likely:
        return AttributeError(text)
    # Python would suggest a second name from the module that the error names.
    return AttributeError(f"{text}; did you mean {likely}?", name=name, obj=object())


def _likely(name: str, module: str, names: Collection[str]) -> str:
    known = {own.lower(): own for own in names}
    if name.lower() in known:
        return known[name.lower()]
    near = get_close_matches(name.lower(), known, n=1, cutoff=0.8)
    words = _words(name)
    loaded = vars(sys.modules[module])
    alike = [own for own in names if own[0].isupper() == name[0].isupper()]  # classes for a class
    described = [own for own in alike if words in _words(own) or words in _summary(loaded.get(own))]
    # More than three names are no suggestion.
    return " or ".join(described) if 0 < len(described) <= 3 else "".join(known[own] for own in near)


def _words(name: str) -> str:
    """SquaredExponential and squared_exponential as "squared exponential"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).lower()


def _summary(thing: Any) -> str:
    """First paragraph of the docstring; empty if the thing is not loaded or has none."""
    return " ".join((getattr(thing, "__doc__", None) or "").partition("\n\n")[0].lower().split())
