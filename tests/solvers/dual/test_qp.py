"""The outside interior-point solver reaches the same optimum, with the same certificate."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC
from mercer.errors import MissingExtraError
from mercer.gram import gram_for
from mercer.kernels import as_kernel
from mercer.solution import Stop
from mercer.solvers import qp_packages
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.dual.qp import solve_by_qp
from reference.problems import c_svc, machine_problem, machines
from reference.qp import by_piqp

STOP = Stop(tol=1e-6, max_iter=10**7)


def gram_of(K):
    return gram_for(as_kernel("precomputed"), K)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("maker", machines())
def test_every_machine_reaches_the_value_of_two_other_solvers(maker, seed):
    problem, K = machine_problem(maker, seed)
    solution, certificate = solve_by_qp(problem, gram_of(K), STOP)
    _, own = solve_certified(problem, gram_of(K), STOP)
    assert solution.stop_reason == "converged"
    assert certificate.dual == pytest.approx(own.dual, rel=1e-8, abs=1e-8)
    assert certificate.dual == pytest.approx(by_piqp(problem, K)[0], rel=1e-6, abs=1e-7)
    assert 0 <= certificate.gap <= 1e-5 * max(1.0, abs(certificate.dual))


@pytest.mark.parametrize("maker", machines())
def test_the_point_is_feasible_to_rounding(maker):
    problem, K = machine_problem(maker, 0)
    solution, certificate = solve_by_qp(problem, gram_of(K), STOP)
    size = np.abs(solution.beta).sum()
    assert certificate.kkt["dual feasibility: box"] == 0
    assert certificate.kkt["dual feasibility: equality"] <= 1e-15 * size


def test_bounded_variables_lie_on_their_bounds():
    """An interior point is a little off; the estimator's attributes speak of exact bounds."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    by_blocks, outside = (SVC(tol=1e-6, solver=name).fit(X, y) for name in ("decomposition", "qp"))
    np.testing.assert_array_equal(outside.support_, by_blocks.support_)
    np.testing.assert_array_equal(np.abs(outside.dual_coef_) == 1.0, np.abs(by_blocks.dual_coef_) == 1.0)
    np.testing.assert_allclose(outside.decision_function(X), by_blocks.decision_function(X), atol=1e-5)


def test_several_classes_and_weights():
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    one, other = (SVC(tol=1e-8, solver=name).fit(X, y, weight) for name in ("auto", "qp"))
    assert other.certificate_.dual == pytest.approx(one.certificate_.dual, rel=1e-9)
    np.testing.assert_allclose(other.intercept_, one.intercept_, atol=1e-6)


def test_a_problem_beyond_the_budget_is_refused_with_the_largest_size():
    X = np.random.default_rng(0).normal(size=(300, 2))
    model = SVC(solver="qp", cache_size=1)
    with pytest.raises(ValueError, match=r"300 variables.*at most 119 fit.*cache_size=1 MB.*decomposition"):
        model.fit(X, X[:, 0] > 0)
    assert not hasattr(model, "dual_coef_")


def test_an_indefinite_matrix_is_refused():
    K = np.diag([1.0, 1.0, -1.0, -1.0])
    gram = gram_of(K)
    assert not gram.looks_positive_definite()
    with pytest.raises(ValueError, match=r"positive semi-definite.*decomposition"):
        solve_by_qp(c_svc(np.array([1.0, -1.0, 1.0, -1.0]), 1.0), gram, STOP)


def test_an_infeasible_problem_says_so():
    problem = c_svc(np.ones(3), 1.0)
    object.__setattr__(problem, "totals", np.array([-5.0]))
    with pytest.raises(ValueError, match=r"infeasible.*total -5"):
        solve_by_qp(problem, gram_of(np.eye(3)), STOP)


def test_without_clarabel_the_extra_is_named(monkeypatch):
    def missing(module, purpose):
        raise MissingExtraError(f"{purpose} needs {module}: python -m pip install 'mercer[qp]'")

    monkeypatch.setattr(qp_packages, "require", missing)
    with pytest.raises(MissingExtraError, match=r"solver='qp' needs clarabel.*mercer\[qp\]"):
        SVC(solver="qp").fit([[0.0], [1.0]], [0, 1])


def test_a_limit_is_reported():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = SVC(solver="qp", max_iter=1, gamma=0.1).fit(X, y)
    assert model.stop_reason_ == "max_iter"
    assert model.certificate_.kkt["dual feasibility: box"] == 0


def test_an_unknown_solver_is_refused():
    with pytest.raises(ValueError, match=r"solver='smo'.*'auto', 'decomposition', 'chunking', 'qp'"):
        SVC(solver="smo").fit([[0.0], [1.0]], [0, 1])
