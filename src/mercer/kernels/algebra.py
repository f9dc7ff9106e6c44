"""The closure rules: sums, products, positive multiples, powers and exponentials of kernels are kernels.

Composites work on blocks, bind their parts, lower themselves where they can, and state what follows from their
parts' properties. What does not follow is "unknown", never a guess.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from mercer.arrays import Floats
from mercer.kernels import composite_recipes
from mercer.kernels.composite import ATOM, POWER, PRODUCT, SUM, Composite, Pair, inside
from mercer.kernels.endings import integer_power
from mercer.kernels.kernel import Answer, Kernel
from mercer.kernels.recipe import Recipe
from mercer.parameters import integer


class Sum(Pair):
    """k1(x, z) + k2(x, z); its features are those of both.

    Examples
    --------
    >>> from mercer.kernels import Gaussian, Linear
    >>> Gaussian(gamma=0.5) + Linear()
    Gaussian(gamma=0.5) + Linear()
    """

    _binds = SUM

    def _values(self, X: Any, Z: Any) -> Floats:
        out = self.left._values(X, Z)
        with np.errstate(over="ignore", invalid="ignore"):
            out += self.right._values(X, Z)
        return out

    def diag(self, X: Any) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            return self.left.diag(X) + self.right.diag(X)

    def recipe(self) -> Recipe | None:
        return composite_recipes.added(self.left.recipe(), self.right.recipe())

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

    def _text(self) -> str:
        return f"{inside(self.left, SUM)} + {inside(self.right, SUM)}"


class Product(Pair):
    """k1(x, z) · k2(x, z); its features are the products of one of each.

    Examples
    --------
    >>> from mercer.kernels import Laplacian, Linear
    >>> Linear() * Laplacian(gamma=0.5)
    Linear() * Laplacian(gamma=0.5)
    """

    _binds = PRODUCT

    def _values(self, X: Any, Z: Any) -> Floats:
        out = self.left._values(X, Z)
        with np.errstate(over="ignore", invalid="ignore"):
            out *= self.right._values(X, Z)
        return out

    def diag(self, X: Any) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            return self.left.diag(X) * self.right.diag(X)

    def recipe(self) -> Recipe | None:
        return composite_recipes.multiplied(self.left.recipe(), self.right.recipe())

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

    def _text(self) -> str:
        return f"{inside(self.left, PRODUCT)} * {inside(self.right, PRODUCT)}"


class Scaled(Composite):
    """a · k(x, z) with a > 0.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> (3 * Linear())([[1.0]], [[2.0]])
    array([[6.]])
    """

    _binds = PRODUCT

    def __init__(self, kernel: Kernel, factor: float) -> None:
        self.kernel = kernel
        self.factor = factor
        self._check()

    def _check(self) -> None:
        super()._check()
        if not isinstance(self.factor, Real) or not 0 < self.factor < math.inf:
            raise ValueError(
                f"factor={self.factor!r}: a multiple a * k is a kernel only for a finite a > 0. A negative a turns "
                "positive eigenvalues into negative ones, and a = 0 leaves nothing to learn from"
            )

    def _values(self, X: Any, Z: Any) -> Floats:
        out = self.kernel._values(X, Z)
        with np.errstate(over="ignore"):
            out *= float(self.factor)
        return out

    def diag(self, X: Any) -> Floats:
        with np.errstate(over="ignore"):
            return self.kernel.diag(X) * float(self.factor)

    def recipe(self) -> Recipe | None:
        return composite_recipes.scaled(self.kernel.recipe(), float(self.factor))

    @property
    def positive_definite(self) -> Answer:
        return self.kernel.positive_definite

    @property
    def strictly_positive_definite(self) -> Answer:
        return self.kernel.strictly_positive_definite

    @property
    def universal(self) -> Answer:
        return self.kernel.universal

    @property
    def differentiable(self) -> Answer:
        return self.kernel.differentiable

    @property
    def unit_diagonal(self) -> Answer:
        if self.factor == 1:
            return self.kernel.unit_diagonal
        return "no" if self.kernel.unit_diagonal == "yes" else "unknown"

    @property
    def lipschitz(self) -> float | None:
        constant = self.kernel.lipschitz
        return None if constant is None else math.sqrt(self.factor) * constant

    def _text(self) -> str:
        return f"{self.factor} * {inside(self.kernel, PRODUCT)}"


class Shifted(Composite):
    """k(x, z) + c with c ≥ 0: one more feature, the constant √c.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> (Linear() + 1)([[1.0]], [[2.0]])
    array([[3.]])
    """

    _binds = SUM

    def __init__(self, kernel: Kernel, constant: float) -> None:
        self.kernel = kernel
        self.constant = constant
        self._check()

    def _check(self) -> None:
        super()._check()
        if not isinstance(self.constant, Real) or not 0 <= self.constant < math.inf:
            raise ValueError(
                f"constant={self.constant!r}: k + c is a kernel only for a finite c ≥ 0, because a constant function "
                "is positive definite only then"
            )

    def _values(self, X: Any, Z: Any) -> Floats:
        out = self.kernel._values(X, Z)
        out += float(self.constant)
        return out

    def diag(self, X: Any) -> Floats:
        return self.kernel.diag(X) + float(self.constant)

    def recipe(self) -> Recipe | None:
        return composite_recipes.shifted(self.kernel.recipe(), float(self.constant))

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
        if self.constant == 0:
            return self.kernel.unit_diagonal
        return "no" if self.kernel.unit_diagonal == "yes" else "unknown"

    @property
    def lipschitz(self) -> float | None:
        return self.kernel.lipschitz

    def _text(self) -> str:
        return f"{inside(self.kernel, SUM)} + {self.constant}"


class Power(Composite):
    """k(x, z)^n with an integer n ≥ 1.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> ((Linear() + 1) ** 2)([[1.0]], [[2.0]])
    array([[9.]])
    """

    _binds = POWER

    def __init__(self, kernel: Kernel, exponent: int) -> None:
        self.kernel = kernel
        self.exponent = exponent
        self._check()

    def _check(self) -> None:
        super()._check()
        integer("exponent", self.exponent, 1, "other powers of a kernel are no kernels in general")

    def _values(self, X: Any, Z: Any) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            return integer_power(self.kernel._values(X, Z), int(self.exponent))

    def diag(self, X: Any) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            return integer_power(self.kernel.diag(X), int(self.exponent))

    def recipe(self) -> Recipe | None:
        return composite_recipes.raised(self.kernel.recipe(), int(self.exponent))

    @property
    def positive_definite(self) -> Answer:
        return self.kernel.positive_definite if self.exponent == 1 else self._follows("positive_definite")

    @property
    def strictly_positive_definite(self) -> Answer:
        return self._follows("strictly_positive_definite")

    @property
    def universal(self) -> Answer:
        return self._follows("universal")

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


class Exponential(Composite):
    """exp(k(x, z)): the limit of sums of powers.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear().exp()([[1.0]], [[0.5]]).round(4)
    array([[1.6487]])
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._check()

    def _values(self, X: Any, Z: Any) -> Floats:
        out = self.kernel._values(X, Z)
        with np.errstate(over="ignore"):
            return np.exp(out, out=out)

    def diag(self, X: Any) -> Floats:
        with np.errstate(over="ignore"):
            return np.exp(self.kernel.diag(X))

    @property
    def strictly_positive_definite(self) -> Answer:
        return self._follows("strictly_positive_definite")

    @property
    def universal(self) -> Answer:
        return self._follows("universal")

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


def _hypotenuse(left: Kernel, right: Kernel) -> float | None:
    if left.lipschitz is None or right.lipschitz is None:
        return None
    return math.hypot(left.lipschitz, right.lipschitz)
