"""Which values of parameters certainly mean the same, so that fits may share what depends on them.

Never by their text: long arrays print with "…", and all functions of one factory print alike. What is not known to be
the same is different, which costs time and changes no result.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mercer.kernels import Kernel


def key_of(value: Any) -> Hashable:
    """Equal keys for values that mean the same, while these exist.

    Numbers, words and arrays go by type and content to the last bit, so that 1, 1.0 and True, or 0.0 and −0.0, are not
    the same, and NaN is. Lists, dictionaries, kernels and other estimators go by their parts. Everything else, above
    all functions, is the same as itself only.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes):
        return kind, value
    if kind in (float, complex):
        return kind, np.asarray(value).tobytes()
    if (kind is np.ndarray or isinstance(value, np.generic)) and not value.dtype.hasobject:
        return kind, value.dtype, value.shape, value.tobytes()
    if kind in (list, tuple):
        return kind, tuple(map(key_of, value))
    if kind is dict:
        return kind, tuple((key_of(name), key_of(part)) for name, part in value.items())
    if isinstance(value, BaseEstimator | Kernel) and hasattr(value, "__dict__"):
        # All that an object has, not its parameters alone: a user's kernel may keep more.
        return kind, tuple((name, key_of(part)) for name, part in sorted(vars(value).items()))
    return kind, id(value)


def key_of_params(params: dict[str, Any]) -> Hashable:
    """A key of parameters by name, in any order."""
    return tuple((name, key_of(params[name])) for name in sorted(params))


def grouped(keys: Iterable[Hashable]) -> list[list[int]]:
    """The places of equal keys, group by group, in the order in which they first appear."""
    groups: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        groups.setdefault(key, []).append(place)
    return list(groups.values())
