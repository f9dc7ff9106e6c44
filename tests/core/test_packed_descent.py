"""Coordinate descent for classification on sparse rows: conflicting samples, the first bias, and hard endings."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.places.choose import rows_for
from mercer.problems.linear_problem import hinge


def descend(X, y, C, squared, *, bias=1.0, tol=np.inf, gap=np.inf, max_passes=1000):
    """Run the core's descent from zero; return the problem, β, w, b and the result."""
    rows, problem = rows_for(sp.csr_array(X), 1), hinge(y, np.broadcast_to(C, len(y)).copy(), bias, squared)
    beta, w, b, seed = np.zeros(rows.n), np.zeros(rows.d), np.zeros(1), np.zeros(1, dtype=np.uint64)
    box = (problem.p, problem.lower, problem.upper, problem.d, problem.epsilon)
    limits = (tol, gap, max_passes, np.inf, True)
    result = rows.descent.descend(*box, rows.squared_lengths, bias, beta, w, b, 0.0, True, seed, *limits)
    return problem, beta, w, b, result


@pytest.mark.parametrize("weights", [(1e4, 3e3), (3e3, 1e4), (2e3, 2e3)])
@pytest.mark.parametrize("labels", [(1.0, -1.0), (-1.0, 1.0)])
@pytest.mark.parametrize("squared", [True, False])
def test_heavy_samples_that_differ_in_their_label_alone_take_few_passes(squared, labels, weights):
    """One variable at a time, each pass would take back most of what the last one gained."""
    random = np.random.default_rng(0)
    X = sp.random(40, 60, 0.1, format="csr", random_state=0).toarray()
    X[8] = X[7]
    y, C = np.where(random.random(40) < 0.5, 1.0, -1.0), np.ones(40)
    y[7:9], C[7:9] = labels, weights
    problem, beta, w, b, result = descend(X, y, C, squared, gap=1e-9, max_passes=120)
    assert result[3] == "converged"
    slack = np.maximum(1.0 - y * (X @ w + b), 0.0)
    primal = 0.5 * (w @ w + b[0] ** 2) + C @ (slack**2 if squared else slack)
    dual = problem.value(beta, np.sum((X.T @ beta) ** 2) + beta.sum() ** 2)
    assert np.all((beta >= problem.lower) & (beta <= problem.upper))
    assert -1e-12 * primal <= primal - dual <= 2e-9 * primal


@pytest.mark.parametrize("squared", [True, False])
def test_pairs_are_found_among_many_samples_of_one_row(squared):
    """Of a run of equal rows each belongs to one pair at most."""
    X = np.repeat(sp.random(10, 20, 0.3, format="csr", random_state=1).toarray(), 4, axis=0)
    X[:4] = 0.0
    y = np.tile([1.0, -1.0, 1.0, -1.0, -1.0, 1.0, 1.0, -1.0], 5)
    _, beta, w, b, result = descend(X, y, 2.0, squared, gap=1e-8)
    assert result[3] == "converged"
    assert w == pytest.approx(X.T @ beta, abs=1e-9)
    assert b[0] == pytest.approx(beta.sum(), abs=1e-3)


@pytest.mark.parametrize("squared", [True, False])
def test_the_first_bias_is_that_of_constant_outputs(squared):
    """Without a pass b is the minimiser of ½b² + ½Σ(y − b)²/d, where the hinge has C in the place of 1/d."""
    y = np.where(np.arange(500) % 5 == 0, 1.0, -1.0)
    *_, b, result = descend(np.eye(500), y, 1.0, squared, gap=1e-9, max_passes=0)
    assert result[0] == 0
    assert b[0] == pytest.approx(2 * y.sum() / 1001 if squared else y.sum() / 501, rel=1e-12)


def test_a_descent_whose_rows_are_all_at_rest_ends():
    """Only the free bias is left to move once every row has been shrunk; passes over no row must not go on for ever."""
    random = np.random.default_rng(43)
    X = sp.random(212, 196, 0.05, format="csr", random_state=43)
    y = np.where(random.random(212) < 0.5, 1.0, -1.0)
    result = descend(X, y, 0.01, False, bias=np.inf, tol=1e-3, max_passes=500)[-1]
    assert result[3] in ("converged", "unsettled")
