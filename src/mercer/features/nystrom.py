"""Nyström features: coordinates of φ(x), projected onto the span of the landmarks' φ(z).

K_ZZ = UΛU'    features Λ^(−½) U' (k(z_1, x), …, k(z_m, x))

Their inner products are k exactly where one of the samples is a landmark, and k(x, x) never falls below ‖features‖².
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Floats, Samples, n_samples, take
from mercer.data.chunks import Chunk
from mercer.features.feature_map import FeatureMap, eigenpairs_of, n_above_rounding
from mercer.gram.landmarks import draw, leverage_scores
from mercer.parameters import integer, one_of, positive, store


class Nystrom(FeatureMap):
    """Features of any kernel of vectors from landmarks among the samples.

    Parameters
    ----------
    kernel : Kernel or str, default="rbf"
        Any kernel of vectors that is positive definite.
    n_components : int, default=100
        The number of landmarks, and at most of features; all samples, if there are fewer.
    landmarks : {"uniform", "leverage"}, default="uniform"
        How they are drawn: all samples alike, or those more often that others do not represent (ridge leverage scores).
    lam : float, default=1e-3
        Of "leverage": the ridge of the least squares whose scores are taken, for each sample.
    random_state : int or Generator, default=0
        What they are drawn by.

    Attributes
    ----------
    kernel_ : Kernel
        With its numbers.
    landmarks_ : array or CSR matrix
        The landmarks.
    indices_ : array of integers
        Their rows in the samples.
    eigenvalues_ : array
        Of the landmarks' kernel matrix, one for each feature, in descending order.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.features import Nystrom
    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> few, many = (Nystrom(Gaussian(gamma=0.2), n_components=n).fit(X) for n in (20, 100))
    >>> many.error(X) < 0.1 * few.error(X)
    True
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        n_components: int = 100,
        landmarks: str = "uniform",
        lam: float = 1e-3,
        random_state: Any = 0,
    ) -> None:
        store(self, locals())

    def _prepare(self, X: Samples) -> None:
        m = integer("n_components", self.n_components, 1, "the number of landmarks")
        one_of("landmarks", self.landmarks, ("uniform", "leverage"))
        n, rng = n_samples(X), np.random.default_rng(self.random_state)
        everything = [Chunk(X, np.zeros((n, 0)), np.ones(n))]
        found = draw(everything, m, rng)
        if self.landmarks == "leverage":
            scores = leverage_scores(self.kernel_, found.X, n * positive("lam", self.lam), float(n))
            found = draw(everything, m, rng, scores)
        values, vectors = eigenpairs_of(self.kernel_(found.X), self.kernel_, "the landmarks")
        kept = max(1, n_above_rounding(values))
        self.indices_, self.landmarks_ = found.index, take(X, found.index)
        self.eigenvalues_ = values[:kept].copy()
        with np.errstate(divide="ignore"):
            self._map = vectors[:, :kept] / np.sqrt(self.eigenvalues_) if values[0] > 0 else np.zeros((len(values), 1))

    def _features(self, X: Samples) -> Floats:
        return np.asarray(self.kernel_(X, self.landmarks_) @ self._map)

    def _width(self) -> int:
        return len(self.eigenvalues_)
