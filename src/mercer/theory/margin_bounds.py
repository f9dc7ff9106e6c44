"""Margin bounds: the probability of error of a function with ‖w‖ ≤ 1/ρ, from its slacks and the trace of K.

    P(y ≠ sgn f(x)) ≤ 1/n Σ min(1, ξ_i) + 4/(nρ) √(tr K) + 3√(ln(2/δ)/2n)         (Igel, theorems 4.2 and 4.4)

for f without a bias and ρ fixed before the data are seen. A ρ that the data chose is no such ρ. A grid repairs
that: the bound holds for all ρ_j = ρ₀ 2^{−j} at once if δ is shared out, δ_j = δ/((j + 1)(j + 2)), and the largest ρ_j
up to 1/‖w‖ may then be taken after the fact. A regularised bias is the weight of a feature with the value 1, and so
belongs to w: ‖w‖² + b² and tr K + n take the places of ‖w‖² and tr K.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mercer.fitting.families.shared_docs import shared_docs
from mercer.parameters import integer, not_negative, positive
from mercer.theory.bound import IID, Assumption, Bound, summed
from mercer.theory.complexity import deviation

_ERROR = "the probability of error"
FIXED_KERNEL = Assumption("the kernel, its parameters and the target margin were fixed before the data were seen")


def soft_margin_bound(
    slacks: ArrayLike,
    trace: float,
    norm: float,
    *,
    delta: float = 0.05,
    rho: float | None = None,
    bias: bool = False,
    target_margin: float = 1.0,
    clipped: bool = True,
    grid_from: float = 1.0,
) -> Bound:
    """The soft-margin bound (Igel, theorem 4.4); with slacks that are all 0, the hard-margin one (theorem 4.2).

    Parameters
    ----------
    slacks : array of n numbers
        max(0, γ − y_i f(x_i)) for the target margin γ.
    trace : float
        Σ k(x_i, x_i).
    norm : float
        ‖w‖.
    delta : float, default=0.05
        The probability with which the bound may fail.
    rho : float, optional
        A number chosen before the data were seen; 1/‖w‖ must be no smaller. By default the best one of the grid that
        starts with `grid_from`, at the price of a share of delta.
    bias : bool
        Whether f has a bias that is not part of ‖w‖: then the bound does not hold.
    target_margin : float
        γ, fixed in advance.
    clipped : bool
        Count a slack for γ at most. The notes do not; the proof gives it.
    grid_from : float
        ρ₀, fixed in advance.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.theory import soft_margin_bound
    >>> bound = soft_margin_bound(np.zeros(100_000), trace=100_000.0, norm=4.0, rho=0.25, delta=0.01)
    >>> round(bound.value, 4), bound.vacuous
    (0.066, False)
    """
    xi = np.asarray(slacks, dtype=np.float64)
    if xi.ndim != 1 or len(xi) == 0 or not (np.isfinite(xi) & (xi >= 0)).all():
        raise ValueError("slacks must be one finite number ≥ 0 per sample, at least one")
    n, gamma = len(xi), positive("target_margin", target_margin)
    not_negative("trace", trace)
    not_negative("norm", norm)
    used, shares, fixed = _rho_and_share(rho, norm, positive("grid_from", grid_from))
    terms = {
        "mean slack": float(np.mean(np.minimum(xi / gamma, 1.0) if clipped else xi / gamma)),
        "4/(nργ) √tr K": 4.0 * math.sqrt(trace) / n / used / gamma,
        "3√(ln(2/δ)/2n)": 3.0 * deviation(n, delta, 2.0 * shares),
    }
    assumptions = (
        IID,
        Assumption("f has no bias outside of its norm", not bias),
        Assumption(f"‖w‖ ≤ 1/ρ with ρ = {used:.6g}", norm * used <= 1.0 + 1e-12),
        fixed,
        FIXED_KERNEL,
    )
    return summed(_ERROR, terms, assumptions, delta, 1.0, "Igel, theorem 4.4")


@shared_docs
def hard_margin_bound(
    trace: float,
    n: int,
    norm: float,
    *,
    delta: float = 0.05,
    rho: float | None = None,
    bias: bool = False,
    grid_from: float = 1.0,
) -> Bound:
    """4/(nρ) √(tr K) + 3√(ln(2/δ)/2n) for a machine that separates its samples with ‖w‖ ≤ 1/ρ (Igel, theorem 4.2).

    Parameters
    ----------
    %(trace and n)s
    norm : float
        ‖w‖ in the kernel's space.
    delta : float, default=0.05
        The probability with which the bound may fail.
    rho : float, optional
        A number chosen before the data were seen, at most 1/‖w‖; by default one of a grid, as in
        `soft_margin_bound`.
    bias : bool, default=False
        Whether f has a bias that is not part of ‖w‖: then the bound does not hold.
    grid_from : float, default=1.0
        ρ₀, where the grid starts; fixed in advance.
    """
    slacks = np.zeros(integer("n", n, 1, "the number of samples"))
    return soft_margin_bound(slacks, trace, norm, delta=delta, rho=rho, bias=bias, grid_from=grid_from)


def _rho_and_share(rho: float | None, norm: float, first: float) -> tuple[float, float, Assumption]:
    """The ρ to use, the number that δ is divided by for it, and what that rests on."""
    if rho is not None:
        return positive("rho", rho), 1.0, Assumption("ρ was fixed before the data were seen")
    if norm * first > 2.0**1000:
        raise ValueError(f"norm={norm:g} is too large for any ρ to be of use; scale the samples")
    j = max(0, math.ceil(math.log2(norm * first))) if norm > 0 else 0
    while norm * first * 2.0**-j > 1.0:  # rounding of the logarithm
        j += 1
    text = f"ρ is the member {j} of the grid {first:g}·2^−j, which was fixed before the data were seen"
    return first * 2.0**-j, float((j + 1) * (j + 2)), Assumption(text, True)


def radius_margin(radius: float, rho: float) -> float:
    """R²/ρ²: a criterion for choosing kernels, smaller is better.

    Parameters
    ----------
    radius : float
        R, of a ball around the samples.
    rho : float
        The margin.
    """
    ratio = not_negative("radius", radius) / positive("rho", rho)
    return ratio * ratio


def leave_one_out_bound(radius: float, rho: float, n: int, *, bias: bool, separable: bool | None = None) -> Bound:
    """The share of leave-one-out errors of a hard-margin machine: R₀²/(nρ²) without bias, 4R²/(nρ²) with (Vapnik 1998).

    Parameters
    ----------
    radius : float
        Without bias R₀ = max √k(x, x), with bias that of the smallest enclosing ball (`enclosing_ball`).
    rho : float
        The margin.
    n : int
        The number of samples.
    bias : bool
        Whether the machine has a free bias.
    separable : bool, optional
        Whether the machine is a hard margin, without slack.
    """
    integer("n", n, 1, "the number of samples")
    value = (4.0 if bias else 1.0) * radius_margin(radius, rho) / n
    hard = Assumption("the machine separates all samples with this margin", separable)
    form = "4R²/(nρ²)" if bias else "R₀²/(nρ²)"
    return summed("the share of leave-one-out errors", {form: value}, (hard,), None, 1.0, "Vapnik 1998, theorem 10.5")


def norm_with_bias(
    norm: float, trace: float, n: int, b: float, kind: Literal["none", "regularized", "free"], feature: float = 1.0
) -> tuple[float, float]:
    """‖w‖ and tr K for the bounds: with a bias that is the weight of a `feature`, those of the kernel k + feature²."""
    if kind != "regularized":
        return norm, trace
    return math.hypot(norm, b / feature), trace + n * feature * feature
