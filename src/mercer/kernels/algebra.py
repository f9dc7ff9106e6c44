"""The closure rules: sums, products, positive multiples, powers and exponentials of kernels are kernels.

Composites work on blocks, bind their parts, have a recipe where one exists, and state what follows from the
properties of their parts. What does not follow is "unknown", never a guess.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Real
from typing import cast

import numpy as np

from mercer.arrays import Floats, Samples
from mercer.kernels import recipe as recipes
from mercer.kernels import terms
from mercer.kernels.composite import ATOM, POWER, PRODUCT, SUM, Composite, inside
from mercer.kernels.kernel import Answer, Kernel, Slope
from mercer.kernels.recipe import integer_power
from mercer.parameters import integer


class OfOne(Composite):
    """A function of the values of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._check()

    def _of_values(self, values: Floats) -> Floats:
        """The function, which may overwrite its argument."""
        raise NotImplementedError

    def _values(self, X: Samples, Z: Samples) -> Floats:
        values = self.kernel._values(X, Z)
        with np.errstate(over="ignore", invalid="ignore"):
            return self._of_values(values)

    def diag(self, X: Samples) -> Floats:
        values = np.array(self.kernel.diag(X), dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            return self._of_values(values)

    def _slope_at(self, values: Floats) -> Floats | float:
        """The function's derivative; does not overwrite its argument."""
        raise NotImplementedError

    def _own_slopes(self, values: Floats) -> Iterator[Slope]:
        """The function's derivatives by its own parameters."""
        return iter(())

    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        return self.kernel._gradient(X, Z, weights * self._slope_at(self.kernel._values(X, Z)))

    def _diagonal_gradient(self, X: Samples, weights: Floats) -> Floats:
        return self.kernel._diagonal_gradient(X, weights * self._slope_at(self.kernel.diag(X)))

    def _slopes(self, X: Samples, Z: Samples) -> Iterator[Slope]:
        values = self.kernel._values(X, Z)
        outer = self._slope_at(values)
        for name, place, slope in self.kernel._slopes(X, Z):
            yield f"kernel__{name}", place, slope * outer
        yield from self._own_slopes(values)


class OfTwo(Composite):
    """A kernel made of two by an operator: its sign, how tightly it binds, and what it does to arrays."""

    _part_names = ("left", "right")
    _sign: str
    _operator: np.ufunc

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left, self.right = left, right
        self._check()

    def _values(self, X: Samples, Z: Samples) -> Floats:
        left, right = self.left._values(X, Z), self.right._values(X, Z)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self._operator(left, right, out=left))

    def diag(self, X: Samples) -> Floats:
        left, right = self.left.diag(X), self.right.diag(X)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self._operator(left, right))

    def _partials(self, left: Floats, right: Floats) -> tuple[Floats | float, Floats | float]:
        """The operator's derivatives by its two sides."""
        raise NotImplementedError

    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        by_left, by_right = self._partials(self.left._values(X, Z), self.right._values(X, Z))
        return self.left._gradient(X, Z, weights * by_left) + self.right._gradient(X, Z, weights * by_right)

    def _diagonal_gradient(self, X: Samples, weights: Floats) -> Floats:
        by_left, by_right = self._partials(self.left.diag(X), self.right.diag(X))
        left = self.left._diagonal_gradient(X, weights * by_left)
        return left + self.right._diagonal_gradient(X, weights * by_right)

    def _slopes(self, X: Samples, Z: Samples) -> Iterator[Slope]:
        partials = self._partials(self.left._values(X, Z), self.right._values(X, Z))
        for (side, part), outer in zip(self.parts.items(), partials, strict=True):
            for name, place, slope in part._slopes(X, Z):
                yield f"{side}__{name}", place, slope * outer

    def _text(self) -> str:
        return f"{inside(self.left, self._binds)} {self._sign} {inside(self.right, self._binds)}"


class Sum(OfTwo):
    """k1(x, z) + k2(x, z); its features are those of both kernels.

    Parameters
    ----------
    left : Kernel
        k1.
    right : Kernel
        k2.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> Gaussian(gamma=0.5) + Linear()
    Gaussian(gamma=0.5) + Linear()
    """

    _binds, _sign, _operator = SUM, "+", np.add
    _rules = recipes.added, terms.added

    def _partials(self, left: Floats, right: Floats) -> tuple[Floats | float, Floats | float]:
        return 1.0, 1.0

    @property
    def strictly_positive_definite(self) -> Answer:
        strict = [part.strictly_positive_definite == "yes" for part in self.parts.values()]
        return "yes" if self._holds("positive_definite") and any(strict) else "unknown"

    @property
    def universal(self) -> Answer:
        # The space of the sum contains both spaces; the other kernel must be continuous for the sum to be.
        parts = self.parts.values()
        continuous = all("yes" in (part.universal, part.differentiable) for part in parts)
        one = any(part.universal == "yes" for part in parts)
        return "yes" if one and continuous and self._holds("positive_definite") else "unknown"

    @property
    def unit_diagonal(self) -> Answer:
        return "no" if self._holds("unit_diagonal") else "unknown"

    @property
    def lipschitz(self) -> float | None:
        return _hypotenuse(self.left, self.right) if self._holds("positive_definite") else None


class Product(OfTwo):
    """k1(x, z) · k2(x, z); its features are the products of a feature of k1 and one of k2.

    Parameters
    ----------
    left : Kernel
        k1.
    right : Kernel
        k2.

    Examples
    --------
    >>> from mercer.kernels import Laplacian, Linear
    >>> Linear() * Laplacian(gamma=0.5)
    Linear() * Laplacian(gamma=0.5)
    """

    _binds, _sign, _operator = PRODUCT, "*", np.multiply
    _rules = recipes.multiplied, terms.multiplied

    def _partials(self, left: Floats, right: Floats) -> tuple[Floats | float, Floats | float]:
        return right, left

    @property
    def n_factors(self) -> int:
        return sum(part.n_factors for part in self.parts.values())

    @property
    def strictly_positive_definite(self) -> Answer:
        # Schur: A ∘ B is positive definite if A is and B is positive semi-definite with a positive diagonal.
        if not self._holds("positive_definite"):
            return "unknown"
        for one, other in ((self.left, self.right), (self.right, self.left)):
            positive_diagonal = "yes" in (other.unit_diagonal, other.strictly_positive_definite)
            if one.strictly_positive_definite == "yes" and positive_diagonal:
                return "yes"
        return "unknown"

    @property
    def universal(self) -> Answer:
        return "yes" if self._holds("positive_definite", "universal") else "unknown"

    @property
    def unit_diagonal(self) -> Answer:
        answers = {self.left.unit_diagonal, self.right.unit_diagonal}
        return "no" if answers == {"yes", "no"} else self._follows("unit_diagonal")

    @property
    def lipschitz(self) -> float | None:
        # 1 − ab ≤ (1 − a) + (1 − b) for |a|, |b| ≤ 1.
        both = self._holds("positive_definite", "unit_diagonal")
        return _hypotenuse(self.left, self.right) if both else None


class Scaled(OfOne):
    """a · k(x, z) with a > 0.

    Parameters
    ----------
    kernel : Kernel
        k.
    factor : float > 0
        a.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> (3 * Linear())([[1.0]], [[2.0]])
    array([[6.]])
    """

    _binds, _number = PRODUCT, "factor"
    _rules = recipes.scaled, terms.scaled

    def __init__(self, kernel: Kernel, factor: float) -> None:
        self.kernel, self.factor = kernel, factor
        self._check()

    def _check(self) -> None:
        super()._check()
        if not isinstance(self.factor, Real) or not 0 < self.factor < math.inf:
            raise ValueError(
                f"factor={self.factor!r}: a multiple a * k is a kernel only for a finite a > 0. A negative a turns "
                "positive eigenvalues into negative ones, and a = 0 leaves nothing to learn from"
            )

    def _of_values(self, values: Floats) -> Floats:
        values *= float(self.factor)
        return values

    def _slope_at(self, values: Floats) -> Floats | float:
        return float(self.factor)

    def _own_slopes(self, values: Floats) -> Iterator[Slope]:
        yield "factor", (), values

    def _follows(self, statement: str) -> Answer:
        return cast(Answer, getattr(self.kernel, statement))  # a "no" follows too

    @property
    def unit_diagonal(self) -> Answer:
        return _if_unchanged(self.kernel.unit_diagonal, self.factor == 1)

    @property
    def lipschitz(self) -> float | None:
        constant = self.kernel.lipschitz
        return None if constant is None else math.sqrt(self.factor) * constant

    def _text(self) -> str:
        return f"{self.factor} * {inside(self.kernel, PRODUCT)}"


class Shifted(OfOne):
    """k(x, z) + c with c ≥ 0: one more feature, the constant √c.

    Parameters
    ----------
    kernel : Kernel
        k.
    constant : float ≥ 0
        c.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> (Linear() + 1)([[1.0]], [[2.0]])
    array([[3.]])
    """

    _binds, _number = SUM, "constant"
    _rules = recipes.shifted, terms.shifted

    def __init__(self, kernel: Kernel, constant: float) -> None:
        self.kernel, self.constant = kernel, constant
        self._check()

    def _check(self) -> None:
        super()._check()
        if not isinstance(self.constant, Real) or not 0 <= self.constant < math.inf:
            raise ValueError(
                f"constant={self.constant!r}: k + c is a kernel only for a finite c ≥ 0, because a constant function "
                "is positive definite only then"
            )

    def _of_values(self, values: Floats) -> Floats:
        values += float(self.constant)
        return values

    def _slope_at(self, values: Floats) -> Floats | float:
        return 1.0

    def _own_slopes(self, values: Floats) -> Iterator[Slope]:
        yield "constant", (), np.ones_like(values)

    @property
    def strictly_positive_definite(self) -> Answer:
        return "yes" if self.kernel.strictly_positive_definite == "yes" else "unknown"

    @property
    def universal(self) -> Answer:
        return "yes" if self.kernel.universal == "yes" else "unknown"

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
        return f"{inside(self.kernel, SUM)} + {self.constant}"


class Power(OfOne):
    """k(x, z)^n with an integer n ≥ 1.

    Parameters
    ----------
    kernel : Kernel
        k.
    exponent : int ≥ 1
        n.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> ((Linear() + 1) ** 2)([[1.0]], [[2.0]])
    array([[9.]])
    """

    _binds, _number = POWER, "exponent"
    _rules = recipes.raised, terms.raised

    def __init__(self, kernel: Kernel, exponent: int) -> None:
        self.kernel, self.exponent = kernel, exponent
        self._check()

    def _check(self) -> None:
        super()._check()
        integer("exponent", self.exponent, 1, "other powers of a kernel are no kernels in general")

    def _of_values(self, values: Floats) -> Floats:
        return integer_power(values, int(self.exponent))

    def _slope_at(self, values: Floats) -> Floats | float:
        return self.exponent * integer_power(values.copy(), int(self.exponent) - 1)

    @property
    def n_factors(self) -> int:
        return int(self.exponent) * self.kernel.n_factors

    @property
    def positive_definite(self) -> Answer:
        return self.kernel.positive_definite if self.exponent == 1 else self._follows("positive_definite")

    @property
    def unit_diagonal(self) -> Answer:
        # A positive definite kernel has k(x, x) ≥ 0, and then k(x, x)^n = 1 only for k(x, x) = 1.
        sure = self.kernel.positive_definite == "yes"
        return self.kernel.unit_diagonal if sure else self._follows("unit_diagonal")

    @property
    def lipschitz(self) -> float | None:
        constant = self.kernel.lipschitz
        if constant is None or self.exponent == 1:
            return constant
        # 1 − a^n ≤ n(1 − a) for |a| ≤ 1.
        return math.sqrt(self.exponent) * constant if self._holds("positive_definite", "unit_diagonal") else None

    def _text(self) -> str:
        return f"{inside(self.kernel, ATOM)} ** {self.exponent}"


class Exponential(OfOne):
    """exp(k(x, z)), a limit of sums of powers.

    Parameters
    ----------
    kernel : Kernel
        k.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear().exp()([[1.0]], [[0.5]]).round(4)
    array([[1.6487]])
    """

    _rules = None, terms.exponential

    def _of_values(self, values: Floats) -> Floats:
        return np.exp(values, out=values)

    def _slope_at(self, values: Floats) -> Floats | float:
        return np.exp(values)

    @property
    def n_factors(self) -> int:
        return 710 * self.kernel.n_factors  # the relative error of exp(k) is k times that of k, and e^710 overflows

    @property
    def unit_diagonal(self) -> Answer:
        return "no" if self.kernel.unit_diagonal == "yes" else "unknown"

    @property
    def lipschitz(self) -> float | None:
        # e − e^a ≤ e(1 − a).
        constant = self.kernel.lipschitz
        if constant is None or not self._holds("positive_definite", "unit_diagonal"):
            return None
        return math.sqrt(math.e) * constant

    def _text(self) -> str:
        return f"{inside(self.kernel, ATOM)}.exp()"


def _if_unchanged(unit_diagonal: Answer, unchanged: bool) -> Answer:
    """Whether a diagonal is still 1 after a change, if there was one."""
    if unchanged:
        return unit_diagonal
    return "no" if unit_diagonal == "yes" else "unknown"


def _hypotenuse(left: Kernel, right: Kernel) -> float | None:
    if left.lipschitz is None or right.lipschitz is None:
        return None
    return math.hypot(left.lipschitz, right.lipschitz)
