"""The dual problem of the soft-margin classifier with 1-norm slack (Igel, sec. 4.2).

With y = ±1 and β_i = y_iα_i:  maximise Σ y_iβ_i − ½β'Kβ,  0 ≤ y_iβ_i ≤ C_i,  Σβ = 0.
"""

from __future__ import annotations

import numpy as np

from mercer.arrays import Floats
from mercer.problems.dual_problem import DualProblem


def soft_margin(y: Floats, C: Floats) -> DualProblem:
    """1-norm slack with bias; `C` holds one bound per sample."""
    n = len(y)
    return DualProblem(
        p=y,
        lower=np.where(y > 0, 0.0, -C),
        upper=np.where(y > 0, C, 0.0),
        d=np.zeros(n),
        row=np.arange(n),
        group=np.zeros(n, dtype=np.int32),
        totals=np.zeros(1),
    )
