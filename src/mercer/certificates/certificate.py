"""`Certificate`, the proof that comes with every fit (docs/certificate.md, "What is claimed").

Only the other modules of this package build one, never a solver.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from mercer.certificates.lagrangian import Lagrangian

# What a gap of zero proves.
ProvenClaim = Literal[
    "stationarity",
    "optimality if K is positive semi-definite, loss and penalty are convex and the loss is not negative",
    "optimality if K is positive semi-definite and the loss is convex",
    "optimality if K is positive semi-definite",
    "optimality if loss and penalty are convex and the loss is not negative",
    "optimality if the loss is convex",
    "optimality",
]
_CLAIMS_BY_STRENGTH: tuple[ProvenClaim, ...] = get_args(ProvenClaim)
# A gap up to this share of the dual value counts as a proof: a fit with tol=1e-3 ends with about such a gap.
_SMALL_GAP_SHARE = 0.01
# In a sub-problem's relative gap, its dual value counts as at least this share of the sum of all dual values.
_SMALL_PART_SHARE = 1e-10


BOX, EQUALITY = "dual feasibility: box", "dual feasibility: equality"
# Beginnings of the names of the two conditions whose residuals are gradients.
GRADIENT_CONDITIONS = ("primal", "complementary")
T = TypeVar("T")


def _rank(precision: str) -> tuple[bool, bool]:
    """Return a sort key, smallest for the least precise: float32, then mixed precisions, then float64."""
    return not precision.startswith("float32"), precision == "float64"


def weakest_claim(claims: list[tuple[ProvenClaim, str]]) -> tuple[ProvenClaim, str]:
    """Return the weakest claim and the lowest precision among pairs of both; they may come from different pairs."""
    proven, precisions = zip(*claims, strict=True)
    return min(proven, key=_CLAIMS_BY_STRENGTH.index), min(precisions, key=_rank)


def kkt_residuals(box: T, equality: T, outward: T, inward: T) -> dict[str, T]:
    """Return the residuals of a dual problem's four optimality conditions by name: numbers, or arrays of them.

    `outward` is the largest gradient of a variable that should leave zero, `inward` of one that should return to it.
    """
    return {
        BOX: box,
        EQUALITY: equality,
        "primal feasibility": outward,
        "complementary slackness": inward,
    }


def _column(parts: Sequence[Certificate], name: str) -> Any:
    """Return the field `name` of all parts as an array, which a CertificateTable stores."""
    column = getattr(parts, name, None)
    return np.array([getattr(part, name) for part in parts]) if column is None else column


def bounded_sum(values: Any, sign: int) -> float:
    """Return an upper (sign 1) or a lower (sign −1) bound on the exact sum: the number next to the rounded one."""
    try:
        total = math.fsum(values.tolist() if isinstance(values, np.ndarray) else values)
    except (OverflowError, ValueError):  # a partial sum beyond float64, or infinities of both signs
        return sign * math.inf
    return math.nextafter(total, sign * math.inf) if total else 0.0  # a sum that rounds to 0 is 0


def _gap_bound(primal: float, dual: float) -> float:
    """Return primal − dual rounded upwards: Knuth's TwoSum gives the sign of its rounding error."""
    difference = primal - dual
    if -math.inf < difference < math.inf:
        minus_dual = difference - primal
        if primal - (difference - minus_dual) > dual + minus_dual:
            return math.nextafter(difference, math.inf)
    return difference


@dataclass(frozen=True)
class _CertificateFields:
    """Fields of a `Certificate`."""

    primal: float
    dual: float
    gap: float
    violation: float
    kkt: dict[str, float]
    gap_measures: ProvenClaim
    precision: str = "float64"
    worst: int = 0
    b: tuple[float, ...] = ()
    parts: Sequence[Certificate] = field(default=(), repr=False)
    lagrangian: Lagrangian | None = field(default=None, repr=False, compare=False)


class Certificate(_CertificateFields):
    """Bounds on the primal and the dual value of a solution, and its residuals, in numbers that anyone can recompute.

    Attributes
    ----------
    primal, dual : float
        Upper bound on the primal value, and lower bound on the dual value (which is maximised), with all rounding
        errors: the optimum lies between them if K is positive semi-definite.
    gap : float
        Upper bound on the difference of the two values, not less than `primal - dual`.
    violation : float
        Largest difference of gradients that a pair of variables could still exploit; `tol` bounds it.
    kkt : dict
        Largest residual of each optimality condition, by name.
    gap_measures : str
        "optimality": the gap is a distance from the optimum. If the kernel is not known to be positive definite, or the
        loss to be convex, "optimality if …" names what is assumed; with an indefinite kernel it is "stationarity".
        This says nothing about how large the gap is: `proves` does.
    precision : str
        Precision of the arithmetic over all rows, in words.
    worst : int
        Index of the variable with the largest share of the gap.
    b : tuple of float
        Bias of each group, as used for the values above.
    parts : sequence of Certificate
        Certificates of the sub-problems; with several, the values above are sums and the residuals maxima.
    lagrangian : Lagrangian or None
        Lagrangian of a binary `SVC` with all its multipliers. Files and pickles do not keep it.

    Examples
    --------
    >>> from mercer import SVC
    >>> proof = SVC(C=1.0, kernel="linear", tol=1e-8).fit([[0.0], [1.0], [3.0]], [0, 0, 1]).certificate_
    >>> round(proof.primal, 6), round(proof.dual, 6), bool(proof.gap < 1e-6)
    (0.5, 0.5, True)
    >>> sorted(proof.kkt)
    ['complementary slackness', 'dual feasibility: box', 'dual feasibility: equality', 'primal feasibility']
    >>> proof.proves
    'optimality'
    """

    def __init__(
        self,
        primal: float,
        dual: float,
        gap: float,
        violation: float,
        kkt: dict[str, float],
        gap_measures: ProvenClaim,
        precision: str = "float64",
        worst: int = 0,
        b: tuple[float, ...] = (),
        parts: Sequence[Certificate] = (),
        lagrangian: Lagrangian | None = None,
    ) -> None:
        """Replace NaN, which overflow leaves, by numbers that claim nothing, and raise the gap to primal − dual.

        As primal ≥ P and dual ≤ D, their difference bounds P − D. So the argument `gap` need not include an error that
        `primal` or `dual` includes.
        """
        primal = math.inf if math.isnan(primal) else primal
        dual = -math.inf if math.isnan(dual) else dual
        super().__init__(
            primal=primal,
            dual=dual,
            gap=math.inf if math.isnan(gap) else max(gap, _gap_bound(primal, dual)),
            violation=math.inf if math.isnan(violation) else violation,
            kkt={name: math.inf if math.isnan(residual) else residual for name, residual in kkt.items()},
            gap_measures=gap_measures,
            precision=precision,
            worst=worst,
            b=b,
            parts=parts,
            lagrangian=lagrangian,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "lagrangian": None}  # the Lagrangian holds arrays over all samples

    @property
    def relative_gap(self) -> float:
        """Gap divided by the absolute dual value."""
        if math.isinf(self.gap):
            return math.inf
        return self.gap / max(abs(self.dual), float(np.finfo(float).tiny))

    @classmethod
    def total(cls, parts: list[Certificate]) -> Certificate:
        """Return one certificate for several sub-problems: sums of values, maxima of residuals, the weakest proof."""
        if len(parts) == 1:
            return parts[0]
        largest = max(range(len(parts)), key=lambda k: parts[k].gap)
        gap_measures, precision = weakest_claim([(part.gap_measures, part.precision) for part in parts])
        return cls(
            primal=bounded_sum([part.primal for part in parts], 1),
            dual=bounded_sum([part.dual for part in parts], -1),
            gap=bounded_sum([part.gap for part in parts], 1),
            violation=max(part.violation for part in parts),
            kkt={name: max(part.kkt[name] for part in parts) for name in parts[0].kkt},
            gap_measures=gap_measures,
            precision=precision,
            worst=parts[largest].worst,
            b=tuple(value for part in parts for value in part.b),
            parts=tuple(parts),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary of plain values, for files and reports that programs read."""
        plain: dict[str, Any] = {
            name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("parts", "lagrangian")
        }
        plain["kkt"] = dict(self.kkt)
        plain["parts"] = [part.to_dict() for part in self.parts]
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Certificate:
        """Build a certificate from `to_dict`; raise ValueError if the values are not a certificate's."""
        parts = tuple(cls.from_dict(part) for part in plain["parts"])
        certificate = cls(**{**plain, "b": tuple(plain["b"]), "parts": parts})
        numbers = (
            certificate.primal,
            certificate.dual,
            certificate.gap,
            certificate.violation,
            *certificate.kkt.values(),
            *certificate.b,
        )
        strings = (certificate.precision, *certificate.kkt)
        is_valid = all(isinstance(number, float) for number in numbers) and all(
            isinstance(word, str) for word in strings
        )
        if not is_valid or certificate.gap_measures not in _CLAIMS_BY_STRENGTH or type(certificate.worst) is not int:
            raise ValueError("these are not the values of a certificate")
        return certificate

    def __str__(self) -> str:
        lines = [
            f"primal     {self.primal:.10g}",
            f"dual       {self.dual:.10g}",
            f"gap        {self.gap:.3g}  ({self.relative_gap:.1e} of the dual value)",
            f"violation  {self.violation:.3g}",
            *(f"{residual:<10.3g} {name}" for name, residual in self.kkt.items()),
            self.verdict,
        ]
        return "\n".join(lines)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))  # in a notebook, and at IPython's prompt

    @property
    def proves(self) -> str:
        """Statement that this gap proves about this solution.

        It is `gap_measures` if the gap is at most 1 % of the dual value, for example "optimality to within 53% of the
        dual value" if the gap is larger, and "nothing" if the gap exceeds the dual value. With several sub-problems the
        worst one counts.
        """
        share = self._largest_share
        if not share <= 1:
            return "nothing"
        if share <= _SMALL_GAP_SHARE:
            return self.gap_measures
        measured, *condition = self.gap_measures.split(" ", 1)
        return " ".join([f"{measured} to within {share:.0%} of the dual value", *condition])

    @property
    def _largest_share(self) -> float:
        """Largest relative gap of the whole problem and its sub-problems; a tiny dual value counts for little."""
        if not len(self.parts):
            return self.relative_gap
        gap, dual = (_column(self.parts, name) for name in ("gap", "dual"))
        size = np.maximum(np.abs(dual), max(_SMALL_PART_SHARE * abs(self.dual), float(np.finfo(float).tiny)))
        with np.errstate(over="ignore", invalid="ignore"):
            shares = np.where(np.isfinite(gap), gap / size, np.inf)
        return max(self.relative_gap, float(np.nan_to_num(shares, nan=np.inf, posinf=np.inf).max()))

    @property
    def verdict(self) -> str:
        """Sentence that says how far from optimal the solution may be."""
        share = self._largest_share
        measured, _, condition = self.gap_measures.partition(" ")
        measured = {"optimality": "optimal", "stationarity": "stationary"}[measured]
        if share <= _SMALL_GAP_SHARE:
            words = f"{measured} {condition}," if condition else measured
            worst = f" (worst of {len(self.parts)} sub-problems)" if share > self.relative_gap else ""
            return f"{words} to within {share:.1e} of the dual value{worst}, in {self.precision}"
        of_part = " of a sub-problem" if share > self.relative_gap else ""
        size = f"is {self.gap:.4g}" if not share < math.inf else f"is {share:.0%} of the dual value{of_part}"
        size = f"exceeds the dual value{of_part}" if 1 < share < math.inf else size
        return f"not proven {measured}: the gap {size}, in {self.precision}"


def widen_certificate(certificate: Certificate, loss: float, shift: float) -> Certificate:
    """Widen a certificate to coefficients that change both values by up to `loss`, and residuals by up to `shift`."""
    return replace(
        certificate,
        primal=certificate.primal + loss,
        dual=certificate.dual - loss,
        gap=certificate.gap + 2 * loss,
        violation=certificate.violation + shift,
        kkt={name: value + shift * name.startswith(GRADIENT_CONDITIONS) for name, value in certificate.kkt.items()},
    )
