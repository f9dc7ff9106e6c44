"""What is searched and chosen where nobody says what: grids that the machine sees, folds, and the own parameters."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC as ScikitSVC
from sklearn.svm import SVR as ScikitSVR

import mercer
from mercer import SVC, SVR, TunedSVC, tabular
from mercer.model_selection.scoring import soft_accuracy

FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)


def some(load: Any, every: int = 3) -> tuple[Any, Any]:
    """Some rows of a set of scikit-learn's, as it is loaded."""
    X, y = load(return_X_y=True)
    return X[::every], y[::every]


def quietly(*args: Any, **given: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of edges
        return mercer.tune(*args, **given)


# --- the default grid ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()])
def test_the_default_grid_is_about_what_the_last_step_sees(scaler: Any) -> None:
    X, y = some(datasets.load_wine)
    found = quietly(make_pipeline(scaler, SVC()), X, y, refit=False, cv=2)
    seen = scaler.fit_transform(X)
    gammas = {point["svc__gamma"] for point in found.cv_results_["params"]} - {"scale"}
    np.testing.assert_allclose(sorted(gammas), 2.0 ** np.arange(-4, 4) / (X.shape[1] * seen.var()), rtol=1e-12)


@pytest.mark.parametrize("load", [datasets.load_breast_cancer, datasets.load_wine])
def test_a_tuned_pipeline_is_at_least_as_good_on_its_folds(load: Any) -> None:
    X, y = some(load)
    pipeline = make_pipeline(StandardScaler(), SVC())
    found = quietly(pipeline, X, y)
    assert found.best_score_ >= cross_val_score(pipeline, X, y, cv=FOLDS).mean() - 1e-12


def test_parameters_of_the_scaler_change_what_the_machine_sees() -> None:
    X, y = some(datasets.load_wine)
    grid = {"standardscaler__with_std": [True, False], "svc__gamma": [0.01, "scale"]}
    pipeline = make_pipeline(StandardScaler(), SVC())
    found = quietly(pipeline, X, y, grid=grid, skip=False)
    truth = GridSearchCV(pipeline, grid, cv=FOLDS).fit(X, y)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], truth.cv_results_["mean_test_score"])
    assert found.best_index_ == truth.best_index_


# --- staying or moving -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["labels of a coin", "diabetes"])
def test_the_choice_is_that_of_scikit_learns_scores(name: str) -> None:
    """scikit-learn's machines on the same cells and folds: the best one, or the own one where it is hardly worse."""
    if name == "diabetes":
        (X, y), machine, peer, k = some(datasets.load_diabetes, 8), SVR, ScikitSVR, 3
        folds: Any = KFold(k, shuffle=True, random_state=0)
    else:
        (X, y), machine, peer, k = datasets.make_classification(50, 4, flip_y=1.0, random_state=0), SVC, ScikitSVC, 5
        folds = FOLDS
    found = quietly(make_pipeline(StandardScaler(), machine(tol=1e-5)), X, y, refit=False, cv=k)
    points = [{key.partition("__")[2]: value for key, value in p.items()} for p in found.cv_results_["params"]]
    scores = []
    for train, test in folds.split(X, y):
        scaler = StandardScaler().fit(X[train])
        left, right = scaler.transform(X[train]), scaler.transform(X[test])
        scores.append([peer(tol=1e-5, **p).fit(left, y[train]).score(right, y[test]) for p in points])
    best = int(np.mean(scores, axis=0).argmax())  # the first, as GridSearchCV takes
    own = points.index({key: machine().get_params()[key] for key in points[0]})
    difference = np.array(scores)[:, best] - np.array(scores)[:, own]
    moves = bool(difference.mean() > difference.std(ddof=1) * np.sqrt(1 / k + 1 / (k - 1)))
    assert moves == (name == "diabetes")
    assert found.best_index_ == (best if moves else own)
    assert ("are kept" in found.choice_) != moves


def test_own_parameters_are_a_cell_and_are_never_skipped() -> None:
    X, y = some(datasets.load_wine)
    found = quietly(make_pipeline(StandardScaler(), SVC(C=1e-4, gamma=0.5)), X, y, refit=False)
    own = found.at(svc__C=1e-4, svc__gamma=0.5)
    assert np.isfinite(own["mean_test_score"])
    assert not own["skipped"]
    assert found.best_params_["svc__C"] > 1e-4
    assert found.choice_.startswith("the largest mean score: it exceeds that of the estimator's own")
    within = quietly(SVC(C=1.0, gamma="scale"), X, y, refit=False, grid={"C": [1.0, 10.0]})
    assert within.choice_ == "the largest mean score of the grid"


def test_a_grid_that_is_given_is_searched_as_scikit_learn_does() -> None:
    X, y = datasets.make_classification(60, 4, flip_y=0.5, random_state=3)
    grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.01, 0.1, 1.0]}
    found = quietly(SVC(), X, y, grid=grid, refit=False)
    truth = GridSearchCV(SVC(), grid, cv=FOLDS).fit(X, y)
    assert found.best_params_ == truth.best_params_


def test_tuning_an_ordered_table_does_not_lose_to_its_default() -> None:
    """Rows drift within each class. Folds of consecutive rows judge a machine by rows unlike its own."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    along = np.tile(np.linspace(0, 1, 60), 2)
    places = np.linspace(0, 1, 30)
    X = np.exp(-(((places - 0.2 - 0.6 * along[:, None]) / 0.15) ** 2))
    X = X + 0.25 * np.sin(9 * places + 2.5 * y[:, None] + 5 * along[:, None]) + 0.3 * rng.normal(size=X.shape)
    plain, tuned = [], []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=1).split(X, y):
        plain.append(SVC().fit(X[train], y[train]).score(X[test], y[test]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            tuned.append(TunedSVC().fit(X[train], y[train]).score(X[test], y[test]))
    assert np.mean(tuned) >= np.mean(plain) - np.std(np.subtract(tuned, plain), ddof=1) / np.sqrt(3) - 1e-12
    given = {"grid": {"C": [1.0, 10.0]}, "refit": False, "skip": False}
    shuffled, consecutive = (
        mercer.tune(SVC(), X, y, cv=cv, **given).cv_results_["mean_test_score"] for cv in (5, StratifiedKFold(5))
    )
    np.testing.assert_array_equal(shuffled, mercer.tune(SVC(), X, y, cv=FOLDS, **given).cv_results_["mean_test_score"])
    assert not np.array_equal(shuffled, consecutive)


# --- tables ----------------------------------------------------------------------------------------------------------


def table(n: int = 90) -> Any:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(100, 30, size=n), "kind": rng.choice(["a", "b", "c"], size=n)})
    frame["age"] = np.where(rng.random(n) < 0.1, np.nan, rng.uniform(20, 60, size=n))
    worth = 3 * frame["size"] + 40 * (frame["kind"] == "b") + rng.normal(0, 30, size=n)
    return frame, np.where(worth > 310, "high", "low"), worth.to_numpy()


def test_a_table_is_searched_with_the_machines_names() -> None:
    frame, labels, _ = table()
    found = quietly(tabular(SVC()), frame, labels)
    assert found.best_estimator_.predict(frame[:3]).shape == (3,)
    assert "within each fold" in found.shared_
    grid = {"C": [0.1, 10.0], "gamma": [0.1, 1.0]}
    given = quietly(tabular(SVC()), frame, labels, grid=grid, skip=False)
    behind = {f"estimator__{name}": values for name, values in grid.items()}
    truth = GridSearchCV(tabular(SVC()), behind, cv=FOLDS).fit(frame, labels)
    np.testing.assert_allclose(given.cv_results_["mean_test_score"], truth.cv_results_["mean_test_score"])
    assert given.best_params_ == truth.best_params_
    assert given.best_estimator_.feature_names_in_.tolist() == ["size", "kind", "age"]


@pytest.mark.parametrize("missing", ["impute", "drop"])
def test_a_regression_of_a_table_is_scored_in_its_own_unit(missing: str) -> None:
    frame, _, worth = table()
    model, grid = tabular(SVR(tol=1e-6), missing=missing), {"estimator__C": [0.1, 10.0]}
    scored = {"scoring": "neg_mean_absolute_error"}
    found = quietly(model, frame, worth, grid=grid, skip=False, **scored)
    truth = GridSearchCV(model, grid, cv=KFold(5, shuffle=True, random_state=0), **scored).fit(frame, worth)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], truth.cv_results_["mean_test_score"], rtol=1e-4)


# --- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            (np.eye(3), [0, 1, 0]),
            r"tune is the machine, not an array of shape \(3, 3\). Write mercer.tune\(mercer.SVC\(\), X",
        ),
        ((np.eye(3),), r"mercer.tune\(mercer.OneClassSVM\(\), X\) without y"),
        ((pd.DataFrame({"a": [1]}), [0]), r"not a table. .*mercer.tabular\(mercer.SVC\(\)\)"),
        ((SVC,), r"SVC is a class: pass an instance, SVC\(\)"),
        ((SVC(),), r"tune needs samples: mercer.tune\(estimator, X, y\)"),
    ],
)
def test_calls_without_a_machine_say_what_to_write(given: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        mercer.tune(*given)


@pytest.mark.parametrize(
    ("scoring", "near"), [("acuracy", "did you mean 'accuracy'"), ("xyzzy", "is unknown: sklearn")]
)
def test_a_misspelt_score(scoring: str, near: str) -> None:
    with pytest.raises(ValueError, match=near) as told:
        mercer.tune(SVC(), np.eye(20), [0, 1] * 10, grid={"C": [1.0]}, scoring=scoring)
    assert len(str(told.value)) < 160


# --- fits that do not end well ---------------------------------------------------------------------------------------


def steep(n: int = 60) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = 1e4 * rng.normal(size=(n, 2))
    return X, (X[:, 0] + 3e3 * rng.normal(size=n) > 0).astype(int)


@pytest.mark.parametrize("cache_size", [1000, 0.001], ids=["shared", "fold by fold"])
def test_fits_that_did_not_converge_are_told_once(cache_size: float) -> None:
    X, y = steep()
    machine = SVC(kernel="poly", degree=2, gamma=0.3, cache_size=cache_size)
    with pytest.warns(ConvergenceWarning) as told:
        mercer.tune(machine, X, y, grid={"C": [0.01, 1.0]}, refit=False, skip=False)
    (warning,) = told
    assert "10 of 10 fits stopped before tol" in str(warning.message)
    assert "the chosen cell among them" in str(warning.message)


@pytest.mark.parametrize("seed", range(2))
def test_large_kernel_values_are_no_overflow(seed: int) -> None:
    """K is 1e16 at most, and C 100: whatever float32 values make of it, float64 has a solution."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0.3 * rng.normal(size=60)).astype(int)
    machine = SVC(kernel="poly", degree=2, gamma=0.3, slack="l2")
    with pytest.warns(ConvergenceWarning):
        found = mercer.tune(machine, 1e4 + X, y, grid={"C": [0.01, 1.0, 100.0]}, refit=False, skip=False)
    assert not any("Error" in why for why in found.cv_results_["why"])
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()


def pick(X: Any, columns: Any) -> Any:
    return X[:, columns]


def test_values_may_be_lists() -> None:
    X, y = some(datasets.load_wine)
    grid = {"functiontransformer__kw_args": [{"columns": [0, 1]}, {"columns": [9, 12]}]}
    pipeline = make_pipeline(FunctionTransformer(pick), StandardScaler(), SVC())
    found = quietly(pipeline, X, y, grid=grid, skip=False)
    truth = GridSearchCV(pipeline, grid, cv=FOLDS).fit(X, y)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], truth.cv_results_["mean_test_score"])
    lists = quietly(
        tabular(SVC()), pd.DataFrame(X, columns=list("abcdefghijklm")), y, grid={"drop": [["a"], ["b", "c"]]}
    )
    assert lists.best_params_["drop"] in (["a"], ["b", "c"])
    assert lists.at(drop=["b", "c"])["params"] == {"drop": ["b", "c"]}
    for wrong in ({"C": 1.0}, {"C": []}, {"C": "12"}, {"C": np.eye(2)}):
        with pytest.raises(ValueError, match="must have a list of at least one value"):
            mercer.tune(SVC(), X, y, grid=wrong)


def test_soft_scores_are_compared_by_their_plain_standard_error() -> None:
    X, y = some(datasets.load_breast_cancer)
    found = quietly(make_pipeline(StandardScaler(), SVC()), X, y, grid="quick", scoring=soft_accuracy, refit=False)
    scores = np.array([found.cv_results_[f"split{k}_test_score"] for k in range(5)])
    own = next(k for k, point in enumerate(found.cv_results_["params"]) if point["svc__gamma"] == "scale")
    gain = scores[:, scores.mean(axis=0).argmax()] - scores[:, own]
    assert gain.mean() > gain.std(ddof=1) / np.sqrt(5)
    assert found.best_index_ == scores.mean(axis=0).argmax()
    assert found.choice_.endswith(f"(standard error over 5 folds: {gain.std(ddof=1) / np.sqrt(5):.3g})")
