"""scikit-learn without libraries that it loads and no command needs to start: scipy.stats, pandas and a few more.

They take half of its import: 1.3 of 2.5 s of processor time for `mercer train`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

_LATER = ("scipy.stats", "scipy.special", "numpy.f2py", "numpy.testing", "asyncio")


class _Later(ModuleType):
    """Stands in `sys.modules` for a module that is loaded when something of it is first used."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
            import_module(self.__name__)
        return getattr(sys.modules[self.__name__], name)


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
            sys.modules[name] = module
            parent, _, child = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], child, module)  # as importing it does
    hidden = "pandas" not in sys.modules
    if hidden:
        sys.modules["pandas"] = None  # type: ignore[assignment]  # importing it fails
    try:
        import sklearn.utils.fixes  # noqa: F401  # asks for pandas; where it meets a frame, it asks again
    finally:
        if hidden:
            del sys.modules["pandas"]
