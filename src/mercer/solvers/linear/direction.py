"""Newton's direction for a linear machine, in the space of the columns or in that of the free samples.

With z = (x, 1), F the samples whose best t lies inside its box and W = 1/(d + μ) there, the step s from a gradient g is

    M s + Σ over F of W_i z_i (z_i's) = −g,   M = diag(1, …, 1, 1/B²) .

With few columns the matrix is formed and factored. With few free samples the unknowns are λ = W Z_F s instead:

    (1/W + X_F X_F' + B²11') λ = −X_F g_w − B²g_b,   s_w = −g_w − X_F'λ,   s_b = −B²(g_b + Σλ) ,

and with a free bias (1/W + X_F X_F') λ = −X_F g_w + s_b 1 with Σλ = −g_b. Where both are many, conjugate gradients
solve for λ with two products by the rows of F a step, and no matrix.
"""

from __future__ import annotations

import numpy as np

from mercer import _core
from mercer.arrays import Floats, Indices, norm
from mercer.gram.linear_rows import LinearRows
from mercer.problems.linear_problem import LinearProblem
from mercer.solution import Stop
from mercer.solvers.conjugate_gradient import conjugate_gradient

# Newton's method takes the space of the columns up to this many of them: a step costs their square per free sample. The
# number is a guess.
FEW_COLUMNS = 1000
# Up to so many unknowns, free samples or columns, a matrix is factored.
_FACTORED = 1500
# What a factor of m unknowns costs, m³ times this, in entries of X that coordinate descent visits in the same time:
# some 18 ms for 725 unknowns on two threads, and 1.2 ns a visit.
_FACTOR_COST = 1 / 30
# Conjugate gradients end at this share of the first residual, or after so many steps.
_RESIDUAL, _MOST_STEPS = 1e-3, 300


def few_columns(n_rows: int, n_columns: int) -> bool:
    """What Newton's method needs to be the method of choice; steps are then found in the space of the columns."""
    return n_columns <= min(FEW_COLUMNS, n_rows)


class ByColumns:
    """Σ over F of z z'/(d + μ); from one step to the next only the samples that came and went are added up."""

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
        came, went = np.flatnonzero(free & ~self._free), np.flatnonzero(self._free & ~free)
        if self._sum is None or 2 * (len(came) + len(went)) > size:
            whole = np.flatnonzero(free)
            self._sum = self._rows.outer(whole, self._weight[whole])
        else:
            for which, sign in ((came, 1.0), (went, -1.0)):
                if len(which):
                    self._sum += sign * self._rows.outer(which, self._weight[which])
        self._free = free
        self.work += _FACTOR_COST * self._rows.d**3
        return self._solve(self._sum / smoothing if smoothing else self._sum.copy(), size, gradient)

    def _solve(self, H: Floats, size: int, gradient: Floats) -> Floats:
        """−H⁻¹ gradient; H comes without the part of ½‖w‖², and is used up."""
        problem = self._problem
        np.einsum("ii->i", H)[:-1] += 1.0
        if problem.bias == 0:
            H[-1, :] = 0.0
            H[:, -1] = 0.0
            H[-1, -1] = 1.0
        elif problem.exact_bias:
            # Without a free sample nothing holds b: a step of its own size, which the search along it will correct.
            H[-1, -1] += 1e-12 * H[-1, -1] if size else max(1.0, abs(gradient[-1]))
        else:
            H[-1, -1] += 1.0 / problem.bias**2
        factor, diagonal = _factored(H, self._rows.n_threads)
        if factor is None:
            return -gradient / np.where(diagonal > 0, diagonal, 1.0)
        solved = -gradient[:, None]
        _core.cholesky_solve(factor, solved, self._rows.n_threads)
        return np.asarray(solved[:, 0])


class BySamples:
    """The system in λ, one unknown for each free sample, unless there are many and fewer columns.

    `work` is what the directions have cost so far, in entries of X that coordinate descent visits in the same time.
    """

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
        if len(which) > _FACTORED and self._rows.d <= _FACTORED:
            return self._by_columns.direction(t, smoothing, gradient)
        few = self._rows.some(which)
        ridge = self._ridge[which] * (smoothing or 1.0)
        right = -few.product(g) - shift * g_b
        sides = np.column_stack([right, np.ones(len(which))]) if problem.exact_bias else right[:, None]
        if len(which) <= _FACTORED:
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
        factor, diagonal = _factored(A, self._rows.n_threads)
        if factor is None:
            return np.asarray(sides / diagonal[:, None])
        solved = np.ascontiguousarray(sides)
        _core.cholesky_solve(factor, solved, self._rows.n_threads)
        return solved

    def _products(self, which: Indices) -> Floats:
        """X_F X_F'; rows met before are not multiplied again."""
        came = np.setdiff1d(which, self._known, assume_unique=True)
        if len(self._known) + len(came) > 2 * max(len(which), _FACTORED):
            self._known, self._gram, came = which[:0], np.empty((0, 0)), which
        if len(came):
            m = len(self._known)
            self._known = np.r_[self._known, came]
            gram = np.empty((len(self._known), len(self._known)))
            gram[:m, :m] = self._gram
            gram[m:] = self._rows.gram(came, self._known)
            gram[:m, m:] = gram[m:, :m].T
            stored = self._rows.stored / self._rows.n
            self._own_work += len(came) * len(self._known) * (1.0 + stored**2 / self._rows.d)
            self._gram = gram
        order = np.argsort(self._known)
        place = order[np.searchsorted(self._known, which, sorter=order)]
        return np.asarray(self._gram[np.ix_(place, place)])


def free_samples(problem: LinearProblem, t: Floats) -> np.ndarray:
    """Which t lie inside their boxes, and not in a corner."""
    free = (t > problem.lower) & (t < problem.upper)
    if problem.epsilon.any():
        free &= t != 0
    return np.asarray(free)


def _factored(H: Floats, n_threads: int) -> tuple[Floats | None, Floats]:
    """A Cholesky factor of H, with as much of its diagonal added as that takes; None where nothing of H can be used."""
    diagonal, ridge = np.diagonal(H).copy(), 0.0
    while ridge <= 1.0:
        factor = H.copy()
        np.einsum("ii->i", factor)[:] += ridge * diagonal
        if _core.cholesky(factor, n_threads) < 0:
            return factor, diagonal
        ridge = max(1e-14, 100 * ridge)
    return None, diagonal


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
    target = np.array([_RESIDUAL * norm(B)])
    found = conjugate_gradient(apply, B, np.asarray, target, Stop(tol=np.inf, max_iter=_MOST_STEPS))
    return scale * found.X[:, 0], found.steps
