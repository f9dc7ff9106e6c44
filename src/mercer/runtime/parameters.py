"""Validation of the parameters of kernels and estimators.

Each function returns the checked value, or raises an error that says what was given, what is wrong and what to do.
"""

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

# Argument of numpy.random.default_rng.
Seed = int | np.random.Generator | None


def real(name: str, value: Any) -> float:
    """Return a real number as a float; True and False are refused."""
    if type(value) not in (float, int) and (not isinstance(value, numbers.Real) or isinstance(value, bool)):
        raise TypeError(f"{name}={value!r} must be a number, not {type(value).__name__}")
    return float(value)


def finite(name: str, value: Any) -> float:
    """Return a finite number as a float."""
    number = real(name, value)
    if not math.isfinite(number):
        raise ValueError(f"{name}={value!r} must be a finite number")
    return number


def positive(name: str, value: Any, hint: str = "") -> float:
    """Return a finite number above 0 as a float; `hint` ends the error message."""
    number = real(name, value)
    if not (number > 0 and math.isfinite(number)):
        raise ValueError(f"{name}={value!r} must be a finite number above 0{'; ' + hint if hint else ''}")
    return number


def not_negative(name: str, value: Any, hint: str = "") -> float:
    """Return a finite number of at least 0 as a float; `hint` ends the error message."""
    number = real(name, value)
    if not (number >= 0 and math.isfinite(number)):
        raise ValueError(f"{name}={value!r} must be a finite number of at least 0{'; ' + hint if hint else ''}")
    return number


def share(name: str, value: Any, hint: str = "", *, whole: bool = False) -> float:
    """Return a number above 0 and below 1 as a float; with `whole`, 1 itself is allowed too."""
    number = real(name, value)
    if not (0 < number < 1 or (whole and number == 1)):
        end = "above 0 and at most 1" if whole else "strictly between 0 and 1"
        raise ValueError(f"{name}={value!r} must be a number {end}{'; ' + hint if hint else ''}")
    return number


def integer(name: str, value: Any, minimum: int, meaning: str) -> int:
    """Return an integer of at least `minimum`; floats are refused, even 2.0. `meaning` ends the error message."""
    if not _is_integer(value) or value < minimum:
        raise ValueError(f"{name}={value!r} must be an integer of at least {minimum}: {meaning}")
    return int(value)


def iterations(name: str, value: Any, default: int) -> int:
    """Return an iteration limit; −1 stands for `default`, which is finite."""
    if not _is_integer(value) or value < -1:
        raise ValueError(f"{name}={value!r} must be an integer of at least 0, or -1 for the default of {default}")
    return default if value == -1 else int(value)


def one_of(name: str, value: Any, choices: tuple[Any, ...], other_values: str = "") -> Any:
    """Return a value that is one of `choices`; the error first describes `other_values` that would be valid too."""
    is_choice = value in choices if isinstance(value, str) else any(value is choice for choice in choices)
    if not is_choice:
        words = ", ".join(map(repr, choices))
        raise ValueError(
            f"{name}={value!r} must be {f'{other_values}, or {words}' if other_values else f'one of {words}'}"
        )
    return value


# Both spellings of the bias that is penalised like the weight of a constant feature.
REGULARIZED = ("regularized", "regularised")


def bias_kind(bias: Any) -> Any:
    """Return "regularized" for either spelling of that word, and any other bias unchanged."""
    return "regularized" if bias in REGULARIZED else bias


def weights(name: str, value: Any, n: int) -> Floats:
    """Return n non-negative weights that add up to 1; None means equal weights."""
    if value is None:
        return np.full(n, 1.0 / n)
    requirement = f"{name} must be a finite number ≥ 0 for each of the {n} rows, not all of them 0"
    try:
        weight = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{requirement}; {value!r} is not") from None
    if weight.shape != (n,):
        raise ValueError(f"{requirement}; its shape is {weight.shape}")
    if not np.isfinite(weight).all() or weight.min() < 0 or not weight.max() > 0:
        raise ValueError(f"{requirement}; they are between {weight.min():g} and {weight.max():g}")
    weight = weight / weight.max()
    return np.asarray(weight / weight.sum())


def function(name: str, value: Any) -> None:
    """Raise a TypeError unless the value is callable."""
    if not callable(value):
        raise TypeError(f"{name}={value!r} must be a function of the samples, not {type(value).__name__}")


def _is_integer(value: Any) -> bool:
    """Return whether a value is an integer; True and False are none."""
    return type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool))


def suggest_name(name: str, known_names: Iterable[str]) -> str:
    """Return "; did you mean C?" with the most similar known name, or an empty string if none is similar."""
    from difflib import get_close_matches  # imported here, since only errors need it

    by_lower_case = {known_name.lower(): known_name for known_name in known_names}
    matches = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.7)
    if not matches and len(name) > 2:  # eps for epsilon
        matches = [known_name for known_name in by_lower_case if known_name.startswith(name.lower())]
    return f"; did you mean {by_lower_case[matches[0]]}?" if matches else ""


class SuggestsParameters:
    """Mixin whose constructor answers an unknown parameter with the name that was probably meant."""

    # Parameters of scikit-learn's class of the same name that this class lacks, and what to use instead.
    _FOREIGN_PARAMETERS: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def __new__(cls, *values: Any, **keywords: Any) -> Self:
        parameter_names = _keywords(cls.__init__) if keywords else None
        if parameter_names is not None:
            for name in keywords.keys() - parameter_names:
                foreign_hint = cls._FOREIGN_PARAMETERS.get(name)
                hint = f": {foreign_hint}" if foreign_hint else suggest_name(name, parameter_names)
                raise TypeError(f"{cls.__name__} got an unexpected parameter {name}={keywords[name]!r}{hint}")
        return super().__new__(cls)


@cache
def _keywords(init: Callable[..., None]) -> frozenset[str] | None:
    """Return the parameter names of an `__init__`; None if it takes arbitrary keywords."""
    parameters = inspect.signature(init).parameters
    takes_any = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values())
    return None if takes_any else frozenset(parameters) - {"self"}
