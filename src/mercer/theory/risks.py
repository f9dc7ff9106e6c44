"""Risks: the mean of a loss over samples, alone or with the price of the function's norm.

With the margin m = y f(x), where y is +1 for the larger of two labels and −1 for the other, and a target margin γ > 0:

    zero_one   1 where f(x) and y differ in sign, f(x) = 0 counting as positive
    hinge      max(0, γ − m)/γ          at γ = 1 the slack ξ
    ramp       min(1, max(0, γ − m)/γ)  the hinge, cut at 1
    squared    (y − f(x))²

zero_one ≤ ramp ≤ hinge for every γ, but for ties at f(x) = 0, all of which the ramp counts as errors.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from mercer.arrays import Floats
from mercer.data.labels import read_signs
from mercer.fitting.families.shared_docs import shared_docs
from mercer.parameters import not_negative, one_of, positive

LossName = Literal["zero_one", "hinge", "ramp", "squared"]
_LOSSES = ("zero_one", "hinge", "ramp", "squared")


@shared_docs
def losses(y: Any, f: Any, *, loss: LossName, target_margin: float = 1.0) -> Floats:
    """The loss of each sample with target y (a label, or a number for "squared") and value f(x).

    Parameters
    ----------
    %(loss of each)s
    %(target margin)s
    """
    one_of("loss", loss, _LOSSES)
    gamma = positive("target_margin", target_margin)
    values = np.asarray(f, dtype=np.float64)
    targets = np.asarray(y, dtype=np.float64) if loss == "squared" else read_signs(y)
    if targets.shape != values.shape or targets.ndim != 1 or len(targets) == 0:
        raise ValueError(
            f"y and f must be one number per sample, at least one, but their shapes are {targets.shape}, {values.shape}"
        )
    if not np.isfinite(values).all() or not np.isfinite(targets).all():
        raise ValueError("y and f must be finite: a value that is no number has no loss")
    if loss == "squared":
        return np.asarray((targets - values) ** 2)
    if loss == "zero_one":
        return np.asarray((values >= 0) != (targets > 0), dtype=np.float64)
    hinge = np.maximum(0.0, gamma - targets * values) / gamma
    return np.minimum(1.0, hinge) if loss == "ramp" else hinge


@shared_docs
def risk(y: Any, f: Any, *, loss: LossName, target_margin: float = 1.0, sample_weight: Any = None) -> float:
    """The empirical risk: the mean loss, by weight if samples have one.

    Parameters
    ----------
    %(loss of each)s
    %(target margin)s
    sample_weight : array, optional
        The weight of each sample in the mean.

    Examples
    --------
    >>> from mercer.theory import risk
    >>> y, f = [1, 1, -1, -1], [2.0, 0.5, -3.0, 1.0]
    >>> risk(y, f, loss="zero_one"), risk(y, f, loss="hinge"), risk(y, f, loss="ramp")
    (0.25, 0.625, 0.375)
    >>> risk(y, f, loss="hinge", target_margin=0.5)
    0.75
    """
    each = losses(y, f, loss=loss, target_margin=target_margin)
    if sample_weight is None:
        return float(each.mean())
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != each.shape or not (np.isfinite(weight) & (weight >= 0)).all() or not weight.any():
        raise ValueError(f"sample_weight must be a finite number ≥ 0 for each of the {len(each)} samples, not all 0")
    return float(np.average(each, weights=weight / weight.max()))


@shared_docs
def regularised_risk(
    y: Any,
    f: Any,
    *,
    loss: LossName,
    norm: float,
    theta: float,
    target_margin: float = 1.0,
    sample_weight: Any = None,
) -> float:
    """The empirical risk plus ϑ‖f‖²; a soft-margin machine with the price C minimises it at ϑ = 1/(2Cn).

    Parameters
    ----------
    %(loss of each)s
    norm : float
        ‖f‖ in the kernel's space.
    theta : float
        ϑ: the price of ‖f‖².
    %(target margin)s
    sample_weight : array, optional
        The weight of each sample in the mean.

    Examples
    --------
    >>> from mercer.theory import regularised_risk
    >>> regularised_risk([1, -1], [2.0, -0.5], loss="hinge", norm=2.0, theta=0.25)
    1.25
    """
    price = not_negative("theta", theta) * not_negative("norm", norm) * norm
    return risk(y, f, loss=loss, target_margin=target_margin, sample_weight=sample_weight) + price
