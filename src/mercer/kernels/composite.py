"""Kernels made of kernels: what they share with their parts, and those changed by a function of each sample.

A kernel is normalised, multiplied by f(x)f(z), or taken of φ(x) and φ(z).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.kernels import recipe as recipes
from mercer.kernels import terms
from mercer.kernels.kernel import DOMAINS_OF_FUNCTIONS, Answer, Domain, Kernel, OfSamples, Slope
from mercer.kernels.recipe import Recipe
from mercer.kernels.terms import Terms
from mercer.runtime import parameters
from mercer.samples.arrays import Floats, Indices, Samples, host, n_samples, rows_between
from mercer.samples.matrices import as_matrix, call, name_of, numbers_of

# How tightly an expression binds: a part that binds less tightly than its surroundings is written in brackets.
SUM, PRODUCT, POWER, ATOM = range(4)
# Samples whose features are computed at a time.
_ROWS = 1024


class Composite(Kernel):
    """A kernel made of kernels, its parts. By default it has a property if all parts have it."""

    _binds = ATOM
    _part_names: tuple[str, ...] = ("kernel",)
    # How a recipe is made of those of the parts, and terms of theirs, with its own number, if it has one, as the last.
    _rules: tuple[Callable[..., Recipe | None] | None, Callable[..., Terms | None] | None] = (None, None)
    _number: str | None = None

    @property
    def parts(self) -> dict[str, Kernel]:
        """The kernels it is made of, by parameter name."""
        return {name: getattr(self, name) for name in self._part_names}

    # Whether values follow from those of the parts alone, as `combined` says.
    combines = False

    def combined(self, parts: list[list[Any]]) -> list[Any]:
        """k(x, z), k(x, x) and k(z, z) from those of each part, which it may overwrite: arrays, or an engine's own."""
        raise NotImplementedError

    @property
    def part_columns(self) -> Indices | None:
        """The columns of the samples that the parts compare, where these are not all of them."""
        return None

    def _check(self) -> None:
        for name, part in self.parts.items():
            if not isinstance(part, Kernel):
                raise TypeError(f"{name}={part!r} of {type(self).__name__} must be a kernel object, such as Gaussian()")
            if part.accepts == "gram":
                raise TypeError(
                    f"{type(part).__name__} stands for a matrix that is not known yet, so it cannot be combined: "
                    "combine the matrices before fitting"
                )
        domains = {part.accepts for part in self.parts.values()}
        if len(domains) > 1:
            described = ", ".join(f"{part!r} compares {part.accepts}" for part in self.parts.values())
            raise TypeError(f"kernels on different kinds of samples cannot be combined: {described}")

    @property
    def accepts(self) -> Domain:
        return next(iter(self.parts.values())).accepts

    @property
    def n_factors(self) -> int:
        return max(part.n_factors for part in self.parts.values())

    @property
    def mergeable(self) -> bool:
        return all(part.mergeable for part in self.parts.values())

    def _samples(self, X: Samples) -> Samples:
        self._check()
        for part in self.parts.values():
            X = part._samples(X)
        return X

    @property
    def bound(self) -> bool:
        return all(part.bound for part in self.parts.values())

    def bind(self, X: Samples, sample_weight: ArrayLike | None = None) -> Kernel:
        self._check()
        return self._with({name: part.bind(X, sample_weight) for name, part in self.parts.items()})

    def _with(self, parts: dict[str, Kernel]) -> Kernel:
        """The same of other parts."""
        if all(parts[name] is part for name, part in self.parts.items()):
            return self
        return type(self)(**{**self.get_params(deep=False), **parts})

    @property
    def compares(self) -> Domain:
        return "vectors" if any(part.compares == "vectors" for part in self.parts.values()) else self.accepts

    def n_terms(self, X: Samples) -> int:
        return max(part.n_terms(X) for part in self.parts.values())

    def majorant(self) -> Kernel:
        return self._with({name: part.majorant() for name, part in self.parts.items()})

    def recipe(self) -> Recipe | None:
        rule = self._rules[0]
        return None if rule is None else rule(*(part.recipe() for part in self.parts.values()), *self._own_number())

    def terms(self, d: int) -> Terms | None:
        rule = self._rules[1]
        return None if rule is None else rule(*(part.terms(d) for part in self.parts.values()), *self._own_number())

    def _own_number(self) -> list[float]:
        return [] if self._number is None else [getattr(self, self._number)]

    def _holds(self, *statements: str) -> bool:
        """Whether every part answers "yes" to each of these."""
        return all(getattr(part, statement) == "yes" for part in self.parts.values() for statement in statements)

    def _follows(self, statement: str) -> Answer:
        """Yes if every part says so; "depends" if some say that instead, and no part says anything else."""
        answers = {getattr(part, statement) for part in self.parts.values()}
        if answers == {"yes"}:
            return "yes"
        return "depends" if answers <= {"yes", "depends"} else "unknown"

    @property
    def positive_definite(self) -> Answer:
        return self._follows("positive_definite")

    @property
    def strictly_positive_definite(self) -> Answer:
        return self._follows("strictly_positive_definite")

    @property
    def universal(self) -> Answer:
        return self._follows("universal")

    @property
    def differentiable(self) -> Answer:
        return self._follows("differentiable")

    @property
    def positive_values(self) -> Answer:
        return self._follows("positive_values")

    def _slopes_of(self, side: str, slopes: Iterator[Slope], factor: Floats | float = 1.0) -> Iterator[Slope]:
        """A part's derivatives by its parameters, times a factor, under the names that they have here."""
        for name, place, slope in slopes:
            yield f"{side}__{name}", place, slope * factor

    def _text(self) -> str:
        raise NotImplementedError

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return self._text()


def inside(kernel: Kernel, binds: int = ATOM) -> str:
    """A part's text, in brackets where it binds less tightly than its surroundings."""
    own = kernel._binds if isinstance(kernel, Composite) else ATOM
    return f"({kernel!r})" if own < binds else repr(kernel)


@dataclass(eq=False, repr=False)
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

    kernel: Kernel

    _rules = recipes.unit_diagonal, terms.unit_diagonal
    unit_diagonal = "yes"

    def _values(self, X: Samples, Z: Samples) -> Floats:
        rows = self._lengths(X)
        columns = rows if Z is X else self._lengths(Z)
        out = self.kernel._values(X, Z)
        with np.errstate(invalid="ignore"):
            out /= rows[:, None]
            out /= columns
        return out

    combines = True

    def combined(self, parts: list[list[Any]]) -> list[Any]:
        values, left, right = parts[0]
        if not bool((left > 0).all()) or not bool((right > 0).all()):
            raise ValueError(
                f"{self.kernel!r} cannot be normalised: k(x, x) must be > 0 for every sample; leave other samples out, "
                "or add a constant to the kernel"
            )
        values = values / (left[:, None] if values.ndim == 2 else left) ** 0.5 / right**0.5
        return [values, left / left, right / right]

    @property
    def n_factors(self) -> int:
        return 2 * self.kernel.n_factors  # k(x, z), and the roots of k(x, x) and k(z, z)

    def majorant(self) -> Kernel:
        # M(x, z) over the roots, each of which is as far off as M(x, x) is.
        part = self.kernel
        if part.positive_definite == "yes":
            return self
        return (part.majorant() ** 3).scaled_by(lambda X: part.diag(X) ** -1.5)

    def _diag(self, X: Samples) -> Floats:
        return np.ones_like(self._lengths(X))

    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        rows, columns = self._lengths(X), self._lengths(Z)
        scaled = weights / rows[:, None] / columns
        along = (scaled * self.kernel._values(X, Z)).sum(axis=1)
        return self.kernel._gradient(X, Z, scaled) - self.kernel._diagonal_gradient(X, along / (2 * rows**2))

    def _slopes(self, X: Samples, Z: Samples) -> Iterator[Slope]:
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

    def _lengths(self, X: Samples) -> Floats:
        diagonal = self.kernel.diag(X)
        bad = np.flatnonzero(~(diagonal > 0))
        if len(bad):
            raise ValueError(
                f"{self.kernel!r} cannot be normalised: k(x, x) = {diagonal[bad[0]]:g} for sample {bad[0]}, but it "
                "must be > 0; leave such samples out, or add a constant to the kernel"
            )
        return np.sqrt(diagonal)

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


@dataclass(eq=False, repr=False)
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

    kernel: Kernel
    function: OfSamples

    unit_diagonal = "depends"

    def _check(self) -> None:
        super()._check()
        parameters.function("function", self.function)

    def _values(self, X: Samples, Z: Samples) -> Floats:
        rows = numbers_of(self.function, X)
        columns = rows if Z is X else numbers_of(self.function, Z)
        out = self.kernel._values(X, Z)
        with np.errstate(over="ignore", invalid="ignore"):
            out *= rows[:, None]
            out *= columns
        return out

    def _diag(self, X: Samples) -> Floats:
        X = self._samples(X)
        with np.errstate(over="ignore", invalid="ignore"):
            return self.kernel.diag(X) * in_row_blocks(lambda rows: numbers_of(self.function, rows), X) ** 2

    def _slopes(self, X: Samples, Z: Samples) -> Iterator[Slope]:
        outer = numbers_of(self.function, X)[:, None] * numbers_of(self.function, Z)
        return self._slopes_of("kernel", self.kernel._slopes(X, Z), outer)

    def _text(self) -> str:
        return f"{inside(self.kernel)}.scaled_by({name_of(self.function)})"


@dataclass(eq=False, repr=False)
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

    kernel: Kernel
    feature_map: OfSamples
    accepts: Domain = "vectors"

    def _check(self) -> None:
        super()._check()
        parameters.function("feature_map", self.feature_map)
        parameters.one_of("accepts", self.accepts, DOMAINS_OF_FUNCTIONS)

    def _samples(self, X: Samples) -> Samples:
        self._check()
        return as_matrix(X) if self.accepts == "vectors" else X

    def bind(self, X: Samples, sample_weight: ArrayLike | None = None) -> Kernel:
        self._check()
        if self.kernel.bound:
            return self
        bound = self.kernel.bind(self._features(self._samples(X)), sample_weight)
        return type(self)(bound, self.feature_map, self.accepts)

    def _values(self, X: Samples, Z: Samples) -> Floats:
        features = self._features(X)
        return self.kernel._values(features, features if Z is X else self._features(Z))

    def _diag(self, X: Samples) -> Floats:
        return in_row_blocks(lambda rows: self.kernel.diag(self._features(rows)), self._samples(X))

    @property
    def compares(self) -> Domain:
        return self.kernel.compares

    def n_terms(self, X: Samples) -> int:
        return terms_of_features(self._features, X, self.kernel)

    def _slopes(self, X: Samples, Z: Samples) -> Iterator[Slope]:
        return self._slopes_of("kernel", self.kernel._slopes(self._features(X), self._features(Z)))

    def _features(self, X: Samples) -> Samples:
        return features_of(self.feature_map, X, self.kernel._samples)

    @property
    def unit_diagonal(self) -> Answer:
        return "yes" if self.kernel.unit_diagonal == "yes" else "depends"

    @property
    def positive_values(self) -> Answer:
        return "yes" if self.kernel.positive_values == "yes" else "depends"

    def _text(self) -> str:
        return f"{inside(self.kernel)}.of({name_of(self.feature_map)})"


def features_of(feature_map: OfSamples, X: Samples, checked: OfSamples) -> Samples:
    """φ(X) in the form the kernel takes, one row per sample."""
    features = checked(call(feature_map, X))
    if n_samples(features) != n_samples(X):
        raise ValueError(
            f"the feature map {name_of(feature_map)} made {n_samples(features)} rows of {n_samples(X)} samples; "
            "it must make one of each"
        )
    return features


def terms_of_features(features: OfSamples, X: Samples, kernel: Kernel) -> int:
    """`Kernel.n_terms` of what a feature map makes of the samples, some of them at a time."""
    blocks = (host(rows_between(X, slice(start, start + _ROWS))) for start in range(0, n_samples(X), _ROWS))
    return max((kernel.n_terms(features(block)) for block in blocks), default=0)


def in_row_blocks(function: Callable[[Samples], Floats], X: Samples, step: int = _ROWS) -> Floats:
    """One number per sample, from `step` samples at a time, so that their features need little memory."""
    n = n_samples(X)
    out = np.empty(n)
    for start in range(0, n, step):
        out[start : start + step] = function(X[start : start + step])
    return out
