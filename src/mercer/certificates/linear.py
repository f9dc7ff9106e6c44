"""The certificate of a linear machine, from (w, b) and β alone: w need not equal X'β.

    P(w, b) − D(β) = ½‖w − X'β‖² (+ ½(b/B − BΣβ)²) + Σ shares,   every share ≥ 0

The shares are those of `mercer.certificates.dual`, with f = Xw + b in the place of Kβ + b. With an unregularised bias
b·Σβ joins them. All sums are float64, and the gap and the violation include the most that rounding can hide.
"""

from __future__ import annotations

import numpy as np

from mercer import _core
from mercer.arrays import Floats, gamma, inner
from mercer.arrays import norm as norm_of
from mercer.certificates.certificate import Certificate, conditions
from mercer.gram.linear_rows import LinearRows
from mercer.problems.linear_problem import LinearProblem

# A larger error of X'β, as a share of ‖w‖, is worth a second sum in twice the precision.
_LARGEST_ERROR_SHARE = 1e-6


def certify_linear(problem: LinearProblem, rows: LinearRows, w: Floats, b: float, beta: Floats) -> Certificate:
    """The certificate of (w, b) and of a β inside its box, whose sum is zero if the bias is unregularised."""
    return _certificate(problem, rows, w, b, beta, rows.product(w, b), None)


def certify_combination(problem: LinearProblem, rows: LinearRows, beta: Floats) -> tuple[Floats, float, Certificate]:
    """w = X'β, the b of the free samples beside it, and their certificate, which needs no other product with X."""
    w, dual, variables = rows.transposed(beta), problem.dual, problem.dual_variables(beta)
    f = rows.product(w)
    b = float(dual.violation_and_offsets(variables, dual.p - f[dual.row] - dual.d * variables)[1][0])
    return w, b, _certificate(problem, rows, w, b, beta, f + b, w)


def _certificate(
    problem: LinearProblem, rows: LinearRows, w: Floats, b: float, beta: Floats, f: Floats, combination: Floats | None
) -> Certificate:
    """From f = Xw + b and X'β, each as the core sums it; None stands for an X'β that is not known yet."""
    lengths = np.sqrt(rows.lengths)
    # The bias of rows that were not centred is b − w'c, rounded.
    error = gamma(rows.d + 6) * (lengths * norm_of(w) + abs(b)) + gamma(4) * rows.origin * norm_of(w)
    error += gamma(2) * (np.abs(problem.p) + np.abs(f))
    off, off_error = _difference(rows, w, beta, lengths, combination)
    combined = w - off
    losses, shares, total, worst, box, outward, inward, top, bottom = _core.linear_findings(
        problem.p, problem.lower, problem.upper, problem.d, problem.epsilon, f, error, beta
    )
    norm, energy = inner(w, w), _square(norm_of(combined) + off_error)
    distance = _square(norm_of(off) + off_error)
    total_error = gamma(rows.n) * float(np.abs(beta).sum())
    if problem.bias not in (0, np.inf):
        own, meant = b / problem.bias, problem.bias * total
        wrong = problem.bias * total_error + gamma(2) * (abs(own) + abs(meant))
        norm, energy = norm + own * own, energy + _square(abs(meant) + wrong)
        distance += _square(abs(own - meant) + wrong)
    summed = gamma(rows.n + rows.d + 8)
    primal = (0.5 * norm + losses) * (1 + summed)
    terms = (np.abs(problem.p) + problem.epsilon + 0.5 * problem.d * np.abs(beta)) * np.abs(beta)
    unbalanced = abs(b) * (abs(total) + total_error) if problem.exact_bias else 0.0
    dual = problem.value(beta, energy) - 2 * summed * (float(terms.sum()) + energy) - unbalanced
    gap = (0.5 * distance + shares + unbalanced) * (1 + summed)
    # A β that fits f but not w satisfies every condition except w = X'β. Its violation is what it adds to the gap, as
    # a share of the primal value.
    apart = 0.5 * distance / max(primal, np.finfo(float).tiny) if distance else 0.0
    return Certificate(
        primal=primal,
        dual=dual,
        gap=gap,
        violation=max(apart, top - bottom) if problem.exact_bias else max(apart, top, -bottom),
        kkt={
            **conditions(box, abs(total) if problem.exact_bias else 0.0, outward, inward),
            "w is the combination Σβ_i x_i": float(np.abs(off).max(initial=0.0)),
        },
        proves="optimality",
        worst=worst,
        b=(b,) if problem.bias else (),
    )


def _square(x: float) -> float:
    """x², infinite where `**` would raise an error."""
    return x * x


def _difference(
    rows: LinearRows, w: Floats, beta: Floats, lengths: Floats, combination: Floats | None
) -> tuple[Floats, float]:
    """w − X'β, and a bound on the length of its error."""
    summed, terms = float(np.abs(beta) @ lengths), rows.n + 8
    error = gamma(terms) * summed
    if error <= _LARGEST_ERROR_SHARE * norm_of(w):
        return w - (rows.transposed(beta) if combination is None else combination), error
    hi, lo = rows.doubled_transposed(beta)
    off = (w - hi) - lo
    return off, gamma(4) * norm_of(off) + gamma(terms) ** 2 * summed + gamma(2) * norm_of(lo)
