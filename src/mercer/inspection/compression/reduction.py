"""Reduce a machine's functions to the span of few vectors, of a given number or with a given error.

Vectors are chosen one by one by orthogonal matching pursuit: each brings the span nearest to the functions. Let P
project onto the span of the vectors chosen so far, r_o = f_o − Pf_o and δ(x) = ‖φ(x) − Pφ(x)‖². Adding the vector x
reduces ‖r_o‖² by r_o(x)²/δ(x). A pivoted Cholesky factorisation of K updates r_o and δ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mercer.inspection.compression.matching import FitSamples, move_vectors
from mercer.inspection.compression.target import Span, TargetFunctions
from mercer.kernels import Kernel
from mercer.places.expansion import Expansion
from mercer.runtime.progress import Reporter
from mercer.samples.arrays import Floats, Indices, n_samples, take

# Largest number of vectors to keep: their kernel matrix takes 800 MB.
MOST_VECTORS = 10_000
# Largest number of candidates, raised to twice the wanted number of vectors if that is larger. If the model has more
# vectors, evenly spaced ones are the candidates.
_MOST_CANDIDATES = 10_000
# Share of max_error to aim at, so that the result stays below it despite rounding.
_AIM_SHARE = 1 - 1e-6
# Largest error whose square is finite in float64.
_LARGEST_ERROR = 1e150


@dataclass(frozen=True, eq=False)
class ReducedExpansion:
    """Expansion on fewer vectors, their span, and whether vectors were moved and coefficients fitted to samples."""

    expansion: Expansion
    span: Span | None = None
    moved: bool = False
    retrained: bool = False

    def fit_to_samples(
        self,
        target: TargetFunctions,
        fit: Callable[[TargetFunctions, Span, FitSamples], tuple[Floats, Floats] | None],
        samples: FitSamples | None,
        max_error: float | None,
        progress: Reporter,
    ) -> ReducedExpansion:
        """Return a copy with coefficients and b fitted to samples, as far as `max_error` allows."""
        if samples is None or self.span is None or n_samples(self.span.vectors) == 0:
            return self
        progress.report(f"fitting coefficients to {n_samples(samples.X)} samples")
        solution = fit(target, self.span, samples)
        if solution is None:
            return self
        coordinates, b = target.projection(self.span), target.expansion.b
        step, size = solution[0] - coordinates, np.ones(len(b))
        if max_error is not None:
            # The error of the projection is orthogonal to a step within the span, so that their squares add up.
            allowed_square = np.maximum(
                (_AIM_SHARE * min(max_error, _LARGEST_ERROR)) ** 2 - target.squared_error(coordinates), 0.0
            )
            size = np.sqrt(
                np.minimum(1.0, allowed_square / np.maximum((step**2).sum(axis=0), 1e-9 * allowed_square + 1e-300))
            )
        expansion = _expansion_on(target, self.span, coordinates + size * step, b + size * (solution[1] - b))
        return replace(self, expansion=expansion, retrained=True)


def reduce_to_count(
    target: TargetFunctions, count: int, samples: FitSamples | None, progress: Reporter
) -> ReducedExpansion:
    """Reduce to at most `count` vectors, fewer if fewer suffice."""
    return _move_and_project(
        target, _selection_order(target, lambda n, _: n >= count, count, progress), samples, progress
    )


def reduce_to_error(target: TargetFunctions, max_error: float, progress: Reporter) -> ReducedExpansion:
    """Reduce to as few vectors as reach `max_error`; keep all if float64 cannot reach it with fewer."""
    square = (_AIM_SHARE * min(max_error, _LARGEST_ERROR)) ** 2
    order = _selection_order(target, lambda _, remaining: bool(remaining.max(initial=0.0) <= square), None, progress)
    best, low, high = _project(target, take(target.expansion.vectors, order)), 0, len(order)
    if not _meets_error(target, best, square):
        return ReducedExpansion(target.expansion)
    while target.movable and low + 1 < high:
        middle = (low + high) // 2
        candidate = _move_and_project(target, order[:middle], None, progress)
        if _meets_error(target, candidate, square):
            high, best = middle, candidate
        else:
            low = middle
    return best


def _meets_error(target: TargetFunctions, reduction: ReducedExpansion, square: float) -> bool:
    """Return whether the squared error of the projection is at most `square` in every output."""
    assert reduction.span is not None
    return bool(target.squared_error(target.projection(reduction.span)).max(initial=0.0) <= square)


def _selection_order(
    target: TargetFunctions, is_enough: Callable[[int, Floats], bool], count: int | None, progress: Reporter
) -> Indices:
    """Choose vectors until `is_enough`; return their indices in the order of choice."""

    def should_stop(n: int, remaining: Floats) -> bool:
        progress.report_share("choosing vectors", n / (count or target.n))
        return n >= MOST_VECTORS or is_enough(n, remaining)

    max_candidates = min(target.n, max(_MOST_CANDIDATES, 2 * (count or 0)))
    candidates = np.linspace(0, target.n - 1, max_candidates).astype(np.intp)
    vectors, values = take(target.expansion.vectors, candidates), target.values_at_vectors[candidates]
    return candidates[choose_vectors(target.expansion.kernel, vectors, values, target.squared_norms, should_stop)]


def _project(target: TargetFunctions, vectors: Any, moved: bool = False) -> ReducedExpansion:
    """Project the functions onto the span of vectors."""
    span = Span(target.expansion.kernel, vectors)
    expansion = _expansion_on(target, span, target.projection(span), target.expansion.b)
    return ReducedExpansion(expansion, span, moved)


def _move_and_project(
    target: TargetFunctions, order: Indices, samples: FitSamples | None, progress: Reporter
) -> ReducedExpansion:
    """Move the vectors of these indices by gradient descent if possible, and project the functions onto their span."""
    vectors = take(target.expansion.vectors, order)
    if not target.movable or len(order) == 0:
        return _project(target, vectors)
    report = partial(progress.report_share, f"moving {len(order)} vectors")
    vectors = move_vectors(target, vectors, None, report)
    if samples is not None:
        vectors = move_vectors(target, vectors, samples, report)
    return _project(target, vectors, moved=True)


def _expansion_on(target: TargetFunctions, span: Span, coordinates: Floats, b: Any) -> Expansion:
    """Return the expansion on a span's vectors whose functions have these coordinates and b."""
    return replace(target.expansion, vectors=span.vectors, coefficients=span.coefficients(coordinates), b=np.array(b))


# A candidate lies numerically in the span if δ(x) is at most this share of k(x, x).
_DEPENDENT_SHARE = 1e-12


def choose_vectors(
    kernel: Kernel,
    candidates: Any,
    values: Floats,
    squares: Floats,
    is_enough: Callable[[int, Floats], bool],
) -> Indices:
    """Choose candidates by orthogonal matching pursuit until `is_enough` or until none helps; return their indices.

    Parameters
    ----------
    values : array of shape (candidates, outputs)
        Values f_o at the candidates, without b.
    squares : array of shape (outputs,)
        Squared norms ‖f_o‖².
    is_enough : callable
        Called with the number of chosen vectors and ‖r_o‖² of each output; the choice ends if it returns True. It may
        raise to stop.
    """
    n = n_samples(candidates)
    diagonal = np.abs(kernel.diag(candidates))
    delta, residuals, remaining_squares = diagonal.copy(), values.copy(), squares.copy()
    factor = np.zeros((n, min(n, 64)))
    order: list[int] = []
    is_available = diagonal > 0
    while len(order) < n and not is_enough(len(order), remaining_squares):
        # 1. The candidate with the largest reduction Σ_o r_o(x)²/δ(x).
        gains = np.where(is_available, np.einsum("ij,ij->i", residuals, residuals), -1.0)
        gains[is_available] /= delta[is_available]
        best = int(np.argmax(gains))
        if not gains[best] > 0:
            break
        # 2. Its column of the Cholesky factor.
        t = len(order)
        if t == factor.shape[1]:
            factor = np.concatenate([factor, np.zeros((n, min(t, n - t)))], axis=1)
        column = kernel(candidates, take(candidates, np.array([best])))[:, 0]
        column -= factor[:, :t] @ factor[best, :t]
        column /= np.sqrt(delta[best])
        # 3. Updates of r_o, ‖r_o‖² and δ.
        step = residuals[best] / np.sqrt(delta[best])
        residuals -= np.outer(column, step)
        remaining_squares = np.maximum(remaining_squares - step**2, 0.0)
        delta = np.maximum(delta - column**2, 0.0)
        factor[:, t] = column
        order.append(best)
        is_available &= delta > _DEPENDENT_SHARE * diagonal
        is_available[best] = False
    return np.array(order, dtype=np.intp)
