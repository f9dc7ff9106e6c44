"""Products with a symmetric block of K in float64, each value of which is computed once, for its row and its column."""

from __future__ import annotations

import numpy as np

from mercer import _core
from mercer.samples.arrays import Floats, Indices

# Rows of a block of sparse samples whose values are stored: 2 MB.
SQUARE_ROWS = 512


def square_sums(samples: _core.Samples, positions: Indices, coefficients: Floats) -> tuple[Floats, int]:
    """Return K @ coefficients between the samples at these positions, and the number of kernel values computed."""
    u, size, n = np.zeros(len(positions)), SQUARE_ROWS, len(positions)
    if samples.dense:
        samples.add_square(u, positions, coefficients)
        return u, n * (n + 1) // 2
    n_values = 0
    for left in range(0, n, size):
        block = slice(left, left + size)
        columns = samples.columns(positions[block])
        for top in range(0, left + size, size):
            others = slice(top, top + size)
            values = samples.block(positions[others], columns)
            u[others] += values @ coefficients[block]
            if top < left:
                u[block] += coefficients[others] @ values
            n_values += values.size
    return u, n_values
