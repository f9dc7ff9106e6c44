"""The AttributeError for a name that a module does not have, which suggests the name that was probably meant."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any


def missing_name_error(
    module: str, name: str, names: Collection[str], suggestions: Mapping[str, str] = MappingProxyType({})
) -> AttributeError:
    """Return the AttributeError for `module.name`, which suggests up to three of the module's `names`.

    `suggestions` maps names that other libraries use to names of this module. Any other name is first looked up in the
    module's names without regard to case, then in the first paragraphs of their docstrings, and last by spelling.
    """
    text = f"module {module!r} has no attribute {name!r}"
    suggestion = None if name.startswith("_") else suggestions.get(name) or _suggest(name, module, names)
    if not suggestion:
        return AttributeError(text)
    # Without obj=object() Python would add a second suggestion from the module's own names.
    return AttributeError(f"{text}; did you mean {suggestion}?", name=name, obj=object())


def _suggest(name: str, module: str, names: Collection[str]) -> str:
    """Return the module's names that were probably meant, joined by "or"; empty if there is no good guess."""
    by_lower_case = {known.lower(): known for known in names}
    if name.lower() in by_lower_case:
        return by_lower_case[name.lower()]
    similar_names = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.8)
    words = _split_words(name)
    names_in_module = vars(sys.modules[module])
    same_case = [known for known in names if known[0].isupper() == name[0].isupper()]  # classes for a class
    described_names = [
        known for known in same_case if words in _split_words(known) or words in _summary(names_in_module.get(known))
    ]
    # More than three matches are too many for a suggestion.
    return (
        " or ".join(described_names)
        if 0 < len(described_names) <= 3
        else "".join(by_lower_case[known] for known in similar_names)
    )


def _split_words(name: str) -> str:
    """Return SquaredExponential and squared_exponential as "squared exponential"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).lower()


def _summary(documented: Any) -> str:
    """Return the first paragraph of an object's docstring in lower case; empty without one, or before it is loaded."""
    return " ".join((getattr(documented, "__doc__", None) or "").partition("\n\n")[0].lower().split())
