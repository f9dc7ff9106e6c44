"""Dependence of f on its features: mean |∂f/∂x_j|, partial dependence, and individual (ICE) curves.

    pd(g) = Σ_i w_i f(x_i with x_ij = g)

For most kernels this is plain prediction at every grid point. If k is one product over the features, the kernel values
of all other features are computed once for the whole grid.
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
from mercer.tables.unwrap import MixedColumns, Unwrapped

if TYPE_CHECKING:
    from mercer.inspection.displays import PartialDependenceDisplay


def gradient_importance(model: Any, X: Any, sample_weight: ArrayLike | None = None) -> Floats:
    """Compute the mean of |∂f/∂x_j| over the rows of X for each feature j; see the method of the estimators."""
    machine = outputs_of(model)
    machine.expect_vectors("gradient_importance")
    if machine.unwrapped.steps:
        raise ValueError(
            "a derivative is taken along the features of the machine, and categories have none; use explain, or the "
            "machine itself: unwrap(model).machine.gradient_importance(unwrap(model).rows(X))"
        )
    rows = machine.rows(X)
    weights = parameters.weights("sample_weight", sample_weight, rows.shape[0])
    weighted_rows = np.flatnonzero(weights)  # a kernel may have no derivative at rows of weight 0
    result = functions_of(machine.model)
    functions: list[Function] = result if isinstance(result, list) else [result]
    total = np.zeros((rows.shape[1], len(functions)))
    largest = max((n_samples(function.vectors) for function in functions), default=0)
    row_bytes = 8 * (rows.shape[1] + largest)  # gradient, and kernel values between rows and vectors
    for span in row_blocks(len(weighted_rows), row_bytes):
        block = weighted_rows[span]
        for k, function in enumerate(functions):
            total[:, k] += weights[block] @ np.abs(function.gradient(rows[block]))
    total *= machine.factor
    return total[:, 0] if total.shape[1] == 1 else total


@dataclass(frozen=True, eq=False, repr=False)
class PartialDependence:
    """Partial dependence: the mean of f over samples in which one or two features are set to the values of a grid.

    Attributes
    ----------
    features : tuple of int
        Indices of the features, one or two.
    feature_names : tuple of str
        Names of the features.
    grid : tuple of arrays
        Grid values of each feature: numbers, or a table's dates or categories; None is the category of missing values.
    average : array of shape (n_grid,) or (n_grid, n_grid_2)
        Mean of f, with one more axis at the end if there are several outputs.
    individual : array or None
        f of each sample, with the samples on the first axis.
    output_names : tuple of str
        Name of each output.
    function : str
        Name of f: "latent mean" for `GaussianProcessClassifier`, whose `decision_function` is another function,
        otherwise "f".
    """

    features: tuple[int, ...]
    feature_names: tuple[str, ...]
    grid: tuple[np.ndarray, ...]
    average: Floats
    individual: Floats | None
    output_names: tuple[str, ...]
    function: str = "f"

    def __repr__(self) -> str:
        axes = [f"{name} at {len(g)} values" for name, g in zip(self.feature_names, self.grid, strict=True)]
        names = self.output_names
        outputs = f"{len(names)} outputs" if len(names) > 1 else f"output {names[0]}"
        return f"PartialDependence({', '.join(axes)}, {outputs})"

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row per grid point and a column per feature and output."""
        pandas = require("pandas", "a frame of partial dependence")
        points = _points(self.grid)
        columns = dict(zip(self.feature_names, points, strict=True))
        table = self.average.reshape(len(points[0]), -1)
        return pandas.DataFrame(columns | dict(zip(self.output_names, table.T, strict=True)))

    def plot(self, *axes: Any, **options: Any) -> PartialDependenceDisplay:
        """Plot the curve, or the map of two features; see `mercer.displays.PartialDependenceDisplay.plot`."""
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
    """Compute the mean of f over samples in which one or two features have grid values; see the estimators' method."""
    machine = outputs_of(model)
    machine.expect_vectors("partial_dependence")
    integer("grid_resolution", grid_resolution, 2, "the number of values at which f is evaluated")
    names = machine.unwrapped.names
    rows = machine.rows(X)
    columns = _columns(features, names)
    weights = parameters.weights("sample_weight", sample_weight, rows.shape[0])
    machine_columns: tuple[int, ...] | None = columns
    if machine.unwrapped.steps:
        values = _table_grid(grid, machine.unwrapped, X, columns, grid_resolution)
        machine_columns, points = _encoded_points(machine, X, columns, _points(values))
    else:
        values = _grid(grid, rows, columns, grid_resolution)
        points = np.stack(_points(values), axis=1)
    term = _only_term(machine) if machine_columns is not None else None
    n, outputs, n_points = rows.shape[0], len(machine.names), math.prod(len(column_values) for column_values in values)
    total = np.zeros((n_points, outputs))
    curves = np.empty((n, n_points, outputs)) if individual else None
    # A block of rows holds its kernel values and its curves in memory.
    for span in row_blocks(n, 8 * (n_points * outputs + machine.vectors.shape[0] + rows.shape[1])):
        block = as_dense(rows[span])
        if machine_columns is None:
            f = _values_by_steps(machine, part_of(X, np.arange(n)[span]), columns, _points(values))
        else:
            product = None if term is None else _values_of_product(machine, term, block, machine_columns, points)
            if product is not None and np.isfinite(product).all():
                f = product
            else:
                f = _values(machine, block, machine_columns, points)
        total += np.tensordot(weights[span], f, axes=1)
        if curves is not None:
            curves[span] = f
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
    """Return the coordinates of all points of a grid, one array for each feature."""
    return [point.ravel() for point in np.meshgrid(*grid, indexing="ij")]


def _table_grid(
    grid: Any, unwrapped: Unwrapped, X: Any, columns: tuple[int, ...], resolution: int
) -> tuple[np.ndarray, ...]:
    """Return the grid values of columns of a table, as cells."""
    axes = [unwrapped.axis(X, j) for j in columns]
    if grid is None:
        return tuple(axis.at(axis.grid(resolution)) for axis in axes)
    return tuple(cells_of(np.asarray(cells)) for cells in _given_grid(grid, columns))


def _encoded_points(
    machine: Outputs, X: Any, columns: tuple[int, ...], points: list[np.ndarray]
) -> tuple[tuple[int, ...] | None, Any]:
    """Return the machine's features that come from these columns, and their values at the points.

    Both results are None if a feature is computed from several columns, and so depends on columns that are not set.
    """
    unwrapped = machine.unwrapped
    try:
        machine_columns = np.flatnonzero(np.isin(unwrapped.origins, columns))
    except MixedColumns:
        return None, None
    first = part_of(X, np.zeros(len(points[0]), dtype=np.intp))
    encoded_points = machine.rows(unwrapped.with_cells(first, dict(zip(columns, points, strict=True))))
    return tuple(machine_columns.tolist()), as_dense(encoded_points[:, machine_columns])


def _values_by_steps(machine: Outputs, X: Any, columns: tuple[int, ...], points: list[np.ndarray]) -> Floats:
    """Compute `_values` by transforming all rows again at each point, with every step before the machine."""
    unwrapped, n = machine.unwrapped, machine.rows(X).shape[0]
    out = np.empty((n, len(points[0]), len(machine.names)))
    for p in range(len(points[0])):
        cells = {j: np.full(n, column[p], dtype=column.dtype) for j, column in zip(columns, points, strict=True)}
        out[:, p] = machine.f(machine.rows(unwrapped.with_cells(X, cells)))
    return out


def _values(machine: Outputs, rows: Floats, columns: tuple[int, ...], points: Floats) -> Floats:
    """Evaluate f at every row with every grid point: rows × points × outputs."""
    out = np.empty((len(rows), len(points), len(machine.names)))
    changed_rows = rows.copy()
    for p, point in enumerate(points):
        changed_rows[:, columns] = point
        out[:, p] = machine.f(changed_rows)
    return out


def _only_term(machine: Outputs) -> Term | None:
    """Return the kernel as one product of exponentials over the features; None if it is not such a product."""
    terms = machine.kernel.terms(machine.vectors.shape[1])
    return terms[0] if terms is not None and len(terms) == 1 and len(terms[0].polynomial) == 1 else None


def _values_of_product(machine: Outputs, term: Term, rows: Floats, columns: tuple[int, ...], points: Floats) -> Floats:
    """Compute `_values` as K_rest (β ∘ k_j), with the same kernel values K_rest of all other features at every point.

    In K_rest the columns j are 0 in both arguments, so that their factor is 1.

    The result is not finite if one factor overflows and another underflows to 0, even if their product would be finite.
    """
    rates = term.rates(rows.shape[1])[:, columns]
    changed = np.repeat(rows[:1], len(points), axis=0)
    changed[:, columns] = points
    machine.f(changed)  # raises the errors of prediction
    constant = machine.f(rows[:1]) - machine.factor * (machine.kernel(rows[:1], machine.vectors) @ machine.coefficients)
    out = np.zeros((len(rows), len(points), len(machine.names)))
    rows_rest = rows.copy()
    rows_rest[:, columns] = 0.0
    ranges = row_blocks(machine.vectors.shape[0], 8 * len(points) * len(machine.names))
    for vectors, coefficients in machine.vector_blocks(ranges):
        point_factors = np.ones((len(vectors), len(points)))
        for k, j in enumerate(columns):
            point_factors *= _factor(rates[:, k], vectors[:, j, None], points[:, k])
        vectors[:, columns] = 0.0
        K = machine.kernel(rows_rest, vectors)
        with np.errstate(over="ignore", invalid="ignore"):
            table = (point_factors[:, :, None] * coefficients[:, None, :]).reshape(len(vectors), -1)
            out += (K @ table).reshape(out.shape)
    return np.asarray(machine.factor * out + constant)


def _factor(rates: Floats, feature: Floats, value: Floats) -> Floats:
    """Return the kernel factor k_j between a feature of the vectors and a value."""
    difference = value - feature
    square = difference * difference
    total = value + feature
    chi2 = np.divide(square, total, out=np.zeros_like(square), where=total > 0)
    exponent = -rates[0] * square - rates[1] * np.abs(difference) - rates[2] * chi2 + rates[3] * value * feature
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(exponent))


def _columns(features: Any, names: list[str]) -> tuple[int, ...]:
    """Return the indices of one or two columns, given by index or name."""
    chosen_columns = [features] if isinstance(features, str) or np.ndim(features) == 0 else list(features)
    if len(chosen_columns) not in (1, 2):
        raise ValueError(f"features={features!r} must be one feature or a pair of features")
    columns = []
    for column in chosen_columns:
        if isinstance(column, str):
            if column not in names:
                raise ValueError(f"there is no feature {column!r}; the features are {', '.join(names[:20])}")
            columns.append(names.index(column))
        else:
            j = integer("features", column, -len(names), f"X has {len(names)} columns")
            if j >= len(names):
                raise ValueError(f"there is no column {column}; X has {len(names)}, counted from 0")
            columns.append(j % len(names))
    if len(set(columns)) < len(columns):
        raise ValueError(f"features={features!r} names one column twice")
    return tuple(columns)


def _grid(grid: Any, rows: Any, columns: tuple[int, ...], resolution: int) -> tuple[Floats, ...]:
    """Return the grid values of columns of numbers, by default spread over the values in `rows`."""
    if grid is None:
        return tuple(Axis.of("", as_dense(rows[:, [j]]).ravel()).grid(resolution) for j in columns)
    checked_grid = tuple(np.asarray(values, dtype=np.float64) for values in _given_grid(grid, columns))
    if not all(np.isfinite(values).all() for values in checked_grid):
        raise ValueError("the grid of a feature must be a one-dimensional array of finite numbers")
    return checked_grid


def _given_grid(grid: Any, columns: tuple[int, ...]) -> list[Any]:
    """Return the grid values of each column, one-dimensional."""
    grids = [grid] if len(columns) == 1 else list(grid)
    if len(grids) != len(columns):
        raise ValueError("two features need two grids: an array of values for each")
    if any(np.ndim(values) != 1 or not len(values) for values in grids):
        raise ValueError("the grid of a feature must be a one-dimensional array of finite numbers")
    return grids
