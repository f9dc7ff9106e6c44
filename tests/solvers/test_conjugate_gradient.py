"""Kernel ridge regression by preconditioned conjugate gradients against a direct solve and the dual problem's proof."""

import numpy as np
import pytest

from mercer.certificates.dual import certify_dual
from mercer.kernels import Gaussian, Laplacian
from mercer.places import gram_for
from mercer.problems.dual_problem import DualProblem
from mercer.solvers.conjugate_gradient import NystromPreconditioner, conjugate_gradient
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
    F, s = rng.normal(size=(50, 7)), rng.random(50)
    R = rng.normal(size=(50, 2))
    A = np.eye(50) + (s[:, None] * F) @ (s[:, None] * F).T
    np.testing.assert_allclose(NystromPreconditioner(F, s)(R), np.linalg.solve(A, R), atol=1e-10)


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


def test_reports_come_before_every_iteration():
    seen = []
    stop = Stop(1e-8, 1000, report=lambda words, _: seen.append(words()))
    solve_ridge(gram_for(Gaussian(gamma=0.2), X), Y, LAM, stop)
    steps = [int(line.split()[0].replace(",", "")) for line in seen]
    assert steps == sorted(steps)
    assert steps[0] == 0
    assert float(seen[-1].split()[3]) <= 1.0
