"""The duality gap that the core's coordinate descent gives back, against the primal and the dual value."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.places.choose import rows_for

N, D = 30, 4
X = np.random.default_rng(0).normal(size=(N, D))
TARGETS = np.random.default_rng(1).choice([-1.0, 1.0], N)


@pytest.mark.parametrize("tol", [1e-9, 0.3])
@pytest.mark.parametrize("ridge", [0.0, 0.5])
@pytest.mark.parametrize("tube", [0.0, 0.1])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_gap_is_the_primal_less_the_dual_value(form, tube, ridge, tol):
    """Losses are the largest βr − ε|β| − ½dβ² in the box, from 40,001 points of it; the bias is a feature of 1."""
    lower, upper = (
        (np.full(N, -2.0), np.full(N, 2.0)) if tube else (np.minimum(2 * TARGETS, 0), np.maximum(2 * TARGETS, 0))
    )
    d, epsilon, rows = np.full(N, ridge), np.full(N, tube), rows_for(form(X), 1)
    beta, w, b, seed = np.zeros(N), np.zeros(D), np.zeros(1), np.array([7], dtype=np.uint64)
    box, limits = (TARGETS, lower, upper, d, epsilon), (tol, np.inf, 100_000, np.inf, False)
    _, _, gap, ended = rows.descent.descend(*box, rows.squared_lengths, 1.0, beta, w, b, 0.0, True, seed, *limits)
    assert ended == "converged"
    r = TARGETS - X @ w - b
    points = np.linspace(lower, upper, 40_001)
    losses = (points * r - tube * np.abs(points) - 0.5 * ridge * points**2).max(axis=0).sum()
    primal = 0.5 * (w @ w + b[0] ** 2) + losses
    dual = TARGETS @ beta - tube * np.abs(beta).sum() - 0.5 * ridge * beta @ beta
    dual -= 0.5 * (np.sum((X.T @ beta) ** 2) + beta.sum() ** 2)
    assert gap == pytest.approx(primal - dual, abs=1e-6)
    assert gap > 1e-3 or tol < 0.3
