"""A seeded fault: a text of the source, and what a slip of the pen would have made of it."""

from __future__ import annotations

from dataclasses import dataclass

CLAIMS = "tests/promises/test_false_claims.py"


@dataclass(frozen=True)
class Mutant:
    """A slip in one file, and the tests that must notice: paths, or paths::functions."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def m(name: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(name, f"src/{file}", old, new, tests)
