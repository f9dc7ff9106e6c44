"""Methods that a class of machines takes from rooms above, which this one must not import.

    class NoveltyDetector(NoveltyMethods, OutlierMixin, DualMachine): ...

For a type checker, `NoveltyMethods` is that class of `mercer.methods`. When the program runs it is a name: it adds no
ancestor, and the methods of the class that `mercer` has registered under it become the machine's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mercer.on_demand import methods_named

__all__ = [
    "CPathMethods",
    "ClassifierMethods",
    "ExplanationMethods",
    "MachineMethods",
    "NoveltyMethods",
    "PartialDependenceMethods",
    "RegressorMethods",
    "RidgePathMethods",
    "TraceMethods",
    "attach",
    "attach_named",
]


class _Named:
    """A name among the bases of a class."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return ()


if TYPE_CHECKING:
    from mercer.methods import (
        ClassifierMethods,
        CPathMethods,
        ExplanationMethods,
        MachineMethods,
        NoveltyMethods,
        PartialDependenceMethods,
        RegressorMethods,
        RidgePathMethods,
        TraceMethods,
    )
else:
    ClassifierMethods, MachineMethods = _Named("ClassifierMethods"), _Named("MachineMethods")
    NoveltyMethods, RegressorMethods = _Named("NoveltyMethods"), _Named("RegressorMethods")
    ExplanationMethods, PartialDependenceMethods = _Named("ExplanationMethods"), _Named("PartialDependenceMethods")
    RidgePathMethods, TraceMethods = _Named("RidgePathMethods"), _Named("TraceMethods")
    CPathMethods = _Named("CPathMethods")

# What every class has, and no method of it.
_OF_ANY_CLASS = {"__dict__", "__doc__", "__module__", "__weakref__"}


def attach_named(machine: type) -> None:
    """Give a new class the methods that are named among its bases."""
    for base in vars(machine).get("__orig_bases__", ()):
        if isinstance(base, _Named):
            attach(machine, methods_named(base.name))


def attach(machine: type, methods: type) -> None:
    """Give a class the methods of another, but for those that it defines itself."""
    for name, method in vars(methods).items():
        if name not in _OF_ANY_CLASS and name not in vars(machine):
            setattr(machine, name, method)
