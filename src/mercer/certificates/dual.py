"""Certificates of dual problems, computed from β alone, without the solver (docs/certificate.md, "The bounds").

With f = u[row] + b_group, r = p − f:

    loss_i = max over t in [lower_i, upper_i] of  r_i t − d_i t²/2
    primal = ½β'Kβ + Σ loss_i + Σ_g b_g·total_g
    dual   = p'β − ½β'(K + diag d)β
    primal − dual = Σ [loss_i − (β_i r_i − d_iβ_i²/2)] + Σ_g b_g·(total_g − Σβ),  every term of the first sum ≥ 0

A β whose sums miss their totals, if only by rounding, is not feasible. So `dual`, and with it `gap`, belongs to a
feasible point near β, where one variable of each group, or several of them, have moved until the sums are right
(src/core/solve/equality.hpp). A β outside its box proves nothing: its gap is infinite.

For a positive semi-definite K no feasible point has a larger dual value than `primal`, so the gap bounds how far β
is from the optimum. For an indefinite K the same numbers measure stationarity only, and `gap_measures` says so.

Each u_i comes with a bound e_i on its rounding errors (mercer/places/rounding.py). `violation`, `gap` and `primal` are
the largest values that any u within these bounds gives, `dual` is the smallest: rounding cannot make them too good.
Rows with a nonzero coefficient are computed in float64, because their errors enter β'Kβ. Other rows whose errors could
matter are recomputed in higher and higher precision, until they cannot matter or no precision is left
(docs/certificate.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import mul

import numpy as np

from mercer import _core
from mercer.certificates.certificate import Certificate, ProvenClaim, kkt_residuals
from mercer.places.ball import Ball, exact
from mercer.places.gram import BoundedProducts
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Flags, Floats, Indices, Precision

# Claim that a gap of zero proves, by whether the kernel matrix is positive definite.
PROOF: dict[str, ProvenClaim] = {
    "yes": "optimality",
    "no": "stationarity",
    "depends": "optimality if K is positive semi-definite",
    "unknown": "optimality if K is positive semi-definite",
}

# From this many rows on a float32 pass over the rows that cannot matter saves time.
_ROWS_FOR_FLOAT32 = 4096
# If at most this share of the coefficients changed since the last certificate, the next one starts from its u: rows
# near the margin may have to be computed again.
_FEW_SHARE = 0.25
# A bound on rounding below this share of tol is small enough.
NEGLIGIBLE_SHARE = 0.05
# Largest error of a row with a nonzero coefficient, as a share of tol. This error and a violation of tol both enter the
# gap times the coefficient, so that the error is the smaller part.
_ERROR_SHARE = 0.25
_EPS = float(np.finfo(float).eps)
# Roundings between the numbers that the caller stated and the bounds, totals and d of a problem. These are products of
# C, weights, their sums, ν and factors that balance classes.
STATED_ROUNDINGS = 16

# u with its errors on some rows, or all, at one of the levels of `BoundedProducts.levels`.
BoundedProduct = Callable[[Indices | None, Precision], Ball]


class LastSums:
    """u = Kβ of the last certificate of a solve, from which the next one starts if few coefficients changed.

    K times the change is computed and bounded like any other product, and its errors are added to those of the last u.
    """

    def __init__(self) -> None:
        self._last_product: tuple[Floats, Ball, str] | None = None

    def keep(self, coefficients: Floats, u: Ball, words: str) -> None:
        """Store a copy of u, its coefficients and its precision in words."""
        self._last_product = coefficients.copy(), Ball(u.value.copy(), u.error.copy()), words

    def moved_to(self, coefficients: Floats, gram: BoundedProducts) -> tuple[Ball, str] | None:
        """Return u at other coefficients, and its precision in words; None if too many differ."""
        if self._last_product is None:
            return None
        last_coefficients, u, words = self._last_product
        change = coefficients - last_coefficients
        count = int(np.count_nonzero(change))
        if count > _FEW_SHARE * np.count_nonzero(coefficients):
            return None
        change_of_u = _coarse_and_fine(
            lambda rows, level: gram.product_bound(change, rows, level),
            coefficients != 0 if has_float32_pass(gram) else np.ones(gram.n, dtype=np.bool_),
        )
        entry_bounds = gram.entry_bounds
        # The differences of coefficients were rounded once, and so is the sum of both products.
        change_error = exact(entry_bounds).inner(exact(np.abs(change)).rounded().error)
        u = u + change_of_u + exact(entry_bounds) * Ball.within(change_error.high)
        if has_float32_pass(gram):  # a row without a coefficient may be float32: an infinite error has it recomputed
            u.error[(coefficients != 0) & (last_coefficients == 0)] = np.inf
        return u, f"{words}, updated for {count} changed coefficients"


def certify_dual(
    problem: DualProblem, gram: BoundedProducts, beta: Floats, tol: float = 0.0, last: LastSums | None = None
) -> tuple[Certificate, Floats]:
    """Certify β, and return the u = Kβ that the certificate uses: recomputed, or updated from that of `last`."""
    coefficients = problem.row_coefficients(beta, gram.n)

    def counted_rows() -> Flags:
        up, low = problem.movable(beta)
        counted: Flags = coefficients != 0
        counted[problem.row[up & low]] = True
        return counted

    u, precision = bounded_u(
        gram,
        lambda rows, level: gram.product_bound(coefficients, rows, level),
        lambda u: _undecided(problem, beta, u, tol),
        counted_rows,
        None if last is None else last.moved_to(coefficients, gram),
    )
    if last is not None:
        last.keep(coefficients, u, precision)
    return certificate_of(problem, beta, u, gram.entry_bounds, PROOF[gram.positive_definite], precision), u.value


def certify_several(
    problems: Sequence[DualProblem], gram: BoundedProducts, betas: Sequence[Floats], tol: float = 0.0
) -> list[tuple[Certificate, Floats]]:
    """Certify a β of each of several problems on the same K, as `certify_dual` does, and return each u = Kβ.

    Kernel values are computed once for all of them, without a pass in float32: float64 values for all problems take
    little longer than those for one.
    """
    coefficients = [problem.row_coefficients(beta, gram.n) for problem, beta in zip(problems, betas, strict=True)]
    levels = tuple(level for level in gram.levels if level != np.float32)
    values, errors = gram.product_bound(np.column_stack(coefficients), None, levels[0])

    def proof_of(k: int) -> tuple[Certificate, Floats]:
        problem, beta, u = problems[k], betas[k], Ball(values[:, k].copy(), errors[:, k].copy())
        words = _sharpen(
            u,
            _level_words(levels[0]),
            lambda rows, level: gram.product_bound(coefficients[k], rows, level),
            lambda u: _undecided(problem, beta, u, tol),
            levels[1:],
        )
        return certificate_of(problem, beta, u, gram.entry_bounds, PROOF[gram.positive_definite], words), u.value

    return [proof_of(k) for k in range(len(problems))]


def certificate_of(
    problem: DualProblem, beta: Floats, u: Ball, entry_bounds: Floats, gap_measures: ProvenClaim, precision: str
) -> Certificate:
    """Return the certificate of β with the given u = Kβ; |k_ij| is at most entry_bounds_i·entry_bounds_j."""
    coefficients = problem.row_coefficients(beta, len(u.value))
    (
        highest_losses, shares, worst, violation, box, outward, inward, equality, to_gap, to_dual,
        energy, gain, ridge_energy, size, energy_error, b,
    ) = _core.dual_findings(
        problem.p, problem.lower, problem.upper, problem.d, problem.row, problem.group, problem.totals,
        beta, coefficients, u.value, u.error, entry_bounds,
    )  # fmt: skip
    if problem.twins:  # a machine stores the rounded sum of a sample's two variables
        equality += _EPS * float(np.abs(coefficients).sum())
    # Rounding changes the core's sums by no more than n·eps times their sizes. The losses of the stated problem, whose
    # bounds are not rounded, are larger by the share γ at most. Its box contains (1 − γ)β, whose dual value is at least
    # (1 − γ) times as large: it is lower by no more than γ times the gain, or γ times the energy if K is indefinite
    # (docs/certificate.md, "Bounds that were rounded").
    rounding_share = _EPS * (len(beta) + STATED_ROUNDINGS // 2)
    primal = 0.5 * energy + highest_losses
    dual = gain - 0.5 * energy - 0.5 * ridge_energy - to_dual
    if problem.totals.any():
        offsets = sum(map(mul, b, problem.totals.tolist()))
        primal += offsets + rounding_share * sum(map(abs, map(mul, b, problem.totals.tolist())))
        equality, totals_cost = _cost_of_stated_totals(problem, beta, u, entry_bounds, equality)
        dual -= totals_cost
    return Certificate(
        primal=primal + 0.5 * energy_error + rounding_share * (size + highest_losses),
        dual=dual - 0.5 * energy_error - rounding_share * (size + ridge_energy),
        gap=shares,  # Certificate raises it to primal − dual, which includes all rounding errors
        violation=violation if to_gap < np.inf else np.inf,
        kkt=kkt_residuals(box, equality, outward, inward),
        gap_measures=gap_measures,
        precision=precision,
        worst=worst,
        b=b,
    )


def _cost_of_stated_totals(
    problem: DualProblem, beta: Floats, u: Ball, entry_bounds: Floats, equality: float
) -> tuple[float, float]:
    """Return the residual of the stated totals, and the dual value that moving (1 − γ)β to them costs at most.

    (1 − γ)β misses a group's stated total by no more than 2γ of it. A variable far enough from its bounds takes the
    difference, or all variables take parts of it. All moves together, including those of the factor 1 − γ, change the
    gradient of that variable.
    """
    deviations = np.abs(problem.totals) * (1.01 * STATED_ROUNDINGS * _EPS)
    equality += float(np.maximum.reduce(deviations))
    length, cost = entry_bounds[problem.row], 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        slope = np.abs(problem.gradient(beta, u.value)) + u.error[problem.row]
        slope += len(deviations) * equality * (length * np.maximum.reduce(length, initial=0.0) + problem.d)
        has_room = np.minimum(beta - problem.lower, problem.upper - beta) >= equality
        for g, amount in enumerate(deviations.tolist()):
            in_group = problem.group == g
            least = float(np.minimum.reduce(slope[in_group & has_room], initial=np.inf))
            cost += amount * (least if least < np.inf else float(np.maximum.reduce(slope[in_group], initial=0.0)))
    return equality, cost


def gradient_errors(problem: DualProblem, beta: Floats, u: Ball) -> Floats:
    """Return bounds on the errors of the gradient h = p − u − dβ."""
    sizes = np.abs(problem.p) + np.abs(u.value[problem.row]) + np.abs(problem.d * beta)
    return np.asarray(u.error[problem.row] + 2 * _EPS * sizes)


def has_float32_pass(gram: BoundedProducts) -> bool:
    """Return whether a certificate begins in float32 with the rows whose errors hardly matter."""
    return gram.n > _ROWS_FOR_FLOAT32 and gram.levels[0] == np.float32


def bounded_u(
    gram: BoundedProducts,
    product: BoundedProduct,
    undecided: Callable[[Ball], Flags],
    counted_rows: Callable[[], Flags],
    start: tuple[Ball, str] | None = None,
) -> tuple[Ball, str]:
    """Return u = Kβ with a bound on each row's error, and the precision in words.

    `start` is an earlier u with its precision in words. Rows that are `undecided` are recomputed at the next level of
    precision. `counted_rows` marks the rows that need float64 in any case, because their variables are free or their
    errors enter β'Kβ; they skip the float32 pass.
    """
    levels = gram.levels
    if start is not None:
        u, words = start
        rows = np.flatnonzero(undecided(u))
        u.put(rows, product(rows, np.float64))
        levels = levels[levels.index(np.float64) :]
    else:
        fine = counted_rows() if has_float32_pass(gram) else np.ones(gram.n, dtype=np.bool_)
        if levels[0] == np.float32 and fine.all():
            levels = levels[1:]
        if levels[0] != np.float32:
            u = product(None, levels[0])
            words = _level_words(levels[0])
        else:
            u = _coarse_and_fine(product, fine)
            rows = np.flatnonzero(undecided(u) & ~fine)
            u.put(rows, product(rows, np.float64))
            levels = levels[1:]
            words = f"float32 with float64 sums, {np.count_nonzero(fine) + len(rows)} rows in float64"
    return u, _sharpen(u, words, product, undecided, levels[1:])


def _sharpen(
    u: Ball,
    words: str,
    product: BoundedProduct,
    undecided: Callable[[Ball], Flags],
    levels: Sequence[Precision],
) -> str:
    """Recompute the undecided rows of u at better and better levels, and return the precision in words."""
    for level in levels:
        rows = np.flatnonzero(undecided(u))
        if len(rows) == 0:
            break
        u.put(rows, product(rows if len(rows) < len(u.value) else None, level))
        words += f", {len(rows)} rows computed more accurately"
    return words


def _level_words(level: Precision) -> str:
    """Return a level of `BoundedProducts.levels` in words: stored values have a level of their own."""
    return level if isinstance(level, str) else "float64"


def _coarse_and_fine(product: BoundedProduct, fine: Flags) -> Ball:
    """Return u of all rows, computed in float64 for the `fine` rows and in float32 for the others."""
    if fine.all():
        return product(None, np.float64)
    rows, others = np.flatnonzero(fine), np.flatnonzero(~fine)
    coarse = product(others, np.float32)
    u = Ball(*(np.empty((len(fine), *part.shape[1:])) for part in coarse))
    u.put(others, coarse)
    u.put(rows, product(rows, np.float64))
    return u


def _undecided(problem: DualProblem, beta: Floats, u: Ball, tol: float) -> Flags:
    """Mark the rows whose errors matter: they may hide that a variable should move, or widen the gap."""
    rows, error = np.zeros(len(u.value), dtype=np.bool_), gradient_errors(problem, beta, u)
    if error.max(initial=0.0) <= NEGLIGIBLE_SHARE * tol:
        return rows
    is_large = ~(error <= NEGLIGIBLE_SHARE * tol)  # true for NaN
    h = problem.gradient(beta, u.value)
    b = problem.violation_and_offsets(beta, h)[1]
    residual = h - (b[problem.group] if len(b) else 0.0)
    up, low = problem.movable(beta)
    may_move = (up & ~(residual + error <= 0)) | (low & ~(residual - error >= 0))  # true for NaN
    rows[problem.row[may_move & is_large]] = True
    rows |= (problem.row_coefficients(beta, len(rows)) != 0) & ~(u.error <= _ERROR_SHARE * tol)
    return rows
