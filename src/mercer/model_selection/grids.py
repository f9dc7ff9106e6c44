"""Parameter grids: names of parameters, groups of points that share a kernel, default grids, and edges of a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline

from mercer.kernels import Kernel
from mercer.kernels.bandwidth import gamma_from_variance
from mercer.kernels.names import kernel_accepts
from mercer.model_selection.parameter_keys import group_equal_keys, key_of_params
from mercer.samples.matrices import as_matrix
from mercer.tables.estimator import Tabular
from mercer.tables.target_scale import target_moments

# Parameters that change a problem but neither its samples nor its kernel. Those in RISING grow with the penalty on
# errors, those in FALLING shrink as it grows.
RISING, FALLING = ("C",), ("theta", "lam")
PROBLEM_PARAMETERS = (*RISING, *FALLING, "epsilon", "nu", "delta")
# Parameters of a machine that only its kernel uses: samples and targets are read in the same way for all their values.
KERNEL_PARAMETERS = ("gamma", "degree", "coef0")
# C in factors of about 3: from almost constant f to almost no slack.
_CS = tuple(float(f"{value:.3g}") for value in np.logspace(-2, 3, 11))
# Factors by which the γ of gamma="scale" is multiplied: from 1/16 to 8.
_GAMMA_FACTORS = tuple(2.0**k for k in range(-4, 4))
# Quick grids have at most a fifth of the cells, which is enough to come near the best one, and wider Gaussians.
_QUICK_CS, _QUICK_GAMMA_FACTORS = (0.1, 1.0, 10.0, 100.0), (1 / 32, 1 / 8, 1 / 2, 2.0)
QUICK = "quick"


def prefix_and_machine(estimator: Any) -> tuple[str, Any]:
    """Return the prefix of the machine's parameters in a Pipeline or Tabular, and the machine."""
    prefix = ""
    while isinstance(estimator, Pipeline | Tabular):
        name, estimator = estimator.steps[-1] if isinstance(estimator, Pipeline) else ("estimator", estimator.estimator)
        prefix += f"{name}__"
    return prefix, estimator


def estimator_at(estimator: Any, params: Mapping[str, Any]) -> Any:
    """Return a copy of the estimator with these parameters; steps and kernels among them are copied too."""
    return clone(estimator).set_params(**{name: clone(value, safe=False) for name, value in params.items()})


def grid_points(estimator: Any, grid: Any) -> list[dict[str, Any]]:
    """Return every point of a grid, with the names that `set_params` takes."""
    if not isinstance(grid, Mapping) and not (isinstance(grid, Sequence) and grid and not isinstance(grid, str)):
        raise TypeError(f"grid={grid!r} must be a dictionary from parameters to values, or a list of such dictionaries")
    for part in [grid] if isinstance(grid, Mapping) else grid:
        if not part or not all(map(_is_list, part.values())):
            raise ValueError(f"grid={grid!r} must have a list of at least one value for each parameter")
    user_points = list(ParameterGrid(grid))
    full_names = {name: full_name(estimator, name) for point in user_points for name in point}
    points = [{full_names[name]: value for name, value in point.items()} for point in user_points]
    parameters, kernel = estimator.get_params(), f"{prefix_and_machine(estimator)[0]}kernel"
    has_kernels = any(kernel in point for point in points)  # a kernel's parameters are known only once it is set
    for name in sorted({name for point in points for name in point}):
        if name not in parameters and not has_kernels and not name.startswith(f"{kernel}__"):
            raise ValueError(
                f"grid names {name!r}, which is no parameter of {type(estimator).__name__}; its parameters are "
                f"{', '.join(sorted(parameters))}"
            )
    return points


def _is_list(values: Any) -> bool:
    """Return whether `values` is a nonempty list or array; each value may be a list or an array itself."""
    is_sequence = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    return (is_sequence or (isinstance(values, np.ndarray) and values.ndim == 1)) and len(values) > 0


def full_name(estimator: Any, name: str) -> str:
    """Return the name that `set_params` takes for a parameter of a grid.

    `gamma` stands for `kernel__gamma` of a kernel object, and parameters of the machine inside a Pipeline or Tabular
    need no prefix.
    """
    parameters = estimator.get_params()
    prefix, machine = prefix_and_machine(estimator)
    if prefix and name not in parameters:
        return prefix + full_name(machine, name)
    kernel = getattr(estimator, "kernel", None)
    if isinstance(kernel, Kernel) and f"kernel__{name}" in parameters and name in KERNEL_PARAMETERS:
        return f"kernel__{name}"
    return name


def penalty_of(params: Mapping[str, Any], prefix: str = "") -> float:
    """Return C, −θ or −λ of a point, which grows with the penalty on errors; 0 if the point has none of them."""
    for name, value in params.items():
        parameter = name.removeprefix(prefix)
        if parameter in (*RISING, *FALLING) and isinstance(value, Real):
            return float(value) if parameter in RISING else -float(value)
    return 0.0


def drop_parameters(names: Sequence[str], params: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return `params` without those named `prefix` + one of the `names`."""
    dropped_names = {prefix + name for name in names}
    return {name: value for name, value in params.items() if name not in dropped_names}


def group_points_by_kernel(points: Sequence[dict[str, Any]], prefix: str = "") -> list[list[int]]:
    """Group the indices of points that differ only in `PROBLEM_PARAMETERS`, and sort each group by rising C.

    Groups in the middle of the list of kernels come first: they have the best point more often, and a good score that
    is known early lets other points be skipped.
    """
    groups = group_equal_keys(key_of_params(drop_parameters(PROBLEM_PARAMETERS, params, prefix)) for params in points)
    ordered = []
    for group in groups:
        parts = group_equal_keys(key_of_params(drop_parameters((*RISING, *FALLING), points[k], prefix)) for k in group)
        sorted_parts = (sorted((group[k] for k in part), key=lambda k: penalty_of(points[k], prefix)) for part in parts)
        ordered.append([k for part in sorted_parts for k in part])
    middle = (len(ordered) - 1) / 2
    indices = sorted(range(len(ordered)), key=lambda k: abs(k - middle))
    return [ordered[k] for k in indices]


def default_grid(machine: Any, X: Any, y: Any, quick: bool = False) -> dict[str, list[Any]]:
    """Return lists of values by parameter: multiples of the γ of `gamma="scale"` for γ, shares of the standard
    deviation of y for ε, and fixed values for C and ν.
    """
    grid: dict[str, list[Any]] = {}
    names = machine.get_params()
    factors = _QUICK_GAMMA_FACTORS if quick else _GAMMA_FACTORS
    if "C" in names:
        grid["C"] = list(_QUICK_CS if quick else _CS)
    if "nu" in names and "C" not in names:
        grid["nu"] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]
    if "epsilon" in names and y is not None:
        targets = np.asarray(y, dtype=np.float64)
        spread = target_moments(targets, np.ones(len(targets)))[1]
        grid["epsilon"] = [share * spread for share in ((0.1,) if quick else (0.01, 0.1, 0.3))]
    kernel = machine.kernel
    gamma = _scale_gamma(X)
    if kernel_accepts(kernel) == "vectors" and gamma is not None:
        if isinstance(kernel, Kernel) and "kernel__gamma" in names:
            grid["kernel__gamma"] = [gamma * factor for factor in factors]
        elif isinstance(kernel, str) and kernel in ("rbf", "laplacian", "poly", "sigmoid"):
            grid["gamma"] = [gamma * factor for factor in factors]
    return grid


def with_current_point(estimator: Any, points: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Append the estimator's current parameters as a point if the grid lacks them; return the points and its index."""
    parameters = estimator.get_params()
    current = {name: parameters[name] for name in points[0]}
    keys = [key_of_params(point) for point in (*points, current)]
    index = keys.index(keys[-1])
    return [*points, current][: max(len(points), index + 1)], index


def _scale_gamma(X: Any) -> float | None:
    """Return 1/(columns · variance of X), as `gamma="scale"` does; None if X is not a matrix."""
    if not hasattr(X, "shape") or len(X.shape) != 2 or X.shape[1] == 0:
        return None
    try:
        return gamma_from_variance(as_matrix(X), np.ones(X.shape[0]))
    except (TypeError, ValueError):
        return None


def describe_edges(points: Sequence[Mapping[str, Any]], best: Mapping[str, Any]) -> list[str]:
    """Describe each parameter whose best value is the smallest or largest of at least three numbers in the grid."""
    texts = []
    for name, value in best.items():
        tried_values = {point[name] for point in points if name in point and _is_number(point[name])}
        if _is_number(value) and len(tried_values) > 2 and value in (min(tried_values), max(tried_values)):
            end = "smallest" if value == min(tried_values) else "largest"
            texts.append(f"{name}={value:.6g} is the {end} of {len(tried_values)} values")
    return texts


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
