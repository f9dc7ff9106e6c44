"""The score that a search chooses by, and what it can be at most; `held_out` has it from decision values alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from inspect import getattr_static
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, check_scoring, get_scorer_names, make_scorer, r2_score
from sklearn.pipeline import Pipeline

from mercer.estimators import QuantileSVR
from mercer.selection.grids import machine_of
from mercer.tables.estimator import Tabular

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
    if isinstance(scoring, Mapping | list | tuple | set | frozenset):
        raise ValueError(
            f"scoring={scoring!r} is several scores, but a search chooses by one: give one of them, and measure "
            "best_estimator_ by the others"
        )
    if scoring is None and not hasattr(estimator, "score"):
        return inside
    scoring = _named(estimator, scoring)
    if isinstance(scoring, str) and scoring in _OWN:
        return _OWN[scoring]
    if isinstance(scoring, str) and scoring not in (known := get_scorer_names()):
        near = get_close_matches(scoring, known, n=3)
        told = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
        raise ValueError(f"scoring={scoring!r} is no score: {told}sklearn.metrics.get_scorer_names() has them all")
    made: Scorer = check_scoring(estimator, scoring)
    return made


def ends_of(estimator: Any, scoring: Any) -> tuple[float, float] | None:
    """The smallest and the largest value that a score can have; None where nobody knows."""
    scoring = _named(estimator, scoring)
    if scoring is None:
        share = _score_of(_judge(estimator)) in (None, QuantileSVR.score)  # `inside`, or what is explained of a loss
        return (-np.inf, 1.0) if share else None
    if not isinstance(scoring, str):
        return None
    if scoring in _SHARES:
        return 0.0, 1.0
    return (-np.inf, 1.0) if scoring in _AT_MOST_ONE else (-np.inf, 0.0) if scoring.startswith("neg_") else None


def counts_mistakes(estimator: Any, scoring: Any) -> bool:
    """Whether the score is the share of samples that are classified right."""
    return isinstance(name := _named(estimator, scoring), str) and name == "accuracy"


def _named(estimator: Any, scoring: Any) -> Any:
    """The score by its name where the estimator's own one is scikit-learn's accuracy or R²."""
    if scoring is not None:
        return scoring
    return {ClassifierMixin.score: "accuracy", RegressorMixin.score: "r2"}.get(_score_of(_judge(estimator)))


def _judge(estimator: Any) -> Any:
    """The step whose score it is: a Pipeline and a Tabular ask their machine; what is derived from them may not."""
    while type(estimator) in (Pipeline, Tabular):
        estimator = estimator.steps[-1][1] if type(estimator) is Pipeline else estimator.estimator
    return estimator


def _score_of(estimator: Any) -> Any:
    """The method as its class has it; None where there is none."""
    return getattr_static(type(estimator), "score", None)


def asks_predictions_only(scorer: Scorer) -> bool:
    """Whether a score is known to look at nothing of a model but what it says of the held-out samples."""
    return scorer in (*_OWN.values(), inside) or type(scorer) is _OF_METRICS


def scored(scorer: Scorer, model: Any, X: Any, y: Any, weight: Any) -> float:
    """The score of held-out samples, weighted if there are weights."""
    found = scorer(model, X, y) if weight is None else scorer(model, X, y, sample_weight=weight)
    if isinstance(found, Mapping):
        raise TypeError(f"scoring gave {found!r}, but a search chooses by one number: return that one")
    return float(found)


def inside(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """How well a novelty detector keeps its promise: minus the distance of the share outside from ν.

    Without labels there is nothing else to compare with. With labels ±1 the balanced accuracy is used instead.
    """
    found = np.asarray(model.predict(X))
    weight = np.ones(len(found)) if sample_weight is None else sample_weight
    if y is None:
        return -abs(float(np.average(found == -1, weights=weight)) - float(machine_of(model)[1].nu))
    y = np.asarray(y)
    shares = [np.average(found[y == label] == label, weights=weight[y == label]) for label in np.unique(y)]
    return float(np.mean(shares))


def _accuracy(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    return float(np.average(np.asarray(model.predict(X)) == np.asarray(y), weights=sample_weight))


def _r2(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    return float(r2_score(y, model.predict(X), sample_weight=sample_weight))


# Quicker than scikit-learn's, which check their arguments.
_OWN: dict[str, Scorer] = {"accuracy": _accuracy, "r2": _r2}
# What make_scorer makes, and what scikit-learn's names stand for: a metric of y and the predictions.
_OF_METRICS = type(make_scorer(accuracy_score))
