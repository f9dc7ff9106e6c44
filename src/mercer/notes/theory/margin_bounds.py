"""Bounds from margins and radii: errors, leave-one-out errors, mistakes of the perceptron, support vectors.

The error of a function with ‖w‖ ≤ 1/ρ is bounded by its slacks and the trace of K (Igel, theorems 4.2 and 4.4):

    P(y ≠ sgn f(x)) ≤ 1/n Σ min(1, ξ_i) + 4/(nρ) √(tr K) + 3√(ln(2/δ)/2n)

for f without a bias and ρ fixed before the data are seen. A ρ chosen from the data is not allowed, but a grid repairs
that: the bound holds for all ρ_j = ρ₀ 2^{−j} at once if δ is divided among them, δ_j = δ/((j + 1)(j + 2)), and the
largest ρ_j ≤ 1/‖w‖ may be chosen afterwards. A regularised bias is the weight of a feature with the value 1, and so
belongs to w: ‖w‖² + b² and tr K + n replace ‖w‖² and tr K.

The perceptron (`mercer.steps`) takes the samples in turn and adds y_iφ(x_i) to w for each misclassified one: at most
(R/ρ)² times (Novikoff 1962; Igel, section 4.1.1), where ρ is the margin of any hyperplane through the origin that
separates the samples, and R the largest ‖φ(x)‖.

A 1-norm soft margin has at least n(2ϑ‖f‖² + hinge risk) support vectors, with ϑ = 1/(2Cn): at the optimum
Σα = ‖w‖² + CΣξ, and every α is at most C, so that at least Σα/C of them are positive.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from mercer.estimators import SVDD
from mercer.kernels import Kernel
from mercer.kernels.names import KernelLike, as_kernel
from mercer.notes.theory.bound import IID, Assumption, Bound, bound_by_sum, deviation, read_numbers
from mercer.runtime.parameters import integer, not_negative, one_of, positive
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Floats, Indices, n_samples
from mercer.samples.engine import to_engine

_ERROR = "the probability of error"
FIXED_KERNEL = Assumption("the kernel, its parameters and the target margin were fixed before the data were seen")


def soft_margin_bound(
    slacks: ArrayLike,
    trace: float,
    norm: float,
    *,
    delta: float = 0.05,
    margin: float | None = None,
    bias: bool = False,
    target_margin: float = 1.0,
    clipped: bool = True,
    grid_from: float = 1.0,
) -> Bound:
    """Bound the error of a soft-margin machine (Igel, theorem 4.4); with slacks 0, of a hard margin (theorem 4.2).

    Parameters
    ----------
    slacks : array of shape (n,)
        Slacks max(0, γ − y_i f(x_i)) for the target margin γ.
    trace : float
        Trace Σ k(x_i, x_i) of the kernel matrix.
    norm : float
        Norm ‖w‖.
    delta : float, default=0.05
        Probability with which the bound may fail.
    margin : float, optional
        Margin ρ ≤ 1/‖w‖, chosen before the data were seen. By default the best one of a grid that starts at
        `grid_from`, which uses a part of delta.
    bias : bool, default=False
        Whether f has a bias that is not part of ‖w‖; then the bound does not hold.
    target_margin : float, default=1.0
        Target margin γ, fixed in advance.
    clipped : bool, default=True
        Whether to clip slacks at γ. Igel's theorem does not, but its proof allows it.
    grid_from : float, default=1.0
        First margin ρ₀ of the grid, fixed in advance.

    Returns
    -------
    Bound
        Upper bound on the probability of error.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.notes.theory import soft_margin_bound
    >>> bound = soft_margin_bound(np.zeros(100_000), trace=100_000.0, norm=4.0, margin=0.25, delta=0.01)
    >>> round(bound.value, 4), bound.vacuous
    (0.066, False)
    """
    xi = read_numbers(slacks, "slacks must have one finite number ≥ 0 per sample, at least one", 0.0)
    n, gamma = len(xi), positive("target_margin", target_margin)
    not_negative("trace", trace)
    not_negative("norm", norm)
    rho, divisor, rho_assumption = _rho_and_divisor(margin, norm, positive("grid_from", grid_from))
    terms = {
        "mean slack": float(np.mean(np.minimum(xi / gamma, 1.0) if clipped else xi / gamma)),
        "4/(nργ) √tr K": 4.0 * math.sqrt(trace) / n / rho / gamma,
        "3√(ln(2/δ)/2n)": 3.0 * deviation(n, delta, 2.0 * divisor),
    }
    assumptions = (
        IID,
        Assumption("f has no bias, or one that its norm includes", not bias),
        Assumption(f"‖w‖ ≤ 1/ρ with ρ = {rho:.6g}", norm * rho <= 1.0 + 1e-12),
        rho_assumption,
        FIXED_KERNEL,
    )
    return bound_by_sum(_ERROR, terms, assumptions, delta, 1.0, "Igel, theorem 4.4")


@shared_docs
def hard_margin_bound(
    trace: float,
    n: int,
    norm: float,
    *,
    delta: float = 0.05,
    margin: float | None = None,
    bias: bool = False,
    grid_from: float = 1.0,
) -> Bound:
    """Bound the error of a hard-margin machine by 4/(nρ) √(tr K) + 3√(ln(2/δ)/2n), with ‖w‖ ≤ 1/ρ (Igel, theorem 4.2).

    Parameters
    ----------
    %(trace and n)s
    norm : float
        Norm ‖w‖.
    delta : float, default=0.05
        Probability with which the bound may fail.
    margin : float, optional
        Margin ρ ≤ 1/‖w‖, chosen before the data were seen; by default the best one of a grid.
    bias : bool, default=False
        Whether f has a bias that is not part of ‖w‖; then the bound does not hold.
    grid_from : float, default=1.0
        First margin ρ₀ of the grid, fixed in advance.

    Returns
    -------
    Bound
        Upper bound on the probability of error.
    """
    slacks = np.zeros(integer("n", n, 1, "the number of samples"))
    return soft_margin_bound(slacks, trace, norm, delta=delta, margin=margin, bias=bias, grid_from=grid_from)


def _rho_and_divisor(rho: float | None, norm: float, first: float) -> tuple[float, float, Assumption]:
    """Return the ρ to use, the number by which δ is divided for it, and the assumption behind it."""
    if rho is not None:
        return positive("margin", rho), 1.0, Assumption("ρ was fixed before the data were seen")
    if norm * first > 2.0**1000:
        raise ValueError(f"norm={norm:g} is too large for any useful ρ; scale the samples")
    j = max(0, math.ceil(math.log2(norm * first))) if norm > 0 else 0
    while norm * first * 2.0**-j > 1.0:  # rounding of the logarithm
        j += 1
    text = f"ρ is member {j} of the grid {first:g}·2^−j, which was fixed before the data were seen"
    return first * 2.0**-j, float((j + 1) * (j + 2)), Assumption(text, True)


def squared_ratio(radius: float, margin: float) -> float:
    """Return the squared ratio R²/ρ² of radius and margin."""
    ratio = not_negative("radius", radius) / positive("margin", margin)
    return ratio * ratio


def leave_one_out_bound(radius: float, margin: float, n: int, *, bias: bool, separable: bool | None = None) -> Bound:
    """Bound the leave-one-out error of a hard-margin machine by R₀²/(nρ²), or 4R²/(nρ²) with a bias (Vapnik 1998).

    Parameters
    ----------
    radius : float
        Radius R of the smallest ball around the samples (`enclosing_ball`); without bias R₀ = max √k(x, x), that of the
        ball around the origin (``centre="origin"``).
    margin : float
        Margin ρ.
    n : int
        Number of samples.
    bias : bool
        Whether the machine has a free bias.
    separable : bool, optional
        Whether the machine separates the samples without slack; None if that is assumed.

    Returns
    -------
    Bound
        Upper bound on the share of leave-one-out errors.
    """
    integer("n", n, 1, "the number of samples")
    value = (4.0 if bias else 1.0) * squared_ratio(radius, margin) / n
    separation = Assumption("the machine separates all samples with this margin", separable)
    form = "4R²/(nρ²)" if bias else "R₀²/(nρ²)"
    return bound_by_sum(
        "the share of leave-one-out errors", {form: value}, (separation,), None, 1.0, "Vapnik 1998, theorem 10.5"
    )


def norm_with_bias(
    norm: float, trace: float, n: int, b: float, kind: Literal["none", "regularized", "free"], feature: float = 1.0
) -> tuple[float, float]:
    """Return ‖w‖ and tr K for the bounds; for a regularised bias, those of the kernel k + feature²."""
    if kind != "regularized":
        return norm, trace
    return math.hypot(norm, b / feature), trace + n * feature * feature


@dataclass(frozen=True, eq=False)
class Ball:
    """Ball in feature space that contains all samples.

    Attributes
    ----------
    radius : float
        Computed radius, between the two bounds.
    radius_bounds : (float, float)
        Bounds on the exact radius for these kernel values: √(2·dual) and √(2·primal) of the certified problem, or the
        neighbouring float64 numbers for a ball around the origin.
    rows, coefficients : array
        Centre Σ coefficients_j φ(x_rows_j), a convex combination; empty for the origin.
    """

    radius: float
    radius_bounds: tuple[float, float]
    rows: Indices = field(repr=False)
    coefficients: Floats = field(repr=False)


@shared_docs
def enclosing_ball(
    X: Any,
    *,
    kernel: KernelLike = "rbf",
    degree: int = 3,
    gamma: float | str = "scale",
    coef0: float = 0.0,
    centre: Literal["best", "origin"] = "best",
    tol: float = 1e-10,
) -> Ball:
    """Compute the smallest ball in feature space that contains the samples, with the best centre or at the origin.

    With the best centre a, the ball minimises R² subject to ‖φ(x_i) − a‖² ≤ R²: `SVDD` without slack. Around the origin
    R₀ = max √k(x, x), which the bounds of the notes use.

    Parameters
    ----------
    X : array, CSR matrix or list
        Samples.
    %(kernel)s
    centre : {"best", "origin"}, default="best"
        Centre of the ball: the best one, or the origin.
    tol : float, default=1e-10
        Tolerance of the solver for the best centre; `radius_bounds` show the accuracy that is proven.

    Returns
    -------
    Ball
        `radius`, which lies between the two `radius_bounds`, and the centre as a combination of samples, `rows` and
        `coefficients`.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> from mercer.notes.theory import enclosing_ball
    >>> ball = enclosing_ball([[0.0], [1.0], [4.0]], kernel=Linear())
    >>> round(ball.radius, 9), ball.rows.tolist(), ball.coefficients.round(6).tolist()
    (2.0, [0, 2], [0.5, 0.5])
    >>> enclosing_ball([[3.0, 4.0], [1.0, 0.0]], kernel=Linear(), centre="origin").radius
    5.0
    """
    one_of("centre", centre, ("best", "origin"))
    X = to_engine(X)
    n = n_samples(X)
    if n == 0:
        raise ValueError("a ball needs at least one sample")
    if centre == "origin":
        R = _origin_radius(as_kernel(kernel, degree=degree, gamma=gamma, coef0=coef0).bind(X), X)
        low, high = (0.0, 0.0) if R == 0 else (math.nextafter(R, 0.0), math.nextafter(R, math.inf))
        return Ball(R, (low, high), np.empty(0, dtype=np.intp), np.empty(0))
    with warnings.catch_warnings():
        # A radius of 0 cannot reach a relative tolerance; radius_bounds state the accuracy.
        warnings.simplefilter("ignore", ConvergenceWarning)
        size, kernel, X = _scale_to_unit_radius(as_kernel(kernel, degree=degree, gamma=gamma, coef0=coef0), X)
        model = SVDD(kernel=kernel, nu=0.5 / n, tol=tol).fit(X)
    certificate = model.certificate_
    low, high = (size * math.sqrt(max(0.0, 2.0 * value)) for value in (certificate.dual, certificate.primal))
    return Ball(min(max(size * model.radius_, low), high), (low, high), model.support_, model.dual_coef_[0])


def _origin_radius(bound: Kernel, X: Any) -> float:
    """Return the radius R₀ = max √k(x, x) of the smallest ball around the origin."""
    size = math.sqrt(max(0.0, float(np.max(bound.diag(X)))))
    if not math.isfinite(size):
        raise FloatingPointError(f"k(x, x) overflows with {bound!r}; scale the features")
    return size


def _scale_to_unit_radius(kernel: Kernel, X: Any) -> tuple[float, Kernel, Any]:
    """Scale the kernel matrix to R₀ = 1 if its values are too small or too large for a proof.

    Return the scale, the kernel and the samples or the matrix; otherwise they are unchanged, with scale 1.
    """
    bound = kernel.bind(X)
    size = _origin_radius(bound, X)
    if size == 0 or 1e-30 < size < 1e30:
        return 1.0, kernel, X
    K = X if bound.accepts == "gram" else bound(X)
    return size, as_kernel("precomputed"), np.asarray(K, dtype=np.float64) / size / size


def mistake_bound(radius: float, margin: float) -> int:
    """Bound the mistakes of the perceptron by ⌊(R/ρ)²⌋ (Novikoff), in whatever order and however often samples come.

    Parameters
    ----------
    radius : float
        Radius R: the largest ‖φ(x)‖.
    margin : float
        Margin ρ of a hyperplane through the origin that separates the samples.

    Returns
    -------
    int
        Largest number of mistakes.
    """
    ratio = positive("radius", radius) / positive("margin", margin)
    mistakes = ratio * ratio * (1 + 1e-12)
    if not math.isfinite(mistakes):
        raise ValueError(f"radius={radius:g} and margin={margin:g}: the number of mistakes overflows float64")
    return math.floor(mistakes)


def support_vectors_bound(
    norm: float, hinge_risk: float, C: float, n: int, *, gap: float = 0.0, plain: bool | None = None
) -> Bound:
    """Bound the number of support vectors of a 1-norm soft-margin machine from below (Igel, section 4.3.3).

    Parameters
    ----------
    norm, hinge_risk : float
        Norm ‖w‖ and mean slack of the training samples.
    C : float
        Penalty for slack, the same for all samples.
    n : int
        Number of samples.
    gap : float, default=0.0
        Duality gap of the machine: away from the optimum, Σα = ‖w‖² + CΣξ − gap.
    plain : bool, optional
        Whether the machine was trained without sample or class weights; None if that is assumed.

    Returns
    -------
    Bound
        Lower bound on the number of support vectors.

    Examples
    --------
    >>> from mercer.notes.theory import support_vectors_bound
    >>> support_vectors_bound(norm=2.0, hinge_risk=0.1, C=1.0, n=100).value
    14.0
    """
    integer("n", n, 1, "the number of samples")
    penalty = positive("C", C)
    theta = 1.0 / (2.0 * penalty * n)
    terms = {
        "2nϑ‖f‖²": 2.0 * n * theta * not_negative("norm", norm) * norm,
        "n·hinge risk": n * not_negative("hinge_risk", hinge_risk),
        "−gap/C": -not_negative("gap", gap) / penalty,
    }
    value = math.fsum(terms.values())
    soft = Assumption("the machine is the 1-norm soft margin with one C for all samples", plain)
    return Bound("support vectors", value, terms, (soft,), None, 0.0, "lower", source="Igel, section 4.3.3")
