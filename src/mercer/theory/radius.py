"""Balls in feature space: R₀ = max √k(x, x) around the origin, and the smallest ball around the samples."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.arrays import Floats, Indices, n_samples
from mercer.estimators import SVDD
from mercer.fitting.families.shared_docs import shared_docs
from mercer.kernels import Kernel, as_kernel

# Radii between these are solved as they are.
_USUAL = (1e-30, 1e30)


@dataclass(frozen=True, eq=False)
class Ball:
    """The smallest ball that holds all samples.

    Attributes
    ----------
    radius : float
        As computed, between the two bounds.
    radius_bounds : (float, float)
        The true radius lies between these: √(2·dual) and √(2·primal) of the certified problem.
    rows, coefficients : array
        The centre is Σ coefficients_j φ(x_rows_j), a convex combination.
    """

    radius: float
    radius_bounds: tuple[float, float]
    rows: Indices
    coefficients: Floats


@shared_docs
def origin_radius(X: Any, *, kernel: Any = "rbf", degree: Any = 3, gamma: Any = "scale", coef0: Any = 0.0) -> float:
    """R₀ = max √k(x, x): the ball around the origin that the notes' bounds use.

    Parameters
    ----------
    X : array, CSR matrix or list
        The samples.
    %(kernel)s

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> from mercer.theory import origin_radius
    >>> origin_radius([[3.0, 4.0], [1.0, 0.0]], kernel=Linear())
    5.0
    """
    bound = as_kernel(kernel, degree=degree, gamma=gamma, coef0=coef0).bind(X)
    if n_samples(X) == 0:
        raise ValueError("a ball around no samples has no radius")
    return math.sqrt(max(0.0, float(np.max(bound.diag(X)))))


@shared_docs
def enclosing_ball(
    X: Any, *, kernel: Any = "rbf", degree: Any = 3, gamma: Any = "scale", coef0: Any = 0.0, tol: float = 1e-10
) -> Ball:
    """The smallest ball in feature space around the samples.

    Minimises R² subject to ‖φ(x_i) − a‖² ≤ R²: the machine `SVDD` without slack.

    Parameters
    ----------
    X : array, CSR matrix or list
        The samples.
    %(kernel)s
    tol : float, default=1e-10
        The tolerance of the machine that finds it; `radius_bounds` say what was proven.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> from mercer.theory import enclosing_ball
    >>> ball = enclosing_ball([[0.0], [1.0], [4.0]], kernel=Linear())
    >>> round(ball.radius, 9), ball.rows.tolist(), ball.coefficients.round(6).tolist()
    (2.0, [0, 2], [0.5, 0.5])
    """
    n = n_samples(X)
    if n == 0:
        raise ValueError("a ball around no samples has no radius")
    with warnings.catch_warnings():
        # A ball of radius 0 has no digits to be right in; how precise a radius is, its bounds say.
        warnings.simplefilter("ignore", ConvergenceWarning)
        size, kernel, X = _in_units(as_kernel(kernel, degree=degree, gamma=gamma, coef0=coef0), X)
        model = SVDD(kernel=kernel, nu=0.5 / n, tol=tol).fit(X)
    certificate = model.certificate_
    low, high = (size * math.sqrt(max(0.0, 2.0 * value)) for value in (certificate.dual, certificate.primal))
    return Ball(min(max(size * model.radius_, low), high), (low, high), model.support_, model.dual_coef_[0])


def _in_units(kernel: Kernel, X: Any) -> tuple[float, Kernel, Any]:
    """R₀, and a matrix whose R₀ is 1, where kernel values would be too small or too large for a proof."""
    bound = kernel.bind(X)
    size = origin_radius(X, kernel=bound)
    if size == 0 or _USUAL[0] < size < _USUAL[1]:
        return 1.0, kernel, X
    if not math.isfinite(size):
        raise FloatingPointError(f"k(x, x) overflows with {bound!r}; scale the features")
    K = X if bound.accepts == "gram" else bound(X)
    return size, as_kernel("precomputed"), np.asarray(K, dtype=np.float64) / size / size
