"""scikit-learn without libraries that it loads and no command needs to start: scipy.stats, pandas, narwhals and others.

They take half of its import: 1.3 of 2.5 s of processor time for `mercer train`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

_LATER = (
    *("scipy.stats", "scipy.special", "asyncio", "pydoc"),
    *("numpy.ctypeslib", "numpy.f2py", "numpy.ma", "numpy.polynomial", "numpy.testing"),
)
# What is done without where it is not there: scikit-learn asks again where it meets a frame, and joblib's processes,
# which no command starts, would be watched with psutil.
_HIDDEN = ("pandas", "psutil")
# What scikit-learn asks whether samples are a frame; the answer is no where no library of frames is loaded.
_NARWHALS = ("narwhals", "narwhals.stable", "narwhals.stable.v2")
_OF_FRAMES = frozenset({"pandas", "polars", "pyarrow", "modin", "cudf", "dask", "duckdb", "ibis", "pyspark"})


class _Later(ModuleType):
    """Stands in `sys.modules` for a module that is loaded when something of it is first used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loaded(), name)

    def loaded(self) -> ModuleType:
        """The module itself."""
        if sys.modules.get(self.__name__) is self:
            for own in _NARWHALS if self.__name__ in _NARWHALS else (self.__name__,):
                del sys.modules[own]
            import_module(self.__name__)
        return sys.modules[self.__name__]


class _Frames:
    """narwhals' questions about frames."""

    def __init__(self, module: _Later) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        def ask(samples: Any) -> Any:
            if _OF_FRAMES.isdisjoint(sys.modules):
                return False
            return getattr(self._module.loaded().dependencies, name)(samples)

        return ask


def import_scikit_learn() -> None:
    """Load it without them; where it is loaded already, nothing changes."""
    if "sklearn" in sys.modules:
        return
    for name in _LATER:
        spec = find_spec(name) if name not in sys.modules else None
        if spec is not None:
            module = module_from_spec(spec)
            vars(module).pop("__path__", None)  # whoever asks for a submodule needs the module
            module.__class__ = _Later
            _put(module)
    if "narwhals" not in sys.modules and find_spec("narwhals") is not None:
        for name in _NARWHALS:
            last = _Later(name)
            _put(last)
        last.dependencies = _Frames(last)  # type: ignore[attr-defined]  # as the module has
    hidden = [name for name in _HIDDEN if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # importing it fails
    try:
        import sklearn.utils.fixes  # noqa: F401  # what loads them
    finally:
        for name in hidden:
            del sys.modules[name]


def _put(module: ModuleType) -> None:
    sys.modules[module.__name__] = module
    parent, _, child = module.__name__.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)  # as importing it does
