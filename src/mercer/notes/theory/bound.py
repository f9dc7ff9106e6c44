"""Bounds of learning theory: a number, its terms, and the assumptions under which it holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from mercer.runtime.parameters import integer, share
from mercer.samples.arrays import Floats

_MARKS = {True: "holds", False: "does not hold", None: "assumed"}


@dataclass(frozen=True)
class Assumption:
    """Assumption of a bound.

    Attributes
    ----------
    text : str
        Statement of the assumption.
    holds : bool or None
        Whether it holds here. None if no computation can check it, such as that samples are drawn independently: then
        it is assumed.
    """

    text: str
    holds: bool | None = None

    def __str__(self) -> str:
        return f"{self.text}: {_MARKS[self.holds]}"


IID = Assumption("the samples are drawn independently from one distribution")
UNSEEN = Assumption("the rule was fixed before these samples were seen")


@dataclass(frozen=True, repr=False)
class Bound:
    """Bound on a quantity, valid if its assumptions hold.

    Attributes
    ----------
    quantity : str
        Name of the bounded quantity.
    value : float
        Value of the bound.
    terms : dict
        Terms by name; their sum is the value.
    assumptions : tuple
        Assumptions, each with its `text` and `holds`: True, False, or None if no computation can check it.
    delta : float or None
        Probability with which the bound may fail; None for a statement that is certain, or about an expectation.
    says_nothing_from : float or None
        Trivial bound, such as 1 for a probability; a value beyond it is vacuous.
    side : {"upper", "lower"}
        Whether the value is an upper or a lower bound.
    source : str
        Publication of the bound.

    Examples
    --------
    >>> from mercer.notes.theory import hoeffding
    >>> bound = hoeffding(0.1, n=1000, delta=0.05)
    >>> round(bound.value, 4), bound.vacuous, bound.applies
    (0.1387, False, None)
    """

    quantity: str
    value: float
    terms: Mapping[str, float]
    assumptions: tuple[Assumption, ...] = ()
    delta: float | None = None
    says_nothing_from: float | None = None
    side: Literal["upper", "lower"] = "upper"
    source: str = field(default="", kw_only=True)

    @property
    def vacuous(self) -> bool:
        """True if the bound says no more than the trivial one."""
        if self.says_nothing_from is None:
            return not abs(self.value) < float("inf")
        if self.side == "upper":
            return not self.value < self.says_nothing_from
        return not self.value > self.says_nothing_from

    @property
    def applies(self) -> bool | None:
        """False if an assumption does not hold here, True if all do; None if one cannot be checked."""
        answers = {assumption.holds for assumption in self.assumptions}
        return False if False in answers else None if None in answers else True

    def __float__(self) -> float:
        return self.value

    def _statement(self, gap: str = " ") -> str:
        """Return the bound in one line, such as "E f ≤ 0.2 with probability 0.95"."""
        sign = "≤" if self.side == "upper" else "≥"
        probability = "" if self.delta is None else f"{gap}with probability {1 - self.delta:g}"
        return f"{self.quantity} {sign} {self.value:.6g}{probability}{f'{gap}(vacuous)' if self.vacuous else ''}"

    def __repr__(self) -> str:
        return f"Bound({self._statement()})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))  # in a notebook, and at IPython's prompt

    def __str__(self) -> str:
        lines = [self._statement("  ")]
        if len(self.terms) > 1:
            lines += [f"  {value:12.6g}  {name}" for name, value in self.terms.items()]
        lines += [f"  if {assumption}" for assumption in self.assumptions]
        return "\n".join(lines)


def log_inverse(delta: float, factor: float = 1.0) -> float:
    """Compute ln(factor/δ) for a probability δ so small that 1/δ may overflow."""
    return math.log(factor) - math.log(share("delta", delta))


def deviation(n: int, delta: float, sides: float) -> float:
    """Return Hoeffding's deviation √(ln(sides/δ)/2n)."""
    integer("n", n, 1, "the number of samples")
    return math.sqrt(log_inverse(delta, sides) / (2 * n))


def read_numbers(values: ArrayLike, requirement: str, least: float = -math.inf) -> Floats:
    """Read a non-empty list of finite numbers ≥ `least`; the error for other values begins with `requirement`."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) == 0 or not (np.isfinite(array) & (array >= least)).all():
        raise ValueError(f"{requirement}; the array given has the shape {array.shape}")
    return array


def euclidean_norm(values: Floats) -> float:
    """Return √Σv² without overflow or underflow of the squares."""
    largest = float(np.abs(values).max(initial=0.0))
    if not 0 < largest < math.inf:
        return largest
    return largest * math.sqrt(float(np.sum((values / largest) ** 2)))


def bound_by_sum(
    quantity: str,
    terms: Mapping[str, float],
    assumptions: tuple[Assumption, ...],
    delta: float | None,
    says_nothing_from: float | None,
    source: str,
) -> Bound:
    """Return an upper bound that is the sum of its terms."""
    parts = {name: float(value) for name, value in terms.items()}
    return Bound(quantity, sum(parts.values()), parts, assumptions, delta, says_nothing_from, source=source)
