"""The points of a grid: their names, which of them share a kernel, grids made for the data, and the edge of a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline

from mercer.kernels import Kernel
from mercer.kernels.bandwidth import from_variance
from mercer.kernels.names import kernel_accepts
from mercer.model_selection.parameter_keys import grouped, key_of_params
from mercer.samples.matrices import as_matrix
from mercer.tables.estimator import Tabular

# Parameters that change a problem, but neither its samples nor its kernel: first those that grow with the price of
# errors, and those that fall with it.
RISING, FALLING = ("C",), ("theta", "lam")
PRICES = (*RISING, *FALLING, "epsilon", "nu", "delta")
# Parameters of a machine that only its kernel reads: neither samples nor targets are read differently because of them.
OF_KERNELS = ("gamma", "degree", "coef0")
# C from almost no influence of any sample to almost none of its price, in factors of about 3.
_CS = tuple(float(f"{value:.3g}") for value in np.logspace(-2, 3, 11))
# Gaussians from four times wider to eight times narrower than 1/(2γ) = the mean squared distance of the samples.
_WIDTHS = tuple(2.0**k for k in range(-4, 4))
# A fifth of the cells, or less: enough to be near the best of them, and a look at wider Gaussians.
_QUICK_CS, _QUICK_WIDTHS = (0.1, 1.0, 10.0, 100.0), (1 / 32, 1 / 8, 1 / 2, 2.0)
QUICK = "quick"


def prefix_and_machine(estimator: Any) -> tuple[str, Any]:
    """The machine that learns from what the other steps of a Pipeline, or a Tabular, make; and its names' prefix."""
    prefix = ""
    while isinstance(estimator, Pipeline | Tabular):
        name, estimator = estimator.steps[-1] if isinstance(estimator, Pipeline) else ("estimator", estimator.estimator)
        prefix += f"{name}__"
    return prefix, estimator


def made(estimator: Any, params: Mapping[str, Any]) -> Any:
    """A copy of the estimator at a point of the grid; steps and kernels in the grid are copied, and stay unfitted."""
    return clone(estimator).set_params(**{name: clone(value, safe=False) for name, value in params.items()})


def points_of(estimator: Any, grid: Any) -> list[dict[str, Any]]:
    """Every point of a grid, with the names that `set_params` takes."""
    if not isinstance(grid, Mapping) and not (isinstance(grid, Sequence) and grid and not isinstance(grid, str)):
        raise TypeError(f"grid={grid!r} must be a dictionary from parameters to values, or a list of such dictionaries")
    for part in [grid] if isinstance(grid, Mapping) else grid:
        if not part or not all(map(_is_list, part.values())):
            raise ValueError(f"grid={grid!r} must give a list of values, not an empty one, for each parameter")
    points = list(ParameterGrid(grid))
    names = {name: full_name(estimator, name) for point in points for name in point}
    found = [{names[name]: value for name, value in point.items()} for point in points]
    known, kernel = estimator.get_params(), f"{prefix_and_machine(estimator)[0]}kernel"
    of_kernels = any(kernel in point for point in found)  # whose parameters are not known before it is set
    for name in sorted({name for point in found for name in point}):
        if name not in known and not of_kernels and not name.startswith(f"{kernel}__"):
            raise ValueError(
                f"grid names {name!r}, which is no parameter of {type(estimator).__name__}; it has "
                f"{', '.join(sorted(known))}"
            )
    return found


def _is_list(values: Any) -> bool:
    """Whether there are values to try, each of which may be a list or an array itself."""
    listed = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    return (listed or (isinstance(values, np.ndarray) and values.ndim == 1)) and len(values) > 0


def full_name(estimator: Any, name: str) -> str:
    """`gamma` of a kernel object is `kernel__gamma`, and names of the machine behind other steps need no prefix."""
    known = estimator.get_params()
    prefix, machine = prefix_and_machine(estimator)
    if prefix and name not in known:
        return prefix + full_name(machine, name)
    kernel = getattr(estimator, "kernel", None)
    if isinstance(kernel, Kernel) and f"kernel__{name}" in known and name in OF_KERNELS:
        return f"kernel__{name}"
    return name


def price_of(params: Mapping[str, Any], prefix: str = "") -> float:
    """A number that grows with the price of errors, for the order of fits and for ties; 0 where none is searched."""
    for name, value in params.items():
        own = name.removeprefix(prefix)
        if own in (*RISING, *FALLING) and isinstance(value, Real):
            return float(value) if own in RISING else -float(value)
    return 0.0


def without(names: Sequence[str], params: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The parameters but for those of the machine that have these names; other steps may have such names too."""
    left_out = {prefix + name for name in names}
    return {name: value for name, value in params.items() if name not in left_out}


def by_kernel(points: Sequence[dict[str, Any]], prefix: str = "") -> list[list[int]]:
    """The points that share a kernel, and with it everything but prices: group by group, each from the lowest price up.

    The group in the middle of a list of kernels comes first and the ends last: the best point is more often in the
    middle, and a good one that is known early lets others be skipped.
    """
    groups = grouped(key_of_params(without(PRICES, params, prefix)) for params in points)
    ordered = []
    for group in groups:
        parts = grouped(key_of_params(without((*RISING, *FALLING), points[k], prefix)) for k in group)
        rising = (sorted((group[k] for k in part), key=lambda k: price_of(points[k], prefix)) for part in parts)
        ordered.append([k for part in rising for k in part])
    middle = (len(ordered) - 1) / 2
    places = sorted(range(len(ordered)), key=lambda k: abs(k - middle))
    return [ordered[k] for k in places]


def default_grid(machine: Any, X: Any, y: Any, quick: bool = False) -> dict[str, list[Any]]:
    """Values to try, in the units of the data: γ around that of `gamma="scale"`, ε as shares of y's deviation."""
    grid: dict[str, list[Any]] = {}
    names = machine.get_params()
    widths = _QUICK_WIDTHS if quick else _WIDTHS
    if "C" in names:
        grid["C"] = list(_QUICK_CS if quick else _CS)
    if "nu" in names and "C" not in names:
        grid["nu"] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]
    if "epsilon" in names and y is not None:
        spread = float(np.std(np.asarray(y, dtype=np.float64)))
        grid["epsilon"] = [share * (spread or 1.0) for share in ((0.1,) if quick else (0.01, 0.1, 0.3))]
    kernel = machine.kernel
    width = _scale_gamma(X)
    if kernel_accepts(kernel) == "vectors" and width is not None:
        if isinstance(kernel, Kernel) and "kernel__gamma" in names:
            grid["kernel__gamma"] = [width * factor for factor in widths]
        elif isinstance(kernel, str) and kernel in ("rbf", "laplacian", "poly", "sigmoid"):
            grid["gamma"] = [width * factor for factor in widths]
    return grid


def with_own(estimator: Any, points: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """The points and, among or behind them, the one with the estimator's own parameters; and its place."""
    known = estimator.get_params()
    own = {name: known[name] for name in points[0]}
    keys = [key_of_params(point) for point in (*points, own)]
    place = keys.index(keys[-1])
    return [*points, own][: max(len(points), place + 1)], place


def _scale_gamma(X: Any) -> float | None:
    """1/(columns · variance of X), as `gamma="scale"` has it."""
    if not hasattr(X, "shape") or len(X.shape) != 2 or X.shape[1] == 0:
        return None
    try:
        return from_variance(as_matrix(X), np.ones(X.shape[0]))
    except (TypeError, ValueError):
        return None


def edges_of(points: Sequence[Mapping[str, Any]], best: Mapping[str, Any]) -> list[str]:
    """The parameters whose best value is the smallest or the largest of at least three numbers that were tried."""
    found = []
    for name, value in best.items():
        tried = {point[name] for point in points if name in point and _is_number(point[name])}
        if _is_number(value) and len(tried) > 2 and value in (min(tried), max(tried)):
            end = "smallest" if value == min(tried) else "largest"
            found.append(f"{name}={value:.6g} is the {end} of the {len(tried)} values that were tried")
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
