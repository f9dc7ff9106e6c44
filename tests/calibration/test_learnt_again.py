"""What is learnt from y is learnt again in every fold: calibration against refits by scikit-learn's own loop."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer.kernels import Gaussian
from mercer.model_selection.held_out.machines import out_of_fold

rng = np.random.default_rng(0)
X = rng.normal(size=(48, 3))
NUMBERS = X[:, 0] + 0.5 * rng.normal(size=48)
LABELS = (NUMBERS > 0).astype(int)
SEVERAL = [Gaussian(gamma=5.0).on([j]) for j in range(3)]
EXACT = {"tol": 1e-8}
GIVEN = {
    "SVC": {"gamma": 0.3, **EXACT},  # folds share a kernel that is bound to all X: give its number
    "MKLClassifier": {"kernel": SEVERAL, "C": 10.0},
    "MKLRegressor": {"kernel": SEVERAL, "C": 10.0},
    "NystromRLS": {"n_landmarks": 20, "random_state": 0},
    "NystromRLSClassifier": {"n_landmarks": 20, "random_state": 0},
    "PegasosSVC": {"random_state": 0},
    "TunedSVC": {"grid": {"C": [0.1, 100.0], "gamma": [0.1, 10.0]}, "cv": 3},
    "TunedSVR": {"grid": {"C": [0.1, 100.0], "gamma": [0.1, 10.0]}, "cv": 3},
    "NuSVC": {"nu": 0.3},
}
CLASSES = [
    found
    for name in mercer.__all__
    if inspect.isclass(found := getattr(mercer, name)) and hasattr(found, "calibrate") and hasattr(found, "fit")
]
AROUND = ("Tabular", "CalibratedClassifier", "CalibratedRegressor")


def models(kind) -> list:
    made = [cls(**GIVEN.get(cls.__name__, {})) for cls in CLASSES if cls.__name__ not in AROUND]
    base, grid = (mercer.SVC, mercer.RLSClassifier) if kind is is_classifier else (mercer.SVR, mercer.RLSRegressor)
    search = GridSearchCV(grid(), {"lam": [1e-4, 100.0]}, cv=3)
    around = [
        search,
        make_pipeline(StandardScaler(), base()),
        make_pipeline(StandardScaler(), clone(search)),
        mercer.tabular(base()),
        base(class_weight="balanced") if kind is is_classifier else base(loss="huber"),
    ]
    return [model for model in made if kind(model)] + around


def test_every_estimator_is_here() -> None:
    names = {type(model).__name__ for kind in (is_classifier, is_regressor) for model in models(kind)}
    without_targets = {"OneClassSVM", "SVDD", "TunedOneClassSVM"}
    assert names | {*AROUND} | without_targets >= {cls.__name__ for cls in CLASSES}


@pytest.mark.parametrize("model", models(is_regressor), ids=lambda model: type(model).__name__)
def test_residuals_are_those_of_refits(model) -> None:
    folds = KFold(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = mercer.CalibratedRegressor(model, cv=folds).fit(X, NUMBERS)
        refits = cross_val_predict(model, X, NUMBERS, cv=folds)
        fitted = mercer.unwrap(clone(model).fit(X, NUMBERS)).calibrate(X, NUMBERS, cv=folds)
    np.testing.assert_allclose(found.residuals_, np.abs(NUMBERS - refits), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found.residuals_, fitted.residuals_)
    for k, (train, test) in enumerate(folds.split(X)):  # so are the functions, whatever the row
        part = clone(model).fit(X[train], NUMBERS[train])
        values = found._left_out_values(X[:3])[:, test[0]]
        np.testing.assert_allclose(values, part.predict(X[:3]), rtol=1e-12, atol=1e-12)
        assert found._without_[test[0]] == k


@pytest.mark.parametrize("model", models(is_classifier), ids=lambda model: type(model).__name__)
def test_decision_values_are_those_of_refits(model) -> None:
    folds = StratifiedKFold(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refits = cross_val_predict(model, X, LABELS, cv=folds, method="decision_function")
        found = out_of_fold(clone(model).fit(X, LABELS), X, LABELS, None, list(folds.split(X, LABELS)))
    np.testing.assert_allclose(found[:, 0], refits, atol=1e-6)


def test_leave_one_out_is_refused_where_more_was_learnt_from_targets() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = mercer.MKLRegressor(kernel=SEVERAL).fit(X, NUMBERS)
        search = mercer.TunedSVR({"C": [1.0, 10.0]}, cv=2).fit(X, NUMBERS)
    with pytest.raises(ValueError, match=r"MKLRegressor learns its kernel weights from all targets.*LeaveOneOut"):
        machine.calibrate(X, NUMBERS, cv="leave-one-out")
    with pytest.raises(ValueError, match=r"TunedSVR chooses its parameters from all targets.*number of folds"):
        search.calibrate(X, NUMBERS, cv="leave-one-out")
    for model in (mercer.MKLClassifier(kernel=SEVERAL), mercer.MKLClassifier(kernel=SEVERAL).fit(X, LABELS)):
        with pytest.raises(TypeError, match=r"leave_one_out does not support MKLClassifier.*SVC\(C=model.C"):
            mercer.leave_one_out(model, X, LABELS)
    with pytest.raises(TypeError, match=r"does not support MKLRegressor.*SVR\(C=model.C, kernel=model.kernel_\)"):
        mercer.leave_one_out(machine, X, NUMBERS)


def test_the_object_says_what_is_proven() -> None:
    def told(machine, cv, weight=None) -> str:
        return machine.fit(X, NUMBERS, weight).calibrate(X, NUMBERS, cv=cv, sample_weight=weight).guarantee_

    fixed, free = mercer.SVR(gamma=0.3), mercer.SVR()
    assert "at least 1 − alpha" in told(free, "held-out")
    assert "at least 1 − 2 alpha (jackknife+)" in told(fixed, "leave-one-out")
    assert told(free, "leave-one-out").startswith("none: the kernel's parameters were computed from all samples")
    assert "1 − 2 alpha − √(2/48) (CV+)" in told(free, 4)
    assert "(jackknife+)" in told(free, LeaveOneOut())  # each machine reads its own
    counts = np.where(np.arange(48) < 5, 2.0, 1.0)
    assert "at least 1 − alpha" in told(free, "held-out", counts)
    assert told(free, 4, counts).startswith("none: a sample of weight k is held out with all its k copies")
    assert told(free, "held-out", 0.5 * counts).startswith("none: fractional weights")
    zeros = np.where(np.arange(48) < 8, 0.0, 1.0)
    assert "√(2/40)" in told(free, 4, zeros)
    search = mercer.TunedSVR({"C": [1.0, 10.0]}, cv=2).fit(X, NUMBERS)
    assert search.calibrate(X, NUMBERS, cv=3).guarantee_.startswith("none: TunedSVR searches with its own folds")
    classifier = mercer.SVC().fit(X, LABELS)
    assert "at least 1 − alpha" in classifier.calibrate(X, LABELS, cv="held-out").guarantee_
    assert classifier.calibrate(X, LABELS).guarantee_.startswith("none: the scores come from the machines of the folds")
    frozen = mercer.CalibratedClassifier(FrozenEstimator(classifier)).fit(X, LABELS)
    assert "at least 1 − alpha" in frozen.guarantee_
    three = np.digitize(NUMBERS, [-0.3, 0.3])
    pairs = mercer.SVC().fit(X, three).calibrate(X, three, cv="held-out")
    assert pairs.guarantee_.startswith("nearly")
    assert "at least" in mercer.RLSClassifier().fit(X, three).calibrate(X, three, cv="held-out").guarantee_


def test_a_search_without_labels_keeps_its_choice() -> None:
    search = mercer.TunedOneClassSVM({"nu": [0.3, 0.5]}, cv=3).fit(X)
    marked = search.calibrate(X, cv=KFold(3))
    again = clone(search.best_estimator_).fit(X).calibrate(X, cv=KFold(3))
    np.testing.assert_array_equal(marked.prob_density_marks_, again.prob_density_marks_)
