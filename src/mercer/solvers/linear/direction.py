"""Newton's direction for a linear machine, in the space of the columns or in that of the free samples.

With z = (x, 1), F the samples whose best t lies inside its box and W = 1/(d + μ) there, the step s from a gradient g is

    M s + Σ over F of W_i z_i (z_i's) = −g,   M = diag(1, …, 1, 1/B²) .

With few columns the matrix is formed and factored. With few free samples the unknowns are λ = W Z_F s instead:

    (1/W + X_F X_F' + B²11') λ = −X_F g_w − B²g_b,   s_w = −g_w − X_F'λ,   s_b = −B²(g_b + Σλ) ,

and with a free bias (1/W + X_F X_F') λ = −X_F g_w + s_b 1 with Σλ = −g_b. Where both are many, conjugate gradients
solve for λ at the cost of two products with X_F per step, and without a matrix.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mercer.arrays import Floats, Indices, norm
from mercer.gram.linear_rows import LinearRows
from mercer.problems.linear_problem import LinearProblem
from mercer.solution import Stop
from mercer.solvers.conjugate_gradient import conjugate_gradient
from mercer.solvers.ridge_factor import growing, ridge_factor

# Newton's method takes the space of the columns up to this many of them: a step costs their square per free sample. The
# number is a guess.
FEW_COLUMNS = 1000
# With more columns than that, a matrix is factored if free samples or columns are at most this many.
_FACTORED_UNKNOWNS = 1500
# The cost of factoring m unknowns is this times m³, in entries of X that coordinate descent visits in the same time:
# 18 ms for 725 unknowns on two threads, 1.2 ns per visit.
_FACTOR_COST = 1 / 30
# Conjugate gradients end when the residual's norm is this share of the first, or after this many steps.
_RESIDUAL_SHARE, _MOST_CG_STEPS = 1e-3, 300


def few_columns(n_rows: int, n_columns: int) -> bool:
    """What Newton's method needs to be the method of choice; steps are then found in the space of the columns."""
    return n_columns <= min(FEW_COLUMNS, n_rows)


class ByColumns:
    """Σ over F of z z'/(d + μ), updated from step to step by the samples that joined or left F.

    `work` is what the directions have cost so far, in entries of X that coordinate descent visits in the same time.
    """

    def __init__(self, problem: LinearProblem, rows: LinearRows, smooth: bool) -> None:
        self._problem, self._rows = problem, rows
        self._weight = 1.0 / problem.d if smooth else problem.price
        self._free = np.zeros(rows.n, dtype=bool)
        self._sum: Floats | None = None
        self.work = 0.0

    def direction(self, t: Floats, smoothing: float, gradient: Floats) -> Floats:
        """The step for the samples that are free at t."""
        free = free_samples(self._problem, t)
        size = int(np.count_nonzero(free))
        joined, left = np.flatnonzero(free & ~self._free), np.flatnonzero(self._free & ~free)
        if self._sum is None or 2 * (len(joined) + len(left)) > size:
            whole = np.flatnonzero(free)
            self._sum = self._rows.outer(whole, self._weight[whole])
        else:
            for which, sign in ((joined, 1.0), (left, -1.0)):
                if len(which):
                    self._sum += sign * self._rows.outer(which, self._weight[which])
        self._free = free
        self.work += _FACTOR_COST * self._rows.d**3
        return self._solve(self._sum / smoothing if smoothing else self._sum.copy(), size, gradient)

    def _solve(self, H: Floats, size: int, gradient: Floats) -> Floats:
        """−H⁻¹ gradient; H comes without the part of ½‖w‖² and b's own, and is overwritten."""
        problem = self._problem
        np.einsum("ii->i", H)[:-1] += 1.0
        if problem.bias == 0:
            H[-1, :] = 0.0
            H[:, -1] = 0.0
            H[-1, -1] = 1.0
        elif problem.exact_bias:
            # Without a free sample b has no curvature: a step of about 1, which the line search corrects.
            H[-1, -1] += 1e-12 * H[-1, -1] if size else max(1.0, abs(gradient[-1]))
        else:
            H[-1, -1] += 1.0 / problem.bias**2
        diagonal = np.diagonal(H)
        factor = ridge_factor(H, _ridges(), self._rows.n_threads, unit=diagonal)
        if factor is None:
            return -gradient / np.where(diagonal > 0, diagonal, 1.0)
        return np.asarray(factor.solve(-gradient[:, None])[:, 0])


class BySamples:
    """The system in λ, one unknown per free sample; or that of the columns, if these are fewer and can be factored."""

    def __init__(self, problem: LinearProblem, rows: LinearRows, smooth: bool) -> None:
        self._problem, self._rows = problem, rows
        self._ridge = problem.d if smooth else 1.0 / problem.price
        self._by_columns = ByColumns(problem, rows, smooth)
        self._own_work = 0.0
        self._known = np.empty(0, dtype=np.int64)
        self._gram: Floats = np.empty((0, 0))

    @property
    def work(self) -> float:
        return self._own_work + self._by_columns.work

    def direction(self, t: Floats, smoothing: float, gradient: Floats) -> Floats:
        """The step for the samples that are free at t."""
        problem, g, g_b = self._problem, gradient[:-1], float(gradient[-1])
        which = np.flatnonzero(free_samples(problem, t))
        shift = problem.bias**2 if np.isfinite(problem.bias) else 0.0
        if len(which) == 0:
            own = max(1.0, abs(g_b)) if problem.exact_bias else 1.0 / shift if shift else np.inf
            return np.append(-g, -g_b / own)
        if len(which) > _FACTORED_UNKNOWNS and self._rows.d <= _FACTORED_UNKNOWNS:
            return self._by_columns.direction(t, smoothing, gradient)
        few = self._rows.some(which)
        ridge = self._ridge[which] * (smoothing or 1.0)
        right = -few.product(g) - shift * g_b
        sides = np.column_stack([right, np.ones(len(which))]) if problem.exact_bias else right[:, None]
        if len(which) <= _FACTORED_UNKNOWNS:
            solved = self._by_factor(which, ridge, shift, sides)
            self._own_work += _FACTOR_COST * len(which) ** 3
        else:
            found = [_conjugate_gradients(few, ridge, shift, side) for side in sides.T]
            solved = np.column_stack([unknown for unknown, _ in found])
            self._own_work += few.stored * sum(steps for _, steps in found)
        unknown = solved[:, 0]
        if problem.exact_bias:
            db = (-g_b - float(unknown.sum())) / float(solved[:, 1].sum())
            unknown = unknown + db * solved[:, 1]
        else:
            db = -shift * (g_b + float(unknown.sum()))
        return np.append(-g - few.transposed(np.ascontiguousarray(unknown)), db)

    def _by_factor(self, which: Indices, ridge: Floats, shift: float, sides: Floats) -> Floats:
        A = self._products(which) + shift
        np.einsum("ii->i", A)[:] += ridge
        diagonal = np.diagonal(A)
        factor = ridge_factor(A, _ridges(), self._rows.n_threads, unit=diagonal)
        return np.asarray(sides / diagonal[:, None]) if factor is None else factor.solve(sides)

    def _products(self, which: Indices) -> Floats:
        """X_F X_F'; products of rows that were free before are kept."""
        joined = np.setdiff1d(which, self._known, assume_unique=True)
        if len(self._known) + len(joined) > 2 * max(len(which), _FACTORED_UNKNOWNS):
            self._known, self._gram, joined = which[:0], np.empty((0, 0)), which
        if len(joined):
            m = len(self._known)
            self._known = np.r_[self._known, joined]
            gram = np.empty((len(self._known), len(self._known)))
            gram[:m, :m] = self._gram
            gram[m:] = self._rows.gram(joined, self._known)
            gram[:m, m:] = gram[m:, :m].T
            stored = self._rows.stored / self._rows.n
            self._own_work += len(joined) * len(self._known) * (1.0 + stored**2 / self._rows.d)
            self._gram = gram
        order = np.argsort(self._known)
        place = order[np.searchsorted(self._known, which, sorter=order)]
        return np.asarray(self._gram[np.ix_(place, place)])


def free_samples(problem: LinearProblem, t: Floats) -> np.ndarray:
    """F: where t is neither at a bound nor at the corner of a tube."""
    free = (t > problem.lower) & (t < problem.upper)
    if problem.epsilon.any():
        free &= t != 0
    return np.asarray(free)


def _ridges() -> Iterator[float]:
    """What may be added to the diagonal, as a share of it: nothing, or the least that outweighs rounding."""
    yield 0.0
    yield from growing(1e-14, 100.0, 1.0)


def _conjugate_gradients(rows: LinearRows, ridge: Floats, shift: float, side: Floats) -> tuple[Floats, int]:
    """A⁻¹ side, roughly, for A = diag ridge + XX' + shift·11', and how many steps that took.

    The unknowns are scaled so that A has a unit diagonal: the same steps as with its diagonal as preconditioner.
    """
    scale = 1.0 / np.sqrt(rows.lengths + ridge + shift)

    def apply(P: Floats) -> Floats:
        v = scale * P[:, 0]
        image = ridge * v + rows.product(rows.transposed(v)) + shift * float(v.sum())
        return np.asarray((scale * image)[:, None])

    B = (scale * side)[:, None]
    target = np.array([_RESIDUAL_SHARE * norm(B)])
    found = conjugate_gradient(apply, B, np.asarray, target, Stop(tol=np.inf, max_iter=_MOST_CG_STEPS))
    return scale * found.X[:, 0], found.steps
