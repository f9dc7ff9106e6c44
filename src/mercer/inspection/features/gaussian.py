"""Features of a Gaussian kernel s·exp(−γ‖x − z‖²): random Fourier features, and its power series.

The kernel is the mean of s·cos ω'(x − z) over frequencies ω from N(0, 2γI), so that m frequencies give the features

    √(s/m) (cos ω'x, sin ω'x)

If the number of features is odd, the last one is √(2s/m) cos(ω'x + φ), with a random phase φ.

The kernel is also s·e^(−γ‖x‖²) e^(−γ‖z‖²) Σ_j (2γ⟨x, z⟩)^j/j!. The truncated series gives the features

    √s e^(−γ‖x‖²) √((2γ)^|a|/a!) x^a  for all exponents |a| below n_terms

For one-dimensional samples these are the first terms of the series; in general, term j has all monomials of degree j
(Cotter, Keshet and Srebro 2011).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from mercer.estimators.fitting.pipeline.state import Array, Count, Number, Unsaved, expect, fitted, is_count
from mercer.inspection.features.feature_map import MOST_COLUMNS, FeatureMap
from mercer.kernels import Kernel
from mercer.kernels.names import KernelLike
from mercer.runtime.parameters import Seed, integer
from mercer.samples.arrays import Floats, Samples


@dataclass(eq=False, repr=False)
class RandomFourier(FeatureMap):
    """Approximate a Gaussian kernel by random Fourier features (Rahimi and Recht 2007).

    Frequencies are orthogonal by default (Yu et al. 2016). The error, `error(X)`, falls like 1/√n_components.

    Parameters
    ----------
    kernel : Kernel or str, default="rbf"
        Gaussian kernel, also with a matrix M or a factor.
    n_components : int, default=200
        Number of features: a cosine and a sine for each frequency. If it is odd, the last frequency has a cosine with
        a random phase only.
    orthogonal : bool, default=True
        Whether to draw frequencies in orthogonal directions, which makes the error smaller.
    random_state : int or Generator, default=0
        Seed for drawing the frequencies.

    Attributes
    ----------
    kernel_ : Kernel
        Kernel with all parameters as numbers.
    frequencies_ : array of shape (ceil(n_components / 2), n_features)
        Frequencies ω.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : array of str
        Names of the features of X, if it has names.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inspection.features import RandomFourier
    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> features = RandomFourier(Gaussian(gamma=0.2), n_components=2000).fit(X)
    >>> features.transform(X).shape, features.error(X) < 0.1
    ((50, 2000), True)
    """

    _FITTED = fitted(
        frequencies_=Array(None, "n_features_in_", required=True),
        _phase=Number(or_none=True, required=True),
        _scale=Unsaved(),
    )

    kernel: KernelLike = "rbf"
    n_components: int = 200
    orthogonal: bool = True
    random_state: Seed = 0

    def _check_fitted(self) -> None:
        super()._check_fitted()
        expect(is_count(self.n_components), "n_components must be a count")
        n, n_components = len(self.frequencies_), int(self.n_components)
        expect((n_components + 1) // 2 == n > 0, f"{self.n_components!r:.40} components do not have {n} frequencies")
        has_phase = self._phase is not None
        expect(
            (n_components % 2 == 1) == has_phase,
            "an odd number of components needs a phase, and an even number has none",
        )

    def _complete_fitted(self) -> None:
        self._scale = gaussian_of(self.kernel_)[0]

    def _prepare(self, X: Samples) -> None:
        """Draw the frequencies, and the phase for an odd number of features."""
        integer("n_components", self.n_components, 1, "the number of features")
        self._scale, gamma, factor = gaussian_of(self.kernel_)
        width = X.shape[1] if factor is None else factor.shape[1]
        rng = np.random.default_rng(self.random_state)
        frequencies = rng.normal(size=((self.n_components + 1) // 2, width))
        if self.orthogonal:
            frequencies = _draw_orthogonal(rng, frequencies)
        frequencies *= math.sqrt(2 * gamma)
        self._phase = rng.uniform(0.0, 2.0 * math.pi) if self.n_components % 2 else None
        self.frequencies_ = frequencies if factor is None else frequencies @ factor.T

    def _width(self) -> int:
        return int(self.n_components)

    def _features(self, X: Samples) -> Floats:
        """Compute the cosines and sines of the samples."""
        angles = X @ self.frequencies_.T
        size = math.sqrt(self._scale / len(self.frequencies_))
        if self._phase is None:
            return np.asarray(size * np.concatenate([np.cos(angles), np.sin(angles)], axis=1))
        paired, last = angles[:, :-1], math.sqrt(2.0) * np.cos(angles[:, -1:] + self._phase)
        return np.asarray(size * np.concatenate([np.cos(paired), np.sin(paired), last], axis=1))


def _draw_orthogonal(rng: np.random.Generator, frequencies: Floats) -> Floats:
    """Draw directions in blocks of orthogonal ones, one block per n_features; keep the frequencies' lengths."""
    m, width = frequencies.shape
    lengths = np.linalg.norm(frequencies, axis=1)
    blocks = [linalg.qr(rng.normal(size=(width, width)))[0].T for _ in range(-(-m // width))]
    return np.asarray(np.concatenate(blocks)[:m] * lengths[:, None])


def gaussian_of(kernel: Kernel) -> tuple[float, float, Floats | None]:
    """Return the scale, γ and the linear factor of a Gaussian kernel; raise ValueError for another kernel."""
    recipe = kernel.recipe()
    if recipe is None or recipe.ending != "gaussian" or recipe.constant:
        raise ValueError(
            f"{kernel!r} is neither a Gaussian kernel nor a multiple of one; `Nystrom` takes any kernel of vectors"
        )
    return recipe.scale, recipe.numbers[0], recipe.factor


@dataclass(eq=False, repr=False)
class GaussianSeries(FeatureMap):
    """Approximate a Gaussian kernel by the first terms of its power series; `error(X)` measures the error.

    It suits samples with few features, near the origin. For others use RandomFourier or Nystrom.

    Parameters
    ----------
    kernel : Kernel or str, default="rbf"
        Gaussian kernel, or a multiple of one.
    n_terms : int, optional
        Number of terms of the series, which have all monomials of a smaller degree. By default 20, or fewer so that
        there are at most 1,000 columns.

    Attributes
    ----------
    kernel_ : Kernel
        Kernel with all parameters as numbers.
    n_terms_ : int
        Number of terms.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : array of str
        Names of the features of X, if it has names.

    Examples
    --------
    >>> from mercer.inspection.features import GaussianSeries
    >>> from mercer.kernels import Gaussian
    >>> X = [[-1.0], [0.0], [1.5]]
    >>> GaussianSeries(Gaussian(gamma=0.5), n_terms=25).fit(X).error(X) < 1e-12
    True
    """

    _FITTED = fitted(n_terms_=Count(required=True), _scale=Unsaved(), _gamma=Unsaved())

    kernel: KernelLike = "rbf"
    n_terms: int | None = None

    _takes_sparse = False

    def _check_fitted(self) -> None:
        super()._check_fitted()
        self._check_prepared(np.empty((0, self.n_features_in_)))

    def _prepare(self, X: Samples) -> None:
        """Store the parameters of the kernel, and choose the number of terms."""
        self._scale, self._gamma, factor = gaussian_of(self.kernel_)
        if factor is not None:
            raise ValueError(f"{self.kernel_!r} has a matrix M or a factor; use RandomFourier or Nystrom")
        d = X.shape[1]
        if self.n_terms is None:
            self.n_terms_ = next(n for n in itertools.count(1) if math.comb(d + n, d) > 1000 or n == 20)
        else:
            self.n_terms_ = integer("n_terms", self.n_terms, 1, "the number of terms")
        count = math.comb(d + self.n_terms_ - 1, d)
        if count > MOST_COLUMNS:
            raise ValueError(f"{count} monomials of {d} features are too many; lower n_terms, or use RandomFourier")

    def _features(self, X: Floats) -> Floats:
        """Build the monomials by degree: x^a of degree j is x_i times one of degree j − 1 whose factors are ≥ i."""
        d = X.shape[1]
        Z = math.sqrt(2.0 * self._gamma) * X
        # 1. Degree 0: one column, which counts as a monomial of the last feature with multiplicity 0.
        constant = math.sqrt(self._scale) * np.exp(-self._gamma * np.sum(X**2, axis=1))[:, None]
        out = [constant]
        # Monomials of one degree by their first factor i, each with the multiplicity of that factor.
        monomials: list[list[tuple[Floats, int]]] = [[(constant, 0)] if i == d - 1 else [] for i in range(d)]
        # 2. Every further degree from the one before.
        for _ in range(1, self.n_terms_):
            next_monomials: list[list[tuple[Floats, int]]] = []
            for i in range(d):
                columns = []
                for k in range(i, d):
                    for column, multiplicity in monomials[k]:
                        count = multiplicity + 1 if k == i and multiplicity else 1
                        columns.append((column * Z[:, [i]] / math.sqrt(count), count))
                next_monomials.append(columns)
            monomials = next_monomials
            out += [column for columns in monomials for column, _ in columns]
        return np.concatenate(out, axis=1)

    def _width(self) -> int:
        return math.comb(self.n_features_in_ + self.n_terms_ - 1, self.n_features_in_)
