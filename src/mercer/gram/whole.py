"""The whole kernel matrix in one array, and its product with several columns at once."""

from __future__ import annotations

from typing import Any

from mercer.arrays import Floats
from mercer.gram.gram import Gram


def whole_matrix(gram: Gram, dtype: Any) -> Any:
    """`gram.full(dtype)`."""
    return gram.full(dtype)


def products(gram: Any, C: Floats) -> Floats:
    """`gram.products(C)`."""
    out: Floats = gram.products(C)
    return out
