"""What `tol` is measured in: 1, in the scale of f, or less where all that f could tell apart is smaller than that.

A machine with a price C measures f in labels ±1 or in the unit of y, and one without in the unit of the kernel. So with
targets of size 1e-4, or features in kilometres instead of metres, an absolute tolerance would be met before training
has begun. The unit is never above 1: a fit that converged has a violation of at most `tol`.
"""

from __future__ import annotations

import numpy as np

from mercer.arrays import Floats
from mercer.fitting.pipeline.fit import Fit

# A spread below this share of the values is rounding, or near enough that no tolerance relative to it could be met.
_RESOLVED_SHARE = 1e-9
# Weights beyond this, or below its inverse, leave the range of float64 when they are squared.
_LARGEST_WEIGHT = 1e140
# Below this size squares underflow, and no objective tells two models apart.
_SMALLEST = 1e-140


def unit_of_targets(y: Floats, weight: Floats) -> float:
    """The standard deviation of y, at most 1."""
    largest = float(np.abs(y).max())
    if largest < _SMALLEST:
        return 1.0
    scaled, share = y / largest, weight / weight.sum()
    deviation = float(np.sqrt(share @ (scaled - share @ scaled) ** 2))
    return min(1.0, largest * max(deviation, _RESOLVED_SHARE))


def unit_of_kernel(fit: Fit) -> float:
    """Half the largest squared distance of a sample from the first one in feature space, at most 1."""
    gram = fit.gram()
    largest = float(np.abs(gram.diagonal).max())
    if largest < _SMALLEST:
        return 1.0
    first = np.zeros(gram.n)
    first[0] = 1.0
    with_first = gram.product(first)
    square = float((0.5 * (gram.diagonal + gram.diagonal[0]) - with_first).max())
    return min(1.0, max(square, _RESOLVED_SHARE * largest))


def unit_of_weights(weight: Floats) -> float:
    """The largest weight, at most 1: the coefficients of machines without C, and with them f, grow with the weights."""
    return min(1.0, float(weight.max()))


def expect_squares(weight: Floats) -> None:
    """Refuse weights whose squares leave the range of float64, in a machine that knows only their proportions."""
    largest = float(weight.max())
    if not 1 / _LARGEST_WEIGHT <= largest <= _LARGEST_WEIGHT:
        raise FloatingPointError(
            f"sample weights of {largest:.3g} leave the range of float64 when they are squared; scale them: only their "
            "proportions matter here"
        )
