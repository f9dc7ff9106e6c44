"""Newton's direction against the dense system, and its alternation with dual coordinate descent."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC as SklearnSVC

from mercer import LinearSVC
from mercer.places.choose import rows_for
from mercer.problems.linear_problem import hinge
from mercer.solvers.linear import newton as direction
from mercer.solvers.linear.choose import _passes_left
from mercer.solvers.linear.newton import ColumnSystem, SampleSystem


def dense_direction(problem, X, t, smoothing, g):
    """−H⁻¹g, H written out with the bias's column; without a bias that column is left out."""
    free = (t > problem.lower) & (t < problem.upper)
    Z = np.column_stack([X, np.ones(len(X))])[free]
    weight = 1.0 / (problem.d + (smoothing / problem.max_slope if smoothing else 0.0))[free]
    H = np.diag(np.r_[np.ones(X.shape[1]), 0.0 if problem.bias in (0, np.inf) else problem.bias**-2])
    H += Z.T @ (weight[:, None] * Z)
    if problem.bias == 0:
        return np.append(np.linalg.solve(H[:-1, :-1], -g[:-1]), 0.0)
    return np.linalg.solve(H, -g)


@pytest.mark.parametrize("bias", [0.0, 2.0, np.inf])
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("way", ["columns", "factor", "conjugate gradients", "many free samples"])
def test_directions_solve_the_newton_system(bias, squared, sparse, way, monkeypatch):
    rng = np.random.default_rng(3)
    n, d = 30, 3 if way == "many free samples" else 40  # more of them than columns
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    C = rng.uniform(0.5, 2.0, n)
    problem = hinge(y, C, bias, squared)
    rows = rows_for(sp.csr_matrix(X) if sparse else X, 2, np.arange(n) if sparse else None)
    smoothing = 0.0 if squared else 0.3
    if way == "many free samples":
        monkeypatch.setattr(direction, "_MOST_UNKNOWNS", d)
    if way == "conjugate gradients":
        monkeypatch.setattr(direction, "_MOST_UNKNOWNS", 0)
        monkeypatch.setattr(direction, "_RESIDUAL_SHARE", 1e-13)
    by = (ColumnSystem if way == "columns" else SampleSystem)(problem, rows, squared, 2)
    for _ in range(3):  # F changes from one step to the next
        t = y * np.where(rng.random(n) < 0.6, 0.4, 0.0)
        g = rng.standard_normal(X.shape[1] + 1)
        if bias == 0:
            g[-1] = 0.0
        found, true = by.direction(t, smoothing, g), dense_direction(problem, X, t, smoothing, g)
        np.testing.assert_allclose(found, true, rtol=1e-7, atol=1e-9 * np.abs(true).max())
    assert by.work > 0


@pytest.mark.parametrize("bias", [0.0, 2.0, np.inf])
def test_without_a_free_sample_the_direction_is_the_gradient(bias):
    problem = hinge(np.array([1.0, -1.0]), np.ones(2), bias, squared=False)
    by = SampleSystem(problem, rows_for(np.eye(2, 5), 1), smooth=False, n_threads=1)
    found = by.direction(np.zeros(2), 0.1, np.array([1.0, 0.0, 0.0, 0.0, -2.0, 0.0 if bias == 0 else 3.0]))
    np.testing.assert_allclose(found[:-1], [-1, 0, 0, 0, 2])
    np.testing.assert_allclose(found[-1], {0.0: 0.0, 2.0: -12.0, np.inf: -1.0}[bias])


def crawling(loss):
    """More columns than rows, a large C and noise: descent alone takes thousands of passes."""
    rng = np.random.default_rng(0)
    n, d = 236, 361
    X = sp.random(n, d, 0.03, format="csr", random_state=1, data_rvs=rng.standard_normal) @ sp.diags(
        10 ** rng.uniform(-1, 1, d)
    )
    f = X @ rng.standard_normal(d)
    return X.tocsr(), np.where(f + f.std() * rng.standard_normal(n) > 0, 1, -1), 100.0 if loss == "hinge" else 1000.0


@pytest.mark.parametrize(
    ("loss", "bias"), [("hinge", True), ("hinge", False), ("hinge", "regularized"), ("squared_hinge", True)]
)
def test_newton_takes_over_where_descent_crawls(loss, bias):
    X, y, C = crawling(loss)
    options = {"C": C, "loss": loss, "bias": bias, "tol": None, "gap_tol": 1e-8}
    with pytest.warns(match="stopped before gap_tol"):
        alone = LinearSVC(**options, solver="dual", max_iter=400).fit(X, y)
    model = LinearSVC(**options, max_iter=400).fit(X, y)
    assert model.converged_
    assert model.solver_.startswith("dual coordinate descent, then newton: 361 columns, more than the ")
    assert model.solver_.endswith("descent was slow")
    assert 100 < model.n_iter_ <= 400
    assert alone.certificate_.gap > model.certificate_.gap
    w, b = model.coef_[0], model.intercept_[0]
    slack = np.maximum(1 - y * (X @ w + b), 0)
    own = w @ w + (b * b if bias == "regularized" else 0.0)
    primal = 0.5 * own + C * (slack.sum() if loss == "hinge" else slack @ slack)
    np.testing.assert_allclose(primal, model.certificate_.primal, rtol=1e-8)
    if loss == "hinge" and bias is True:
        rival = SklearnSVC(kernel="linear", C=C, tol=1e-6).fit(X, y)
        np.testing.assert_allclose(w, rival.coef_.toarray()[0], atol=1e-3 * np.abs(w).max())


def test_the_same_fit_twice_is_the_same():
    X, y, C = crawling("hinge")
    first, second = (LinearSVC(C=C, loss="hinge", gap_tol=1e-8).fit(X, y) for _ in range(2))
    assert "then newton" in first.solver_
    np.testing.assert_array_equal(first.coef_, second.coef_)


def test_passes_are_foretold_from_the_rate():
    assert _passes_left(1e4, 1e2, 50) == pytest.approx(50)
    assert _passes_left(1e4, 1e4, 50) == np.inf
    assert _passes_left(np.inf, 1e4, 50) == 0  # the first look tells nothing: it must not be taken for a crawl
    assert _passes_left(2.0, 0.5, 50) == 0
