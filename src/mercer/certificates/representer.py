"""The proof of a kernel machine with any convex loss.

With f = Kc + b, take any points t and g = wℓ′(t). Then −g is a feasible point of the Fenchel dual (with a bias, if
Σg = 0), the Fenchel–Young inequality is tight at t, and with ρ = g + 2λc, which is zero at the optimum,

    primal − dual = Σ w_i [ℓ(f_i) − ℓ(t_i) − ℓ′(t_i)(f_i − t_i)] + ρ'Kρ/4λ,    every term of the sum ≥ 0

In exact arithmetic t = f. Here t is the computed f, and the sum is what its rounding costs. With a bias, two shifts of
t whose Σg have opposite signs, beyond rounding, have a point between them where Σg = 0, since ℓ′ never falls. That is
the dual point: where it lies is not known, but that it is between them is, and that bounds its g.

Another penalty Ω, increasing and convex, lies above its tangent at any r. With G = Σ g_i k(x_i, ·) and the optimum f*,

    primal − dual = the sum + ⟨G, f⟩ + λ[Ω(‖f‖) − Ω(r) + Ω′(r)r] + max(0, ‖G‖ − λΩ′(r))·‖f*‖

which is zero at the optimum for r = ‖f‖, where G = −λΩ′(‖f‖)f/‖f‖. The best r has λΩ′(r) = ‖G‖: then the last term
vanishes and this is Fenchel's dual. Where rounding, or an Ω′ that is bounded as that of ‖f‖, leaves it, ‖f*‖ is
bounded: no loss is negative, so that λΩ(‖f*‖) is at most the primal value. A loss of the values Af has the gradient A'g
by those of f.

This difference is what the primal value may be above the optimum. `gap` is larger: `primal` is an upper and `dual` a
lower bound, and what rounding does to both values does not cancel in their difference.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import Floats, Precision, gamma, inner
from mercer.certificates.certificate import Certificate, Measures
from mercer.certificates.dual import PROOF
from mercer.certificates.least_squares import ABOVE, of_sums
from mercer.gram.gram import Provable
from mercer.losses import is_known_convex
from mercer.penalties import Penalty, is_known_penalty
from mercer.problems.representer import RepresenterProblem

# The relative error of a loss or its derivative at a given float, times a weight.
_LOSS_ERROR = gamma(16)
_EPS, _TINY, _HUGE = float(np.finfo(float).eps), float(np.finfo(float).tiny), 1e100


def certify_representer(
    problem: RepresenterProblem, gram: Provable, c: Floats, b: float, tol: float = 0.0
) -> Certificate:
    """The proof of (c, b), everything recomputed from these alone; as close as it gets if a gap of `tol` depends on it.

    `tol` is a share of the primal value.
    """
    certificate, plain = _certified(problem, gram, c, b, np.float64)
    goal = tol * abs(certificate.primal)
    if gram.levels[-1] != np.float64 and plain <= goal and not certificate.kkt[ABOVE] <= goal:
        certificate, _ = _certified(problem, gram, c, b, gram.levels[-1])
    return certificate


def _certified(
    problem: RepresenterProblem, gram: Provable, c: Floats, b: float, level: Precision
) -> tuple[Certificate, float]:
    """The proof with products of one precision, and the gap as it is computed, without any error."""
    lam, penalty, A = problem.lam, problem.penalty, problem.combine
    summed = of_sums(max(len(c), len(problem.y)))
    u, e = gram.product_bound(c, level=level)
    with np.errstate(over="ignore", invalid="ignore"):
        e_f = e + gamma(4) * (np.abs(u) + abs(b))
        t, e_t = _linear(A, u + b, e_f)
        below, above, shift = _balanced(problem, t)
        # The gradients at the ends of what Af and t can be.
        reach = e_t + shift
        lowest, highest = problem.gradient(t - reach), problem.gradient(t + reach)
        steepest = np.maximum(np.abs(lowest), np.abs(highest)) * (1 + _LOSS_ERROR)
        shares = (highest - lowest + 2 * _LOSS_ERROR * steepest) * reach
        value = problem.value(t)
        off = inner(steepest, e_t) + (_LOSS_ERROR + summed) * abs(value)
        square, e_square = inner(c, u), inner(np.abs(c), e) + summed * inner(np.abs(c), np.abs(u))
        low, norm, high = (_root(square + k * e_square) * (1 + k * gamma(4)) for k in (-1, 0, 1))
        energy = lam * square if problem.squared else lam * float(penalty.value(norm))
        if problem.squared:
            off += lam * e_square
        else:
            off += lam * float(penalty.value(high) - penalty.value(low)) + 2 * _LOSS_ERROR * abs(energy)
        off *= 1 + summed
        # G by its coefficients, and what they miss; of the squared norm G + 2λf, in which nothing large cancels.
        errors = 0.5 * (above - below) + (_LOSS_ERROR + gamma(4)) * (np.abs(below) + np.abs(above))
        g, e_g = _linear(None if A is None else A.T, 0.5 * (below + above), errors)
        # The price of c in the gradient, λΩ′(‖f‖)/‖f‖, and how far it can be from that.
        steepness, slope, e_slope = lam * float(penalty.derivative(norm)), 2 * lam, 0.0
        zero = not (problem.squared or c.any())
        if not problem.squared and not zero:
            slope = e_slope = np.inf
            if low > 0:
                slope = steepness / norm
                e_slope = lam * float(penalty.derivative(high) / low - penalty.derivative(low) / high)
                e_slope = e_slope * (1 + _LOSS_ERROR) + 2 * _LOSS_ERROR * slope
        if problem.squared:
            g, e_g = g + 2 * lam * c, e_g + (_LOSS_ERROR + gamma(4)) * (2 * lam * np.abs(c))
        v, e_v = gram.product_bound(g, level=level)
        length, plain = inner(e_g, gram.reach), inner(g, v)
        off_plain = inner(np.abs(g), e_v) + 2 * inner(e_g, np.abs(v) + e_v)
        off_plain += length * length + summed * inner(np.abs(g), np.abs(v))
        if problem.squared:
            plain, apart = plain / (4 * lam), float(np.maximum(0.0, plain + off_plain)) / (4 * lam)
        else:
            along, sizes = inner(g, u), np.abs(u) + e
            e_along = inner(e_g, sizes) + inner(np.abs(g), e) + summed * inner(np.abs(g) + e_g, sizes)
            steep = _root(plain + off_plain) * (1 + gamma(4))
            most = value + energy + off
            apart = _above_tangent(problem, steep, along + e_along, high, most, _LOSS_ERROR)
            plain = _above_tangent(problem, _root(plain), along, norm, most, 0.0)
        gap = (float(shares.sum()) + apart) * (1 + summed)
        middle, spread = _linear(
            None if A is None else A.T, 0.5 * (lowest + highest), 0.5 * (highest - lowest) + _LOSS_ERROR * steepest
        )
        residual = np.abs(middle + slope * c) + spread + e_slope * np.abs(c)
        residual += 2 * _LOSS_ERROR * (np.abs(middle) + slope * np.abs(c))
        sums = max(abs(float(lowest.sum())), abs(float(highest.sum()))) + summed * float(steepest.sum())
    # Where f = 0 any G that is no steeper than the penalty will do.
    violation = max(0.0, steep - steepness) if zero else float(residual.max(initial=0.0))
    certificate = Certificate(
        primal=value + energy + off,
        dual=value + energy - off - gap,
        gap=gap,
        violation=violation,
        kkt={
            "stationarity": violation,
            "dual feasibility: equality": sums if problem.bias else 0.0,
            ABOVE: gap,
        },
        gap_measures=_proof(gram.positive_definite, problem),
        precision="float64" if is_known_convex(problem.loss) else "float64, the loss as it computes itself",
        b=(b,),
    )
    return certificate, plain


def _root(square: float) -> float:
    """√, of what rounding made negative 0; what is not a number stays so."""
    return float(np.sqrt(np.maximum(0.0, square)))


def _linear(A: Any, x: Floats, error: Floats) -> tuple[Floats, Floats]:
    """Ax and a bound on its error, where x is right up to `error`."""
    if A is None:
        return x, error
    size, longest = abs(A), int(np.bincount(A.nonzero()[0], minlength=1).max())
    return np.asarray(A @ x), np.asarray(
        (1 + gamma(longest + 4)) * (size @ error) + gamma(longest + 4) * (size @ np.abs(x))
    )


def _above_tangent(
    problem: RepresenterProblem, steep: float, along: float, norm: float, most: float, share: float
) -> float:
    """What ⟨G, f⟩ = `along`, ‖G‖ = `steep` and ‖f‖ = `norm` leave between the penalty and its tangent at the best r.

    `most` is the primal value; values of the penalty may be wrong by `share`.
    """
    lam, penalty = problem.lam, problem.penalty
    top, least = float(penalty.value(norm)), np.inf
    for r in (norm, _meets(penalty, steep / lam, norm)):
        value, slope = float(penalty.value(r)), float(penalty.derivative(r))
        total = along + lam * (top - value + slope * r)
        total += (share + gamma(8)) * (abs(along) + lam * (abs(top) + abs(value) + slope * r))
        missing = steep - lam * slope * (1 - share)
        if not missing <= 0:  # a number that overflow left undefined is missing too
            # Of the optimum r*: λΩ(r*) ≤ most, and Ω(r*) ≥ Ω(r) + Ω′(r)(r* − r).
            reach = max(0.0, most / lam - value + share * (abs(value) + most / lam))
            total += missing * (r + reach / (slope * (1 - share))) * (1 + share) if slope > 0 else np.inf
        least = min(least, total)
    return max(0.0, least)


def _meets(penalty: Penalty, slope: float, near: float) -> float:
    """An r where Ω′ reaches this slope, or nearly: any r will do, the best one makes the gap smallest."""
    low, high = 0.0, max(near, _TINY)
    while penalty.derivative(high) < slope and high < _HUGE:
        low, high = high, 16 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if penalty.derivative(middle) < slope else (low, middle)
    return high


def _balanced(problem: RepresenterProblem, f: Floats) -> tuple[Floats, Floats, float]:
    """Two gradients by Af with a dual point between them, and how far from it the points are where they are taken."""
    g = problem.gradient(f)
    if not problem.bias:
        return g, g, 0.0
    summed = of_sums(len(f))
    # The first shift is a rounding of the largest |f|, or of what is nothing beside y where f is 0; the next ones are
    # eight times the one before. Any shift whose two sums pass the test is right; a larger one only widens the gap.
    sizes = [float(np.abs(f).max(initial=0.0)), _EPS * float(np.abs(problem.y).max(initial=0.0)), _TINY]
    shift, step = 0.0, _EPS * max(sizes)
    for _ in range(40):
        below, above = (problem.gradient(f - shift), problem.gradient(f + shift)) if shift else (g, g)
        slack = [(_LOSS_ERROR + summed) * float(np.abs(some).sum()) for some in (below, above)]
        if float(below.sum()) + slack[0] <= 0 <= float(above.sum()) - slack[1]:
            return below, above, shift
        shift, step = step, 8.0 * step
    return g, g, np.inf


def _proof(positive_definite: str, problem: RepresenterProblem) -> Measures:
    """What a gap of zero proves: a loss or penalty of the user's is convex on his word alone."""
    proof = PROOF[positive_definite]
    if proof == "stationarity" or (is_known_convex(problem.loss) and is_known_penalty(problem.penalty)):
        return proof
    if not problem.squared:
        if proof == "optimality":
            return "optimality if loss and penalty are convex and the loss is not negative"
        return "optimality if K is positive semi-definite, loss and penalty are convex and the loss is not negative"
    if proof == "optimality":
        return "optimality if the loss is convex"
    return "optimality if K is positive semi-definite and the loss is convex"


def scale_certificate(certificate: Certificate, factor: float, b: float) -> Certificate:
    """The proof of an objective that is `factor` times the certified one."""
    scaled = {name: factor * getattr(certificate, name) for name in ("primal", "dual", "gap")}
    return replace(certificate, **scaled, b=(b,))
