"""Coefficients and b that give a compressed machine the original's values on samples, as nearly as its span allows.

    minimise over a, b  ½ Σ_n ω_n (f(x_n) − f'(x_n) − b)² + ½λ ‖f − f'‖²

The penalty is on the way from the projection of f, which is nearest to f where there are no samples. Where the sign of
one f decides, ω_n = 1/(1 + (f(x_n)/2)⁴), since samples far from the boundary stay on their side; else ω_n = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg

from mercer.arrays import Floats, Indices, add_gram, mirror, n_samples, take
from mercer.compression.span import Span
from mercer.compression.target import Target
from mercer.kernels import Kernel

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
        """The samples that positions are found with: at most _MOST_ROWS, evenly spread."""
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
        """As many of these rows, evenly spread, as have room in memory for their coordinates on the vectors."""
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
