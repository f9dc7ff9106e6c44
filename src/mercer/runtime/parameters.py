"""Checks of parameters of kernels and estimators; errors say what was given, why it is wrong, and what to do."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from inspect import Parameter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

if TYPE_CHECKING:
    from mercer.samples.arrays import Floats

# What numpy.random.default_rng takes.
Seed = int | np.random.Generator | None


def real(name: str, value: Any) -> float:
    """Any real number; True and False are not accepted."""
    if type(value) is not float and (not isinstance(value, numbers.Real) or isinstance(value, bool)):
        raise TypeError(f"{name}={value!r} must be a number, not {type(value).__name__}")
    return float(value)


def finite(name: str, value: Any) -> float:
    """A finite number."""
    number = real(name, value)
    if not math.isfinite(number):
        raise ValueError(f"{name}={value!r} must be a finite number")
    return number


def positive(name: str, value: Any, hint: str = "") -> float:
    """A finite number above zero."""
    number = real(name, value)
    if not (number > 0 and math.isfinite(number)):
        raise ValueError(f"{name}={value!r} must be a finite number above 0{'; ' + hint if hint else ''}")
    return number


def not_negative(name: str, value: Any, hint: str = "") -> float:
    """A finite number of at least zero."""
    number = real(name, value)
    if not (number >= 0 and math.isfinite(number)):
        raise ValueError(f"{name}={value!r} must be a finite number of at least 0{'; ' + hint if hint else ''}")
    return number


def share(name: str, value: Any, hint: str = "", *, whole: bool = False) -> float:
    """A number above 0 and below 1, or at most 1 if it may be the `whole`."""
    number = real(name, value)
    if not (0 < number < 1 or (whole and number == 1)):
        end = "above 0 and at most 1" if whole else "strictly between 0 and 1"
        raise ValueError(f"{name}={value!r} must be a number {end}{'; ' + hint if hint else ''}")
    return number


def integer(name: str, value: Any, least: int, why: str) -> int:
    """An integer of at least `least`; floats are not accepted, not even 2.0."""
    if not _is_integer(value) or value < least:
        raise ValueError(f"{name}={value!r} must be an integer of at least {least}: {why}")
    return int(value)


def iterations(name: str, value: Any, default: int) -> int:
    """A count; −1 means the finite default."""
    if not _is_integer(value) or value < -1:
        raise ValueError(f"{name}={value!r} must be an integer of at least 0, or -1 for the default of {default}")
    return default if value == -1 else int(value)


def one_of(name: str, value: Any, choices: tuple[Any, ...], beside: str = "") -> Any:
    """One of a few values, usually words; the error also names what may be given `beside` them."""
    known = value in choices if isinstance(value, str) else any(value is choice for choice in choices)
    if not known:
        words = ", ".join(map(repr, choices))
        raise ValueError(f"{name}={value!r} must be {f'{beside}, or {words}' if beside else f'one of {words}'}")
    return value


# Both spellings of a bias that is the weight of one more feature.
REGULARIZED = ("regularized", "regularised")


def bias_kind(bias: Any) -> Any:
    """Return "regularized" for either spelling of it, and any other bias as it is."""
    return "regularized" if bias in REGULARIZED else bias


def weights(name: str, value: Any, n: int) -> Floats:
    """One weight for each of n rows, divided by their sum; equal ones where None is given."""
    if value is None:
        return np.full(n, 1.0 / n)
    wanted = f"{name} must be a finite number ≥ 0 for each of the {n} rows, not all of them 0"
    try:
        weight = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{wanted}; {value!r} is not") from None
    if weight.shape != (n,):
        raise ValueError(f"{wanted}; its shape is {weight.shape}")
    if not np.isfinite(weight).all() or weight.min() < 0 or not weight.max() > 0:
        raise ValueError(f"{wanted}; they are between {weight.min():g} and {weight.max():g}")
    weight = weight / weight.max()
    return np.asarray(weight / weight.sum())


def function(name: str, value: Any) -> None:
    """A function of the samples."""
    if not callable(value):
        raise TypeError(f"{name}={value!r} must be a function of the samples, not {type(value).__name__}")


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def meant(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest of the known names, "; did you mean C?", or nothing where none is near."""
    from difflib import get_close_matches  # here, since only errors need it

    by_case = {one.lower(): one for one in known}
    close = get_close_matches(name.lower(), by_case, n=1, cutoff=0.7)
    return f"; did you mean {by_case[close[0]]}?" if close else ""


class SuggestsParameters:
    """A class whose constructor names the parameter that was probably meant by one that it does not have."""

    # Parameters of scikit-learn's class of the same name that this one lacks, and what to use here instead.
    _FOREIGN_PARAMETERS: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def __new__(cls, *values: Any, **given: Any) -> Self:
        known = _keywords_of(cls.__init__) if given else None
        if known is not None:
            for name in given.keys() - known:
                foreign = cls._FOREIGN_PARAMETERS.get(name)
                hint = f": {foreign}" if foreign else meant(name, known)
                raise TypeError(f"{cls.__name__} got an unexpected parameter {name}={given[name]!r}{hint}")
        return super().__new__(cls)


@cache
def _keywords_of(init: Callable[..., None]) -> frozenset[str] | None:
    """Names that an `__init__` takes; None where it takes any."""
    parameters = inspect.signature(init).parameters
    anything = any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())
    return None if anything else frozenset(parameters) - {"self"}
