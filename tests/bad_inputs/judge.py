"""One judge for every bad or odd input: an error with its words, a warning with a valid result, or a result."""

import re
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from bad_inputs.given import K, X, Y


@dataclass(frozen=True)
class Raises:
    """The text says what was given, why it cannot be, what to do."""

    kind: type[Exception] | tuple[type[Exception], ...]
    text: str
    may_warn: type[Warning] | None = None


@dataclass(frozen=True)
class Warns:
    kind: type[Warning]
    text: str
    then: Callable[[Any], bool]


@dataclass(frozen=True)
class Works:
    then: Callable[[Any], bool]
    may_warn: type[Warning] | None = None


@dataclass(frozen=True)
class Either:
    """The design leaves two outcomes open; both are checked."""

    outcomes: tuple[Raises | Warns | Works, ...]


@dataclass(frozen=True)
class Case:
    """What is given, in words; what is done with it, by each estimator of ``to`` if there are any; the outcome.

    The number is that of the list which the bad inputs of a classifier were first written down in.
    """

    given: str
    act: Callable[..., Any]
    expect: Raises | Warns | Works | Either
    to: tuple[str, ...] = ()
    number: int | None = None
    seconds: float = 5.0


def parametrised(cases: Iterable[Case]) -> list[Any]:
    return [
        pytest.param(case, id=case.given if case.number is None else f"{case.number}-{case.given}") for case in cases
    ]


def judge(case: Case) -> None:
    """Try the case with each estimator that it concerns, and say which of them fail."""
    broken = []
    for estimator in [(name,) for name in case.to] or [()]:
        try:
            judge_one(case, estimator)
        except (Exception, pytest.fail.Exception) as failure:
            if len(case.to) < 2:
                raise
            broken.append(f"{estimator[0]}: {type(failure).__name__}: {failure}")
    assert not broken, "\n".join(broken)


def judge_one(case: Case, estimator: tuple[str, ...]) -> None:
    start = time.perf_counter()
    outcomes = case.expect.outcomes if isinstance(case.expect, Either) else (case.expect,)
    failures = []
    for outcome in outcomes:
        try:
            hold(lambda: case.act(*estimator), outcome)
            break
        except (Exception, pytest.fail.Exception) as failure:
            if len(outcomes) == 1:
                raise
            failures.append(f"{outcome}: {type(failure).__name__}: {failure}")
    else:
        pytest.fail("\n".join(failures))
    assert time.perf_counter() - start < case.seconds


def hold(act: Callable[[], Any], outcome: Raises | Warns | Works) -> None:
    """Run it and hold it to the one expected outcome; everything else, other warnings included, fails."""
    if isinstance(outcome, Raises):
        with warnings.catch_warnings():
            strict(outcome.may_warn)
            with pytest.raises(outcome.kind, match=outcome.text):
                act()
    elif isinstance(outcome, Warns):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = act()
        texts = [str(w.message) for w in caught if issubclass(w.category, outcome.kind)]
        assert texts, f"no {outcome.kind.__name__}, only {[w.category.__name__ for w in caught]}"
        assert any(re.search(outcome.text, text) for text in texts), texts
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert outcome.then(result)
    else:
        with warnings.catch_warnings():
            strict(outcome.may_warn)
            assert outcome.then(act())


def strict(may_warn: type[Warning] | None) -> None:
    warnings.simplefilter("error")
    if may_warn is not None:
        warnings.simplefilter("ignore", may_warn)


# --- what a classifier must be after an odd input --------------------------------------------------------------------


def usable(model) -> bool:
    """A model is fit for use: finite numbers, a reason for stopping, a gap, predictions from its classes."""
    coefficients = model.dual_coef_.data if sparse.issparse(model.dual_coef_) else model.dual_coef_
    data = K if model.kernel == "precomputed" else np.ones((2, model.n_features_in_))
    return bool(
        np.isfinite(coefficients).all()
        and np.isfinite(model.intercept_).all()
        and model.certificate_.gap >= 0
        and isinstance(model.stop_reason_, str)
        and np.isin(model.predict(data), model.classes_).all()
    )


def accurate(model) -> bool:
    return usable(model) and model.score(X, Y) > 0.8


def same_as(expected, on=X, exactly=False):
    """The model decides as another one does, on the same rows."""

    def holds(model) -> bool:
        reference = expected()
        f, g = model.decision_function(on), reference.decision_function(on)
        return usable(model) and (np.array_equal(f, g) if exactly else np.allclose(f, g, atol=5e-3, rtol=0))

    return holds


def constant_function(model) -> bool:
    f = model.decision_function(np.random.default_rng(1).normal(size=(5, model.n_features_in_)))
    return usable(model) and bool(np.ptp(f) <= 1e-9)
