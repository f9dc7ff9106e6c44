"""A span of few vectors for a machine's functions, of a given number or with a given error, and the machine on it.

Vectors are chosen one by one, each the one that brings the span nearest to the functions: orthogonal matching pursuit.
With r_o = f_o − Pf_o, what the span of the vectors chosen so far lacks of output o, and δ(x) = ‖φ(x) − Pφ(x)‖²,
another vector x takes r_o(x)²/δ(x) off ‖r_o‖². A pivoted Cholesky factorisation of K brings both up to date.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mercer.inspection.compression.matching import Samples, refined
from mercer.inspection.compression.target import Span, Target
from mercer.kernels import Kernel
from mercer.places.expansion import Expansion
from mercer.runtime.progress import Reporter
from mercer.samples.arrays import Floats, Indices, n_samples, take

# Vectors that are kept at most: their kernel matrix takes 800 MB.
MOST_VECTORS = 10_000
# With more vectors than this, max(_MOST_CANDIDATES, 2·wanted) of them, evenly spaced, are candidates.
_MOST_CANDIDATES = 10_000
# The share of max_error that is aimed at, so that rounding does not end up above it.
_AIM = 1 - 1e-6
# Beyond, the square of an error is no number of float64.
_LARGEST_ERROR = 1e150


@dataclass(frozen=True, eq=False)
class Reduced:
    """An expansion on fewer vectors, the span of which it is a projection on, and how it was found."""

    expansion: Expansion
    span: Span | None = None
    moved: bool = False
    retrained: bool = False

    def fitted(
        self,
        target: Target,
        fit: Callable[[Target, Span, Samples], tuple[Floats, Floats] | None],
        samples: Samples | None,
        max_error: float | None,
        progress: Reporter,
    ) -> Reduced:
        """With coefficients and b fitted to samples, but no further away than `max_error`."""
        if samples is None or self.span is None or n_samples(self.span.vectors) == 0:
            return self
        progress.tell(f"fitting coefficients to {n_samples(samples.X)} samples")
        found = fit(target, self.span, samples)
        if found is None:
            return self
        coordinates, b = target.projection(self.span), target.expansion.b
        way, far = found[0] - coordinates, np.ones(len(b))
        if max_error is not None:
            # The projection's error and the way within the span are orthogonal.
            room = np.maximum((_AIM * min(max_error, _LARGEST_ERROR)) ** 2 - target.left(coordinates), 0.0)
            far = np.sqrt(np.minimum(1.0, room / np.maximum((way**2).sum(axis=0), 1e-9 * room + 1e-300)))
        made = _on(target, self.span, coordinates + far * way, b + far * (found[1] - b))
        return replace(self, expansion=made, retrained=True)


def to_count(target: Target, count: int, samples: Samples | None, progress: Reporter) -> Reduced:
    """At most `count` vectors: fewer where fewer will do."""
    return _placed(target, _order(target, lambda n, _: n >= count, count, progress), samples, progress)


def to_error(target: Target, max_error: float, progress: Reporter) -> Reduced:
    """As few vectors as are found to come within `max_error`; all of them where float64 finds none that do."""
    square = (_AIM * min(max_error, _LARGEST_ERROR)) ** 2
    order = _order(target, lambda _, left: bool(left.max(initial=0.0) <= square), None, progress)
    best, low, high = _projected(target, take(target.expansion.vectors, order)), 0, len(order)
    if not _near(target, best, square):
        return Reduced(target.expansion)
    while target.movable and low + 1 < high:
        middle = (low + high) // 2
        found = _placed(target, order[:middle], None, progress)
        if _near(target, found, square):
            high, best = middle, found
        else:
            low = middle
    return best


def _near(target: Target, found: Reduced, square: float) -> bool:
    assert found.span is not None
    return bool(target.left(target.projection(found.span)).max(initial=0.0) <= square)


def _order(target: Target, enough: Callable[[int, Floats], bool], count: int | None, progress: Reporter) -> Indices:
    """Vectors of the machine in the order in which they are chosen."""

    def told(n: int, left: Floats) -> bool:
        progress.part("choosing vectors", n / (count or target.n))
        return n >= MOST_VECTORS or enough(n, left)

    most = min(target.n, max(_MOST_CANDIDATES, 2 * (count or 0)))
    some = np.linspace(0, target.n - 1, most).astype(np.intp)
    vectors = take(target.expansion.vectors, some)
    return some[chosen(target.expansion.kernel, vectors, target.own_values[some], target.squares, told)]


def _projected(target: Target, vectors: Any, moved: bool = False) -> Reduced:
    span = Span(target.expansion.kernel, vectors)
    return Reduced(_on(target, span, target.projection(span), target.expansion.b), span, moved)


def _placed(target: Target, order: Indices, samples: Samples | None, progress: Reporter) -> Reduced:
    """The projection on these vectors, moved where that is possible."""
    vectors = take(target.expansion.vectors, order)
    if not target.movable or len(order) == 0:
        return _projected(target, vectors)
    report = partial(progress.part, f"moving {len(order)} vectors")
    vectors = refined(target, vectors, None, report)
    if samples is not None:
        vectors = refined(target, vectors, samples, report)
    return _projected(target, vectors, moved=True)


def _on(target: Target, span: Span, coordinates: Floats, b: Any) -> Expansion:
    return replace(target.expansion, vectors=span.vectors, coefficients=span.coefficients(coordinates), b=np.array(b))


# A candidate whose δ(x) has fallen to this share of k(x, x) lies in the span, as far as float64 can tell.
_DEPENDENT_SHARE = 1e-12


def chosen(
    kernel: Kernel,
    candidates: Any,
    values: Floats,
    squares: Floats,
    enough: Callable[[int, Floats], bool],
) -> Indices:
    """Places of the candidates that were chosen, in this order, until `enough` or until no other would help.

    Parameters
    ----------
    values : array of shape (candidates, outputs)
        f_o of each candidate, without b.
    squares : array of shape (outputs,)
        ‖f_o‖².
    enough : callable
        Told how many there are and what ‖r_o‖² is left of each output; it may raise to abandon the choice.
    """
    n = n_samples(candidates)
    diagonal = np.abs(kernel.diag(candidates))
    lack, residuals, left = diagonal.copy(), values.copy(), squares.copy()
    factor = np.zeros((n, min(n, 64)))
    order: list[int] = []
    open_ = diagonal > 0
    while len(order) < n and not enough(len(order), left):
        gains = np.where(open_, np.einsum("ij,ij->i", residuals, residuals), -1.0)
        gains[open_] /= lack[open_]
        best = int(np.argmax(gains))
        if not gains[best] > 0:
            break
        t = len(order)
        if t == factor.shape[1]:
            factor = np.concatenate([factor, np.zeros((n, min(t, n - t)))], axis=1)
        column = kernel(candidates, take(candidates, np.array([best])))[:, 0]
        column -= factor[:, :t] @ factor[best, :t]
        column /= np.sqrt(lack[best])
        step = residuals[best] / np.sqrt(lack[best])
        residuals -= np.outer(column, step)
        left = np.maximum(left - step**2, 0.0)
        lack = np.maximum(lack - column**2, 0.0)
        factor[:, t] = column
        order.append(best)
        open_ &= lack > _DEPENDENT_SHARE * diagonal
        open_[best] = False
    return np.array(order, dtype=np.intp)
