"""Coefficients, b and positions of few vectors Z, fitted to a machine's functions and, if there are any, to samples.

By values: the original's values on the samples, as nearly as the span allows,

    minimise over a, b  ½ Σ_o Σ_n ω_n (f_o(x_n) − f'_o(x_n) − b_o)² + ½λ Σ_o ‖f_o − f'_o‖²,   f'_o = Σ_i a_io k(z_i, ·)

The penalty is on the way from the projection of f, which is nearest to f where there are no samples. Where the sign of
one f decides, ω_n = 1/(1 + (f(x_n)/2)⁴), since samples far from the boundary stay on their side; else ω_n = 1.

By loss (Tang and Mazzoni 2006): in the coordinates L⁻¹k(Z, x) of the span of Z the machine is a linear one, whose
½‖w'‖² is that of the kernel's space. The estimator itself, with a linear kernel, trains it and proves it.

Positions: the Z with the least of that minimum, without samples the one with the least Σ_o ‖f_o − f'_o‖², by gradient.
At the best a and b their own derivatives drop out (variable projection):

    ∂/∂z_i = −Σ_o a_io ∇[λ(f_o − f'_o) + Σ_n ω_n r_no k(x_n, ·)](z_i),      r_no = f_o(x_n) − f'_o(x_n) − b_o

Only sums over o are needed: many outputs are turned into a few combinations that hold nearly all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, optimize
from sklearn.base import clone

from mercer.inspection.compression.target import Span, Target
from mercer.kernels import Kernel
from mercer.places.expansion import Expansion
from mercer.places.host.rows import weight_vectors
from mercer.runtime.errors import NotSeparableError
from mercer.samples.arrays import Floats, Indices, add_gram, mirror, n_samples, row_blocks, rows_between, take

# From |f| of about this on a sample counts little: twice the margin. (Letter at a tenth of its vectors loses 0.1 points
# of accuracy with 1, 0.13 with 2 and 0.2 without weights, spam 0.72, 0.65 and 0.58.)
_FAR = 2.0
# Samples beyond these add time, and little else.
_MOST_ROWS = 20_000
# Coordinates of samples that are held at a time, 512 MB of them.
_MOST_COORDINATES = 1 << 26

# λ as a share of n k(x, x), the largest that Σ_n δ(x_n)² of a function δ of length 1 can be: small, since samples say
# what matters (spam at a tenth of its vectors loses 0.5 points of accuracy with 3e-6, and 0.9 with 3e-4).
_SHARE = 3e-6

# Operations that all steps together may take, about twenty seconds of one core; and the steps that are taken anyway, if
# they take no more than these.
_OPERATIONS, _FEWEST_STEPS, _MOST_STEPS = 2e11, 20, 100
_MOST_OPERATIONS = 2e12
# The most combinations that outputs are turned into.
_COMBINATIONS = 64


@dataclass(frozen=True, eq=False)
class Samples:
    """What a machine was trained on, or other samples like those that it will see."""

    X: Any
    y: Any
    weight: Any
    kernel: Kernel
    bias: bool  # whether the machine has a b that may change
    by_sign: bool  # whether the sign of f decides

    @cached_property
    def some(self) -> Any:
        """At most `_MOST_ROWS` of them, evenly spaced, with which positions are found."""
        n = n_samples(self.X)
        return self.X if n <= _MOST_ROWS else take(self.X, np.linspace(0, n - 1, _MOST_ROWS).astype(np.intp))

    def weights(self, values: Floats) -> Floats:
        """ω_n of samples with these f, b included."""
        if not self.by_sign or values.shape[1] > 1:
            return np.ones(len(values))
        return np.asarray(1.0 / (1.0 + (values[:, 0] / _FAR) ** 4))

    @cached_property
    def penalty(self) -> float:
        """λ."""
        return self.penalty_of(self.some)

    def penalty_of(self, X: Any) -> float:
        """λ where only these samples count."""
        return _SHARE * float(np.abs(self.kernel.diag(X)).sum())

    def at_most(self, rows: Indices, vectors: int) -> Indices:
        """Some of these rows, evenly spaced, as many as have coordinates on the vectors that fit into memory."""
        most = max(_MOST_ROWS // 4, _MOST_COORDINATES // max(1, vectors))
        return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)]


def best_match(
    features: Floats, lacking: Floats, weights: Floats, lam: float, bias: bool
) -> tuple[Floats, Floats, Floats]:
    """The way to go in coordinates, b, and what is still lacking; `lacking` are the values that the projection lacks.

    The features are coordinates of the samples, a row each. Without `bias` b is zero.
    """
    mass, own = float(weights.sum()), np.sqrt(weights)[:, None] * features
    mean, gap = bias * (weights @ features) / mass, bias * (weights @ lacking) / mass
    gram = np.zeros((features.shape[1], features.shape[1]))
    add_gram(gram, own)
    mirror(gram)
    gram -= mass * np.outer(mean, mean)
    gram[np.diag_indices(len(gram))] += lam
    right = features.T @ (weights[:, None] * lacking) - mass * np.outer(mean, gap)
    way = np.asarray(linalg.solve(gram, right, assume_a="sym", check_finite=False))
    b = gap - mean @ way
    return way, b, lacking - features @ way - b


def matched(model: Any, target: Target, span: Span, samples: Samples) -> tuple[Floats, Floats]:
    """Coordinates and b with which the functions have the original's values on samples, as nearly as they can."""
    X = take(samples.X, samples.at_most(np.arange(n_samples(samples.X)), n_samples(span.vectors)))
    coordinates, features = target.projection(span), span.coordinates(X)
    values = target.values(X)
    weights = samples.weights(values + target.expansion.b)
    way, b, _ = best_match(features, values - features @ coordinates, weights, samples.penalty_of(X), samples.bias)
    return coordinates + way, target.expansion.b + b


def retrained(machine: Any, target: Target, span: Span, samples: Samples) -> tuple[Floats, Floats] | None:
    """Coordinates of w' (a column for each output) and b'; None where the loss cannot be minimised in the span."""
    # Another problem in these coordinates: f asks for k(x, x) itself, or landmarks would be chosen again.
    if machine._SUBTRACTS_DIAGONAL or "n_landmarks" in machine.get_params(deep=False):
        return None
    linear = clone(machine).set_params(kernel="linear", **_settings(machine))
    features = span.coordinates(samples.X)
    try:
        linear.fit(features, samples.y, sample_weight=samples.weight)
    except NotSeparableError:  # the hard margin is lost with the vectors
        return None
    if hasattr(machine, "classes_") and not np.array_equal(linear.classes_, machine.classes_):
        raise ValueError(
            f"y holds the classes {linear.classes_.tolist()}, but the machine was trained on "
            f"{machine.classes_.tolist()}; give the samples that it was trained on"
        )
    found: Expansion = linear._expansion_
    if len(found.b) != len(machine.intercept_):
        raise ValueError(f"y has {len(found.b)} outputs, but the machine has {len(machine.intercept_)}")
    return weight_vectors(found.vectors, found.coefficients), np.asarray(found.b)


def _settings(machine: Any) -> dict[str, Any]:
    """What else has to change: the solver, which may be for matrices only, and λ, which was chosen before."""
    known = machine.get_params(deep=False)
    settings: dict[str, Any] = {"solver": "auto"} if "solver" in known else {}
    if "warm_start" in known:
        settings["warm_start"] = False
    if "lams" in known:
        settings |= {"lams": [machine.lam_], "grid": None}
    return settings


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
