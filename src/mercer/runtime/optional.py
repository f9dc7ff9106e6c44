"""Optional packages, and the extra of mercer that installs each of them."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Final

from mercer.runtime.errors import MissingExtraError

EXTRAS: Final = {
    "matplotlib": "plot",
    "rich": "progress",
    "pyarrow": "parquet",
    "python_calamine": "excel",
    "onnx": "onnx",
    "qpsolvers": "qp",
    "clarabel": "qp",
    "piqp": "qp",
    "torch": "torch",
    "formulaic": "formula",
    "dask": "dask",
    "distributed": "dask",
}


def require(module: str, purpose: str) -> ModuleType:
    """Import an optional module, or raise a MissingExtraError that names the extra of mercer that installs it.

    >>> require("math", "nothing at all").__name__
    'math'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name != package:
            raise
        wanted = f"mercer[{EXTRAS[package]}]" if package in EXTRAS else package
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed: python -m pip install '{wanted}'",
            name=package,
        ) from None
