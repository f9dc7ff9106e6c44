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
from mercer.model_selection.parameter_keys import grouped, key_of_params
from mercer.samples.matrices import as_matrix
from mercer.tables.estimator import Tabular
from mercer.tables.target_scale import target_moments

# Parameters that change a problem but neither its samples nor its kernel. RISING and FALLING ones rise or fall with
# the penalty on errors.
RISING, FALLING = ("C",), ("theta", "lam")
PROBLEM_PARAMETERS = (*RISING, *FALLING, "epsilon", "nu", "delta")
# Parameters of a machine that only its kernel uses: samples and targets are read in the same way for all their values.
KERNEL_PARAMETERS = ("gamma", "degree", "coef0")
# C in factors of about 3: from almost constant f to almost no slack.
_CS = tuple(float(f"{value:.3g}") for value in np.logspace(-2, 3, 11))
# γ as multiples of gamma="scale": from a sixteenth to eight.
_WIDTHS = tuple(2.0**k for k in range(-4, 4))
# Quick grids have at most a fifth of the cells, which is enough to come near the best one, and wider Gaussians.
_QUICK_CS, _QUICK_WIDTHS = (0.1, 1.0, 10.0, 100.0), (1 / 32, 1 / 8, 1 / 2, 2.0)
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
    given = list(ParameterGrid(grid))
    names = {name: full_name(estimator, name) for point in given for name in point}
    points = [{names[name]: value for name, value in point.items()} for point in given]
    known, kernel = estimator.get_params(), f"{prefix_and_machine(estimator)[0]}kernel"
    has_kernels = any(kernel in point for point in points)  # their parameters are known only once they are set
    for name in sorted({name for point in points for name in point}):
        if name not in known and not has_kernels and not name.startswith(f"{kernel}__"):
            raise ValueError(
                f"grid names {name!r}, which is no parameter of {type(estimator).__name__}; its parameters are "
                f"{', '.join(sorted(known))}"
            )
    return points


def _is_list(values: Any) -> bool:
    """Return whether `values` is a nonempty list or array; each value may be a list or an array itself."""
    listed = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    return (listed or (isinstance(values, np.ndarray) and values.ndim == 1)) and len(values) > 0


def full_name(estimator: Any, name: str) -> str:
    """Return the name of a parameter for `set_params`.

    `gamma` stands for `kernel__gamma` of a kernel object, and parameters of a machine inside need no prefix.
    """
    known = estimator.get_params()
    prefix, machine = prefix_and_machine(estimator)
    if prefix and name not in known:
        return prefix + full_name(machine, name)
    kernel = getattr(estimator, "kernel", None)
    if isinstance(kernel, Kernel) and f"kernel__{name}" in known and name in KERNEL_PARAMETERS:
        return f"kernel__{name}"
    return name


def penalty_of(params: Mapping[str, Any], prefix: str = "") -> float:
    """Return C, −θ or −λ of a point, which order points by the penalty on errors; 0 if the grid has none of them."""
    for name, value in params.items():
        parameter = name.removeprefix(prefix)
        if parameter in (*RISING, *FALLING) and isinstance(value, Real):
            return float(value) if parameter in RISING else -float(value)
    return 0.0


def drop_parameters(names: Sequence[str], params: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return `params` without those named `prefix` + one of the `names`."""
    excluded = {prefix + name for name in names}
    return {name: value for name, value in params.items() if name not in excluded}


def by_kernel(points: Sequence[dict[str, Any]], prefix: str = "") -> list[list[int]]:
    """Return groups of points that differ only in `PROBLEM_PARAMETERS` and share a kernel, each in order of rising C.

    The group in the middle of the list of kernels comes first and those at its ends last: the best point is more often
    in the middle, and a good one that is known early lets others be skipped.
    """
    groups = grouped(key_of_params(drop_parameters(PROBLEM_PARAMETERS, params, prefix)) for params in points)
    ordered = []
    for group in groups:
        parts = grouped(key_of_params(drop_parameters((*RISING, *FALLING), points[k], prefix)) for k in group)
        rising = (sorted((group[k] for k in part), key=lambda k: penalty_of(points[k], prefix)) for part in parts)
        ordered.append([k for part in rising for k in part])
    middle = (len(ordered) - 1) / 2
    indices = sorted(range(len(ordered)), key=lambda k: abs(k - middle))
    return [ordered[k] for k in indices]


def default_grid(machine: Any, X: Any, y: Any, quick: bool = False) -> dict[str, list[Any]]:
    """Return values to try: γ around that of `gamma="scale"`, ε as shares of y's standard deviation, C and ν fixed."""
    grid: dict[str, list[Any]] = {}
    names = machine.get_params()
    widths = _QUICK_WIDTHS if quick else _WIDTHS
    if "C" in names:
        grid["C"] = list(_QUICK_CS if quick else _CS)
    if "nu" in names and "C" not in names:
        grid["nu"] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]
    if "epsilon" in names and y is not None:
        targets = np.asarray(y, dtype=np.float64)
        spread = target_moments(targets, np.ones(len(targets)))[1]
        grid["epsilon"] = [share * spread for share in ((0.1,) if quick else (0.01, 0.1, 0.3))]
    kernel = machine.kernel
    width = _scale_gamma(X)
    if kernel_accepts(kernel) == "vectors" and width is not None:
        if isinstance(kernel, Kernel) and "kernel__gamma" in names:
            grid["kernel__gamma"] = [width * factor for factor in widths]
        elif isinstance(kernel, str) and kernel in ("rbf", "laplacian", "poly", "sigmoid"):
            grid["gamma"] = [width * factor for factor in widths]
    return grid


def with_current_point(estimator: Any, points: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Append the estimator's current parameters as a point if the grid lacks them; return the points and its index."""
    known = estimator.get_params()
    current = {name: known[name] for name in points[0]}
    keys = [key_of_params(point) for point in (*points, current)]
    index = keys.index(keys[-1])
    return [*points, current][: max(len(points), index + 1)], index


def _scale_gamma(X: Any) -> float | None:
    """Return 1/(columns · variance of X), as `gamma="scale"` does; None if X is no matrix."""
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
        tried = {point[name] for point in points if name in point and _is_number(point[name])}
        if _is_number(value) and len(tried) > 2 and value in (min(tried), max(tried)):
            end = "smallest" if value == min(tried) else "largest"
            texts.append(f"{name}={value:.6g} is the {end} of {len(tried)} values")
    return texts


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
