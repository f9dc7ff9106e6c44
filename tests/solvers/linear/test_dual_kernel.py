"""The linear kernel's problem solved by rows against the kernel machine's own solver."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer

import mercer
from mercer.certificates.dual import certify_dual
from mercer.kernels import Linear
from mercer.places import gram_for
from mercer.places.choose import rows_for
from mercer.problems import regression
from mercer.problems.dual_problem import DualProblem
from mercer.problems.linear_problem import LinearProblem
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.linear.dual_kernel import linear_problem, move_towards, solve_by_rows
from mercer.solvers.solution import Stop

X, LABELS = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
Y = np.where(LABELS == 1, 1.0, -1.0)


def classification(C, bias, squared):
    n, bound = len(Y), np.inf if squared else C
    group = np.full(n, 0 if bias else -1, dtype=np.int32)
    return DualProblem(
        p=Y,
        lower=np.where(Y > 0, 0.0, -bound),
        upper=np.where(Y > 0, bound, 0.0),
        d=np.full(n, 1 / C if squared else 0.0),
        row=np.arange(n),
        group=group,
        totals=np.zeros(1 if bias else 0),
    )


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_same_solution_and_certificate_as_the_kernel_machine(convert, bias, squared, C):
    problem, data = classification(C, bias, squared), convert(X)
    linear = linear_problem(problem)
    assert linear is not None
    gram, stop = gram_for(Linear(), data), Stop(tol=1e-8, max_iter=10**6)
    kernel, proof = solve_certified(problem, gram, stop)
    found, certificate = solve_by_rows(problem, gram, stop, linear=linear, rows_of=partial(rows_for, data, 1))
    assert found.stop_reason == "converged"
    assert certificate.violation <= 1e-8
    assert certificate.primal == pytest.approx(proof.primal, rel=1e-8)
    assert certificate.b == pytest.approx(proof.b, abs=1e-6)
    np.testing.assert_allclose(X.T @ found.beta, X.T @ kernel.beta, atol=1e-6)
    over_kernel, _ = certify_dual(problem, gram, found.beta)
    # Both bound the same gap; that of few samples counts their roundings more coarsely.
    assert over_kernel.gap - 1e-9 <= certificate.gap <= over_kernel.gap + 1e-8
    assert certificate.dual == pytest.approx(over_kernel.dual, rel=1e-9)
    assert certificate.violation == pytest.approx(over_kernel.violation, abs=1e-9)


def test_goes_on_from_a_start_and_keeps_limits():
    problem, gram = classification(1.0, True, False), gram_for(Linear(), X)
    solve = partial(solve_by_rows, linear=linear_problem(problem), rows_of=partial(rows_for, X, 1))
    found, _ = solve(problem, gram, Stop(tol=1e-6, max_iter=10**6))
    again, _ = solve(problem, gram, Stop(tol=1e-6, max_iter=10**6), found.beta)
    np.testing.assert_allclose(X.T @ again.beta, X.T @ found.beta, atol=1e-4)
    limited, certificate = solve(problem, gram, Stop(tol=1e-10, max_iter=1))
    assert limited.stop_reason == "max_iter"
    assert certificate.violation > 1e-10


def test_other_problems_are_told_apart():
    n = len(Y)
    plain = classification(1.0, True, False)
    summed = DualProblem(plain.p, plain.lower, plain.upper, plain.d, plain.row, plain.group, np.ones(1))
    assert linear_problem(summed) is None
    assert linear_problem(regression.expectile(Y, np.ones(n), 0.3)) is None
    assert linear_problem(regression.nu_tube(Y, np.ones(n), 0.3)) is None


@pytest.mark.parametrize("options", [{}, {"slack": "l2"}, {"bias": False}], ids=str)
def test_svc_takes_this_way_where_rows_are_many(options):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(3600, 4))
    y = np.where(X @ [1.0, -1.0, 0.5, 0.0] + 0.5 * rng.normal(size=3600) > 0.3, "up", "down")
    weight = rng.integers(0, 3, 3600).astype(float)
    rows = mercer.SVC(kernel="linear", tol=1e-5, **options).fit(X, y, weight)
    kernel = mercer.SVC(kernel="linear", tol=1e-5, solver="decomposition", **options).fit(X, y, weight)
    assert rows.n_iter_[0] != kernel.n_iter_[0], "both went the same way"
    assert rows.certificate_.violation <= 1e-5
    assert rows.certificate_.dual == pytest.approx(kernel.certificate_.dual, rel=1e-7)
    np.testing.assert_allclose(rows.decision_function(X), kernel.decision_function(X), atol=1e-3)
    np.testing.assert_allclose(rows.coef_, kernel.coef_, atol=1e-3)
    assert rows.rkhs_norm_ == pytest.approx(kernel.rkhs_norm_, rel=1e-3)
    assert rows.margins(X, y).n_errors == kernel.margins(X, y).n_errors


@pytest.mark.parametrize("n", [600, 2600])
@pytest.mark.parametrize(
    "machine",
    [
        mercer.SVR(C=20.0, epsilon=0.2),
        mercer.SVR(C=20.0, epsilon=0.2, bias=False),
        mercer.SVR(C=20.0, epsilon=0.2, loss="squared_epsilon_insensitive"),
        mercer.SVR(C=20.0, delta=0.3, loss="huber"),
        mercer.QuantileSVR(quantiles=(0.2, 0.7), C=20.0),
    ],
    ids=str,
)
def test_regression_machines_take_it_too(machine, n):
    rng = np.random.default_rng(9)
    X = rng.normal(size=(n, 5))
    y = X @ [1.0, -2.0, 0.5, 0.0, 0.1] + 0.4 + 0.5 * rng.standard_t(3, size=n)
    weight = rng.integers(0, 3, n).astype(float)
    rows = clone(machine).set_params(kernel="linear", tol=1e-5).fit(X, y, weight)
    kernel = clone(machine).set_params(kernel="linear", tol=1e-5, solver="decomposition").fit(X, y, weight)
    assert np.any(rows.n_iter_ != kernel.n_iter_), "both went the same way"
    assert rows.converged_
    assert rows.certificate_.violation <= 1e-5
    assert rows.certificate_.dual == pytest.approx(kernel.certificate_.dual, rel=1e-7)
    np.testing.assert_allclose(rows.predict(X), kernel.predict(X), atol=1e-3)


def rare_marks(n, seed=0):
    """Columns that mark one of thirty kinds, most of them rare, standardised, beside eight others; labels unequal."""
    rng = np.random.default_rng(seed)
    kind = np.minimum(rng.geometric(0.15, n) - 1, 29)
    A = np.hstack([rng.normal(size=(n, 8)), np.eye(30)[kind]])
    y = np.where(rng.random(n) < 0.4 * np.exp(-kind / 4), 1, -1)
    return (A - A.mean(axis=0)) / np.maximum(A.std(axis=0), 1e-12), y


@pytest.mark.parametrize("n", [1500, 3000])
def test_pair_steps_are_left_where_they_crawl(n):
    A, y = rare_marks(n)
    model = mercer.SVC(C=100.0, kernel="linear", max_time=60).fit(A, y)  # decomposition alone takes minutes
    assert model.converged_
    svm = mercer.LinearSVC(C=100.0, loss="hinge", gap_tol=1e-9).fit(A, y)
    assert model.certificate_.dual == pytest.approx(svm.certificate_.dual, rel=1e-6)
    assert model.certificate_.violation <= 1e-3


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("bias", [np.inf, 0.0])
def test_a_correction_brings_the_combination_to_w(convert, bias):
    n, rng = len(Y), np.random.default_rng(0)
    rows = rows_for(convert(X), 1)
    problem = LinearProblem(Y, np.full(n, -2.0), np.full(n, 2.0), np.zeros(n), np.zeros(n), bias)
    target = rng.uniform(-1.5, 1.5, n)
    target[:20] = -2.0  # what is at a bound stays there
    target[20:] -= target.sum() / (n - 20)
    off = target + np.where(target == -2.0, 0.0, rng.normal(scale=0.05, size=n))
    found = move_towards(problem, rows, X.T @ target, off)
    assert (np.abs(found) <= 2).all()
    assert (found[:20] == -2).all()
    assert bias == 0 or abs(found.sum()) < 1e-9
    before, after = (np.linalg.norm(X.T @ (b - target)) for b in (off, found))
    assert after < 1e-6 * before


def test_coefficients_at_their_bounds_stay_and_a_single_free_one_moves():
    """X'β = β₁ + 2β₂ is to become 1.5; only variables inside their box may move."""
    rows, p, zero = rows_for(np.array([[1.0], [2.0]]), 1), np.ones(2), np.zeros(2)
    problem = LinearProblem(p, zero, np.ones(2), zero, zero, 0.0)
    np.testing.assert_array_equal(move_towards(problem, rows, np.array([1.5]), np.array([1.0, 0.0])), [1.0, 0.0])
    np.testing.assert_allclose(
        move_towards(problem, rows, np.array([1.5]), np.array([0.0, 0.5])), [0.0, 0.75], rtol=1e-12
    )
