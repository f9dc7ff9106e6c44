"""How f depends on its features: the mean of |∂f/∂x_j| over samples, partial dependence, and the curve of each sample.

    pd(g) = Σ_i w_i f(x_i with x_ij = g)

This is plain prediction for every kernel. Where k is one product over the features, the kernel values of all other
features are made once, and shared by the whole grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.inspection.explain.outputs import Outputs, as_dense, outputs_of
from mercer.inspection.rkhs import Function, functions_of
from mercer.kernels.terms import Term
from mercer.runtime import parameters
from mercer.runtime.optional import require
from mercer.runtime.parameters import integer
from mercer.samples.arrays import Floats, n_samples, row_blocks
from mercer.tables.axis import Axis
from mercer.tables.cells import cells_of
from mercer.tables.frame import part_of
from mercer.tables.unwrap import Asked, MixedColumns

if TYPE_CHECKING:
    from mercer.inspection.displays import PartialDependenceDisplay


def gradient_importance(model: Any, X: Any, sample_weight: ArrayLike | None = None) -> Floats:
    """How much f reacts to small changes of each feature; see the method of the machines."""
    machine = outputs_of(model)
    machine.expect_vectors("gradient_importance")
    if machine.asked.steps:
        raise ValueError(
            "a derivative is one along the machine's own features, and categories have none; use explain, or ask the "
            "machine: ask(model).machine.gradient_importance(ask(model).rows(X))"
        )
    rows = machine.rows(X)
    weights = parameters.weights("sample_weight", sample_weight, rows.shape[0])
    used = np.flatnonzero(weights)  # a kernel need not have a derivative where nobody asks
    found = functions_of(machine.model)
    functions: list[Function] = found if isinstance(found, list) else [found]
    total = np.zeros((rows.shape[1], len(functions)))
    most = max((n_samples(function.vectors) for function in functions), default=0)
    row_bytes = 8 * (rows.shape[1] + most)  # of the gradient, and of the values between rows and vectors
    for some in row_blocks(len(used), row_bytes):
        own = rows[used[some]]
        for k, function in enumerate(functions):
            total[:, k] += weights[used[some]] @ np.abs(function.gradient(own))
    total *= machine.factor
    return total[:, 0] if total.shape[1] == 1 else total


@dataclass(frozen=True, eq=False, repr=False)
class PartialDependence:
    """The mean of f over a grid.

    Attributes
    ----------
    features : tuple of int
        The columns, one or two.
    feature_names : tuple of str
        Their names.
    grid : tuple of arrays
        The values of each: numbers, or a table's dates or categories, None for a hole that is a category.
    average : array of shape (n_grid,) or (n_grid, n_grid_2)
        The mean of f; of several outputs with one more axis at the end.
    individual : array or None
        f of each sample, the samples in the first axis.
    output_names : tuple of str
        What each f is.
    function : str
        The name of f: "latent mean" of `GaussianProcessClassifier`, whose `decision_function` is something else; "f".
    """

    features: tuple[int, ...]
    feature_names: tuple[str, ...]
    grid: tuple[np.ndarray, ...]
    average: Floats
    individual: Floats | None
    output_names: tuple[str, ...]
    function: str = "f"

    def __repr__(self) -> str:
        along = [f"{name} at {len(g)} values" for name, g in zip(self.feature_names, self.grid, strict=True)]
        names = self.output_names
        outputs = f"{len(names)} outputs" if len(names) > 1 else f"output {names[0]}"
        return f"PartialDependence({', '.join(along)}, {outputs})"

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per point of the grid, and a column per feature and output."""
        pandas = require("pandas", "a frame of partial dependence")
        points = _points(self.grid)
        columns = dict(zip(self.feature_names, points, strict=True))
        table = self.average.reshape(len(points[0]), -1)
        return pandas.DataFrame(columns | dict(zip(self.output_names, table.T, strict=True)))

    def plot(self, *axes: Any, **options: Any) -> PartialDependenceDisplay:
        """The curve, or the map of two features; see `mercer.displays.PartialDependenceDisplay.plot`."""
        from mercer.inspection.displays import PartialDependenceDisplay

        return PartialDependenceDisplay(self).plot(*axes, **options)


def partial_dependence(
    model: Any,
    X: Any,
    features: Any,
    *,
    grid: Any = None,
    grid_resolution: int = 50,
    sample_weight: ArrayLike | None = None,
    individual: bool = False,
) -> PartialDependence:
    """The mean of f over samples in which one or two features are set; see the method of the machines."""
    machine = outputs_of(model)
    machine.expect_vectors("partial_dependence")
    integer("grid_resolution", grid_resolution, 2, "the number of values at which f is asked")
    names = machine.asked.names
    rows = machine.rows(X)
    columns = _columns(features, names)
    weights = parameters.weights("sample_weight", sample_weight, rows.shape[0])
    inner: tuple[int, ...] | None = columns
    if machine.asked.steps:
        values = _grid_of_table(grid, machine.asked, X, columns, grid_resolution)
        inner, points = _encoded_points(machine, X, columns, _points(values))
    else:
        values = _grid(grid, rows, columns, grid_resolution)
        points = np.stack(_points(values), axis=1)
    term = _only_term(machine) if inner is not None else None
    n, outputs, n_points = rows.shape[0], len(machine.names), math.prod(len(one) for one in values)
    total = np.zeros((n_points, outputs))
    curves = np.empty((n, n_points, outputs)) if individual else None
    # A block's kernel values, and its curves.
    for some in row_blocks(n, 8 * (n_points * outputs + machine.vectors.shape[0] + rows.shape[1])):
        own = as_dense(rows[some])
        if inner is None:
            block = _through_steps(machine, part_of(X, np.arange(n)[some]), columns, _points(values))
        else:
            block = np.full(1, np.nan) if term is None else _shared(machine, term, own, inner, points)
            if not np.isfinite(block).all():
                block = _values(machine, own, inner, points)
        total += np.tensordot(weights[some], block, axes=1)
        if curves is not None:
            curves[some] = block
    shape = (*(len(v) for v in values), *((outputs,) if outputs > 1 else ()))
    return PartialDependence(
        features=columns,
        feature_names=tuple(names[j] for j in columns),
        grid=values,
        average=total.reshape(shape),
        individual=None if curves is None else curves.reshape(n, *shape),
        output_names=machine.names,
        function=machine.function,
    )


def _points(grid: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """The coordinates of all points of a grid."""
    return [point.ravel() for point in np.meshgrid(*grid, indexing="ij")]


def _grid_of_table(
    grid: Any, asked: Asked, X: Any, columns: tuple[int, ...], resolution: int
) -> tuple[np.ndarray, ...]:
    """Cells of the user's columns."""
    axes = [asked.axis(X, j) for j in columns]
    if grid is None:
        return tuple(axis.at(axis.grid(resolution)) for axis in axes)
    return tuple(cells_of(np.asarray(cells)) for cells in _given_grid(grid, columns))


def _encoded_points(
    machine: Outputs, X: Any, columns: tuple[int, ...], points: list[np.ndarray]
) -> tuple[tuple[int, ...] | None, Any]:
    """The machine's features that belong to these columns, and what they are at the points.

    None where features are made of several columns, so that they cannot be set without looking at the others.
    """
    asked = machine.asked
    try:
        inner = np.flatnonzero(np.isin(asked.origins, columns))
    except MixedColumns:
        return None, None
    first = part_of(X, np.zeros(len(points[0]), dtype=np.intp))
    encoded = machine.rows(asked.with_cells(first, dict(zip(columns, points, strict=True))))
    return tuple(inner.tolist()), as_dense(encoded[:, inner])


def _through_steps(machine: Outputs, X: Any, columns: tuple[int, ...], points: list[np.ndarray]) -> Floats:
    """What `_values` computes, with everything before the machine asked again at every point."""
    asked, n = machine.asked, machine.rows(X).shape[0]
    out = np.empty((n, len(points[0]), len(machine.names)))
    for p in range(len(points[0])):
        cells = {j: np.full(n, column[p], dtype=column.dtype) for j, column in zip(columns, points, strict=True)}
        out[:, p] = machine.f(machine.rows(asked.with_cells(X, cells)))
    return out


def _values(machine: Outputs, rows: Floats, columns: tuple[int, ...], points: Floats) -> Floats:
    """f at every row with every point of the grid: rows × points × outputs."""
    out = np.empty((len(rows), len(points), len(machine.names)))
    changed = rows.copy()
    for p, point in enumerate(points):
        changed[:, columns] = point
        out[:, p] = machine.f(changed)
    return out


def _only_term(machine: Outputs) -> Term | None:
    """The kernel as one product of exponentials, if it is one."""
    terms = machine.kernel.terms(machine.vectors.shape[1])
    return terms[0] if terms is not None and len(terms) == 1 and len(terms[0].polynomial) == 1 else None


def _shared(machine: Outputs, term: Term, rows: Floats, columns: tuple[int, ...], points: Floats) -> Floats:
    """What `_values` computes, by K_rest (β ∘ k_j): a column that is 0 in both arguments has the factor 1.

    Not finite where one factor overflows and another is 0, though their product is neither.
    """
    rates = term.rates(rows.shape[1])[:, columns]
    changed = np.repeat(rows[:1], len(points), axis=0)
    changed[:, columns] = points
    machine.f(changed)  # refuses what prediction would
    constant = machine.f(rows[:1]) - machine.factor * (machine.kernel(rows[:1], machine.vectors) @ machine.coefficients)
    out = np.zeros((len(rows), len(points), len(machine.names)))
    emptied = rows.copy()
    emptied[:, columns] = 0.0
    ranges = row_blocks(machine.vectors.shape[0], 8 * len(points) * len(machine.names))
    for vectors, coefficients in machine.parts(ranges):
        of_points = np.ones((len(vectors), len(points)))
        for k, j in enumerate(columns):
            of_points *= _factor(rates[:, k], vectors[:, j, None], points[:, k])
        vectors[:, columns] = 0.0
        K = machine.kernel(emptied, vectors)
        with np.errstate(over="ignore", invalid="ignore"):
            table = (of_points[:, :, None] * coefficients[:, None, :]).reshape(len(vectors), -1)
            out += (K @ table).reshape(out.shape)
    return np.asarray(machine.factor * out + constant)


def _factor(rates: Floats, s: Floats, value: Floats) -> Floats:
    """k_j between a feature of the vectors and a value."""
    difference = value - s
    square = difference * difference
    total = value + s
    chi2 = np.divide(square, total, out=np.zeros_like(square), where=total > 0)
    exponent = -rates[0] * square - rates[1] * np.abs(difference) - rates[2] * chi2 + rates[3] * value * s
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(exponent))


def _columns(features: Any, names: list[str]) -> tuple[int, ...]:
    given = [features] if isinstance(features, str) or np.ndim(features) == 0 else list(features)
    if len(given) not in (1, 2):
        raise ValueError(f"features={features!r} must be one feature, or a pair of them")
    found = []
    for one in given:
        if isinstance(one, str):
            if one not in names:
                raise ValueError(f"there is no feature {one!r}; there are {', '.join(names[:20])}")
            found.append(names.index(one))
        else:
            j = integer("features", one, -len(names), f"X has {len(names)} columns")
            if j >= len(names):
                raise ValueError(f"there is no column {one}; X has {len(names)}, counted from 0")
            found.append(j % len(names))
    if len(set(found)) < len(found):
        raise ValueError(f"features={features!r} names one column twice")
    return tuple(found)


def _grid(grid: Any, rows: Any, columns: tuple[int, ...], resolution: int) -> tuple[Floats, ...]:
    if grid is None:
        return tuple(Axis.of("", as_dense(rows[:, [j]]).ravel()).grid(resolution) for j in columns)
    made = tuple(np.asarray(values, dtype=np.float64) for values in _given_grid(grid, columns))
    if not all(np.isfinite(values).all() for values in made):
        raise ValueError("the grid of a feature must be a one-dimensional array of finite numbers")
    return made


def _given_grid(grid: Any, columns: tuple[int, ...]) -> list[Any]:
    """The values of each column."""
    given = [grid] if len(columns) == 1 else list(grid)
    if len(given) != len(columns):
        raise ValueError("two features need a pair of grids, an array of values for each")
    if any(np.ndim(values) != 1 or not len(values) for values in given):
        raise ValueError("the grid of a feature must be a one-dimensional array of finite numbers")
    return given
