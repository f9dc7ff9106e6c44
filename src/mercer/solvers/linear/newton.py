"""Newton's method in (w, b) for linear machines, on losses whose corners are smoothed less and less.

A squared loss has a piecewise linear gradient, and Newton's method ends after a few steps. The hinge and the ε-tube
have d = 0 and corners, which `SmoothedLosses` rounds. Once the smoothed problem is solved to about the distance between
its optimum and the true one, the proximal centre moves to the present t and the smoothing shrinks. The solve ends by
the gap of the true problem, not by a gradient:

    P(w, b) − D(t) = ½‖w − X't‖² + Σ shares,  every share ≥ 0 .

Data with many rows begin with a pilot: their first rows only, weighted to represent all (the rows are in an order as
good as random).

With z = (x, 1), F the samples whose best t lies inside its box and W = 1/(d + μ) there, the step s from a gradient g is

    M s + Σ over F of W_i z_i (z_i's) = −g,   M = diag(1, …, 1, 1/B²) .

With few columns the matrix is formed and factored. With few free samples the unknowns are λ = W Z_F s instead:

    (1/W + X_F X_F' + B²11') λ = −X_F g_w − B²g_b,   s_w = −g_w − X_F'λ,   s_b = −B²(g_b + Σλ) ,

and with a free bias (1/W + X_F X_F') λ = −X_F g_w + s_b 1 with Σλ = −g_b. Where both are many, conjugate gradients
solve for λ at the cost of two products with X_F per step, and without a matrix.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer import _core
from mercer.places.protocols import Rows
from mercer.problems.linear_problem import LinearProblem
from mercer.samples.arrays import Floats, Indices, inner, norm
from mercer.solvers.conjugate_gradient import conjugate_gradient
from mercer.solvers.linear.referee import Point, PointJudge, Referee
from mercer.solvers.ridge_factor import ridge_factor, rounding_shares
from mercer.solvers.solution import Stop, StopReason

# The first smoothing is _FIRST_SMOOTHING · mean|p|, where mean|p| is the mean error at w = 0. It is multiplied by
# _SMOOTHING_AFTER_PILOT after a pilot, by the square of this from a given (w, b, β), and by _SMOOTHING_FACTOR per
# round, down to _LEAST_SMOOTHING.
_FIRST_SMOOTHING, _SMOOTHING_AFTER_PILOT = 2.0, 0.1
_SMOOTHING_FACTOR, _LEAST_SMOOTHING = 0.6, 1e-9
# The smoothed problem counts as solved when a step would gain less than this share of the gap and of the proximal term
# (Rockafellar's criterion). The proximal term matters if C is large: then the gap consists of losses, and is too large
# to show whether the smoothed problem is solved. (Hinge, to a gap of 1e-4, in steps: a9a 28, w8a 34, covtype10k 16; by
# the gap alone 28, 33 and 24.)
_SOLVED_SHARE = 0.02
# A pilot has 1/_PILOT_SHARE of the rows and is run if those are at least _PILOT_ROWS, and _PILOT_ROWS_PER_COLUMN for
# each column. It ends at a gap of _PILOT_GAP of its dual value, because its optimum is not that of all rows.
_PILOT_SHARE, _PILOT_ROWS, _PILOT_ROWS_PER_COLUMN, _PILOT_GAP = 8, 2000, 20, 0.03


def newton(referee: Referee, start: Point | None, judge: PointJudge, max_work: float = np.inf) -> Point:
    """Run Newton's method until `judge` accepts a point or a limit is met.

    `judge` is a method of the referee; `max_work` limits the work as `SampleSystem` counts it.
    """
    problem, rows = referee.problem, referee.rows
    smoothing = _FIRST_SMOOTHING * float(np.abs(problem.p).mean()) or 1.0  # if all targets are 0, any value will do
    if start is None:
        start = Point(np.zeros(rows.d), 0.0, np.zeros(rows.n))
        m = rows.n // _PILOT_SHARE
        if m >= max(_PILOT_ROWS, _PILOT_ROWS_PER_COLUMN * (rows.d + 1)):
            # The pilot's point is only a start, so an estimate of its gap is enough.
            pilot_stop = replace(referee.stop, tol=np.inf, gap_tol=_PILOT_GAP, report=None)
            pilot = newton(Referee(problem.first(m, rows.n / m), rows.first(m), pilot_stop), None, lambda point: 0.0)
            start = replace(pilot, beta=np.zeros(rows.n))
            smoothing *= _SMOOTHING_AFTER_PILOT
    elif start.beta.any():
        smoothing *= _SMOOTHING_AFTER_PILOT**2
        if not few_columns(rows.n, rows.d):
            # The smoothing adds μ to the d of each sample, here at least a hundredth of its ‖x‖²: if C‖x‖² is large,
            # few samples are at their bounds, and without μ nothing would limit the steps.
            smoothing = max(smoothing, 0.01 * float((problem.max_slope * rows.squared_lengths).mean()))
    return _newton_steps(referee, start, judge, smoothing, max_work)


def _newton_steps(
    referee: Referee, start: Point, goal_ratio_of: PointJudge, smoothing: float, max_work: float
) -> Point:
    """Take Newton steps on losses that are smoothed less and less."""
    problem, rows, stop = referee.problem, referee.rows, referee.stop
    is_smooth = bool((problem.d > 0).all())
    w, b, steps = start.w.copy(), start.b, start.steps
    f = rows.product(w, b)
    losses = SmoothedLosses(problem, start.beta, 0.0 if is_smooth else smoothing, stop.n_threads)
    if not is_smooth and w.any() and not start.beta.any():
        losses = losses.with_centre(losses.evaluate(f)[0], smoothing)
    curvature = (ColumnSystem if few_columns(rows.n, rows.d) else SampleSystem)(
        problem, rows, is_smooth, stop.n_threads
    )
    round_steps, stale_rounds, least_remaining, judged_gap, is_unchanged = 0, 0, np.inf, np.inf, False
    while True:
        # 1. Compute the best t, the gradient, and an estimate of the gap; stop at a limit or if the gap is certified.
        t, total, loss, shares = losses.evaluate(f)
        slope = b / problem.bias**2 if 0 < problem.bias < np.inf else 0.0
        gradient = np.append(w - rows.transposed(t), slope - total if problem.bias else 0.0)
        stop_reason: StopReason | None = stop.limit(steps) or ("stalled" if curvature.work > max_work else None)
        if stop_reason is not None:
            return Point(w, b, t, steps, stop_reason)
        gap, dual = _estimate(problem, w, b, gradient, loss, shares)
        if stop.tol == np.inf and gap <= stop.gap_tol * dual and gap <= 0.5 * judged_gap:
            judged_gap = gap
            point = Point(w, b, t, steps)
            if goal_ratio_of(point) <= 1:
                return point
        # 2. Solve for the Newton direction.
        try:
            with _core.TimeLimit(stop.seconds):
                direction = curvature.direction(t, losses.smoothing, gradient)
        except _core.OutOfTime:
            return Point(w, b, t, steps, "max_time")
        gain = -inner(gradient, direction)
        gain_vanishes = gain <= 1e-15 * (shares + inner(w, w)) and (is_smooth or round_steps > 2)
        # 3. Once the smoothed problem is solved, certify the point, then move the centre and lower the smoothing.
        # A few dozen steps are many for a round; after a hundred, rounding makes the steps cycle.
        round_is_over = is_unchanged or gain_vanishes or round_steps >= 100
        if round_is_over or gain <= _SOLVED_SHARE * min(shares, losses.proximal(t)):
            point = Point(w, b, t, steps)
            # A certificate costs two products with X: skip it if the estimated gap is ten times too large.
            gap_is_near = stop.tol < np.inf or 10 * stop.gap_tol * dual >= gap
            if (round_is_over or gap_is_near) and goal_ratio_of(point) <= 1:
                return point
            remaining_gain = max(gain + shares, 0.0)  # rounding may leave `shares` below zero
            stale_rounds = 0 if remaining_gain < 0.9 * least_remaining else stale_rounds + 1
            least_remaining = min(least_remaining, remaining_gain)
            if stale_rounds > 25:
                return replace(point, reason="stalled")
            if not is_smooth and (round_steps > 0 or round_is_over):
                losses, round_steps = (
                    losses.with_centre(t, max(losses.smoothing * _SMOOTHING_FACTOR, _LEAST_SMOOTHING)),
                    0,
                )
                continue
        # 4. Take the step, with a line search.
        dw, db = direction[:-1], float(direction[-1])
        move = rows.product(dw, db)
        step = step_length(problem, losses, gain, (w, b), (dw, db), f, move)
        previous, w, b, f = (w, b), w + step * dw, b + step * db, f + step * move
        # With huge features w is tiny, and its steps vanish in rounding before their gain is relatively small.
        is_unchanged = b == previous[1] and np.array_equal(w, previous[0])
        steps += 1
        round_steps += 1


def _estimate(
    problem: LinearProblem, w: Floats, b: float, gradient: Floats, loss: float, shares: float
) -> tuple[float, float]:
    """Estimate the gap of (w, b) and t, and D(t), ignoring that Σt is not yet zero for a free bias."""
    square_distance, primal = inner(gradient[:-1], gradient[:-1]), loss + 0.5 * inner(w, w)
    if problem.bias not in (0, np.inf):
        square_distance += float(np.square(problem.bias * gradient[-1]))
        primal += 0.5 * float(np.square(b / problem.bias))
    gap = shares + 0.5 * square_distance
    return gap, primal - gap


# Up to this many columns, Newton's method forms a matrix of the columns: a step costs their square per free sample. The
# number is a guess.
FEW_COLUMNS = 1000
# With more columns than that, a matrix is factored if free samples or columns are at most this many.
_MOST_UNKNOWNS = 1500
# Cost of factoring m unknowns, divided by m³, in units of one visit of an entry of X by coordinate descent: 18 ms for
# 725 unknowns on two threads, 1.2 ns per visit.
_FACTOR_COST = 1 / 30
# Conjugate gradients end when the residual's norm is this share of the first, or after this many steps.
_RESIDUAL_SHARE, _MOST_CG_STEPS = 1e-3, 300


def few_columns(n_rows: int, n_columns: int) -> bool:
    """Return whether there are few enough columns for Newton's method with a matrix of the columns."""
    return n_columns <= min(FEW_COLUMNS, n_rows)


class ColumnSystem:
    """Newton system with one unknown per column: Σ over F of zz'/(d + μ), updated by the samples that join or leave F.

    `work` is the cost of all directions so far, in units of one visit of an entry of X by coordinate descent.
    """

    def __init__(self, problem: LinearProblem, rows: Rows, smooth: bool, n_threads: int) -> None:
        self._problem, self._rows, self._n_threads = problem, rows, n_threads
        self._weight = 1.0 / problem.d if smooth else problem.max_slope
        self._free = np.zeros(rows.n, dtype=bool)
        self._sum: Floats | None = None
        self.work = 0.0

    def direction(self, t: Floats, smoothing: float, gradient: Floats) -> Floats:
        """Return the Newton step for the samples that are free at t."""
        free = free_samples(self._problem, t)
        size = int(np.count_nonzero(free))
        joining_samples, leaving_samples = np.flatnonzero(free & ~self._free), np.flatnonzero(self._free & ~free)
        if self._sum is None or 2 * (len(joining_samples) + len(leaving_samples)) > size:
            members = np.flatnonzero(free)
            self._sum = self._rows.outer(members, self._weight[members])
        else:
            for rows, sign in ((joining_samples, 1.0), (leaving_samples, -1.0)):
                if len(rows):
                    self._sum += sign * self._rows.outer(rows, self._weight[rows])
        self._free = free
        self.work += _FACTOR_COST * self._rows.d**3
        return self._solve(self._sum / smoothing if smoothing else self._sum.copy(), size, gradient)

    def _solve(self, H: Floats, size: int, gradient: Floats) -> Floats:
        """Return −(H + M)⁻¹ gradient; H is the sum over F without M, and is overwritten."""
        problem = self._problem
        np.einsum("ii->i", H)[:-1] += 1.0
        if problem.bias == 0:
            H[-1, :] = 0.0
            H[:, -1] = 0.0
            H[-1, -1] = 1.0
        elif problem.exact_bias:
            # Without a free sample b has no curvature: use a step of about 1, which the line search corrects.
            H[-1, -1] += 1e-12 * H[-1, -1] if size else max(1.0, abs(gradient[-1]))
        else:
            H[-1, -1] += 1.0 / problem.bias**2
        diagonal = np.diagonal(H)
        factor = ridge_factor(H, rounding_shares(100, 1), self._n_threads, unit=diagonal)
        if factor is None:
            return -gradient / np.where(diagonal > 0, diagonal, 1.0)
        return np.asarray(factor.solve(-gradient[:, None])[:, 0])


class SampleSystem:
    """Newton system with one unknown λ per free sample, or that of the columns if they are few enough to factor."""

    def __init__(self, problem: LinearProblem, rows: Rows, smooth: bool, n_threads: int) -> None:
        self._problem, self._rows, self._n_threads = problem, rows, n_threads
        self._ridge = problem.d if smooth else 1.0 / problem.max_slope
        self._by_columns = ColumnSystem(problem, rows, smooth, n_threads)
        self._sample_work = 0.0
        self._gram_rows = np.empty(0, dtype=np.int64)
        self._gram: Floats = np.empty((0, 0))

    @property
    def work(self) -> float:
        """Cost of all directions so far, as in `ColumnSystem`."""
        return self._sample_work + self._by_columns.work

    def direction(self, t: Floats, smoothing: float, gradient: Floats) -> Floats:
        """Return the Newton step for the samples that are free at t."""
        problem, g, g_b = self._problem, gradient[:-1], float(gradient[-1])
        free = np.flatnonzero(free_samples(problem, t))
        shift = problem.bias**2 if np.isfinite(problem.bias) else 0.0
        if len(free) == 0:
            b_curvature = max(1.0, abs(g_b)) if problem.exact_bias else 1.0 / shift if shift else np.inf
            return np.append(-g, -g_b / b_curvature)
        if len(free) > _MOST_UNKNOWNS and self._rows.d <= _MOST_UNKNOWNS:
            return self._by_columns.direction(t, smoothing, gradient)
        free_rows = self._rows.take(free)
        ridge = self._ridge[free] * (smoothing or 1.0)
        rhs = -free_rows.product(g) - shift * g_b
        sides = np.column_stack([rhs, np.ones(len(free))]) if problem.exact_bias else rhs[:, None]
        if len(free) <= _MOST_UNKNOWNS:
            solutions = self._solve_by_factor(free, ridge, shift, sides)
            self._sample_work += _FACTOR_COST * len(free) ** 3
        else:
            results = [_conjugate_gradients(free_rows, ridge, shift, side) for side in sides.T]
            solutions = np.column_stack([unknown for unknown, _ in results])
            self._sample_work += free_rows.stored * sum(steps for _, steps in results)
        unknown = solutions[:, 0]
        if problem.exact_bias:
            db = (-g_b - float(unknown.sum())) / float(solutions[:, 1].sum())
            unknown = unknown + db * solutions[:, 1]
        else:
            db = -shift * (g_b + float(unknown.sum()))
        return np.append(-g - free_rows.transposed(np.ascontiguousarray(unknown)), db)

    def _solve_by_factor(self, free: Indices, ridge: Floats, shift: float, sides: Floats) -> Floats:
        """Solve (diag ridge + X_F X_F' + shift·11') Z = sides by a Cholesky factor."""
        A = self._products(free) + shift
        np.einsum("ii->i", A)[:] += ridge
        diagonal = np.diagonal(A)
        factor = ridge_factor(A, rounding_shares(100, 1), self._n_threads, unit=diagonal)
        return np.asarray(sides / diagonal[:, None]) if factor is None else factor.solve(sides)

    def _products(self, free: Indices) -> Floats:
        """Return X_F X_F'; products of rows that were free in earlier steps are reused."""
        new_samples = np.setdiff1d(free, self._gram_rows, assume_unique=True)
        if len(self._gram_rows) + len(new_samples) > 2 * max(len(free), _MOST_UNKNOWNS):
            self._gram_rows, self._gram, new_samples = free[:0], np.empty((0, 0)), free
        if len(new_samples):
            m = len(self._gram_rows)
            self._gram_rows = np.r_[self._gram_rows, new_samples]
            gram = np.empty((len(self._gram_rows), len(self._gram_rows)))
            gram[:m, :m] = self._gram
            gram[m:] = self._rows.gram(new_samples, self._gram_rows)
            gram[:m, m:] = gram[m:, :m].T
            entries_per_row = self._rows.stored / self._rows.n
            self._sample_work += len(new_samples) * len(self._gram_rows) * (1.0 + entries_per_row**2 / self._rows.d)
            self._gram = gram
        order = np.argsort(self._gram_rows)
        index = order[np.searchsorted(self._gram_rows, free, sorter=order)]
        return np.asarray(self._gram[np.ix_(index, index)])


def free_samples(problem: LinearProblem, t: Floats) -> np.ndarray:
    """Mark the samples in F, whose t is neither at a bound nor at the corner of a tube."""
    free = (t > problem.lower) & (t < problem.upper)
    if problem.epsilon.any():
        free &= t != 0
    return np.asarray(free)


def _conjugate_gradients(rows: Rows, ridge: Floats, shift: float, rhs: Floats) -> tuple[Floats, int]:
    """Return A⁻¹ rhs, approximately, for A = diag ridge + XX' + shift·11', and the number of steps.

    The unknowns are scaled so that A has a unit diagonal, which is preconditioning by its diagonal.
    """
    scale = 1.0 / np.sqrt(rows.squared_lengths + ridge + shift)

    def apply(P: Floats) -> Floats:
        v = scale * P[:, 0]
        image = ridge * v + rows.product(rows.transposed(v)) + shift * float(v.sum())
        return np.asarray((scale * image)[:, None])

    B = (scale * rhs)[:, None]
    target = np.array([_RESIDUAL_SHARE * norm(B)])
    result = conjugate_gradient(apply, B, np.asarray, target, Stop(tol=np.inf, max_iter=_MOST_CG_STEPS))
    return scale * result.X[:, 0], result.steps


class SmoothedLosses:
    """Smoothed losses of the outputs f = Xw + b: the best dual t of each sample, and the true losses there.

    Corners are rounded by a proximal term in the dual (Rockafellar 1976). To each sample's share of the dual,
    t p_i − ε_i|t| − d_i t²/2 over its box, it adds −μ_i/2 (t − centre_i)², which turns d_i into d_i + μ_i. With
    μ_i = smoothing/max_slope_i every corner becomes a parabola of the same width, `smoothing`, in units of the residual
    p − f. A smoothing of 0 means none, for losses that have no corners (d > 0).
    """

    def __init__(self, problem: LinearProblem, centre: Floats, smoothing: float, n_threads: int) -> None:
        self._problem, self._n_threads = problem, n_threads
        self.centre, self.smoothing = centre, smoothing
        if smoothing == 0:
            q, inverse = problem.p, 1.0 / problem.d
        else:
            mu = smoothing / problem.max_slope
            q, inverse = problem.p + mu * centre, 1.0 / (problem.d + mu)
        self._core = _core.Respondents(q, inverse, problem.lower, problem.upper, problem.epsilon, n_threads)

    def evaluate(self, f: Floats) -> tuple[Floats, float, float, float]:
        """Return the multipliers t at f, Σt, the losses without smoothing, and their shares of the duality gap."""
        t = np.empty(len(f))
        total, losses, shares = self._core.respond(self._problem.p, self._problem.d, f, t)
        return t, total, losses, shares

    def slope_along(self, f: Floats, move: Floats, step: float) -> float:
        """Return the derivative of the smoothed losses at f + step·move along `move`."""
        return -self._core.along(f, move, step)

    def proximal(self, t: Floats) -> float:
        """Return twice the proximal term at t; infinite without smoothing, so that it never limits the gap."""
        if self.smoothing == 0:
            return np.inf
        change = t - self.centre
        return self.smoothing * inner(change, change / self._problem.max_slope)

    def with_centre(self, centre: Floats, smoothing: float) -> SmoothedLosses:
        """Return these losses smoothed around another centre, with another width."""
        return SmoothedLosses(self._problem, centre, smoothing, self._n_threads)


def step_length(
    problem: LinearProblem,
    losses: SmoothedLosses,
    gain: float,
    point: tuple[Floats, float],
    direction: tuple[Floats, float],
    f: Floats,
    move: Floats,
) -> float:
    """Return the length of a step along a Newton direction: there the slope is a small share of the slope at 0.

    From `point` = (w, b) along `direction`, with f = Xw + b and its change `move`; −gain is the slope at 0.
    """
    (w, b), (dw, db) = point, direction
    linear, square = inner(w, dw), inner(dw, dw)
    if problem.bias not in (0, np.inf):
        linear += b * db / problem.bias**2
        square += db * db / problem.bias**2

    def slope(s: float) -> float:
        return linear + s * square + losses.slope_along(f, move, s)

    start_slope = -gain
    low, slope_low, high, slope_high = 0.0, start_slope, 1.0, slope(1.0)
    if abs(slope_high) <= 0.5 * abs(start_slope):
        return 1.0
    while slope_high < 0 and high < 1e6:  # rounding alone asks for longer steps
        low, slope_low, high = high, slope_high, 2 * high
        slope_high = slope(high)
    for _ in range(30):
        # The secant through the ends of the bracket, or its middle where rounding has levelled the slopes.
        s = low + (high - low) * slope_low / (slope_low - slope_high) if slope_high > slope_low else 0.5 * (low + high)
        margin = 0.1 * (high - low)  # away from either end, so that the bracket always shrinks
        s = min(max(s, low + margin), high - margin)
        slope_s = slope(s)
        if abs(slope_s) <= 0.1 * abs(start_slope):
            return s
        if slope_s < 0:
            low, slope_low = s, slope_s
        else:
            high, slope_high = s, slope_s
    return 0.5 * (low + high)
