"""Leave-one-out against n refits."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from mercer import SVC, SVR, NuSVC, OneClassSVM, QuantileSVR, RLSRegressor, leave_one_out
from reference.path_problems import random_problem

LOSSES = ("epsilon_insensitive", "huber", "squared_epsilon_insensitive", "expectile")


def machine_and_data(seed):
    X, y, weight, options, rng = random_problem(seed)
    n = min(len(y), 24)
    X = X[:n, :n] if options["kernel"] == "precomputed" else X[:n]
    y, weight = y[:n].copy(), weight[:n].copy()
    y[0], y[-1], weight[0], weight[-1] = 1, -1, 1.0, 1.0
    C = 10 ** rng.uniform(-1, 2)
    if seed % 4 == 0:
        target = np.asarray(X)[:, 0] + rng.normal(size=n)
        if seed % 5 == 0:
            return QuantileSVR(C=C, tol=1e-10, **options), X, target, weight
        return SVR(C=C, loss=LOSSES[seed // 4 % 4], tol=1e-10, **options), X, target, weight
    slack = "l2" if seed % 7 == 0 else "l1"
    return SVC(C=C, slack=slack, tol=1e-10, **options), X, y, weight


def refits(model, X, y, weight):
    """f of each sample by a fit without it; NaN where only one class would be left."""
    values = np.full(len(y), np.nan)
    for i in np.flatnonzero(weight):
        others = np.delete(np.arange(len(y)), i)
        if isinstance(model, SVC) and len(np.unique(y[others][weight[others] > 0])) < 2:
            continue
        square = model.kernel == "precomputed"
        model.fit(X[np.ix_(others, others)] if square else X[others], y[others], sample_weight=weight[others])
        row = X[[i]][:, others] if square else X[[i]]
        values[i] = (model.decision_function if isinstance(model, SVC) else model.predict)(row)[0]
    return values


def check(seed):
    model, X, y, weight = machine_and_data(seed)
    found = leave_one_out(model, X, y, sample_weight=weight)
    expected = refits(model, X, y, weight)
    told = ~np.isnan(expected)
    if isinstance(model, SVC):
        told &= found.unique  # elsewhere a fit may choose another b of the same interval
    np.testing.assert_allclose(
        found.values[told], expected[told], atol=1e-6 * max(1.0, np.abs(expected[told]).max(initial=0))
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(20))
def test_it_equals_refits(seed):
    check(seed)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(20, 80))
def test_it_equals_refits_on_many_problems(seed):
    check(seed)


def interval_of_b(u, signs, C):
    """The b that minimise Σ C_i max(0, 1 − s_i(u_i + b)), a piecewise linear function, at its own kinks."""
    kinks = np.sort(signs - u)
    loss = (C * np.maximum(0.0, 1 - signs * (u + kinks[:, None]))).sum(axis=1)
    best = kinks[loss <= loss.min() + 1e-9 * (1 + loss.min())]
    return best[0], best[-1]


@pytest.mark.parametrize("C", [0.01, 0.3, 5.0])
def test_b_is_unique_where_the_loss_has_one_minimum(C):
    """Copies of a sample leave some of its weight behind; classes of equal weight at a small C leave no free vector."""
    seen = set()
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = np.round(rng.normal(size=(13, 1)), 1)
        y = np.r_[np.zeros(6, int), np.ones(7, int)]
        X[:6] -= 0.5
        weight = np.ones(13) if seed % 2 else rng.choice([1.0, 2.0], 13)
        found = leave_one_out(SVC(C=C, gamma=0.5), X, y, sample_weight=weight)
        for i in range(13):
            others = np.delete(np.arange(13), i)
            model = SVC(C=C, gamma=0.5, tol=1e-11).fit(X[others], y[others], sample_weight=weight[others])
            u = model.decision_function(X[others]) - model.intercept_[0]
            low, high = interval_of_b(u, np.where(y[others] == 1, 1.0, -1.0), C * weight[others])
            assert found.unique[i] == (high - low < 1e-6), (seed, i, low, high)
            b = found.values[i] - float(model.decision_function(X[[i]])[0] - model.intercept_[0])
            assert low - 1e-6 <= b <= high + 1e-6
            if not found.unique[i]:  # the middle, as a fit chooses it
                assert b == pytest.approx((low + high) / 2, abs=1e-6)
            seen.add(bool(found.unique[i]))
    assert seen == ({True, False} if C < 5 else {True})


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_several_classes(multiclass):
    X, y = load_iris(return_X_y=True)
    X, y = X[::4], y[::4]
    model = SVC(C=5.0, gamma=0.7, tol=1e-9, multiclass=multiclass)
    found = leave_one_out(model, X, y)
    for i in range(len(y)):
        others = np.delete(np.arange(len(y)), i)
        refit = SVC(C=5.0, gamma=0.7, tol=1e-9, multiclass=multiclass).fit(X[others], y[others])
        assert found.predictions[i] == refit.predict(X[[i]])[0]
    assert found.error == pytest.approx((found.predictions != y).mean())
    assert found.values.shape == (len(y), 3)


def test_a_fitted_model_keeps_its_kernel_and_samples_without_weight_are_not_counted():
    X, y = load_iris(return_X_y=True)
    X, y, weight = X[50:], y[50:], np.ones(100)
    weight[::5] = 0
    model = SVC().fit(X[:60], y[:60])
    found = leave_one_out(model, X, y, sample_weight=weight)
    other = leave_one_out(SVC(gamma=model.kernel_.gamma), X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(found.values[weight > 0], other.values, atol=1e-9)
    assert found.error == other.error
    assert np.isnan(found.values[weight == 0]).all()
    assert 0 < found.n_removed < 80


def test_the_only_sample_of_a_class_is_given_to_the_other():
    found = leave_one_out(SVC(kernel="linear"), [[0.0], [1.0], [3.0]], ["a", "a", "b"])
    assert found.predictions.tolist()[2] == "a"


def test_what_has_no_exact_solution_is_refused():
    X, y = np.eye(4), [0, 1, 0, 1]
    with pytest.raises(TypeError, match="RLSRegressorCV"):
        leave_one_out(RLSRegressor(), X, y)
    with pytest.raises(ValueError, match="at most one b"):
        leave_one_out(NuSVC(), X, y)
    with pytest.raises(ValueError, match="Σβ = 0"):
        leave_one_out(OneClassSVM(), X, None)
    with pytest.raises(ValueError, match="finite C"):
        leave_one_out(SVC(C=np.inf), X, y)
    with pytest.raises(ValueError, match=r"leave_one_out\(SVR\) is for one output"):
        leave_one_out(SVR(), X, np.eye(4))
    with pytest.raises(ValueError, match=r"one quantile, but quantiles=\[0.2, 0.8\].*use one at a time"):
        leave_one_out(QuantileSVR([0.2, 0.8]), X, y)


def test_one_quantile_in_a_list_is_that_quantile():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    found = leave_one_out(QuantileSVR([0.2], gamma=0.5), X, y)
    assert found.error == leave_one_out(QuantileSVR(0.2, gamma=0.5), X, y).error
    for i in (0, 7, 19):
        rest = np.delete(np.arange(20), i)
        refit = QuantileSVR(0.2, gamma=0.5, tol=1e-10).fit(X[rest], y[rest])
        assert found.predictions[i] == pytest.approx(refit.predict(X[i : i + 1])[0], abs=1e-6)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_the_values_of_all_planes_are_those_of_refits(multiclass):
    """One against one, a sample of a third class changes nothing of a plane, and has a value there too."""
    rng = np.random.default_rng(1)
    y = np.arange(24) % 3
    X = rng.normal(size=(24, 2)) + y[:, None] + 2.0
    model = SVC(C=2.0, kernel="linear", multiclass=multiclass, tol=1e-10)
    found = leave_one_out(model, X, y)
    np.testing.assert_array_equal(found.wrong, found.predictions != y)
    assert found.error == found.wrong.mean() > 0
    assert found.residuals is None
    for i in range(24):
        if found.unique[i]:
            rest = np.delete(np.arange(24), i)
            expected = model.fit(X[rest], y[rest])._decision(X[i : i + 1])[0]
            np.testing.assert_allclose(found.values[i], expected, atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [SVR(loss="squared_epsilon_insensitive", C=2.0), SVR(loss="huber", C=2.0), SVC(slack="l2", C=2.0), SVC(C=2.0)],
    ids=["squared", "huber", "l2", "l1"],
)
def test_one_of_three_copies_is_left_out_alone(model):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(18, 2))
    y = X[:, 0] + rng.normal(size=18)
    y = (y > 0).astype(float) if isinstance(model, SVC) else y
    X[1:3], y[1:3] = X[0], y[0]
    model.set_params(gamma=0.5, tol=1e-10)
    found = leave_one_out(model, X, y)
    ask = "decision_function" if isinstance(model, SVC) else "predict"
    for i in (0, 1, 2, 9):
        rest = np.delete(np.arange(18), i)
        expected = getattr(model.fit(X[rest], y[rest]), ask)(X[i : i + 1])[0]
        assert found.values[i] == pytest.approx(expected, abs=1e-6)
