"""Kernel values on a device, from a kernel's recipe or those of its parts.

Rows are prepared once per precision, as for the core: centred if only differences count, scaled so that a Gaussian is
2^−(N_i + N_j − ⟨x_i, x_j⟩) with N half the squared length. gram/rounding.py bounds what comes of that. Where N is so
large that digits would be lost which matter, float64 values are made of differences instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mercer.arrays import row_blocks
from mercer.engines.torch.numbers import hyperbolic_tangent, matmul, power_of_two, to_device, torch
from mercer.gram.prepared import CANCELLED_EXPONENT
from mercer.gram.rounding import DOUBLE, Rounding
from mercer.kernels import Kernel, Recipe
from mercer.kernels.algebra import OfValues
from mercer.kernels.recipe import integer_power

_LOG2E = math.log2(math.e)
_RADIAL = ("gaussian", "laplacian")


@dataclass(frozen=True, eq=False)
class Rows:
    """Prepared rows: of each recipe in a formula its own, with their norms."""

    parts: list[tuple[Any, Any]]

    @property
    def n(self) -> int:
        return len(self.parts[0][0])

    def __getitem__(self, which: Any) -> Rows:
        return Rows([(x[which], norms[which]) for x, norms in self.parts])


class Formula:
    """A kernel whose values a device can compute; `recipe` is None for one that is made of several."""

    def __init__(self, kernel: Kernel, leaves: list[Leaf], width: int) -> None:
        self._kernel, self._leaves, self._width = kernel, leaves, width
        self.recipe: Recipe | None = kernel.recipe()

    @classmethod
    def of(cls, kernel: Kernel, X: Any) -> Formula:
        """For samples like these, about whose mean rows are taken."""
        leaves: list[Leaf] = []
        _collect(kernel, X, leaves)
        return cls(kernel, leaves, X.shape[1])

    @property
    def rounding(self) -> Rounding | None:
        """The bounds of a single recipe; a kernel of several has none here."""
        if self.recipe is None:
            return None
        factor = self.recipe.factor
        mapped, terms = (0, self._width) if factor is None else factor.shape
        return Rounding(self.recipe, terms, sparse=False, mapped=mapped)

    @property
    def cancels(self) -> bool:
        """Whether values are made of differences: float32 would have few of their digits."""
        return any(leaf.cancels for leaf in self._leaves)

    def rows(self, X: Any, dtype: Any) -> Rows:
        """Samples prepared in a precision."""
        return Rows([leaf.prepared(X, dtype) for leaf in self._leaves])

    def block(self, left: Rows, right: Rows, *, proven: bool = False) -> Any:
        """k(x_i, z_j), in the precision of the rows; `proven` ones use no function whose error is unknown."""
        each = zip(self._leaves, left.parts, right.parts, strict=True)
        return _combined(self._kernel, iter([leaf.block(*one, *other, proven) for leaf, one, other in each]))

    def diagonal(self, X: Any) -> Any:
        """k(x, x) in float64."""
        return _combined(self._kernel, iter([leaf.diagonal(X) for leaf in self._leaves]))


class Leaf:
    """One recipe."""

    def __init__(self, recipe: Recipe, X: Any) -> None:
        self.recipe = recipe
        gamma = recipe.numbers[0] if recipe.numbers else 1.0
        self.scale = {"gaussian": math.sqrt(2 * gamma * _LOG2E)}.get(recipe.ending, 1.0)
        self.factor = None if recipe.factor is None else to_device(recipe.factor, X)
        self.centre, self.cancels = None, False
        if recipe.ending == "gaussian":
            self.centre = X.mean(dim=0, dtype=torch.float64)
            terms = X.shape[1] if recipe.factor is None else sum(recipe.factor.shape)
            self.cancels = not DOUBLE * (terms + 10) * self._largest(X) <= CANCELLED_EXPONENT  # true for NaN

    def _largest(self, X: Any) -> float:
        """The largest N; behind a factor, of the lengths of what is summed."""
        found = torch.zeros((), dtype=torch.float64, device=X.device)
        for some in row_blocks(len(X), 8 * X.shape[1]):
            rows = (X[some].double() - self.centre).abs()
            rows = rows if self.factor is None else rows @ self.factor.abs()
            found = torch.maximum(found, rows.square().sum(dim=1).max())  # NaN stays
        return 0.5 * self.scale**2 * float(found)

    def prepared(self, X: Any, dtype: Any) -> tuple[Any, Any]:
        """Rows and norms: half of the squared length of what is stored, summed in float64."""
        if self.cancels and dtype == torch.float64:
            rows = X.double().contiguous()
            return rows, torch.zeros_like(rows[:, 0])
        rows = self._mapped(X)
        if self.recipe.normalise:
            largest = rows.abs().amax(dim=1, keepdim=True)
            rows = rows / torch.where(largest > 0, largest, torch.ones_like(largest))
            lengths = rows.square().sum(dim=1, keepdim=True).sqrt()
            rows = rows / torch.where(lengths > 0, lengths, torch.ones_like(lengths))
        if self.scale != 1.0:
            rows = rows * self.scale
        stored = rows.to(dtype).contiguous()
        return stored, (0.5 * stored.double().square().sum(dim=1)).to(dtype)

    def _mapped(self, X: Any) -> Any:
        rows = X.double()
        if self.centre is not None:
            rows = rows - self.centre
        return rows if self.factor is None else rows @ self.factor

    def block(self, x: Any, x_norms: Any, z: Any, z_norms: Any, proven: bool) -> Any:
        recipe = self.recipe
        if self.cancels and x.dtype == torch.float64:
            values = power_of_two(self._distances(x, z).square_().mul_(-recipe.numbers[0] * _LOG2E), proven)
        else:
            values = torch.cdist(x, z, p=1.0) if recipe.inner == "l1" else matmul(x, z.T)
            values = self._ended(values, x_norms, z_norms, proven)
        if recipe.scale != 1.0:
            values *= recipe.scale
        if recipe.constant:
            values += recipe.constant
        return values

    def _distances(self, x: Any, z: Any) -> Any:
        """Of rows as they were given, from differences that are taken before a factor is applied."""
        if self.factor is None:
            return torch.cdist(x, z, compute_mode="donot_use_mm_for_euclid_dist")
        out = torch.empty((len(x), len(z)), dtype=x.dtype, device=x.device)
        for some in row_blocks(len(x), 16 * max(1, len(z)) * self.factor.shape[0]):
            out[some] = torch.linalg.vector_norm((x[some, None, :] - z) @ self.factor, dim=2)
        return out

    def _ended(self, t: Any, x_norms: Any, z_norms: Any, proven: bool) -> Any:
        ending, numbers = self.recipe.ending, self.recipe.numbers
        if ending == "identity":
            return t
        if ending == "gaussian":
            t -= x_norms[:, None]
            t -= z_norms
            return power_of_two(t.clamp_(max=0.0), proven)
        if ending == "laplacian":
            return power_of_two(t.mul_(-numbers[0] * _LOG2E), proven)
        t.mul_(numbers[0]).add_(numbers[1])
        return hyperbolic_tangent(t, proven) if ending == "sigmoid" else integer_power(t, int(numbers[2]))

    def diagonal(self, X: Any) -> Any:
        recipe = self.recipe
        if recipe.ending in _RADIAL:
            values = torch.ones(len(X), dtype=torch.float64, device=X.device)
        else:
            _, norms = self.prepared(X, torch.float64)
            values = self._ended(2.0 * norms, None, None, proven=True)
        return recipe.scale * values + recipe.constant


def _collect(kernel: Kernel, X: Any, leaves: list[Leaf]) -> None:
    recipe = kernel.recipe() if kernel.accepts == "vectors" else None
    if recipe is not None:
        leaves.append(Leaf(recipe, X))
    elif isinstance(kernel, OfValues):
        for part in kernel.parts.values():
            _collect(part, X, leaves)
    else:
        raise TypeError(
            f"{kernel!r} has no formula that a device could compute; use a kernel such as Gaussian, or compute on this "
            "machine: mercer.config_context(device='cpu')"
        )


def _combined(kernel: Kernel, values: Iterator[Any]) -> Any:
    """The kernel's values from those of its recipes, in order."""
    if kernel.recipe() is not None:
        return next(values)
    assert isinstance(kernel, OfValues)
    return kernel.of_values([_combined(part, values) for part in kernel.parts.values()])
