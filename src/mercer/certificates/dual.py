"""The proof of a dual problem's solution, computed from β alone, without the solver.

With f = u[row] + b_group, r = p − f:

    loss_i = max over t in [lower_i, upper_i] of  r_i t − d_i t²/2
    primal = ½β'Kβ + Σ loss_i + Σ_g b_g·total_g
    dual   = p'β − ½β'(K + diag d)β
    primal − dual = Σ [loss_i − (β_i r_i − d_iβ_i²/2)] + Σ_g b_g·(total_g − Σβ),  every term of the first sum ≥ 0

Sums that miss their totals, if only by rounding, belong to no feasible point. So `dual`, and with it `gap`, is that of
a feasible point beside β, where one variable of each group, or several, have taken what is missing
(src/core/solve/equality.hpp). A β outside of its box proves nothing: its gap is infinite.

For a positive semi-definite K no feasible point has a larger dual value than `primal`, so the gap bounds how far β
is from the optimum. For an indefinite K the same numbers measure stationarity only, and `gap_measures` says so.

Each u_i comes with a bound e_i on its rounding errors (mercer/places/rounding.py). `violation`, `gap` and `primal` are
the largest values that any u within these bounds gives, `dual` is the smallest: rounding cannot make them too good.
Rows with a coefficient are computed in float64, because β'Kβ has their errors. Other rows that could matter are
recomputed with more precision until they do not, or until there is no more (docs/certificate.md).
"""

from __future__ import annotations

from collections.abc import Callable
from operator import mul

import numpy as np

from mercer import _core
from mercer.certificates.certificate import Certificate, Measures, conditions
from mercer.places.ball import Ball, exact
from mercer.places.gram import BoundedProducts
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Flags, Floats, Indices, Precision

# What a gap of zero proves, by what is known of the kernel matrix.
PROOF: dict[str, Measures] = {
    "yes": "optimality",
    "no": "stationarity",
    "depends": "optimality if K is positive semi-definite",
    "unknown": "optimality if K is positive semi-definite",
}

# From this many rows on a float32 pass over the rows that cannot matter saves time.
_ROWS_FOR_FLOAT32 = 4096
# Up to this share of coefficients that changed since the last certificate, the next one begins with its sums: rows near
# the margin may have to be computed again.
_FEW_SHARE = 0.25
# A bound on rounding below this share of tol is small enough.
NEGLIGIBLE_SHARE = 0.05
# A row's error counts in `primal` and `dual` with its coefficient, and so does a violation of tol in the gap: up to
# this share of tol the error is the smaller of the two.
_COUNTED_SHARE = 0.25
_EPS = float(np.finfo(float).eps)
# Bounds, totals and d of a problem are products of C, weights, their sums, ν and the like, and of factors that balance
# classes: what the caller stated differs from them by no more than so many roundings.
STATED_ROUNDINGS = 16

# u with its errors on some rows, or all, at one of the levels of `BoundedProducts.levels`.
BoundedProduct = Callable[[Indices | None, Precision], Ball]


class LastSums:
    """u = Kβ of a solve's last certificate and its bounds: the next one may begin there, if few coefficients changed.

    K times the change is computed and bounded like any other product, and both errors count.
    """

    def __init__(self) -> None:
        self._kept: tuple[Floats, Ball, str] | None = None

    def keep(self, coefficients: Floats, u: Ball, words: str) -> None:
        self._kept = coefficients.copy(), Ball(u.value.copy(), u.error.copy()), words

    def moved_to(self, coefficients: Floats, gram: BoundedProducts) -> tuple[Ball, str] | None:
        """u at other coefficients, and its precision in words; None if too many differ."""
        if self._kept is None:
            return None
        last, u, words = self._kept
        change = coefficients - last
        count = int(np.count_nonzero(change))
        if count > _FEW_SHARE * np.count_nonzero(coefficients):
            return None
        moved = _coarse_and_fine(
            lambda rows, level: gram.product_bound(change, rows, level),
            coefficients != 0 if coarse_pass(gram) else np.ones(gram.n, dtype=np.bool_),
        )
        reach = gram.entry_bounds
        # The differences of coefficients were rounded once, and so is the sum of both products.
        off = exact(reach).inner(exact(np.abs(change)).rounded().error)
        u = u + moved + exact(reach) * Ball.within(off.high)
        if coarse_pass(gram):  # a row that has a coefficient only now may be known in float32 alone: it is not known
            u.error[(coefficients != 0) & (last == 0)] = np.inf
        return u, f"{words}, then {count} coefficients changed"


def certify_dual(
    problem: DualProblem, gram: BoundedProducts, beta: Floats, tol: float = 0.0, last: LastSums | None = None
) -> tuple[Certificate, Floats]:
    """The certificate of β, and the u = Kβ that it rests on: recomputed, or the sums of the `last` one and a change."""
    coefficients = problem.row_coefficients(beta, gram.n)

    def counted() -> Flags:
        up, low = problem.movable(beta)
        counted: Flags = coefficients != 0
        counted[problem.row[up & low]] = True
        return counted

    u, precision = bounded_u(
        gram,
        lambda rows, level: gram.product_bound(coefficients, rows, level),
        lambda u: _undecided(problem, beta, u, tol),
        counted,
        None if last is None else last.moved_to(coefficients, gram),
    )
    if last is not None:
        last.keep(coefficients, u, precision)
    return certificate_of(problem, beta, u, gram.entry_bounds, PROOF[gram.positive_definite], precision), u.value


def certificate_of(
    problem: DualProblem, beta: Floats, u: Ball, reach: Floats, gap_measures: Measures, precision: str
) -> Certificate:
    """The certificate of β with a u = Kβ that was computed from it; |k_ij| is at most reach_i·reach_j."""
    coefficients = problem.row_coefficients(beta, len(u.value))
    (
        highest, shares, worst, violation, box, outward, inward, equality, to_gap, to_dual,
        energy, gain, curved, size, wrong, b,
    ) = _core.dual_findings(
        problem.p, problem.lower, problem.upper, problem.d, problem.row, problem.group, problem.totals,
        beta, coefficients, u.value, u.error, reach,
    )  # fmt: skip
    if problem.twins:  # a machine keeps the sums of the two, which are rounded
        equality += _EPS * float(np.abs(coefficients).sum())
    # What rounding can do to the core's sums, as a share of their sizes: twice nu. The stated problem has losses that
    # are larger by the share γ at most. Its box holds (1 − γ)β, the dual value of which is at least (1 − γ) times as
    # large: no more is lost than γ times the gain, or of an indefinite K the energy.
    summed = _EPS * (len(beta) + STATED_ROUNDINGS // 2)
    primal = 0.5 * energy + highest
    dual = gain - 0.5 * energy - 0.5 * curved - to_dual
    if problem.totals.any():
        offsets = sum(map(mul, b, problem.totals.tolist()))
        primal += offsets + summed * sum(map(abs, map(mul, b, problem.totals.tolist())))
        equality, lost = _with_stated_totals(problem, beta, u, reach, equality)
        dual -= lost
    return Certificate(
        primal=primal + 0.5 * wrong + summed * (size + highest),
        dual=dual - 0.5 * wrong - summed * (size + curved),
        gap=shares,  # and at least the difference of the two, which has all errors
        violation=violation if to_gap < np.inf else np.inf,
        kkt=conditions(box, equality, outward, inward),
        gap_measures=gap_measures,
        precision=precision,
        worst=worst,
        b=b,
    )


def _with_stated_totals(
    problem: DualProblem, beta: Floats, u: Ball, reach: Floats, equality: float
) -> tuple[float, float]:
    """The most that the stated totals are missed by, and what (1 − γ)β with these takes from the dual value.

    What (1 − γ)β lacks of a group's stated total, no more than 2γ of it, goes to a variable that has room for it, or to
    all that have. Its gradient is moved by what all moves add up to, of which γ times all coefficients are a part.
    """
    most = np.abs(problem.totals) * (1.01 * STATED_ROUNDINGS * _EPS)
    equality += float(np.maximum.reduce(most))
    length, lost = reach[problem.row], 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        slope = np.abs(problem.gradient(beta, u.value)) + u.error[problem.row]
        slope += len(most) * equality * (length * np.maximum.reduce(length, initial=0.0) + problem.d)
        enough = np.minimum(beta - problem.lower, problem.upper - beta) >= equality
        for g, amount in enumerate(most.tolist()):
            mine = problem.group == g
            least = float(np.minimum.reduce(slope[mine & enough], initial=np.inf))
            lost += amount * (least if least < np.inf else float(np.maximum.reduce(slope[mine], initial=0.0)))
    return equality, lost


def gradient_errors(problem: DualProblem, beta: Floats, u: Ball) -> Floats:
    """How far each h = p − u − dβ can be from the true one."""
    sizes = np.abs(problem.p) + np.abs(u.value[problem.row]) + np.abs(problem.d * beta)
    return np.asarray(u.error[problem.row] + 2 * _EPS * sizes)


def coarse_pass(gram: BoundedProducts) -> bool:
    """Whether a certificate computes the rows that cannot matter in float32."""
    return gram.n > _ROWS_FOR_FLOAT32 and gram.levels[0] == np.float32


def bounded_u(
    gram: BoundedProducts,
    product: BoundedProduct,
    undecided: Callable[[Ball], Flags],
    counted_rows: Callable[[], Flags],
    begun: tuple[Ball, str] | None = None,
) -> tuple[Ball, str]:
    """u = Kβ with a bound on each row's error, and the precision in words; from where it was `begun`, if it was.

    Rows that are `undecided` go to the next level of precision. The rows that are counted in any case, because they are
    free or their errors are in β'Kβ, are spared the float32 pass.
    """
    levels = gram.levels
    if begun is not None:
        u, words = begun
        rows = np.flatnonzero(undecided(u))
        u.put(rows, product(rows, np.float64))
        levels = levels[levels.index(np.float64) :]
    else:
        fine = counted_rows() if coarse_pass(gram) else np.ones(gram.n, dtype=np.bool_)
        if levels[0] == np.float32 and fine.all():
            levels = levels[1:]
        if levels[0] != np.float32:
            u = product(None, levels[0])
            words = levels[0] if isinstance(levels[0], str) else "float64"  # stored values have a level of their own
        else:
            u = _coarse_and_fine(product, fine)
            rows = np.flatnonzero(undecided(u) & ~fine)
            u.put(rows, product(rows, np.float64))
            levels = levels[1:]
            words = f"float32 with float64 sums, {np.count_nonzero(fine) + len(rows)} rows in float64"
    for level in levels[1:]:
        rows = np.flatnonzero(undecided(u))
        if len(rows) == 0:
            break
        u.put(rows, product(rows if len(rows) < gram.n else None, level))
        words += f", {len(rows)} rows more exactly"
    return u, words


def _coarse_and_fine(product: BoundedProduct, fine: Flags) -> Ball:
    """u of all rows, computed in float64 where they are to be `fine`, and in float32 elsewhere."""
    if fine.all():
        return product(None, np.float64)
    rows, others = np.flatnonzero(fine), np.flatnonzero(~fine)
    coarse = product(others, np.float32)
    u = Ball(*(np.empty((len(fine), *part.shape[1:])) for part in coarse))
    u.put(others, coarse)
    u.put(rows, product(rows, np.float64))
    return u


def _undecided(problem: DualProblem, beta: Floats, u: Ball, tol: float) -> Flags:
    """The rows whose errors are not negligible: they might hide that a variable should move, or widen the gap."""
    rows, error = np.zeros(len(u.value), dtype=np.bool_), gradient_errors(problem, beta, u)
    if error.max(initial=0.0) <= NEGLIGIBLE_SHARE * tol:
        return rows
    large = ~(error <= NEGLIGIBLE_SHARE * tol)  # true for NaN
    h = problem.gradient(beta, u.value)
    b = problem.violation_and_offsets(beta, h)[1]
    residual = h - (b[problem.group] if len(b) else 0.0)
    up, low = problem.movable(beta)
    moves = (up & ~(residual + error <= 0)) | (low & ~(residual - error >= 0))  # true for NaN
    rows[problem.row[moves & large]] = True
    rows |= (problem.row_coefficients(beta, len(rows)) != 0) & ~(u.error <= _COUNTED_SHARE * tol)
    return rows
