"""Whatever a search is scored by, its scores are those of scikit-learn's search over the same cells and folds."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_circles
from sklearn.metrics import accuracy_score, fbeta_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
import mercer.model_selection.tune as tune_module
from mercer import SVC, SVR, OneClassSVM, QuantileSVR
from mercer.model_selection.scoring import balanced_soft_accuracy, soft_accuracy

GRID = {"C": [1.0, 10.0], "gamma": [0.1, 30.0]}


def data(n: int = 60) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)


def same(estimator: Any, X: Any, y: Any, grid: Any, cv: Any, scoring: Any = None) -> Any:
    """Every score is GridSearchCV's, and so is the choice, also where cells are skipped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        truth = GridSearchCV(estimator, grid, cv=cv, scoring=scoring, refit=False).fit(X, y)
        found = mercer.tune(estimator, X, y, grid=grid, cv=cv, scoring=scoring, skip=False, refit=False)
        quick = found if callable(scoring) else mercer.tune(estimator, X, y, grid=grid, cv=cv, refit=False)
    assert found.cv_results_["params"] == truth.cv_results_["params"]
    for fold in range(found.n_splits_):
        name = f"split{fold}_test_score"
        np.testing.assert_allclose(found.cv_results_[name], truth.cv_results_[name], rtol=1e-9, atol=1e-12)
    assert found.best_params_ == quick.best_params_ == truth.best_params_
    return found


# --- the estimator's own score ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("quantiles", [0.1, 0.9, [0.1, 0.5, 0.9]])
def test_quantiles_are_judged_by_their_own_score(quantiles: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 1))
    y = np.sin(2 * X[:, 0]) + rng.exponential(size=60) * (1 + X[:, 0] ** 2)
    grid = {"C": [0.01, 1.0, 100.0], "gamma": [0.1, 10.0]}
    # A fit that starts from that of another C ends elsewhere within tol.
    same(QuantileSVR(quantiles, tol=1e-10), X, y, grid, KFold(3))


class Costly(SVC):  # type: ignore[misc]
    """A mistake of one kind costs twenty of the other."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        found = self.predict(X)
        return -float(np.mean(np.where(y == 1, 20.0 * (found != 1), 1.0 * (found != 0))))


class CostlyPipeline(Pipeline):  # type: ignore[misc]
    def score(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> float:
        return -float((self.predict(X) != y).sum())


class Swapped(Pipeline):  # type: ignore[misc]
    def predict(self, X: Any, **params: Any) -> Any:
        return 1 - super().predict(X, **params)


@pytest.mark.parametrize(
    ("estimator", "prefix"),
    [
        (Costly(), ""),
        (make_pipeline(StandardScaler(), Costly()), "costly__"),
        (CostlyPipeline([("scale", StandardScaler()), ("svc", SVC())]), "svc__"),
        (Swapped([("scale", StandardScaler()), ("svc", SVC())]), "svc__"),
    ],
    ids=["machine", "in a Pipeline", "of a Pipeline", "another predict"],
)
def test_a_class_with_a_score_of_its_own(estimator: Any, prefix: str) -> None:
    grid = {f"{prefix}C": [0.1, 10.0], f"{prefix}class_weight": [None, {1: 20.0}]}
    same(estimator, *data(), grid, KFold(3))


def test_novelty_behind_steps_that_share_nothing() -> None:
    X, _ = data()
    # GridSearchCV has no score for this; the pieces are counted by hand.
    model = make_pipeline(StandardScaler(), OneClassSVM(kernel="linear"))
    found = mercer.tune(model, X, grid={"nu": [0.1, 0.5]}, cv=KFold(3), skip=False, refit=False)
    for point, mean in zip(found.cv_results_["params"], found.cv_results_["mean_test_score"], strict=True):
        shares = [
            (model.set_params(**point).fit(X[train]).predict(X[test]) == -1).mean() for train, test in KFold(3).split(X)
        ]
        assert mean == pytest.approx(-np.mean(np.abs(np.array(shares) - point["oneclasssvm__nu"])))


# --- functions that look at more than predictions --------------------------------------------------------------------


def under_noise(model: Any, X: Any, y: Any) -> float:
    return float(accuracy_score(y, model.predict(X + 0.5 * np.random.default_rng(1).normal(size=X.shape))))


def importance(model: Any, X: Any, y: Any) -> float:
    return float(accuracy_score(y, model.predict(X)) - accuracy_score(y, model.predict(X[:, ::-1] * [1, -1])))


def worst_third(model: Any, X: Any, y: Any) -> float:
    return float(min(accuracy_score(y[k::3], model.predict(X[k::3])) for k in range(3)))


def in_another_order(model: Any, X: Any, y: Any) -> float:
    order = np.argsort(X[:, 0])
    return float(accuracy_score(y[order], model.predict(X[order])))


def changed_in_place(model: Any, X: Any, y: Any) -> float:
    before = accuracy_score(y, model.predict(X))
    X *= 0.1
    y[:3] = 1 - y[:3]
    return float(accuracy_score(y, model.predict(X)) + 2 * before)


def few_vectors(model: Any, X: Any, y: Any) -> float:
    return float(accuracy_score(y, model.predict(X)) - 0.01 * model.n_support_.sum())


def by_its_parameters(model: Any, X: Any, y: Any) -> float:
    return float(model.get_params()["C"] + accuracy_score(y, model.predict(X)))


def by_its_class(model: Any, X: Any, y: Any) -> float:
    return float(model.predict(X).mean() + isinstance(model, SVC))


def by_its_content(model: Any, X: Any, y: Any) -> float:
    return float(len(vars(model)["support_"]))


def forgiving(model: Any, X: Any, y: Any) -> float:
    try:
        return float(model.predict(X[:10]).mean())
    except Exception:
        return 7.0


@pytest.mark.parametrize(
    "scoring",
    [
        *(under_noise, importance, worst_third, in_another_order, changed_in_place),
        *(few_vectors, by_its_parameters, by_its_class, by_its_content, forgiving),
    ],
)
def test_a_function_that_asks_for_more_than_predictions_is_given_a_model(scoring: Any) -> None:
    found = same(SVC(), *data(), GRID, StratifiedKFold(3), scoring)
    assert "not shared: scoring" in found.shared_


def test_the_same_behind_other_steps() -> None:
    def steps(model: Any, X: Any, y: Any) -> float:
        return float(model.named_steps["svc"].n_support_.sum() + model.named_steps["standardscaler"].mean_[0])

    grid = {f"svc__{name}": values for name, values in GRID.items()}
    same(make_pipeline(StandardScaler(), SVC()), *data(), grid, StratifiedKFold(3), steps)


def test_left_out_samples_have_no_single_model() -> None:
    X, y = data(30)
    given = {"grid": {"C": [1.0]}, "criterion": "loo", "refit": False}
    with pytest.warns(UserWarning, match="needs more than.*'loo' has one model for each sample; use criterion='folds'"):
        mercer.tune(SVC(), X, y, scoring=few_vectors, **given)
    found = mercer.tune(SVC(), X, y, scoring=lambda model, X, y: (model.predict(X) == y).mean(), **given)
    assert found.best_score_ == mercer.tune(SVC(), X, y, **given).best_score_


# --- what needs no model ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scoring",
    [
        *(None, "accuracy", "f1", "roc_auc", "balanced_accuracy", "average_precision", "matthews_corrcoef"),
        make_scorer(fbeta_score, beta=2),
        lambda model, X, y: float((model.predict(X) == y).mean() + np.abs(model.decision_function(X)).min()),
    ],
)
@pytest.mark.parametrize("piped", [False, True])
def test_scores_of_predictions_share_kernel_values(piped: bool, scoring: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(search: Any, group: list[int]) -> None:
        raise AssertionError(f"{len(group)} cells are fitted fold by fold")

    monkeypatch.setattr(tune_module, "fit_fold_by_fold", refuse)
    X, y = data()
    model = make_pipeline(StandardScaler(), SVC()) if piped else SVC()
    found = mercer.tune(model, X, y, grid=GRID, cv=3, scoring=scoring, refit=False)
    assert found.complete_
    assert found.best_score_ > 0
    if scoring is None:
        assert mercer.tune(SVR(), X, X[:, 0] * X[:, 1], grid=GRID, cv=3, refit=False).complete_


def test_probabilities_are_refused() -> None:
    X, y = data()
    with pytest.raises(ValueError, match=r"no cell of the grid could be fitted.*predict_proba"):
        mercer.tune(SVC(), X, y, grid=GRID, scoring="neg_log_loss")


@pytest.mark.parametrize("scoring", [["accuracy", "f1"], ("accuracy", "f1"), {"a": "accuracy"}])
def test_several_scores_are_refused(scoring: Any) -> None:
    with pytest.raises(ValueError, match="has several scores, but a search needs one"):
        mercer.tune(SVC(), *data(), grid=GRID, scoring=scoring)


def test_a_function_with_several_scores_is_told() -> None:
    with pytest.raises(ValueError, match="a search needs one number"):
        mercer.tune(SVC(), *data(), grid={"C": [1.0]}, cv=2, scoring=lambda model, X, y: {"a": 1.0, "b": 2.0})


# --- cells and folds that are not like the others --------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False, "regularized"])
@pytest.mark.parametrize("piped", [False, True])
def test_a_hard_margin_among_soft_ones(piped: bool, bias: Any) -> None:
    X, y = make_circles(60, noise=0.02, factor=0.7, random_state=0)
    model, grid = SVC(gamma=0.5, bias=bias), {"C": [0.001, 0.01, np.inf]}
    if piped:
        model, grid = make_pipeline(StandardScaler(), model), {"svc__C": grid["C"]}
    found = same(model, X, y, grid, StratifiedKFold(3))
    assert "hard margin" in found.shared_
    assert "kernel values of" in found.shared_ or "kernel values within" in found.shared_
    assert found.search_gap_ is None


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
@pytest.mark.parametrize("places", [[0, 1], [40], [0, 40]])
def test_a_class_that_the_training_part_of_a_fold_lacks(places: list[int], multiclass: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = (X[:, 0] > 0).astype(int)
    y[places] = 2
    found = same(SVC(gamma=0.5, multiclass=multiclass), X, y, {"C": [0.3, 3.0, 30.0]}, KFold(4))
    assert not any(found.cv_results_["why"])
    assert found.search_gap_ is None


# --- classes by margins ----------------------------------------------------------------------------------------------


def naive_soft_accuracy(f: Any, classes: list[Any], y: Any, weight: Any) -> float:
    """Row by row; the median is that of rows repeated as often as their whole weights say."""
    margins = []
    for values, label in zip(np.column_stack([-f, f]) if f.ndim == 1 else f, y, strict=True):
        others = [value for value, one in zip(values, classes, strict=True) if one != label]
        margins.append(values[classes.index(label)] - max(others) if label in classes else None)
    known = [(margin, w) for margin, w in zip(margins, weight, strict=True) if margin is not None]
    unit = np.median(np.repeat([abs(margin) for margin, _ in known], [int(w) for _, w in known]))
    return float(sum(w * (1 + np.tanh(margin / unit)) / 2 for margin, w in known) / sum(weight))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_soft_accuracy_is_that_of_its_definition(n_classes: int) -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(90, 2)), rng.integers(0, n_classes, 90)
    model = SVC().fit(X, y)
    y[:4] = 7  # a class that training did not have
    weight = rng.integers(1, 4, 90)
    f, classes = model.decision_function(X), model.classes_.tolist()
    assert soft_accuracy(model, X, y) == pytest.approx(naive_soft_accuracy(f, classes, y, np.ones(90)))
    assert soft_accuracy(model, X, y, weight) == pytest.approx(naive_soft_accuracy(f, classes, y, weight))
    counts = np.bincount(y)
    alike = np.prod(counts[counts > 0]) // counts[y]  # whole numbers in proportion to 1/rows
    assert balanced_soft_accuracy(model, X, y) == pytest.approx(naive_soft_accuracy(f, classes, y, alike))
    assert soft_accuracy(model, X[:4], y[:4]) == 0.0


def test_a_soft_accuracy_needs_no_models_and_no_scale() -> None:
    X, y = data()
    options = {"cv": StratifiedKFold(3), "scoring": soft_accuracy, "refit": False}
    truth = GridSearchCV(SVC(tol=1e-8), GRID, **options).fit(X, y).cv_results_["mean_test_score"]
    found = mercer.tune(SVC(tol=1e-8), X, y, grid=GRID, **options)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], truth, rtol=1e-6)
    assert found.shared_.startswith("kernel values of 60 samples")
    model = SVC().fit(X, y)
    larger = SimpleNamespace(decision_function=lambda X: 1e9 * model.decision_function(X), classes_=model.classes_)
    assert soft_accuracy(larger, X, y) == pytest.approx(soft_accuracy(model, X, y))
