"""The power series of a Gaussian kernel, exp(−γ‖x − z‖²) = e^(−γ‖x‖²) e^(−γ‖z‖²) Σ_j (2γ⟨x, z⟩)^j/j!, cut off.

e^(−γ‖x‖²) √((2γ)^|a|/a!) x^a  for all exponents |a| below n_terms

With one feature these are the first terms of the series; with more, those of degree j are its monomials (Cotter, Keshet
and Srebro 2011).
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from mercer.arrays import Floats, Samples
from mercer.features.feature_map import FeatureMap
from mercer.features.random_fourier import gaussian_of
from mercer.parameters import integer, store

# Terms of one feature unless told, and the most columns: by default as many degrees as stay below the first number.
_TERMS, _COLUMNS, _MOST_COLUMNS = 20, 1000, 10**6


class GaussianSeries(FeatureMap):
    """The first terms of the power series of a Gaussian kernel; `error(X)` says what the others add up to.

    It is for samples near the origin of few features. Elsewhere use RandomFourier or Nystrom.

    Parameters
    ----------
    kernel : Kernel or str, default="rbf"
        A Gaussian kernel, or a multiple of one.
    n_terms : int, optional
        Terms of the series: all monomials of a smaller degree. By default 20 for one feature, and for more as many as
        make at most 1,000 columns.

    Attributes
    ----------
    kernel_ : Kernel
        With its numbers.
    n_terms_ : int
        The terms that were made.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from mercer.features import GaussianSeries
    >>> from mercer.kernels import Gaussian
    >>> X = [[-1.0], [0.0], [1.5]]
    >>> GaussianSeries(Gaussian(gamma=0.5), n_terms=25).fit(X).error(X) < 1e-12
    True
    """

    _takes_sparse = False

    def __init__(self, kernel: Any = "rbf", n_terms: int | None = None) -> None:
        store(self, locals())

    def _prepare(self, X: Samples) -> None:
        self._scale, self._gamma, factor = gaussian_of(self.kernel_)
        if factor is not None:
            raise ValueError(f"{self.kernel_!r} has a matrix; use RandomFourier or Nystrom")
        d = X.shape[1]
        if self.n_terms is None:
            self.n_terms_ = next(n for n in itertools.count(1) if math.comb(d + n, d) > _COLUMNS or n == _TERMS)
        else:
            self.n_terms_ = integer("n_terms", self.n_terms, 1, "the number of terms")
        count = math.comb(d + self.n_terms_ - 1, d)
        if count > _MOST_COLUMNS:
            raise ValueError(f"{count} monomials of {d} features are too many; lower n_terms, or use RandomFourier")

    def _features(self, X: Floats) -> Floats:
        """Degree after degree: x^a of degree j is x_i times one of degree j − 1 whose first factor is no later."""
        d = X.shape[1]
        Z = math.sqrt(2.0 * self._gamma) * X
        # Columns of the last degree, with how often their first factor occurs in them, grouped by that factor.
        first = math.sqrt(self._scale) * np.exp(-self._gamma * np.sum(X**2, axis=1))[:, None]
        out = [first]
        last: list[list[tuple[Floats, int]]] = [[(first, 0)] if i == d - 1 else [] for i in range(d)]
        for _ in range(1, self.n_terms_):
            fresh: list[list[tuple[Floats, int]]] = []
            for i in range(d):
                made = []
                for k in range(i, d):
                    for column, times in last[k]:
                        count = times + 1 if k == i and times else 1
                        made.append((column * Z[:, [i]] / math.sqrt(count), count))
                fresh.append(made)
            last = fresh
            out += [column for made in last for column, _ in made]
        return np.concatenate(out, axis=1)

    def _width(self) -> int:
        return math.comb(self.n_features_in_ + self.n_terms_ - 1, self.n_features_in_)
