"""Samples that a kernel matrix and its views share, as given, prepared or stored as a matrix; and errors of values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from mercer.kernels import Kernel
from mercer.kernels.recipe import Recipe
from mercer.places.ball import Ball
from mercer.places.host.prepared import PreparedSamples
from mercer.places.rounding import DOUBLE, conditioning, generic_error
from mercer.samples.arrays import Floats, Indices, PickedRows, gamma, row_blocks

# Bounds √M(x, x) are clipped to this number, because infinity times 0 would be no bound.
_LARGEST_ROOT = 1e300


class SharedSamples:
    """Data that a matrix and its views share: samples, their prepared or stored form, and whether K was refuted."""

    def __init__(
        self, kernel: Kernel, X: Any, n_threads: int, constant: float = 0.0, centre: Floats | None = None
    ) -> None:
        self.kernel, self.X, self.n_threads = kernel, X, n_threads
        self.constant = constant  # added in float64 to the values of a given matrix of any type
        self.matrix = X if kernel.accepts == "gram" else None
        self.prepared = PreparedSamples.of(kernel, X, n_threads, centre)
        self.refuted = False  # True once K is known to be indefinite
        self.largest = 0.0  # largest |value| computed so far, for a kernel that is not positive definite
        if self.matrix is not None and kernel.positive_definite != "yes":
            largest = max((_largest_magnitude(X[block]) for block in row_blocks(len(X), 8 * len(X))), default=0.0)
            self.largest = largest + constant

    @cached_property
    def value_error(self) -> float:
        """Error of a value that the kernel computes itself, in units of √(k_ii k_jj); 0 for a given matrix.

        A stored matrix counts as given only if the kernel is precomputed: `KernelMatrix.share` stores computed values.
        """
        if self.kernel.accepts == "gram":
            return 0.0
        recipe = None if self.prepared is None else self.prepared.lowering.recipe
        return value_error(self.kernel, self.X, recipe=recipe)

    @property
    def root_of_largest(self) -> float:
        """Number r with r² at least the largest value so far, both computed and true."""
        return math.sqrt(self.largest) * (1 + self.value_error + 4 * DOUBLE)

    @cached_property
    def majorants(self) -> Floats | None:
        """√M(x, x) of every sample, where M is the kernel's `majorant`; None if a user gave values or a function."""
        if self.kernel.accepts == "gram" or self.kernel.given:
            return None
        with np.errstate(over="ignore"):
            roots = np.sqrt(np.abs(self.kernel.majorant().diag(self.X))) * (1 + self.value_error + 4 * DOUBLE)
        return np.asarray(np.minimum(roots, _LARGEST_ROOT))

    def record_largest(self, values: Floats) -> None:
        """Record the largest |value| computed so far, for a kernel that is not positive definite."""
        self.largest = max(self.largest, _largest_magnitude(values))


def kernel_diagonal(kernel: Kernel, X: Any) -> Floats:
    """Return k(x, x) of every sample."""
    if not isinstance(X, PickedRows) or kernel.unit_diagonal == "yes":
        return np.asarray(kernel.diag(X))
    return np.concatenate([kernel.diag(X[block]) for block in row_blocks(len(X), 8 * X.shape[1])])


def value_error(kernel: Kernel, *samples: Any, recipe: Recipe | None = None) -> float:
    """Return a bound on the error of the kernel's values between any of these samples, in units of √(k_ii k_jj).

    For a kernel that is not positive definite the units are those of its `majorant`. The values of a user's function
    count as exact. Values on sequences are sums of counts, or of numbers with at most a few quotients.
    """
    if kernel.given:
        return 0.0
    n_terms = max(map(kernel.n_terms, samples))
    if kernel.compares != "vectors":
        return gamma((64 + n_terms) * kernel.n_factors)
    worst_conditioning = max((conditioning(factor) for factor in _factors(kernel, recipe)), default=1.0)
    return generic_error(n_terms, worst_conditioning, kernel.n_factors)


def _factors(kernel: Kernel, recipe: Recipe | None = None) -> Iterator[Floats]:
    """Yield the Cholesky factors that the kernel, whose `recipe` may be known, or its parts map samples by."""
    if recipe is None and kernel.accepts == "vectors":
        recipe = kernel.recipe()
    if recipe is not None and recipe.factor is not None:
        yield recipe.factor
    elif recipe is None:
        for part in getattr(kernel, "parts", {}).values():
            yield from _factors(part)


def _largest_magnitude(values: Floats) -> float:
    """Return the largest |value|."""
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def check_finite_values(values: Floats, kernel: Kernel) -> Floats:
    """Return these kernel values; raise FloatingPointError if one of them is not finite."""
    if not np.isfinite(values).all():
        raise FloatingPointError(
            f"{kernel!r} produced a non-finite value; its largest finite one here is "
            f"{np.abs(values[np.isfinite(values)]).max(initial=0.0):.3g}. "
            + (
                "Lower its decay, or bound the length of the subsequences that it counts"
                if kernel.accepts == "sequences"
                else "Scale the features, or lower the degree, gamma or coef0"
            )
        )
    return values


def partial_sums(
    values: Callable[[Indices, Indices], Floats], coefficients: Floats, rows: Indices, value_error: float, r: Floats
) -> Ball:
    """Return K[rows] @ coefficients for stored values, in partial sums of about √n terms, with bounds.

    `value_error` bounds the error of each value in units of r_i r_j; it is 0 for a given matrix.
    """
    J, width = coefficients.nonzero()[0], math.isqrt(len(coefficients)) + 1
    c, u, size = coefficients[J], np.zeros(len(rows)), np.zeros(len(rows))
    for block in row_blocks(len(rows), 8 * len(J)):
        K = values(rows[block], J)
        for left in range(0, len(J), width):
            u[block] += K[:, left : left + width] @ c[left : left + width]
        size[block] = np.abs(K, out=K) @ np.abs(c)
    error = gamma(2 * width + 8) * size
    if value_error:
        error += 1.01 * value_error * float(np.abs(c) @ r[J]) * r[rows]
    return Ball(u, error)
