"""The joint multi-class machines against quadratic programs written out, LIBLINEAR and the binary machine."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import mercer
from mercer import SVC
from mercer.kernels import Gaussian, Laplacian, Linear
from mercer.runtime.errors import NonPSDKernelWarning
from reference.multiclass import BIASES, MACHINES, NUMBERS, clouds, dual_by_qp, primal_by_qp
from reference.problems import c_svc, gram_matrix, without_bias
from reference.qp import by_clarabel


def naive(model, K, y, C, n_classes):
    """Primal value and gap of a fit by loops over its own coefficients."""
    beta = np.zeros((len(y), n_classes))
    beta[model.support_] = model.dual_coef_.T
    f = K @ beta + model.intercept_
    shared = model.multiclass == "crammer-singer"
    penalty = model.intercept_**2 if model.bias == "regularized" else np.zeros(n_classes)
    primal = sum(beta[:, k] @ K @ beta[:, k] / 2 + penalty[k] / 2 for k in range(n_classes))
    dual = -primal
    for i, label in enumerate(y):
        losses = [max(0.0, 1 - f[i, label] + f[i, k]) for k in range(n_classes) if k != label]
        primal += C[i] * (max(losses) if shared else sum(losses))
        dual += beta[i, label]
    return primal, dual


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", NUMBERS)
@pytest.mark.parametrize("machine", MACHINES)
def test_the_quadratic_program_agrees(machine, kernel, bias):
    for seed, data, weighted in ((0, np.asarray, False), (1, sp.csr_array, True), (2, np.asarray, True)):
        X, y = clouds(seed)
        weight = np.random.default_rng(seed).uniform(0.3, 2.0, len(y)) if weighted else np.ones(len(y))
        C = 10.0 ** (seed - 1)
        K = gram_matrix(kernel, X, **NUMBERS[kernel])
        value, beta = dual_by_qp(K, y, C * weight, 4, machine=machine, bias=bias)
        model = SVC(C=C, kernel=kernel, multiclass=machine, bias=bias, tol=1e-7, **NUMBERS[kernel])
        model.fit(data(X), y, sample_weight=weight)
        assert model.converged_
        assert model.certificate_.dual == pytest.approx(value, rel=1e-6)
        assert model.certificate_.primal == pytest.approx(value, rel=1e-6)
        assert 0 <= model.certificate_.gap <= 1e-6 * value
        primal, dual = naive(model, K, y, C * weight, 4)
        assert primal == pytest.approx(model.certificate_.primal, rel=1e-9)
        assert dual == pytest.approx(model.certificate_.dual, rel=1e-9)
        f = (K + (1.0 if bias == "regularized" else 0.0)) @ beta
        if (
            bias is True
        ):  # the program does not name b, which may even be an interval: the certificate has its word on it
            f = f + model.intercept_
            assert abs(model.intercept_.sum()) <= 1e-9
            totals = np.zeros((4, len(y)))
            totals[:, model.support_] = model.dual_coef_
            np.testing.assert_allclose(totals.sum(axis=1), 0.0, atol=1e-11 * C * len(y))
        np.testing.assert_allclose(model.decision_function(X), f, atol=2e-3)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("machine", MACHINES)
def test_the_primal_written_out_agrees(machine, bias):
    for seed in range(3):
        X, y = clouds(seed, n=30, n_classes=3)
        weight = np.random.default_rng(seed).uniform(0.3, 2.0, len(y))
        value = primal_by_qp(X, y, 0.7 * weight, 3, machine=machine, bias=bias)
        model = SVC(C=0.7, kernel="linear", multiclass=machine, bias=bias, tol=1e-8).fit(X, y, weight)
        assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


def test_crammer_singer_is_liblinears():
    for X, y in (load_iris(return_X_y=True), clouds(3, n=200, n_classes=5)):
        X = StandardScaler().fit_transform(X)
        mine = SVC(C=0.5, kernel="linear", multiclass="crammer-singer", bias=False, tol=1e-8).fit(X, y)
        other = LinearSVC(C=0.5, multi_class="crammer_singer", fit_intercept=False, tol=1e-10, max_iter=10**6).fit(X, y)

        def objective(W, X=X, y=y):
            e = X @ W.T + 1.0
            own = np.arange(len(y)), y
            e[own] -= 1.0
            return (W**2).sum() / 2 + 0.5 * (e.max(axis=1) - e[own]).sum()

        assert objective(mine.coef_) == pytest.approx(objective(other.coef_), rel=1e-6)
        assert objective(mine.coef_) == pytest.approx(mine.certificate_.primal, rel=1e-9)
        np.testing.assert_allclose(mine.coef_, other.coef_, atol=1e-3)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("machine", MACHINES)
def test_two_classes_are_the_binary_machine_at_twice_C(machine, bias):
    """½(‖w₁‖² + ‖w₂‖²) with w₂ = −w₁ is ¼‖w₂ − w₁‖²: half of the binary objective at 2C."""
    X, y = clouds(4, n_classes=2)
    K = gram_matrix("rbf", X, gamma=0.4)
    model = SVC(C=1.5, gamma=0.4, multiclass=machine, bias=bias, tol=1e-9).fit(X, np.array(["a", "b"])[y])
    binary = c_svc(np.where(y == 1, 1.0, -1.0), 3.0)
    value, beta = by_clarabel(binary if bias else without_bias(binary), K)
    assert model.certificate_.dual == pytest.approx(value / 2, rel=1e-6)
    assert model.dual_coef_.shape == (1, len(model.support_))
    assert model.intercept_.shape == (1,)
    f = model.decision_function(X)
    b = SVC(C=3.0, gamma=0.4, tol=1e-9).fit(X, y).intercept_ if bias else np.zeros(1)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-3)
    np.testing.assert_allclose(f, K @ beta + b, atol=1e-3)
    np.testing.assert_array_equal(model.predict(X), np.where(f >= 0, "b", "a"))
    np.testing.assert_allclose(K[:, model.support_] @ model.dual_coef_[0] + model.intercept_, f, atol=1e-9)


def test_weston_watkins_with_margin_two_is_ours_at_half_C():
    """Their problem, margin 2 at C, is f = 2f' with f' ours at C/2: the claim that the documentation makes."""
    X, y = clouds(5, n=30, n_classes=3)
    ours = SVC(C=0.5, kernel="linear", multiclass="weston-watkins", bias=False, tol=1e-9).fit(X, y)
    W = 2 * ours.coef_

    def theirs(W):
        f = X @ W.T
        margins = f[np.arange(len(y)), y, None] - f
        wrong = np.arange(3) != y[:, None]
        return (W**2).sum() / 2 + (np.maximum(0.0, 2.0 - margins) * wrong).sum()

    best = theirs(W)
    rng = np.random.default_rng(0)
    for _ in range(300):
        assert theirs(W + 10 ** rng.uniform(-5, -1) * rng.normal(size=W.shape)) >= best - 1e-6


# --- the machine as an estimator ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["recipe", "composite", "callable", "precomputed", "strings"])
@pytest.mark.parametrize("machine", MACHINES)
def test_every_kind_of_kernel_and_data(machine, kind):
    X, y = clouds(6)
    composite = 0.5 * Gaussian(gamma=0.5) + Linear() * Laplacian(gamma=0.2)
    kernel = {"recipe": "rbf", "composite": composite, "callable": lambda A, B: np.asarray(A @ B.T) + 1.0}.get(
        kind, kind
    )
    if kind == "strings":
        texts = [
            "".join("ab"[v] for v in (row > 0).astype(int)) * 3 + "abc"[c % 3] for row, c in zip(X, y, strict=True)
        ]
        model = SVC(kernel="spectrum", multiclass=machine).fit(texts, y)
        assert model.converged_
        assert model.decision_function(texts).shape == (len(y), 4)
        return
    forms = [X, X.astype(np.float32)]
    if kind in ("recipe", "composite"):
        forms.append(sp.csr_array(X))
    values = []
    for form in forms:
        given_ = gram_matrix("rbf", form, gamma=0.3) if kind == "precomputed" else form
        model = SVC(kernel=kernel, gamma=0.3, multiclass=machine, tol=1e-6).fit(given_, y)
        K = given_ if kind == "precomputed" else model.kernel_(form)
        assert model.certificate_.dual == pytest.approx(
            dual_by_qp(K, y, np.ones(len(y)), 4, machine=machine, bias=True)[0], rel=1e-6
        )
        values.append(model.decision_function(given_))
        np.testing.assert_array_equal(model.predict(given_), values[-1].argmax(axis=1))
    for other in values[1:]:
        np.testing.assert_allclose(other, values[0], atol=1e-3)


@pytest.mark.parametrize("machine", MACHINES)
def test_attributes_are_those_of_the_callers_rows(machine):
    X, y = clouds(7)
    rows = np.r_[np.arange(len(y)), [3, 3, 8]]
    weight = np.ones(len(rows))
    weight[[5, 6]] = 0.0
    labels = np.array(["d", "a", "c", "b"])
    model = SVC(C=2.0, gamma=0.4, multiclass=machine, bias=False).fit(X[rows], labels[y[rows]], weight)
    assert not np.isin(model.support_, [5, 6]).any()
    assert model.dual_coef_.shape == (4, len(model.support_))
    assert model.n_support_.sum() == len(model.support_)
    codes = np.searchsorted(model.classes_, labels[y[rows]])[model.support_]
    assert (np.diff(codes) >= 0).all()
    np.testing.assert_allclose(model.dual_coef_.sum(axis=0), 0.0, atol=1e-12)
    assert (model.dual_coef_[np.arange(4)[:, None] != codes] <= 0).all()
    own = model.dual_coef_[codes, np.arange(len(codes))]
    if machine == "crammer-singer":
        assert (own <= 2.0).all()
        assert (own == 2.0).any(), "a sample at its bound is exactly there"
    else:
        assert (model.dual_coef_ >= -2.0).all()
        assert (model.dual_coef_ == -2.0).any()
    K = gram_matrix("rbf", X[rows], gamma=0.4)
    np.testing.assert_allclose(K[:, model.support_] @ model.dual_coef_.T, model.decision_function(X[rows]), atol=1e-9)
    for name in ("dual_coef_", "intercept_", "support_"):
        assert not getattr(model, name).flags.writeable


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("machine", MACHINES)
def test_saved_pickled_and_cloned(machine, n_classes, tmp_path):
    X, y = clouds(8, n_classes=n_classes)
    model = SVC(multiclass=machine).fit(X, y)
    mercer.save(model, tmp_path / "joint.mercer")
    for copy in (mercer.load(tmp_path / "joint.mercer"), pickle.loads(pickle.dumps(model)), clone(model).fit(X, y)):
        np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
        assert copy.certificate_ == model.certificate_
        assert copy.multiclass == machine


BAD = [
    ({"multiclass": "crammer singer"}, r"multiclass='crammer singer' must be one of 'ovo'.*'crammer-singer'"),
    ({"multiclass": None}, r"multiclass=None must be one of"),
    ({"multiclass": "weston-watkins", "bias": 1}, r"bias=1 must be one of True, False, 'regularized'"),
    (
        {"multiclass": "weston-watkins", "decision_function_shape": "ovo"},
        r"no meaning for multiclass='weston-watkins'.*'ovr'",
    ),
    ({"multiclass": "crammer-singer", "C": np.inf}, r"C=inf"),
    ({"multiclass": "crammer-singer", "C": -1.0}, r"C=-1.0 must be a finite number above 0"),
]


@pytest.mark.parametrize(("parameters", "text"), BAD, ids=[str(row[0]) for row in BAD])
def test_bad_parameters_say_what_to_do(parameters, text):
    X, y = clouds(9)
    model = SVC(**parameters)
    with pytest.raises(ValueError, match=text):
        model.fit(X, y)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("machine", MACHINES)
def test_limits_are_kept_and_reported(machine):
    X, y = (rows[:600] for rows in load_digits(return_X_y=True))
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = SVC(multiclass=machine, max_iter=50).fit(X, y)
    assert model.stop_reason_ == "max_iter"
    assert model.n_iter_.sum() == 50
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = SVC(multiclass=machine, max_time=1e-9).fit(X, y)
    assert model.stop_reason_ == "max_time"
    assert model.certificate_.gap > 0
    full = SVC(multiclass=machine, gap_tol=1e-6).fit(X, y)
    assert full.certificate_.gap <= 1e-6 * full.certificate_.dual


@pytest.mark.parametrize("machine", MACHINES)
def test_an_indefinite_kernel_ends_with_a_lesser_proof(machine):
    X, y = clouds(10)
    model = SVC(kernel="sigmoid", gamma=1.0, coef0=-2.0, multiclass=machine)
    with pytest.warns(NonPSDKernelWarning):
        model.fit(X, y)
    assert model.certificate_.proves == "stationarity"
    assert np.isfinite(model.dual_coef_).all()


def test_samples_without_any_feature_end_at_their_bound():
    X, y = clouds(11)
    X[:6] = 0.0
    y[:6] = [0, 1, 2, 3, 0, 1]
    for machine in MACHINES:
        model = SVC(kernel="linear", multiclass=machine, bias=False, tol=1e-6).fit(X, y)
        assert model.converged_
        value, _ = dual_by_qp(X @ X.T, y, np.ones(len(y)), 4, machine=machine, bias=False)
        assert model.certificate_.dual == pytest.approx(value, rel=1e-6)


def test_verbose_prints_its_progress(capsys):
    X, y = load_digits(return_X_y=True)
    SVC(multiclass="crammer-singer", verbose=True).fit(X, y)
    assert "support vectors  violation" in capsys.readouterr().out


@pytest.mark.parametrize(("one", "other"), [(m, m.replace("-", "_")) for m in MACHINES])
def test_a_hyphen_and_an_underscore_spell_the_same_machine(one, other):
    X, y = load_iris(return_X_y=True)
    first, second = (SVC(multiclass=name).fit(X, y) for name in (one, other))
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))
