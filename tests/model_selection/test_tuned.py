"""The estimators that choose their parameters: scikit-learn's own checks, files, copies, pictures."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from contracts import scikit_learn_checks
from mercer import SVC, SVR, TunedOneClassSVM, TunedSVC, TunedSVR
from mercer.files.export.c.export import export_c


def data(n: int = 80):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)


CHECKED = [
    TunedSVC({"C": [1.0, 10.0]}, cv=2),
    TunedSVR({"C": [1.0, 10.0]}, cv=2),
    TunedOneClassSVM({"nu": [0.1, 0.3]}, cv=2),
]


@scikit_learn_checks.of_each(CHECKED)
def test_scikit_learns_checks(estimator) -> None:  # type: ignore[no-untyped-def]
    scikit_learn_checks.hold(estimator)


def test_it_is_the_best_machine() -> None:
    X, y = data()
    model = TunedSVC({"C": [0.1, 1.0], "gamma": [0.1, 1.0]}).fit(X, y)
    truth = SVC(**model.best_params_).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), truth.predict(X))
    np.testing.assert_allclose(model.decision_function(X), truth.decision_function(X))
    assert model.certificate_.gap == truth.certificate_.gap
    assert model.classes_.tolist() == [0, 1]
    assert model.score(X, y) == truth.score(X, y)
    assert model.result_.at(**model.best_params_)["mean_test_score"] == model.best_score_
    with pytest.raises(AttributeError):
        TunedSVC().certificate_  # noqa: B018


def test_parameters_that_are_not_searched_come_from_the_estimator() -> None:
    X, y = data()
    model = TunedSVC({"C": [0.1, 1.0]}, estimator=SVC(kernel="poly", degree=2)).fit(X, y)
    assert model.best_estimator_.degree == 2
    piped = TunedSVC({"C": [0.1, 1.0]}, estimator=make_pipeline(StandardScaler(), SVC())).fit(100 * X, y)
    assert piped.best_params_.keys() == {"svc__C"}
    assert piped.predict(X).shape == (80,)


def test_weights_reach_the_fits() -> None:
    X, _ = data()
    model = TunedSVR({"C": [1.0, 2.0]}, cv=2, estimator=SVR(gamma=0.3))
    model.fit(X, X[:, 0], sample_weight=np.where(np.arange(80) % 2, 1.0, 0.5))
    truth = SVR(gamma=0.3, **model.best_params_).fit(X, X[:, 0], np.where(np.arange(80) % 2, 1.0, 0.5))
    np.testing.assert_allclose(model.predict(X), truth.predict(X))


@pytest.mark.parametrize("copied", [lambda m: pickle.loads(pickle.dumps(m)), clone], ids=["pickle", "clone"])
def test_copies(copied) -> None:  # type: ignore[no-untyped-def]
    X, y = data()
    model = TunedSVC({"C": [0.1, 1.0]}).fit(X, y)
    other = copied(model)
    if not hasattr(other, "best_estimator_"):
        other.fit(X, y)
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert other.best_params_ == model.best_params_


@pytest.mark.parametrize("estimator", [None, make_pipeline(StandardScaler(), SVC())], ids=["alone", "piped"])
def test_files(estimator, tmp_path) -> None:  # type: ignore[no-untyped-def]
    X, y = data()
    model = TunedSVC({"C": [1e-3, 1.0]}, estimator=estimator, cv=StratifiedKFold(3)).fit(X, y)
    path = tmp_path / "model.mercer"
    mercer.save(model, path)
    other = mercer.load(path)
    np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
    assert other.best_params_ == model.best_params_
    assert other.cv_results_.keys() == model.cv_results_.keys()
    np.testing.assert_array_equal(other.cv_results_["mean_test_score"], model.cv_results_["mean_test_score"])
    assert other.cv_results_["why"] == model.cv_results_["why"]
    assert other.search_gap_ == model.search_gap_


def test_scikit_learns_tools_work_around_it_and_around_svc() -> None:
    X, y = data()
    scores = cross_val_score(TunedSVC({"C": [0.1, 1.0]}, cv=2), X, y, cv=2)
    assert scores.min() > 0.5
    search = GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=StratifiedKFold(2, shuffle=True, random_state=0)).fit(X, y)
    assert search.best_score_ == pytest.approx(
        mercer.tune(SVC(), X, y, grid={"C": [0.1, 1.0]}, cv=2, refit=False).best_score_
    )


@pytest.mark.parametrize("kind", [TunedSVC, TunedSVR, TunedOneClassSVM])
def test_what_the_best_machine_knows_can_be_asked_here(kind, tmp_path) -> None:  # type: ignore[no-untyped-def]
    X, y = data(60)
    grid = {"nu": [0.1, 0.3]} if kind is TunedOneClassSVM else {"C": [1.0, 2.0]}
    model = kind(grid, cv=2).fit(X, None if kind is TunedOneClassSVM else y)
    best = model.best_estimator_
    asked = ["margins", "signed_distance", "nearest_points", "insight", "explain", "reasons", "calibrate"]
    for name in (*asked, "partial_dependence", "gradient_importance", "decision_function", "score_samples"):
        assert hasattr(model, name) == hasattr(best, name) == (name in dir(model))
        assert hasattr(kind(), name) == hasattr(best, name)
    np.testing.assert_array_equal(model.explain(X[:2], X[:5]).values, best.explain(X[:2], X[:5]).values)
    np.testing.assert_array_equal(model.gradient_importance(X), best.gradient_importance(X))
    assert str(model.insight(X, y)) == str(best.insight(X, y))
    small = mercer.compress(model, 5)
    np.testing.assert_array_equal(small.predict(X), mercer.compress(best, 5).predict(X))
    for part, name in ((model, "one.c"), (best, "other.c")):
        export_c(part, tmp_path / name)
    one, other = ((tmp_path / name).read_text().replace(name[:-2], "") for name in ("one.c", "other.c"))
    assert one == other
    assert not hasattr(model, "partial_fit")
    learnt = [name for name in dir(best) if name.endswith("_") and not name.startswith("_")]
    assert {"certificate_", "n_support_"} <= set(learnt)
    for name in learnt:
        assert name in dir(model), name
        assert type(getattr(model, name)) is type(getattr(best, name))
        assert not hasattr(kind(), name)
    assert not hasattr(model, "coef_")  # of a Gaussian kernel
    assert "coef_" not in dir(model)


def test_what_nobody_knows_cannot_be_asked() -> None:
    X, y = data(60)
    piped = TunedSVC({"C": [1.0, 2.0]}, estimator=make_pipeline(StandardScaler(), SVC()), cv=2).fit(X, y)
    best = piped.best_estimator_
    np.testing.assert_array_equal(piped.margins(X, y).slacks, best[-1].margins(best[:-1].transform(X), y).slacks)
    assert not hasattr(TunedSVR(), "margins")
    with pytest.raises(NotFittedError):
        TunedSVC().margins(X, y)
    with pytest.raises(AttributeError, match="no attribute 'margin'"):
        piped.margin  # noqa: B018


@pytest.mark.parametrize("kind", [TunedSVC, TunedSVR, TunedOneClassSVM])
def test_a_picture_of_the_best_machine(kind) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("matplotlib").use("Agg")
    from mercer.inspection.displays import DecisionDisplay

    X, y = data(60)
    grid = {"nu": [0.1, 0.3]} if kind is TunedOneClassSVM else {"C": [1.0, 2.0]}
    model = kind(grid, cv=2).fit(X[:, :2], None if kind is TunedOneClassSVM else y)
    one, other = (DecisionDisplay.from_estimator(part, X[:, :2], y) for part in (model, model.best_estimator_))
    np.testing.assert_array_equal(one.response, other.response)
    assert len(one.ax_.collections) == len(other.ax_.collections)


def test_pictures() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    from mercer.inspection.displays import TuningDisplay

    X, y = data()
    found = mercer.tune(SVC(), X, y, grid={"C": [1e-3, 0.1, 1.0], "gamma": [0.1, 1.0]}, refit=False)
    surface = found.plot()
    assert surface.ax_.get_xlabel() == "C"
    drawn = np.ma.filled(surface.ax_.images[0].get_array().astype(float), np.nan).ravel()
    table = surface.to_frame()
    np.testing.assert_array_equal(np.sort(drawn), np.sort(found.cv_results_["mean_test_score"]))
    np.testing.assert_array_equal(table["mean_test_score"], found.cv_results_["mean_test_score"])
    assert table["gamma"].tolist() == [point["gamma"] for point in found.cv_results_["params"]]
    curve = TuningDisplay.from_search(found, parameters=["C"])
    assert curve.ax_.get_xscale() == "log"
    best = curve.to_frame().groupby("C")["mean_test_score"].max()
    np.testing.assert_array_equal(curve.ax_.lines[0].get_ydata(), best.to_numpy())
    one = TuningDisplay.from_search(TunedSVC({"C": [0.1, 1.0]}).fit(X, y))
    assert one.parameters == ("C",)
    with pytest.raises(ValueError, match="name one or two"):
        TuningDisplay.from_search(found, parameters=["C", "gamma", "nu"])


@pytest.mark.parametrize("machine", [TunedSVC, TunedSVR, TunedOneClassSVM])
def test_no_samples_are_refused_as_elsewhere(machine):
    with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required"):
        machine().fit(np.empty((0, 3)), np.empty(0))
