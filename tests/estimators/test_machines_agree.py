"""Each machine against scikit-learn's, where it has one; weights as repetitions; closed forms."""

import inspect

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_diabetes, load_iris

import mercer
from mercer import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM, QuantileSVR
from reference.problems import gram_matrix

X, t = load_diabetes(return_X_y=True)
# Away from the origin, or a linear one-class machine has w = 0, on which scikit-learn's never ends.
X = (X / X.std(axis=0))[:160] + 1.5
t = ((t - t.mean()) / t.std())[:160]
Y = (t > 0.3).astype(int)
W = (np.arange(160) % 4).astype(float)
KERNELS = {
    "linear": {},
    "rbf": {"gamma": 0.1},
    "poly": {"gamma": 0.1, "degree": 2, "coef0": 1.0},
}
# ν so that νn/2 is no integer: b is then unique.
MACHINES = {
    "SVR": (t, {"C": 1.5, "epsilon": 0.2}),
    "NuSVR": (t, {"C": 1.5, "nu": 0.377}),
    "NuSVC": (Y, {"nu": 0.511}),
    "OneClassSVM": (None, {"nu": 0.277}),
}


def values(model, data):
    return model.decision_function(data) if hasattr(model, "decision_function") else model.predict(data)


def objective(name, model, kernel):
    """The dual value at a model's coefficients, which for NuSVC are those of C-SVC with C = 1/ρ."""
    beta, K = np.zeros(len(X)), gram_matrix(kernel, X, **KERNELS[kernel])
    coefficients = model.dual_coef_.toarray() if sparse.issparse(model.dual_coef_) else model.dual_coef_
    beta[model.support_] = coefficients[0]
    linear = {"SVR": t @ beta - 0.2 * np.abs(beta).sum(), "NuSVR": t @ beta, "OneClassSVM": 0.0}
    return linear.get(name, np.abs(beta).sum()) - 0.5 * beta @ K @ beta


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", MACHINES)
def test_agrees_with_scikit_learn(name, kernel, form, weighted):
    target, options = MACHINES[name]
    options = options | KERNELS[kernel] | {"kernel": kernel, "tol": 1e-8}
    data = X if form == "dense" else sparse.csr_matrix(X)
    # No weight of zero: scikit-learn's support_ then speaks of the rows that are left.
    weight = 0.5 * W + 0.5 if weighted else None
    mine = getattr(mercer, name)(**options).fit(data, target, sample_weight=weight)
    other = getattr(svm, name)(**options).fit(data, target, sample_weight=weight)
    assert mine.converged_
    scale = max(1.0, np.abs(values(other, data)).max())
    np.testing.assert_allclose(values(mine, data), values(other, data), atol=1e-4 * scale)
    assert objective(name, mine, kernel) == pytest.approx(objective(name, other, kernel), rel=1e-6)
    assert mine.dual_coef_.shape[0] == other.dual_coef_.shape[0]
    assert mine.support_.dtype == other.support_.dtype
    assert mine.n_support_.shape == other.n_support_.shape
    assert mine.intercept_.shape == other.intercept_.shape
    if name == "OneClassSVM":
        assert mine.offset_ == pytest.approx(float(np.ravel(other.offset_)[0]), abs=1e-4 * scale)
        np.testing.assert_allclose(mine.score_samples(data), other.score_samples(data), atol=1e-4 * scale)
    if kernel == "linear":
        assert mine.coef_.shape == other.coef_.shape


@pytest.mark.parametrize("name", MACHINES)
def test_the_keywords_of_scikit_learn_are_here(name):
    theirs = dict(inspect.signature(getattr(svm, name)).parameters)
    mine = inspect.signature(getattr(mercer, name)).parameters
    refused = {"class_weight", "probability"} if name == "NuSVC" else set()
    assert set(theirs) - refused <= set(mine)
    for keyword in set(theirs) - refused - {"cache_size", "nu" if name == "NuSVC" else ""}:
        assert mine[keyword].default == theirs[keyword].default, keyword


MINE = {
    "SVR": (SVR(epsilon=0.1), t),
    "squared": (SVR(loss="squared_epsilon_insensitive"), t),
    "huber": (SVR(loss="huber", delta=0.5), t),
    "expectile": (SVR(loss="expectile", tau=0.7), t),
    "SVR, bias regularised": (SVR(bias="regularized"), t),
    "NuSVR": (NuSVR(), t),
    "QuantileSVR": (QuantileSVR([0.2, 0.7]), t),
    "NuSVC": (NuSVC(nu=0.5), Y),
    "SVC, l2": (SVC(slack="l2"), Y),
    "SVC, no bias": (SVC(bias=False), Y),
    "one against the rest": (SVC(multiclass="ovr"), np.arange(160) % 3),
    "OneClassSVM": (OneClassSVM(), None),
    "SVDD": (SVDD(kernel="linear"), None),
}


@pytest.mark.parametrize("name", MINE)
def test_a_weight_is_a_repetition_to_the_last_bit(name):
    model, target = MINE[name]
    weighted = values(model.fit(X, target, sample_weight=W), X)
    copies = W.astype(int)
    repeated = None if target is None else np.repeat(target, copies)
    shuffled = np.random.default_rng(0).permutation(copies.sum())
    model.fit(np.repeat(X, copies, axis=0)[shuffled], None if repeated is None else repeated[shuffled])
    np.testing.assert_array_equal(weighted, values(model, X))


@pytest.mark.parametrize("name", MINE)
def test_the_coefficients_of_the_callers_rows_make_the_same_function(name):
    """dual_coef_ and support_ speak of the caller's rows, of which copies share their sample's coefficient."""
    model, target = MINE[name]
    data, target = np.r_[X, X[:40]], None if target is None else np.r_[target, target[:40]]
    weight = np.r_[W, W[:40] + 1]
    model.fit(data, target, sample_weight=weight)
    f = values(model, X).reshape(len(X), -1)
    kernel = ("linear", {}) if model.kernel == "linear" else ("rbf", {"gamma": model.kernel_.gamma})
    K = gram_matrix(kernel[0], X, data[model.support_], **kernel[1])
    expected = K @ model.dual_coef_.T + model.intercept_
    if name == "SVDD":
        expected = 2 * expected - (X**2).sum(axis=1)[:, None]
    if name == "QuantileSVR":
        expected = np.sort(expected, axis=1)
    np.testing.assert_allclose(f, expected, atol=1e-9)
    assert (weight[model.support_] > 0).all()


def test_bounded_coefficients_are_exactly_at_each_copys_bound():
    data, target = np.r_[X, X], np.r_[t, t]
    weight = np.r_[np.full(160, 0.3), np.full(160, 0.1)]
    model = SVR(C=0.7, epsilon=0.05).fit(data, target, sample_weight=weight)
    ratio = np.abs(model.dual_coef_[0]) / (0.7 * weight[model.support_])
    assert (ratio <= 1).all()
    assert (ratio == 1).mean() > 0.3


def test_one_against_the_rest_is_one_machine_per_class():
    data, labels = load_iris(return_X_y=True)
    model = SVC(multiclass="ovr", gamma=0.3, C=2.0, tol=1e-8).fit(data, labels)
    for k in range(3):
        alone = SVC(gamma=0.3, C=2.0, tol=1e-8).fit(data, labels == k)
        np.testing.assert_allclose(model.decision_function(data)[:, k], alone.decision_function(data), atol=1e-6)
    np.testing.assert_array_equal(model.predict(data), np.argmax(model.decision_function(data), axis=1))
    assert model.dual_coef_.shape == (3, len(model.support_))
    assert model.intercept_.shape == (3,)


def test_quantiles_do_not_cross_and_keep_the_order_asked_for():
    data, target = X[:, :2], t
    model = QuantileSVR([0.9, 0.1, 0.5, 0.3], C=100.0, gamma=5.0).fit(data, target)
    raw = model._decision(data)
    crossing = (raw[:, 1] > raw[:, 3]) | (raw[:, 3] > raw[:, 2]) | (raw[:, 2] > raw[:, 0])
    assert crossing.any(), "an example in which nothing crosses shows nothing"
    high, low, middle, third = model.predict(data).T
    assert (low <= third).all()
    assert (third <= middle).all()
    assert (middle <= high).all()
    assert QuantileSVR(0.3).fit(data, target).predict(data).shape == (160,)
    assert QuantileSVR([0.3]).fit(data, target).predict(data).shape == (160, 1)


def test_the_enclosing_ball_in_closed_form():
    """An equilateral triangle with side √3 has circumradius 1; a point inside changes nothing."""
    corners = np.array([[np.cos(a), np.sin(a)] for a in (0.0, 2 * np.pi / 3, 4 * np.pi / 3)])
    model = SVDD(nu=0.01, kernel="linear", tol=1e-10).fit(np.r_[corners, [[0.1, 0.2]]])
    assert model.radius_ == pytest.approx(1.0, rel=1e-9)
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-9)
    np.testing.assert_allclose(model.decision_function([[0.0, 0.0], [2.0, 0.0]]), [1.0, -3.0], atol=1e-8)
    np.testing.assert_allclose(model.score_samples([[2.0, 0.0]]), [-4.0], atol=1e-8)


def test_the_certificate_of_a_ball_is_that_of_the_problem_as_written():
    """½R² + ½Σξ/(νW) by hand, from the radius and the distances."""
    model = SVDD(nu=0.2, gamma=0.1, tol=1e-9).fit(X)
    squares = -model.score_samples(X)
    by_hand = model.radius_**2 + np.maximum(0.0, squares - model.radius_**2).sum() / (0.2 * len(X))
    assert model.certificate_.primal == pytest.approx(0.5 * by_hand, rel=1e-7)


def test_svdd_with_a_precomputed_kernel():
    K = gram_matrix("rbf", X, gamma=0.1)
    a = SVDD(nu=0.2, kernel="precomputed", tol=1e-8).fit(K)
    b = SVDD(nu=0.2, gamma=0.1, tol=1e-8).fit(X)
    np.testing.assert_allclose(a.decision_function(K), b.decision_function(X), atol=1e-7)
    with pytest.raises(ValueError, match=r"k\(x, x\) of each new sample"):
        SVDD(kernel="precomputed").fit(X @ X.T).decision_function(X @ X.T)
