"""Versions and facts about the host that a bug report should contain."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import sys
from importlib.resources import files
from typing import Any

from threadpoolctl import threadpool_info

import mercer
from mercer import _core
from mercer.runtime.optional import EXTRAS, require

_REQUIRED = ("numpy", "scipy", "scikit-learn", "threadpoolctl", "joblib", "lazy_loader")
_OPTIONAL = (*EXTRAS, "pandas", "polars")


def show_versions() -> None:
    """Print the versions of mercer, Python, the host and the packages that mercer uses, for a bug report.

    Examples
    --------
    >>> import mercer
    >>> mercer.show_versions()
    mercer:
    ...
    """
    sections = {
        "mercer": [
            ("mercer", mercer.__version__),
            ("commit", _commit()),
            ("instruction set", f"{_core.level()} (of {', '.join(_core.levels())})"),
            ("threads", str(_core.get_num_threads())),
        ],
        "system": [
            ("python", f"{platform.python_version()} ({platform.python_compiler()})"),
            ("executable", sys.executable),
            ("platform", platform.platform()),
            ("machine", platform.machine()),
        ],
        "required": [(name, _version(name)) for name in _REQUIRED],
        "optional": [(name, _version(name)) for name in _OPTIONAL],
        "devices": _devices(),
        "thread pools": [
            (pool["prefix"], f"{pool['internal_api']}, version {pool['version']}, {pool['num_threads']} threads")
            for pool in threadpool_info()
        ],
    }
    for title, rows in sections.items():
        if rows:
            print(f"{title}:")
        for name, value in rows:
            print(f"  {name:<22}{value}")


def _commit() -> str:
    """Return the git commit that mercer was built from, which CMakeLists.txt writes where there is a checkout."""
    file = files("mercer") / "commit.txt"
    return file.read_text(encoding="utf-8").strip() if file.is_file() else "unknown, not built from a git checkout"


def _devices() -> list[tuple[str, str]]:
    """Return the devices that torch finds, by the names that `config_context` takes; empty without torch."""
    if importlib.util.find_spec("torch") is None:
        return []
    torch: Any = require("torch", "a list of devices")
    rows = [("torch-cpu", f"{torch.get_num_threads()} threads")]
    for kind in ("cuda", "xpu"):
        backend: Any = getattr(torch, kind, None)
        for k in range(backend.device_count() if backend is not None and backend.is_available() else 0):
            properties = backend.get_device_properties(k)
            rows.append((f"{kind}:{k}", f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB"))
    return rows


def _version(package: str) -> str:
    """Return the version of a package, or "not installed"."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
