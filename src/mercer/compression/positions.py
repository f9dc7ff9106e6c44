"""Positions of a few vectors by gradient: the span that represents all of a machine's functions best.

Without samples the span that comes nearest to them in the kernel's space, with samples X the one on which they can be
matched best there (`matching`), by variable projection:

    minimise over Z  min over a, b of  ½λ Σ_o ‖f_o − f'_o‖² + ½ Σ_o Σ_n ω_n (f_o(x_n) − f'_o(x_n) − b_o)²,
    f'_o = Σ_i a_io k(z_i, ·)

    ∂/∂z_i = −Σ_o a_io ∇[λ(f_o − f'_o) + Σ_n ω_n r_no k(x_n, ·)](z_i),      r_no = f_o(x_n) − f'_o(x_n) − b_o

At the best a and b their own derivatives drop out. Only sums over o are needed: many outputs are turned into a few
combinations that hold nearly all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import linalg, optimize

from mercer.arrays import Floats, n_samples, row_blocks, rows_between
from mercer.compression.matching import Samples, best_match
from mercer.compression.target import Span, Target

# Operations that all steps together may take, about twenty seconds of one core; and the steps that are taken anyway, if
# they take no more than these.
_OPERATIONS, _FEWEST_STEPS, _MOST_STEPS = 2e11, 20, 100
_MOST_OPERATIONS = 2e12
# The most combinations that outputs are turned into.
_COMBINATIONS = 64


def refined(target: Target, start: Floats, samples: Samples | None, report: Callable[[float], None]) -> Floats:
    """Vectors near `start` whose span does better for the functions of `target`, on samples if there are any.

    Where a step takes longer than there is time, `start` itself.
    """
    if _steps(target, start, None if samples is None else samples.some, 1) == 0:
        return start
    vectors, kernel, shape = target.expansion.vectors, target.expansion.kernel, start.shape
    turn = _combinations(target)
    table = np.asarray(target.expansion.coefficients @ turn)
    turned = Target(replace(target.expansion, coefficients=table, b=np.zeros(table.shape[1])))
    X: Any = None if samples is None else samples.some
    wanted: Any = None
    if samples is not None:
        values = target.values(X)
        wanted, importance = values @ turn, samples.weights(values + target.expansion.b)
    unit = float(np.sqrt(np.mean(np.var(vectors, axis=0)))) or 1.0
    steps, done = _steps(target, start, X, table.shape[1]), 0

    def objective(flat: Floats) -> tuple[float, Floats]:
        span = Span(kernel, unit * flat.reshape(shape))
        Z = span.vectors
        coordinates = turned.projection(span)
        value, weight, slope = -0.5 * float(np.sum(coordinates**2)), 1.0, np.zeros_like(Z)
        if samples is not None:
            features = span.coordinates(X)
            lam = samples.penalty
            way, _, residuals = best_match(features, wanted - features @ coordinates, importance, lam, samples.bias)
            value = lam * (value + 0.5 * float(np.sum(way**2))) + 0.5 * float(importance @ (residuals**2).sum(axis=1))
            coordinates, weight = coordinates + way, lam
        a = span.coefficients(coordinates)
        if not np.isfinite(a).all():
            return np.inf, np.zeros_like(flat)
        if samples is not None:
            for some in row_blocks(n_samples(X), 8 * len(Z)):
                slope -= kernel.gradient(
                    Z, rows_between(X, some), weights=a @ (importance[some, None] * residuals[some]).T
                )
        for some in row_blocks(len(vectors), 8 * len(Z)):
            slope -= weight * kernel.gradient(Z, vectors[some], weights=a @ table[some].T)
        slope += weight * kernel.gradient(Z, Z, weights=a @ a.T)
        return value, unit * slope.ravel()

    def told(_: Floats) -> None:
        nonlocal done
        done += 1
        report(done / steps)

    found = optimize.minimize(  # type: ignore[call-overload]  # its stubs do not know arrays of any shape
        objective,
        (start / unit).ravel(),
        jac=True,
        method="L-BFGS-B",
        callback=told,
        options={"maxiter": steps, "maxfun": 2 * steps, "maxcor": 20},
    )
    Z = np.ascontiguousarray(unit * found.x.reshape(shape))
    return Z if np.isfinite(Z).all() else start


def _combinations(target: Target) -> Floats:
    """An orthonormal matrix that turns the outputs into those few combinations that are largest on the vectors."""
    n = len(target.expansion.b)
    if n <= _COMBINATIONS:
        return np.eye(n)
    values = target.own_values
    _, turns = linalg.eigh(values.T @ values, subset_by_index=(n - _COMBINATIONS, n - 1))
    return np.asarray(turns)


def _steps(target: Target, start: Floats, X: Any, outputs: int) -> int:
    """How many steps there is time for."""
    m, features = start.shape
    rows = target.n + m + (0 if X is None else n_samples(X))
    each = 2.0 * rows * m * (3 * features + m + 4 * outputs)
    fewest = min(_FEWEST_STEPS, _MOST_OPERATIONS / each)
    return int(np.clip(_OPERATIONS / each, fewest, _MOST_STEPS))
