"""Certificates of kernel machines with any convex loss.

With f = Kc + b, take any points t and g = wℓ′(t). Then −g is a feasible point of the Fenchel dual (with a bias, if
Σg = 0), the Fenchel–Young inequality is tight at t, and with ρ = g + 2λc, which is zero at the optimum,

    primal − dual = Σ w_i [ℓ(f_i) − ℓ(t_i) − ℓ′(t_i)(f_i − t_i)] + ρ'Kρ/4λ,    every term of the sum ≥ 0

In exact arithmetic t = f. Here t is the computed f, and the sum is the cost of its rounding. With a bias, take two
shifts of t whose Σg have opposite signs beyond rounding: since ℓ′ never falls, Σg = 0 at a point between them. This is
the dual point. Its exact place is not known, but the g of both shifts bound its g.

Another penalty Ω, increasing and convex, lies above its tangent at any r. With G = Σ g_i k(x_i, ·) and the optimum f*,

    primal − dual = Σ w_i[…] + ⟨G, f⟩ + λ[Ω(‖f‖) − Ω(r) + Ω′(r)r] + max(0, ‖G‖ − λΩ′(r))·‖f*‖

which is zero at the optimum for r = ‖f‖, where G = −λΩ′(‖f‖)f/‖f‖. The best r has λΩ′(r) = ‖G‖: then the last term
vanishes and the dual is Fenchel's. Where rounding, or a bounded Ω′ such as that of ‖f‖, leaves a last term, ‖f*‖ has a
bound: no loss is negative, so that λΩ(‖f*‖) is at most the primal value. A loss of the values Af has the gradient A'g
with respect to f.

A loss with corners is given with its own dual point: any g, moved into the range of subgradients and, with a bias, to
Σg = 0. If g_i is a subgradient at some t_i that no better point hides, its term is at most (g_i − s)(t_i − f_i) for any
subgradient s at f_i: no conjugate is needed, only points beyond t_i, where the subgradients have passed g_i.

This difference bounds how far the primal value is above the optimum. `gap` is larger: `primal` is an upper and `dual` a
lower bound, and the rounding errors of both values do not cancel in their difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.certificates.certificate import Certificate, ProvenClaim
from mercer.certificates.dual import PROOF
from mercer.certificates.least_squares import SUBOPTIMALITY
from mercer.places.ball import Ball, exact, rounded_up
from mercer.places.gram import BoundedProducts
from mercer.problems.dual_problem import DualProblem
from mercer.problems.losses import has_corners, is_known_convex
from mercer.problems.penalties import Penalty, is_known_penalty
from mercer.problems.representer import RepresenterProblem
from mercer.samples.arrays import Floats, Precision, gamma, inner

# Roundings of a loss or its derivative at a given float, times a weight.
_LOSS_ROUNDINGS = 16
_EPS, _TINY, _HUGE = float(np.finfo(float).eps), float(np.finfo(float).tiny), 1e100
# Doublings of the distance at which the subgradients have passed g: from rounding to 2²⁰ times the largest value.
_DOUBLINGS = 72


def certify_representer(
    problem: RepresenterProblem,
    gram: BoundedProducts,
    c: Floats,
    b: float,
    tol: float = 0.0,
    g: Floats | None = None,
) -> Certificate:
    """Certify (c, b), from which everything is recomputed; g is a dual point for a loss with corners, wℓ′ by default.

    Products have the highest precision if only rounding errors keep the gap above `tol` times the primal value.
    """
    certificate, computed_gap = _certified(problem, gram, c, b, np.float64, g)
    goal = tol * abs(certificate.primal)
    if gram.levels[-1] != np.float64 and computed_gap <= goal and not certificate.kkt[SUBOPTIMALITY] <= goal:
        certificate, _ = _certified(problem, gram, c, b, gram.levels[-1], g)
    return certificate


def _certified(
    problem: RepresenterProblem, gram: BoundedProducts, c: Floats, b: float, level: Precision, g: Floats | None
) -> tuple[Certificate, float]:
    """Return the certificate with products of one precision, and the gap as computed, without bounds on rounding."""
    lam, penalty, A = problem.lam, problem.penalty, problem.combine
    transposed = None if A is None else A.T
    u, n = gram.product_bound(c, level=level), len(problem.y)
    with np.errstate(over="ignore", invalid="ignore"):
        t = _apply_matrix(A, u + b)  # Af
        # 1. Gradients at both ends of the interval that holds Af and the dual point, and all gradients between them.
        #    Computing an end rounds it; gamma(2) allows for that.
        has_corner = has_corners(problem.loss)
        below, above, shift = (t.value, t.value, 0.0) if has_corner else _enclosing_gradients(problem, t.value)
        reach = rounded_up(t.error + shift + gamma(2) * np.abs(t.value), 4)
        slopes = _enclosing_balls(problem.gradient(t.value - reach), problem.gradient(t.value + reach))
        if has_corner:
            dual, terms = _corner_terms(problem, t.value, reach, slopes, g)
        else:
            dual, terms = _enclosing_balls(below, above), 2 * slopes.error * reach
        # 2. The primal value at Af, which is within t.error of the t where the losses are computed.
        losses = problem.weight * problem.loss.value(problem.y, t.value)
        change_of_losses = np.add.reduce((np.abs(slopes.value) + slopes.error) * t.error)
        sum_error = gamma(n + _LOSS_ROUNDINGS + 1) * np.add.reduce(np.abs(losses))
        risk = Ball(float(np.add.reduce(losses)), float(rounded_up(change_of_losses + sum_error, n + 4)))
        square = u.inner(c)
        norm = exact(0.0) if problem.squared else square.sqrt()
        energy = lam * (square if problem.squared else _ball_of_increasing(penalty.value, norm))
        primal = risk + energy
        # 3. G = Σ g_i k(x_i, ·), or G + 2λf for the squared norm, which avoids a difference of large numbers, and its
        #    squared length: the value is that of the computed g, and the error covers every g in its ball.
        G, penalty_part = _apply_matrix(transposed, dual), 2 * lam * c
        if problem.squared:
            G = _add_penalty_part(G, penalty_part)
        v = gram.product_bound(G.value, level=level)
        computed_square = v.inner(G.value)
        error_length, cross_error = inner(G.error, gram.entry_bounds), inner(G.error, np.abs(v.value) + v.error)
        square_length = computed_square + Ball.within(
            rounded_up(2 * cross_error + error_length * error_length, 2 * len(c) + 8, error_length)
        )
        if problem.squared:
            distance, computed_gap = square_length.positive() / (4 * lam), computed_square.value / (4 * lam)
        else:
            steepness = lam * _ball_of_increasing(penalty.derivative, norm)
            values = exact(computed_square.value).sqrt(), exact(inner(G.value, u.value)), exact(norm.value)
            distance = _distance_above_tangent(problem, square_length.sqrt(), G.inner(u), norm, primal)
            computed_gap = _distance_above_tangent(problem, *values, primal).value
        gap = rounded_up(float(np.add.reduce(terms)) + distance.high, n + 4)
        computed_gap += float(np.add.reduce(terms)) if has_corner else 0.0
        # 4. The residual of stationarity, A'g + λΩ′(‖f‖)/‖f‖·c.
        residual = _apply_matrix(transposed, dual if has_corner else slopes)
        residual = _add_penalty_part(residual, penalty_part) if problem.squared else residual + steepness / norm * c
        equality = (dual if has_corner else slopes).sum().size if problem.bias else 0.0
    slack = float(np.maximum.reduce(terms)) if has_corner else 0.0
    is_zero = not (problem.squared or c.any())
    # At f = 0, every G with ‖G‖ ≤ λΩ′(0) is stationary.
    violation = (square_length.sqrt() - steepness).positive().high if is_zero else _largest(residual)
    certificate = Certificate(
        primal=primal.high,
        dual=(primal - gap).low,
        gap=gap,
        violation=max(violation, slack),
        kkt={
            "stationarity": violation,
            "dual feasibility: equality": equality,
            **({"Fenchel–Young inequality": slack} if has_corner else {}),
            SUBOPTIMALITY: gap,
        },
        gap_measures=_proof(gram.positive_definite, problem),
        precision="float64" if is_known_convex(problem.loss) else "float64, the loss as it computes itself",
        b=(b,),
    )
    return certificate, float(computed_gap)


def _computed_balls(values: Any) -> Ball:
    """Return balls around computed values or derivatives of a loss or a penalty, which may include a weight."""
    return exact(values).rounded(_LOSS_ROUNDINGS)


def _enclosing_balls(low: Floats, high: Floats) -> Ball:
    """Return balls that contain all values of an increasing function between its computed values `low` and `high`.

    The radius is half the difference of the two, plus their roundings and four roundings of the middle.
    """
    middle, sizes = 0.5 * low + 0.5 * high, np.maximum(np.abs(low), np.abs(high))
    return Ball(middle, rounded_up(0.5 * (high - low) + gamma(_LOSS_ROUNDINGS + 4) * sizes, 4))


def _largest(x: Ball) -> float:
    """Return an upper bound on the largest absolute value."""
    return float(rounded_up(np.maximum.reduce(np.abs(x.value) + x.error, initial=0.0), 1))


def _add_penalty_part(x: Ball, penalty_part: Floats) -> Ball:
    """Return x + 2λc, where 2λc has one rounding and the sum another."""
    value = x.value + penalty_part
    return Ball(value, rounded_up(x.error + gamma(1) * (np.abs(penalty_part) + np.abs(value)), 4))


def _ball_of_increasing(function: Callable[[Any], Any], argument: Ball) -> Ball:
    """Return the ball of an increasing function, such as a penalty or its derivative, at a number ≥ 0."""
    low, high = (_computed_balls(float(function(end))) for end in (max(argument.low, 0.0), argument.high))
    return Ball.between(low.low, high.high)


def _apply_matrix(A: Any, x: Ball) -> Ball:
    """Return Ax, or x if A is None."""
    return x if A is None else x.transformed(A)


def _distance_above_tangent(
    problem: RepresenterProblem, gradient_norm: Ball, inner_product: Ball, norm: Ball, primal: Ball
) -> Ball:
    """Return ⟨G, f⟩ plus the penalty's distance from its tangent at the best r.

    `gradient_norm` is ‖G‖, and `inner_product` is ⟨G, f⟩.
    """
    lam, penalty = problem.lam, problem.penalty
    top, least = _ball_of_increasing(penalty.value, norm), Ball.within(np.inf)
    for r in (float(norm.value), _radius_of_slope(penalty, float(gradient_norm.high) / lam, float(norm.value))):
        value, slope = (_computed_balls(float(function(r))) for function in (penalty.value, penalty.derivative))
        total = inner_product + lam * (top - value + slope * r)
        slope_excess = (gradient_norm - lam * slope).positive()
        if slope_excess.high > 0:
            # The norm r* of the optimum: λΩ(r*) is at most the primal value, and Ω(r*) ≥ Ω(r) + Ω′(r)(r* − r).
            total = total + slope_excess * (r + (primal / lam - value).positive() / slope)
        if total.high < least.high:
            least = total
    return least.positive()


def _radius_of_slope(penalty: Penalty, slope: float, start: float) -> float:
    """Find an r where Ω′(r) is nearly `slope` by bisection; every r gives a valid gap, this one about the smallest."""
    low, high = 0.0, max(start, _TINY)
    while penalty.derivative(high) < slope and high < _HUGE:
        low, high = high, 16 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if penalty.derivative(middle) < slope else (low, middle)
    return high


def _enclosing_gradients(problem: RepresenterProblem, f: Floats) -> tuple[Floats, Floats, float]:
    """Return gradients at Af − shift and Af + shift with a dual point between them, and the shift."""
    g = problem.gradient(f)
    if not problem.bias or not g.any():
        return g, g, 0.0
    # The first shift is the relative rounding error of Σg times the size of f (of y if f is 0); each further one is
    # eight times as large. Any shift whose two sums pass the test is valid; a larger one only widens the gap.
    roundings = len(f) + _LOSS_ROUNDINGS
    sizes = [float(np.maximum.reduce(np.abs(values), initial=0.0)) for values in (f, problem.y)]
    shift = gamma(roundings) * max(sizes[0], _EPS * sizes[1], _TINY)
    for _ in range(40):
        below, above = problem.gradient(f - shift), problem.gradient(f + shift)
        ends = np.add.reduce(below), np.add.reduce(above)
        if ends[0] <= 0 <= ends[1]:  # up to rounding
            sum_error = gamma(roundings) * max(np.add.reduce(np.abs(below)), np.add.reduce(np.abs(above)))
            if rounded_up(sum_error, len(f) + 4) <= min(-ends[0], ends[1]):
                return below, above, shift
        shift *= 8.0
    return g, g, np.inf


def _corner_terms(
    problem: RepresenterProblem, t: Floats, reach: Floats, slopes: Ball, g: Floats | None
) -> tuple[Ball, Floats]:
    """Return a dual point near g, and bounds on the terms of the gap.

    The values at the samples are within `reach` of t, and their subgradients in `slopes`.
    """
    # 1. Move g into the range of the subgradients far away, and its sum to zero; one entry takes the rest of the sum.
    scale = max(float(np.maximum.reduce(np.abs(x), initial=0.0)) for x in (t, problem.y)) + _TINY
    distances = 2.0**20 * scale * 2.0 ** -np.arange(_DOUBLINGS, -1.0, -1.0)
    distances[0] = 0.0
    low, high = (_farthest_subgradients(problem, t, side * distances) for side in (-1.0, 1.0))
    low, high = low.high, high.low
    g = np.clip(problem.gradient(t) if g is None else g, low, np.maximum(low, high))
    rest_of_sum, missing_sum = np.zeros(len(t)), 0.0
    if problem.bias:
        box = DualProblem.of_rows(
            g, low, np.maximum(low, high), rest_of_sum, np.zeros(len(t), dtype=np.int32), np.zeros(1)
        )
        try:
            g = box.nearest_feasible(g)
        except ValueError:  # all subgradients have the same sign
            return Ball(g, rest_of_sum + np.inf), rest_of_sum + np.inf
        missing_sum = math.fsum(g)
        rest_of_sum[np.argmax((high - g) if missing_sum < 0 else (g - low))] = rounded_up(abs(missing_sum), 2)
    dual = Ball(g, rest_of_sum)
    least, most = (
        np.where(rest_of_sum * missing_sum > 0, dual.low, g),
        np.where(rest_of_sum * missing_sum < 0, dual.high, g),
    )
    # 2. Find a distance at which the subgradients have passed g, above and below.
    up, down = np.full(len(t), np.inf), np.full(len(t), np.inf)
    for distance in distances:
        above, below = t + distance, t - distance
        up = np.where(np.isinf(up) & (_subgradients(problem, above).low >= most), above - t, up)
        down = np.where(np.isinf(down) & (_subgradients(problem, below).high <= least), t - below, down)
        if not (np.isinf(up) | np.isinf(down)).any():
            break
    # 3. t_i is above f_i if g_i is above the subgradients there, and below it otherwise.
    up, down = (rounded_up(side + reach, 4) for side in (up, down))
    rises, falls = ((dual - slopes).high, (slopes - dual).high)
    terms = np.maximum(np.where(rises > 0, rises * up, 0.0), np.where(falls > 0, falls * down, 0.0))
    return dual, rounded_up(terms, 2, scale)


def _subgradients(problem: RepresenterProblem, t: Floats) -> Ball:
    """Return the subgradients wℓ′ that the loss computes at t, with their roundings."""
    return _computed_balls(problem.gradient(t))


def _farthest_subgradients(problem: RepresenterProblem, t: Floats, steps: Floats) -> Ball:
    """Return the subgradients at t plus the last step; an entry that overflows there has an earlier step.

    The derivative of exp(−yf), for example, leaves the range of float64 long before the last step.
    """
    farthest = _subgradients(problem, t + steps[-1])
    for step in steps[-2::-1]:
        overflows = ~np.isfinite(farthest.value + farthest.error)
        if not overflows.any():
            break
        nearer = _subgradients(problem, t + step)
        farthest = Ball(
            np.where(overflows, nearer.value, farthest.value), np.where(overflows, nearer.error, farthest.error)
        )
    return farthest


def _proof(positive_definite: str, problem: RepresenterProblem) -> ProvenClaim:
    """Return the claim that a gap of zero proves; the convexity of a user's loss or penalty is assumed."""
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
    """Return the certificate of the objective times `factor`, with the bias b."""
    scaled = {name: factor * getattr(certificate, name) for name in ("primal", "dual", "gap")}
    return replace(certificate, **scaled, b=(b,))
