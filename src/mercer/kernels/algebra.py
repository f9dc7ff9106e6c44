"""Closure rules: sums, products, positive multiples, powers and exponentials of kernels are kernels.

A composite is evaluated block by block, binds its parts, and has a recipe if one exists. It states only properties that
follow from those of its parts; all others are "unknown".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, cast

import numpy as np

from mercer.kernels import recipe as recipes
from mercer.kernels import terms
from mercer.kernels.composite import ATOM, POWER, PRODUCT, SUM, Composite, in_brackets
from mercer.kernels.kernel import Answer, Kernel, Slope
from mercer.kernels.recipe import integer_power
from mercer.runtime.parameters import integer
from mercer.samples.arrays import Floats, Samples


class PointwiseKernel(Composite):
    """Kernel whose value is a function of the values of its parts at the same pair of samples."""

    def of_values(self, values: list[Floats]) -> Floats:
        """Compute k from one block of values per part, arrays or an engine's tensors; may overwrite the first block."""
        raise NotImplementedError

    combines = True

    def combined(self, parts: list[list[Any]]) -> list[Any]:
        return [self.of_values(list(values)) for values in zip(*parts, strict=True)]

    def _partials(self, values: list[Floats]) -> tuple[Floats | float, ...]:
        """Return the derivatives of `of_values` by the values of each part, which are not overwritten."""
        raise NotImplementedError

    def _parameter_slopes(self, values: list[Floats]) -> Iterator[Slope]:
        """Yield the derivatives by this kernel's own parameters, not by those of its parts."""
        return iter(())

    def _blocks(self, X: Samples, Z: Samples) -> list[Floats]:
        """Return a block of values for each part."""
        return [part._values(X, Z) for part in self.parts.values()]

    def _diagonals(self, X: Samples) -> list[Floats]:
        """Return k(x, x) of every sample for each part."""
        return [np.array(part.diag(X), dtype=np.float64) for part in self.parts.values()]

    def _values(self, X: Samples, Z: Samples) -> Floats:
        blocks = self._blocks(X, Z)
        with np.errstate(over="ignore", invalid="ignore"):
            return self.of_values(blocks)

    def _diag(self, X: Samples) -> Floats:
        diagonals = self._diagonals(X)
        with np.errstate(over="ignore", invalid="ignore"):
            return self.of_values(diagonals)

    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        """Compute Σ_j weights_ij ∂k(x_i, z_j)/∂x_i."""
        pairs = zip(self.parts.values(), self._partials(self._blocks(X, Z)), strict=True)
        return np.asarray(np.sum([part._gradient(X, Z, weights * outer) for part, outer in pairs], axis=0))

    def _diagonal_gradient(self, X: Samples, weights: Floats) -> Floats:
        """Compute weights_i · d k(x_i, x_i)/d x_i, the total derivative by both arguments."""
        pairs = zip(self.parts.values(), self._partials(self._diagonals(X)), strict=True)
        return np.asarray(np.sum([part._diagonal_gradient(X, weights * outer) for part, outer in pairs], axis=0))

    def _slopes(self, X: Samples, Z: Samples) -> Iterator[Slope]:
        """Yield the derivative of a block of K by each real-valued parameter."""
        blocks = self._blocks(X, Z)
        for (part_name, part), outer in zip(self.parts.items(), self._partials(blocks), strict=True):
            yield from self._slopes_of(part_name, part._slopes(X, Z), outer)
        yield from self._parameter_slopes(blocks)


@dataclass(eq=False, repr=False)
class UnaryKernel(PointwiseKernel):
    """Function of the values of one kernel."""

    kernel: Kernel


@dataclass(eq=False, repr=False)
class BinaryKernel(PointwiseKernel):
    """Combination of two kernels by an operator with a sign and a precedence."""

    left: Kernel
    right: Kernel

    _part_names = ("left", "right")
    _sign: ClassVar[str]

    def _text(self) -> str:
        return f"{in_brackets(self.left, self._precedence)} {self._sign} {in_brackets(self.right, self._precedence)}"


class Sum(BinaryKernel):
    """Sum k1(x, z) + k2(x, z); its features are those of both kernels.

    Parameters
    ----------
    left : Kernel
        First summand k1.
    right : Kernel
        Second summand k2.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> Gaussian(gamma=0.5) + Linear()
    Gaussian(gamma=0.5) + Linear()
    """

    _precedence, _sign = SUM, "+"
    _rules = recipes.recipe_of_sum, terms.terms_of_sum

    def of_values(self, values: list[Floats]) -> Floats:
        values[0] += values[1]
        return values[0]

    def _partials(self, values: list[Floats]) -> tuple[Floats | float, ...]:
        return 1.0, 1.0

    @property
    def strictly_positive_definite(self) -> Answer:
        are_strict = [part.strictly_positive_definite == "yes" for part in self.parts.values()]
        return "yes" if self._all_parts_have("positive_definite") and any(are_strict) else "unknown"

    @property
    def universal(self) -> Answer:
        # The RKHS of the sum contains those of both kernels; the sum is continuous only if both kernels are.
        parts = self.parts.values()
        all_continuous = all("yes" in (part.universal, part.differentiable) for part in parts)
        any_universal = any(part.universal == "yes" for part in parts)
        return "yes" if any_universal and all_continuous and self._all_parts_have("positive_definite") else "unknown"

    @property
    def unit_diagonal(self) -> Answer:
        return "no" if self._all_parts_have("unit_diagonal") else "unknown"

    @property
    def lipschitz(self) -> float | None:
        return _hypotenuse(self.left, self.right) if self._all_parts_have("positive_definite") else None


class Product(BinaryKernel):
    """Product k1(x, z) · k2(x, z); its features are the products of a feature of k1 and one of k2.

    Parameters
    ----------
    left : Kernel
        First factor k1.
    right : Kernel
        Second factor k2.

    Examples
    --------
    >>> from mercer.kernels import Laplacian, Linear
    >>> Linear() * Laplacian(gamma=0.5)
    Linear() * Laplacian(gamma=0.5)
    """

    _precedence, _sign = PRODUCT, "*"
    _rules = recipes.recipe_of_product, terms.terms_of_product

    def of_values(self, values: list[Floats]) -> Floats:
        values[0] *= values[1]
        return values[0]

    def _partials(self, values: list[Floats]) -> tuple[Floats | float, ...]:
        """Return the derivatives of k by the values of each part."""
        left, right = values
        return right, left

    @property
    def n_factors(self) -> int:
        return sum(part.n_factors for part in self.parts.values())

    @property
    def strictly_positive_definite(self) -> Answer:
        # Schur: A ∘ B is positive definite if A is and B is positive semi-definite with a positive diagonal.
        if not self._all_parts_have("positive_definite"):
            return "unknown"
        for factor, other_factor in ((self.left, self.right), (self.right, self.left)):
            has_positive_diagonal = "yes" in (other_factor.unit_diagonal, other_factor.strictly_positive_definite)
            if factor.strictly_positive_definite == "yes" and has_positive_diagonal:
                return "yes"
        return "unknown"

    @property
    def universal(self) -> Answer:
        return "yes" if self._all_parts_have("positive_definite", "universal") else "unknown"

    @property
    def unit_diagonal(self) -> Answer:
        answers = {self.left.unit_diagonal, self.right.unit_diagonal}
        return "no" if answers == {"yes", "no"} else self._answer_from_parts("unit_diagonal")

    @property
    def lipschitz(self) -> float | None:
        # 1 − ab ≤ (1 − a) + (1 − b) for |a|, |b| ≤ 1.
        bounded_by_one = self._all_parts_have("positive_definite", "unit_diagonal")
        return _hypotenuse(self.left, self.right) if bounded_by_one else None


@dataclass(eq=False, repr=False)
class Scaled(UnaryKernel):
    """Multiple a · k(x, z) with a > 0.

    Parameters
    ----------
    kernel : Kernel
        Kernel k.
    factor : float > 0
        Factor a.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> (3 * Linear())([[1.0]], [[2.0]])
    array([[6.]])
    """

    factor: float

    _precedence, _number = PRODUCT, "factor"
    _rules = recipes.recipe_of_multiple, terms.terms_of_multiple

    def _check(self) -> None:
        super()._check()
        if not isinstance(self.factor, Real) or not 0 < self.factor < math.inf:
            raise ValueError(
                f"factor={self.factor!r}: a multiple a * k is a kernel only for a finite a > 0. A negative a turns "
                "positive eigenvalues into negative ones, and a = 0 leaves nothing to learn from"
            )

    def of_values(self, values: list[Floats]) -> Floats:
        values[0] *= float(self.factor)
        return values[0]

    def _partials(self, values: list[Floats]) -> tuple[Floats | float, ...]:
        return (float(self.factor),)

    def _parameter_slopes(self, values: list[Floats]) -> Iterator[Slope]:
        yield "factor", (), values[0]

    def _answer_from_parts(self, statement: str) -> Answer:
        return cast(Answer, getattr(self.kernel, statement))  # for a multiple, a "no" follows as well

    @property
    def unit_diagonal(self) -> Answer:
        return _if_unchanged(self.kernel.unit_diagonal, self.factor == 1)

    @property
    def lipschitz(self) -> float | None:
        constant = self.kernel.lipschitz
        return None if constant is None else math.sqrt(self.factor) * constant

    def _text(self) -> str:
        return f"{self.factor} * {in_brackets(self.kernel, PRODUCT)}"


@dataclass(eq=False, repr=False)
class Shifted(UnaryKernel):
    """Sum k(x, z) + c with a constant c ≥ 0, which adds the constant feature √c.

    Parameters
    ----------
    kernel : Kernel
        Kernel k.
    constant : float ≥ 0
        Constant c.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> (Linear() + 1)([[1.0]], [[2.0]])
    array([[3.]])
    """

    constant: float

    _precedence, _number = SUM, "constant"
    _rules = recipes.recipe_of_shifted, terms.terms_of_shifted

    def _check(self) -> None:
        super()._check()
        if not isinstance(self.constant, Real) or not 0 <= self.constant < math.inf:
            raise ValueError(
                f"constant={self.constant!r}: k + c is a kernel only for a finite c ≥ 0, because a constant function "
                "is positive definite only then"
            )

    def of_values(self, values: list[Floats]) -> Floats:
        values[0] += float(self.constant)
        return values[0]

    def _partials(self, values: list[Floats]) -> tuple[Floats | float, ...]:
        return (1.0,)

    def _parameter_slopes(self, values: list[Floats]) -> Iterator[Slope]:
        yield "constant", (), np.ones_like(values[0])

    @property
    def _polynomial(self) -> bool:
        """True if the kernel is a polynomial of ⟨x, z⟩, which has finitely many features."""
        recipe = self.kernel.recipe() if self.kernel.bound else None
        return recipe is not None and recipe.inner == "dot" and recipe.ending in ("identity", "polynomial")

    @property
    def strictly_positive_definite(self) -> Answer:
        return "no" if self._polynomial else self._answer_from_parts("strictly_positive_definite")

    @property
    def universal(self) -> Answer:
        return "no" if self._polynomial else self._answer_from_parts("universal")

    @property
    def differentiable(self) -> Answer:
        return self.kernel.differentiable

    @property
    def unit_diagonal(self) -> Answer:
        return _if_unchanged(self.kernel.unit_diagonal, self.constant == 0)

    @property
    def lipschitz(self) -> float | None:
        return self.kernel.lipschitz

    def _text(self) -> str:
        return f"{in_brackets(self.kernel, SUM)} + {self.constant}"


@dataclass(eq=False, repr=False)
class Power(UnaryKernel):
    """Power k(x, z)^n with an integer n ≥ 1.

    Parameters
    ----------
    kernel : Kernel
        Kernel k.
    exponent : int ≥ 1
        Exponent n.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> ((Linear() + 1) ** 2)([[1.0]], [[2.0]])
    array([[9.]])
    """

    exponent: int

    _precedence, _number = POWER, "exponent"
    _rules = recipes.recipe_of_power, terms.terms_of_power

    def _check(self) -> None:
        super()._check()
        integer("exponent", self.exponent, 1, "other powers of a kernel are not kernels in general")

    def of_values(self, values: list[Floats]) -> Floats:
        return integer_power(values[0], int(self.exponent))

    def _partials(self, values: list[Floats]) -> tuple[Floats | float, ...]:
        return (self.exponent * integer_power(values[0].copy(), int(self.exponent) - 1),)

    @property
    def n_factors(self) -> int:
        return int(self.exponent) * self.kernel.n_factors

    @property
    def positive_definite(self) -> Answer:
        return self.kernel.positive_definite if self.exponent == 1 else self._answer_from_parts("positive_definite")

    @property
    def unit_diagonal(self) -> Answer:
        # A positive definite kernel has k(x, x) ≥ 0, and then k(x, x)^n = 1 only for k(x, x) = 1.
        is_definite = self.kernel.positive_definite == "yes"
        return self.kernel.unit_diagonal if is_definite else self._answer_from_parts("unit_diagonal")

    @property
    def lipschitz(self) -> float | None:
        constant = self.kernel.lipschitz
        if constant is None or self.exponent == 1:
            return constant
        # 1 − a^n ≤ n(1 − a) for |a| ≤ 1.
        return (
            math.sqrt(self.exponent) * constant if self._all_parts_have("positive_definite", "unit_diagonal") else None
        )

    def _text(self) -> str:
        return f"{in_brackets(self.kernel, ATOM)} ** {self.exponent}"


@dataclass(eq=False, repr=False)
class Exponential(UnaryKernel):
    """Exponential exp(k(x, z)), the limit of the sums Σ k(x, z)^n / n!.

    Parameters
    ----------
    kernel : Kernel
        Kernel k.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear().exp()([[1.0]], [[0.5]]).round(4)
    array([[1.6487]])
    """

    _rules = None, terms.terms_of_exponential

    def of_values(self, values: list[Floats]) -> Floats:
        first: Any = values[0]
        return np.exp(first, out=first) if isinstance(first, np.ndarray) else first.exp_()

    def _partials(self, values: list[Floats]) -> tuple[Floats | float, ...]:
        return (np.exp(values[0]),)

    @property
    def n_factors(self) -> int:
        return 710 * self.kernel.n_factors  # the relative error of exp(k) is k times that of k, and e^710 overflows

    @property
    def unit_diagonal(self) -> Answer:
        return "no" if self.kernel.unit_diagonal == "yes" else "unknown"

    @property
    def positive_values(self) -> Answer:
        return "yes"

    @property
    def lipschitz(self) -> float | None:
        # e − e^a ≤ e(1 − a).
        constant = self.kernel.lipschitz
        if constant is None or not self._all_parts_have("positive_definite", "unit_diagonal"):
            return None
        return math.sqrt(math.e) * constant

    def _text(self) -> str:
        return f"{in_brackets(self.kernel, ATOM)}.exp()"


def _if_unchanged(unit_diagonal: Answer, unchanged: bool) -> Answer:
    """Return whether a unit diagonal remains one under a rule that may leave the kernel unchanged."""
    if unchanged:
        return unit_diagonal
    return "no" if unit_diagonal == "yes" else "unknown"


def _hypotenuse(left: Kernel, right: Kernel) -> float | None:
    """Return √(L1² + L2²) for the Lipschitz constants of two kernels; None if one is not known."""
    if left.lipschitz is None or right.lipschitz is None:
        return None
    return math.hypot(left.lipschitz, right.lipschitz)
