"""Gradient importance: the mean of |∂f/∂x_j| over samples, from the derivatives of the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import parameters
from mercer.arrays import Floats, n_samples, row_blocks
from mercer.explain.outputs import outputs_of
from mercer.rkhs import Function, functions_of


def gradient_importance(model: Any, X: Any, sample_weight: Any = None) -> Floats:
    """How much f reacts to small changes of each feature; see the method of the machines."""
    machine = outputs_of(model)
    machine.expect_vectors("gradient_importance")
    rows = machine.rows(X)
    weights = parameters.weights("sample_weight", sample_weight, rows.shape[0])
    used = np.flatnonzero(weights)  # a kernel need not have a derivative where nobody asks
    found = functions_of(model)
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
