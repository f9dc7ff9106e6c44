"""Kernel ridge regression by preconditioned conjugate gradients against a direct solve and the dual problem's proof."""

import itertools
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import RLSRegressor, _core
from mercer.certificates.dual import certify_dual
from mercer.kernels import Gaussian, Laplacian, Linear, Polynomial
from mercer.places import gram_for
from mercer.problems.dual_problem import DualProblem
from mercer.solvers.conjugate_gradient import (
    NystromPreconditioner,
    ResidualCheck,
    conjugate_gradient,
    conjugate_gradient_to_gap,
    landmark_count,
    residual_variances,
)
from mercer.solvers.least_squares import cg
from mercer.solvers.least_squares.cg import solve_ridge
from mercer.solvers.solution import Stop

rng = np.random.default_rng(3)
N, LAM = 300, 0.2
X = rng.normal(size=(N, 4))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1], np.zeros(N)])
WEIGHT = rng.integers(0, 3, N).astype(float)


def test_several_right_hand_sides_each_reach_their_target():
    A = rng.normal(size=(40, 40))
    A = A @ A.T + np.eye(40)
    B = rng.normal(size=(40, 3))
    target = np.array([1e-2, 1e-9, 1e9])
    out = conjugate_gradient(lambda P: A @ P, B, lambda R: R / np.diag(A)[:, None], target, Stop(0.0, 500))
    assert out.stop_reason == "converged"
    true = np.linalg.norm(B - A @ out.X, axis=0)
    assert (true <= target * 1.001 + 1e-10).all()
    assert not out.X[:, 2].any()
    np.testing.assert_allclose(out.X[:, 1], np.linalg.solve(A, B[:, 1]), rtol=1e-6)
    assert conjugate_gradient(lambda P: A @ P, B, lambda R: R, target, Stop(0.0, 2)).stop_reason == "max_iter"
    assert conjugate_gradient(lambda P: -P, B, lambda R: R, target, Stop(0.0, 9)).stop_reason == "stalled"


def test_the_preconditioner_is_an_inverse():
    """On all samples as landmarks K is its own approximation; on a few it is F Fᵀ with F = K_nJ L⁻ᵀ."""
    gram, s, R = gram_for(Gaussian(gamma=2.0), X), rng.random(N), rng.normal(size=(N, 2))
    K = Gaussian(gamma=2.0)(X)
    for J in (np.arange(N), np.arange(0, N, 7)):
        F = np.linalg.solve(np.linalg.cholesky(K[np.ix_(J, J)]), K[J]).T
        A = np.eye(N) + (s[:, None] * F) @ (s[:, None] * F).T
        np.testing.assert_allclose(NystromPreconditioner(gram, s, J)(R), np.linalg.solve(A, R), atol=1e-8)


@pytest.mark.parametrize("landmarks", [np.arange(N), np.arange(0, N, 3)])
def test_the_preconditioner_of_a_tiny_ridge_is_positive_definite(landmarks):
    """K has rank 4 and S K S a norm of 1e13: products that are rounded apart leave negative values."""
    s = np.full(N, 1e5)
    s[::5] = 0.0
    M = NystromPreconditioner(gram_for(Linear(), X), s, landmarks)(np.eye(N))
    F = s[:, None] * X
    Q, R = np.linalg.qr(F)
    inverse = np.eye(N) - Q @ Q.T + Q @ np.linalg.solve(np.eye(4) + R @ R.T, Q.T)  # (I + FF')⁻¹, as F = QR
    np.testing.assert_allclose(M, inverse, rtol=0, atol=1e-4)
    assert np.linalg.eigvalsh(0.5 * (M + M.T)).min() > -1e-12


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    "kernel", [Linear(), Polynomial(gamma=0.3, degree=3, coef0=1.0), Gaussian(gamma=0.05), Gaussian(gamma=1.0)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # float64 cannot prove the last digits
def test_a_tiny_ridge_is_solved_as_well_as_by_a_factor(kernel, bias):
    """The primal value was 1e6 times that of the optimum, or no step helped."""
    lam = 1e-8
    data = {"kernel": kernel, "bias": bias, "lam": lam}
    target = Y[:, :2] + 0.3 * np.random.default_rng(0).normal(size=(N, 2))
    made = [RLSRegressor(solver=solver, **data).fit(X, target).certificate_ for solver in ("cg", "cholesky")]
    for part, direct in zip(*(proof.parts for proof in made), strict=True):
        assert part.primal <= direct.primal * (1 + 1e-5)


def spread_system(error_size, condition=1e4):
    """A diagonal A, its products with an error and their norm, b, and the calls of exact and of coarse products."""
    A, b, exact_calls, coarse_calls = np.diag(np.geomspace(1, condition, 60)), np.ones((60, 1)), [], []
    error = np.random.default_rng(1).normal(size=(60, 60)) * error_size

    def exact(P):
        exact_calls.append(1)
        return A @ P

    def coarse(P):
        coarse_calls.append(1)
        return A @ P + error @ P, np.linalg.norm(error @ P, axis=0)

    return A, b, exact, coarse, exact_calls, coarse_calls


def test_coarse_products_are_used_where_their_error_is_harmless():
    A, b, exact, coarse, exact_calls, coarse_calls = spread_system(3.0)
    out = conjugate_gradient(exact, b, lambda R: R, np.array([1e-3]), Stop(0.0, 500), 0, coarse)
    assert out.stop_reason == "converged"
    assert exact_calls
    assert len(coarse_calls) > out.steps - len(exact_calls) > 0
    assert np.linalg.norm(b - A @ out.X) <= 2e-3
    blind = conjugate_gradient(
        exact, b, lambda R: R, np.array([1e-3]), Stop(0.0, 500), 0, lambda P: (coarse(P)[0], np.zeros(1))
    )
    assert np.linalg.norm(b - A @ blind.X) > 1e-2


def test_runs_aim_at_residuals_that_coarse_products_reach():
    """Exact products alone check the residual between the runs."""
    A, b, exact, coarse, exact_calls, coarse_calls = spread_system(1e-6, condition=30)
    checks = []

    def check(X):
        R = b - A @ X
        checks.append(np.linalg.norm(R))
        return ResidualCheck(R, np.sum(R * R, axis=0), np.array([1e-16]))

    X, _, steps, reason = conjugate_gradient_to_gap(
        b.shape, check, exact, lambda R: R, np.sqrt, Stop(0.0, 1000), coarse=coarse
    )
    assert reason == "converged"
    assert np.linalg.norm(b - A @ X) <= 1e-8
    assert not exact_calls
    assert len(coarse_calls) == steps
    assert len(checks) <= 4
    assert all(after <= 0.01 * before for before, after in itertools.pairwise(checks))
    # A run with these products to the final target ends above it.
    single_run = conjugate_gradient(
        exact, b, lambda R: R, np.array([1e-8]), Stop(0.0, 500), 0, lambda P: (coarse(P)[0], np.zeros(1))
    )
    assert np.linalg.norm(b - A @ single_run.X) > 1e-7


@pytest.mark.parametrize("error_size", [0.02, 20.0, "negative"])
def test_a_coarse_product_that_misleads_one_column_is_replaced_for_all(error_size):
    A, B = np.diag(np.geomspace(1, 100, 60)), np.random.default_rng(0).normal(size=(60, 2))
    error = np.random.default_rng(1).normal(size=(60, 60))

    def coarse(P):
        E = -2 * A @ P if error_size == "negative" else error_size * error @ P
        E[:, 0] = 0.0
        return A @ P + E, np.linalg.norm(E, axis=0)

    target = np.full(2, 1e-6)
    exact = conjugate_gradient(lambda P: A @ P, B, lambda R: R, target, Stop(0.0, 500))
    out = conjugate_gradient(lambda P: A @ P, B, lambda R: R, target, Stop(0.0, 500), 0, coarse)
    assert (np.linalg.norm(B - A @ out.X, axis=0) <= 1.1 * target).all()
    if error_size != 0.02:  # harmless in the last steps
        assert out.steps == exact.steps
        np.testing.assert_array_equal(out.X, exact.X)


def test_an_error_above_the_curvature_is_not_harmless():
    """It made the step so short that its effect was small."""
    b, M = np.array([[1.0], [1e-6]]), np.array([[1.0], [1e8]])

    def coarse(P):
        return P + 1e12 * P, 1e12 * np.linalg.norm(P, axis=0)

    exact, out = (
        conjugate_gradient(np.copy, b, lambda R: M * R, np.array([0.5]), Stop(0.0, 20), 0, products)
        for products in (None, coarse)
    )
    np.testing.assert_array_equal(out.X, exact.X)


@pytest.mark.parametrize("bias", [False, True])
def test_the_error_of_a_float32_product_is_estimated_from_a_few_of_its_rows(monkeypatch, bias):
    X, seen = np.random.default_rng(0).normal(size=(1500, 4)), []

    def stop_here(shape, check, apply, precondition, residual_norm, stop, *, coarse, **options):
        seen.append((apply, coarse))
        raise InterruptedError

    monkeypatch.setattr(cg, "conjugate_gradient_to_gap", stop_here)
    weight = np.random.default_rng(1).uniform(1e3, 1e5, 1500)
    with pytest.raises(InterruptedError):
        solve_ridge(gram_for(Gaussian(gamma=0.2), X), X[:, :2], 0.1, Stop(1e-10, 10), weight, bias=bias)
    apply, coarse = seen[0]
    P = np.random.default_rng(2).normal(size=(1500, 2))
    AP, error = coarse(P)
    ratio = error / np.linalg.norm(AP - apply(P), axis=0)
    assert (ratio > 0.6).all()
    assert (ratio < 1.6).all()
    if bias:
        assert (np.abs(np.sqrt(weight) @ AP) <= 1e-12 * np.sqrt(weight) @ np.abs(AP)).all()


def test_the_number_of_landmarks_grows_with_their_gain():
    """Eigenvalues that fall as i⁻² leave a trace of about 1/m; one that falls at once needs no more landmarks."""
    slow, fast = 1.0 / (1.0 + np.arange(1000)), np.where(np.arange(1000) < 20, 1.0, 1e-12)
    counts = [landmark_count(slow, n, weight, 10**6) for n, weight in ((2e4, 1e-3), (2e4, 1.0), (2e4, 1e3), (1e6, 1e3))]
    assert counts == sorted(counts)
    assert counts[0] < counts[1] < counts[3]
    assert landmark_count(fast, 2e4, 1.0, 10**6) < counts[1]
    assert landmark_count(slow, 2e4, 1e3, 123) == 123
    # Schur complements of K in order: what is left of k(x, x) after the samples before.
    K = Gaussian(gamma=0.2)(X)
    left = K[50, 50] - K[50, :50] @ np.linalg.solve(K[:50, :50], K[:50, 50])
    assert residual_variances(K)[50] == pytest.approx(left, rel=1e-6)


@pytest.mark.parametrize("kernel", [Gaussian(gamma=0.2), 0.5 * Gaussian(gamma=0.2) + Laplacian(gamma=0.1)])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("landmarks", [5, 80, None])
def test_solution_is_that_of_a_direct_solve(kernel, weight, landmarks):
    gram = gram_for(kernel, X)
    solution = solve_ridge(gram, Y, LAM, Stop(1e-13, 1000), weight, landmarks=landmarks)
    w = np.ones(N) if weight is None else weight
    used = w > 0
    C = np.zeros(Y.shape)
    C[used] = np.linalg.solve(kernel(X[used]) + np.diag(LAM / w[used]), Y[used])
    assert solution.stop_reason == "converged"
    np.testing.assert_allclose(solution.C, C, atol=1e-5)
    assert not solution.C[~used].any()
    assert (solution.gap <= 1e-13 * np.maximum(solution.primal, 1e-300)).all()


@pytest.mark.parametrize("steps", [0, 2, 5])
def test_gap_is_the_one_of_the_dual_problem(steps):
    """RLS as a DualProblem has p = y, no box, d = λ/w; its values are those of ours over λ."""
    gram = gram_for(Gaussian(gamma=0.2), X)
    w = WEIGHT + 1
    solution = solve_ridge(gram, Y[:, :1], LAM, Stop(1e-14, steps), w, landmarks=5)
    infinite = np.full(N, np.inf)
    problem = DualProblem(
        Y[:, 0], -infinite, infinite, LAM / w, np.arange(N), np.full(N, -1, dtype=np.int32), np.zeros(0)
    )
    certificate, _ = certify_dual(problem, gram, np.ascontiguousarray(solution.C[:, 0]))
    assert solution.stop_reason == "max_iter"
    assert solution.gap[0] == pytest.approx(LAM * certificate.gap, rel=1e-6)
    assert solution.primal[0] == pytest.approx(LAM * certificate.primal, rel=1e-9)


def test_more_landmarks_need_fewer_iterations():
    gram = gram_for(Gaussian(gamma=0.2), X)
    few, many = (solve_ridge(gram, Y, 0.01, Stop(1e-8, 1000), landmarks=m).steps for m in (5, 200))
    assert many < few / 2


@pytest.mark.parametrize("lam", [1.0, 1e-3])
def test_float32_products_lead_to_the_float64_solution(lam):
    """Above 1,000 rows products are float32: the solution and its true residual are those of float64."""
    X = np.random.default_rng(0).normal(size=(1500, 4))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]]) + 0.1
    kernel, weight = Gaussian(gamma=0.2), np.random.default_rng(1).uniform(0.2, 3, 1500)
    gram, count = gram_for(kernel, X), [0, 0]
    assert np.float32 in gram.precisions
    products = gram.products

    def counted(C, rows=None, dtype=np.float64):
        count[dtype == np.float32] += rows is None and int(np.count_nonzero(C[:, 0]) == len(X))
        return products(C, rows, dtype)

    gram.products = counted
    solution = solve_ridge(gram, Y, lam, Stop(1e-10, 3000), weight, bias=True)
    assert solution.stop_reason == "converged"
    assert count[1] > 0
    assert lam < 1 or count[0] < count[1]  # with a small lam the first steps need float64
    A = np.block([[kernel(X) + np.diag(lam / weight), np.ones((1500, 1))], [np.ones((1, 1500)), np.zeros((1, 1))]])
    exact = np.linalg.solve(A, np.vstack([Y, np.zeros(2)]))
    f, C = kernel(X), solution.C
    difference = np.sqrt(np.einsum("ij,ij->j", C - exact[:-1], f @ (C - exact[:-1])))
    assert (difference <= 1e-4 * np.sqrt(2 * solution.primal / lam)).all()
    np.testing.assert_allclose(C.sum(axis=0), 0, atol=1e-9 * np.abs(C).sum())


def test_a_bias_of_constant_targets_needs_no_step():
    gram = gram_for(Gaussian(gamma=0.2), X)
    solution = solve_ridge(gram, np.full((N, 1), 7.3), LAM, Stop(1e-10, 100), WEIGHT + 0.5, bias=True)
    assert solution.stop_reason == "converged"
    assert solution.steps == 0


def test_reports_come_before_every_iteration():
    seen = []
    stop = Stop(1e-8, 1000, report=lambda words, _: seen.append(words()))
    solve_ridge(gram_for(Gaussian(gamma=0.2), X), Y, LAM, stop)
    assert seen.pop(0).startswith("preconditioner of")
    steps = [int(line.split()[0].replace(",", "")) for line in seen]
    assert steps == sorted(steps)
    assert steps[0] == 0
    assert float(seen[-1].split()[3]) <= 1.0


def test_max_time_ends_the_pass_of_a_higher_precision(monkeypatch):
    """That pass took a minute for 200,000 rows on a device, whatever max_time said."""

    def endless(*args):
        while True:
            _core.check_stop()
            time.sleep(0.001)

    monkeypatch.setattr(cg, "certify_solution", endless)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = RLSRegressor(solver="cg", gamma=0.2, max_time=1.0).fit(X, Y[:, 0])
    assert model.stop_reason_ == "max_time"
    direct = RLSRegressor(solver="cholesky", gamma=0.2).fit(X, Y[:, 0]).certificate_
    assert model.certificate_.dual <= direct.primal <= model.certificate_.primal * (1 + 1e-12)
    assert model.certificate_.relative_gap < 1e-6
