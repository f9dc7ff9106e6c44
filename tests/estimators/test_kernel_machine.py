"""Any convex loss against scikit-learn, scipy on the naive objective, and the Fenchel duals written out."""

from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import xlogy
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC as PeerSVC

import mercer
from mercer import KernelMachine, KernelMachineClassifier, KernelMachineRegressor, kernels
from mercer.certificates.representer import certify_representer
from mercer.places import gram_for
from mercer.problems.losses import Hinge, Huber, Logistic, Squared, SquaredHinge
from mercer.problems.representer import RepresenterProblem
from mercer.solvers.representer import solve_representer
from mercer.solvers.solution import Stop
from reference.losses import LogCosh

rng = np.random.default_rng(5)
N, LAM = 120, 0.05
X = rng.normal(size=(N, 3))
SIGNS = np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=N) > 0.7, 1.0, -1.0)
Y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=N)
Y[:5] += 4.0
WEIGHT = rng.integers(0, 4, N).astype(float)
T = rng.normal(size=(40, 3))
GAUSSIAN = kernels.Gaussian(gamma=0.5)
K = GAUSSIAN(X)
LOSSES = [Squared(), Huber(0.3), Logistic(), SquaredHinge()]


def targets(loss):
    return SIGNS if loss.kind == "classification" else Y


# --- the losses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [*LOSSES, LogCosh()])
def test_derivatives_are_those_of_the_value(loss):
    y = np.resize([1.0, -1.0], 200) if loss.kind == "classification" else rng.normal(size=200)
    f = 3 * rng.normal(size=200)
    h = 1e-6
    slope = (loss.value(y, f + h) - loss.value(y, f - h)) / (2 * h)
    np.testing.assert_allclose(loss.gradient(y, f), slope, atol=1e-6)
    smooth = np.abs(np.abs(y - f) - 0.3) > 1e-3 if isinstance(loss, Huber) else np.abs(y * f - 1) > 1e-3
    bend = (loss.gradient(y, f + h) - loss.gradient(y, f - h)) / (2 * h)
    np.testing.assert_allclose(loss.curvature(y, f)[smooth], bend[smooth], atol=1e-5)


# --- the optimum -----------------------------------------------------------------------------------------------------


def objective(loss, y, weight, bias):
    """The naive objective in the coordinates of K's square root, with its gradient."""
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0.0))

    def both(v):
        w, b = v[:-1], v[-1] if bias else 0.0
        f = root @ w + b
        g = weight * loss.gradient(y, f)
        slope = np.append(root.T @ g + 2 * LAM * w, g.sum() if bias else 0.0)
        return np.sum(weight * loss.value(y, f)) + LAM * w @ w, slope

    return both


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("loss", [*LOSSES, LogCosh()], ids=lambda loss: type(loss).__name__)
def test_value_is_that_of_a_general_minimiser(loss, weighted, bias):
    y, weight = targets(loss), WEIGHT if weighted else np.ones(N)
    found = minimize(objective(loss, y, weight, bias), np.zeros(N + 1), jac=True, method="L-BFGS-B",
                     options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9})  # fmt: skip
    make = KernelMachineClassifier if loss.kind == "classification" else KernelMachineRegressor
    model = make(loss, LAM, kernel=GAUSSIAN, bias=bias, tol=1e-10).fit(X, y, sample_weight=weight)
    assert model.certificate_.primal == pytest.approx(found.fun, rel=1e-7)
    assert model.certificate_.primal <= found.fun * (1 + 1e-9)
    assert model.certificate_.relative_gap <= 1e-10
    assert model.converged_


@pytest.mark.parametrize("bias", [True, False])
def test_logistic_is_scikit_learns_on_an_explicit_feature_map(bias):
    linear = kernels.Linear()
    model = KernelMachineClassifier("logistic", LAM, kernel=linear, bias=bias, tol=1e-12).fit(X, SIGNS)
    peer = LogisticRegression(C=1 / (2 * LAM), fit_intercept=bias, tol=1e-10, max_iter=10_000).fit(X, SIGNS)
    np.testing.assert_allclose(model.decision_function(T), peer.decision_function(T), atol=1e-4)
    np.testing.assert_allclose(model.predict_proba(T), peer.predict_proba(T), atol=1e-4)


def test_squared_is_kernel_ridge_regression():
    model = KernelMachineRegressor("squared", LAM, kernel="rbf", gamma=0.5, bias=False, tol=1e-13).fit(X, Y)
    peer = KernelRidge(alpha=LAM, kernel="rbf", gamma=0.5).fit(X, Y)
    np.testing.assert_allclose(model.predict(T), peer.predict(T), atol=1e-6)
    np.testing.assert_allclose(model.dual_coef_[0], peer.dual_coef_, atol=1e-6)
    assert model.n_iter_[0] == 1


def test_hinge_is_the_soft_margin_machine():
    model = KernelMachineClassifier("hinge", LAM, kernel="rbf", gamma=0.5, tol=1e-8).fit(X, SIGNS)
    peer = PeerSVC(C=1 / (2 * LAM), kernel="rbf", gamma=0.5, tol=1e-9).fit(X, SIGNS)
    np.testing.assert_allclose(model.decision_function(T), peer.decision_function(T), atol=1e-3)
    f = model.decision_function(X)
    c = model.dual_coef_[0]
    value = np.maximum(0, 1 - SIGNS * f).sum() + LAM * c @ K @ c
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)
    assert 0 <= model.certificate_.gap <= 1e-8 * value


def test_hinge_without_bias_satisfies_its_optimality_conditions():
    model = KernelMachineClassifier("hinge", LAM, kernel=GAUSSIAN, bias=False, tol=1e-9).fit(X, SIGNS)
    margin, alpha = SIGNS * (K @ model.dual_coef_[0]), SIGNS * model.dual_coef_[0] * 2 * LAM
    assert model.intercept_ == [0.0]
    assert ((alpha >= -1e-12) & (alpha <= 1 + 1e-12)).all()
    assert (margin[alpha < 1 - 1e-9] >= 1 - 1e-2).all()
    assert (margin[alpha > 1e-9] <= 1 + 1e-2).all()


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_representer_theorem(loss):
    """2λc = −wℓ′ at the optimum, and no function outside the span of the samples does better."""
    y = targets(loss)
    make = KernelMachineClassifier if loss.kind == "classification" else KernelMachineRegressor
    model = make(loss, LAM, kernel=GAUSSIAN, tol=1e-12).fit(X, y, sample_weight=WEIGHT)
    c, f = model.dual_coef_[0], K @ model.dual_coef_[0] + model.intercept_[0]
    g = WEIGHT * loss.gradient(y, f)
    np.testing.assert_allclose(2 * LAM * c, -g, atol=2e-4)
    assert abs(g.sum()) < 1e-8
    extra = rng.normal(size=(30, 3))
    everything = np.vstack([X, extra])
    Kx = GAUSSIAN(everything)
    best = model.certificate_.primal
    for _ in range(20):
        c_wide = np.append(c, 1e-3 * rng.normal(size=30))
        value = np.sum(WEIGHT * loss.value(y, Kx[:N] @ c_wide + model.intercept_[0])) + LAM * c_wide @ Kx @ c_wide
        assert value > best


# --- the proof -------------------------------------------------------------------------------------------------------


def conjugate(loss, y, t):
    """ℓ*(y, t) = sup over f of tf − ℓ(y, f), written out."""
    if isinstance(loss, Squared):
        return t * y + t**2 / 4
    if isinstance(loss, Huber):
        assert (np.abs(t) <= loss.delta * (1 + 1e-12)).all()
        return t * y + t**2 / 2
    if isinstance(loss, Logistic):
        s = np.clip(-t * y, 0.0, 1.0)
        return xlogy(s, s) + xlogy(1 - s, 1 - s)
    assert (t * y <= 1e-12).all()
    return t * y + t**2 / 4


@pytest.mark.parametrize("c", [np.zeros(N), 0.3 * rng.normal(size=N)], ids=["zero", "random"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_dual_value_is_the_fenchel_dual(loss, c):
    y = targets(loss)
    problem = RepresenterProblem(y, WEIGHT, loss, LAM, False)
    certificate = certify_representer(problem, gram_for(GAUSSIAN, X), c, 0.0)
    used = WEIGHT > 0
    theta = -WEIGHT * loss.gradient(y, K @ c)
    dual = -np.sum(WEIGHT[used] * conjugate(loss, y[used], (-theta / np.where(used, WEIGHT, 1.0))[used]))
    dual -= theta @ K @ theta / (4 * LAM)
    assert certificate.dual == pytest.approx(dual, rel=1e-9)
    _, optimum = solve_representer(problem, gram_for(GAUSSIAN, X), Stop(1e-12, 100))
    assert dual <= optimum.primal <= certificate.primal


@pytest.mark.parametrize("loss", [*LOSSES, Hinge()], ids=lambda loss: type(loss).__name__)
def test_a_solve_goes_on_from_an_earlier_solution(loss):
    problem, gram = RepresenterProblem(targets(loss), WEIGHT, loss, LAM, True), gram_for(GAUSSIAN, X)
    solution, certificate = solve_representer(problem, gram, Stop(1e-9, 100))
    again, same = solve_representer(problem, gram, Stop(1e-8, 100), solution)
    assert solution.steps > 0
    assert again.steps == 0
    assert same.primal == pytest.approx(certificate.primal, rel=1e-8)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_gap_of_an_unfinished_fit_bounds_its_distance(steps):
    model = KernelMachineClassifier("logistic", 1e-3, kernel=GAUSSIAN, max_iter=steps)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model.fit(X, SIGNS)
    best = KernelMachineClassifier("logistic", 1e-3, kernel=GAUSSIAN, tol=1e-12).fit(X, SIGNS).certificate_.primal
    assert model.stop_reason_ == "max_iter"
    assert model.certificate_.dual <= best <= model.certificate_.primal
    assert model.certificate_.gap > 1e-6 * best


# --- ways of computing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", Huber(0.3)])
def test_conjugate_gradients_give_what_factorisation_gives(loss):
    y = Y if isinstance(loss, Huber) else SIGNS
    make = KernelMachineRegressor if isinstance(loss, Huber) else KernelMachineClassifier
    factorised = make(loss, LAM, kernel=GAUSSIAN, tol=1e-10).fit(X, y)
    # 24·120² bytes are more than this budget, so that K is met in products.
    iterated = make(loss, LAM, kernel=GAUSSIAN, tol=1e-10, cache_size=0.2).fit(X, y)
    assert iterated.certificate_.primal == pytest.approx(factorised.certificate_.primal, rel=1e-9)
    np.testing.assert_allclose(iterated._decision(T), factorised._decision(T), atol=1e-3)


@pytest.mark.parametrize("data", ["dense", "csr", "float32", "precomputed"])
def test_every_kind_of_data(data):
    A = X.astype(np.float32).astype(np.float64)
    given = {"dense": A, "csr": sp.csr_array(A), "float32": A.astype(np.float32), "precomputed": GAUSSIAN(A)}[data]
    kernel = "precomputed" if data == "precomputed" else GAUSSIAN
    expected = KernelMachineClassifier("logistic", LAM, kernel=GAUSSIAN, tol=1e-10).fit(A, SIGNS, sample_weight=WEIGHT)
    model = KernelMachineClassifier("logistic", LAM, kernel=kernel, tol=1e-10).fit(given, SIGNS, sample_weight=WEIGHT)
    assert model.certificate_.primal == pytest.approx(expected.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(given), expected.decision_function(A), atol=1e-3)


def test_classes_are_trained_one_against_all():
    X, y = load_iris(return_X_y=True)
    model = KernelMachineClassifier("logistic", 0.01, tol=1e-10).fit(X, y)
    for k in range(3):
        one = KernelMachineClassifier("logistic", 0.01, tol=1e-10).fit(X, y == k)
        np.testing.assert_allclose(model.decision_function(X)[:, k], one.decision_function(X), atol=1e-5)
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert (np.argmax(P, axis=1) == model.predict(X)).all()


def test_outliers_do_not_pull_the_huber_machine():
    clean = np.sin(2 * X[:, 0])
    robust = KernelMachineRegressor("huber", 0.1, delta=0.1, kernel=GAUSSIAN).fit(X, Y).predict(X[:5])
    squared = KernelMachineRegressor("squared", 0.1, kernel=GAUSSIAN).fit(X, Y).predict(X[:5])
    assert np.abs(robust - clean[:5]).max() < np.abs(squared - clean[:5]).max() / 2


def test_the_loss_decides_which_machine_it_is():
    assert isinstance(KernelMachine("logistic", lam=2.0), KernelMachineClassifier)
    assert isinstance(KernelMachine("hinge"), KernelMachineClassifier)
    assert isinstance(KernelMachine("huber", lam=0.1, delta=2.0), KernelMachineRegressor)
    assert KernelMachine("huber", lam=0.1, delta=2.0).get_params()["delta"] == 2.0
    own = KernelMachine(LogCosh(), lam=LAM, kernel=GAUSSIAN).fit(X, Y)
    assert isinstance(own, KernelMachineRegressor)
    assert own.certificate_.relative_gap <= 1e-6
    with pytest.raises(ValueError, match="kind"):
        KernelMachine(object())


def test_only_a_loss_of_probabilities_gives_them():
    assert hasattr(KernelMachineClassifier("logistic"), "predict_proba")
    assert not hasattr(KernelMachineClassifier("hinge"), "predict_proba")


def test_probabilities_are_those_of_the_loss_of_the_fit(tmp_path):
    model = KernelMachineClassifier("logistic", LAM, kernel=GAUSSIAN).fit(X, SIGNS)
    expected = model.predict_proba(T)
    np.testing.assert_array_equal(model.set_params(loss="hinge").predict_proba(T), expected)
    mercer.save(model, tmp_path / "model.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "model.mercer").predict_proba(T), expected)
    other = KernelMachineClassifier("squared_hinge", LAM, kernel=GAUSSIAN).fit(X, SIGNS).set_params(loss="logistic")
    assert not hasattr(other, "predict_proba")


def test_margins_are_those_of_the_soft_margin_machine():
    y = np.digitize(Y, [0.0, 1.0])
    for labels in (SIGNS, y):
        ours = KernelMachineClassifier("hinge", LAM, kernel=GAUSSIAN, tol=1e-9).fit(X, labels)
        peer = mercer.SVC(C=1 / (2 * LAM), kernel=GAUSSIAN, multiclass="ovr", tol=1e-9).fit(X, labels)
        np.testing.assert_allclose(ours.rkhs_norm_, peer.rkhs_norm_, rtol=1e-3)
        np.testing.assert_allclose(ours.signed_distance(T), peer.signed_distance(T), atol=1e-3)
        mine, theirs = (np.atleast_1d(model.margins(X, labels)) for model in (ours, peer))
        assert [m.classes for m in mine] == [m.classes for m in theirs]


@pytest.mark.parametrize("model", [KernelMachineClassifier(lam=0.1), KernelMachineClassifier("hinge"),
                                   KernelMachineRegressor(delta=0.5)])  # fmt: skip
def test_files_bring_back_the_same_predictions(model, tmp_path):
    y = np.digitize(Y, [0.0, 1.0]) if isinstance(model, KernelMachineClassifier) else Y
    mercer.save(model.fit(X, y), tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.predict(T), model.predict(T))
    assert again.certificate_ == model.certificate_


def test_the_loss_of_the_page_keeps_its_digits():
    """log cosh d as docs/any_loss.md writes it, against fifty digits: at most the 16 roundings that a proof allows."""
    page = (Path(__file__).parents[2] / "docs" / "any_loss.md").read_text(encoding="utf-8")
    block = next(text for text in page.split("```python")[1:] if "class LogCosh" in text).split("```")[0]
    names = {"np": np}
    exec(block[block.index("class LogCosh") : block.index("model =")], names)
    loss = names["LogCosh"]()
    mp.mp.dps = 60
    for d in (1e-12, 1e-6, 1e-3, 0.5, 0.999, 1.0, 1.001, 3.0, 30.0, 700.0, 1e300):
        truth = mp.log(mp.cosh(mp.mpf(d))) if d < 1e4 else mp.mpf(d) - mp.log(2)
        for sign in (1.0, -1.0):
            assert abs(mp.mpf(float(loss.value(sign * d, 0.0))) - truth) <= 16 * mp.mpf(2) ** -53 * truth
