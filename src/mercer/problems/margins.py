"""Margins, distances and slacks of samples with respect to a hyperplane, and the nearest points of the hulls.

With f(x) = ⟨w, φ(x)⟩ + b and labels s = ±1:

    functional margin   s f(x)                 signed distance   f(x) / ‖w‖
    geometric margin    s f(x) / ‖w‖           slack             max(0, 1 − s f(x))

and, for a set of samples, the smallest of each margin. ρ = 1/‖w‖ is the machine's margin, with 1/ρ² = Σα (hard margin)
= Σα − Σα_i²/C_i (2-norm slack) = Σα − ΣC_iξ_i (1-norm slack). With u = Σα/2, w = u(c₊ − c₋), where c₊ and c₋ are
convex combinations of the two classes: the nearest points of their hulls, which the bound C_i/u on each coefficient
reduces (Bennett and Bredensteiner 2000; Igel, sec. 4.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from mercer.runtime.optional import require
from mercer.samples.arrays import Flags, Floats, Indices, freeze

__all__ = ["Margins"]

_STANDINGS = ("other", "free", "bounded")


class _SampleMargins:
    """Quantities that follow from the margins of the samples, for one plane or for several."""

    functional_margins: Any
    geometric_margins: Any
    errors: Any

    @cached_property
    def slacks(self) -> Floats:
        """Slack ξ = max(0, 1 − s f(x)) of each sample; the largest over the planes if there are several."""
        return _frozen(np.maximum(0.0, 1.0 - self.functional_margins))

    @property
    def functional_margin(self) -> float:
        """Smallest functional margin s f(x)."""
        return float(self.functional_margins.min())

    @property
    def geometric_margin(self) -> float:
        """Smallest geometric margin s f(x)/‖w‖: ρ itself if all slacks are zero and at least one vector is free."""
        return float(self.geometric_margins.min())

    @property
    def n_errors(self) -> int:
        """Number of samples that `predict` misclassifies."""
        return int(self.errors.sum())


@dataclass(frozen=True, eq=False, repr=False)
class Margins(_SampleMargins):
    """Margins of samples with respect to one hyperplane, between two classes or between one class and all others.

    A plural name is an array with one number per sample; a singular name is one number for all samples.

    Attributes
    ----------
    classes : tuple
        Label on the negative side and label on the positive side.
    rows : array of int
        Indices of these samples among those given.
    decision_values, signs : array
        f(x), and the label as ±1.
    rkhs_norm, b : float
        ‖w‖ and the bias.
    alpha_sum : float, or None
        Σα over the training samples; None if the machine has no α.
    inverse_rho_squared : dict
        1/ρ² as ‖w‖², and for machines with α by the formula in α, which differs by no more than the duality gap. With a
        regularised bias that formula gives ‖w‖² + b², the squared norm in the space of k + 1, which is an entry too.
    b_interval : tuple of float, or None
        Interval of optimal values of b if no training sample is free, so that b is not unique; None otherwise.
    standings : array or None
        Standing of each training sample: 0 if it is no support vector, 1 free, 2 bounded; None for other samples.
    function : str
        Name of f in the printed report: "f", or "latent mean" for `GaussianProcessClassifier`, whose
        `decision_function` is something else.
    """

    classes: tuple[Any, Any]
    rows: Indices
    decision_values: Floats
    signs: Floats
    rkhs_norm: float
    b: float
    alpha_sum: float | None
    inverse_rho_squared: dict[str, float]
    b_interval: tuple[float, float] | None = None
    standings: NDArray[np.int8] | None = None
    function: str = "f"

    @cached_property
    def functional_margins(self) -> Floats:
        """Functional margin s f(x) of each sample."""
        return _frozen(self.signs * self.decision_values)

    @cached_property
    def geometric_margins(self) -> Floats:
        """Geometric margin s f(x)/‖w‖ of each sample: its distance from the plane, negative on the wrong side."""
        return _frozen(divide(self.functional_margins, self.rkhs_norm))

    @cached_property
    def signed_distances(self) -> Floats:
        """Signed distance f(x)/‖w‖ of each sample, positive on the side of `classes[1]`."""
        return _frozen(divide(self.decision_values, self.rkhs_norm))

    @property
    def rho(self) -> float:
        """Margin ρ = 1/‖w‖, the distance of the planes f = ±1 from the plane f = 0."""
        return float(divide(np.ones(1), self.rkhs_norm)[0])

    @property
    def errors(self) -> Flags:
        """Mask of the samples on the wrong side; f = 0 counts as positive, as in `predict`."""
        return np.asarray((self.decision_values >= 0) != (self.signs > 0))

    @property
    def free(self) -> Indices:
        """Rows of the free support vectors, 0 < α < C."""
        return self._standing(1)

    @property
    def bounded(self) -> Indices:
        """Rows of the bounded support vectors, α = C."""
        return self._standing(2)

    @property
    def other(self) -> Indices:
        """Rows of the samples that are no support vectors, α = 0."""
        return self._standing(0)

    def _standing(self, mark: int) -> Indices:
        """Return the rows whose standing is 0 (other), 1 (free) or 2 (bounded)."""
        if self.standings is None:
            raise ValueError(
                "only training samples can be free or bounded vectors, and these are other samples; "
                "call margins() with the samples and labels that the machine was fitted on"
                if self.alpha_sum is not None
                else "this plane has no α of its own, and so neither free nor bounded vectors"
            )
        return np.asarray(self.rows[self.standings == mark])

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per sample."""
        pandas = require("pandas", "Margins.to_frame")
        columns = {
            "label": np.array(self.classes)[(self.signs > 0).astype(np.intp)],
            "decision_value": self.decision_values,
            "functional_margin": self.functional_margins,
            "geometric_margin": self.geometric_margins,
            "signed_distance": self.signed_distances,
            "slack": self.slacks,
            "error": self.errors,
        }
        if self.standings is not None:
            columns["standing"] = np.array(_STANDINGS)[self.standings]
        return pandas.DataFrame(columns, index=pandas.Index(self.rows, name="row"))

    def __repr__(self) -> str:
        return (
            f"Margins({self.classes[1]!r} against {self.classes[0]!r}: {len(self.rows)} samples, "
            f"geometric margin {self.geometric_margin:.4g}, rho {self.rho:.4g}, {self.n_errors} errors)"
        )

    def __str__(self) -> str:
        lines = [
            f"{len(self.rows)} samples, {self.classes[1]} ({self.function} > 0) against {self.classes[0]}",
            f"functional margin  {self.functional_margin:.6g}",
            f"geometric margin   {self.geometric_margin:.6g}",
            f"rho = 1/|w|        {self.rho:.6g}",
            *(f"1/rho²             {value:.6g}  = {form}" for form, value in self.inverse_rho_squared.items()),
            f"slacks             sum {self.slacks.sum():.6g}, largest {self.slacks.max():.6g}",
            f"errors             {self.n_errors}",
        ]
        if self.standings is not None:
            counts = np.bincount(self.standings, minlength=3)
            lines.append(f"vectors            {counts[1]} free, {counts[2]} bounded, {counts[0]} other")
        interval = self.b_interval
        interval_text = "" if interval is None else f", any in [{interval[0]:.6g}, {interval[1]:.6g}]"
        return "\n".join([*lines, f"b                  {self.b:.6g}{interval_text}"])


@dataclass(frozen=True, eq=False, repr=False)
class SeveralMargins(_SampleMargins):
    """Margins of samples for all hyperplanes of a multi-class machine: a sequence with one `Margins` per plane.

    A sample's margin is the smallest over the planes that involve its class: if it is positive, its class wins against
    every other. Quantities of one plane (ρ, b, free and bounded vectors, signed distances) are attributes of its
    `Margins`.

    Attributes
    ----------
    labels : array
        Label of each sample.
    parts : tuple of Margins
        Margins of each plane.
    errors : array of bool
        Mask of the samples that `predict` misclassifies.
    """

    labels: Any
    parts: tuple[Margins, ...]
    errors: Flags

    def __getitem__(self, index: int) -> Margins:
        return self.parts[index]

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Margins]:
        return iter(self.parts)

    @property
    def rho(self) -> NoReturn:
        """Not available: each plane has its own 1/‖w‖."""
        self._refuse("rho")

    @property
    def b(self) -> NoReturn:
        """Not available: each plane has its own bias."""
        self._refuse("b")

    @property
    def signed_distances(self) -> NoReturn:
        """Not available: a sample has a distance from each plane."""
        self._refuse("signed_distances")

    @property
    def free(self) -> NoReturn:
        """Not available: each plane has its own free vectors."""
        self._refuse("free")

    @property
    def bounded(self) -> NoReturn:
        """Not available: each plane has its own bounded vectors."""
        self._refuse("bounded")

    def _refuse(self, name: str) -> NoReturn:
        """Raise AttributeError for an attribute that each plane has for itself."""
        raise AttributeError(
            f"{name} belongs to one plane, and this machine has {len(self.parts)}: read it from one plane, such as "
            f"margins[0].{name}"
        )

    @cached_property
    def functional_margins(self) -> Floats:
        """Smallest functional margin s f(x) of each sample over the planes of its class."""
        return self._smallest("functional_margins")

    @cached_property
    def geometric_margins(self) -> Floats:
        """Smallest geometric margin s f(x)/‖w‖ of each sample over the planes of its class."""
        return self._smallest("geometric_margins")

    def _smallest(self, name: str) -> Floats:
        """Return the smallest value of an attribute of `Margins` for each sample over the planes of its class."""
        out = np.full(len(self.labels), np.inf)
        for part in self.parts:
            np.minimum.at(out, part.rows, getattr(part, name))
        return _frozen(out)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per sample."""
        pandas = require("pandas", "SeveralMargins.to_frame")
        columns = {
            "label": self.labels,
            "functional_margin": self.functional_margins,
            "geometric_margin": self.geometric_margins,
            "slack": self.slacks,
            "error": self.errors,
        }
        return pandas.DataFrame(columns, index=pandas.RangeIndex(len(self.labels), name="row"))

    def __repr__(self) -> str:
        return (
            f"SeveralMargins({len(self.labels)} samples, {len(self.parts)} planes, geometric margin "
            f"{self.geometric_margin:.4g}, {self.n_errors} errors)"
        )

    def __str__(self) -> str:
        lines = [
            f"{len(self.labels)} samples, {len(self.parts)} planes",
            f"functional margin  {self.functional_margin:.6g}",
            f"geometric margin   {self.geometric_margin:.6g}",
            f"errors             {self.n_errors}",
            f"{'plane':24} {'samples':>8} {'geometric margin':>17} {'rho':>10} {'errors':>7}",
        ]
        for part in self.parts:
            name = f"{part.classes[1]} against {part.classes[0]}"
            numbers = f"{len(part.rows):8} {part.geometric_margin:17.6g} {part.rho:10.6g} {part.n_errors:7}"
            lines.append(f"{name:24} {numbers}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class NearestPoints:
    """The nearest points of two classes' convex hulls, or of the hulls reduced by the machine's bounds.

    Attributes
    ----------
    classes : tuple
        Labels of the first and of the second point: the positive side's, then the negative side's.
    rows : array of int
        Training rows that the coefficients belong to, as in `support_`.
    coefficients : array of shape (2, n_rows)
        Two convex combinations: no coefficient is negative, and each row sums to 1.
    distance : float
        Distance between the points in feature space: 2‖w‖/Σα, which is 2ρ if all slacks are zero.
    points : array of shape (2, n_features), or None
        The points themselves for a linear kernel; None for other kernels, whose points lie in feature space.
    """

    classes: tuple[Any, Any]
    rows: Indices
    coefficients: Floats
    distance: float
    points: Floats | None = None

    def __repr__(self) -> str:
        used = (self.coefficients > 0).sum(axis=1)
        return (
            f"NearestPoints({self.classes[0]!r} from {used[0]} rows, {self.classes[1]!r} from {used[1]} rows, "
            f"distance {self.distance:.4g})"
        )


def divide(values: Floats, norm: float | Floats) -> Floats:
    """Divide values by the norm; the result is infinite or NaN if w = 0, because then there is no plane."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(values / norm)


def _frozen(values: Floats) -> Floats:
    """Return the array, made read-only."""
    return np.asarray(freeze(values))
