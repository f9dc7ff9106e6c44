"""Recipe: a kernel as a plain value that the fused core, files and export can read.

    k(x, z) = scale · ending(inner(x, z)) + constant

after the data were multiplied by ``factor``, or their rows scaled to length 1. Every way to compute a recipe must agree
with the plain one in tests/reference/recipes.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mercer.arrays import Floats

Inner = Literal["dot", "sqdist", "l1"]
Ending = Literal["identity", "gaussian", "polynomial", "sigmoid", "laplacian"]


@dataclass(frozen=True, eq=False)
class Recipe:
    """What to compute from two rows, and what to make of it.

    Attributes
    ----------
    inner : {"dot", "sqdist", "l1"}
        t = ⟨x, z⟩, ‖x − z‖² or ‖x − z‖₁.
    ending : {"identity", "gaussian", "laplacian", "polynomial", "sigmoid"}
        t itself, exp(−γt) (of either name), (γt + coef0)^degree or tanh(γt + coef0).
    numbers : tuple of float
        (), (gamma,), (gamma, coef0, degree) or (gamma, coef0), as the ending needs.
    scale : float
        A factor > 0 on the value.
    factor : array or None
        A matrix with one row per feature that the data are multiplied by first.
    normalise : bool
        Whether rows are scaled to length 1 first; zero rows stay zero.
    constant : float
        A number ≥ 0 added to the value.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> recipe = (2 * Gaussian(gamma=0.5)).recipe()
    >>> recipe.inner, recipe.numbers, recipe.scale
    ('sqdist', (0.5,), 2.0)
    """

    inner: Inner
    ending: Ending
    numbers: tuple[float, ...] = ()
    scale: float = 1.0
    factor: Floats | None = None
    normalise: bool = False
    constant: float = 0.0

    @property
    def linear(self) -> bool:
        """Whether k(x, z) = scale · ⟨x, z⟩, so that a machine has a weight vector with one entry per feature."""
        plain = (self.inner, self.ending, self.normalise, self.constant) == ("dot", "identity", False, 0.0)
        return plain and self.factor is None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Recipe) or (self.scale, self.constant) != (other.scale, other.constant):
            return False
        return self.same_up_to_scale(other)

    def __hash__(self) -> int:
        return hash((self.inner, self.ending, self.numbers, self.scale, self.normalise, self.constant))

    def same_up_to_scale(self, other: Recipe) -> bool:
        """Whether the two differ only in the factor on the value and in the constant."""
        return self.same_inner(other) and (self.ending, self.numbers) == (other.ending, other.numbers)

    def same_inner(self, other: Recipe) -> bool:
        """Whether the two start from the same number t."""
        if (self.inner, self.normalise) != (other.inner, other.normalise):
            return False
        if self.factor is None or other.factor is None:
            return self.factor is other.factor
        return np.array_equal(self.factor, other.factor)
