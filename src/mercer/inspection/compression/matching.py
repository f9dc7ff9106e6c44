"""Fit coefficients, b and positions of few vectors Z to a machine's functions, and to samples if there are any.

By values: the original's values on the samples are approximated in the span of Z,

    minimise over a, b  ½ Σ_o Σ_n ω_n (f_o(x_n) − f'_o(x_n) − b_o)² + ½λ Σ_o ‖f_o − f'_o‖²,   f'_o = Σ_i a_io k(z_i, ·)

The penalty keeps the solution near the projection of f, the solution without samples. If the sign of one f decides,
ω_n = 1/(1 + (f(x_n)/2)⁴), since samples far from the boundary stay on their side; otherwise ω_n = 1.

By loss (Tang and Mazzoni 2006): in the coordinates L⁻¹k(Z, x) of the span of Z the machine is linear, and its ½‖w'‖²
is the one in feature space. The estimator itself, with a linear kernel, is trained on them.

Positions: gradient descent moves Z to reduce that minimum over a and b, or Σ_o ‖f_o − f'_o‖² without samples. At the
best a and b, the derivatives by a and b vanish, and only the explicit dependence on z_i counts (variable projection):

    ∂/∂z_i = −Σ_o a_io ∇[λ(f_o − f'_o) + Σ_n ω_n r_no k(x_n, ·)](z_i),      r_no = f_o(x_n) − f'_o(x_n) − b_o

Since only sums over o are needed, many outputs are replaced by a few orthogonal combinations with the largest values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, optimize
from sklearn.base import clone

from mercer.inspection.compression.target import Span, TargetFunctions
from mercer.kernels import Kernel
from mercer.places.expansion import Expansion
from mercer.places.host.rows import weight_vectors
from mercer.runtime.errors import NotSeparableError
from mercer.samples.arrays import Floats, Indices, add_gram, mirror, n_samples, row_blocks, rows_between, take

# |f| beyond which a sample counts little: twice the margin. (Letter at a tenth of its vectors loses 0.1 points
# of accuracy with 1, 0.13 with 2 and 0.2 without weights, spam 0.72, 0.65 and 0.58.)
_FAR_VALUE = 2.0
# Largest number of samples for finding positions; more add time and little else.
_MOST_ROWS = 20_000
# Largest number of coordinates of samples in memory at a time: 512 MB.
_MOST_COORDINATES = 1 << 26

# λ as a share of n k(x, x), the largest value of Σ_n δ(x_n)² over functions δ of norm 1: small, since samples should
# decide (spam at a tenth of its vectors loses 0.5 points of accuracy with 3e-6, and 0.9 with 3e-4).
_PENALTY_SHARE = 3e-6

# Operations of all gradient steps together, about twenty seconds on one core; the smallest and largest number of steps;
# and the operations that the smallest number of steps may take.
_USUAL_OPERATIONS, _FEWEST_STEPS, _MOST_STEPS = 2e11, 20, 100
_MOST_OPERATIONS = 2e12
# Largest number of combinations that replace the outputs.
_MOST_COMBINATIONS = 64


@dataclass(frozen=True, eq=False)
class FitSamples:
    """Samples to which a compressed machine is fitted: its training samples, or similar ones."""

    X: Any
    y: Any
    weight: Any
    kernel: Kernel
    bias: bool  # whether the machine has a b that may change
    by_sign: bool  # whether the sign of f decides

    @cached_property
    def subset(self) -> Any:
        """At most `_MOST_ROWS` of the samples, evenly spaced, for finding positions."""
        n = n_samples(self.X)
        return self.X if n <= _MOST_ROWS else take(self.X, np.linspace(0, n - 1, _MOST_ROWS).astype(np.intp))

    def weights(self, values: Floats) -> Floats:
        """Return the weights ω_n of samples with these values of f, b included."""
        if not self.by_sign or values.shape[1] > 1:
            return np.ones(len(values))
        return np.asarray(1.0 / (1.0 + (values[:, 0] / _FAR_VALUE) ** 4))

    @cached_property
    def penalty(self) -> float:
        """Penalty λ for the subset."""
        return self.penalty_for(self.subset)

    def penalty_for(self, X: Any) -> float:
        """Return the penalty λ for these samples."""
        return _PENALTY_SHARE * float(np.abs(self.kernel.diag(X)).sum())

    def limit_rows(self, rows: Indices, n_vectors: int) -> Indices:
        """Select evenly spaced rows, so few that their coordinates on `n_vectors` vectors fit into memory."""
        max_rows = max(_MOST_ROWS // 4, _MOST_COORDINATES // max(1, n_vectors))
        return rows if len(rows) <= max_rows else rows[np.linspace(0, len(rows) - 1, max_rows).astype(np.intp)]


def best_match(
    features: Floats, residuals: Floats, weights: Floats, lam: float, bias: bool
) -> tuple[Floats, Floats, Floats]:
    """Fit a change of coordinates and b to `residuals`, the values minus those of the projection, by ridge regression.

    `features` are the coordinates of the samples, a row for each. Without `bias`, b is 0. Return the change, b and the
    remaining residuals.
    """
    mass, weighted_features = float(weights.sum()), np.sqrt(weights)[:, None] * features
    mean, mean_residual = bias * (weights @ features) / mass, bias * (weights @ residuals) / mass
    gram = np.zeros((features.shape[1], features.shape[1]))
    add_gram(gram, weighted_features)
    mirror(gram)
    gram -= mass * np.outer(mean, mean)
    gram[np.diag_indices(len(gram))] += lam
    rhs = features.T @ (weights[:, None] * residuals) - mass * np.outer(mean, mean_residual)
    change = np.asarray(linalg.solve(gram, rhs, assume_a="sym", check_finite=False))
    b = mean_residual - mean @ change
    return change, b, residuals - features @ change - b


def match_values(model: Any, target: TargetFunctions, span: Span, samples: FitSamples) -> tuple[Floats, Floats]:
    """Return the coordinates in the span and b that best fit the original's values on samples."""
    X = take(samples.X, samples.limit_rows(np.arange(n_samples(samples.X)), n_samples(span.vectors)))
    coordinates, features = target.projection(span), span.coordinates(X)
    values = target.values(X)
    weights = samples.weights(values + target.expansion.b)
    change, b, _ = best_match(features, values - features @ coordinates, weights, samples.penalty_for(X), samples.bias)
    return coordinates + change, target.expansion.b + b


def retrain_in_span(
    machine: Any, target: TargetFunctions, span: Span, samples: FitSamples
) -> tuple[Floats, Floats] | None:
    """Minimise the machine's loss in a span; return the coordinates of w' (a column per output) and b', or None.

    None means that the loss cannot be minimised there.
    """
    # The problem would be another one in these coordinates: f contains k(x, x), or landmarks would be chosen again.
    if machine._SUBTRACTS_DIAGONAL or "n_landmarks" in machine.get_params(deep=False):
        return None
    linear = clone(machine).set_params(kernel="linear", **_linear_parameters(machine))
    features = span.coordinates(samples.X)
    try:
        linear.fit(features, samples.y, sample_weight=samples.weight)
    except NotSeparableError:  # the samples are not separable in the span
        return None
    if hasattr(machine, "classes_") and not np.array_equal(linear.classes_, machine.classes_):
        raise ValueError(
            f"y holds the classes {linear.classes_.tolist()}, but the model was trained on "
            f"{machine.classes_.tolist()}; pass the samples that it was trained on"
        )
    expansion: Expansion = linear._expansion_
    if len(expansion.b) != len(machine.intercept_):
        raise ValueError(f"y has {len(expansion.b)} outputs, but the model has {len(machine.intercept_)}")
    return weight_vectors(expansion.vectors, expansion.coefficients), np.asarray(expansion.b)


def _linear_parameters(machine: Any) -> dict[str, Any]:
    """Return the parameters to set for a fit in the span: automatic solver, no warm start, and the λ chosen before."""
    parameters = machine.get_params(deep=False)
    settings: dict[str, Any] = {"solver": "auto"} if "solver" in parameters else {}
    if "warm_start" in parameters:
        settings["warm_start"] = False
    if "lams" in parameters:
        settings |= {"lams": [machine.lam_], "grid": None}
    return settings


def move_vectors(
    target: TargetFunctions, start: Floats, samples: FitSamples | None, report: Callable[[float], None]
) -> Floats:
    """Move the vectors `start` by gradient descent so that their span fits `target`, and the samples, better.

    Return `start` if even one step would take too long.
    """
    if _n_steps(target, start, None if samples is None else samples.subset, 1) == 0:
        return start
    vectors, kernel, shape = target.expansion.vectors, target.expansion.kernel, start.shape
    rotation = _combine_outputs(target)
    table = np.asarray(target.expansion.coefficients @ rotation)
    combined_target = TargetFunctions(replace(target.expansion, coefficients=table, b=np.zeros(table.shape[1])))
    X: Any = None if samples is None else samples.subset
    target_values: Any = None
    if samples is not None:
        values = target.values(X)
        target_values, importance = values @ rotation, samples.weights(values + target.expansion.b)
    unit = float(np.sqrt(np.mean(np.var(vectors, axis=0)))) or 1.0
    steps, n_done = _n_steps(target, start, X, table.shape[1]), 0

    def objective(flat: Floats) -> tuple[float, Floats]:
        """Return the minimum over coordinates and b for these positions, in units of `unit`, and its gradient."""
        # 1. Best coordinates, with the value of the objective.
        span = Span(kernel, unit * flat.reshape(shape))
        Z = span.vectors
        coordinates = combined_target.projection(span)
        value, weight, slope = -0.5 * float(np.sum(coordinates**2)), 1.0, np.zeros_like(Z)
        if samples is not None:
            features = span.coordinates(X)
            lam = samples.penalty
            change, _, residuals = best_match(
                features, target_values - features @ coordinates, importance, lam, samples.bias
            )
            loss = 0.5 * float(importance @ (residuals**2).sum(axis=1))
            value = lam * (value + 0.5 * float(np.sum(change**2))) + loss
            coordinates, weight = coordinates + change, lam
        a = span.coefficients(coordinates)
        if not np.isfinite(a).all():
            return np.inf, np.zeros_like(flat)
        # 2. Gradient in the positions, by the formula at the top of this file.
        if samples is not None:
            for block in row_blocks(n_samples(X), 8 * len(Z)):
                slope -= kernel.gradient(
                    Z, rows_between(X, block), weights=a @ (importance[block, None] * residuals[block]).T
                )
        for block in row_blocks(len(vectors), 8 * len(Z)):
            slope -= weight * kernel.gradient(Z, vectors[block], weights=a @ table[block].T)
        slope += weight * kernel.gradient(Z, Z, weights=a @ a.T)
        return value, unit * slope.ravel()

    def report_step(_: Floats) -> None:
        nonlocal n_done
        n_done += 1
        report(n_done / steps)

    result = optimize.minimize(  # type: ignore[call-overload]  # its stubs do not know arrays of any shape
        objective,
        (start / unit).ravel(),
        jac=True,
        method="L-BFGS-B",
        callback=report_step,
        options={"maxiter": steps, "maxfun": 2 * steps, "maxcor": 20},
    )
    Z = np.ascontiguousarray(unit * result.x.reshape(shape))
    return Z if np.isfinite(Z).all() else start


def _combine_outputs(target: TargetFunctions) -> Floats:
    """Return orthonormal columns that combine many outputs into the few with the largest values at the vectors."""
    n = len(target.expansion.b)
    if n <= _MOST_COMBINATIONS:
        return np.eye(n)
    values = target.values_at_vectors
    _, vectors = linalg.eigh(values.T @ values, subset_by_index=(n - _MOST_COMBINATIONS, n - 1))
    return np.asarray(vectors)


def _n_steps(target: TargetFunctions, start: Floats, X: Any, n_outputs: int) -> int:
    """Return the number of gradient steps that the limits on operations allow; 0 if one step is too long."""
    m, n_features = start.shape
    rows = target.n + m + (0 if X is None else n_samples(X))
    step_cost = 2.0 * rows * m * (3 * n_features + m + 4 * n_outputs)
    fewest_steps = min(_FEWEST_STEPS, _MOST_OPERATIONS / step_cost)
    return int(np.clip(_USUAL_OPERATIONS / step_cost, fewest_steps, _MOST_STEPS))
