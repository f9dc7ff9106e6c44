"""The joint multi-class machines against quadratic programs written out, LIBLINEAR and the binary machine."""

import math
import pickle
import signal
import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import mercer
from mercer import SVC
from mercer.certificates.joint import certify_joint
from mercer.errors import NonPSDKernelWarning
from mercer.gram import gram_for
from mercer.gram.joint_field import JointField
from mercer.kernels import Gaussian, Laplacian, Linear, as_kernel
from mercer.problems.multiclass import JointProblem
from mercer.solution import Stop
from mercer.solvers.joint import ascent as solver
from mercer.solvers.joint.ascent import solve_joint
from reference.multiclass import dual_by_qp, primal_by_qp
from reference.problems import c_svc, gram_matrix, without_bias
from reference.qp import by_clarabel

MACHINES = ["crammer-singer", "weston-watkins"]
BIASES = [False, "regularized", True]
NUMBERS = {
    "linear": {},
    "rbf": {"gamma": 0.4},
    "laplacian": {"gamma": 0.3},
    "poly": {"gamma": 0.5, "degree": 2, "coef0": 1.0},
}


def clouds(seed, n=45, n_classes=4, n_features=3):
    """Overlapping clouds with some labels wrong, every class present, half of the entries zero."""
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)]
    centres = rng.normal(scale=1.5, size=(n_classes, n_features))
    X = (centres[y] + rng.normal(size=(n, n_features))) * (rng.random((n, n_features)) < 0.8)
    y[n_classes:] = np.where(
        rng.random(n - n_classes) < 0.1, rng.integers(n_classes, size=n - n_classes), y[n_classes:]
    )
    return X, y


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
    ({"multiclass": "crammer_singer"}, r"multiclass='crammer_singer' must be one of 'ovo'.*'crammer-singer'"),
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
    X, y = load_digits(return_X_y=True)
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


# --- the solver in blocks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "linear", "callable"])
@pytest.mark.parametrize("machine", MACHINES)
def test_blocks_shrinking_and_precision_change_nothing(machine, kernel, monkeypatch):
    """One block, many blocks, with and without shrinking, float32 or float64: the same optimum, all certified."""
    X, y = load_digits(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[:1100], y[:1100]
    kernel = (lambda A, B: np.exp(-0.01 * ((A[:, None] - B[None]) ** 2).sum(-1))) if kernel == "callable" else kernel
    n = 1100 if isinstance(kernel, str) else 300
    options = {"kernel": kernel, "multiclass": machine, "gamma": 0.01, "C": 0.1, "tol": 1e-4}
    whole = SVC(**options).fit(X[:n], y[:n])
    monkeypatch.setattr(solver, "_ONE_BLOCK", 10)
    monkeypatch.setattr(solver, "_BLOCK", 64)
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
    monkeypatch.setattr(solver, "_ONE_BLOCK", 10)
    monkeypatch.setattr(solver, "_BLOCK", 64)
    X, y = load_digits(return_X_y=True)
    kernel = as_kernel("rbf", degree=3, gamma=0.001, coef0=0.0)
    problem = JointProblem(y.astype(np.intp), np.ones(len(y)), 10, shared=True)
    sizes, gram, zero = [], gram_for(kernel, X), np.zeros((len(y), 10))
    field = JointField(gram, problem, zero, zero, np.float64)
    solution = solver.ascend(
        field,
        Stop(tol=1e-3, max_iter=10**7),
        lambda words: sizes.append(len(field.active)),
        shrinking=True,
    )
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


@pytest.mark.parametrize("shared", [True, False])
def test_the_certificate_sees_every_kind_of_fault(shared):
    """Not the solver's word: a β that was tampered with is found out, by name."""
    X, y = clouds(13)
    gram = gram_for(as_kernel("rbf", degree=3, gamma=0.4, coef0=0.0), X)
    problem = JointProblem(y.astype(np.intp), np.ones(len(y)), 4, shared=shared)
    solution, good = solve_joint(problem, gram, Stop(tol=1e-9, max_iter=10**7))
    assert good.violation <= 1e-9
    assert all(residual <= 1e-8 for residual in good.kkt.values())
    free = int(np.flatnonzero(((solution.beta < -1e-3) & (solution.beta > -0.9)).any(axis=1))[0])
    k = int(np.argmin(np.where(np.arange(4) == y[free], 0.0, solution.beta[free])))

    def tampered(change):
        beta = solution.beta.copy()
        beta[free, k] -= change
        beta[free, y[free]] += change
        return certify_joint(problem, gram, beta)[0]

    less = tampered(-0.5 * abs(solution.beta[free, k]))
    assert less.gap > 1e-6
    assert less.violation > 1e-3
    assert less.kkt["primal feasibility"] > 1e-3 or less.kkt["complementary slackness"] > 1e-3
    assert tampered(5.0).kkt["dual feasibility: box"] > 1.0
    unbalanced = solution.beta.copy()
    unbalanced[free, y[free]] += 0.25
    assert certify_joint(problem, gram, unbalanced)[0].kkt["dual feasibility: equality"] == pytest.approx(0.25)


# --- properties -----------------------------------------------------------------------------------------------------


@st.composite
def problems(draw):
    seed, n_classes = draw(st.integers(0, 2**32 - 1)), draw(st.integers(2, 5))
    n = draw(st.integers(max(6, n_classes + 1), 30))
    X, y = clouds(seed, n=n, n_classes=n_classes, n_features=draw(st.integers(1, 4)))
    kernel = draw(st.sampled_from(list(NUMBERS)))
    options = {
        "C": 10 ** draw(st.floats(-2, 1)),
        "kernel": kernel,
        "multiclass": draw(st.sampled_from(MACHINES)),
        "bias": draw(st.sampled_from(BIASES)),
        "tol": 1e-6,
        "max_time": 5.0,
        **NUMBERS[kernel],
    }
    return X, y, options


def same_function(one, other, X, options):
    """Optima of one strictly concave problem differ, in f, by at most √(2·gap·k(x, x)) each."""
    size = np.sqrt(np.diag(gram_matrix(options["kernel"], X, **NUMBERS[options["kernel"]])) + 1.0).max()
    bound = 2 * size * sum(math.sqrt(2 * max(m.certificate_.gap, 0.0)) for m in (one, other))
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=bound + 1e-7 * (1 + size**2))


@settings(max_examples=60)
@given(problems(), st.randoms(use_true_random=False))
def test_integer_weights_are_repeats_and_zero_is_removed(drawn, random):
    X, y, options = drawn
    weight = np.array([random.randint(0, 3) for _ in y], dtype=float)
    weight[: y.max() + 1] = 1.0
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    weighted = SVC(**options).fit(X, y, sample_weight=weight)
    repeated = SVC(**options).fit(X[rows], y[rows])
    np.testing.assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))
    assert not np.isin(weighted.support_, np.flatnonzero(weight == 0)).any()


@settings(max_examples=60)
@given(problems(), st.integers(0, 2**32 - 1))
def test_order_of_rows_threads_and_names_of_classes_do_not_matter(drawn, seed):
    X, y, options = drawn
    rng = np.random.default_rng(seed)
    model = SVC(**options).fit(X, y)
    order = rng.permutation(len(y))
    shuffled = SVC(**options, n_jobs=2).fit(X[order], y[order])
    np.testing.assert_array_equal(model.decision_function(X), shuffled.decision_function(X))
    # Other names put the classes into another order, which the optimum does not know of.
    names = rng.permutation(y.max() + 1)
    renamed = SVC(**options).fit(X, names[y])
    f, g = model.decision_function(X), renamed.decision_function(X)
    if y.max() > 1:
        size = np.sqrt(np.diag(gram_matrix(options["kernel"], X, **NUMBERS[options["kernel"]])) + 1.0).max()
        bound = 2 * size * sum(math.sqrt(2 * m.certificate_.gap) for m in (model, renamed)) + 1e-7 * (1 + size**2)
        np.testing.assert_allclose(g[:, names], f, atol=bound)
        np.testing.assert_allclose(f.sum(axis=1), 0.0, atol=1e-9 * (1 + np.abs(f).max()))


@settings(max_examples=60)
@given(problems())
def test_the_gap_bounds_the_distance_to_the_quadratic_program(drawn):
    X, y, options = drawn
    n_classes = int(y.max()) + 1
    model = SVC(**{**options, "tol": 1e-2}).fit(X, y)
    K = gram_matrix(options["kernel"], X, **NUMBERS[options["kernel"]])
    C = np.full(len(y), options["C"])
    value, _ = dual_by_qp(K, y, C, n_classes, machine=options["multiclass"], bias=options["bias"])
    certificate, slack = model.certificate_, 1e-6 * (1 + abs(value))
    assert certificate.dual <= value + slack
    assert value <= certificate.primal + slack
    assert certificate.gap >= 0
    assert certificate.gap == pytest.approx(certificate.primal - certificate.dual, abs=1e-9 * (1 + abs(value)))
    # What tol promises of the gap: every multiplier is worth at most its violation.
    assert (
        certificate.gap <= 1e-2 * C.sum() * (1 if options["multiclass"] == "crammer-singer" else n_classes - 1) + 1e-9
    )


@settings(max_examples=40)
@given(problems(), st.sampled_from([0.25, 3.0]))
def test_scaling_the_kernel_is_scaling_C(drawn, a):
    X, y, options = drawn
    K = gram_matrix(options["kernel"], X, **NUMBERS[options["kernel"]])
    options = {**options, "kernel": "precomputed", "bias": False}
    one = SVC(**options).fit(K, y)
    other = SVC(**{**options, "C": options["C"] / a}).fit(a * K, y)
    size = np.sqrt(np.diag(K).max() + 1.0)
    bound = 2 * size * (math.sqrt(2 * one.certificate_.gap) + math.sqrt(2 * a * other.certificate_.gap))
    np.testing.assert_allclose(
        one.decision_function(K), other.decision_function(a * K), atol=bound + 1e-7 * (1 + size**2)
    )


@settings(max_examples=40)
@given(problems())
def test_every_fit_ends_and_repeats_itself(drawn):
    X, y, options = drawn
    model, again = SVC(**options).fit(X, y), SVC(**options).fit(X, y)
    assert model.stop_reason_ in ("converged", "rounding floor")
    np.testing.assert_array_equal(model.dual_coef_, again.dual_coef_)
    same_function(model, again, X, options)
