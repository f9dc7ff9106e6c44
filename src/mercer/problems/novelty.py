"""The dual problems of machines that describe one class; W = Σ weights.

    one-class SVM   maximise −½β'Kβ,                       0 ≤ β_i ≤ w_i,       Σβ = νW
    SVDD            maximise ½Σβ_i k(x_i,x_i) − ½β'Kβ,     0 ≤ β_i ≤ w_i/(νW),  Σβ = 1

The one-class machine has LIBSVM's scale, in which f = Kβ + b and −b is the offset; Schölkopf's f is this divided by νW.
For SVDD the centre is a = Σβ_iφ(x_i) and R² = 2b + β'Kβ, so that R² − ‖φ(x) − a‖² = 2(Σβ_ik(x_i,x) + b) − k(x,x).
"""

from __future__ import annotations

import numpy as np

from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, rounded_sum


def one_class(weight: Floats, nu: float) -> DualProblem:
    """Build the problem of the hyperplane that separates all data but a fraction ν from the origin."""
    return _convex_combination(np.zeros(len(weight)), weight, nu * rounded_sum(weight))


def data_description(diagonal: Floats, weight: Floats, nu: float) -> DualProblem:
    """Build the problem of the smallest ball around all data but a fraction ν; `diagonal` holds k(x_i, x_i)."""
    return _convex_combination(0.5 * diagonal, weight / (nu * rounded_sum(weight)), 1.0)


def _convex_combination(p: Floats, bound: Floats, mass: float) -> DualProblem:
    """Build the problem with 0 ≤ β_i ≤ bound_i and Σβ = mass."""
    n = len(p)
    group = np.zeros(n, dtype=np.int32)
    return DualProblem.of_rows(p, np.zeros(n), bound, np.zeros(n), group, np.array([mass]))
