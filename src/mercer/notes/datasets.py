"""Data sets of the lecture notes as seeded generators, with their Bayes rules and Bayes risks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mercer.runtime.parameters import Seed, integer, not_negative, positive
from mercer.samples.arrays import Floats

__all__ = ["Example", "interval", "location", "location_scale", "rings", "with_paraboloid", "with_square"]


@dataclass(frozen=True, eq=False)
class Example:
    """Samples with labels ±1; ``X, y = example`` unpacks it.

    Attributes
    ----------
    X : array of shape (n, d)
        Samples.
    y : array of shape (n,)
        Labels, −1 or +1.
    bayes_rule : callable
        Function from samples to their Bayes-optimal labels.
    bayes_risk : float
        Bayes risk: the error probability of that rule, which no classifier can improve on.
    """

    X: Floats
    y: Floats
    bayes_rule: Callable[[ArrayLike], Floats]
    bayes_risk: float

    def __iter__(self) -> Iterator[Floats]:
        return iter((self.X, self.y))


def location(n: int = 200, *, distance: float = 2.0, d: int = 2, random_state: Seed = 0) -> Example:
    """Draw from two normal distributions that differ in their means: N(0, I) with label −1 and N(μ, I) with +1.

    The Bayes rule is the hyperplane halfway between the means, and the Bayes risk is Φ(−‖μ‖/2).

    Parameters
    ----------
    n : int, default=200
        Number of samples.
    distance : float, default=2.0
        Distance ‖μ‖ between the means.
    d : int, default=2
        Number of features.
    random_state : int or Generator, default=0
        Seed of the random numbers.

    Returns
    -------
    Example
        Samples and labels, with Bayes rule and Bayes risk.

    Examples
    --------
    >>> from mercer.notes.datasets import location
    >>> X, y = example = location(100, distance=2.0)
    >>> X.shape, round(example.bayes_risk, 4)
    ((100, 2), 0.1587)
    """
    return location_scale(n, distance=distance, scale=1.0, d=d, random_state=random_state)


def location_scale(
    n: int = 200, *, distance: float = 2.0, scale: float = 2.0, d: int = 2, random_state: Seed = 0
) -> Example:
    """Draw from two normal distributions that differ in mean and scale: N(0, I), label −1, and N(μ, scale²I), label +1.

    The two labels are equally likely. The Bayes rule is a ball (a hyperplane for scale 1), so that its risk follows
    from the non-central χ² distribution.

    Parameters
    ----------
    n : int, default=200
        Number of samples.
    distance : float, default=2.0
        Distance ‖μ‖ between the means.
    scale : float, default=2.0
        Standard deviation of the second distribution.
    d : int, default=2
        Number of features.
    random_state : int or Generator, default=0
        Seed of the random numbers.

    Returns
    -------
    Example
        Samples and labels, with Bayes rule and Bayes risk.

    Examples
    --------
    >>> from mercer.notes.datasets import location_scale
    >>> example = location_scale(100, distance=0.0, scale=3.0)
    >>> round(example.bayes_risk, 4), example.bayes_rule([[0.0, 0.0], [9.0, 0.0]]).tolist()
    (0.1623, [-1.0, 1.0])
    """
    rng = _generator(n, random_state)
    integer("d", d, 1, "the number of features")
    mean = np.zeros(d)
    mean[0] = not_negative("distance", distance)
    deviation = positive("scale", scale)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(n, d))
    X[y > 0] = mean + deviation * X[y > 0]

    def rule(points: ArrayLike) -> Floats:
        Z = np.asarray(points, dtype=np.float64)
        first_log_density = -0.5 * np.sum(Z**2, axis=1)
        second_log_density = -0.5 * np.sum(((Z - mean) / deviation) ** 2, axis=1) - d * math.log(deviation)
        return np.where(second_log_density >= first_log_density, 1.0, -1.0)

    return Example(X, y, rule, _bayes_risk(distance, deviation, d))


def _bayes_risk(distance: float, scale: float, d: int) -> float:
    """Return the Bayes risk of `location_scale`."""
    from scipy import stats  # the import takes half a second, which the other data sets do not need

    if scale == 1:
        return float(stats.norm.cdf(-0.5 * distance))
    # The region of the narrower distribution is a ball ‖x − a‖² ≤ r². Take it as N(0, I), the other as N(·, ratio²I).
    ratio = max(scale, 1.0 / scale)
    shift = distance if scale > 1 else distance / scale
    excess = ratio**2 - 1.0
    centre = shift / excess  # on the side away from the mean of the wider distribution
    square = (2.0 * d * math.log(ratio) * ratio**2 + shift**2) / excess + centre**2
    inside_narrow = stats.ncx2.cdf(square, d, centre**2) if centre > 0 else stats.chi2.cdf(square, d)
    offset = ((centre + shift) / ratio) ** 2
    inside_wide = stats.ncx2.cdf(square / ratio**2, d, offset) if offset > 0 else stats.chi2.cdf(square / ratio**2, d)
    return float(0.5 * (1.0 - inside_narrow + inside_wide))


def interval(n: int | None = None, *, random_state: Seed = 0) -> Example:
    """Return numbers from −3 to 3, with label +1 if |x| ≤ 1: no threshold separates them, but (x, x²) does.

    Without n they are −3, −2, …, 3, for which the margin in (x, x²) is 1.5.

    Parameters
    ----------
    n : int, optional
        Number of uniformly distributed samples.
    random_state : int or Generator, default=0
        Seed of the random numbers.

    Returns
    -------
    Example
        Samples and labels, with Bayes rule and Bayes risk 0: x determines the label.
    """
    X = np.arange(-3.0, 4.0)[:, None] if n is None else _generator(n, random_state).uniform(-3, 3, size=(n, 1))

    def rule(points: ArrayLike) -> Floats:
        return np.where(np.abs(np.asarray(points, dtype=np.float64)[:, 0]) <= 1, 1.0, -1.0)

    return Example(X, rule(X), rule, 0.0)


def rings(n: int = 200, *, inner: float = 1.0, outer: float = 2.0, random_state: Seed = 0) -> Example:
    """Draw points on two circles around the origin, with label +1 on the inner one: no line separates them.

    With radii 1 and 2, and points that cover the circles densely, the margin is 1.5/√2 for the kernel ⟨x, z⟩² and 1.5
    after `with_paraboloid`.

    Parameters
    ----------
    n : int, default=200
        Number of samples.
    inner : float, default=1.0
        Radius of the inner circle.
    outer : float, default=2.0
        Radius of the outer circle.
    random_state : int or Generator, default=0
        Seed of the random numbers.

    Returns
    -------
    Example
        Samples and labels, with Bayes rule, the label of the nearer circle, and Bayes risk: 0, or ½ for equal radii.
    """
    rng = _generator(n, random_state)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    radius = np.where(y > 0, positive("inner", inner), positive("outer", outer))
    angle = rng.uniform(0, 2 * np.pi, n)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])

    def rule(points: ArrayLike) -> Floats:
        lengths = np.linalg.norm(np.asarray(points, dtype=np.float64), axis=1)
        return np.where(np.abs(lengths - inner) <= np.abs(lengths - outer), 1.0, -1.0)

    return Example(X, y, rule, 0.5 if inner == outer else 0.0)


def with_square(X: ArrayLike) -> Floats:
    """Map x ↦ (x, x²), for samples with one feature.

    Parameters
    ----------
    X : array of shape (n, 1)
        Samples with one feature.

    Returns
    -------
    array of shape (n, 2)
        Mapped samples.
    """
    Z = np.asarray(X, dtype=np.float64)
    if Z.ndim != 2 or Z.shape[1] != 1:
        raise ValueError(f"x ↦ (x, x²) takes one feature, but X has the shape {Z.shape}")
    return np.column_stack([Z, Z**2])


def with_paraboloid(X: ArrayLike) -> Floats:
    """Map x ↦ (x, ‖x‖²): add the sum of the squared features as one more feature.

    Parameters
    ----------
    X : array of shape (n, d)
        Samples.

    Returns
    -------
    array of shape (n, d + 1)
        Mapped samples.

    Examples
    --------
    >>> from mercer.notes.datasets import with_paraboloid
    >>> with_paraboloid([[1.0, 2.0]])
    array([[1., 2., 5.]])
    """
    Z = np.asarray(X, dtype=np.float64)
    if Z.ndim != 2:
        raise ValueError(f"X must have a row per sample, but its shape is {Z.shape}")
    return np.column_stack([Z, np.sum(Z**2, axis=1)])


def _generator(n: int, random_state: Seed) -> np.random.Generator:
    """Return a random generator; raise if n is not a number of samples."""
    integer("n", n, 1, "the number of samples")
    return np.random.default_rng(random_state)
