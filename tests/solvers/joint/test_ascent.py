"""The joint solver in blocks: shrinking, precision, budgets, starts and Ctrl-C change nothing."""

import signal
import time

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from mercer import SVC
from mercer.certificates.joint import certify_joint
from mercer.kernels.names import as_kernel
from mercer.places import gram_for
from mercer.places.host import kernel_matrix
from mercer.problems.multiclass import JointProblem
from mercer.solvers.joint import ascent as solver
from mercer.solvers.joint.ascent import solve_joint
from mercer.solvers.joint.newton import newton_on_joint_face
from mercer.solvers.solution import Stop
from reference.multiclass import MACHINES, clouds


@pytest.mark.parametrize("kernel", ["rbf", "linear", "callable"])
@pytest.mark.parametrize("machine", MACHINES)
def test_blocks_shrinking_and_precision_change_nothing(machine, kernel, monkeypatch):
    """One block, many blocks, with and without shrinking, float32 or float64: the same optimum, all certified."""
    X, y = load_digits(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[:500], y[:500]
    monkeypatch.setattr(kernel_matrix, "_FLOAT64_ROWS", 100)  # from where float32 begins
    kernel = (lambda A, B: np.exp(-0.01 * ((A[:, None] - B[None]) ** 2).sum(-1))) if kernel == "callable" else kernel
    n = 400 if isinstance(kernel, str) else 150
    options = {"kernel": kernel, "multiclass": machine, "gamma": 0.01, "C": 0.1, "tol": 1e-4}
    whole = SVC(**options).fit(X[:n], y[:n])
    monkeypatch.setattr(solver, "_ONE_BLOCK_SAMPLES", 10)
    monkeypatch.setattr(solver, "BLOCK", 64)
    models = [SVC(**options, shrinking=shrinking).fit(X[:n], y[:n]) for shrinking in (True, False)]
    for model in (whole, *models):
        assert model.converged_
        assert model.certificate_.violation <= 1e-4
        assert model.certificate_.dual == pytest.approx(whole.certificate_.dual, rel=1e-5)
        np.testing.assert_allclose(model.decision_function(X[:50]), whole.decision_function(X[:50]), atol=5e-3)


def test_a_small_budget_changes_nothing():
    X, y = load_digits(return_X_y=True)
    roomy, narrow = (SVC(multiclass="crammer-singer", cache_size=size, tol=1e-4).fit(X, y) for size in (1000, 0.5))
    assert narrow.converged_
    assert narrow.certificate_.dual == pytest.approx(roomy.certificate_.dual, rel=1e-5)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers as POSIX has them")
@pytest.mark.parametrize("machine", MACHINES)
def test_ctrl_c_is_answered_and_leaves_the_estimator_alone(machine):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2500, 6)), rng.integers(12, size=2500)
    model = SVC(C=1e4, gamma=0.1, multiclass=machine, tol=1e-9, max_time=60).fit(X[:60], y[:60])
    before = dict(vars(model))

    def interrupt(signum, frame):
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert time.monotonic() - start < 10  # of the 60 that it would have gone on
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


def test_shrinking_drops_and_takes_back(monkeypatch):
    monkeypatch.setattr(solver, "_ONE_BLOCK_SAMPLES", 10)
    monkeypatch.setattr(solver, "BLOCK", 64)
    X, y = load_digits(return_X_y=True)
    kernel = as_kernel("rbf", degree=3, gamma=0.001, coef0=0.0)
    problem = JointProblem(y.astype(np.intp), np.ones(len(y)), 10, shared=True)
    sizes, gram, zero = [], gram_for(kernel, X), np.zeros((len(y), 10))
    field = gram.joint_field(problem, zero, zero, np.float64)
    stop = Stop(tol=1e-3, max_iter=10**7, report=lambda words, goal_ratio: sizes.append(len(field.active)))
    solution = solver.ascend(field, stop, shrinking=True)
    assert min(sizes) < len(y) / 2
    assert sizes[-1] == len(y)
    assert solution.stop_reason == "converged"
    certificate, u = certify_joint(problem, gram, solution.beta)
    assert certificate.violation <= 1.01e-3
    np.testing.assert_allclose(field.u, u, atol=1e-9)


def test_a_start_is_used():
    X, y = clouds(12, n=200)
    gram = gram_for(as_kernel("rbf", degree=3, gamma=0.4, coef0=0.0), X)
    problem = JointProblem(y.astype(np.intp), np.ones(len(y)), 4, shared=False, shift=1.0)
    stop = Stop(tol=1e-4, max_iter=10**7)
    first, _ = solve_joint(problem, gram, stop)
    again, _ = solve_joint(problem, gram, stop, first.beta)
    assert first.steps > 0
    assert again.steps == 0


@pytest.mark.parametrize(("multiclass", "optimum"), [("crammer-singer", 26.0), ("weston-watkins", 39.0)])
@pytest.mark.parametrize("scale", [1e-3, 1e-4, 1e-8])
@pytest.mark.parametrize("C", [1.0, 1e-6])
def test_biases_reach_the_margin_where_kernel_values_are_small(multiclass, optimum, scale, C):
    """f is constant then: it is right about 30 of 43 samples, and the others lose 2, or 2 + 1 (Weston–Watkins)."""
    rng, y = np.random.default_rng(0), np.repeat([0, 1, 2], [30, 8, 5])
    X = scale * (rng.normal(size=(43, 2)) + y[:, None])
    model = SVC(C=C, kernel="linear", multiclass=multiclass).fit(X, y)
    assert model.converged_
    assert model.certificate_.primal == pytest.approx(C * optimum, rel=2e-3)
    assert model.certificate_.dual == pytest.approx(C * optimum, rel=2e-3)


@pytest.mark.timeout(60)
def test_a_newton_step_that_is_lost_to_rounding_ends():
    C = np.array([5.668566378842862e-97, 1.291887441125046e-97, 7.384265405480485e-99, 7.447265737979662e-102])
    problem = JointProblem(np.array([2, 0, 2, 1]), C, 3, shared=True, shift=4.2e-300)
    small = C[3]
    beta = np.array(
        [[0, -C[0] / 2, C[0] / 2], [C[1], 0, -C[1]], [-C[2] / 2, -small, C[2] / 2 + small], [0, small, -small]]
    )
    V = np.array([[3.4, 2.1, -4.5, 0.5], [2.1, 2.1, -2.9, 2.4], [-4.5, -2.9, 6.0, -1.0], [0.5, 2.4, -1.0, 5.3]])
    e = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    found = newton_on_joint_face(problem, np.arange(4), 1e-300 * V, e, beta)
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-110)
