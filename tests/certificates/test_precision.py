"""Beyond a thousand rows: float32 values where they suffice, float64 where they do not, and little kernel work."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.svm import SVC as Peer

from mercer import SVC
from mercer.certificates.dual import certificate_of
from mercer.kernels import Gaussian
from mercer.places import gram_for
from mercer.places.ball import Ball
from mercer.problems.classification import soft_margin
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.solution import Stop


def problem(n, seed=0):
    X, y = make_classification(n, 10, n_informative=6, flip_y=0.05, random_state=seed)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def dual_of(model, X, y, C, gamma):
    K = Gaussian(gamma)(X)
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_.ravel()
    signs = np.where(y == 1, 1.0, -1.0)
    assert (np.abs(beta) <= C * (1 + 1e-12)).all()
    return signs @ beta - 0.5 * beta @ K @ beta


@pytest.mark.parametrize("C", [1.0, 1e4])
@pytest.mark.parametrize("tol", [1e-3, 1e-7])
def test_the_dual_value_is_never_below_libsvms(C, tol):
    X, y = problem(1500)
    ours = SVC(C=C, gamma=0.1, tol=tol).fit(X, y)
    peer = Peer(C=C, gamma=0.1, tol=tol, max_iter=3_000_000).fit(X, y)
    assert ours.converged_
    value, other = dual_of(ours, X, y, C, 0.1), dual_of(peer, X, y, C, 0.1)
    assert value >= other - max(1e-6, tol * C * 0.1) * abs(other)
    assert ours.certificate_.dual == pytest.approx(value, rel=1e-8)
    assert ours.certificate_.dual <= value * (1 + 1e-12)
    assert ours.certificate_.violation <= tol


def test_refinement_reaches_what_float32_cannot():
    """At this tolerance float32 kernel values alone leave a true violation above it."""
    X, y = problem(1200)
    signs = np.where(y == 1, 1.0, -1.0)
    gram = gram_for(Gaussian(0.1), X)
    assert gram.precisions == (np.float32, np.float64)
    task = soft_margin(signs, np.full(len(y), 1e3))
    # ‖β‖₁ is 36,000, and the bound of what rounding may do to f 10⁻⁹: less is not provable.
    solution, certificate = solve_certified(task, gram, Stop(tol=1e-8, max_iter=10_000_000))
    assert solution.stop_reason == "converged"
    assert certificate.violation <= 1e-8
    assert certificate.precision.startswith("float64")


def test_float32_only_where_it_cannot_matter():
    """Rows that could move are recomputed in float64, so that the certificate is as good as one in float64."""
    X, y = problem(6000)
    model = SVC(C=1.0, gamma=0.1).fit(X, y)
    own = model.certificate_
    assert own.precision.startswith("float32")
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_.ravel()
    task, K = soft_margin(np.where(y == 1, 1.0, -1.0), np.ones(len(y))), Gaussian(0.1)(X)
    exact = certificate_of(task, beta, Ball(K @ beta, np.zeros(len(K))), np.ones(len(K)), "optimality", "float64")
    assert exact.violation <= own.violation <= exact.violation + 1e-6
    # `gap` is at least the difference of two bounds, which hold what float64 may do to β'Kβ: 8e-11 of the values here.
    assert exact.gap * (1 - 1e-6) <= own.gap <= exact.gap * (1 + 1e-6) + 1e-9 * exact.dual
    assert exact.dual * (1 - 1e-9) <= own.dual <= exact.dual
    assert exact.primal <= own.primal <= exact.primal * (1 + 1e-9)


@pytest.mark.parametrize(("C", "most"), [(1.0, 3.2), (10.0, 5.6)])
def test_kernel_work_stays_near_the_least_possible(C, most):
    """Kernel values computed by the solver, in units of n × support vectors: free of timing noise."""
    X, y = problem(6000)
    gram = gram_for(Gaussian(0.1), X)
    task = soft_margin(np.where(y == 1, 1.0, -1.0), np.full(len(y), C))
    solution, certificate = solve_certified(task, gram, Stop(tol=1e-3, max_iter=10_000_000))
    assert certificate.violation <= 1e-3
    units = gram.evaluations / (len(y) * np.count_nonzero(solution.beta))
    assert units < most


def test_a_tolerance_that_the_start_meets_ends_at_the_start():
    """β = 0 has dual value 0 and violation 2: no gap was asked for, so there is nothing to do."""
    X, y = problem(60)
    model = SVC(tol=5.0).fit(X, y)
    assert model.converged_
    assert model.n_iter_.tolist() == [0]
    assert len(model.support_) == 0


def test_a_gap_that_was_asked_for_is_reached():
    X, y = problem(300)
    loose, tight = SVC(C=100.0).fit(X, y), SVC(C=100.0, gap_tol=1e-7).fit(X, y)
    assert loose.certificate_.relative_gap > 1e-7
    assert tight.converged_
    assert tight.certificate_.relative_gap <= 1e-7
