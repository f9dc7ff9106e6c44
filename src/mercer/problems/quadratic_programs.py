"""The soft and the hard margin as matrices for any quadratic programming solver (Igel, Rosasco, Li).

    primal   minimise ½ c'Kc + Σ C_i ξ_i     subject to  y_i (Kc + b)_i ≥ 1 − ξ_i,  ξ ≥ 0
    dual     minimise ½ β'Kβ − y'β           subject to  0 ≤ y_iβ_i ≤ C_i,  Σβ = 0

The variables of the primal are the coefficients of f = Σ c_j k(x_j, ·), the form that the representer theorem gives; at
the optimum c = β, and the primal value is minus the dual one. A sample with C_i = inf has no ξ_i, and no upper bound on
y_iβ_i.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.problems.classification import soft_margin
from mercer.problems.dual_problem import QuadraticProgram
from mercer.samples.arrays import Floats
from mercer.samples.labels import read_signs


class PrimalProgram(NamedTuple):
    """The program: minimise ½x'Px + q'x subject to Gx ≤ h, with x = (c, ξ, b); ξ or b is absent if there is none."""

    P: Floats
    q: Floats
    G: Floats
    h: Floats


def soft_margin_primal(K: Any, y: Any, *, C: Any = 1.0, bias: bool = True) -> PrimalProgram:
    """Return the primal of the 1-norm soft margin as the matrices that every QP solver takes.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel matrix of the samples.
    y : array of n labels
        Labels of two classes; the larger label is the positive one, as in `SVC`.
    C : float or array of n numbers, default=1.0
        Penalty on the slack. A sample with C = inf, the hard margin, has no slack.
    bias : bool, default=True
        Whether there is a free b.

    Returns
    -------
    PrimalProgram
        The matrices P, q, G and h.

    Examples
    --------
    >>> from mercer.notes.teaching import soft_margin_primal
    >>> program = soft_margin_primal([[1.0, 0.5], [0.5, 1.0]], [1, -1], C=2.0)
    >>> program.q, program.G.shape
    (array([0., 0., 2., 2., 0.]), (4, 5))
    >>> soft_margin_primal([[1.0, 0.5], [0.5, 1.0]], [1, -1], C=float("inf")).G.shape  # (c, b)
    (2, 3)
    """
    values, signs, penalties = _read(K, y, C)
    n, b, slack = len(signs), int(bias), np.flatnonzero(np.isfinite(penalties))
    m = len(slack)
    P = np.zeros((n + m + b, n + m + b))
    P[:n, :n] = values
    q = np.concatenate([np.zeros(n), penalties[slack], np.zeros(b)])
    margins = np.hstack([-signs[:, None] * values, -np.eye(n)[:, slack], -signs[:, None][:, :b]])
    slacks = np.hstack([np.zeros((m, n)), -np.eye(m), np.zeros((m, b))])
    return PrimalProgram(P, q, np.vstack([margins, slacks]), np.concatenate([-np.ones(n), np.zeros(m)]))


def soft_margin_dual(K: Any, y: Any, *, C: Any = 1.0, bias: bool = True) -> QuadraticProgram:
    """Return the dual of the 1-norm soft margin, in β_i = y_iα_i, as the matrices that every QP solver takes.

    Parameters
    ----------
    K, y, C : array of shape (n, n), array of n labels, number or array of n
        Kernel matrix, labels and penalty, as for `soft_margin_primal`.
    bias : bool, default=True
        Whether there is a free b, and with it the equality Σβ = 0.

    Returns
    -------
    QuadraticProgram
        The matrices P, q, A and totals, and the bounds lower and upper.

    Examples
    --------
    >>> from mercer.notes.teaching import soft_margin_dual
    >>> program = soft_margin_dual([[1.0, 0.5], [0.5, 1.0]], ["yes", "no"], C=2.0)
    >>> program.q, program.A, program.lower, program.upper
    (array([-1.,  1.]), array([[1., 1.]]), array([ 0., -2.]), array([2., 0.]))
    """
    values, signs, penalties = _read(K, y, C)
    problem = soft_margin(signs, penalties)
    return (problem if bias else problem.without_bias()).matrices(values)


def _read(K: Any, y: Any, C: Any) -> tuple[Floats, Floats, Floats]:
    """Return K, the labels as ±1 and the penalty of each sample, as arrays; raise ValueError if they do not fit."""
    values, signs = np.asarray(K, dtype=np.float64), read_signs(y)
    n = len(signs)
    if values.shape != (n, n):
        raise ValueError(f"K must be square with a row for each of the {n} labels, but its shape is {values.shape}")
    penalties = np.asarray(C, dtype=np.float64)
    if penalties.shape not in ((), (n,)) or not (penalties > 0).all():
        raise ValueError(f"C={C!r} must be a number above 0, or one for each of the {n} samples")
    return values, signs, np.broadcast_to(penalties, n).copy()
