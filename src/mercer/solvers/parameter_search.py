"""Gradient search for the parameters of a kernel, and for other positive numbers, that maximise a given function.

The search is by L-BFGS-B in the logarithms of the parameters. It may end at a local maximum, and never returns
parameters with a smaller value than the start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy import optimize
from sklearn.base import clone

from mercer.kernels.kernel import Kernel
from mercer.runtime.parameters import integer
from mercer.samples.arrays import Floats

# Function of a kernel and other numbers that returns the value to maximise and its derivatives by parameter name.
ValueAndDerivatives = Callable[[Kernel, dict[str, float]], tuple[float, Mapping[str, Any]]]
# Largest change of a parameter's logarithm: a factor of 10⁸, beyond which k is constant up to rounding.
_LARGEST_CHANGE = 8 * math.log(10.0)


def search_parameters(
    value: ValueAndDerivatives, kernel: Kernel, others: dict[str, float], names: Sequence[str] | None, max_iter: int
) -> tuple[Kernel, dict[str, float]]:
    """Return the kernel and the other numbers with the largest value that the search found.

    Only the parameters in `names` change; None means all positive numbers that have a derivative.
    """
    integer("max_iter", max_iter, 1, "the number of steps")
    start, slopes = value(kernel, others)
    all_numbers = {**kernel.get_params(), **others}
    searchable = [
        name
        for name in slopes
        if isinstance(all_numbers.get(name), Real) and not isinstance(all_numbers[name], bool) and all_numbers[name] > 0
    ]
    chosen_names = searchable if names is None else list(names)
    if not chosen_names or any(name not in searchable for name in chosen_names):
        raise ValueError(
            f"names={chosen_names!r} must be some of {searchable}, the parameters that are positive numbers"
        )

    def parameters_at(logs: Floats) -> tuple[Kernel, dict[str, float]]:
        values = dict(zip(chosen_names, np.exp(logs).tolist(), strict=True))
        numbers = {name: values.pop(name, number) for name, number in others.items()}
        return clone(kernel).set_params(**values), numbers

    best = (start, np.log([all_numbers[name] for name in chosen_names]))
    # The first step of L-BFGS-B is as long as the gradient: scale it to at most 1.
    unit = max(1.0, math.hypot(*(all_numbers[name] * slopes[name] for name in chosen_names)))

    def negative_value(logs: Floats) -> tuple[float, Floats]:
        nonlocal best
        try:
            current_value, gradient = value(*parameters_at(logs))
            if not math.isfinite(current_value):
                raise FloatingPointError("not finite")
        except (ValueError, FloatingPointError):  # a matrix that cannot be factored, or an overflow
            return 1e6 * (1.0 + abs(start)) / unit, np.zeros_like(logs)  # finite, or the line search would give up
        if current_value > best[0]:
            best = (current_value, logs.copy())
        return -current_value / unit, -np.exp(logs) * np.array([gradient[name] for name in chosen_names]) / unit

    limits = [(log - _LARGEST_CHANGE, log + _LARGEST_CHANGE) for log in best[1].tolist()]
    options: Any = {"maxiter": max_iter, "gtol": 1e-5 / unit}
    optimize.minimize(negative_value, best[1], jac=True, method="L-BFGS-B", bounds=limits, options=options)
    return (kernel, others) if best[0] <= start else parameters_at(best[1])
