"""LinearSVC and LinearSVR against LIBLINEAR, SVC, a generic solver's objective, and themselves."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC as PeerSVC
from sklearn.svm import LinearSVR as PeerSVR

import mercer
from mercer import SVC, LinearSVC, LinearSVR

SOLVERS = ["newton", "dual"]


def two_classes(n=120, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    y = np.where(X @ rng.normal(size=d) + 0.5 * rng.normal(size=n) + 0.3 > 0, 1, -1)
    return X, y


def objective(model, X, y, loss, *, C=1.0, regularized=False, epsilon=0.0, scaling=1.0):
    """The textbook objective, written out once more."""
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    f = X @ w + b
    slack = np.maximum(1 - y * f, 0) if "hinge" in loss else np.maximum(np.abs(y - f) - epsilon, 0)
    return (
        0.5 * (w @ w + ((b / scaling) ** 2 if regularized else 0))
        + C * (slack**2 if "squared" in loss else slack).sum()
    )


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(("bias", "scaling"), [("regularized", 1.0), ("regularized", 5.0), (False, 1.0)])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_objective_equals_liblinears(solver, loss, bias, scaling, C):
    X, y = two_classes()
    options = {"C": C, "loss": loss, "intercept_scaling": scaling}
    mine = LinearSVC(bias=bias, solver=solver, tol=1e-8, **options).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peer = PeerSVC(tol=1e-9, max_iter=10**6, fit_intercept=bool(bias), dual=True, **options).fit(X, y)
    theirs, ours = (
        objective(model, X, y, loss, C=C, regularized=bool(bias), scaling=scaling) for model in (peer, mine)
    )
    assert mine.converged_
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert mine.certificate_.primal == pytest.approx(ours, rel=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_regression_objective_equals_liblinears(solver, loss, epsilon):
    X, y = load_diabetes(return_X_y=True)
    X, y = 20 * X, (y - y.mean()) / y.std()
    options = {"C": 0.1, "loss": loss, "epsilon": epsilon}
    mine = LinearSVR(bias="regularized", solver=solver, tol=1e-7, **options).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peer = PeerSVR(tol=1e-8, max_iter=10**6, dual=True, **options).fit(X, y)
    values = [objective(m, X, y, loss, C=0.1, regularized=True, epsilon=epsilon) for m in (mine, peer)]
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    assert mine.certificate_.primal == pytest.approx(values[0], rel=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_unregularised_bias_is_that_of_the_kernel_machine(solver, C):
    X, y = two_classes(seed=1)
    kernel = SVC(C, kernel="linear", tol=1e-10).fit(X, y)
    linear = LinearSVC(C, loss="hinge", solver=solver, tol=1e-9, max_iter=100_000).fit(X, y)
    assert linear.certificate_.primal == pytest.approx(kernel.certificate_.primal, rel=1e-9)
    np.testing.assert_allclose(linear.coef_, kernel.coef_, atol=1e-6)
    np.testing.assert_allclose(linear.intercept_, kernel.intercept_, atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_squared_hinge_with_free_bias_minimises_its_objective(solver):
    X, y = two_classes(seed=2)

    def value_and_slope(z):
        slack = np.maximum(1 - y * (X @ z[:-1] + z[-1]), 0)
        slope = -2 * y * slack
        return 0.5 * z[:-1] @ z[:-1] + slack @ slack, np.r_[z[:-1] + X.T @ slope, slope.sum()]

    start = np.zeros(X.shape[1] + 1)
    found = optimize.minimize(
        value_and_slope, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}
    )
    model = LinearSVC(solver=solver, tol=1e-8).fit(X, y)
    assert objective(model, X, y, "squared_hinge") == pytest.approx(found.fun, rel=1e-9)
    np.testing.assert_allclose(np.r_[model.coef_[0], model.intercept_], found.x, atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(4, 40),
    d=st.integers(1, 6),
    log_C=st.integers(-3, 3),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
    bias=st.sampled_from([True, False, "regularized"]),
    loss=st.sampled_from(["hinge", "squared_hinge"]),
)
def test_newton_certifies_any_small_problem(seed, n, d, log_C, scale, bias, loss):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 1)
    y = np.r_[-1, 1, rng.choice([-1, 1], n - 2)]
    C = 10.0**log_C / scale**2
    model = LinearSVC(C, loss=loss, bias=bias, tol=None, gap_tol=1e-7).fit(scale * X, y)
    certificate = model.certificate_
    assert model.converged_
    assert 0 <= certificate.gap <= 1e-7 * abs(certificate.dual)
    # ½ of the squared length is at least what is left when the losses are taken off: P ≥ D by more than rounding never.
    assert certificate.primal - certificate.dual >= -1e-9 * abs(certificate.primal)
    assert certificate.gap == pytest.approx(certificate.primal - certificate.dual, abs=1e-9 * certificate.primal)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_dense_csr_and_index_types_agree(solver, loss):
    X, y = two_classes(seed=3)
    options = {"loss": loss, "solver": solver, "tol": 1e-7}
    dense = LinearSVC(**options).fit(X, y)
    csr = sparse.csr_array(X)
    wide = sparse.csr_array((csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64)), shape=csr.shape)
    for other in (csr, wide):
        np.testing.assert_allclose(LinearSVC(**options).fit(other, y).coef_, dense.coef_, atol=1e-6)
    single = LinearSVC(**options).fit(X.astype(np.float32), y)
    again = LinearSVC(**options).fit(X.astype(np.float32).astype(np.float64), y)
    np.testing.assert_allclose(single.coef_, again.coef_, atol=1e-7)


def test_result_does_not_depend_on_threads_and_repeats():
    X, y = load_breast_cancer(return_X_y=True)
    X = sparse.csr_array(np.tile((X - X.mean(axis=0)) / X.std(axis=0), (1, 40)) / 40)  # wide: dual coordinate descent
    one, two, three = (LinearSVC(loss="hinge", n_jobs=k).fit(X, y) for k in (1, 2, 2))
    assert one.solver_.startswith("dual coordinate descent")
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(two.coef_, three.coef_)
    other = LinearSVC(loss="hinge", random_state=3).fit(X, y)
    assert other.certificate_.primal == pytest.approx(one.certificate_.primal, rel=1e-3)


def test_one_against_the_rest():
    X, y = load_iris(return_X_y=True)
    model = LinearSVC(tol=1e-8).fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert len(model.certificate_.parts) == 3
    for k in range(3):
        own = LinearSVC(tol=1e-8).fit(X, y == k)
        np.testing.assert_allclose(model.coef_[k], own.coef_[0], atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), np.argmax(model.decision_function(X), axis=1))


def test_columns_of_any_scale_and_offset():
    X, y = load_breast_cancer(return_X_y=True)
    model = LinearSVC(loss="hinge", tol=None, gap_tol=1e-6).fit(X, y)  # unscaled: LIBLINEAR gives up on it
    assert model.certificate_.relative_gap <= 1e-6
    moved = LinearSVC(loss="hinge", tol=None, gap_tol=1e-6).fit(X + 1e4, y)
    assert moved.certificate_.primal == pytest.approx(model.certificate_.primal, rel=1e-5)
    np.testing.assert_allclose(moved.decision_function(X + 1e4), model.decision_function(X), atol=1e-2)


def test_class_weights_are_factors_of_C():
    X, y = two_classes(seed=4)
    weighted = LinearSVC(class_weight={1: 3.0}, tol=1e-8).fit(X, y)
    by_sample = LinearSVC(tol=1e-8).fit(X, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    np.testing.assert_allclose(weighted.coef_, by_sample.coef_, atol=1e-8)


def test_a_limit_warns_with_the_gap_and_what_to_do():
    X, y = two_classes()
    with pytest.warns(
        ConvergenceWarning, match=r"(?s)stopped before tol=1e-09 \(max_iter\).*gap .*of the dual value.*max_iter"
    ):
        model = LinearSVC(loss="hinge", solver="dual", C=100, tol=1e-9, max_iter=3).fit(X, y)
    assert not model.converged_
    assert model.stop_reason_ == "max_iter"
    assert model.certificate_.gap > 0


@pytest.mark.parametrize("estimator", [LinearSVC(), LinearSVC(loss="hinge"), LinearSVR(C=0.5)])
def test_files_keep_the_model(estimator, tmp_path):
    X, y = load_iris(return_X_y=True)
    model = estimator.fit(X, y)
    mercer.save(model, tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    assert loaded.certificate_ == model.certificate_
    assert loaded.get_params() == model.get_params()
    assert not loaded.coef_.flags.writeable


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_path_agrees_with_single_fits(solver):
    X, y = two_classes(seed=5)
    path = mercer.linear_path(X, y, Cs=[10.0, 0.1, 1.0], loss="hinge", solver=solver, tol=1e-7)
    np.testing.assert_array_equal(path.C, [0.1, 1.0, 10.0])
    for k, C in enumerate(path.C):
        single = LinearSVC(C, loss="hinge", solver=solver, tol=1e-7).fit(X, y)
        assert path.certificates[k].primal == pytest.approx(single.certificate_.primal, rel=1e-6)
        np.testing.assert_allclose(path.coef[k], single.coef_[0], atol=1e-4)
    assert (path.gap <= 1e-5).all()
    with pytest.raises(ValueError, match="two classes"):
        mercer.linear_path(X, np.arange(len(y)) % 3, Cs=[1.0])


def joint_objective(W, b, X, y, C, regularized):
    """Crammer and Singer's objective, sample by sample."""
    total = 0.5 * ((W**2).sum() + (regularized * b**2).sum())
    for x, own in zip(X, y, strict=True):
        f = W @ x + b
        total += C * max(0.0, max(1 + f[k] - f[own] for k in range(len(W)) if k != own))
    return total


@pytest.mark.parametrize("bias", ["regularized", False])
@pytest.mark.parametrize("C", [0.1, 3.0])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_crammer_singer_objective_equals_liblinears(bias, C, convert):
    X, y = load_iris(return_X_y=True)
    X = X - X.mean(axis=0)
    mine = LinearSVC(C, multiclass="crammer_singer", bias=bias, tol=1e-7).fit(convert(X), y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = PeerSVC(C=C, multi_class="crammer_singer", tol=1e-8, max_iter=10**6, fit_intercept=bool(bias)).fit(X, y)
    ours = joint_objective(mine.coef_, mine.intercept_, X, y, C, bool(bias))
    theirs = joint_objective(peer.coef_, np.broadcast_to(peer.intercept_, 3), X, y, C, bool(bias))
    assert mine.converged_
    assert mine.certificate_.violation <= 1e-7
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert mine.certificate_.primal == pytest.approx(ours, rel=1e-10)
    assert mine.certificate_.dual == pytest.approx(ours, rel=1e-5)
    np.testing.assert_array_equal(mine.predict(X), peer.predict(X))
    hyphen = LinearSVC(C, multiclass="crammer-singer", bias=bias, tol=1e-7).fit(convert(X), y)
    np.testing.assert_array_equal(hyphen.coef_, mine.coef_)


def test_crammer_singer_with_two_classes_rows_of_zeros_and_weights():
    X, y = two_classes(seed=6)
    X[:3] = 0.0
    options = {"multiclass": "crammer_singer", "bias": "regularized", "tol": 1e-8}
    model = LinearSVC(**options).fit(X, y)
    assert model.coef_.shape == (1, X.shape[1])
    # With w_1 = −w_0 the joint machine is the binary one with twice the price of ½‖w_1 − w_0‖²/2.
    binary = LinearSVC(2.0, loss="hinge", bias="regularized", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, binary.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, binary.intercept_, atol=1e-5)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    by_weight = LinearSVC(**options).fit(X, y, sample_weight=weight)
    repeated = LinearSVC(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(by_weight.coef_, repeated.coef_)
    loose = LinearSVC(multiclass="crammer_singer", bias=False, tol=None, gap_tol=1e-3).fit(X, y)
    assert loose.certificate_.relative_gap <= 1e-3


def test_crammer_singer_says_what_it_cannot_do():
    X, y = two_classes()
    for spelling in ("crammer_singer", "crammer-singer"):
        with pytest.raises(ValueError, match=rf"unpenalised bias.*'{spelling}'.*regularized"):
            LinearSVC(multiclass=spelling).fit(X, y)
    with pytest.raises(ValueError, match="multiclass='joint'"):
        LinearSVC(multiclass="joint").fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        LinearSVC(1e3, multiclass="crammer_singer", bias=False, tol=1e-9, max_iter=2).fit(X, y)


def text(n=400, d=900, seed=0, share=0.5):
    """Rows of a few words each, some of them frequent, of length 1; `share` of them in the second class."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, d + 1)
    X = sparse.csr_array((rng.random((n, d)) < 8 * frequency / frequency.sum()) * rng.random((n, d)))
    X = sparse.csr_array(X / np.maximum(np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel()), 1e-9)[:, None])
    f = X @ rng.normal(size=d) + 0.3 * rng.normal(size=n)
    return X, np.where(f > np.quantile(f, 1 - share), 1, -1)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("bias", ["regularized", True])
@pytest.mark.parametrize("share", [0.5, 0.05])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_a_bias_held_during_passes_ends_where_newton_does(loss, bias, share, C):
    X, y = text(share=share)
    options = {"C": C, "loss": loss, "bias": bias, "tol": None, "gap_tol": 1e-8}
    dual, newton = (LinearSVC(solver=solver, **options).fit(X, y) for solver in ("dual", "newton"))
    assert dual.converged_
    assert newton.converged_
    assert dual.certificate_.primal == pytest.approx(newton.certificate_.primal, rel=3e-8)
    regularized = bias == "regularized"
    stated = objective(dual, X, y, loss, C=C, regularized=regularized)
    assert stated == pytest.approx(newton.certificate_.primal, rel=3e-8)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("bias", ["regularized", True])
def test_a_bias_costs_few_passes(loss, bias):
    X, y = text(n=1500, d=3000)
    options = {"C": 10.0, "loss": loss, "solver": "dual", "tol": None, "gap_tol": 1e-4}
    with_bias, without = (LinearSVC(bias=b, **options).fit(X, y).n_iter_ for b in (bias, False))
    assert with_bias <= 2 * without + 5  # three times that without steps of b that help


def test_a_bias_that_jumps_is_found_all_the_same():
    # The features say next to nothing, so that every row of the larger class meets its margin at the same b = -1.
    rng = np.random.default_rng(0)
    X, y = sparse.random_array((300, 40), density=0.05, rng=rng, format="csr") * 1e-3, np.r_[np.ones(30), -np.ones(270)]
    for bias in ("regularized", True):
        model = LinearSVC(C=2.0, loss="hinge", bias=bias, solver="dual", tol=None, gap_tol=1e-4).fit(X, y)
        assert model.converged_
        assert model.intercept_[0] == pytest.approx(-1.0, abs=1e-2)


def test_a_path_is_shown_in_one_line():
    X, y = two_classes()
    shown = repr(mercer.linear_path(X, y, Cs=[0.1, 1.0]))
    assert shown.startswith("LinearPath(2 values of C from 0.1 to 1, 6 features, gap <= ")
    assert "\n" not in shown


@pytest.mark.parametrize(
    ("load", "bias", "convert"),
    [
        (load_iris, False, sparse.csr_array),
        (load_iris, "regularized", np.asarray),
        (load_wine, False, np.asarray),
        (load_wine, "regularized", sparse.csr_array),
    ],
)
def test_crammer_singer_converges_on_raw_columns(load, bias, convert):
    """Columns of different scales: descent alone needs more than 10,000 passes, at a gap of 75 on wine."""
    X, y = load(return_X_y=True)
    model = LinearSVC(multiclass="crammer_singer", bias=bias).fit(convert(X), y)  # a warning would be an error
    assert model.converged_
    f = X @ model.coef_.T + model.intercept_
    own = f[np.arange(len(y)), y]
    loss = (f + 1.0 - np.eye(3)[y]).max(axis=1) - own
    b2 = (model.intercept_**2).sum() if bias else 0.0
    value = 0.5 * ((model.coef_**2).sum() + b2) + loss.sum()
    assert value == pytest.approx(model.certificate_.primal, rel=1e-6)
    assert value - model.certificate_.dual <= 1e-3 * value
    gap = LinearSVC(multiclass="crammer_singer", bias=bias, tol=None, gap_tol=1e-6).fit(convert(X), y)
    assert gap.converged_
    assert gap.certificate_.relative_gap <= 1e-6


def test_crammer_singer_has_one_answer_with_and_without_shrinking():
    X, y = load_digits(return_X_y=True)
    X, y = X[:400], y[:400]
    options = {"multiclass": "crammer_singer", "bias": "regularized", "tol": 1e-6, "C": 1e-3}
    aside, all_of_them = (LinearSVC(**options, shrinking=shrinking).fit(X, y) for shrinking in (True, False))
    np.testing.assert_allclose(aside.decision_function(X), all_of_them.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("unit", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_small_targets_give_the_same_model_scaled(loss, unit):
    """An absolute tolerance would be met before training has begun."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    squared = loss.startswith("squared")
    whole = LinearSVR(epsilon=0.1, loss=loss).fit(X, y)
    small = LinearSVR(C=1.0 if squared else unit, epsilon=0.1 * unit, loss=loss).fit(X, unit * y)
    assert small.converged_
    assert small.certificate_.relative_gap < 1e-3
    np.testing.assert_allclose(small.predict(X) / unit, whole.predict(X), atol=1e-3)


def test_newtons_method_ends_where_rounding_leaves_nothing_to_gain():
    """Features of 1e30: what is left to gain is zero to rounding, and may come out below it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 2)) * 1e30, np.arange(10) % 3
    model = LinearSVC(loss="squared_hinge", bias="regularized", C=0.01, tol=0.01)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert model.stop_reason_ == "stalled"
    assert model.n_iter_ < 2000
