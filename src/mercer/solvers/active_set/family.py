"""A dual problem that moves along a line: its targets, bounds and total are affine functions of t.

    maximise  p(t)'β − ½ β'(K + diag d)β   subject to  lower(t) ≤ β ≤ upper(t),  Σβ = total(t)

With bounds t·C_i this is the path in C. With p(0) chosen so that some β is optimal, and p(1) the targets themselves, it
leads from that β to the solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Floats
from mercer.problems.dual_problem import DualProblem


@dataclass(frozen=True, eq=False)
class Line:
    """start + t·slope, elementwise; an infinite start has the slope zero."""

    start: Any
    slope: Any

    def __call__(self, t: float) -> Any:
        return self.start + t * self.slope


@dataclass(frozen=True, eq=False)
class Family:
    """The problems, with at most one equality for all variables (None: no bias)."""

    p: Line
    lower: Line
    upper: Line
    total: Line | None
    d: Floats
    row: Any

    @property
    def n(self) -> int:
        return len(self.d)

    @classmethod
    def in_bounds(cls, problem: DualProblem) -> Family:
        """This problem with all its bounds, and its total, multiplied by t."""
        zero = np.zeros(problem.n_variables)
        total = Line(0.0, float(problem.totals[0])) if len(problem.totals) else None
        bounds = Line(zero, problem.lower), Line(zero, problem.upper)
        return cls(Line(problem.p, zero), *bounds, total, problem.d, problem.row)

    @classmethod
    def in_targets(cls, problem: DualProblem, p: Floats, total: float) -> Family:
        """From other targets and another total at t = 0 to this problem at t = 1."""
        zero = np.zeros(problem.n_variables)
        sums = Line(total, float(problem.totals[0]) - total) if len(problem.totals) else None
        bounds = Line(problem.lower, zero), Line(problem.upper, zero)
        return cls(Line(p, problem.p - p), *bounds, sums, problem.d, problem.row)
