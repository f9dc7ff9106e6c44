"""Constraint qualifications from the gradients of the active constraints (Igel, lemma 3.1)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from mercer.samples.arrays import Floats

# Singular values of rows of length 1, and rates of descent, that count as 0; tolerance of the linear program.
_DEPENDENT, _NO_DESCENT, _TOL = 1e-13, 1e-9, 1e-10


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
        ⟨∇g_j, v⟩ < 0 for all i and j, or None if none is found or the ∇h_i are dependent. The Mangasarian–Fromowitz
        qualification holds if there is a direction; `kuhn_tucker` implies it. Gradients, scaled to length 1, count as
        dependent if a singular value is below 10⁻¹³, and a v with |v_k| ≤ 1 is found if all ⟨∇g_j, v⟩ ≤ −10⁻⁹.

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
    kuhn_tucker, v = _independent(np.vstack([h, g])), None
    if kuhn_tucker:
        v = np.linalg.lstsq(np.vstack([h, g]), np.append(np.zeros(len(h)), -np.ones(len(g))))[0]
    elif _independent(h):
        # The v with |v_k| ≤ 1 that maximises the slowest descent min −⟨g_j, v⟩, without its rounding error along h.
        solution: Any = optimize.linprog(
            np.append(np.zeros(d), -1.0),
            A_ub=np.column_stack([g, np.ones(len(g))]),
            b_ub=np.zeros(len(g)),
            A_eq=np.column_stack([h, np.zeros(len(h))]),
            b_eq=np.zeros(len(h)),
            bounds=[(-1, 1)] * d + [(None, 1)],
            options={"primal_feasibility_tolerance": _TOL, "dual_feasibility_tolerance": _TOL},
        )
        if solution.status == 0:
            basis = np.linalg.qr(h.T)[0]
            v = solution.x[:d] - basis @ (basis.T @ solution.x[:d])
            v = v if (g @ v <= -_NO_DESCENT).all() else None
    return ConstraintQualification(kuhn_tucker, v)


def _unit_rows(name: str, rows: Any) -> Floats:
    """Return gradients, scaled to length 1; raise ValueError if they are not a matrix of finite numbers."""
    G = np.asarray(rows, dtype=np.float64)
    if G.ndim != 2 or not G.shape[1] or not np.isfinite(G).all():
        raise ValueError(f"{name} must have a row of finite numbers per constraint, not the shape {G.shape}")
    largest = np.abs(G).max(axis=1, keepdims=True)  # rows are divided by it first, since squares may overflow
    G = np.divide(G, largest, out=np.zeros_like(G), where=largest > 0)
    return np.asarray(G / np.maximum(np.linalg.norm(G, axis=1, keepdims=True), largest == 0))


def _independent(rows: Floats) -> bool:
    """Return whether the rows, of length 1 or 0, are linearly independent."""
    few = len(rows) <= rows.shape[1]
    return few and (not len(rows) or bool(np.linalg.svd(rows, compute_uv=False)[-1] > _DEPENDENT))
