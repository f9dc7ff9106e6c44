"""Empirical risks, Gaussian likelihood and posterior, and the no-free-lunch theorem by enumeration.

With the margin m = y f(x), where y is +1 for the larger of two labels and −1 for the other, and a target margin γ > 0:

    zero_one   1 where f(x) and y differ in sign, f(x) = 0 counting as positive
    hinge      max(0, γ − m)/γ          at γ = 1 the slack ξ
    ramp       min(1, max(0, γ − m)/γ)  the hinge, clipped at 1

zero_one ≤ ramp ≤ hinge for every γ, except for ties at f(x) = 0, all of which the ramp counts as errors.

The squared loss corresponds to a likelihood, the penalty ‖f‖² to a prior. If the targets y_i are normally distributed
around f(x_i) with variance σ², and the prior density of f is proportional to exp(−‖f‖²/2s), then

    log likelihood   −1/(2σ²) Σ (y_i − f(x_i))² − n/2 log 2πσ²
    log posterior    log likelihood − ‖f‖²/(2s) + a constant that does not depend on f

so that the most probable function minimises Σ (y_i − f(x_i))² + λ‖f‖² with λ = σ²/s (Igel, sections 2.1 and 2.2).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from mercer.problems.losses import Huber, Logistic, Loss, Squared, SquaredHinge
from mercer.runtime.parameters import integer, not_negative, one_of, positive, weights
from mercer.samples.arrays import Floats, Indices
from mercer.samples.labels import read_signs

# Largest number of points: the learner is trained on every labelling of them.
_MOST_POINTS = 16

LossName = Literal["zero_one", "hinge", "ramp", "squared", "squared_hinge", "logistic", "huber"]
_WITH_MARGIN = ("zero_one", "hinge", "ramp")
_WITHOUT_MARGIN: dict[str, Loss] = {
    "squared": Squared(),
    "squared_hinge": SquaredHinge(),
    "logistic": Logistic(),
    "huber": Huber(),
}


def sample_losses(y: ArrayLike, f: ArrayLike, *, loss: LossName | Loss, target_margin: float = 1.0) -> Floats:
    """Compute the loss of each sample from its target y (a label, or a number for regression) and f(x)."""
    gamma = positive("target_margin", target_margin)
    if isinstance(loss, str):
        one_of("loss", loss, (*_WITH_MARGIN, *_WITHOUT_MARGIN))
    elif isinstance(loss, type) or not callable(getattr(loss, "value", None)):
        raise TypeError(
            f"loss={loss!r} must be a name, or an object with value(y, f) such as those of mercer.losses, "
            "for example mercer.losses.Huber(2.0)"
        )
    if loss not in _WITH_MARGIN and gamma != 1:
        raise ValueError(f"target_margin={gamma:g} is for the losses {', '.join(_WITH_MARGIN)}, not for {loss!r}")
    loss_object: Any = _WITHOUT_MARGIN.get(loss) if isinstance(loss, str) else loss
    values = np.asarray(f, dtype=np.float64)
    has_labels = loss_object is None or getattr(loss_object, "kind", None) == "classification"
    targets = read_signs(y) if has_labels else np.asarray(y, dtype=np.float64)
    ranks = (1,) if has_labels or hasattr(loss_object, "combine") else (1, 2)
    if targets.shape != values.shape or targets.ndim not in ranks or targets.size == 0:
        raise ValueError(
            f"y and f must have one number per sample{' and output' * (len(ranks) > 1)}, at least one, but their "
            f"shapes are {targets.shape} and {values.shape}"
        )
    if not np.isfinite(values).all() or not np.isfinite(targets).all():
        raise ValueError("y and f must be finite")
    if targets.ndim == 2:
        return np.asarray(_loss_values(loss_object, targets.ravel(), values.ravel()).reshape(targets.shape).sum(axis=1))
    if loss_object is not None:
        return _loss_values(loss_object, targets, values)
    if loss == "zero_one":
        return np.asarray((values >= 0) != (targets > 0), dtype=np.float64)
    hinge = np.maximum(0.0, gamma - targets * values) / gamma
    return np.minimum(1.0, hinge) if loss == "ramp" else hinge


def _loss_values(loss_object: Any, y: Floats, f: Floats) -> Floats:
    """Evaluate ℓ(y, f) for each sample, or for each combination of a loss such as `Pairwise`."""
    if hasattr(loss_object, "combine"):
        A, y = loss_object.combine(y)
        f = np.asarray(A @ f, dtype=np.float64)
        if len(f) == 0:
            raise ValueError(
                f"loss={loss_object!r} has no combinations for these targets, and so no mean; use other targets"
            )
    losses = np.asarray(loss_object.value(y, f), dtype=np.float64)
    if losses.shape != f.shape:
        raise ValueError(
            f"loss={loss_object!r} must return a number for each of {len(f)} values, not the shape {losses.shape}"
        )
    return losses


def risk(
    y: ArrayLike,
    f: ArrayLike,
    *,
    loss: LossName | Loss,
    target_margin: float = 1.0,
    power: float = 1.0,
    norm: float | None = None,
    theta: float | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the empirical risk, the mean loss, or the regularised risk: mean loss + ϑ‖f‖².

    A soft-margin machine with C minimises the regularised hinge risk with ϑ = 1/(2Cn). The risk of a single sample is
    its loss.

    Parameters
    ----------
    y : array of shape (n,) or (n, n_outputs)
        Labels of two classes, the larger of which is positive as in `SVC`, or numbers for a regression loss. The loss
        of several outputs is the sum over them, for the squared loss ‖y − f(x)‖².
    f : array of the same shape
        Values f(x) of the samples.
    loss : {"zero_one", "hinge", "ramp", "squared", "squared_hinge", "logistic", "huber"} or object
        Name of a loss, a loss of `mercer.losses`, or your own object with value(y, f) and `kind`.
    target_margin : float, default=1.0
        Target margin γ of "hinge" and "ramp".
    power : float, default=1.0
        Power σ > 0 of each loss, with 0^σ = 0. The hinge then gives the mean of ξ^σ, which tends to the share of
        samples with slack as σ → 0.
    norm : float, optional
        Norm ‖f‖ in feature space, for the regularised risk.
    theta : float, optional
        Factor ϑ of ‖f‖², for the regularised risk.
    sample_weight : array, optional
        Weights of the samples in the mean.

    Returns
    -------
    float
        The risk.

    Examples
    --------
    >>> from mercer.problems.losses import Huber
    >>> from mercer.notes.theory import risk
    >>> y, f = [1, 1, -1, -1], [2.0, 0.5, -3.0, 1.0]
    >>> risk(y, f, loss="zero_one"), risk(y, f, loss="hinge"), risk(y, f, loss="ramp")
    (0.25, 0.625, 0.375)
    >>> risk([[1.0, 0.0], [2.0, 2.0]], [[1.0, 2.0], [5.0, 2.0]], loss="squared")  # (2² + 3²)/2
    6.5
    >>> risk(y, f, loss="hinge", target_margin=0.5), risk(y, f, loss=Huber(0.5))
    (0.75, 0.5625)
    >>> risk([1, -1], [2.0, -0.5], loss="hinge", norm=2.0, theta=0.25)  # 0.25 + 0.25·2²
    1.25
    >>> [risk([1, 1, -1, -1], [2.0, 0.75, 3.0, -2.0], loss="hinge", power=power) for power in (1.0, 0.5)]
    [1.0625, 0.625]
    """
    if (norm is None) != (theta is None):
        raise ValueError(f"norm={norm!r} and theta={theta!r}: the regularised risk needs both, the plain one neither")
    losses = sample_losses(y, f, loss=loss, target_margin=target_margin) ** positive("power", power)
    if sample_weight is None:
        mean = float(losses.mean())
    elif hasattr(loss, "combine"):
        raise ValueError(f"loss={loss!r} is not a sum over samples, so that samples cannot have weights")
    else:
        mean = float(weights("sample_weight", sample_weight, len(losses)) @ losses)
    if norm is None or theta is None:
        return mean
    return mean + not_negative("theta", theta) * not_negative("norm", norm) * norm


def log_likelihood(y: ArrayLike, f: ArrayLike, *, variance: ArrayLike) -> float:
    """Compute the log likelihood of targets y that are normally distributed around f (Igel, section 2.1).

    Parameters
    ----------
    y, f : arrays of shape (n,) or (n, n_outputs)
        Targets, and values of the function; several outputs are independent.
    variance : float or array of shape (n_outputs,)
        Variance σ² > 0 of the noise. The likelihood is largest at the mean of the squared residuals, of each column or
        of all: ``risk(y, f, loss="squared")``, divided by n_outputs for one variance.

    Returns
    -------
    float
        Log likelihood.

    Examples
    --------
    >>> from mercer.notes.theory import log_likelihood
    >>> round(log_likelihood([1.0, 2.0], [1.5, 2.5], variance=0.25), 4)
    -1.4516
    """
    if np.ndim(y) == 2:
        targets, values = np.asarray(y, dtype=np.float64), np.asarray(f, dtype=np.float64)
        if targets.shape != values.shape or (np.ndim(variance) and np.shape(variance) != targets.shape[1:]):
            raise ValueError(
                f"y and f must have the same shape, and variance must be one number or one for each column, but their "
                f"shapes are {targets.shape}, {values.shape} and {np.shape(variance)}"
            )
        variances = np.broadcast_to(np.asarray(variance, dtype=np.float64), targets.shape[1:])
        columns = zip(targets.T, values.T, variances.tolist(), strict=True)
        return sum(log_likelihood(target, value, variance=noise) for target, value, noise in columns)
    noise = positive("variance", variance)
    squares = sample_losses(y, f, loss="squared")
    return -0.5 * (float(squares.sum()) / noise + len(squares) * math.log(2.0 * math.pi * noise))


def log_posterior(y: ArrayLike, f: ArrayLike, *, norm: float, variance: float, scale: float = 1.0) -> float:
    """Compute the log posterior with the prior exp(−‖f‖²/2s), up to a constant (Igel, section 2.2).

    Parameters
    ----------
    y, f : arrays of shape (n,) or (n, n_outputs)
        Targets, and values of the function.
    norm : float
        Norm ‖f‖ in feature space; √Σ‖f_k‖² for several outputs.
    variance : float
        Variance σ² > 0 of the noise.
    scale : float, default=1.0
        Scale s > 0 of the prior, under which f has the covariance s·k. The maximum is the least-squares fit with
        λ = σ²/s.

    Returns
    -------
    float
        Log likelihood − ‖f‖²/2s.

    Examples
    --------
    >>> from mercer.notes.theory import log_likelihood, log_posterior
    >>> y, f = [1.0, 2.0], [1.5, 2.5]
    >>> round(log_posterior(y, f, norm=2.0, variance=0.25) - log_likelihood(y, f, variance=0.25), 9)
    -2.0
    """
    return log_likelihood(y, f, variance=variance) - not_negative("norm", norm) ** 2 / (2.0 * positive("scale", scale))


def off_training_error(
    learner: Callable[[Indices, Indices, Indices], ArrayLike], n_points: int, n_train: int
) -> Fraction:
    """Compute the mean error of a learner on unseen points over all 2^n labellings of n points (no free lunch).

    Parameters
    ----------
    learner : callable
        Function (x_train, y_train, x_test) -> labels ±1 of the test points; points are the numbers 0, 1, …
    n_points : int
        Number of points, at most 16.
    n_train : int
        Number of training points, which come first.

    Returns
    -------
    Fraction
        Mean error, exactly; 1/2 for every learner.

    Examples
    --------
    >>> from mercer.notes.theory import off_training_error
    >>> def majority(x_train, y_train, x_test):
    ...     return [1 if sum(y_train) >= 0 else -1] * len(x_test)
    >>> off_training_error(majority, 6, 4)
    Fraction(1, 2)
    """
    integer("n_points", n_points, 2, "the number of points")
    integer("n_train", n_train, 0, "the number of training points")
    if n_points > _MOST_POINTS or n_train >= n_points:
        raise ValueError(
            f"n_points={n_points} and n_train={n_train}: there may be at most {_MOST_POINTS} points, since all "
            "labellings are tried, and at least one must be unseen"
        )
    points = np.arange(n_points)
    n_wrong = 0
    for labels in itertools.product((-1, 1), repeat=n_points):
        y = np.array(labels)
        predicted_labels = np.asarray(learner(points[:n_train], y[:n_train], points[n_train:]))
        if predicted_labels.shape != (n_points - n_train,) or not np.isin(predicted_labels, (-1, 1)).all():
            raise ValueError("the learner must return a label of -1 or +1 for every unseen point")
        n_wrong += int(np.sum(predicted_labels != y[n_train:]))
    return Fraction(n_wrong, 2**n_points * (n_points - n_train))
