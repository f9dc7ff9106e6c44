"""Kernel values on a device, from a kernel's recipe or from those of its parts.

Rows are prepared once per precision, as for the core: centred if the kernel depends only on differences, and scaled so
that a Gaussian is 2^−(N_i + N_j − ⟨x_i, x_j⟩) with N half the squared length. places/rounding.py bounds the errors. If
N is so large that significant digits would be lost, float64 values are computed from differences instead. Sparse rows
are not centred, so that they stay sparse.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.kernels import Kernel
from mercer.kernels.composite import Composite
from mercer.kernels.recipe import Recipe, integer_power
from mercer.places.host.prepared import CANCELLED_EXPONENT
from mercer.places.rounding import DOUBLE, Rounding
from mercer.places.torch import fused
from mercer.places.torch.numbers import floats, hyperbolic_tangent, index_tensor, power_of_two, to_device, torch
from mercer.places.torch.sparse import SparseRows, distances, largest_entries, products, squared_lengths, times
from mercer.samples.arrays import Floats, Indices, row_blocks

_LOG2E = math.log2(math.e)
_RADIAL = ("gaussian", "laplacian")


@dataclass(frozen=True, eq=False)
class PreparedRows:
    """Prepared rows: for each recipe of a formula its rows and their norms."""

    parts: list[tuple[Any, Any]]

    @property
    def n(self) -> int:
        return len(self.parts[0][0])

    @property
    def device(self) -> Any:
        return self.parts[0][0].device

    def to(self, device: Any) -> PreparedRows:
        return PreparedRows([(x.to(device), norms.to(device)) for x, norms in self.parts])

    def __getitem__(self, index: Any) -> PreparedRows:
        return PreparedRows([(x[index], norms[index]) for x, norms in self.parts])

    def prepare(self) -> PreparedRows:
        return self


class UnpreparedRows:
    """Samples that are prepared only when they are needed, since preparing all would take too much memory."""

    def __init__(self, formula: Formula, X: Any, dtype: Any, index: Any = None) -> None:
        self._formula, self._X, self._dtype, self._index = formula, X, dtype, index

    @property
    def n(self) -> int:
        return len(self._X) if self._index is None else len(self._index)

    def __getitem__(self, index: Any) -> UnpreparedRows:
        if self._index is not None:
            index = self._index[index]
        elif isinstance(index, slice):
            index = torch.arange(self.n, device=self._X.device)[index]
        return UnpreparedRows(self._formula, self._X, self._dtype, index)

    def prepare(self) -> PreparedRows:
        return self._formula.rows(self._X if self._index is None else self._X[self._index], self._dtype)


class Formula:
    """A kernel whose values a device can compute; `recipe` is None for a kernel of several recipes."""

    def __init__(self, kernel: Kernel, leaves: list[Leaf], terms: int) -> None:
        self._kernel, self._leaves, self._terms = kernel, leaves, terms
        self.recipe: Recipe | None = kernel.recipe()
        self.fuses = self.fuses_differences = False

    @classmethod
    def of(cls, kernel: Kernel, X: Any, *, of_differences: bool = False, fuses: bool = False) -> Formula:
        """Build the formula for samples like X, whose mean is the centre; `of_differences` prefers differences.

        With `fuses`, fused Triton kernels add up the values of a Gaussian where they exist, from rows that are prepared
        for them or from differences.
        """
        leaves: list[Leaf] = []
        _collect(kernel, X, leaves)
        for leaf in leaves if of_differences else ():
            leaf.cancels = leaf.recipe.ending == "gaussian"
        sparse = isinstance(X, SparseRows)
        formula = cls(kernel, leaves, min(X.shape[1], 2 * X.longest) if sparse else X.shape[1])
        if fuses and formula.recipe is not None and fused.available(X):
            is_gaussian = formula.recipe.ending == "gaussian" and not formula.recipe.constant and not sparse
            formula.fuses = is_gaussian and not formula.cancels
            formula.fuses_differences = is_gaussian and formula.differences
        return formula

    @property
    def rounding(self) -> Rounding | None:
        """Error bounds of a single recipe; None for a kernel of several recipes."""
        if self.recipe is None:
            return None
        factor = self.recipe.factor
        mapped, terms = (0, self._terms) if factor is None else factor.shape
        return Rounding(self.recipe, terms, sparse=False, mapped=mapped)

    @property
    def cancels(self) -> bool:
        """True if float64 values are computed from differences: float32 would keep few of their digits."""
        return any(leaf.cancels for leaf in self._leaves)

    @property
    def differences(self) -> bool:
        """True if a single recipe's float64 values are computed from differences between the original rows."""
        return self.recipe is not None and self._leaves[0].differences

    @property
    def exponent_factor(self) -> float:
        """Factor of the squared distance in the exponent of a single Gaussian as a power of two."""
        return self._leaves[0].exponent_factor

    @property
    def scale(self) -> float:
        """Factor of a single recipe's values."""
        assert self.recipe is not None
        return float(self.recipe.scale)

    def sizes(self, X: Any) -> Floats:
        """N of every row under a single recipe, for error bounds; with a factor, from the terms' absolute values."""
        return self._leaves[0].sizes(X)

    def rows(self, X: Any, dtype: Any) -> PreparedRows:
        """Prepare samples in a precision."""
        parts = [leaf.prepared(leaf.part(X), dtype) for leaf in self._leaves]
        if self.fuses:
            parts = [(fused.padded(x, dtype), norms) for x, norms in parts]
        return PreparedRows(parts)

    def block(self, left: PreparedRows, right: PreparedRows, *, proven: bool = False) -> Any:
        """Return k(x_i, z_j) in the rows' precision; `proven` values use only functions with known error bounds."""
        leaves = list(zip(self._leaves, left.parts, right.parts, strict=True))
        if self.recipe is not None:
            return leaves[0][0].block(*leaves[0][1], *leaves[0][2], proven)
        triples = (
            [leaf.block(*x, *other, proven), leaf.diagonal_of(*x), leaf.diagonal_of(*other)]
            for leaf, x, other in leaves
        )
        return _combine_parts(self._kernel, triples)[0]

    def diagonal(self, X: Any) -> Any:
        """Return k(x, x) in float64."""
        leaves = (3 * [leaf.diagonal(leaf.part(X))] for leaf in self._leaves)
        return _combine_parts(self._kernel, ([values.clone() for values in leaf_values] for leaf_values in leaves))[1]


class Leaf:
    """One recipe of a formula, applied to all columns of the samples or to a subset, which `part` selects."""

    def __init__(self, recipe: Recipe, X: Any, columns: Indices | None) -> None:
        self.recipe, self._columns = recipe, columns
        X = self.part(X)
        gamma = recipe.numbers[0] if recipe.numbers else 1.0
        self.scale = {"gaussian": math.sqrt(2 * gamma * _LOG2E)}.get(recipe.ending, 1.0)
        self.factor = None if recipe.factor is None else to_device(recipe.factor, X)
        self.centre, self.cancels = None, False
        if recipe.ending == "gaussian":
            sparse = isinstance(X, SparseRows)
            self.centre = None if sparse else X.mean(dim=0, dtype=torch.float64)
            terms = (X.longest if sparse else X.shape[1]) if recipe.factor is None else sum(recipe.factor.shape)
            largest = max((float(part.max()) for part in self._lengths(X)), default=0.0)
            self.cancels = not DOUBLE * (terms + 10) * largest <= CANCELLED_EXPONENT  # also true for NaN

    def part(self, X: Any) -> Any:
        """Return the columns that the recipe compares."""
        if self._columns is None:
            return X
        columns = index_tensor(self._columns, X)
        return X.select_columns(columns) if isinstance(X, SparseRows) else X[:, columns]

    @property
    def exponent_factor(self) -> float:
        """Factor of the distance, or of its square, in the exponent of a radial kernel as a power of two."""
        return -float(self.recipe.numbers[0]) * _LOG2E

    @property
    def differences(self) -> bool:
        return self.recipe.ending == "laplacian" or (self.cancels and self.factor is None)

    def _lengths(self, X: Any) -> Iterator[Any]:
        """Yield N of a block of rows at a time; with a factor, from the absolute values of the terms."""
        for block in row_blocks(len(X), 8 * X.shape[1]):
            rows = self._centred(X[block]).abs()
            rows = rows if self.factor is None else times(rows, self.factor.abs())
            yield 0.5 * self.scale**2 * squared_lengths(rows)

    def sizes(self, X: Any) -> Floats:
        """Return N of every row for error bounds; 0 where values are computed from differences."""
        if self.differences:  # errors of differences are relative, and need no N
            return np.zeros(len(X))
        if self.factor is None:
            return np.asarray(floats(self.prepared(X, torch.float64)[1]) + 2.0**-1074)
        sizes = np.concatenate([np.empty(0), *map(floats, self._lengths(X))])
        return np.asarray(sizes * (1 + 8 * (X.shape[1] + 4) * DOUBLE))

    def prepared(self, X: Any, dtype: Any) -> tuple[Any, Any]:
        """Return prepared rows and their norms: half of the squared length of the stored rows, summed in float64."""
        if self.cancels and dtype == torch.float64:
            rows = X.double().contiguous()
            return rows, torch.zeros(len(X), dtype=torch.float64, device=X.device)
        rows = self._centred(X)
        rows = rows if self.factor is None else times(rows, self.factor)
        if self.recipe.normalise:
            for size_of in (largest_entries, lambda rows: squared_lengths(rows).sqrt()[:, None]):
                sizes = size_of(rows)
                rows = rows / torch.where(sizes > 0, sizes, 1.0)
        if self.scale != 1.0:
            rows = rows * self.scale
        prepared_rows = rows.to(dtype).contiguous()
        return prepared_rows, (0.5 * squared_lengths(prepared_rows)).to(dtype)

    def _centred(self, X: Any) -> Any:
        """Return the samples in float64, minus the centre if there is one."""
        rows = X.double()
        if self.centre is None:
            return rows
        return (rows.dense() if isinstance(rows, SparseRows) else rows) - self.centre

    def block(self, x: Any, x_norms: Any, z: Any, z_norms: Any, proven: bool) -> Any:
        """Return the values of the recipe between prepared rows x and z."""
        recipe = self.recipe
        if self.cancels and x.dtype == torch.float64:
            values = power_of_two(self._distances(x, z).square_().mul_(self.exponent_factor), proven)
        else:
            values = distances(x, z, 1.0) if recipe.inner == "l1" else products(x, z)
            values = self._apply_ending(values, x_norms, z_norms, proven)
        if recipe.scale != 1.0:
            values *= recipe.scale
        if recipe.constant:
            values += recipe.constant
        return values

    def _distances(self, x: Any, z: Any) -> Any:
        """Return distances of the original rows, from differences that are taken before a factor is applied."""
        if self.factor is None:
            return distances(x, z, 2.0)
        out = torch.empty((len(x), len(z)), dtype=x.dtype, device=x.device)
        z = z.dense() if isinstance(z, SparseRows) else z
        for block in row_blocks(len(x), 16 * max(1, len(z)) * self.factor.shape[0]):
            part = x[block].dense() if isinstance(x, SparseRows) else x[block]
            out[block] = torch.linalg.vector_norm((part[:, None, :] - z) @ self.factor, dim=2)
        return out

    def _apply_ending(self, t: Any, x_norms: Any, z_norms: Any, proven: bool) -> Any:
        """Apply the recipe's ending to its inner numbers t, which are overwritten."""
        ending, numbers = self.recipe.ending, self.recipe.numbers
        if ending == "identity":
            return t
        if ending == "gaussian":
            t -= x_norms[:, None]
            t -= z_norms
            return power_of_two(t.clamp_(max=0.0), proven)
        if ending == "laplacian":
            return power_of_two(t.mul_(self.exponent_factor), proven)
        t.mul_(numbers[0]).add_(numbers[1])
        return hyperbolic_tangent(t, proven) if ending == "sigmoid" else integer_power(t, int(numbers[2]))

    def diagonal(self, X: Any) -> Any:
        """Return k(x, x) in float64."""
        if self.recipe.ending in _RADIAL:
            return self.diagonal_of(X, torch.ones(len(X), dtype=torch.float64, device=X.device))
        return self.diagonal_of(*self.prepared(X, torch.float64))

    def diagonal_of(self, x: Any, norms: Any) -> Any:
        """Return k(x, x) of prepared rows."""
        recipe, is_radial = self.recipe, self.recipe.ending in _RADIAL
        values = (
            torch.ones_like(norms)
            if is_radial
            else self._apply_ending(2.0 * norms, None, None, norms.dtype == torch.float64)
        )
        return recipe.scale * values + recipe.constant


def _collect(kernel: Kernel, X: Any, leaves: list[Leaf], columns: Indices | None = None) -> None:
    """Append a leaf for each recipe of a kernel, which compares the given columns; raise TypeError without recipes."""
    recipe = kernel.recipe() if kernel.accepts == "vectors" else None
    if recipe is not None:
        leaves.append(Leaf(recipe, X, columns))
    elif isinstance(kernel, Composite) and kernel.combines:
        part_columns = kernel.part_columns
        if part_columns is not None:
            columns = part_columns if columns is None else columns[part_columns]
        for part in kernel.parts.values():
            _collect(part, X, leaves, columns)
    else:
        raise TypeError(
            f"{kernel!r} has no formula that a device can compute; use a kernel such as Gaussian, or compute on the "
            "host: mercer.config_context(device='cpu')"
        )


def _combine_parts(kernel: Kernel, leaves: Iterator[list[Any]]) -> list[Any]:
    """Return k(x, z), k(x, x) and k(z, z) of a kernel from those of its recipes, in order."""
    if kernel.recipe() is not None:
        return next(leaves)
    assert isinstance(kernel, Composite)
    return kernel.combined([_combine_parts(part, leaves) for part in kernel.parts.values()])
