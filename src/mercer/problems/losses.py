"""Convex losses ℓ(y, f) of a target and a value, with their derivatives in f.

Users can write their own: any object with three methods that take and return arrays, one entry per sample:

    value(y, f)      ℓ(y, f), convex in f
    gradient(y, f)   dℓ/df
    curvature(y, f)  d²ℓ/df² ≥ 0; at a kink of the gradient, any value between the two sides

and an attribute `kind` = "classification" (y = ±1) or "regression", which decides what a kernel machine predicts. A
loss with corners, such as |y − f|, has no method `curvature`, and its `gradient` returns any subgradient at a corner.
A loss with a method `probability(f)`, the probability of y = +1, gives the machine `predict_proba`.

A loss need not be a sum over samples. With a method `combine(y)` that returns a sparse matrix A and targets z, the loss
is Σ_p ℓ(z_p, (Af)_p): a loss of differences, means or other sums of the values f, one for each row of A. `Pairwise` is
an example.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from scipy import sparse, special

from mercer.samples.arrays import Floats

__all__ = [
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Pairwise",
    "Pinball",
    "Squared",
    "SquaredHinge",
]

Kind = Literal["classification", "regression"]


@runtime_checkable
class Loss(Protocol):
    """Convex loss of a kernel machine: functions of the targets and the values f, one number for each sample.

    Your own class needs no base class, only these methods and `kind`, "classification" (y is ±1) or "regression". A
    smooth loss also has a method curvature(y, f), the second derivative in f, which is not negative.
    """

    def value(self, y: Floats, f: Floats) -> Floats:
        """Return ℓ(y, f), convex in f."""

    def gradient(self, y: Floats, f: Floats) -> Floats:
        """Return dℓ/df, at a corner any subgradient."""


@dataclass(frozen=True)
class Squared:
    """Squared loss, (y − f)²."""

    kind: ClassVar[Kind] = "regression"

    def value(self, y: Floats, f: Floats) -> Floats:
        return (y - f) ** 2

    def gradient(self, y: Floats, f: Floats) -> Floats:
        return 2 * (f - y)

    def curvature(self, y: Floats, f: Floats) -> Floats:
        return np.full(len(f), 2.0)


@dataclass(frozen=True)
class Huber:
    """Huber's loss: ½(y − f)² up to a distance of δ, and δ(|y − f| − δ/2) beyond.

    Parameters
    ----------
    delta : float, default=1.0
        Threshold δ > 0 above which an error counts as an outlier.
    """

    delta: float = 1.0
    kind: ClassVar[Kind] = "regression"

    def value(self, y: Floats, f: Floats) -> Floats:
        distance = np.abs(y - f)
        return np.asarray(
            np.where(distance <= self.delta, 0.5 * distance**2, self.delta * (distance - 0.5 * self.delta))
        )

    def gradient(self, y: Floats, f: Floats) -> Floats:
        return np.clip(f - y, -self.delta, self.delta)

    def curvature(self, y: Floats, f: Floats) -> Floats:
        return (np.abs(y - f) <= self.delta).astype(np.float64)


@dataclass(frozen=True)
class Logistic:
    """Logistic loss log(1 + exp(−yf)), the negative log-likelihood of P(y = 1) = 1/(1 + exp(−f))."""

    kind: ClassVar[Kind] = "classification"

    def value(self, y: Floats, f: Floats) -> Floats:
        return np.asarray(np.logaddexp(0.0, -y * f))

    def gradient(self, y: Floats, f: Floats) -> Floats:
        return np.asarray(-y * special.expit(-y * f))

    def curvature(self, y: Floats, f: Floats) -> Floats:
        return np.asarray(special.expit(f) * special.expit(-f))

    def probability(self, f: Floats) -> Floats:
        return np.asarray(special.expit(f))


@dataclass(frozen=True)
class SquaredHinge:
    """Squared hinge loss, max(0, 1 − yf)²."""

    kind: ClassVar[Kind] = "classification"

    def value(self, y: Floats, f: Floats) -> Floats:
        return np.maximum(0.0, 1.0 - y * f) ** 2

    def gradient(self, y: Floats, f: Floats) -> Floats:
        return -2.0 * y * np.maximum(0.0, 1.0 - y * f)

    def curvature(self, y: Floats, f: Floats) -> Floats:
        return np.where(y * f < 1.0, 2.0, 0.0)


@dataclass(frozen=True)
class Hinge:
    """Hinge loss max(0, 1 − yf), with a corner at yf = 1."""

    kind: ClassVar[Kind] = "classification"

    def value(self, y: Floats, f: Floats) -> Floats:
        return np.maximum(0.0, 1.0 - y * f)

    def gradient(self, y: Floats, f: Floats) -> Floats:
        return np.where(y * f < 1.0, -y, 0.0)


@dataclass(frozen=True)
class EpsilonInsensitive:
    """ε-insensitive loss max(0, |y − f| − ε); with ε = 0 it is the absolute loss |y − f|.

    Parameters
    ----------
    epsilon : float, default=0.0
        Largest error ε ≥ 0 that costs nothing.
    """

    epsilon: float = 0.0
    kind: ClassVar[Kind] = "regression"

    def value(self, y: Floats, f: Floats) -> Floats:
        return np.maximum(0.0, self._excess(y, f))

    def gradient(self, y: Floats, f: Floats) -> Floats:
        return np.where(self._excess(y, f) > 0, np.sign(f - y), 0.0)

    def _excess(self, y: Floats, f: Floats) -> Floats:
        """Return |y − f| − ε to a relative error of two roundings, although the two numbers cancel.

        Near the corner |y − f| − ε is exact (Sterbenz), so that only the rounding of y − f matters; it is itself a
        float (Knuth's TwoSum), and is added.
        """
        difference = y - f
        subtracted = y - difference
        rounding = (y - (difference + subtracted)) + (subtracted - f)
        excess = np.abs(difference) - self.epsilon
        return np.asarray(excess + np.where(np.isfinite(rounding), np.sign(difference) * rounding, 0.0))


@dataclass(frozen=True)
class Pinball:
    """Pinball loss, τ(y − f) below y and (1 − τ)(f − y) above, whose minimiser is the τ-quantile.

    Parameters
    ----------
    tau : float, default=0.5
        Level τ between 0 and 1.
    """

    tau: float = 0.5
    kind: ClassVar[Kind] = "regression"

    def value(self, y: Floats, f: Floats) -> Floats:
        return np.maximum(self.tau * (y - f), (1.0 - self.tau) * (f - y))

    def gradient(self, y: Floats, f: Floats) -> Floats:
        return np.where(f < y, -self.tau, np.where(f > y, 1.0 - self.tau, 0.0))


@dataclass(frozen=True)
class Pairwise:
    """Ranking loss Σ ℓ(1, f_i − f_j) over all pairs with y_i > y_j: it learns the order of targets, not their values.

    Parameters
    ----------
    loss : SquaredHinge, or an object of your own, optional
        Classification loss ℓ of the differences; `Logistic` by default.
    """

    loss: Loss | None = None
    kind: ClassVar[Kind] = "regression"

    @property
    def inner(self) -> Loss:
        """The loss ℓ of the differences."""
        return Logistic() if self.loss is None else self.loss

    def combine(self, y: Floats) -> tuple[Any, Floats]:
        """Return A with a row for each pair, +1 at the larger target and −1 at the smaller one, and targets of 1."""
        larger_rows, smaller_rows = np.nonzero(y[:, None] > y)
        m = len(larger_rows)
        entries = np.tile([1.0, -1.0], m)
        A = sparse.csr_array(
            (entries, np.column_stack([larger_rows, smaller_rows]).ravel(), np.arange(0, 2 * m + 1, 2)), (m, len(y))
        )
        return A, np.ones(m)

    def value(self, y: Floats, f: Floats) -> Floats:
        return self.inner.value(y, f)

    def gradient(self, y: Floats, f: Floats) -> Floats:
        return self.inner.gradient(y, f)

    def curvature(self, y: Floats, f: Floats) -> Floats:
        loss: Any = self.inner
        return np.asarray(loss.curvature(y, f))


def is_known_convex(loss: Any) -> bool:
    """Return whether the loss is one of this module's, which are convex and not negative; a user's loss may not be."""
    known = (Squared, Huber, Logistic, SquaredHinge, Hinge, EpsilonInsensitive, Pinball)
    return type(_elementary(loss)) in known


def has_corners(loss: Any) -> bool:
    """Return whether the loss has subgradients only: no method `curvature`."""
    return not hasattr(_elementary(loss), "curvature")


def _elementary(loss: Any) -> Any:
    """Return the loss of each difference if the loss is one of pairs, else the loss itself."""
    return loss.inner if type(loss) is Pairwise else loss


def check_derivatives(loss: Any, y: Floats) -> None:
    """Raise if a user's gradient or curvature disagrees with finite differences, at points spread around y.

    Kinks are allowed: a difference may be wrong at up to a fifth of the points. If the loss has corners, its
    subgradients must not fall as f grows.
    """
    targets = np.resize(np.unique(y)[:: max(1, len(np.unique(y)) // 8)], 64)
    spread = float(np.abs(targets).max(initial=0.0)) + 1.0
    f = targets + spread * np.linspace(-2.0, 2.0, 64) + 0.01
    step = 1e-5 * spread
    derivatives = [("gradient", loss.value)] + [("curvature", loss.gradient)] * (not has_corners(loss))
    for name, function in derivatives:
        derivative = _finite_values(loss, name, targets, f)
        left, right = (np.asarray(function(targets, f + s), dtype=np.float64) for s in (-step, step))
        is_wrong = np.abs((right - left) / (2 * step) - derivative) > 1e-3 * (1.0 + np.abs(derivative))
        if is_wrong.mean() > 0.2:
            i = int(np.argmax(is_wrong))
            raise ValueError(
                f"loss.{name}(y, f) is {derivative[i]:.6g} at y={targets[i]:.6g}, f={f[i]:.6g}, but differences of "
                f"loss.{function.__name__} give {(right - left)[i] / (2 * step):.6g}; correct the derivative"
            )
    if not has_corners(loss):
        if (_finite_values(loss, "curvature", targets, f) < 0).any():
            raise ValueError("loss.curvature(y, f) is negative somewhere: the loss is not convex in f")
        return
    slopes = np.column_stack([_finite_values(loss, "gradient", targets, np.full(64, t)) for t in np.sort(f)])
    if (np.diff(slopes, axis=1) < -1e-9 * (1.0 + np.abs(slopes[:, 1:]))).any():
        raise ValueError("loss.gradient(y, f) falls somewhere as f grows: the loss is not convex in f")


def _finite_values(loss: Any, name: str, y: Floats, f: Floats) -> Floats:
    """Call a method of a user's loss, and raise ValueError unless it returns one finite number per sample."""
    out = np.asarray(getattr(loss, name)(y, f), dtype=np.float64)
    if out.shape != f.shape or not np.isfinite(out).all():
        raise ValueError(
            f"loss.{name}(y, f) must return {len(f)} finite numbers for {len(f)} samples, but its shape is {out.shape}"
            f"{' and some are not finite' if out.shape == f.shape else ''}"
        )
    return out
