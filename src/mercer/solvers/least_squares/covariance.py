"""Linear least squares through sums over the samples: what is needed of the data is d × d, whatever n.

(X̃'WX̃ + λI) w = X̃'Wỹ,   b = ȳ − x̄'w,   X̃ = X − 1x̄', ỹ = y − ȳ    (x̄ = 0, ȳ = 0 without bias)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from mercer.arrays import Floats, is_sparse
from mercer.certificates.certificate import Certificate
from mercer.certificates.least_squares import is_exact
from mercer.certificates.sums import certify_sums, sums_are_exact
from mercer.certificates.weights import certify_weights
from mercer.gram.gram import Gram
from mercer.gram.linear_gram import LinearGram, float64_strips, linear_scale
from mercer.gram.sums import Sums
from mercer.problems.least_squares import LeastSquares, RidgeProblem
from mercer.solution import Report, Stop
from mercer.solvers.deadline import in_time
from mercer.solvers.least_squares.memory import covariance_bytes, memory_error
from mercer.solvers.least_squares.ridge_inverse import RidgeInverse
from mercer.solvers.least_squares.solution import LeastSquaresSolution
from mercer.solvers.solver import Refusal, refuses

_EPS = float(np.finfo(np.float64).eps)
# Corrections end by themselves, usually after two, since each must gain a quarter of what the last one did.
_MOST_CORRECTIONS = 30
# From sums alone two corrections leave rounding.
_SUM_CORRECTIONS = 2


def only_linear(solver: str) -> Refusal:
    """Why a solver in the features cannot be used, if it cannot."""

    def reason(problem: LeastSquares, gram: Gram) -> str | None:
        if linear_scale(gram.kernel) is not None:
            return None
        return f"solver={solver!r} is for linear kernels, and this one is {gram.kernel!r}; use 'auto'"

    return reason


@refuses(only_linear("covariance"))
def solve_covariance(
    problem: LeastSquares, gram: Gram, stop: Stop, start: Any = None, report: Report | None = None
) -> tuple[LeastSquaresSolution, Certificate]:
    """The solution for a linear kernel to rounding, whatever `stop` asks for."""
    linear = LinearGram.of(gram)
    assert linear is not None
    X, d = linear.X, linear.X.shape[1]
    if covariance_bytes(d) > gram.budget:
        raise memory_error(f"the covariance of {d:,} features", covariance_bytes(d), gram.budget, "solver='lsqr'")
    if report is not None:
        report(partial("covariance of {:,} features".format, d))
    with in_time(stop):
        sums = Sums.of(X, problem)
    centre = None if is_sparse(X) or not problem.bias else sums.x

    def rows() -> Iterator[tuple[Any, Floats]]:
        for some, part in float64_strips(X):
            yield _centred(part, sums.x if problem.bias else None), problem.total[some]

    inverse = RidgeInverse(sums.xx, problem.lam / linear.scale, gram.n_threads, rows)
    W = refined_weights(problem, linear, sums.x, sums.y, inverse(sums.xy), inverse)
    b = sums.bias_of(W)
    beta, certificate = certify_weights(problem, linear, W, b, centre, sums)
    rank = inverse.rank
    return (
        LeastSquaresSolution(
            b,
            "covariance",
            rank,
            W=W,
            beta=beta,
            sums=sums,
            dropped=d - rank,
            stop_reason="converged" if is_exact(problem, certificate) else "rounding floor",
        ),
        certificate,
    )


def refined_weights(
    problem: LeastSquares, linear: LinearGram, x: Floats, y: Floats, W: Floats, inverse: Callable[[Floats], Floats]
) -> Floats:
    """Weights corrected by gradients from the samples themselves, until that gains nothing more.

    x and y are the means, or 0 without bias. The sums that an inverse is made of have lost the digits of what they
    cancelled; a gradient has not.
    """
    lam = problem.lam / linear.scale
    centre = None if is_sparse(linear.X) or not problem.bias else x
    squares = problem.weight @ (problem.Y - y) ** 2
    last = np.full(W.shape[1], np.inf)
    for _ in range(_MOST_CORRECTIONS):
        with np.errstate(over="ignore", invalid="ignore"):
            offset = y if centre is not None else y - x @ W
            R = problem.total[:, None] * (problem.mean - linear.times(W, centre) - offset)
            gradient = linear.transposed(R, centre) - lam * W
            if centre is None and problem.bias:
                gradient -= np.outer(x, R.sum(axis=0))
            step = inverse(gradient)
            gain = np.abs(np.sum(gradient * step, axis=0))
        better = gain < 0.25 * last
        if not better.any():
            break
        W = np.where(better, W + step, W)
        if (gain <= _EPS**2 * squares).all():
            break
        last = np.where(better, gain, 0.0)
    return W


def _centred(part: Any, centre: Floats | None) -> Any:
    """Samples minus their mean, dense where there is one."""
    if centre is None:
        return part
    return (part.toarray() if is_sparse(part) else part) - centre


def solve_sums(
    problem: RidgeProblem,
    sums: Sums,
    stop: Stop,
    start: Any = None,
    report: Report | None = None,
    *,
    scale: float = 1.0,
    n_threads: int = 1,
) -> tuple[LeastSquaresSolution, Certificate]:
    """The solution for k = scale·⟨x, z⟩ where sums over the samples are all that is left of them."""
    lam = problem.lam / scale
    if report is not None:
        report(partial("covariance of {:,} features".format, len(sums.x)))
    inverse = RidgeInverse(sums.xx, lam, n_threads)
    W = inverse(sums.xy)
    for _ in range(_SUM_CORRECTIONS):
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
