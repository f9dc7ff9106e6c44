"""Random Fourier features: s·exp(−γ‖x − z‖²) is the mean of s·cos ω'(x − z) over frequencies ω from N(0, 2γI).

√(s/m) (cos ω'x, sin ω'x)  for m frequencies

An odd number of features has √(2s/m) cos(ω'x + φ) for the last of them, with a random phase φ.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import linalg

from mercer.arrays import Floats, Samples
from mercer.features.feature_map import FeatureMap
from mercer.kernels import Kernel
from mercer.parameters import integer, store


class RandomFourier(FeatureMap):
    """Random Fourier features of a Gaussian kernel (Rahimi and Recht 2007), orthogonal by default (Yu and others 2016).

    The error falls like 1/√n_components; `error(X)` says what it is.

    Parameters
    ----------
    kernel : Kernel or str, default="rbf"
        A Gaussian kernel, also with a matrix M or a factor.
    n_components : int, default=200
        Features: a cosine and a sine for half as many frequencies. With an odd number the last frequency has a cosine
        alone, at a random phase.
    orthogonal : bool, default=True
        Draw frequencies in orthogonal directions, which makes the error smaller.
    random_state : int or Generator, default=0
        What the frequencies are drawn by.

    Attributes
    ----------
    kernel_ : Kernel
        With its numbers.
    frequencies_ : array of shape (ceil(n_components / 2), n_features)
        The frequencies ω.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.features import RandomFourier
    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> features = RandomFourier(Gaussian(gamma=0.2), n_components=2000).fit(X)
    >>> features.transform(X).shape, features.error(X) < 0.1
    ((50, 2000), True)
    """

    def __init__(
        self, kernel: Any = "rbf", n_components: int = 200, orthogonal: bool = True, random_state: Any = 0
    ) -> None:
        store(self, locals())

    def _prepare(self, X: Samples) -> None:
        integer("n_components", self.n_components, 1, "the number of features")
        self._scale, gamma, factor = gaussian_of(self.kernel_)
        width = X.shape[1] if factor is None else factor.shape[1]
        rng = np.random.default_rng(self.random_state)
        frequencies = rng.normal(size=((self.n_components + 1) // 2, width))
        if self.orthogonal:
            frequencies = _orthogonal(rng, frequencies)
        frequencies *= math.sqrt(2 * gamma)
        self._phase = rng.uniform(0.0, 2.0 * math.pi) if self.n_components % 2 else None
        self.frequencies_ = frequencies if factor is None else frequencies @ factor.T

    def _width(self) -> int:
        return int(self.n_components)

    def _features(self, X: Samples) -> Floats:
        angles = X @ self.frequencies_.T
        size = math.sqrt(self._scale / len(self.frequencies_))
        if self._phase is None:
            return np.asarray(size * np.concatenate([np.cos(angles), np.sin(angles)], axis=1))
        both, last = angles[:, :-1], math.sqrt(2.0) * np.cos(angles[:, -1:] + self._phase)
        return np.asarray(size * np.concatenate([np.cos(both), np.sin(both), last], axis=1))


def _orthogonal(rng: np.random.Generator, frequencies: Floats) -> Floats:
    """Frequencies of these lengths, orthogonal in groups of as many as there are dimensions."""
    m, width = frequencies.shape
    lengths = np.linalg.norm(frequencies, axis=1)
    blocks = [linalg.qr(rng.normal(size=(width, width)))[0].T for _ in range(-(-m // width))]
    return np.asarray(np.concatenate(blocks)[:m] * lengths[:, None])


def gaussian_of(kernel: Kernel) -> tuple[float, float, Floats | None]:
    """The scale, γ and the linear factor of a Gaussian kernel."""
    recipe = kernel.recipe()
    if recipe is None or recipe.ending != "gaussian" or recipe.constant:
        raise ValueError(f"{kernel!r} is no Gaussian kernel, nor a multiple of one")
    return recipe.scale, recipe.numbers[0], recipe.factor
