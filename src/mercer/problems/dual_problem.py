"""The quadratic program that every machine with one or two variables per sample solves.

    maximise  p'β − ½ β'(K + diag d)β   subject to  lower ≤ β ≤ upper,  Σ over group g of β = totals_g

Its gradient is h = p − u[row] − dβ with u = Kβ computed once per Gram row, so the two variables of a regression
machine's sample (twins) share a row, and the second one costs no kernel values. A feasible β is optimal exactly if,
inside every group, no variable that may grow (`up`) has a larger h than one that may shrink (`low`); the largest such
difference is the violation (Igel, sec. 4.3.1). Without groups there is no b, and h is compared with zero.
"""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer import _core
from mercer.samples.arrays import Flags, Floats, Indices, sums_by

# Relative tolerance for group sums, as a fraction of the largest |β|: about one rounding in each of a million pair
# steps.
_SUM_TOLERANCE = 1e-10


class QuadraticProgram(NamedTuple):
    """The program: minimise ½β'Pβ + q'β subject to Aβ = totals, lower ≤ β ≤ upper."""

    P: Floats
    q: Floats
    A: Floats
    totals: Floats
    lower: Floats
    upper: Floats


@dataclass(eq=False)
class DualProblem:
    """The program: maximise p'β − ½ β'(K + diag d)β subject to lower ≤ β ≤ upper, Σ over group g of β = totals_g.

    Attributes
    ----------
    p, lower, upper, d : arrays of n_variables numbers
        Terms of the formula above; a bound may be infinite.
    row : array of int
        Row of K that each variable belongs to.
    group : array of int
        Equality constraint that each variable is part of, −1 for none.
    totals : array
        Right-hand side of each equality constraint; empty without a bias.
    checked : bool, default=False
        True if the arrays come from a problem that was already checked; otherwise the constructor checks them.
    """

    p: Floats
    lower: Floats
    upper: Floats
    d: Floats
    row: NDArray[np.int64]
    group: NDArray[np.int32]
    totals: Floats
    checked: InitVar[bool] = False

    def __post_init__(self, checked: bool) -> None:
        if checked:
            return
        self.p = np.ascontiguousarray(self.p)  # p may be one column of a matrix of targets
        try:
            is_valid = _core.is_sound(self.p, self.lower, self.upper, self.d, self.row, self.group, self.totals)
        except (TypeError, ValueError):  # wrong types, or lengths that differ
            is_valid = False
        if not is_valid:
            self._check()

    def _check(self) -> None:
        """Raise ValueError with the reason if the arrays do not form a valid problem."""
        n = len(self.p)
        if not n == len(self.lower) == len(self.upper) == len(self.d) == len(self.row) == len(self.group):
            lengths = {name: len(getattr(self, name)) for name in ("lower", "upper", "d", "row", "group")}
            raise ValueError(f"p has {n} variables but the other arrays have {lengths}: they must agree")
        if not (self.lower <= self.upper).all():
            i = int(np.argmin(self.lower <= self.upper))
            raise ValueError(f"variable {i} has lower={self.lower[i]} above upper={self.upper[i]}")
        if not np.isfinite(self.d).all():
            raise ValueError("1/C overflows where C times a weight is too small; scale the weights, or raise C")
        are_finite = all(np.isfinite(a).all() for a in (self.p, self.totals))
        if not are_finite or self.d.min(initial=0.0) < 0:
            raise ValueError("p, d and totals must be finite and d non-negative")
        if self.group.min(initial=-1) < -1 or self.group.max(initial=-1) >= len(self.totals):
            raise ValueError(f"group ids must be −1 or below the number of totals, {len(self.totals)}")
        if self.row.min(initial=0) < 0:
            raise ValueError("row indices must be non-negative")

    @property
    def n_variables(self) -> int:
        return len(self.p)

    @cached_property
    def twins(self) -> bool:
        """True if variables may share a row of K."""
        return not np.array_equal(self.row, np.arange(self.n_variables))

    @cached_property
    def tiled(self) -> bool:
        """True if every row has two variables, with the first ones of all rows before the second ones."""
        n = self.n_variables // 2
        return self.twins and np.array_equal(self.row, np.tile(np.arange(n), 2))

    @classmethod
    def of_rows(cls, p: Floats, lower: Floats, upper: Floats, d: Floats, group: Any, totals: Floats) -> DualProblem:
        """Build a problem in which variable i belongs to row i."""
        problem = cls(p, lower, upper, d, np.arange(len(p)), group, totals)
        problem.twins = False  # known, so that the cached property need not compare the rows
        return problem

    def without_bias(self) -> DualProblem:
        """Return the problem without equality constraints, whose multipliers are the biases."""
        group = np.full(self.n_variables, -1, dtype=np.int32)
        return replace(self, group=group, totals=np.empty(0))

    def take(self, variables: Any) -> DualProblem:
        """Return the problem of the given variables, for the same totals and with rows numbered from 0.

        No two of these variables may share a row.
        """
        p, lower, upper = self.p[variables], self.lower[variables], self.upper[variables]
        row = self.row[: len(p)]
        problem = DualProblem(p, lower, upper, self.d[variables], row, self.group[variables], self.totals, checked=True)
        problem.twins = False
        return problem

    def restricted(self, variables: Indices, rows: Indices, beta: Floats, fixed: Floats) -> DualProblem:
        """Return the problem of the given variables with all others held at β.

        `rows` are the Gram rows of these variables, in ascending order, and `fixed` is the part of u = Kβ on them that
        the other variables contribute.
        """
        row, group = self.row[variables], self.group[variables]
        row = np.arange(len(rows)) if np.array_equal(row, rows) else np.searchsorted(rows, row)
        totals = sums_by(group[group >= 0], beta[variables][group >= 0], len(self.totals))
        p = self.p[variables] - fixed[row]
        return DualProblem(p, self.lower[variables], self.upper[variables], self.d[variables], row, group, totals)

    def matrices(self, K: Any) -> QuadraticProgram:
        """Return the problem as the matrices that every QP solver takes; K is the kernel matrix of the samples.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer.problems.classification import soft_margin
        >>> program = soft_margin(np.array([1.0, -1.0]), np.array([2.0, 2.0])).matrices([[1.0, 0.5], [0.5, 1.0]])
        >>> program.q, program.A, program.lower, program.upper
        (array([-1.,  1.]), array([[1., 1.]]), array([ 0., -2.]), array([2., 0.]))
        """
        values = np.asarray(K, dtype=np.float64)
        if values.ndim != 2 or values.shape[0] != values.shape[1] or self.row.max(initial=-1) >= len(values):
            raise ValueError(
                f"K must be square with a row for each sample, at least {self.row.max(initial=-1) + 1} of them, not of "
                f"shape {values.shape}"
            )
        P = values[np.ix_(self.row, self.row)] + np.diag(self.d)
        A = (self.group == np.arange(len(self.totals))[:, None]).astype(np.float64)
        return QuadraticProgram(P, -self.p, A, self.totals, self.lower, self.upper)

    def gradient(self, beta: Floats, u: Floats) -> Floats:
        """Return the gradient h = p − u[row] − dβ."""
        return self.p - u[self.row] - self.d * beta

    def movable(self, beta: Floats) -> tuple[Flags, Flags]:
        """Return two masks: the variables that may grow, and those that may shrink."""
        return beta < self.upper, beta > self.lower

    def row_coefficients(self, beta: Floats, n_rows: int) -> Floats:
        """Return β summed over the variables of each Gram row: the vector that K is multiplied by."""
        if not self.twins and n_rows == self.n_variables:
            return beta
        return sums_by(self.row, beta, n_rows)

    def feasible_start(self, preference: Floats | None = None) -> Floats:
        """Return a feasible β close to zero: variables fill up each group's total by index, or by `preference`."""
        beta: Floats = np.minimum(np.maximum(self.lower, 0.0), self.upper)
        for g, total in enumerate(self.totals.tolist()):
            if total == 0 and not np.count_nonzero(beta):
                continue
            members = (self.group == g).nonzero()[0]
            start = beta[members]
            missing = float(total - start.sum())
            if preference is not None:
                members = members[np.argsort(-np.sign(missing) * preference[members], kind="stable")]
                start = beta[members]
            bound = self.upper if missing > 0 else self.lower
            slack = np.minimum(np.abs(bound[members] - start), abs(missing))
            amounts = np.minimum(slack, np.maximum(0.0, abs(missing) - (np.cumsum(slack) - slack)))
            sum_change = float(amounts.sum())
            if sum_change < abs(missing) * (1 - 1e-12):
                raise ValueError(
                    f"infeasible: the variables of group {g} can change their sum by {sum_change:g} towards the total "
                    f"{total:g}, but {abs(missing):g} is needed"
                )
            beta[members] = start + math.copysign(1.0, missing) * amounts
        return beta

    def keeps_sums(self, beta: Floats) -> bool:
        """Return whether the sum of β over every group is its total, up to the roundings of a long solve."""
        if len(self.totals) == 0 or len(beta) == 0:
            return True
        tolerance = _SUM_TOLERANCE * max(float(beta.max()), -float(beta.min()))
        if self._single_group:
            total = float(self.totals[0])
            return abs(float(beta.sum()) - total) <= max(tolerance, _SUM_TOLERANCE * abs(total))
        is_member = self.group >= 0
        sums = sums_by(self.group[is_member], beta[is_member], len(self.totals))
        return bool((np.abs(sums - self.totals) <= np.maximum(tolerance, _SUM_TOLERANCE * np.abs(self.totals))).all())

    @cached_property
    def _single_group(self) -> bool:
        """True if all variables are in one group."""
        return len(self.totals) == 1 and not self.group.any()

    def nearest_feasible(self, beta: Floats) -> Floats:
        """Clip β into the box and repair its group sums, with as little change as possible.

        The missing part of a sum is spread evenly over the free variables, then over those at a bound other than zero,
        and only then over the zeros: a start for the solver keeps as many zeros and bounds as possible.
        """
        start = self.feasible_start()  # raises if the problem is infeasible
        beta = np.clip(np.where(np.isfinite(beta), beta, start), self.lower, self.upper)
        for g, total in enumerate(self.totals):
            members = np.flatnonzero(self.group == g)
            free = (beta[members] > self.lower[members]) & (beta[members] < self.upper[members])
            for is_eligible in (free, beta[members] != 0, np.ones(len(members), bool)):
                if _spread(beta, members[is_eligible], members, total, self.lower, self.upper):
                    break
            else:  # only rounding leads here: feasible_start has shown that the sum can be reached
                beta[members] = start[members]
        return beta

    def working_set_selector(self, beta: Floats, u: Floats, n_threads: int = 1) -> _core.Active:
        """Return the working-set selection over active variables; it reads β and u = Kβ as they change in place."""
        fixed = (self.p, self.lower, self.upper, self.d, self.row, self.group, len(self.totals))
        return _core.Active(*fixed, beta, u, n_threads)

    def violation(self, beta: Floats, h: Floats) -> float:
        """Return the largest violation of optimality at β, where the gradient is h."""
        return self.violation_and_offsets(beta, h)[0]

    def violation_and_offsets(self, beta: Floats, h: Floats) -> tuple[float, Floats]:
        """Return the largest violation, and b of each group: the mean h of free variables, or its interval's middle."""
        up, low = self.movable(beta)
        free = up & low
        largest, tops, bottoms = violation(h, up, low, self.group, len(self.totals))
        b = np.zeros(len(self.totals))
        for g in range(len(b)):
            free_h = h[free] if len(b) == 1 else h[free & (self.group == g)]
            ends = [end for end in (tops[g], bottoms[g]) if np.isfinite(end)]
            b[g] = free_h.sum() / len(free_h) if len(free_h) else np.mean(ends) if ends else 0.0
        return largest, b


def _spread(beta: Floats, movers: Indices, members: Indices, total: float, lower: Floats, upper: Floats) -> bool:
    """Move `movers` by equal amounts inside the box until the members sum to `total`; return whether they do."""
    while True:
        missing = total - math.fsum(beta[members])
        rounding = 4 * np.finfo(float).eps * max(abs(total), float(np.abs(beta[members]).max(initial=0.0)))
        if abs(missing) <= rounding:
            return True
        movers = movers[beta[movers] < upper[movers]] if missing > 0 else movers[beta[movers] > lower[movers]]
        if len(movers) == 0:
            return False
        current = beta[movers]
        slack = upper[movers] - current if missing > 0 else current - lower[movers]
        most_slack = int(np.argmax(slack))
        if abs(missing) <= min(len(members) * rounding, slack[most_slack]):  # rounding of a sum: one variable takes it
            beta[movers[most_slack]] += missing
            return True
        beta[movers] = np.clip(current + missing / len(movers), lower[movers], upper[movers])


def violation(
    h: Floats, up: Flags, low: Flags, group: NDArray[np.int32], n_groups: int
) -> tuple[float, Floats, Floats]:
    """Return the largest violation, and for each group the largest h among `up` and the smallest h among `low`."""
    if n_groups == 1:
        top, bottom = float(h[up].max(initial=-np.inf)), float(h[low].min(initial=np.inf))
        return _not_negative(top - bottom), np.array([top]), np.array([bottom])
    if n_groups == 0:
        top, bottom = float(h[up].max(initial=0.0)), float(h[low].min(initial=0.0))
        return _not_negative(float(np.maximum(top, -bottom))), np.array([top]), np.array([bottom])
    tops = np.full(n_groups, -np.inf)
    bottoms = np.full(n_groups, np.inf)
    for g in range(n_groups):
        is_member = group == g
        tops[g] = h[up & is_member].max(initial=-np.inf)
        bottoms[g] = h[low & is_member].min(initial=np.inf)
    return _not_negative(float(np.max(tops - bottoms))), tops, bottoms


def _not_negative(x: float) -> float:
    """Return max(x, 0), and infinity for NaN, which says nothing about the violation."""
    return max(x, 0.0) if x == x else math.inf
