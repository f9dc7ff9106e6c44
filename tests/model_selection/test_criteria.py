"""Points judged without folds: exact leave-one-out, estimates of it, and a bound on the risk."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import d2_pinball_score
from sklearn.model_selection import GridSearchCV, LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as ScikitSVC
from sklearn.svm import SVR as ScikitSVR

import mercer
from mercer import SVC, SVR, NuSVC, QuantileSVR, TunedSVC
from mercer.kernels import Gaussian
from mercer.model_selection.paths import radius_margin, span_bound, span_estimate, xi_alpha
from mercer.notes.theory import soft_margin_bound

GRID = {"C": [0.3, 3.0], "gamma": [0.2, 1.0]}


def data(n: int = 36):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] + 0.7 * rng.normal(size=n) > 0).astype(int)


def means(found) -> list[float]:  # type: ignore[no-untyped-def]
    return list(found.cv_results_["mean_test_score"])


def test_leave_one_out_is_that_of_n_folds() -> None:
    X, y = data()
    found = mercer.tune(SVC(), X, y, grid=GRID, criterion="loo", refit=False)
    peer = GridSearchCV(ScikitSVC(tol=1e-8), GRID, cv=LeaveOneOut(), refit=False).fit(X, y)
    assert means(found) == pytest.approx(peer.cv_results_["mean_test_score"], abs=1e-12)
    assert found.n_splits_ == 1
    assert len(set(means(found))) > 1


def test_leave_one_out_of_a_regressor_takes_any_score() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(24, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=24)
    score = "neg_mean_absolute_error"
    grid = {"C": [1.0, 10.0]}
    found = mercer.tune(SVR(gamma=0.5), X, y, grid=grid, criterion="loo", scoring=score, refit=False)
    peer = GridSearchCV(ScikitSVR(gamma=0.5, tol=1e-9), grid, cv=LeaveOneOut(), scoring=score, refit=False).fit(X, y)
    assert means(found) == pytest.approx(peer.cv_results_["mean_test_score"], abs=1e-6)


def test_leave_one_out_of_a_quantile_has_its_own_score() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 2))
    y = X[:, 0] + rng.normal(size=24)
    weight = rng.integers(1, 3, 24).astype(float)
    for quantiles in (0.2, [0.2]):
        machine = QuantileSVR(quantiles, gamma=0.4, tol=1e-9)
        found = mercer.tune(machine, X, y, grid={"C": [1.0, 20.0]}, criterion="loo", sample_weight=weight)
        for C, score in zip((1.0, 20.0), found.cv_results_["mean_test_score"], strict=True):
            left = np.empty(24)
            for i in range(24):
                rest = np.delete(np.arange(24), i)
                part = clone(machine).set_params(C=C).fit(X[rest], y[rest], weight[rest])
                left[i] = np.ravel(part.predict(X[i : i + 1]))[0]
            assert score == pytest.approx(d2_pinball_score(y, left, sample_weight=weight, alpha=0.2), abs=1e-5)
    with pytest.raises(ValueError, match=r"leave_one_out\(QuantileSVR\) is for one quantile"):
        mercer.tune(QuantileSVR([0.2, 0.8]), X, y, grid={"C": [1.0]}, criterion="loo")


@pytest.mark.parametrize("machine", [SVR(), mercer.RLSRegressor()], ids=lambda machine: type(machine).__name__)
def test_several_columns_of_targets_are_refused_by_name(machine) -> None:
    X = np.arange(12.0).reshape(6, 2)
    with pytest.raises(ValueError, match=r"y has 2 columns, but tune takes one.*tune a machine for each.*GridSearchCV"):
        mercer.tune(machine, X, X)
    with pytest.raises(ValueError, match="y has 2 columns"):
        mercer.tune(machine, X, X.tolist())


@pytest.mark.parametrize(
    ("criterion", "estimate"),
    [
        ("xi-alpha", xi_alpha),
        ("span", span_estimate),
        ("span-bound", span_bound),
        ("radius-margin", partial(radius_margin, slack=True)),
    ],
)
def test_estimates_are_those_of_each_machine(criterion: str, estimate) -> None:  # type: ignore[no-untyped-def]
    X, y = data()
    found = mercer.tune(SVC(), X, y, grid=GRID, criterion=criterion, refit=False)
    for params, mean, why in zip(found.cv_results_["params"], means(found), found.cv_results_["why"], strict=True):
        assert mean == pytest.approx(1 - estimate(SVC(**params), X, y).error)
        assert why.startswith("an upper bound if")


def test_a_soft_radius_and_margin_by_hand() -> None:
    """Two samples at ±1, kernel xz: w = 2C for C ≤ ½, slack 1 − 2C each, R = 1."""
    C = 0.25
    found = radius_margin(SVC(C=C, kernel="linear"), [[-1.0], [1.0]], [0, 1], slack=True)
    assert found.error == pytest.approx(4 * (1 + 1 / C) * (0.25 + 2 * C * 2 * 0.5) / 2, rel=1e-5)


def naive_radius_and_alphas(K, y):  # type: ignore[no-untyped-def]
    """R² of the smallest ball, by moving its centre towards the farthest sample, and Σα of the hard margin."""
    n = len(K)
    c = np.full(n, 1 / n)
    for t in range(20_000):
        far = int(np.argmax(np.diag(K) - 2 * K @ c))
        c *= 1 - 1 / (t + 2)
        c[far] += 1 / (t + 2)
    square = float((np.diag(K) - 2 * K @ c + c @ K @ c).max())
    hard = ScikitSVC(C=1e10, kernel="precomputed", tol=1e-8).fit(K, y)
    return square, float(np.abs(hard.dual_coef_).sum())


@pytest.mark.parametrize("weighted", [False, True])
def test_radius_and_margin_of_squared_slacks_are_those_of_a_hard_margin(weighted: bool) -> None:
    X, y = data()
    X[1], y[1] = X[0], y[0]  # a copy has a coordinate of its own in K + I/C
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=len(y)) if weighted else None
    for C in (0.3, 30.0):
        K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
        K += np.diag(1 / (C * (np.ones(len(y)) if weight is None else weight)))
        square, alphas = naive_radius_and_alphas(K, y)
        share = 1 / len(y) if weight is None else weight.max() / weight.sum()
        found = radius_margin(SVC(C=C, gamma=0.5, slack="l2"), X, y, weight)
        assert found.error == pytest.approx(4 * square * alphas * share, rel=1e-3)
        assert found.proven
        assert radius_margin(SVC(C=C, gamma=0.5, slack="l2"), X, y, weight, slack=True).error == found.error
    means(mercer.tune(SVC(slack="l2"), X, y, grid=GRID, criterion="radius-margin", refit=False))


@pytest.mark.parametrize("bias", [True, False, "regularized"])
def test_radius_and_margin_of_squared_slacks_bound_the_errors(bias) -> None:  # type: ignore[no-untyped-def]
    rng, ratios = np.random.default_rng(0), []
    for _ in range(12):
        X = np.round(rng.normal(size=(14, 2)), 1)
        y = (X[:, 0] + 0.5 * rng.normal(size=14) > 0).astype(int)
        y[:4] = [0, 0, 1, 1]
        model = SVC(C=10 ** rng.uniform(-2, 3), gamma=10 ** rng.uniform(-2, 1), slack="l2", bias=bias)
        wrong = [
            int(
                clone(model).set_params(tol=1e-8).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[i : i + 1])[0]
                != y[i]
            )
            for i in range(14)
        ]
        ratios.append(np.mean(wrong) / radius_margin(model, X, y).error)
    assert max(ratios) <= 1
    assert max(ratios) > 0.1


@pytest.mark.parametrize("bias", ["regularized", False])
def test_the_margin_bound_pays_for_the_choice(bias) -> None:  # type: ignore[no-untyped-def]
    X, y = data()
    with pytest.warns(UserWarning, match="every bound on the probability of error is vacuous"):
        found = mercer.tune(SVC(bias=bias), X, y, grid=GRID, criterion="margin-bound", refit=False)
    for params, mean in zip(found.cv_results_["params"], means(found), strict=True):
        model = SVC(bias=bias, **params).fit(X, y)
        slacks = np.maximum(0, 1 - np.where(y == 1, 1, -1) * model.decision_function(X))
        norm = np.hypot(model.rkhs_norm_[0] if np.ndim(model.rkhs_norm_) else model.rkhs_norm_, model.intercept_[0])
        trace = len(y) * (2.0 if bias == "regularized" else 1.0)
        bound = soft_margin_bound(slacks, trace, norm, delta=0.05 / 4)
        assert mean == pytest.approx(1 - bound.value, abs=1e-9)
    assert np.isfinite(found.cv_results_["gap"]).all()


def test_bounds_that_say_something_are_not_warned_of() -> None:
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(-4, 0.3, size=(2000, 1)), rng.normal(4, 0.3, size=(2000, 1))]
    machine = SVC(kernel=Gaussian(gamma=0.03), bias="regularized")
    found = mercer.tune(machine, X, np.repeat([0, 1], 2000), grid={"C": [1.0]}, criterion="margin-bound", refit=False)
    assert 0 < found.best_score_ < 1


@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize(
    ("machine", "criterion", "words"),
    [
        (SVC(), "margin-bound", "no bound for a free bias.*bias='regularized'"),
        (SVC(slack="l2"), "xi-alpha", "slack='l1', not SVC with slack='l2'.*or 'radius-margin'"),
        (SVC(slack="l2"), "span", "slack='l1'"),
        (SVC(slack="l2"), "span-bound", "slack='l1'"),
        (SVC(bias="regularized"), "span-bound", "for bias=True, not 'regularized'; use 'xi-alpha'"),
        (NuSVC(), "radius-margin", "not NuSVC"),
    ],
)
def test_what_no_cell_can_be_judged_by_is_refused_at_once(machine, criterion: str, words: str, refit: bool) -> None:  # type: ignore[no-untyped-def]
    X, y = data()
    with pytest.raises(ValueError, match=words):
        mercer.tune(machine, X, y, grid={"gamma": [0.1, 1.0]}, criterion=criterion, refit=refit)


def test_cells_that_a_criterion_does_not_judge_are_not_chosen() -> None:
    X, y = data()
    with pytest.warns(UserWarning, match="vacuous"):
        found = mercer.tune(SVC(), X, y, grid={"bias": [True, "regularized"]}, criterion="margin-bound")
    assert found.best_params_["bias"] == "regularized"
    assert "no bound for a free bias" in found.cv_results_["why"][0]


def test_an_estimator_takes_a_criterion() -> None:
    X, y = data()
    model = TunedSVC(GRID, criterion="xi-alpha").fit(X, y)
    assert model.best_score_ == max(means(model))
    assert model.best_params_["C"] == model.best_estimator_.C


def test_what_fails_stays_in_its_cell() -> None:
    X, y = data()
    found = mercer.tune(SVC(), X, y, grid={"slack": ["l1", "l2"]}, criterion="xi-alpha", refit=False)
    assert "slack='l1'" in found.cv_results_["why"][1]
    assert np.isfinite(means(found)[0])
    assert np.isnan(means(found)[1])


@pytest.mark.parametrize(
    ("machine", "given", "word"),
    [
        (SVC(), {"criterion": "guess"}, "criterion"),
        (SVC(), {"criterion": "loo", "cv": 3}, "cv needs criterion='folds'"),
        (SVC(), {"criterion": "span", "scoring": "f1"}, "scoring needs criterion='folds'"),
        (SVC(), {"criterion": "loo", "one_standard_error": True}, "one_standard_error needs criterion='folds'"),
        (SVR(), {"criterion": "xi-alpha"}, "for classifiers"),
        (make_pipeline(StandardScaler(), SVC()), {"criterion": "loo"}, "other steps of the Pipeline"),
    ],
)
def test_what_only_folds_have_is_refused(machine, given, word: str) -> None:  # type: ignore[no-untyped-def]
    X, y = data()
    with pytest.raises(ValueError, match=word):
        mercer.tune(machine, X, y, grid={"C": [1.0]}, **given)
