"""C, λ and ϑ as equalities of solutions; the three kinds of bias; 2-norm slack against LIBLINEAR."""

import numpy as np
import pytest
from sklearn import svm
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer

import mercer
from mercer import (
    SVC,
    SVR,
    C_from,
    KernelMachine,
    LinearSVC,
    LinearSVR,
    PegasosSVC,
    QuantileSVR,
    kernels,
    losses,
    svm_path,
    tune,
)

X, y = load_breast_cancer(return_X_y=True)
X = ((X - X.mean(axis=0)) / X.std(axis=0))[:200]
y = y[:200]
t = X[:, 0] * X[:, 1] - X[:, 2]
W = np.arange(200) % 3 + 0.5


def functions(model):
    return (model.decision_function if hasattr(model, "decision_function") else model.predict)(X)


@pytest.mark.parametrize("weight", [None, W])
@pytest.mark.parametrize(
    ("estimator", "target"), [(SVC, y), (SVR, t), (QuantileSVR, t)], ids=["SVC", "SVR", "QuantileSVR"]
)
def test_lam_is_C(estimator, target, weight):
    n = 200 if weight is None else W.sum()
    lam = 0.003
    a = estimator(theta=lam, tol=1e-8).fit(X, target, weight)
    b = estimator(C=1 / (2 * lam * n), tol=1e-8).fit(X, target, weight)
    np.testing.assert_allclose(functions(a), functions(b), atol=1e-6)


def test_lam_minimises_what_defines_it():
    """(1/n)Σ hinge + λ‖w‖² at the solution is below its value at every neighbour tried."""
    lam, n = 0.01, len(y)
    sign = np.where(y == 1, 1.0, -1.0)
    model = SVC(theta=lam, kernel="linear", tol=1e-10).fit(X, y)

    def objective(w, b):
        return np.maximum(0, 1 - sign * (X @ w + b)).sum() / n + lam * w @ w

    best = objective(model.coef_[0], model.intercept_[0])
    rng = np.random.default_rng(0)
    for _ in range(200):
        step = rng.normal(size=31) * 10.0 ** rng.uniform(-6, 0)
        assert objective(model.coef_[0] + step[:30], model.intercept_[0] + step[30]) >= best - 1e-9


def test_conversions_have_inverses():
    for name, rest in (("theta", {"n": 50}), ("lam", {}), ("alpha", {"n": 50})):
        assert C_from(**{name: C_from(**{name: 0.3}, **rest)}, **rest) == pytest.approx(0.3, rel=1e-15)
        for bad in (0.0, -1.0, np.nan):
            with pytest.raises(ValueError, match=f"{name}=.*above 0"):
                C_from(**{name: bad}, **rest)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"exactly one of theta, lam, alpha, liblinear, C0, and none was given"),
        ({"n": 50}, r"none was given"),
        ({"theta": 0.1, "lam": 0.1, "n": 50}, r"theta and lam were given"),
        ({"theta": 0.1}, r"C_from\(theta=…\) needs n, a number of samples"),
        ({"alpha": 0.1}, r"needs n, "),
        ({"lam": 0.1, "n": 50}, r"C_from\(lam=…\) does not take n, "),
        ({"liblinear": 0.1, "n": 50}, r"does not take n, "),
        ({"theta": 0.1, "n": 50, "n0": 50}, r"does not take n0, "),
        ({"C0": 0.1, "n": 50}, r"needs n0, "),
        ({"C0": 0.1, "n0": 50}, r"needs n, "),
    ],
)
def test_one_convention_with_its_numbers_of_samples(given, message):
    with pytest.raises(TypeError, match=message):
        C_from(**given)


def test_each_price_is_that_of_the_machine_with_its_name():
    """One C through the three machines that take another price: 120 rows, so that a factor n would be seen."""
    few, label, C, n = X[:120], y[:120], 0.4, 120
    f = SVC(C=C, gamma=0.02, tol=1e-9).fit(few, label).decision_function(few)
    for other in (
        SVC(theta=C_from(theta=C, n=n), gamma=0.02, tol=1e-9),
        KernelMachine("hinge", lam=C_from(lam=C), gamma=0.02, tol=1e-9),
    ):
        np.testing.assert_allclose(other.fit(few, label).decision_function(few), f, atol=1e-5)
    exact = SVC(C=C, kernel="linear", bias=False, tol=1e-8).fit(few, label).certificate_.primal
    noisy = PegasosSVC(C_from(alpha=C, n=n), bias=False, random_state=0).fit(few, label)
    assert noisy.objective_ == pytest.approx(exact / (C * n), rel=0.05)


def test_C_and_lam_together_are_refused():
    with pytest.raises(ValueError, match=r"C=3.0 and theta=0.1 both set the penalty"):
        SVC(C=3.0, theta=0.1).fit(X, y)
    with pytest.raises(ValueError, match="theta=-1"):
        SVR(theta=-1).fit(X, t)


def test_2_norm_slack_is_liblinears_at_half_the_price():
    """LIBLINEAR regularises its bias, as one more feature with the constant 1."""
    C = 0.7
    mine = SVC(C=C_from(liblinear=C), slack="l2", bias="regularized", kernel="linear", tol=1e-9).fit(X, y)
    other = svm.LinearSVC(C=C, loss="squared_hinge", tol=1e-10, max_iter=1_000_000).fit(X, y)
    np.testing.assert_allclose(mine.coef_, other.coef_, atol=1e-5)
    np.testing.assert_allclose(mine.intercept_, other.intercept_, atol=1e-5)


def test_1_norm_slack_with_a_regularised_bias_is_liblinears():
    mine = SVC(C=0.1, bias="regularized", kernel="linear", tol=1e-9).fit(X, y)
    other = svm.LinearSVC(C=0.1, loss="hinge", tol=1e-10, max_iter=1_000_000).fit(X, y)
    np.testing.assert_allclose(mine.coef_, other.coef_, atol=1e-4)
    np.testing.assert_allclose(mine.intercept_, other.intercept_, atol=1e-4)


def test_squared_epsilon_insensitive_is_liblinears_at_half_the_price():
    mine = SVR(
        C=2 * 0.3, epsilon=0.2, loss="squared_epsilon_insensitive", bias="regularized", kernel="linear", tol=1e-9
    ).fit(X, t)
    other = svm.LinearSVR(C=0.3, epsilon=0.2, loss="squared_epsilon_insensitive", tol=1e-10, max_iter=1_000_000)
    other.fit(X, t)
    np.testing.assert_allclose(mine.predict(X), other.predict(X), atol=1e-4)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", kernels.Laplacian(gamma=0.02)])
def test_a_regularised_bias_is_the_kernel_plus_one(kernel):
    mine = SVC(bias="regularized", kernel=kernel, tol=1e-9).fit(X, y)
    plus_one = mine.kernel_ + 1.0
    other = SVC(bias=False, kernel=plus_one, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(mine.decision_function(X), other.decision_function(X), atol=1e-7)
    assert mine.intercept_[0] == pytest.approx(mine.dual_coef_.sum(), abs=1e-9)
    assert other.intercept_[0] == 0.0


def test_a_regularised_bias_keeps_the_fused_values():
    """Beyond one block, where the core computes kernel values tile by tile, in float32 first."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(3500, 4))
    target = (Z[:, 0] + 0.3 * rng.normal(size=3500) > 0).astype(int)
    mine = SVC(bias="regularized", gamma=0.3, tol=1e-4).fit(Z, target)
    slow = SVC(bias=False, kernel=kernels.FromFunction(PlusOne()), tol=1e-4).fit(Z[:, :], target)
    np.testing.assert_allclose(mine.decision_function(Z[:200]), slow.decision_function(Z[:200]), atol=1e-3)
    assert (kernels.Gaussian(0.3) + 1.0).recipe() is not None


class PlusOne:
    def __call__(self, A, B):
        square = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T
        return np.exp(-0.3 * square) + 1.0


def test_without_bias_f_passes_through_the_origin():
    model = SVC(bias=False, kernel="linear").fit(X, y)
    assert model.decision_function(np.zeros((1, X.shape[1])))[0] == 0.0
    assert model.certificate_.b == ()


def test_a_schedule_of_C_that_is_consistent():
    C = [C_from(C0=10.0, n0=100, n=n, a=0.3) for n in (100, 1_000, 10_000)]
    assert C[0] == 10.0
    theta = 1 / (2 * np.array(C) * [100, 1_000, 10_000])
    assert (np.diff(theta) < 0).all()
    assert (np.diff(theta**2 * [100, 1_000, 10_000]) > 0).all()
    for a in (0.0, 0.5, -1):
        with pytest.raises(ValueError, match="between 0 and 1/2"):
            C_from(C0=10.0, n0=100, n=1_000, a=a)
    for kernel in ("linear", "poly", kernels.Linear() + kernels.Polynomial()):
        with pytest.raises(ValueError, match="universal"):
            C_from(C0=10.0, n0=100, n=1_000, a=0.3, kernel=kernel)
    assert C_from(C0=10.0, n0=100, n=1_000, a=0.3, kernel="laplacian") == C[1]


@pytest.mark.parametrize("delta", [0.2, 1.0, 3.0])
def test_the_huber_loss_is_the_same_everywhere(delta):
    """½r² up to δ and δ(|r| − δ/2) beyond, in `SVR`, `KernelMachine` and `mercer.losses`."""
    few, target, C = X[:80], 3 * t[:80], 0.7
    one = SVR(C=C, loss="huber", delta=delta, gamma=0.02, tol=1e-9).fit(few, target)
    two = KernelMachine("huber", lam=C_from(lam=C), delta=delta, gamma=0.02, tol=1e-9).fit(few, target)
    np.testing.assert_allclose(one.predict(few), two.predict(few), atol=1e-6)
    loss = losses.Huber(delta).value(target, one.predict(few)).sum()
    assert 0.5 * one.rkhs_norm_**2 + C * loss == pytest.approx(one.certificate_.primal, rel=1e-6)


REGULARIZED = [
    SVC(),
    SVC(multiclass="crammer-singer"),
    SVR(),
    QuantileSVR(),
    LinearSVC(random_state=0),
    LinearSVC(multiclass="crammer-singer", random_state=0),
    LinearSVR(random_state=0),
    PegasosSVC(random_state=0, max_iter=3),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("machine", REGULARIZED, ids=repr)
def test_both_spellings_of_a_regularised_bias(machine, tmp_path):
    few, target = X[:90], np.arange(90) % 3 if is_classifier(machine) else t[:90]
    models = [clone(machine).set_params(bias=f"regulari{letter}ed").fit(few, target) for letter in "sz"]
    for model in models:
        mercer.save(model, tmp_path / "model.mercer")
        models = [*models, mercer.load(tmp_path / "model.mercer")]
    assert [model.bias for model in models] == ["regularised", "regularized"] * 2
    ask = "decision_function" if is_classifier(machine) else "predict"
    for model in models[1:]:
        np.testing.assert_array_equal(getattr(model, ask)(few), getattr(models[0], ask)(few))
        np.testing.assert_array_equal(model.intercept_, models[0].intercept_)
    assert np.any(models[0].intercept_)


@pytest.mark.filterwarnings("ignore:every bound on the probability of error is vacuous")
def test_both_spellings_where_the_bias_is_asked_for():
    sign = np.where(y[:90] > 0, 1, -1)
    one, two = (SVC(bias=f"regulari{letter}ed", gamma=0.02) for letter in "sz")
    paths = [svm_path(X[:90], sign, bias=machine.bias, gamma=0.02) for machine in (one, two)]
    np.testing.assert_array_equal(*(path.decision_function(X[:5], [0.5, 1.0]) for path in paths))
    found = [machine.fit(X[:90], sign).insight(X[:90], sign).bias for machine in (one, two)]
    assert found == ["regularized", "regularized"]
    scores = [
        tune(SVC(bias=f"regulari{letter}ed"), X[:90], sign, grid={"C": [0.1, 1.0]}, criterion="margin-bound")
        for letter in "sz"
    ]
    assert scores[0].best_params_ == scores[1].best_params_


def test_the_parameter_for_several_classes_has_one_name():
    with pytest.raises(TypeError, match=r"unexpected parameter multi_class='ovr': it is multiclass here, as in SVC"):
        LinearSVC(multi_class="ovr")
