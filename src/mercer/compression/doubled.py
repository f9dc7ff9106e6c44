"""c'Kc in twice the precision of float64, for kernels that the core knows by an inner product or a distance."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats, is_sparse
from mercer.kernels import Kernel

# Lengths of rows, as shares of the largest, and values of γ, beyond which products leave the range of float64.
_SHORTEST_ROW, _LARGEST_GAMMA = 2.0**-400, 2.0**900
# Rows that the core sums together, and kernel values of one call, which takes about a second at most.
_ROWS, _VALUES_PER_CALL = 64, 1 << 20


def has_doubled_values(kernel: Kernel, vectors: Any) -> bool:
    """Whether there is more than float64 for this kernel on these data."""
    recipe = kernel.recipe() if kernel.accepts == "vectors" and not kernel.given else None
    if recipe is None or recipe.factor is not None or recipe.normalise or is_sparse(vectors):
        return False
    whole = recipe.ending != "polynomial" or recipe.numbers[2] == int(recipe.numbers[2])
    return recipe.ending != "sigmoid" and whole


def doubled_squares(
    kernel: Kernel, vectors: Any, C: Floats, report: Callable[[float], None] = lambda share: None
) -> tuple[Floats, float]:
    """Σ_i Σ_j c_i c_j k(v_i, v_j) for each column c of C, rounded once, and a share of (Σ_i |c_i| √k(v_i, v_i))².

    What the sum errs by before that rounding is at most this share (src/core/gram/doubled_squares.hpp). Features are
    divided by a power of two that none exceeds, and γ multiplied instead: no square leaves the range of float64.
    """
    recipe, X = kernel.recipe(), np.asarray(vectors, dtype=np.float64)
    assert recipe is not None
    n, d = X.shape
    unit = 2.0 ** math.ceil(math.log2(float(np.abs(X).max(initial=0.0)) or 1.0))
    X, C = np.ascontiguousarray(X / unit), np.ascontiguousarray(C)
    gamma, coef0, degree = (*recipe.numbers, 0.0, 1.0)[:3] if recipe.ending == "polynomial" else (1.0, 0.0, 1.0)
    if recipe.inner != "dot":
        gamma = recipe.numbers[0]
    gamma *= unit * (1.0 if recipe.inner == "l1" else unit)
    longest = np.abs(X).max(axis=1, initial=0.0)
    short = recipe.inner == "dot" and bool((longest[longest > 0] < _SHORTEST_ROW).any())
    if short or not gamma < _LARGEST_GAMMA:
        raise FloatingPointError(
            f"the features' lengths, or γ times their squares, leave the range of float64 under {kernel!r}, so that "
            "‖w − w'‖ cannot be proven; scale the features"
        )
    parts: list[Floats] = []
    step = max(_ROWS, _VALUES_PER_CALL // n // _ROWS * _ROWS)
    for start in range(0, n, step):
        report((start / n) * (2 - start / n))
        kind = recipe.inner, gamma, coef0, int(degree), recipe.scale, recipe.constant
        shares = _core.doubled_squares(X, C, start, min(n, start + step), *kind, _core.get_num_threads())
        parts += [share.reshape(-1, C.shape[1]) for share in shares]
    squares = np.array([math.fsum(column) for column in np.concatenate(parts).T.tolist()])
    # Of a value as a share of √(k(x, x) k(z, z)), which is at least (γ|x||z| + coef0)ⁿ; and of the sums.
    if recipe.inner == "dot":
        value = degree * (d + 8) * 2.0**-101 + 2.0**-102
    else:
        value = 2.0**-98 + (d + 8) * 2.0**-102
    return squares, 1.01 * (value + (640 + n / 64) * 2.0**-104)
