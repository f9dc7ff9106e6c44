"""Vectors chosen one by one, each the one that brings the span nearest to the functions: orthogonal matching pursuit.

With r_o = f_o − Pf_o, what the span of the vectors chosen so far lacks of output o, and δ(x) = ‖φ(x) − Pφ(x)‖²,
another vector x takes r_o(x)²/δ(x) off ‖r_o‖². A pivoted Cholesky factorisation of K brings both up to date.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.arrays import Floats, Indices, n_samples, take
from mercer.kernels import Kernel

# A candidate whose δ(x) has fallen to this share of k(x, x) lies in the span, as far as float64 can tell.
_DEPENDENT_SHARE = 1e-12


def chosen(
    kernel: Kernel,
    candidates: Any,
    values: Floats,
    squares: Floats,
    enough: Callable[[int, Floats], bool],
) -> Indices:
    """Places of the candidates that were chosen, in this order, until `enough` or until no other would help.

    Parameters
    ----------
    values : array of shape (candidates, outputs)
        f_o of each candidate, without b.
    squares : array of shape (outputs,)
        ‖f_o‖².
    enough : callable
        Told how many there are and what ‖r_o‖² is left of each output; it may raise to abandon the choice.
    """
    n = n_samples(candidates)
    diagonal = np.abs(kernel.diag(candidates))
    lack, residuals, left = diagonal.copy(), values.copy(), squares.copy()
    factor = np.zeros((n, min(n, 64)))
    order: list[int] = []
    open_ = diagonal > 0
    while len(order) < n and not enough(len(order), left):
        gains = np.where(open_, np.einsum("ij,ij->i", residuals, residuals), -1.0)
        gains[open_] /= lack[open_]
        best = int(np.argmax(gains))
        if not gains[best] > 0:
            break
        t = len(order)
        if t == factor.shape[1]:
            factor = np.concatenate([factor, np.zeros((n, min(t, n - t)))], axis=1)
        column = kernel(candidates, take(candidates, np.array([best])))[:, 0]
        column -= factor[:, :t] @ factor[best, :t]
        column /= np.sqrt(lack[best])
        step = residuals[best] / np.sqrt(lack[best])
        residuals -= np.outer(column, step)
        left = np.maximum(left - step**2, 0.0)
        lack = np.maximum(lack - column**2, 0.0)
        factor[:, t] = column
        order.append(best)
        open_ &= lack > _DEPENDENT_SHARE * diagonal
        open_[best] = False
    return np.array(order, dtype=np.intp)
