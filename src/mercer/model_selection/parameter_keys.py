"""Hashable keys of parameter values: fits with equal keys may share whatever depends on the values.

Keys do not use the printed text: long arrays print with "…", and all functions of one factory print alike. Values that
are not known to be equal get different keys, which costs time and changes no result.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mercer.kernels import Kernel


def key_of(value: Any) -> Hashable:
    """Return a key of a value: equal keys mean equal values, as long as the values exist.

    Numbers, strings and arrays are compared by type and content to the last bit: 1, 1.0 and True differ, 0.0 and −0.0
    differ, and NaN equals NaN. Lists, dictionaries, kernels and other estimators are compared by their parts. All other
    objects, above all functions, are compared by identity.
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
        # All attributes, not only parameters: a user's kernel may store more.
        return kind, tuple((name, key_of(part)) for name, part in sorted(vars(value).items()))
    return kind, id(value)


def key_of_params(params: dict[str, Any]) -> Hashable:
    """Return a key of named parameters, in any order."""
    return tuple((name, key_of(params[name])) for name in sorted(params))


def group_equal_keys(keys: Iterable[Hashable]) -> list[list[int]]:
    """Return one list of indices for each distinct key, in the order in which the keys first appear."""
    groups: dict[Hashable, list[int]] = {}
    for index, key in enumerate(keys):
        groups.setdefault(key, []).append(index)
    return list(groups.values())
