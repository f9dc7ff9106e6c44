"""Certificates of very many sub-problems as arrays: half a million objects would take a gigabyte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any, overload

import numpy as np

from mercer import _core
from mercer.certificates.certificate import Certificate, ProvenClaim, bounded_sum, kkt_residuals, weakest_claim
from mercer.samples.arrays import Floats, Indices

# Bound on the rounding error of a sum over the variables of a pair, at most 6,000, relative to the sum of their sizes.
_SHARE_OF_SUMS = 1e-12
# Columns of the core's findings.
_WORST, _BIAS = 3, 9


@dataclass(eq=False)
class CertificateTable(Sequence[Certificate]):
    """Sequence of one certificate per sub-problem, built on access; `others` holds certificates that replace a row."""

    primal: Floats
    dual: Floats
    gap: Floats
    violation: Floats
    kkt: dict[str, Floats]
    gap_measures: ProvenClaim
    worst: Indices
    b: Floats  # a row per sub-problem
    precision: str = "float64"
    others: dict[int, Certificate] = field(default_factory=dict)
    checked: InitVar[bool] = False  # True for numbers that the core has checked

    def __post_init__(self, checked: bool) -> None:
        """Replace NaN by numbers that claim nothing, and raise gaps to primal − dual, as `Certificate` does."""
        if checked:
            return
        self.primal[np.isnan(self.primal)] = np.inf
        self.dual[np.isnan(self.dual)] = -np.inf
        for values in (self.gap, self.violation, *self.kkt.values()):
            values[np.isnan(values)] = np.inf
        with np.errstate(over="ignore", invalid="ignore"):
            difference = self.primal - self.dual
            rounding_of_difference = difference - self.primal
            is_rounded_down = self.primal - (difference - rounding_of_difference) > self.dual + rounding_of_difference
            next_number = np.nextafter(difference, np.inf)
        np.maximum(self.gap, np.where(is_rounded_down, next_number, difference), out=self.gap)

    def __len__(self) -> int:
        return len(self.gap)

    @overload
    def __getitem__(self, k: int) -> Certificate: ...
    @overload
    def __getitem__(self, k: slice) -> tuple[Certificate, ...]: ...
    def __getitem__(self, k: int | slice) -> Any:
        if isinstance(k, slice):
            return tuple(self[i] for i in range(*k.indices(len(self))))
        k = range(len(self))[k]
        if k in self.others:
            return self.others[k]
        return Certificate(
            primal=float(self.primal[k]),
            dual=float(self.dual[k]),
            gap=float(self.gap[k]),
            violation=float(self.violation[k]),
            kkt={name: float(values[k]) for name, values in self.kkt.items()},
            gap_measures=self.gap_measures,
            precision=self.precision,
            worst=int(self.worst[k]),
            b=tuple(self.b[k].tolist()),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # mutable, as a list is

    def put(self, k: int, certificate: Certificate) -> None:
        """Replace the certificate of sub-problem k."""
        self.others[k] = certificate
        self.overwrite(k, certificate)

    def overwrite(self, indices: Any, other: CertificateTable | Certificate) -> None:
        """Overwrite the numbers of the sub-problems `indices` with those of other certificates."""
        for name in ("primal", "dual", "gap", "violation", "worst", "b"):
            getattr(self, name)[indices] = getattr(other, name)
        for name, values in self.kkt.items():
            values[indices] = other.kkt[name]

    def scatter(self, n: int, indices: Indices) -> CertificateTable:
        """Return a table of n sub-problems with these certificates at `indices`, and zeros elsewhere."""
        primal, dual, gap, violation = np.zeros((4, n))
        kkt, worst = {name: np.zeros(n) for name in self.kkt}, np.zeros(n, dtype=np.intp)
        b = np.zeros((n, self.b.shape[1]))
        table = CertificateTable(primal, dual, gap, violation, kkt, self.gap_measures, worst, b, self.precision)
        table.overwrite(indices, self)
        return table

    def total(self) -> Certificate:
        """Return one certificate for all sub-problems: sums of values, maxima of residuals, the weakest proof."""
        gap_measures, precision = self.gap_measures, self.precision
        if self.others:
            gap_measures, precision = weakest_claim(
                [(gap_measures, precision)] * (len(self.others) < len(self))
                + [(kind.gap_measures, kind.precision) for kind in self.others.values()]
            )
        return Certificate(
            primal=bounded_sum(self.primal, 1),
            dual=bounded_sum(self.dual, -1),
            gap=bounded_sum(self.gap, 1),
            violation=float(np.maximum.reduce(self.violation)),
            kkt={name: float(np.maximum.reduce(values)) for name, values in self.kkt.items()},
            gap_measures=gap_measures,
            precision=precision,
            worst=int(self.worst[self.gap.argmax()]),
            b=tuple(self.b.ravel().tolist()),
            parts=self,
        )

    # --- files ------------------------------------------------------------------------------------------------------

    def to_array(self) -> Floats:
        """Return all numbers, a row per sub-problem; `as_dict` has the claims of `others`."""
        numbers = (self.primal, self.dual, self.gap, self.violation, *self.kkt.values(), self.worst, *self.b.T)
        return np.column_stack(numbers).astype(np.float64)

    def as_dict(self) -> dict[str, Any]:
        """Return the names and claims that `to_array` leaves out, as plain values."""
        others = [[k, kind.gap_measures, kind.precision] for k, kind in self.others.items()]
        return {"kkt": list(self.kkt), "gap_measures": self.gap_measures, "precision": self.precision, "others": others}

    @classmethod
    def from_file(cls, numbers: Any, plain: dict[str, Any]) -> CertificateTable:
        """Build a table from `to_array` and `as_dict`; raise ValueError if the values are not a table's."""
        names = [str(name) for name in plain["kkt"]]
        if getattr(numbers, "ndim", 0) != 2 or numbers.shape[1] < 5 + len(names) or numbers.dtype != np.float64:
            raise ValueError("these are not the values of certificates")
        columns = [np.array(column) for column in numbers.T]
        kkt, other_columns = columns[4 : 4 + len(names)], columns[4 + len(names) :]
        table = cls(
            primal=columns[0],
            dual=columns[1],
            gap=columns[2],
            violation=columns[3],
            kkt=dict(zip(names, kkt, strict=True)),
            gap_measures=plain["gap_measures"],
            worst=other_columns[0].astype(np.intp),
            b=np.column_stack([np.empty((len(numbers), 0)), *other_columns[1:]]),
            precision=str(plain["precision"]),
        )
        for k, gap_measures, precision in plain["others"]:
            entry = {**table[int(k)].to_dict(), "gap_measures": gap_measures, "precision": precision}
            table.others[int(k)] = Certificate.from_dict(entry)
        Certificate.from_dict(table[0].to_dict())  # raises if the strings are not a certificate's
        return table


def pair_certificates(findings: Any, has_equality: bool, gap_measures: ProvenClaim) -> CertificateTable:
    """Build the certificate of each pair from its row of the core's findings; `has_equality` says whether Σβ = 0."""
    primal, dual, gap, violation, *residuals = _core.pair_values(findings, has_equality, _SHARE_OF_SUMS)
    return CertificateTable(
        primal=primal,
        dual=dual,
        gap=gap,
        violation=violation,
        kkt=kkt_residuals(*residuals),
        gap_measures=gap_measures,
        worst=findings[:, _WORST].astype(np.intp),
        b=findings[:, [_BIAS]] if has_equality else np.empty((len(findings), 0)),
        checked=True,
    )
