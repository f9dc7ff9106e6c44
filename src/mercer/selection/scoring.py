"""Scores of held-out samples from their decision values, and what a score can be at most."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin, is_classifier, is_regressor
from sklearn.metrics import check_scoring, get_scorer_names, r2_score

from mercer.arrays import Floats
from mercer.data.labels import scores, votes, winner

# Scores of scikit-learn from 0 to 1, and others that are at most 1. Those that begin with neg_ are at most 0.
_SHARES = (
    *("accuracy", "roc_auc", "roc_auc_ovr", "roc_auc_ovo", "roc_auc_ovr_weighted", "roc_auc_ovo_weighted"),
    *("balanced_accuracy", "average_precision"),
    *(f"{name}{kind}" for name in ("f1", "precision", "recall", "jaccard") for kind in ("", "_macro", "_micro")),
    *(f"{name}_weighted" for name in ("f1", "precision", "recall", "jaccard")),
)
_AT_MOST_ONE = ("r2", "explained_variance", "matthews_corrcoef", "d2_absolute_error_score")

# From a model, held-out samples, their targets and perhaps weights to a number; the larger the better.
Scorer = Callable[..., float]


def scorer_of(estimator: Any, scoring: Any) -> Scorer:
    """The function that `scoring` names, or the estimator's own score."""
    if scoring == "accuracy" or (scoring is None and is_classifier(estimator)):
        return _accuracy
    if scoring == "r2" or (scoring is None and is_regressor(estimator)):
        return _r2
    if scoring is None and not hasattr(estimator, "score"):
        return inside
    if isinstance(scoring, str) and scoring not in (known := get_scorer_names()):
        near = get_close_matches(scoring, known, n=3)
        told = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
        raise ValueError(f"scoring={scoring!r} is no score: {told}sklearn.metrics.get_scorer_names() has them all")
    made: Scorer = check_scoring(estimator, scoring)
    return made


def ends_of(estimator: Any, scoring: Any) -> tuple[float, float] | None:
    """The smallest and the largest value that a score can have; None where nobody knows."""
    if scoring is None:
        if is_classifier(estimator):
            return 0.0, 1.0
        return (-np.inf, 1.0) if is_regressor(estimator) or not hasattr(estimator, "score") else None
    if not isinstance(scoring, str):
        return None
    if scoring in _SHARES:
        return 0.0, 1.0
    return (-np.inf, 1.0) if scoring in _AT_MOST_ONE else (-np.inf, 0.0) if scoring.startswith("neg_") else None


def counts_mistakes(estimator: Any, scoring: Any) -> bool:
    """Whether the score is the share of samples that are classified right."""
    return scoring == "accuracy" or (scoring is None and bool(is_classifier(estimator)))


def scored(scorer: Scorer, model: Any, X: Any, y: Any, weight: Any) -> float:
    """The score of held-out samples, weighted if there are weights."""
    return float(scorer(model, X, y) if weight is None else scorer(model, X, y, sample_weight=weight))


def inside(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """How well a novelty detector keeps its promise: minus the distance of the share outside from ν.

    Without labels there is nothing else to compare with. With labels ±1 the balanced accuracy is used instead.
    """
    found = np.asarray(model.predict(X))
    weight = np.ones(len(found)) if sample_weight is None else sample_weight
    if y is None:
        return -abs(float(np.average(found == -1, weights=weight)) - float(model.nu))
    y = np.asarray(y)
    shares = [np.average(found[y == label] == label, weights=weight[y == label]) for label in np.unique(y)]
    return float(np.mean(shares))


def _accuracy(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    return float(np.average(np.asarray(model.predict(X)) == np.asarray(y), weights=sample_weight))


def _r2(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    return float(r2_score(y, model.predict(X), sample_weight=sample_weight))


class HeldOut(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A fitted fold as a model of its own held-out samples: whatever it is asked about them is known already."""

    def __init__(self, machine: Any = None, values: Floats | None = None, classes: Any = None) -> None:
        self.machine, self.values, self.classes = machine, values, classes

    @classmethod
    def of(cls, machine: Any, values: Floats, classes: Any) -> HeldOut:
        """The kind that scikit-learn's scorers expect."""
        if is_classifier(machine):
            return _HeldOutClasses(machine, values, classes)
        return (_HeldOutNumbers if is_regressor(machine) else _HeldOutSides)(machine, values, classes)

    def __sklearn_is_fitted__(self) -> bool:
        return True


class _HeldOutClasses(ClassifierMixin, HeldOut):  # type: ignore[misc]  # scikit-learn is untyped
    @property
    def classes_(self) -> Any:
        return self.classes

    @property
    def _plain(self) -> bool:
        """Whether there is a function per class, or only one."""
        return len(self.classes) == 2 or self.machine.multiclass != "ovo"

    def decision_function(self, X: Any) -> Floats:
        assert self.values is not None
        if len(self.classes) == 2:
            return np.asarray(self.values[:, 0])
        raw = self._plain or self.machine.decision_function_shape == "ovo"
        return self.values if raw else scores(self.values, len(self.classes))

    def predict(self, X: Any) -> Any:
        assert self.values is not None
        values, k = self.values, len(self.classes)
        if not self._plain:
            values = scores(values, k) if self.machine.break_ties else votes(values, k)[0]
        return self.classes[winner(values)]


class _HeldOutNumbers(RegressorMixin, HeldOut):  # type: ignore[misc]  # scikit-learn is untyped
    def predict(self, X: Any) -> Floats:
        assert self.values is not None
        return np.asarray(self.values[:, 0])


class _HeldOutSides(OutlierMixin, HeldOut):  # type: ignore[misc]  # scikit-learn is untyped
    @property
    def nu(self) -> float:
        return float(self.machine.nu)

    def decision_function(self, X: Any) -> Floats:
        assert self.values is not None
        return np.asarray(self.values[:, 0])

    def predict(self, X: Any) -> Any:
        return np.where(self.decision_function(X) >= 0, 1, -1)
