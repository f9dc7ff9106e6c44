"""Where a solve starts: at zero if that is feasible, else with the totals on the variables that should be large.

A machine whose equalities have totals (one-class, SVDD, ν-machines) cannot start from zero, and an arbitrary start has
most of its coefficients on the wrong variables. So the totals are first spread over a few pilot samples. The gradient
there tells which variables should grow, and these get the totals.
"""

from __future__ import annotations

import numpy as np

from mercer.arrays import Floats
from mercer.gram.gram import Gram
from mercer.problems.dual_problem import DualProblem

# The number of pilot samples, and the number of rows from which on they save time (one-class on usps: half of it).
_PILOT_ROWS = 256
_ROWS_FOR_PILOTS = 3000


def starting_point(problem: DualProblem, gram: Gram) -> Floats:
    """A feasible β."""
    if not problem.totals.any() or gram.n <= _ROWS_FOR_PILOTS:
        return problem.feasible_start()
    pilot = np.isin(problem.row, np.linspace(0, gram.n - 1, _PILOT_ROWS).astype(np.intp))
    spread = np.zeros(problem.n_variables)
    for g, total in enumerate(problem.totals):
        here = pilot & (problem.group == g)
        bound = problem.upper[here] if total > 0 else problem.lower[here]
        if bound.sum() != 0 and np.isfinite(bound).all():
            spread[here] = bound * (total / bound.sum())
    u = gram.product(problem.row_coefficients(spread, gram.n), dtype=gram.precisions[0])
    return problem.feasible_start(problem.p - u[problem.row])
