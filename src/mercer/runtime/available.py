"""scikit-learn's `available_if` with type annotations, so that mypy and editors see the signature of the method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.utils import metaestimators

Method = TypeVar("Method", bound=Callable[..., Any])


def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """Make a method available only on objects for which `check` returns True; on others `hasattr` is False.

    If `check` raises an AttributeError, accessing the method raises that error.
    """
    decorate: Callable[[Method], Method] = metaestimators.available_if(check)
    return decorate
