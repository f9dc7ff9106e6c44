"""The dual problem of regularized least squares (Rosasco).

Minimise Σ w_i (y_i − f(x_i))² + λ‖f‖² over f = Σ β_j k(x_j, ·) + b. With d = λ/w its dual is

    maximise  y'β − ½ β'(K + diag d)β   (Σβ = 0 with bias),   solved by  (K + λW⁻¹)β + 1b = y

in which both objectives are divided by 2λ. Rows that share a sample x may be joined: with w = Σw_i and the weighted
mean ȳ,

    Σ w_i (y_i − f(x))² = w (ȳ − f(x))² + Σ w_i (y_i − ȳ)²

and the last sum does not depend on f. The joint coefficient c splits again into β_i = w_i c/w + w_i (y_i − ȳ)/λ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, Indices, sums_by
from mercer.samples.exact_parts import exact_parts, needs_exact_sum


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Regularised least squares: weighted rows with one target per output, and the distinct sample of each row."""

    Y: Floats  # rows × outputs
    weight: Floats  # one per row, positive
    member: Indices  # row → distinct sample
    n: int  # distinct samples
    bias: bool
    lam: float = math.nan  # λ; NaN if not fixed, for decompositions and sums over samples that serve every λ

    def __post_init__(self) -> None:
        smallest = float(self.weight.min())
        if self.lam / np.finfo(np.float64).max >= smallest:  # λ/w would be infinite
            raise ValueError(
                f"sample_weight holds {smallest:g}, too small beside lam={self.lam:g}; use 0 to leave a sample out"
            )

    @cached_property
    def total(self) -> Floats:
        """Total weight of each distinct sample."""
        return sums_by(self.member, self.weight, self.n)

    @cached_property
    def mean(self) -> Floats:
        """Weighted mean target of each distinct sample."""
        if self.n == len(self.weight):  # all rows are distinct: the means are the targets, without rounding
            return self.Y[np.argsort(self.member)]
        sums = [sums_by(self.member, self.weight * column, self.n) for column in self.Y.T]
        means = np.column_stack(sums) / self.total[:, None]
        is_single = np.bincount(self.member, minlength=self.n)[self.member] == 1
        means[self.member[is_single]] = self.Y[is_single]
        return means

    @property
    def n_outputs(self) -> int:
        return int(self.Y.shape[1])

    @property
    def mass(self) -> float:
        """Σw: the number of samples if weights are repetitions."""
        return float(self.weight.sum())

    def split(self, C: Floats, diagonal: Floats) -> Floats:
        """Return β of the rows from the joint coefficients C of the distinct samples, whose k(x, x) are given."""
        if self.n == len(self.weight):  # all rows are distinct
            return np.asarray(C[self.member])
        share = self.weight / self.total[self.member]
        deviation = self.Y - self.mean[self.member]
        parts = share[:, None] * C[self.member] + (self.weight / self.lam)[:, None] * deviation
        exact = needs_exact_sum(diagonal, self.lam / self.weight, self.member)
        return np.column_stack([exact_parts(c, p, self.member, exact) for c, p in zip(C.T, parts.T, strict=True)])

    def dual(self, output: int) -> DualProblem:
        """Return the dual problem of one output, with one variable per row."""
        n_rows = len(self.weight)
        return DualProblem(
            p=np.ascontiguousarray(self.Y[:, output]),
            lower=np.full(n_rows, -np.inf),
            upper=np.full(n_rows, np.inf),
            d=self.lam / self.weight,
            row=self.member,
            group=np.full(n_rows, 0 if self.bias else -1, dtype=np.int32),
            totals=np.zeros(1 if self.bias else 0),
        )


@dataclass(frozen=True)
class RidgeProblem:
    """Ridge regression without its data: λ, and whether there is a bias.

    The samples, targets and weights come from a Cross, which yields them in chunks, or from the Sums over them.
    """

    lam: float
    bias: bool
