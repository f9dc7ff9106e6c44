"""Kernels changed by a function of each sample: normalised, multiplied by f(x)f(z), or taken of φ(x) and φ(z)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer import parameters
from mercer.arrays import Floats, n_samples
from mercer.kernels import composite_recipes
from mercer.kernels.composite import Composite, inside
from mercer.kernels.kernel import DOMAINS_OF_FUNCTIONS, Answer, Domain, Kernel, OfSamples, Slope
from mercer.kernels.matrices import as_matrix, call, name_of, numbers_of
from mercer.kernels.recipe import Recipe
from mercer.kernels.terms import Term, Terms, multiplied


class Normalised(Composite):
    """k(x, z) / √(k(x, x) k(z, z)), for kernels that are positive on the diagonal.

    Parameters
    ----------
    kernel : Kernel
        k.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear().normalised()([[3.0, 4.0]], [[3.0, 0.0]])  # the cosine
    array([[0.6]])
    """

    unit_diagonal: Answer = "yes"

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._check()

    def _values(self, X: Any, Z: Any) -> Floats:
        rows = self._lengths(X)
        columns = rows if Z is X else self._lengths(Z)
        out = self.kernel._values(X, Z)
        with np.errstate(invalid="ignore"):
            out /= rows[:, None]
            out /= columns
        return out

    @property
    def n_factors(self) -> int:
        return 2 * self.kernel.n_factors  # k(x, z), and the roots of k(x, x) and k(z, z)

    def diag(self, X: Any) -> Floats:
        return np.ones_like(self._lengths(X))

    def _gradient(self, X: Any, Z: Any, weights: Floats) -> Floats:
        rows, columns = self._lengths(X), self._lengths(Z)
        scaled = weights / rows[:, None] / columns
        along = (scaled * self.kernel._values(X, Z)).sum(axis=1)
        return self.kernel._gradient(X, Z, scaled) - self.kernel._diagonal_gradient(X, along / (2 * rows**2))

    def _slopes(self, X: Any, Z: Any) -> Iterator[Slope]:
        rows, columns, values = self._lengths(X), self._lengths(Z), self._values(X, Z)
        by_rows = self.kernel._diagonal_slopes(X)
        by_columns = by_rows if Z is X else self.kernel._diagonal_slopes(Z)
        for name, place, slope in self.kernel._slopes(X, Z):
            left, right = by_rows[name, place] / rows**2, by_columns[name, place] / columns**2
            yield (
                f"kernel__{name}",
                place,
                slope / rows[:, None] / columns - values * (left[:, None] + right) / 2,
            )

    def _lengths(self, X: Any) -> Floats:
        diagonal = self.kernel.diag(X)
        bad = np.flatnonzero(~(diagonal > 0))
        if len(bad):
            raise ValueError(
                f"{self.kernel!r} cannot be normalised: k(x, x) = {diagonal[bad[0]]:g} for sample {bad[0]}, but it "
                "must be > 0; leave such samples out, or add a constant to the kernel"
            )
        return np.sqrt(diagonal)

    def recipe(self) -> Recipe | None:
        return composite_recipes.unit_diagonal(self.kernel.recipe())

    def terms(self) -> Terms | None:
        # Where k(x, x) is a number, it divides all terms.
        own = self.kernel.terms()
        if own is None or not all(term.of_differences for term in own):
            return None
        return multiplied((Term((1.0 / sum(term.polynomial[0] for term in own),)),), own)

    @property
    def lipschitz(self) -> float | None:
        return self.kernel.lipschitz if self.kernel.unit_diagonal == "yes" else None

    def _text(self) -> str:
        return f"{inside(self.kernel)}.normalised()"


class _ThroughFunction(Composite):
    """A kernel behind a user's function: all but positive definiteness depends on what that function does."""

    kernel: Kernel
    _no_gradient = "the derivative of the function inside is not known"

    @property
    def positive_definite(self) -> Answer:
        return super()._follows("positive_definite")

    def _follows(self, statement: str) -> Answer:
        return "depends" if super()._follows(statement) != "unknown" else "unknown"


class Weighted(_ThroughFunction):
    """f(x) k(x, z) f(z).

    Parameters
    ----------
    kernel : Kernel
        k.
    function : callable
        Maps n samples to n finite numbers, each from its own sample alone.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> kernel = Gaussian(gamma=1.0).scaled_by(lambda X: X[:, 0])
    >>> kernel([[2.0]], [[2.0], [3.0]]).round(4)  # 2·2·1, 2·3·exp(−1)
    array([[4.    , 2.2073]])
    """

    unit_diagonal: Answer = "depends"

    def __init__(self, kernel: Kernel, function: OfSamples) -> None:
        self.kernel = kernel
        self.function = function
        self._check()

    def _check(self) -> None:
        super()._check()
        parameters.function("function", self.function)

    def _values(self, X: Any, Z: Any) -> Floats:
        rows = numbers_of(self.function, X)
        columns = rows if Z is X else numbers_of(self.function, Z)
        out = self.kernel._values(X, Z)
        with np.errstate(over="ignore", invalid="ignore"):
            out *= rows[:, None]
            out *= columns
        return out

    def diag(self, X: Any) -> Floats:
        X = self._samples(X)
        with np.errstate(over="ignore", invalid="ignore"):
            return self.kernel.diag(X) * in_row_blocks(lambda rows: numbers_of(self.function, rows), X) ** 2

    def _slopes(self, X: Any, Z: Any) -> Iterator[Slope]:
        outer = numbers_of(self.function, X)[:, None] * numbers_of(self.function, Z)
        for name, place, slope in self.kernel._slopes(X, Z):
            yield f"kernel__{name}", place, slope * outer

    def _text(self) -> str:
        return f"{inside(self.kernel)}.scaled_by({name_of(self.function)})"


class PulledBack(_ThroughFunction):
    """k(φ(x), φ(z)).

    Parameters
    ----------
    kernel : Kernel
        Compares what φ makes of the samples.
    feature_map : callable
        Maps n samples to n rows, or n strings, that ``kernel`` compares; each from its own sample alone.
    accepts : "vectors" or "sequences"
        What a sample is before φ.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian
    >>> Gaussian(gamma=1.0).of(np.log)([[1.0]], [[np.e]]).round(4)  # of the logarithms
    array([[0.3679]])
    """

    accepts: Domain = "vectors"

    def __init__(self, kernel: Kernel, feature_map: OfSamples, accepts: Domain = "vectors") -> None:
        self.kernel = kernel
        self.feature_map = feature_map
        self.accepts = accepts
        self._check()

    def _check(self) -> None:
        super()._check()
        parameters.function("feature_map", self.feature_map)
        parameters.one_of("accepts", self.accepts, DOMAINS_OF_FUNCTIONS)

    def _samples(self, X: Any) -> Any:
        self._check()
        return as_matrix(X) if self.accepts == "vectors" else X

    def bind(self, X: Any, sample_weight: ArrayLike | None = None) -> Kernel:
        self._check()
        if self.kernel.bound:
            return self
        bound = self.kernel.bind(self._features(self._samples(X)), sample_weight)
        return type(self)(bound, self.feature_map, self.accepts)

    def _values(self, X: Any, Z: Any) -> Floats:
        features = self._features(X)
        return self.kernel._values(features, features if Z is X else self._features(Z))

    def diag(self, X: Any) -> Floats:
        return in_row_blocks(lambda rows: self.kernel.diag(self._features(rows)), self._samples(X))

    def _slopes(self, X: Any, Z: Any) -> Iterator[Slope]:
        for name, place, slope in self.kernel._slopes(self._features(X), self._features(Z)):
            yield f"kernel__{name}", place, slope

    def _features(self, X: Any) -> Any:
        return features_of(self.feature_map, X, self.kernel._samples)

    @property
    def unit_diagonal(self) -> Answer:
        return "yes" if self.kernel.unit_diagonal == "yes" else "depends"

    def _text(self) -> str:
        return f"{inside(self.kernel)}.of({name_of(self.feature_map)})"


def features_of(feature_map: OfSamples, X: Any, checked: OfSamples) -> Any:
    """φ(X) in the form the kernel takes, one row per sample."""
    features = checked(call(feature_map, X))
    if n_samples(features) != n_samples(X):
        raise ValueError(
            f"the feature map {name_of(feature_map)} made {n_samples(features)} rows of {n_samples(X)} samples; "
            "it must make one of each"
        )
    return features


def in_row_blocks(function: Callable[[Any], Floats], X: Any, step: int = 1024) -> Floats:
    """One number per sample, from `step` samples at a time, so that their features need little memory."""
    n = n_samples(X)
    out = np.empty(n)
    for start in range(0, n, step):
        out[start : start + step] = function(X[start : start + step])
    return out
