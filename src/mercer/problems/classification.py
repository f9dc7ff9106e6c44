"""The dual problems of two-class machines; y = ±1 and β_i = y_iα_i throughout.

    1-norm slack (Igel, sec. 4.2)      maximise y'β − ½β'Kβ,              0 ≤ y_iβ_i ≤ C_i,   Σβ = 0
    2-norm slack                       maximise y'β − ½β'(K + diag 1/C)β, 0 ≤ y_iβ_i,         Σβ = 0
    nearest points of the hulls        maximise −½β'Kβ,                   0 ≤ y_iβ_i,         Σ₊β = 1,     Σ₋β = −1
    ν-SVC, nearest points of the       maximise −½β'Kβ,                   0 ≤ y_iβ_i ≤ w_i,   Σ₊β = νW/2,  Σ₋β = −νW/2
    reduced hulls

The hull problems have one b per class, b₊ and b₋. With ρ = (b₋ − b₊)/2 and b = (b₊ + b₋)/2, the machine in the usual
scale, with margins at ±1, has β/ρ and b/ρ. For the hulls it is the hard margin (‖w‖² = 2ρ before the scaling, and the
margin is ‖w‖/2); for the reduced hulls it is C-SVC with C_i = w_i/ρ.
"""

from __future__ import annotations

import numpy as np

from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, rounded_sum


def soft_margin(y: Floats, C: Floats) -> DualProblem:
    """Build the dual of 1-norm slack with bias; `C` holds one bound per sample."""
    return _two_sided(y, p=y, bound=C, d=np.zeros(len(y)))


def squared_soft_margin(y: Floats, C: Floats) -> DualProblem:
    """Build the dual of 2-norm slack, ½ΣC_iξ_i² in the primal, with bias."""
    return _two_sided(y, p=y, bound=np.full(len(y), np.inf), d=1.0 / C)


def hulls(y: Floats) -> DualProblem:
    """Build the problem of the nearest points of the classes' hulls: a hard margin whose dual is never unbounded.

    The sums already keep every coefficient at most 1. The box is wider, because at a bound the only support vector of
    a class would not determine that class's b.
    """
    return _hull_problem(y, np.full(len(y), 2.0), 1.0)


def reduced_hulls(y: Floats, weight: Floats, nu: float) -> DualProblem:
    """Build the problem of the nearest points of hulls in which no coefficient exceeds the sample's weight: ν-SVC."""
    return _hull_problem(y, weight, 0.5 * nu * rounded_sum(weight))


def rho_and_b(b: tuple[float, ...]) -> tuple[float, float]:
    """Return ρ and b of a hull problem, from the offsets b₊ and b₋ of its two classes."""
    b_positive, b_negative = b
    return 0.5 * (b_negative - b_positive), 0.5 * (b_positive + b_negative)


def largest_nu(y: Floats, weight: Floats) -> float:
    """Return the largest feasible ν: the weights of each class must add up to at least νW/2."""
    return 2.0 * float(min(weight[y > 0].sum(), weight[y < 0].sum())) / float(weight.sum())


def _hull_problem(y: Floats, bound: Floats, mass: float) -> DualProblem:
    """Build a hull problem: Σβ is `mass` over the positive class, and −`mass` over the negative one."""
    group = np.where(y > 0, 0, 1).astype(np.int32)
    return _two_sided(y, np.zeros(len(y)), bound, np.zeros(len(y)), group, np.array([mass, -mass]))


def _two_sided(
    y: Floats, p: Floats, bound: Floats, d: Floats, group: np.ndarray | None = None, totals: Floats | None = None
) -> DualProblem:
    """Build a problem in which each variable lies between zero and a bound with the sign of its label."""
    n = len(y)
    is_positive = y > 0
    return DualProblem.of_rows(
        p=p,
        lower=np.where(is_positive, 0.0, -bound),
        upper=np.where(is_positive, bound, 0.0),
        d=d,
        group=np.zeros(n, dtype=np.int32) if group is None else group,
        totals=np.zeros(1) if totals is None else totals,
    )
