"""Outside solvers of quadratic programs, by name: every machine reaches its optimum, and no package is trusted."""

import importlib.util
import sys

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer.certificates.dual import STATED_ROUNDINGS
from mercer.kernels.names import as_kernel
from mercer.places import gram_for
from mercer.runtime.errors import MissingExtraError
from mercer.samples.arrays import gamma
from mercer.solvers import qp
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.qp import NAMES, PACKAGES, PackageAnswer, solve_by_qp
from mercer.solvers.solution import Stop
from reference.problems import c_svc, machine_problem, machines
from reference.qp import by_every_solver, by_piqp

PRESENT = [name for name in PACKAGES if importlib.util.find_spec(name) is not None]
rng = np.random.default_rng(0)
N = 40
X = rng.normal(size=(N, 3))
Y = np.where(X[:, 0] + 0.5 * rng.normal(size=N) > 0, 1, -1)
THREE = np.digitize(X[:, 0] + 0.4 * rng.normal(size=N), [-0.5, 0.5])
APART = np.where(X[:, 0] > 0, 1, -1)
REAL = np.sin(X[:, 0]) + 0.1 * rng.normal(size=N)
WEIGHT = rng.uniform(0.5, 2.0, N)

MACHINES = {
    "SVC": (mercer.SVC(), Y),
    "SVC, squared slack, no bias": (mercer.SVC(slack="l2", bias=False), Y),
    "SVC, hard margin": (mercer.SVC(C=np.inf, gamma=1.0), APART),
    "SVC, three classes": (mercer.SVC(kernel="linear"), THREE),
    "SVC, Crammer and Singer": (mercer.SVC(multiclass="crammer_singer"), THREE),
    "SVC, Crammer and Singer, regularized bias": (mercer.SVC(multiclass="crammer_singer", bias="regularized"), THREE),
    "SVC, Weston and Watkins": (mercer.SVC(multiclass="weston_watkins"), THREE),
    "SVC, Weston and Watkins, no bias": (mercer.SVC(multiclass="weston_watkins", bias=False), THREE),
    "NuSVC": (mercer.NuSVC(nu=0.3), Y),
    "SVR": (mercer.SVR(epsilon=0.1), REAL),
    "NuSVR": (mercer.NuSVR(), REAL),
    "QuantileSVR": (mercer.QuantileSVR(quantiles=[0.2, 0.8]), REAL),
    "OneClassSVM": (mercer.OneClassSVM(nu=0.3), None),
    "SVDD": (mercer.SVDD(nu=0.3), None),
    "LinearSVC": (mercer.LinearSVC(loss="hinge"), THREE),
    "LinearSVC, regularized bias": (mercer.LinearSVC(bias="regularized", intercept_scaling=2.0), Y),
    "LinearSVR": (mercer.LinearSVR(epsilon=0.1), REAL),
    "RLSRegressor": (mercer.RLSRegressor(lam=0.1), np.column_stack([REAL, X[:, 1]])),
    "RLSRegressor, no bias": (mercer.RLSRegressor(lam=0.1, bias=False), REAL),
    "RLSClassifier": (mercer.RLSClassifier(), THREE),
}


def trained(name, solver):
    machine, target = MACHINES[name]
    machine = type(machine)(**machine.get_params()).set_params(solver=solver)
    if "tol" in machine.get_params():
        machine.set_params(tol=1e-6)
    return machine.fit(X, target, sample_weight=WEIGHT)


@pytest.fixture(scope="module")
def own():
    return {name: trained(name, "auto") for name in MACHINES}


@pytest.mark.parametrize("package", PRESENT)
@pytest.mark.parametrize("name", MACHINES)
def test_every_machine_by_every_package(name, package, own):
    found = trained(name, f"qp:{package}")
    assert found.converged_
    assert found.certificate_.dual == pytest.approx(own[name].certificate_.dual, rel=1e-5)
    assert found.certificate_.primal == pytest.approx(own[name].certificate_.primal, rel=1e-5)
    np.testing.assert_allclose(values(found), values(own[name]), atol=2e-4)


def values(machine):
    return machine.decision_function(X) if hasattr(machine, "decision_function") else machine.predict(X)


@pytest.mark.parametrize("package", PRESENT)
@pytest.mark.parametrize("maker", machines())
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.thorough
def test_every_problem_by_every_package(maker, seed, package):
    """Singular matrices too, where quadprog cannot factor: seed 1 is a linear kernel."""
    problem, K = machine_problem(maker, seed, n=30)
    gram = gram_for(as_kernel("precomputed"), K)
    solution, certificate = solve_by_qp(problem, gram, Stop(tol=1e-4, max_iter=10**6), package=package)
    assert solution.stop_reason == "converged"
    others = [value for value, _ in by_every_solver(problem, K).values()]
    assert min(abs(certificate.dual - value) for value in others) <= 1e-6 * max(1.0, abs(certificate.dual))
    assert certificate.kkt["dual feasibility: box"] == 0
    assert certificate.kkt["dual feasibility: equality"] <= 1e-14 * np.abs(solution.beta).sum()


LIARS = {
    "half of it": lambda answer: 0.5 * answer.x,
    "nothing": lambda answer: np.full_like(answer.x, np.nan),
    "too much": lambda answer: 1e9 * np.ones_like(answer.x),
}


@pytest.mark.parametrize("lie", LIARS)
@pytest.mark.parametrize("name", ["SVC", "SVC, Crammer and Singer", "SVC, Weston and Watkins", "LinearSVC", "SVR"])
def test_a_package_that_is_wrong_is_found_out(name, lie, own, monkeypatch):
    """The package claims convergence; the certificate refutes it."""
    honest = qp.call_package

    def liar(package, program, stop):
        answer = honest(package, program, stop)
        no_bound = np.zeros(len(program.q), dtype=bool)
        return PackageAnswer(LIARS[lie](answer), no_bound, no_bound, 0.5 * answer.b, answer.steps, "converged")

    monkeypatch.setattr(qp, "call_package", liar)
    with pytest.warns(ConvergenceWarning):
        found = trained(name, "qp")
    assert not found.converged_
    assert found.stop_reason_ == "stalled"
    truth, proof = own[name].certificate_, found.certificate_
    assert proof.violation > 1e-6
    assert proof.dual <= truth.primal * (1 + 1e-9)
    assert proof.primal >= truth.dual * (1 - 1e-9)
    assert proof.gap >= (proof.primal - proof.dual) * (1 - 1e-9)


def test_a_package_of_least_squares_that_is_wrong(monkeypatch):
    honest = qp.call_package

    def liar(package, program, stop):
        answer = honest(package, program, stop)
        return PackageAnswer(0.5 * answer.x, answer.at_lower, answer.at_upper, answer.b, answer.steps, "converged")

    monkeypatch.setattr(qp, "call_package", liar)
    with pytest.warns(ConvergenceWarning):
        found = trained("RLSRegressor, no bias", "qp")
    assert not found.converged_
    assert found.certificate_.gap > 1e-3


@pytest.mark.parametrize("package", [name for name in PRESENT if name != "quadprog"])
def test_limits_are_reported(package):
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = mercer.SVC(solver=f"qp:{package}", max_iter=1, tol=1e-6).fit(X, Y)
    assert model.stop_reason_ == "max_iter"
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = mercer.SVC(solver=f"qp:{package}", max_time=1e-9).fit(X, Y)
    assert model.stop_reason_ == "max_time"


@pytest.mark.parametrize("missing", ["qpsolvers", *PACKAGES])
def test_a_package_that_is_missing_is_named_with_what_installs_it(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)  # importing it fails as if it were not installed
    solver = "qp" if missing in ("qpsolvers", "clarabel") else f"qp:{missing}"
    wanted = r"mercer\[qp\]" if missing in ("qpsolvers", "clarabel", "piqp") else missing
    with pytest.raises(MissingExtraError, match=f"solver='{solver}' needs {missing}.*pip install '{wanted}'"):
        mercer.SVC(solver=solver).fit(X, Y)


def test_names_and_refusals():
    assert NAMES["qp"] == "clarabel"
    for machine, target in (MACHINES[name] for name in ("SVC", "SVC, Weston and Watkins", "LinearSVC", "RLSRegressor")):
        wrong = type(machine)(**machine.get_params()).set_params(solver="qp:simplex")
        with pytest.raises(ValueError, match=r"'qp:clarabel', 'qp:piqp', 'qp:quadprog', 'qp:osqp', 'qp:cvxopt'"):
            wrong.fit(X, target)
    with pytest.raises(
        ValueError,
        match=r"120 variables need about 1\.2 MB: at most 76 fit into cache_size=0\.5 MB\. Use solver='decomposition'",
    ):
        mercer.SVC(solver="qp", multiclass="crammer_singer", cache_size=0.5).fit(X, THREE)
    with pytest.raises(ValueError, match=r"solver='qp' works on the whole matrix.*solver='auto'"):
        mercer.RLSRegressor(solver="qp", cache_size=0.05).fit(X, REAL)
    with pytest.raises(ValueError, match="solver='qp' needs lam above 0"):
        mercer.RLSRegressor(solver="qp", lam=0).fit(X, REAL)
    with pytest.raises(ValueError, match="4000 variables are more than the 3429"):
        mercer.LinearSVC(solver="qp").fit(rng.normal(size=(4000, 1)), np.arange(4000) % 2)


@pytest.mark.skipif("osqp" not in PRESENT, reason="osqp is not installed")
def test_osqp_prints_nothing(capfd):
    mercer.RLSRegressor(solver="qp:osqp", bias=False).fit(X, REAL)
    mercer.SVC(solver="qp:osqp", C=1e6, gamma=5.0).fit(X, APART)
    assert capfd.readouterr() == ("", "")


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
    size, totals = np.abs(solution.beta).sum(), np.abs(problem.totals).sum()
    assert certificate.kkt["dual feasibility: box"] == 0
    # The residual is that of the totals as stated: products such as νW are known up to some roundings.
    assert certificate.kkt["dual feasibility: equality"] <= 1e-15 * size + gamma(2 * STATED_ROUNDINGS) * totals


def test_bounded_variables_lie_on_their_bounds():
    """An interior point is a little off its bounds, but the estimator's attributes need exact bounds."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    by_blocks, outside = (mercer.SVC(tol=1e-6, solver=name).fit(X, y) for name in ("decomposition", "qp"))
    np.testing.assert_array_equal(outside.support_, by_blocks.support_)
    np.testing.assert_array_equal(np.abs(outside.dual_coef_) == 1.0, np.abs(by_blocks.dual_coef_) == 1.0)
    np.testing.assert_allclose(outside.decision_function(X), by_blocks.decision_function(X), atol=1e-5)


def test_several_classes_and_weights():
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    one, other = (mercer.SVC(tol=1e-8, solver=name).fit(X, y, weight) for name in ("auto", "qp"))
    assert other.certificate_.dual == pytest.approx(one.certificate_.dual, rel=1e-9)
    np.testing.assert_allclose(other.intercept_, one.intercept_, atol=1e-6)


def test_a_problem_beyond_the_budget_is_refused_with_the_largest_size():
    X = np.random.default_rng(0).normal(size=(300, 2))
    model = mercer.SVC(solver="qp", cache_size=1)
    with pytest.raises(ValueError, match=r"300 variables.*at most 108 fit.*cache_size=1 MB.*decomposition"):
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


def test_a_limit_is_reported():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = mercer.SVC(solver="qp", max_iter=1, gamma=0.1).fit(X, y)
    assert model.stop_reason_ == "max_iter"
    assert model.certificate_.kkt["dual feasibility: box"] == 0


def test_an_unknown_solver_is_refused():
    with pytest.raises(ValueError, match=r"solver='smo'.*'auto', 'decomposition', 'chunking', 'qp'"):
        mercer.SVC(solver="smo").fit([[0.0], [1.0]], [0, 1])
