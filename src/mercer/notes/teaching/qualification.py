"""Constraint qualifications from the gradients of the active constraints (Igel, lemma 3.1)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from mercer.samples.arrays import Floats

# Singular values of rows of length 1, and rates of descent, that count as 0.
_DEPENDENT_VALUE, _NO_DESCENT = 1e-10, 1e-9


class ConstraintQualification(NamedTuple):
    """Independence of all gradients (a bool), and a v with ⟨∇h_i, v⟩ = 0 and ⟨∇g_j, v⟩ < 0, None if none is found."""

    kuhn_tucker: bool
    direction: Floats | None


def constraint_qualification(
    inequalities: ArrayLike, *, equalities: ArrayLike | None = None
) -> ConstraintQualification:
    """Check constraint qualifications at a point from the gradients of the constraints (Igel, lemma 3.1).

    Parameters
    ----------
    inequalities : array of shape (n_active, d)
        Gradients of the inequality constraints g_j ≤ 0 that are active, g_j(x) = 0. For `soft_margin_primal` they are
        the rows of G with Gx = h.
    equalities : array of shape (n_equalities, d), optional
        Gradients of the equality constraints h_i = 0.

    Returns
    -------
    ConstraintQualification
        `kuhn_tucker`, True if all gradients are linearly independent; and `direction`, a v with ⟨∇h_i, v⟩ = 0 and
        ⟨∇g_j, v⟩ < 0 for all i and j, or None if there is none or the ∇h_i are dependent. The Mangasarian–Fromowitz
        qualification holds if there is a direction; `kuhn_tucker` implies it.

    Examples
    --------
    >>> from mercer.notes.teaching import constraint_qualification
    >>> constraint_qualification([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])  # three gradients in the plane
    ConstraintQualification(kuhn_tucker=False, direction=array([-1., -1.]))
    >>> constraint_qualification([[1.0, 0.0], [-1.0, 0.0]]).direction is None  # x ≤ 0 and x ≥ 0
    True
    """
    g = _unit_rows("inequalities", inequalities)
    h = g[:0] if equalities is None else _unit_rows("equalities", equalities)
    d = g.shape[1]
    if h.shape[1] != d:
        raise ValueError(f"inequalities have {d} columns and equalities {h.shape[1]}: both need one for each variable")
    # The v with |v_k| ≤ 1 that maximises the slowest descent min −⟨g_j, v⟩.
    solution: Any = optimize.linprog(
        np.append(np.zeros(d), -1.0),
        A_ub=np.column_stack([g, np.ones(len(g))]),
        b_ub=np.zeros(len(g)),
        A_eq=np.column_stack([h, np.zeros(len(h))]),
        b_eq=np.zeros(len(h)),
        bounds=[(-1, 1)] * d + [(None, 1)],
    )
    has_descent = _independent(h) and solution.status == 0 and -solution.fun > _NO_DESCENT
    return ConstraintQualification(_independent(np.vstack([h, g])), solution.x[:d] if has_descent else None)


def _unit_rows(name: str, rows: Any) -> Floats:
    """Return gradients, scaled to length 1; raise ValueError if they are not a matrix of finite numbers."""
    G = np.asarray(rows, dtype=np.float64)
    if G.ndim != 2 or not G.shape[1] or not np.isfinite(G).all():
        raise ValueError(f"{name} must have a row of finite numbers per constraint, not the shape {G.shape}")
    lengths = np.linalg.norm(G, axis=1, keepdims=True)
    return np.asarray(np.divide(G, lengths, out=np.zeros_like(G), where=lengths > 0))


def _independent(rows: Floats) -> bool:
    """Return whether the rows, of length 1 or 0, are linearly independent."""
    can_be_independent = len(rows) <= rows.shape[1]
    return can_be_independent and (not len(rows) or bool(np.linalg.svd(rows, compute_uv=False)[-1] > _DEPENDENT_VALUE))
