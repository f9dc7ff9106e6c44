"""Linear least squares in the features: by the covariance matrix, or by LSQR with products with X alone.

    (X̃'WX̃ + λI) w = X̃'Wỹ,   b = ȳ − x̄'w,   X̃ = X − 1x̄', ỹ = y − ȳ    (x̄ = 0, ȳ = 0 without bias)

The covariance matrix X̃'WX̃ is d × d, whatever n. If d is too large for that, LSQR (Paige and Saunders 1982) is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import scipy.linalg
import scipy.sparse.linalg as spla

from mercer import _core
from mercer.certificates.least_squares import is_exact
from mercer.certificates.sums import certify_sums, sums_are_exact
from mercer.certificates.weights import certify_weights
from mercer.places.gram import Gram
from mercer.places.host.linear_gram import linear_scale
from mercer.places.protocols import LinearGram
from mercer.places.sums import Sums
from mercer.problems.least_squares import LeastSquares, RidgeProblem
from mercer.samples.arrays import Floats
from mercer.samples.matrices import over_all_columns
from mercer.solvers.deadline import enforce_deadline
from mercer.solvers.least_squares.solution import LeastSquaresSolution, Proven, covariance_bytes, memory_error
from mercer.solvers.ridge_factor import RidgeFactor, ridge_factor
from mercer.solvers.solution import Stop, StopReason
from mercer.solvers.solver import Refusal, refuses

# Function that yields blocks of centred samples with their weights.
_Pieces = Callable[[], Iterator[tuple[Floats, Floats]]]

_EPS = float(np.finfo(np.float64).eps)


class RidgeInverse:
    """Inverse (X̃'WX̃ + λI)⁻¹, computed with features scaled to equal length, so that units change only the rounding.

        X̃'WX̃ + λI = S A S,   S = diag of √(X̃'WX̃ + λI)_jj,   A has the diagonal 1

    A is factored by Cholesky's method. If it is singular to rounding, the singular values of the rows [W^½X̃; λ^½ I]S⁻¹
    are used instead, which have twice the digits of their squares. Only directions that are rounding even there are
    dropped: the loss does not depend on them, so the solution is the one of least norm. `rank` is the number of
    directions that are kept.
    """

    def __init__(self, xx: Floats, lam: float, n_threads: int, rows: _Pieces | None = None) -> None:
        """Factor xx + λI; `rows` yields blocks (X̃, w) of the samples, if they can be read."""
        d = len(xx)
        diagonal = np.abs(xx.diagonal()) + lam
        self._unit = np.divide(1.0, np.sqrt(diagonal), out=np.zeros(d), where=diagonal > 0)
        self.rank = d
        A = xx * self._unit[:, None] * self._unit
        self._factor: RidgeFactor | None = None
        if d and diagonal.min() > 0:
            factor = ridge_factor(A, (0.0,), n_threads, diagonal=np.ones(d))
            # The squared ratio bounds the reciprocal of the condition number from above.
            if factor is not None and (np.diagonal(factor.L).min() / np.diagonal(factor.L).max()) ** 2 > d * _EPS:
                self._factor = factor
                return
        if rows is not None:
            R = _triangle(rows, self._unit, lam)
            _, singular, Vt = scipy.linalg.svd(R, check_finite=False)
            values, V, least = singular**2, Vt.T, (d * _EPS) ** 2
        else:
            np.fill_diagonal(A, diagonal * self._unit**2)
            values, V = scipy.linalg.eigh(A, check_finite=False)
            least = d * _EPS
        is_kept = values > least * values.max(initial=0.0)
        self._values, self._vectors = values[is_kept], V[:, is_kept]
        self._null_space = scipy.linalg.qr(self._unit[:, None] * V[:, ~is_kept], mode="economic", check_finite=False)[0]
        is_empty = self._unit == 0
        self._null_space = (
            self._null_space[:, : int((~is_kept).sum() - is_empty.sum())] if is_empty.any() else self._null_space
        )
        self.rank = int(is_kept.sum())

    def __call__(self, B: Floats) -> Floats:
        """Return the inverse times B."""
        unit = self._unit[:, None]
        if self._factor is not None:
            return unit * self._factor.solve(unit * B)
        V = self._vectors
        W = unit * (V @ ((V.T @ (unit * B)) / self._values[:, None]))
        return np.asarray(W - self._null_space @ (self._null_space.T @ W))


def _triangle(rows: _Pieces, unit: Floats, lam: float) -> Floats:
    """Return R of the QR decomposition of [W^½X̃; λ^½ I]·diag(unit), computed over blocks of about 2d rows."""
    d = len(unit)
    R = np.diag(np.sqrt(lam) * unit)
    for part, weight in rows():
        for start in range(0, part.shape[0], 2 * d + 64):
            block = slice(start, start + 2 * d + 64)
            weighted_rows = np.sqrt(weight[block])[:, None] * part[block] * unit
            R = scipy.linalg.qr(np.vstack([R, weighted_rows]), mode="r", check_finite=False)[0][:d]
    return np.asarray(R)


def only_linear(solver: str) -> Refusal:
    """Return the refusal of a solver that works on features only: it needs a linear kernel."""

    def reason(problem: LeastSquares, gram: Gram) -> str | None:
        if linear_scale(gram.kernel) is not None:
            return None
        return f"solver={solver!r} is for linear kernels, and this one is {gram.kernel!r}; use 'auto'"

    return reason


@refuses(only_linear("covariance"))
def solve_covariance(problem: LeastSquares, gram: Gram, stop: Stop, start: object = None) -> Proven:
    """Solve for a linear kernel by the covariance matrix, to rounding, whatever the tolerance of `stop`."""
    linear = gram.linear
    assert linear is not None
    d = linear.d
    if covariance_bytes(d) > gram.budget:
        raise memory_error(f"the covariance of {d:,} features", covariance_bytes(d), gram.budget, "solver='lsqr'")
    stop.report_progress(partial("covariance of {:,} features".format, d))
    with enforce_deadline(stop):
        sums = linear.sums(problem)
    mean = sums.x if problem.bias else None
    centre = None if linear.sparse else mean

    def rows() -> Iterator[tuple[Floats, Floats]]:
        for block, part in linear.dense_blocks(mean):
            yield part, problem.total[block]

    inverse = RidgeInverse(sums.xx, problem.lam / linear.scale, stop.n_threads, rows)
    W = refined_weights(problem, linear, sums.x, sums.y, inverse(sums.xy), inverse)
    b = sums.bias_of(W)
    beta, certificate = certify_weights(problem, linear, W, b, centre, sums)
    reason: StopReason = "converged" if is_exact(problem, certificate) else "rounding floor"
    solution = LeastSquaresSolution(b, "covariance", inverse.rank, W=W, beta=beta, sums=sums, stop_reason=reason)
    return replace(solution, dropped=d - inverse.rank), certificate


def refined_weights(
    problem: LeastSquares, linear: LinearGram, x: Floats, y: Floats, W: Floats, inverse: Callable[[Floats], Floats]
) -> Floats:
    """Correct weights by gradients computed from the samples, until that no longer lowers the loss.

    x and y are the means, or 0 without a bias. The sums in `inverse` have lost digits by cancellation; a gradient from
    the samples has not.
    """
    lam = problem.lam / linear.scale
    centre = None if linear.sparse or not problem.bias else x
    squares = problem.weight @ (problem.Y - y) ** 2
    last = np.full(W.shape[1], np.inf)
    for _ in range(30):  # usually ends after two: each gain must be below a quarter of the last
        with np.errstate(over="ignore", invalid="ignore"):
            offset = y if centre is not None else y - x @ W
            R = problem.total[:, None] * (problem.mean - linear.times(W, centre) - offset)
            gradient = linear.transposed(R, centre) - lam * W
            if centre is None and problem.bias:
                gradient -= np.outer(x, R.sum(axis=0))
            step = inverse(gradient)
            gain = np.abs(np.sum(gradient * step, axis=0))
        is_better = gain < 0.25 * last
        if not is_better.any():
            break
        W = np.where(is_better, W + step, W)
        if (gain <= _EPS**2 * squares).all():
            break
        last = np.where(is_better, gain, 0.0)
    return W


def solve_sums(problem: RidgeProblem, sums: Sums, stop: Stop, start: object = None, *, scale: float = 1.0) -> Proven:
    """Solve for k = scale·⟨x, z⟩ from sums over samples that cannot be read again."""
    lam = problem.lam / scale
    stop.report_progress(partial("covariance of {:,} features".format, len(sums.x)))
    inverse = RidgeInverse(sums.xx, lam, stop.n_threads)
    W = inverse(sums.xy)
    for _ in range(2):  # more corrections gain nothing from sums alone
        W = W + inverse(sums.xy - sums.xx @ W - lam * W)
    certificate = certify_sums(sums, W, lam, scale)
    solution = LeastSquaresSolution(
        sums.bias_of(W),
        "covariance",
        inverse.rank,
        W=W,
        sums=sums,
        dropped=len(sums.x) - inverse.rank,
        stop_reason="converged" if sums_are_exact(sums, certificate, lam, scale) else "rounding floor",
    )
    return solution, certificate


@refuses(only_linear("lsqr"))
def solve_lsqr(problem: LeastSquares, gram: Gram, stop: Stop, start: object = None) -> Proven:
    """Solve for a linear kernel by LSQR, as accurately as it can, whatever the tolerance of `stop`."""
    all_columns = gram.linear
    assert all_columns is not None
    linear, used_columns = all_columns.without_empty_columns()
    stop.report_progress(partial("{} outputs of {:,} samples by LSQR".format, problem.n_outputs, problem.n))
    with enforce_deadline(stop):
        W, b, centre, steps = _weights(linear, problem)
    beta, certificate = certify_weights(problem, linear, W, b, None if linear.sparse else centre)
    solution = LeastSquaresSolution(
        b=b,
        solver="lsqr",
        rank=min(all_columns.n, all_columns.d),
        W=over_all_columns(W.T, used_columns, all_columns.d).T,
        beta=beta,
        steps=steps,
        stop_reason="converged" if is_exact(problem, certificate) else "rounding floor",
    )
    return solution, certificate


def _weights(linear: LinearGram, problem: LeastSquares) -> tuple[Floats, Floats, Floats | None, int]:
    """Minimise Σ w_i (y_i − ⟨w, x_i⟩ − b)² + λ‖w‖² by LSQR; return w, b, the samples' mean and the iterations.

    Features are scaled to equal length, and the ridge is d more rows; X itself is not copied. The residual that
    rounding leaves is solved for again.
    """
    n, d, total = linear.n, linear.d, problem.total
    root, mass = np.sqrt(total), float(total.sum())
    centre = linear.transposed(total) / mass if problem.bias else np.zeros(d)
    y = problem.weight @ problem.Y / mass if problem.bias else np.zeros(problem.n_outputs)
    lam = problem.lam / linear.scale
    subtracted_centre = None if linear.sparse else centre
    length = (
        np.abs(linear.transposed_squares(total, subtracted_centre) - (mass * centre**2 if linear.sparse else 0.0)) + lam
    )
    unit = np.divide(1.0, np.sqrt(length), out=np.zeros(d), where=length > 0)
    ridge = np.sqrt(lam) * unit

    def times(v: Floats) -> Floats:
        _core.check_stop()
        v = v.reshape(-1)
        w = unit * v
        return np.concatenate([root * (linear.times(w) - centre @ w), ridge * v])

    def transposed(v: Floats) -> Floats:
        v = v.reshape(-1)
        sample_part = root * v[:n]
        return np.asarray(unit * (linear.transposed(sample_part) - centre * sample_part.sum()) + ridge * v[n:])

    A = spla.LinearOperator((n + d, d), matvec=times, rmatvec=transposed, dtype=np.float64)
    max_steps = 20 * min(n, d)  # exact arithmetic needs a twentieth of these; rounding can need more
    columns, steps = [], 0
    for k in range(problem.n_outputs):
        target = np.concatenate([root * (problem.mean[:, k] - y[k]), np.zeros(d)])
        z, slope = np.zeros(d), np.inf
        for _ in range(4):  # later rounds remove what rounding left
            residual = target - times(z)
            gradient_norm = float(np.linalg.norm(transposed(residual)))
            if not gradient_norm < 0.5 * slope:
                break
            slope = gradient_norm
            answer = spla.lsqr(A, residual, atol=1e-15, btol=1e-15, conlim=0, iter_lim=max_steps)
            z = z + answer[0]
            steps += int(answer[2])
        columns.append(unit * z)
    W = np.column_stack(columns)
    return W, y - centre @ W, centre if problem.bias else None, steps
