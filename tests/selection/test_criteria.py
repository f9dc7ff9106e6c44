"""Points judged without folds: exact leave-one-out, estimates of it, and a bound on the risk."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as ScikitSVC
from sklearn.svm import SVR as ScikitSVR

import mercer
from mercer import SVC, SVR, TunedSVC
from mercer.paths import soft_radius_margin, span_bound, span_estimate, xi_alpha
from mercer.theory import soft_margin_bound

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


@pytest.mark.parametrize(
    ("criterion", "estimate"),
    [
        ("xi-alpha", xi_alpha),
        ("span", span_estimate),
        ("span-bound", span_bound),
        ("radius-margin", soft_radius_margin),
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
    found = soft_radius_margin(SVC(C=C, kernel="linear"), [[-1.0], [1.0]], [0, 1])
    assert found.error == pytest.approx(4 * (1 + 1 / C) * (0.25 + 2 * C * 2 * 0.5) / 2, rel=1e-5)


@pytest.mark.parametrize("bias", ["regularized", False, True])
def test_the_margin_bound_pays_for_the_choice(bias) -> None:  # type: ignore[no-untyped-def]
    X, y = data()
    found = mercer.tune(SVC(bias=bias), X, y, grid=GRID, criterion="margin-bound", refit=False)
    for params, mean, why in zip(found.cv_results_["params"], means(found), found.cv_results_["why"], strict=True):
        model = SVC(bias=bias, **params).fit(X, y)
        slacks = np.maximum(0, 1 - np.where(y == 1, 1, -1) * model.decision_function(X))
        b = float(model.intercept_[0])
        norm = np.hypot(model.rkhs_norm_[0] if np.ndim(model.rkhs_norm_) else model.rkhs_norm_, b * (bias != True))  # noqa: E712  # "regularized" is true too
        trace = len(y) * (2.0 if bias == "regularized" else 1.0)
        bound = soft_margin_bound(slacks, trace, norm, delta=0.05 / 4)
        assert mean == pytest.approx(1 - bound.value, abs=1e-9)
        assert why.startswith("no bound") == (bias is True)
    assert np.isfinite(found.cv_results_["gap"]).all()


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
        (SVC(), {"criterion": "loo", "cv": 3}, "cv: this is for criterion='folds'"),
        (SVC(), {"criterion": "span", "scoring": "f1"}, "scoring: this is"),
        (SVC(), {"criterion": "loo", "one_standard_error": True}, "one_standard_error: this is"),
        (SVR(), {"criterion": "xi-alpha"}, "for classifiers"),
        (make_pipeline(StandardScaler(), SVC()), {"criterion": "loo"}, "other steps of a Pipeline"),
    ],
)
def test_what_only_folds_have_is_refused(machine, given, word: str) -> None:  # type: ignore[no-untyped-def]
    X, y = data()
    with pytest.raises(ValueError, match=word):
        mercer.tune(machine, X, y, grid={"C": [1.0]}, **given)
