"""The soft margin as the quadratic program in (c, ξ) that the representer theorem makes of it (Rosasco, Li).

    minimise  ½ c'Kc + Σ C_i ξ_i   subject to  y_i (Kc + b)_i ≥ 1 − ξ_i,  ξ ≥ 0

The solvers of mercer work on the dual, which has a variable per sample instead of two. This is for solvers of others,
and to see that the two values are equal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.arrays import Floats


class PrimalProgram(NamedTuple):
    """minimise ½x'Px + q'x  subject to  Gx ≤ h,  with x = (c, ξ, b), or (c, ξ) without a bias."""

    P: Floats
    q: Floats
    G: Floats
    h: Floats


def soft_margin_primal(K: Any, y: Any, C: Any, *, bias: bool = True) -> PrimalProgram:
    """The primal of the 1-norm soft margin as the matrices that every QP solver takes.

    Parameters
    ----------
    K : array of shape (n, n)
        The kernel matrix of the samples.
    y : array of n numbers
        The labels, -1 or +1.
    C : float or array of n numbers
        The price of slack.
    bias : bool, default=True
        Whether there is a free b.

    Examples
    --------
    >>> from mercer.problems.primal import soft_margin_primal
    >>> program = soft_margin_primal([[1.0, 0.5], [0.5, 1.0]], [1, -1], C=2.0)
    >>> program.q, program.G.shape
    (array([0., 0., 2., 2., 0.]), (4, 5))
    """
    values, signs = np.asarray(K, dtype=np.float64), np.asarray(y, dtype=np.float64)
    n = len(signs)
    if values.shape != (n, n) or not np.isin(signs, (-1.0, 1.0)).all():
        raise ValueError(
            f"K must be square with a row for each of the labels -1 and +1, but its shape is {values.shape}, and y has "
            f"{n} labels {np.unique(signs)[:5].tolist()}"
        )
    b = int(bias)
    P = np.zeros((2 * n + b, 2 * n + b))
    P[:n, :n] = values
    q = np.concatenate([np.zeros(n), np.broadcast_to(np.asarray(C, dtype=np.float64), n), np.zeros(b)])
    margins = np.hstack([-signs[:, None] * values, -np.eye(n), -signs[:, None][:, :b]])
    slacks = np.hstack([np.zeros((n, n)), -np.eye(n), np.zeros((n, b))])
    return PrimalProgram(P, q, np.vstack([margins, slacks]), np.concatenate([-np.ones(n), np.zeros(n)]))
