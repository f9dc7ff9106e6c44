"""mercer.certify of models that other libraries fitted, against their problems written out in NumPy."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
KERNELS = {"rbf": {"gamma": 0.7}, "linear": {}, "poly": {"degree": 2, "gamma": 0.5, "coef0": 1.0}}


def drawn(seed):
    """Samples, two classes, three classes, numbers and weights."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(25, 60)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d)) * 10 ** rng.uniform(-1, 0.5)
    noisy = X[:, 0] + 0.5 * rng.normal(size=n) * X.std()
    three = np.digitize(noisy, np.quantile(noisy, [0.3, 0.7]))
    return X, np.where(noisy > np.median(noisy), "yes", "no"), three, noisy**2 + noisy, rng.uniform(0.5, 2.0, size=n)


# --- primal and dual values, written out ------------------------------------------------------------------------------


def plane(f_of, K, y, beta, b, C):
    """A machine of two classes: ½β'Kβ + ΣC max(0, 1 − y f), and Σ|β| − ½β'Kβ."""
    f = f_of(K, beta, b)
    energy = beta @ K @ beta
    return 0.5 * energy + np.sum(C * np.maximum(0, 1 - y * f)), np.sum(y * beta) - 0.5 * energy


def svc(model, K, y, w, C):
    """Sums over the pairs of classes, in LIBSVM's layout of the coefficients."""
    codes = np.searchsorted(model.classes_, y)
    primal = dual = 0.0
    k, pair = len(model.classes_), 0
    table = np.zeros((len(y), max(k - 1, 1)))
    table[model.support_] = model.dual_coef_.T
    for i in range(k):
        for j in range(i + 1, k):
            rows = np.flatnonzero((codes == i) | (codes == j))
            if k == 2:
                side, beta = np.where(codes == 1, 1.0, -1.0), table[:, 0]
            else:
                side = np.where(codes[rows] == i, 1.0, -1.0)
                beta = np.where(side > 0, table[rows, j - 1], table[rows, i])
            price = C * w[rows] * model.class_weight_[codes[rows]]
            here = K[np.ix_(rows, rows)]
            values = plane(lambda K, beta, b: K @ beta + b, here, side, beta, model.intercept_[pair], price)
            primal, dual, pair = primal + values[0], dual + values[1], pair + 1
    return primal, dual


def whole(model, n):
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_[0]
    return beta


def svr(model, K, y, w, C):
    beta, b = whole(model, len(y)), model.intercept_[0]
    energy, off = beta @ K @ beta, np.abs(y - K @ beta - b)
    primal = 0.5 * energy + np.sum(C * w * np.maximum(0, off - model.epsilon))
    return primal, y @ beta - model.epsilon * np.abs(beta).sum() - 0.5 * energy


def one_class(model, K, y, w, _):
    beta, rho = whole(model, len(K)), -model.intercept_[0]
    energy = beta @ K @ beta
    primal = 0.5 * energy + np.sum(w * np.maximum(0, rho - K @ beta)) - model.nu * w.sum() * rho
    return primal, -0.5 * energy


def nu_svc(model, K, y, w, _):
    """min ½‖w‖² − νWρ + Σ w_i max(0, ρ − y f), where LIBSVM's β and b were divided by ρ."""
    side, given = np.where(y == model.classes_[1], 1.0, -1.0), whole(model, len(y))
    scale = model.nu * w.sum() / np.abs(given).sum()
    beta, b = scale * given, scale * model.intercept_[0]
    energy, f = beta @ K @ beta, side * (K @ beta + b)
    values = [0.5 * energy - model.nu * w.sum() * r + np.sum(w * np.maximum(0, r - f)) for r in (*f, scale)]
    return min(values), -0.5 * energy


def nu_svr(model, K, y, w, C):
    beta, b = whole(model, len(y)), model.intercept_[0]
    energy, off = beta @ K @ beta, np.abs(y - K @ beta - b)
    W = np.sum(C * w)
    values = [0.5 * energy + model.nu * W * e + np.sum(C * w * np.maximum(0, off - e)) for e in (*off, 0.0)]
    return min(values), y @ beta - 0.5 * energy


def linear(model, X, y, w):
    """Sums over the classes, against the rest; the dual value only of the squared hinge."""
    primal = dual = 0.0
    for k in range(len(model.coef_)):
        positive = model.classes_[1 if len(model.coef_) == 1 else k]
        side = np.where(y == positive, 1.0, -1.0)
        v, b = model.coef_[k], model.intercept_[k] if model.fit_intercept else 0.0
        slack = np.maximum(0, 1 - side * (X @ v + b))
        own = 0.5 * v @ v + 0.5 * (b / model.intercept_scaling) ** 2
        primal += own + np.sum(model.C * w * (slack**2 if model.loss == "squared_hinge" else slack))
        beta = side * 2 * model.C * w * slack
        combined, total = X.T @ beta, beta.sum() * model.intercept_scaling * bool(model.fit_intercept)
        curved = np.sum(beta**2 / (2 * model.C * w))
        dual += side @ beta - 0.5 * combined @ combined - 0.5 * total**2 - 0.5 * curved
    return primal, dual if model.loss == "squared_hinge" else None


def scaled(proof, by):
    return replace(proof, primal=by * proof.primal, dual=by * proof.dual, gap=by * proof.gap)


def checked(found, truth, tol):
    primal, dual = truth
    size = abs(primal) + (0.0 if dual is None else abs(dual)) + 1e-12
    assert found.primal >= primal - 1e-11 * size
    assert found.primal <= primal + max(1e-9, 10 * tol) * size
    if dual is not None:
        assert found.dual <= dual + max(1e-9, tol) * size
        assert found.dual >= dual - max(1e-9, 10 * tol) * size
        assert found.gap >= primal - dual - 1e-11 * size
        assert found.gap <= primal - dual + 1e-8 * max(1.0, size)
    if tol <= 1e-9:  # LIBSVM's kernel values have 24 bits, so that its last digits are not what tol says
        assert found.relative_gap <= 1e-4


def fits(seed):
    """Every machine of scikit-learn's with its truth, as drawn by this seed: the model, X, y, weights, values."""
    X, two, three, numbers, w = drawn(seed)
    kernel = list(KERNELS)[seed % 3]
    options, C, tol = KERNELS[kernel], 10.0 ** (seed % 4 - 1), (1e-10, 1e-3)[seed % 5 == 4]
    K = pairwise_kernels(X, metric=kernel, filter_params=True, **options)
    shared = {"kernel": kernel, "tol": tol, **options}
    weight = w if seed % 2 else np.ones(len(X))
    balanced = "balanced" if seed % 3 == 1 else None
    for y in (two, three):
        model = sklearn.svm.SVC(C=C, class_weight=balanced, **shared).fit(X, y, weight)
        yield model, X, y, weight, svc(model, K, y, weight, C), tol
    model = sklearn.svm.SVR(C=C, epsilon=0.1, **shared).fit(X, numbers, weight)
    yield model, X, numbers, weight, svr(model, K, numbers, weight, C), tol
    model = sklearn.svm.OneClassSVM(nu=0.3, gamma=0.7, tol=tol).fit(X, sample_weight=weight)
    gaussian = pairwise_kernels(X, metric="rbf", gamma=0.7)
    yield model, X, None, weight, one_class(model, gaussian, None, weight, None), tol
    ones = np.ones(len(X))
    model = sklearn.svm.NuSVC(nu=0.4, **shared).fit(X, two)
    yield model, X, two, ones, nu_svc(model, K, two, ones, None), tol
    model = sklearn.svm.NuSVR(nu=0.4, C=C, **shared).fit(X, numbers)
    yield model, X, numbers, ones, nu_svr(model, K, numbers, ones, C), tol
    for loss, y in (("squared_hinge", two), ("squared_hinge", three), ("hinge", two)):
        model = sklearn.svm.LinearSVC(
            C=min(C, 1.0), loss=loss, tol=tol, max_iter=20_000, random_state=0, intercept_scaling=(1.0, 3.0)[seed % 2],
            fit_intercept=seed % 3 > 0,
        ).fit(X, y, weight)  # fmt: skip
        yield model, X, y, weight, linear(model, X, y, weight), tol
    model = KernelRidge(alpha=0.5, kernel=kernel, **options).fit(X, numbers, weight)
    c = model.dual_coef_
    primal = 0.5 * c @ K @ c + np.sum(weight * (numbers - K @ c) ** 2) / (2 * 0.5)
    yield model, X, numbers, weight, (primal, numbers @ c - 0.5 * c @ K @ c - 0.5 * np.sum(0.5 * c**2 / weight)), 1e-10


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(s, marks=pytest.mark.thorough) for s in range(4, 24))])
def test_scikit_learns_machines(seed):
    for model, X, y, weight, truth, tol in fits(seed):
        found = mercer.certify(model, X, y, sample_weight=weight)
        if isinstance(model, sklearn.svm.NuSVC) and abs(truth[1]) < 1e-4:
            continue  # the reduced hulls meet, and w = 0
        if isinstance(model, sklearn.svm.NuSVC):  # in the scale of f, which was divided by ρ
            found = scaled(found, truth[1] / found.dual)
        try:
            checked(found, truth, tol)
        except AssertionError as error:
            raise AssertionError(f"{model}: {found}\n{truth}") from error


def test_models_that_were_cut_short_are_not_proven():
    X, two, three, numbers, _ = drawn(1)
    for model, y in (
        (sklearn.svm.SVC(C=100, max_iter=5), two),
        (sklearn.svm.SVC(C=100, max_iter=5), three),
        (sklearn.svm.SVR(C=100, max_iter=5), numbers),
        (sklearn.svm.NuSVC(max_iter=5), two),
        (sklearn.svm.NuSVR(C=100, max_iter=5), numbers),
        (sklearn.svm.OneClassSVM(max_iter=1), None),
        (sklearn.svm.LinearSVC(C=100, max_iter=1, random_state=0), two),
        (sklearn.svm.LinearSVC(C=100, max_iter=1, loss="hinge", random_state=0), two),
    ):
        with pytest.warns(ConvergenceWarning):
            model.fit(X, y)
        found = mercer.certify(model, X, y)
        assert found.relative_gap > 0.01, model
        assert "not proven optimal" in found.verdict


def test_the_answer_is_the_models_own():
    """A bias that somebody moved raises the primal value, and coefficients of other labels are no solution."""
    X, two, *_ = drawn(3)
    model = sklearn.svm.SVC(tol=1e-10, gamma=0.7).fit(X, two)
    good = mercer.certify(model, X, two)
    assert good.verdict.startswith("optimal to within")
    model.intercept_ = model.intercept_ + 0.5
    moved = mercer.certify(model, X, two)
    assert moved.primal > good.primal + 1e-3
    assert moved.dual == good.dual
    model.dual_coef_ = -np.asarray(model.dual_coef_)
    assert mercer.certify(model, X, two).gap == np.inf


def exact_primal(model, x, y, C):
    """½w² + ΣC max(0, 1 − y f) of a linear SVC on one feature, in rational numbers."""
    beta, b = np.asarray(model.dual_coef_)[0].tolist(), Fraction(model.intercept_[0])
    w = sum((Fraction(c) * Fraction(x[i]) for c, i in zip(beta, model.support_, strict=True)), Fraction(0))
    losses = (Fraction(C) * max(Fraction(0), 1 - side * (w * Fraction(xi) + b)) for xi, side in zip(x, y, strict=True))
    return w * w / 2 + sum(losses)


def test_primal_is_that_of_the_models_own_coefficients():
    """Coefficients beside their bounds, or with a sum that is not 0, are not exchanged for feasible ones."""
    X, two, *_ = drawn(3)
    x, y = X[:, 0].tolist(), np.where(two == "yes", 1, -1).tolist()
    for change in (1 + 5e-7, 0.99):
        model = sklearn.svm.SVC(kernel="linear", tol=1e-10).fit(X[:, :1], y)
        moved = np.array(model.dual_coef_)
        moved[0, (moved[0] > 0) | (change > 1)] *= change
        model.dual_coef_, model.intercept_ = moved, model.intercept_ + 10 * (change < 1)
        found = mercer.certify(model, X[:, :1], y)
        assert found.primal >= exact_primal(model, x, y, 1.0)
        assert found.primal <= float(exact_primal(model, x, y, 1.0)) * (1 + 1e-12)
        assert np.isinf(found.gap) == (change < 1)
    model = sklearn.svm.OneClassSVM(nu=0.3, gamma=0.7).fit(X).set_params(nu=0.5)
    truth, _ = one_class(model, pairwise_kernels(X, metric="rbf", gamma=0.7), None, np.ones(len(X)), None)
    assert mercer.certify(model, X).primal == pytest.approx(truth, rel=1e-10)


def test_coefficients_of_equal_samples_are_added_exactly():
    y = np.r_[np.ones(1200, dtype=int), -np.ones(600, dtype=int)]
    X = np.full((1800, 1), 100.0)
    for C in (0.1, 0.7, 1 / 3):
        model = sklearn.svm.SVC(kernel="linear", C=C, class_weight={1: 1, -1: 2}).fit(X, y)
        for b in (-2.0, 2.0):
            model.intercept_ = np.array([b])
            w = sum(map(Fraction, np.asarray(model.dual_coef_)[0].tolist())) * 100
            sides = ((1, 1200 * Fraction(C)), (-1, 1200 * Fraction(C)))
            truth = w * w / 2 + sum(c * max(Fraction(0), 1 - s * (100 * w + Fraction(b))) for s, c in sides)
            assert mercer.certify(model, X, y).primal >= truth


def test_nu_svr_without_a_tube():
    """Where ε = 0, α_i and α_i* may both be positive, and a model has their difference."""
    X, _, _, numbers, w = drawn(2)
    model = sklearn.svm.NuSVR(nu=1.0, gamma=0.7, tol=1e-9).fit(X, numbers, w)
    checked(
        mercer.certify(model, X, numbers, sample_weight=w),
        nu_svr(model, pairwise_kernels(X, metric="rbf", gamma=0.7), numbers, w, 1.0),
        1e-9,
    )


def test_weights_of_three_classes_in_a_linear_machine():
    """LIBLINEAR counts a class's weight in its own problem alone; the rest has none there."""
    X, _, three, _, w = drawn(2)
    factor = np.array([0.5, 1.0, 3.0])
    model = sklearn.svm.LinearSVC(tol=1e-10, class_weight=dict(enumerate(factor.tolist())), max_iter=10_000)
    model.fit(X, three, w)
    truth = 0.0
    for k, (v, b) in enumerate(zip(model.coef_, model.intercept_, strict=True)):
        side = np.where(three == k, 1.0, -1.0)
        slack = np.maximum(0, 1 - side * (X @ v + b))
        truth += 0.5 * v @ v + 0.5 * b * b + np.sum(w * np.where(side > 0, factor[k], 1.0) * slack**2)
    found = mercer.certify(model, X, three, sample_weight=w)
    assert found.primal == pytest.approx(truth, rel=1e-10)
    assert found.relative_gap < 1e-6


def test_functions_of_two_samples_in_kernel_ridge():
    X, _, _, numbers, _ = drawn(2)

    def centred(x, z, scale=1.0):
        return scale * float((x - x.mean()) @ (z - z.mean())) + 1.0

    model = KernelRidge(alpha=0.5, kernel=centred, kernel_params={"scale": 2.0}).fit(X, numbers)
    inner = X - X.mean(axis=1, keepdims=True)
    K, c = 2.0 * inner @ inner.T + 1.0, model.dual_coef_
    found = mercer.certify(model, X, numbers)
    assert found.primal == pytest.approx(0.5 * c @ K @ c + np.sum((numbers - K @ c) ** 2), rel=1e-9)
    assert found.relative_gap < 1e-6


def test_what_is_around_a_machine_is_taken_off():
    X, two, _, numbers, _ = drawn(4)
    scaled = StandardScaler().fit_transform(X)
    alone = mercer.certify(sklearn.svm.SVC(tol=1e-10).fit(scaled, two), scaled, two)
    pipeline = make_pipeline(StandardScaler(), sklearn.svm.SVC(tol=1e-10)).fit(X, two)
    assert mercer.certify(pipeline, X, two).primal == alone.primal
    for without in (
        GridSearchCV(pipeline, {"svc__C": [1.0]}, refit=False),
        GridSearchCV(mercer.SVC(), {}, refit=False),
    ):
        with pytest.raises(NotFittedError):
            mercer.certify(without, X, two)
        with pytest.raises(TypeError, match=r"GridSearchCV has refit=False and so holds no fitted model: fit it with"):
            mercer.certify(without.fit(X, two), X, two)
    search = GridSearchCV(pipeline, {"svc__C": [1.0]}).fit(X, two)
    assert mercer.certify(search, X, two).primal == alone.primal
    target = TransformedTargetRegressor(sklearn.svm.SVR(tol=1e-10), transformer=StandardScaler()).fit(X, numbers)
    z = StandardScaler().fit_transform(numbers[:, None])[:, 0]
    expected = mercer.certify(sklearn.svm.SVR(tol=1e-10).fit(X, z), X, z)
    assert mercer.certify(target, X, numbers).primal == pytest.approx(expected.primal, rel=1e-12)
    search = GridSearchCV(target, {"regressor__C": [1.0]}).fit(X, numbers)
    assert mercer.certify(search, X, numbers).primal == pytest.approx(expected.primal, rel=1e-12)


def test_sparse_samples_weights_of_zero_and_precomputed_kernels():
    X, two, *_ = drawn(5)
    S = sp.csr_matrix(X)
    model = sklearn.svm.SVC(tol=1e-10).fit(S.tocoo(), two)
    assert mercer.certify(model, S.tocoo(), two).primal == mercer.certify(model, S, two).primal
    assert mercer.certify(sklearn.svm.SVC(tol=1e-10).fit(S, two), S, two).relative_gap < 1e-6
    wide = sp.hstack([S, sp.csr_matrix((len(X), 2))], format="csr")[np.r_[: len(X), 0, 0]]  # empty columns, equal rows
    model = sklearn.svm.LinearSVC(tol=1e-10, random_state=0).fit(wide, two[np.r_[: len(X), 0, 0]])
    assert mercer.certify(model, wide, two[np.r_[: len(X), 0, 0]]).relative_gap < 1e-6
    weight = np.where(np.arange(len(X)) % 3 == 0, 0.0, 1.0)
    kept = weight > 0
    few = mercer.certify(sklearn.svm.SVC(tol=1e-10, gamma=1.0).fit(X[kept], two[kept]), X[kept], two[kept])
    model = sklearn.svm.SVC(tol=1e-10, gamma=1.0).fit(X, two, weight)
    assert mercer.certify(model, X, two, sample_weight=weight).primal == pytest.approx(few.primal, rel=1e-7)
    K = X @ X.T + 1.0
    model = sklearn.svm.SVC(kernel="precomputed", tol=1e-10).fit(K, two)
    assert mercer.certify(model, K, two).relative_gap < 1e-6
    called = sklearn.svm.SVC(kernel=lambda A, B: A @ B.T + 1.0, tol=1e-10).fit(X, two)
    assert mercer.certify(called, X, two).relative_gap < 1e-6


def test_functions_of_all_samples_as_kernels():
    """scikit-learn calls a function once with all samples; this one gives other values for parts of them."""
    X, two, *_ = drawn(5)
    y = np.where(two == "yes", 1.0, -1.0)
    model = sklearn.svm.SVC(kernel=lambda A, B: (A - A.mean(axis=0)) @ (B - B.mean(axis=0)).T, tol=1e-8).fit(X, two)
    K, beta = (X - X.mean(axis=0)) @ (X - X.mean(axis=0)).T, whole(model, len(X))
    truth = 0.5 * beta @ K @ beta + np.sum(np.maximum(0, 1 - y * (K @ beta + model.intercept_[0])))
    found = mercer.certify(model, X, two)
    assert found.primal == pytest.approx(truth, rel=1e-10)
    assert found.relative_gap < 1e-6
    with pytest.raises(ValueError, match="X is not what this SVC was fitted to"):
        mercer.certify(model, 2 * X, two)


def test_scikit_learn_intelexs():
    svm = pytest.importorskip("sklearnex.svm")
    X, two, three, numbers, _ = drawn(2)
    for model, y in ((svm.SVC(), two), (svm.SVC(), three), (svm.SVR(), numbers), (svm.NuSVR(), numbers)):
        model.set_params(tol=1e-10).fit(X, y)
        other = getattr(sklearn.svm, type(model).__name__)(tol=1e-10).fit(X, y)
        found, truth = mercer.certify(model, X, y), mercer.certify(other, X, y)
        assert found.relative_gap < 1e-6
        assert found.primal == pytest.approx(truth.primal, rel=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_mercers_own(classes):
    X, two, three, numbers, _ = drawn(6)
    y = two if classes == 2 else three
    for machine, target in (
        (mercer.SVC(tol=1e-10), y),
        (mercer.SVC(tol=1e-10, multiclass="ovr"), y),
        (mercer.NuSVC(nu=0.3, tol=1e-10), y),
        (mercer.SVR(tol=1e-10), numbers),
        (mercer.OneClassSVM(tol=1e-10), None),
    ):
        own = machine.fit(X, target).certificate_
        found = mercer.certify(machine, X, target)
        assert found.primal == pytest.approx(own.primal, rel=1e-9)
        assert found.dual == pytest.approx(own.dual, rel=1e-9)


def test_the_kernel_is_that_of_the_fit():
    """α = C is optimal under every kernel where C is small, but the function belongs to the kernel of the fit."""
    X, two, *_ = drawn(6)
    few = np.r_[np.flatnonzero(two == "yes")[:10], np.flatnonzero(two == "no")[:10]]
    X, y = X[few], two[few]
    for machine in (sklearn.svm.SVC, mercer.SVC):
        model = machine(C=0.01, gamma=0.5, tol=1e-8).fit(X, y)
        before = mercer.certify(model, X, y)
        assert mercer.certify(model.set_params(gamma=5.0), X, y).primal == before.primal, machine


def test_files(tmp_path):
    from mercer.files.liblinear_estimator import liblinear_from_estimator
    from mercer.files.liblinear_model import write_liblinear_model
    from mercer.files.libsvm_estimator import libsvm_from_estimator
    from mercer.files.libsvm_model import write_libsvm_model

    X, two, three, numbers, _ = drawn(7)
    X[1] = X[0]  # a sample twice
    signs = np.where(two == "yes", 1, -1)
    path = tmp_path / "a.model"
    for machine, y, given in (
        (mercer.SVC(C=2.0, gamma=0.5), signs, {"C": 2.0}),
        (mercer.SVC(C=2.0, gamma=0.5), three, {"C": 2.0}),
        (mercer.NuSVC(nu=0.3, gamma=0.5), signs, {"nu": 0.3}),
        (mercer.SVR(C=2.0, epsilon=0.2, gamma=0.5), numbers, {"C": 2.0, "epsilon": 0.2}),
        (mercer.OneClassSVM(nu=0.3, gamma=0.5), None, {"nu": 0.3}),
    ):
        own = machine.set_params(tol=1e-10).fit(X, y).certificate_
        model = libsvm_from_estimator(machine, label_order=[2, 0, 1] if y is three else None)
        write_libsvm_model(model, path)
        found = mercer.certify(path, X, y, **given)
        assert found.primal == pytest.approx(own.primal, rel=1e-8), machine
        assert found.gap <= 1e-7 * max(1.0, abs(found.dual))
        with pytest.raises(ValueError, match=f"does not say {next(iter(given))}"):
            mercer.certify(path, X, y)
        with pytest.raises(ValueError, match="none of the samples"):
            mercer.certify(path, X + 1.0, y, **given)
    for y in (signs, -signs, three):
        machine = mercer.LinearSVC(C=0.5, bias="regularized", tol=1e-8).fit(X, y)
        write_liblinear_model(liblinear_from_estimator(machine), path)
        found = mercer.certify(path, X, y, C=0.5)
        assert found.primal == pytest.approx(machine.certificate_.primal, rel=1e-9)
        assert found.relative_gap < 1e-6


def test_files_of_near_and_equal_samples(tmp_path):
    """A support vector is the nearest sample, and of equal ones that whose target fits."""
    svmutil = pytest.importorskip("libsvm.svmutil")
    X, _, _, numbers, _ = drawn(5)
    X[1::4] = X[::4][: len(X[1::4])]
    path = str(tmp_path / "a.model")
    rows = [dict(enumerate(row, 1)) for row in X.tolist()]
    for options, given in (("-s 3 -p 0.1", {"C": 1.0, "epsilon": 0.1}), ("-s 4 -n 0.4", {"C": 1.0, "nu": 0.4})):
        problem = svmutil.svm_problem(numbers.tolist(), rows)
        model = svmutil.svm_train(problem, svmutil.svm_parameter(f"-q -c 1 -g 0.7 -e 1e-9 {options}"))
        svmutil.svm_save_model(path, model)
        assert mercer.certify(path, X, numbers, **given).relative_gap < 1e-5
    # LIBSVM's file says 2, and samples 0 and 1 are both within eight digits of it.
    text = "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho -100000\nlabel 1 -1\nnr_sv 1 1\nSV\n"
    (tmp_path / "a.model").write_text(text + "1 1:2 \n-1 1:1 \n")
    near, y = np.array([[2 + 1e-7], [2.0], [1.0]]), [1, 1, -1]
    assert mercer.certify(path, near, y, C=1.0).primal == pytest.approx(0.5 + 100002.0, abs=1e-8)


def test_samples_and_labels_of_another_fit_are_refused():
    X, two, three, numbers, w = drawn(8)
    other = np.where(two == "yes", "no", "yes")
    own = mercer.SVC().fit(X, two)
    with pytest.raises(ValueError, match="its support vectors have other labels"):
        mercer.certify(own, X, other)
    with pytest.raises(ValueError, match="its support vectors are other rows"):
        mercer.certify(own, 2 * X, two)
    model = sklearn.svm.SVC().fit(X, three)
    with pytest.raises(ValueError, match=r"fitted to the classes \[0, 1, 2\], y has \[0, 1, 5\]"):
        mercer.certify(model, X, np.where(three == 2, 5, three))
    with pytest.raises(ValueError, match="and the model was fitted to"):
        mercer.certify(model, np.r_[X, X[:1]], np.r_[three, three[:1]])
    ridge = KernelRidge().fit(X, numbers)
    with pytest.raises(ValueError, match="sample 0 has a coefficient and no weight"):
        mercer.certify(ridge, X, numbers, sample_weight=np.arange(len(X)) > 0)
    model = sklearn.svm.LinearSVC().fit(X, two)
    with pytest.raises(ValueError, match="and X has"):
        mercer.certify(model, np.c_[X, X], two)
    with pytest.raises(ValueError, match="fit_intercept=False says that there is no bias"):
        mercer.certify(model.set_params(fit_intercept=False), X, two)
    weight = np.where(three == 1, 0.0, w)
    model = sklearn.svm.SVC().fit(X, three, weight)
    with pytest.raises(ValueError, match="functions instead of 3"):
        mercer.certify(model, X, three, sample_weight=weight)


def test_errors():
    X, two, *_ = drawn(8)
    for broken in ("intercept_", "dual_coef_"):
        model = sklearn.svm.NuSVC(nu=0.2).fit(X, two)
        setattr(model, broken, np.nan * np.asarray(getattr(model, broken)))
        with pytest.raises(ValueError, match="that are not finite"):
            mercer.certify(model, X, two)
    model = sklearn.svm.SVC().fit(X, two)
    with pytest.raises(ValueError, match="its support vectors are other rows"):
        mercer.certify(model, X[::-1], two[::-1])
    with pytest.raises(ValueError, match=r"y contains NaN or None: y\[0\]=None"):
        mercer.certify(sklearn.svm.SVC().fit(X, two.astype(str)), X, [None, *two[1:].astype(str)])
    with pytest.raises(ValueError, match="holds its own C"):
        mercer.certify(model, X, two, C=1.0)
    with pytest.raises(NotFittedError):
        mercer.certify(sklearn.svm.SVC(), X, two)
    with pytest.raises(NotFittedError):
        mercer.certify(mercer.SVC(), X, two)
    with pytest.raises(TypeError, match="does not know StandardScaler"):
        mercer.certify(StandardScaler().fit(X), X, two)
    with pytest.raises(TypeError, match="certificate_"):
        mercer.certify(mercer.LinearSVC().fit(X, two), X, two)
    with pytest.raises(ValueError, match="penalty='l1'"):
        mercer.certify(sklearn.svm.LinearSVC(penalty="l1").fit(X, two), X, two)
