"""The perceptron in feature space, and the number of its mistakes: at most (R/ρ)² (Novikoff 1962; Igel, section 4.1.1).

It takes the samples in turn, and adds y_iφ(x_i) to w for each that is on the wrong side. ρ is the margin of any plane
through the origin that separates the samples, R the largest ‖φ(x)‖.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mercer.arrays import Floats
from mercer.data.labels import read_signs
from mercer.parameters import integer, positive


@dataclass(frozen=True, eq=False)
class Perceptron:
    """What the perceptron found.

    Attributes
    ----------
    alpha : array
        How often each sample was added: w = Σ α_i y_i φ(x_i).
    mistakes : int
        Σα.
    converged : bool
        Whether a whole pass went by without a mistake.
    passes : int
        How often the samples were taken in turn.
    """

    alpha: Floats
    mistakes: int
    converged: bool
    passes: int


def perceptron(K: ArrayLike, y: ArrayLike, *, max_passes: int = 1000) -> Perceptron:
    """The perceptron on samples with the kernel matrix K and labels y; f(x) = 0 counts as a mistake.

    Parameters
    ----------
    K : array of shape (n, n)
        The kernel matrix.
    y : array
        Labels of two classes; the larger one is the positive one, as in `SVC`.
    max_passes : int, default=1000
        How often the samples are taken in turn, at most.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.theory import perceptron
    >>> X, y = np.array([[2.0, 1.0], [-1.0, 1.0]]), [1, -1]
    >>> found = perceptron(X @ X.T, y)
    >>> found.mistakes, found.converged
    (1, True)
    """
    K, signs = np.asarray(K, dtype=np.float64), read_signs(y)
    if K.shape != (len(signs), len(signs)):
        raise ValueError(f"K must be square with a row for each of the {len(signs)} labels; its shape is {K.shape}")
    integer("max_passes", max_passes, 1, "how often the samples are taken in turn")
    alpha, f = np.zeros(len(signs)), np.zeros(len(signs))
    for done in range(1, max_passes + 1):
        before = alpha.sum()
        for i in range(len(signs)):
            if signs[i] * f[i] <= 0:
                alpha[i] += 1
                f += signs[i] * K[i]
        if alpha.sum() == before:
            return Perceptron(alpha, int(before), True, done)
    return Perceptron(alpha, int(alpha.sum()), False, max_passes)


def mistake_bound(radius: float, rho: float) -> int:
    """⌊(R/ρ)²⌋ (Novikoff): no more mistakes than this, however often and in whatever order the samples come.

    Parameters
    ----------
    radius : float
        R: the largest ‖φ(x)‖.
    rho : float
        The margin of a plane through the origin that separates the samples.
    """
    ratio = positive("radius", radius) / positive("rho", rho)
    mistakes = ratio * ratio * (1 + 1e-12)
    if not math.isfinite(mistakes):
        raise ValueError(f"radius={radius:g} and rho={rho:g}: the number of mistakes is beyond float64")
    return math.floor(mistakes)
