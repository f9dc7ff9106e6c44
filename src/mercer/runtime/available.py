"""scikit-learn's `available_if` with types, so that mypy and editors see a method's own signature through it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.utils import metaestimators

Method = TypeVar("Method", bound=Callable[..., Any])


def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """Offer a method where `check` of the object is true; elsewhere `hasattr` says that there is none.

    Asking for it there raises the AttributeError of the check, if it raises one.
    """
    decorate: Callable[[Method], Method] = metaestimators.available_if(check)
    return decorate
