"""Composite kernels: their base class, normalised kernels, f(x)k(x, z)f(z) and k(φ(x), φ(z))."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.kernels import recipe as recipes
from mercer.kernels import terms
from mercer.kernels.kernel import FUNCTION_DOMAINS, Answer, Domain, Kernel, SampleFunction, Slope
from mercer.kernels.recipe import Recipe
from mercer.kernels.terms import Terms
from mercer.runtime import parameters
from mercer.samples.arrays import Floats, Indices, Samples, host, n_samples, rows_between
from mercer.samples.matrices import as_matrix, call, call_for_numbers, function_name

# Operator precedences: a part with a lower precedence than the surrounding expression is written in brackets.
SUM, PRODUCT, POWER, ATOM = range(4)
# Number of samples whose features are computed at a time.
_BLOCK_ROWS = 1024


class Composite(Kernel):
    """Base class of kernels made of other kernels, the parts. By default it has a property if all parts have it."""

    _precedence = ATOM
    _part_names: tuple[str, ...] = ("kernel",)
    # Functions that compute the recipe and the terms from those of the parts and, as last argument, from the parameter
    # `_number` of this kernel, if it has one.
    _rules: tuple[Callable[..., Recipe | None] | None, Callable[..., Terms | None] | None] = (None, None)
    _number: str | None = None

    @property
    def parts(self) -> dict[str, Kernel]:
        """Kernels that this kernel is made of, by parameter name."""
        return {name: getattr(self, name) for name in self._part_names}

    # True if `combined` computes the values from those of the parts alone.
    combines = False

    def combined(self, parts: list[list[Any]]) -> list[Any]:
        """Compute k(x, z), k(x, x) and k(z, z) from these three values of each part, which may be overwritten."""
        raise NotImplementedError

    @property
    def part_columns(self) -> Indices | None:
        """Columns of the samples that the parts compare; None for all columns."""
        return None

    def _check(self) -> None:
        for name, part in self.parts.items():
            if not isinstance(part, Kernel):
                raise TypeError(f"{name}={part!r} of {type(self).__name__} must be a kernel object, such as Gaussian()")
            if part.accepts == "gram":
                raise TypeError(
                    f"{type(part).__name__} stands for a matrix that is given later, so it cannot be combined: "
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
        return self._with_parts({name: part.bind(X, sample_weight) for name, part in self.parts.items()})

    def _with_parts(self, parts: dict[str, Kernel]) -> Kernel:
        """Return a copy with these parts; self if it has them already."""
        if all(parts[name] is part for name, part in self.parts.items()):
            return self
        return type(self)(**{**self.get_params(deep=False), **parts})

    @property
    def compares(self) -> Domain:
        return "vectors" if any(part.compares == "vectors" for part in self.parts.values()) else self.accepts

    def n_terms(self, X: Samples) -> int:
        return max(part.n_terms(X) for part in self.parts.values())

    def majorant(self) -> Kernel:
        return self._with_parts({name: part.majorant() for name, part in self.parts.items()})

    def recipe(self) -> Recipe | None:
        rule = self._rules[0]
        return None if rule is None else rule(*(part.recipe() for part in self.parts.values()), *self._rule_arguments())

    def terms(self, d: int) -> Terms | None:
        rule = self._rules[1]
        return None if rule is None else rule(*(part.terms(d) for part in self.parts.values()), *self._rule_arguments())

    def _rule_arguments(self) -> list[float]:
        """Return the last argument of the rules, the parameter `_number`, if this kernel has one."""
        return [] if self._number is None else [getattr(self, self._number)]

    def _all_parts_have(self, *statements: str) -> bool:
        """Return whether every part answers "yes" to each of the statements."""
        return all(getattr(part, statement) == "yes" for part in self.parts.values() for statement in statements)

    def _answer_from_parts(self, statement: str) -> Answer:
        """Return "yes" if all parts answer "yes", "depends" if each answers one of the two, otherwise "unknown"."""
        answers = {getattr(part, statement) for part in self.parts.values()}
        if answers == {"yes"}:
            return "yes"
        return "depends" if answers <= {"yes", "depends"} else "unknown"

    @property
    def positive_definite(self) -> Answer:
        return self._answer_from_parts("positive_definite")

    @property
    def strictly_positive_definite(self) -> Answer:
        return self._answer_from_parts("strictly_positive_definite")

    @property
    def universal(self) -> Answer:
        return self._answer_from_parts("universal")

    @property
    def differentiable(self) -> Answer:
        return self._answer_from_parts("differentiable")

    @property
    def positive_values(self) -> Answer:
        return self._answer_from_parts("positive_values")

    def _slopes_of(self, part_name: str, slopes: Iterator[Slope], factor: Floats | float = 1.0) -> Iterator[Slope]:
        """Yield the derivatives by a part's parameters, times a factor, under the parameter names of this kernel."""
        for name, entry, slope in slopes:
            yield f"{part_name}__{name}", entry, slope * factor

    def _text(self) -> str:
        raise NotImplementedError

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return self._text()


def in_brackets(kernel: Kernel, precedence: int = ATOM) -> str:
    """Return the repr of a part, in brackets if it binds less tightly than `precedence`, the expression around it."""
    own_precedence = kernel._precedence if isinstance(kernel, Composite) else ATOM
    return f"({kernel!r})" if own_precedence < precedence else repr(kernel)


@dataclass(eq=False, repr=False)
class Normalised(Composite):
    """Normalised kernel k(x, z) / √(k(x, x) k(z, z)), for kernels that are positive on the diagonal.

    Parameters
    ----------
    kernel : Kernel
        Kernel k.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear().normalised()([[3.0, 4.0]], [[3.0, 0.0]])  # the cosine
    array([[0.6]])
    """

    kernel: Kernel

    _rules = recipes.recipe_of_normalised, terms.terms_of_normalised
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
        """Compute k(x, z), k(x, x) and k(z, z) from these three values of each part."""
        values, left, right = parts[0]
        if not bool((left > 0).all()) or not bool((right > 0).all()):
            raise ValueError(
                f"{self.kernel!r} cannot be normalised: k(x, x) must be > 0 for every sample; drop the other samples, "
                "or add a constant to the kernel"
            )
        values = values / (left[:, None] if values.ndim == 2 else left) ** 0.5 / right**0.5
        return [values, left / left, right / right]

    @property
    def n_factors(self) -> int:
        return 2 * self.kernel.n_factors  # k(x, z), and the roots of k(x, x) and k(z, z)

    def majorant(self) -> Kernel:
        """Return a kernel M such that √(M(x, x) M(z, z)) bounds |k(x, z)| and all intermediate results."""
        # With the majorant m of k, the bound is √(m(x, x) m(z, z)) divided by the roots of k(x, x) and k(z, z), times
        # m(x, x)/k(x, x) and m(z, z)/k(z, z) for the relative errors of the two roots.
        part = self.kernel
        if part.positive_definite == "yes":
            return self
        return (part.majorant() ** 3).scaled_by(lambda X: part.diag(X) ** -1.5)

    def _diag(self, X: Samples) -> Floats:
        return np.ones_like(self._lengths(X))

    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        """Compute Σ_j weights_ij ∂k(x_i, z_j)/∂x_i."""
        rows, columns = self._lengths(X), self._lengths(Z)
        scaled = weights / rows[:, None] / columns
        projections = (scaled * self.kernel._values(X, Z)).sum(axis=1)
        return self.kernel._gradient(X, Z, scaled) - self.kernel._diagonal_gradient(X, projections / (2 * rows**2))

    def _slopes(self, X: Samples, Z: Samples) -> Iterator[Slope]:
        """Yield the derivative of a block of K by each real-valued parameter."""
        rows, columns, values = self._lengths(X), self._lengths(Z), self._values(X, Z)
        by_rows = self.kernel._diagonal_slopes(X)
        by_columns = by_rows if Z is X else self.kernel._diagonal_slopes(Z)
        for name, entry, slope in self.kernel._slopes(X, Z):
            left, right = by_rows[name, entry] / rows**2, by_columns[name, entry] / columns**2
            yield (
                f"kernel__{name}",
                entry,
                slope / rows[:, None] / columns - values * (left[:, None] + right) / 2,
            )

    def _lengths(self, X: Samples) -> Floats:
        """Return √k(x, x) of every sample; raise ValueError if one of them is not positive."""
        diagonal = self.kernel.diag(X)
        bad = np.flatnonzero(~(diagonal > 0))
        if len(bad):
            raise ValueError(
                f"{self.kernel!r} cannot be normalised: k(x, x) = {diagonal[bad[0]]:g} for sample {bad[0]}, but it "
                "must be > 0; drop such samples, or add a constant to the kernel"
            )
        return np.sqrt(diagonal)

    @property
    def lipschitz(self) -> float | None:
        return self.kernel.lipschitz if self.kernel.unit_diagonal == "yes" else None

    def _text(self) -> str:
        return f"{in_brackets(self.kernel)}.normalised()"


class _FunctionComposite(Composite):
    """Composite with a user's function, on which all properties except positive definiteness depend."""

    kernel: Kernel
    _no_gradient = "the derivative of the function inside is not known"

    @property
    def positive_definite(self) -> Answer:
        return super()._answer_from_parts("positive_definite")

    def _answer_from_parts(self, statement: str) -> Answer:
        return "depends" if super()._answer_from_parts(statement) != "unknown" else "unknown"


@dataclass(eq=False, repr=False)
class Weighted(_FunctionComposite):
    """Weighted kernel f(x) k(x, z) f(z).

    Parameters
    ----------
    kernel : Kernel
        Kernel k.
    function : callable
        Function f, which maps n samples to n finite numbers, each of which depends on its sample only.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> kernel = Gaussian(gamma=1.0).scaled_by(lambda X: X[:, 0])
    >>> kernel([[2.0]], [[2.0], [3.0]]).round(4)  # 2·2·1, 2·3·exp(−1)
    array([[4.    , 2.2073]])
    """

    kernel: Kernel
    function: SampleFunction

    unit_diagonal = "depends"

    def _check(self) -> None:
        super()._check()
        parameters.function("function", self.function)

    def _values(self, X: Samples, Z: Samples) -> Floats:
        rows = call_for_numbers(self.function, X)
        columns = rows if Z is X else call_for_numbers(self.function, Z)
        out = self.kernel._values(X, Z)
        with np.errstate(over="ignore", invalid="ignore"):
            out *= rows[:, None]
            out *= columns
        return out

    def _diag(self, X: Samples) -> Floats:
        X = self._samples(X)
        with np.errstate(over="ignore", invalid="ignore"):
            return self.kernel.diag(X) * in_row_blocks(lambda rows: call_for_numbers(self.function, rows), X) ** 2

    def _slopes(self, X: Samples, Z: Samples) -> Iterator[Slope]:
        """Yield the derivative of a block of K by each real-valued parameter."""
        outer = call_for_numbers(self.function, X)[:, None] * call_for_numbers(self.function, Z)
        return self._slopes_of("kernel", self.kernel._slopes(X, Z), outer)

    def _text(self) -> str:
        return f"{in_brackets(self.kernel)}.scaled_by({function_name(self.function)})"


@dataclass(eq=False, repr=False)
class PulledBack(_FunctionComposite):
    """Kernel k(φ(x), φ(z)) of transformed samples.

    Parameters
    ----------
    kernel : Kernel
        Kernel k of the transformed samples.
    feature_map : callable
        Function φ, which maps n samples to n rows or strings, each of which depends on its sample only.
    accepts : {"vectors", "sequences"}, default="vectors"
        Kind of samples that φ takes.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian
    >>> Gaussian(gamma=1.0).of(np.log)([[1.0]], [[np.e]]).round(4)  # of the logarithms
    array([[0.3679]])
    """

    kernel: Kernel
    feature_map: SampleFunction
    accepts: Domain = "vectors"

    def _check(self) -> None:
        super()._check()
        parameters.function("feature_map", self.feature_map)
        parameters.one_of("accepts", self.accepts, FUNCTION_DOMAINS)

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
        return count_feature_terms(self._features, X, self.kernel)

    def _slopes(self, X: Samples, Z: Samples) -> Iterator[Slope]:
        return self._slopes_of("kernel", self.kernel._slopes(self._features(X), self._features(Z)))

    def _features(self, X: Samples) -> Samples:
        return map_samples(self.feature_map, X, self.kernel._samples)

    @property
    def unit_diagonal(self) -> Answer:
        return "yes" if self.kernel.unit_diagonal == "yes" else "depends"

    @property
    def positive_values(self) -> Answer:
        return "yes" if self.kernel.positive_values == "yes" else "depends"

    def _text(self) -> str:
        return f"{in_brackets(self.kernel)}.of({function_name(self.feature_map)})"


def map_samples(feature_map: SampleFunction, X: Samples, convert: SampleFunction) -> Samples:
    """Compute φ(X), one row per sample, and convert it with `convert` to the form that a kernel takes."""
    features = convert(call(feature_map, X))
    if n_samples(features) != n_samples(X):
        raise ValueError(
            f"the feature map {function_name(feature_map)} returned {n_samples(features)} rows for {n_samples(X)} "
            "samples; it must return one row per sample"
        )
    return features


def count_feature_terms(features: SampleFunction, X: Samples, kernel: Kernel) -> int:
    """Return `Kernel.n_terms` for the features of the samples, which are computed block by block."""
    blocks = (host(rows_between(X, slice(start, start + _BLOCK_ROWS))) for start in range(0, n_samples(X), _BLOCK_ROWS))
    return max((kernel.n_terms(features(block)) for block in blocks), default=0)


def in_row_blocks(function: Callable[[Samples], Floats], X: Samples, step: int = _BLOCK_ROWS) -> Floats:
    """Compute one number per sample from blocks of `step` samples, so that their features need little memory."""
    n = n_samples(X)
    out = np.empty(n)
    for start in range(0, n, step):
        out[start : start + step] = function(X[start : start + step])
    return out
