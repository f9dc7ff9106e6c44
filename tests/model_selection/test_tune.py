"""`mercer.tune` chooses what scikit-learn's search chooses, and says what it did not do."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import SVC, SVR, NuSVC, OneClassSVM, RLSClassifier
from mercer.kernels import Gaussian, Linear

CS, GAMMAS = [0.01, 0.3, 3.0, 100.0], [0.03, 0.3, 3.0]


def data(n: int = 120, classes: int = 2):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 3))
    y = np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.7 * rng.normal(size=n), [0.8, 2.0][: classes - 1])
    return X, y


def same_as_scikit(estimator, X, y, grid, **given):  # type: ignore[no-untyped-def]
    """The scores of every cell and fold are those of GridSearchCV, up to one sample on the boundary."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = mercer.tune(estimator, X, y, grid=grid, skip=False, **given)
        weight = given.pop("sample_weight", None)
        fit = {} if weight is None else {"sample_weight": weight}
        splitter = (StratifiedKFold if is_classifier(estimator) else KFold)(5, shuffle=True, random_state=0)
        truth = GridSearchCV(estimator, grid, **{"cv": splitter, **given}).fit(X, y, **fit)
    assert found.cv_results_["params"] == truth.cv_results_["params"]
    for fold in range(found.n_splits_):
        own, other = (r.cv_results_[f"split{fold}_test_score"] for r in (found, truth))
        np.testing.assert_allclose(own, other, atol=1.01 / (len(y) // found.n_splits_))
        assert (np.abs(own - other) > 1e-3).sum() <= 1
    assert found.best_score_ == pytest.approx(truth.best_score_, abs=0.01)
    return found


def test_two_classes() -> None:
    found = same_as_scikit(SVC(), *data(), {"C": CS, "gamma": GAMMAS})
    assert "between all folds" in found.shared_
    assert found.complete_
    assert max(found.cv_results_["relative_gap"]) < 0.05
    assert found.best_estimator_.get_params()["C"] == found.best_params_["C"]
    assert found.best_estimator_.certificate_.proves == "optimality"


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "roc_auc", "f1"])
def test_other_scores(scoring: str) -> None:
    same_as_scikit(SVC(tol=1e-5), *data(), {"C": CS, "gamma": [0.3]}, scoring=scoring)


def test_several_classes_with_labels_of_text() -> None:
    X, y = data(classes=3)
    machine = SVC(class_weight={"a": 1.0, "b": 1.3, "c": 0.7}, tol=1e-6)
    same_as_scikit(machine, X, np.array(["a", "b", "c"])[y], {"C": CS, "gamma": [0.3, 3.0]})


def test_weights_and_sparse_samples() -> None:
    X, y = data()
    weight = np.random.default_rng(0).uniform(0.1, 3.0, size=len(y))
    same_as_scikit(SVC(), sp.csr_matrix(X), y, {"C": CS, "gamma": [0.3]}, sample_weight=weight)


def test_regression() -> None:
    X, y = data()
    target = np.sin(2 * X[:, 0]) + 0.2 * y
    grid = {"C": [0.1, 10.0], "epsilon": [0.01, 0.2], "gamma": [0.1, 1.0]}
    found = same_as_scikit(SVR(tol=1e-5), X, target, grid)
    assert found.search_gap_ is None


def test_kernels_and_their_parts() -> None:
    X, y = data()
    kernel = Gaussian() + 0.1 * Linear()
    found = same_as_scikit(SVC(kernel=kernel), X, y, {"C": [1.0, 10.0], "kernel__left__gamma": [0.1, 1.0]})
    assert found.best_params_.keys() == {"C", "kernel__left__gamma"}
    short = mercer.tune(SVC(kernel=Gaussian()), X, y, grid={"C": [1.0], "gamma": [0.1, 1.0]}, refit=False)
    assert {"C", "kernel__gamma"} == set(short.cv_results_["params"][0])


def test_a_precomputed_kernel() -> None:
    X, y = data()
    same_as_scikit(SVC(kernel="precomputed"), Gaussian(0.3)(X, X), y, {"C": CS})


def test_a_kernel_that_depends_on_the_training_samples() -> None:
    same_as_scikit(SVC(gamma="scale"), *data(), {"C": CS})


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (NuSVC(gamma=0.3), {"nu": [0.2, 0.4]}),
        (SVC(kernel="linear"), {"C": CS}),
        (SVC(gamma=0.3, multiclass="crammer-singer"), {"C": [0.1, 1.0]}),
        (RLSClassifier(gamma=0.3), {"lam": [0.1, 1.0]}),
        (LogisticRegression(), {"C": [0.1, 1.0]}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_estimators_fold_by_fold(estimator, grid) -> None:  # type: ignore[no-untyped-def]
    found = same_as_scikit(estimator, *data(), grid)
    assert "not shared" in found.shared_


def test_what_does_not_fit_the_memory_is_fitted_fold_by_fold() -> None:
    X, y = data()
    grid = {"C": CS, "gamma": [0.3]}
    small = mercer.tune(SVC(cache_size=0.01), X, y, grid=grid, skip=False)
    large = mercer.tune(SVC(), X, y, grid=grid, skip=False)
    assert "exceeds cache_size" in small.shared_
    np.testing.assert_allclose(small.cv_results_["mean_test_score"], large.cv_results_["mean_test_score"], atol=0.01)


def test_pipelines_are_fitted_within_their_folds() -> None:
    X, y = data()
    model = make_pipeline(StandardScaler(), PCA(), SVC())
    grid = {"svc__C": [0.3, 3.0], "svc__gamma": [0.1, 1.0], "pca__n_components": [2, 3]}
    found = same_as_scikit(model, 100 * X, y, grid)
    assert "refitted in every fold" in found.shared_
    short = mercer.tune(model, X, y, grid={"C": [0.3, 3.0]}, refit=False)
    assert short.cv_results_["params"] == [{"svc__C": 0.3}, {"svc__C": 3.0}]


def test_splitters_and_groups() -> None:
    X, y = data()
    groups = np.arange(len(y)) % 7
    found = mercer.tune(SVC(), X, y, grid={"C": [1.0]}, cv=GroupKFold(3), groups=groups, refit=False)
    assert found.n_splits_ == 3
    with pytest.raises(ValueError, match=r"cv=GroupKFold.* needs groups: pass groups="):
        mercer.tune(SVC(), X, y, grid={"C": [1.0]}, cv=GroupKFold(3))


def test_folds_of_flags_behind_the_steps_of_a_pipeline() -> None:
    X, y = data()
    flags = [(np.arange(120) % 3 != k, np.arange(120) % 3 == k) for k in range(3)]
    same_as_scikit(make_pipeline(StandardScaler(), SVC()), X, y, {"svc__C": CS}, cv=flags)


def test_novelty() -> None:
    X, y = data()
    labels = np.where(y == 1, 1, -1)
    found = mercer.tune(OneClassSVM(), X, labels, grid={"nu": [0.2, 0.6], "gamma": [0.3, 3.0]})
    assert 0 < found.best_score_ <= 1
    alone = mercer.tune(OneClassSVM(), X, grid={"nu": [0.1], "gamma": [0.01, 100.0]})
    assert alone.best_params_["gamma"] == 0.01


# --- skipping --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_skipping_never_changes_what_is_chosen(seed: int) -> None:
    X, y = data()
    order = np.random.default_rng(seed).permutation(len(y))
    folds = StratifiedKFold(5)
    given = {"grid": {"C": CS, "gamma": [0.01, *GAMMAS, 30.0]}, "cv": folds, "refit": False, "n_jobs": 2}
    every, some = (mercer.tune(SVC(), X[order], y[order], skip=skip, **given) for skip in (False, True))
    assert every.best_index_ == some.best_index_
    assert every.best_score_ == some.best_score_
    skipped = some.cv_results_["skipped"]
    assert skipped.any()
    assert not every.cv_results_["skipped"].any()
    assert (every.cv_results_["mean_test_score"][skipped] < every.best_score_).all()
    assert all("lost after" in some.cv_results_["why"][k] for k in np.flatnonzero(skipped))
    assert np.isnan(some.cv_results_["mean_test_score"][skipped]).all()
    assert some.complete_


def test_a_score_without_a_known_maximum_skips_nothing() -> None:
    X, y = data()
    found = mercer.tune(
        SVC(), X, y, grid={"C": CS, "gamma": GAMMAS}, scoring=lambda m, X, y: (m.predict(X) == y).mean(), refit=False
    )
    assert not found.cv_results_["skipped"].any()


def test_likely_skips_more() -> None:
    X, y = data()
    # With several threads the number depends on which fit ends first, and on some folds nothing is left to skip.
    given = {"grid": {"C": [*CS, 1.0, 10.0], "gamma": GAMMAS}, "refit": False, "n_jobs": 1, "cv": StratifiedKFold(5)}
    sure, likely = (mercer.tune(SVC(), X, y, skip=skip, **given) for skip in (True, "likely"))
    assert likely.cv_results_["skipped"].sum() > sure.cv_results_["skipped"].sum()


# --- choosing --------------------------------------------------------------------------------------------------------


def test_ties_go_to_the_first_cell_as_in_scikit_learn() -> None:
    X = np.r_[np.zeros((20, 1)), np.ones((20, 1))] + 0.01 * np.random.default_rng(0).normal(size=(40, 1))
    y = np.repeat([0, 1], 20)
    for prices in ([100.0, 10.0, 1.0], [1.0, 100.0]):
        grid = {"C": prices, "gamma": [1.0]}
        found = mercer.tune(SVC(), X, y, grid=grid, refit=False)
        truth = GridSearchCV(SVC(), grid, cv=StratifiedKFold(5, shuffle=True, random_state=0)).fit(X, y)
        assert found.best_params_ == truth.best_params_ == {"C": prices[0], "gamma": 1.0}
        assert found.best_score_ == 1.0


def test_the_text_names_the_best_of_the_other_cells() -> None:
    X, y = data()
    grid = {"C": CS, "gamma": GAMMAS[:2]}
    found = mercer.tune(SVC(), X, y, grid=grid, skip=False)
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    truth = GridSearchCV(SVC(), grid, cv=cv).fit(X, y).cv_results_
    order = np.argsort(-np.round(truth["mean_test_score"], 9), kind="stable")
    best = found.cv_results_["params"].index(found.best_params_)
    others = [k for k in order if k != best][:4]
    texts = [f"{truth['mean_test_score'][k]:.4f}  C={truth['params'][k]['C']:.4g}, gamma=" for k in others]
    lines = [line for line in str(found).splitlines() if re.search(r"\d  C=", line)]
    assert len(lines) == 4
    assert all(text in line for text, line in zip(texts, lines, strict=True))


def test_one_standard_error_takes_a_smaller_C() -> None:
    X, y = data()
    given = {"grid": {"C": [0.1, 1.0, 10.0, 1000.0], "gamma": [0.3]}, "skip": False, "refit": False}
    best, simple = (mercer.tune(SVC(), X, y, one_standard_error=rule, **given) for rule in (False, True))
    results = best.cv_results_
    least = best.best_score_ - results["std_test_score"][best.best_index_] * np.sqrt(5 / 4) / np.sqrt(5)
    truth = min(
        C for C, mean in zip([0.1, 1.0, 10.0, 1000.0], results["mean_test_score"], strict=True) if mean >= least
    )
    assert simple.best_params_["C"] == truth
    near = [point["C"] for point in best.within_one_standard_error()]
    assert truth == min(near)
    assert best.best_params_["C"] in near
    best.cv_results_["mean_test_score"][0] = np.nan
    with pytest.raises(ValueError, match="1 of 4 cells lack scores"):
        best.within_one_standard_error()


def test_the_edge_of_the_grid_is_reported() -> None:
    X, y = data()
    with pytest.warns(UserWarning, match="edge of the grid: C=0.0003 is the largest of 3 values"):
        mercer.tune(SVC(), X, y, grid={"C": [1e-4, 2e-4, 3e-4], "gamma": [0.3]}, one_standard_error=False, scoring=_C)


def _C(model, X, y) -> float:  # type: ignore[no-untyped-def]
    return float(model.C)


def test_default_grids_follow_the_data() -> None:
    X, y = data(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, two = (mercer.tune(SVC(), scale * X, y, cv=2) for scale in (1.0, 1000.0))
    np.testing.assert_allclose(two.best_params_["gamma"] * 1e6, one.best_params_["gamma"], rtol=1e-6)
    np.testing.assert_allclose(one.cv_results_["split0_test_score"], two.cv_results_["split0_test_score"], atol=0.04)


def test_at_finds_a_cell() -> None:
    X, y = data()
    found = mercer.tune(SVC(), X, y, grid={"C": CS, "gamma": GAMMAS}, refit=False, skip=False)
    cell = found.at(C=0.3, gamma=3.0)
    assert cell["params"] == {"C": 0.3, "gamma": 3.0}
    with pytest.raises(KeyError, match="3 cells have"):
        found.at(C=0.3)


def test_many_small_pairs_are_solved_in_one_call_for_each_fit():
    """Twenty classes of ten samples: what is chosen, and every score, is that of an exhaustive search."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 20
    X = rng.normal(size=(20, 6))[y] + 0.8 * rng.normal(size=(200, 6))
    grid, cv = {"C": [0.1, 1.0, 10.0], "gamma": [0.02, 0.1]}, StratifiedKFold(5, shuffle=True, random_state=0)
    found = mercer.tune(SVC(tol=1e-6), X, y, grid=grid, cv=cv, skip=False, refit=False)
    assert "many pairs of classes in one call" in found.shared_
    truth = GridSearchCV(SVC(tol=1e-6), grid, cv=cv).fit(X, y)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], truth.cv_results_["mean_test_score"], atol=1e-12)
    assert found.best_params_ == truth.best_params_
    assert (found.cv_results_["relative_gap"] < 1e-2).all()
    behind = mercer.tune(
        make_pipeline(StandardScaler(), SVC(tol=1e-6)), X, y, grid=grid, cv=cv, skip=False, refit=False
    )
    by_hand = GridSearchCV(
        make_pipeline(StandardScaler(), SVC(tol=1e-6)), {f"svc__{k}": v for k, v in grid.items()}, cv=cv
    )
    by_hand.fit(X, y)
    np.testing.assert_allclose(
        behind.cv_results_["mean_test_score"], by_hand.cv_results_["mean_test_score"], atol=1e-12
    )
    weighed = mercer.tune(SVC(), X, y, grid=grid, cv=cv, sample_weight=np.ones(200), refit=False)
    assert weighed.shared_.startswith("kernel values")


def test_a_quick_grid_has_a_fifth_of_the_cells():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    cells = [len(mercer.tune(SVC(), X, y, grid=grid, refit=False).cv_results_["params"]) for grid in (None, "quick")]
    assert cells[1] == 4 * 4 + 1 <= cells[0] / 5  # and the machine's own
    with pytest.raises(TypeError, match="grid='fast' must be a dictionary"):
        mercer.tune(SVC(), X, y, grid="fast")
