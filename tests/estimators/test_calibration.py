"""Probabilities and thresholds come from scikit-learn's wrappers, and agree with what the machine itself says."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import FixedThresholdClassifier, StratifiedKFold, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as PeerSVC

from mercer import SVC

X, Y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
IRIS, SPECIES = load_iris(return_X_y=True)
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize(("data", "labels"), [(X, Y), (IRIS, SPECIES)], ids=["two classes", "three classes"])
def test_probabilities_are_those_of_scikit_learns_machine(data, labels, method, ensemble, weighted):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(labels)) if weighted else None
    mine, other = (
        CalibratedClassifierCV(machine(gamma=0.05, tol=1e-8), method=method, cv=FOLDS, ensemble=ensemble)
        .fit(data, labels, sample_weight=weight)
        .predict_proba(data)
        for machine in (SVC, PeerSVC)
    )
    np.testing.assert_allclose(mine.sum(axis=1), 1.0)
    # Isotonic steps may move by a sample where two decision values are closer than the tolerance.
    close = np.abs(mine - other).max(axis=1) <= 5e-3
    assert close.mean() >= (1.0 if method == "sigmoid" else 0.98)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_two_classes_are_ranked_as_the_machine_ranks_them(method):
    machine = SVC(tol=1e-6).fit(X, Y)
    calibrated = CalibratedClassifierCV(machine, method=method, ensemble=False, cv=FOLDS).fit(X, Y)
    order = np.argsort(machine.decision_function(X), kind="stable")
    assert (np.diff(calibrated.predict_proba(X)[order, 1]) >= -1e-12).all()
    # The wrapper's predict is its probabilities' own; the machine's threshold f = 0 is near ½, not at it.
    assert (calibrated.predict(X) == machine.predict(X)).mean() > 0.98


def test_three_classes_are_ranked_as_the_machine_ranks_them():
    machine = SVC(tol=1e-6).fit(IRIS, SPECIES)
    calibrated = CalibratedClassifierCV(machine, ensemble=False, cv=FOLDS).fit(IRIS, SPECIES)
    probability, score = calibrated.predict_proba(IRIS), machine.decision_function(IRIS)
    for k in range(3):
        assert spearmanr(probability[:, k], score[:, k]).statistic > 0.9
    assert (calibrated.predict(IRIS) == machine.predict(IRIS)).mean() > 0.95
    assert log_loss(SPECIES, probability) < 0.3


def test_an_integer_weight_is_a_repetition():
    weight = np.random.default_rng(0).integers(1, 3, len(Y))
    frozen = FrozenEstimator(SVC(tol=1e-8).fit(X, Y, weight))
    rows = np.repeat(np.arange(len(Y)), weight)
    weighted = CalibratedClassifierCV(frozen).fit(X, Y, sample_weight=weight)
    repeated = CalibratedClassifierCV(FrozenEstimator(SVC(tol=1e-8).fit(X[rows], Y[rows]))).fit(X[rows], Y[rows])
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=0.02)


def test_a_threshold_on_the_decision_function():
    machine = SVC().fit(X, Y)
    f = machine.decision_function(X)
    moved = FixedThresholdClassifier(FrozenEstimator(machine), threshold=0.7).fit(X, Y)
    np.testing.assert_array_equal(moved.predict(X), np.where(f >= 0.7, 1, 0))
    cloned = FixedThresholdClassifier(SVC(), threshold=-0.5, response_method="decision_function").fit(X, Y)
    np.testing.assert_array_equal(cloned.predict(X), np.where(f >= -0.5, 1, 0))


def test_a_threshold_on_calibrated_probabilities():
    calibrated = CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC()), cv=FOLDS)
    careful = FixedThresholdClassifier(calibrated, threshold=0.9, response_method="predict_proba").fit(X, Y)
    probability = clone(calibrated).fit(X, Y).predict_proba(X)[:, 1]
    np.testing.assert_array_equal(careful.predict(X), np.where(probability >= 0.9, 1, 0))


def test_a_tuned_threshold():
    labels = np.where(Y == 1, "benign", "malignant")
    tuned = TunedThresholdClassifierCV(SVC(), scoring="balanced_accuracy", cv=FOLDS).fit(X, labels)
    assert set(tuned.predict(X)) == {"benign", "malignant"}
    assert tuned.best_score_ > 0.95


def test_no_probability_is_offered_by_the_machine_itself():
    machine = SVC().fit(X, Y)
    assert not hasattr(machine, "predict_proba")
    with pytest.raises(ValueError, match=r"probability=True is not available.*CalibratedClassifierCV"):
        SVC(probability=True).fit(X, Y)
