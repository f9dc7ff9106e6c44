"""Scorers of a search: their choice, their range, and their values from decision values alone.

Fits that share kernel values make no model, only the decision values of held-out samples. A scorer is then given a
stand-in for the model, which returns the predictions for exactly the samples that the scorer received. If the scorer
needs anything else, such as other samples, support vectors or parameters, the stand-in raises `NeedsModel`, and the
search fits a model.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from inspect import getattr_static
from typing import Any, NoReturn

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier, is_outlier_detector, is_regressor
from sklearn.metrics import accuracy_score, check_scoring, d2_pinball_score, get_scorer_names, make_scorer, r2_score
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from mercer.estimators import QuantileSVR
from mercer.estimators.fitting.mixins import ScoresAccuracy, ScoresR2
from mercer.model_selection.grids import prefix_and_machine
from mercer.samples.arrays import Floats, weighted_median
from mercer.samples.labels import scores, votes, winner
from mercer.tables.estimator import Tabular

# Scores of scikit-learn with values from 0 to 1, and those of at most 1. Names that begin with neg_ are at most 0.
_ZERO_TO_ONE = (
    *("accuracy", "roc_auc", "roc_auc_ovr", "roc_auc_ovo", "roc_auc_ovr_weighted", "roc_auc_ovo_weighted"),
    *("balanced_accuracy", "average_precision"),
    *(f"{name}{kind}" for name in ("f1", "precision", "recall", "jaccard") for kind in ("", "_macro", "_micro")),
    *(f"{name}_weighted" for name in ("f1", "precision", "recall", "jaccard")),
)
_AT_MOST_ONE = ("r2", "explained_variance", "matthews_corrcoef", "d2_absolute_error_score")

# A function of a model, held-out samples, their targets and perhaps weights; larger values are better.
Scorer = Callable[..., float]


def scorer_of(estimator: Any, scoring: Any, labelled: bool) -> Scorer:
    """Return the scorer that `scoring` names, or the estimator's own score; `labelled` says whether there is a y."""
    if isinstance(scoring, Mapping | list | tuple | set | frozenset):
        raise ValueError(
            f"scoring={scoring!r} has several scores, but a search needs one: pass one of them, and evaluate "
            "best_estimator_ by the others"
        )
    if scoring is None and not hasattr(estimator, "score"):
        step = _step_with_score(estimator)
        if not hasattr(step, "nu") and not (labelled and is_outlier_detector(step)):
            raise TypeError(
                f"tune needs scoring=..., since {type(step).__name__} has no score method: pass a "
                "function of the model, the samples and y"
            )
        return novelty_score
    scoring = _scoring_name(estimator, scoring)
    if isinstance(scoring, str) and scoring in _FAST_SCORERS:
        return _FAST_SCORERS[scoring]
    if isinstance(scoring, str) and scoring not in (names := get_scorer_names()):
        similar_names = get_close_matches(scoring, names, n=3)
        hint = f"did you mean {' or '.join(map(repr, similar_names))}? " if similar_names else ""
        raise ValueError(f"scoring={scoring!r} is unknown: {hint}sklearn.metrics.get_scorer_names() lists all names")
    scorer: Scorer = check_scoring(estimator, scoring)
    return scorer


def scorer_of_queries(scoring: Any) -> Scorer:
    """Return the scorer of a ranking within queries: the machine's own, or a function that takes `qid`."""
    if scoring is None:
        return _score_within_queries
    if not callable(scoring) or type(scoring) is _METRIC_SCORER:
        raise ValueError(
            f"scoring={scoring!r} compares samples of different queries; leave it out for the share of pairs in the "
            "right order, or pass a function of (model, X, y, qid=…)"
        )
    return scoring  # type: ignore[no-any-return]  # the user's


def _score_within_queries(model: Any, X: Any, y: Any, sample_weight: Any = None, qid: Any = None) -> float:
    """Compute the score of the ranking in a Pipeline, or of the model itself, within each query."""
    while isinstance(model, Pipeline):  # the score method of a Pipeline does not pass qid on
        X, model = model[:-1].transform(X), model.steps[-1][1]
    return float(model.score(X, y, sample_weight=sample_weight, qid=qid))


def score_range(estimator: Any, scoring: Any) -> tuple[float, float] | None:
    """Return the smallest and the largest possible value of a score, or None if they are unknown."""
    scoring = _scoring_name(estimator, scoring)
    if scoring is None:
        # A novelty detector has no `score` and is scored by `novelty_score`. `QuantileSVR.score` is 1 minus a ratio of
        # two pinball losses. Both scores are at most 1.
        is_at_most_one = _score_method(_step_with_score(estimator)) in (None, QuantileSVR.score)
        return (-np.inf, 1.0) if is_at_most_one else None
    if not isinstance(scoring, str):
        return None
    if scoring in _ZERO_TO_ONE:
        return 0.0, 1.0
    return (-np.inf, 1.0) if scoring in _AT_MOST_ONE else (-np.inf, 0.0) if scoring.startswith("neg_") else None


def is_accuracy(estimator: Any, scoring: Any) -> bool:
    """Return whether the score is the accuracy."""
    return isinstance(name := _scoring_name(estimator, scoring), str) and name == "accuracy"


def _scoring_name(estimator: Any, scoring: Any) -> Any:
    """Return `scoring` or, if it is None, "accuracy" or "r2" if that is the estimator's own score, else None."""
    if scoring is not None:
        return scoring
    names = {ClassifierMixin.score: "accuracy", ScoresAccuracy.score: "accuracy"}
    names |= {RegressorMixin.score: "r2", ScoresR2.score: "r2"}
    return names.get(_score_method(_step_with_score(estimator)))


def _step_with_score(estimator: Any) -> Any:
    """Return the step whose `score` is used: the machine of a Pipeline or Tabular, but not of their subclasses."""
    while type(estimator) in (Pipeline, Tabular):
        estimator = estimator.steps[-1][1] if type(estimator) is Pipeline else estimator.estimator
    return estimator


def _score_method(estimator: Any) -> Any:
    """Return the `score` method as its class defines it, or None."""
    return getattr_static(type(estimator), "score", None)


def needs_predictions_only(scorer: Scorer) -> bool:
    """Return whether a scorer is known to use nothing but a model's predictions for the held-out samples."""
    return scorer in (*_FAST_SCORERS.values(), *SOFT, novelty_score) or type(scorer) is _METRIC_SCORER


def compute_score(scorer: Scorer, model: Any, X: Any, y: Any, weight: Any, qid: Any = None) -> float:
    """Compute the score of held-out samples, with their weights and queries if there are any."""
    options = {name: value for name, value in (("sample_weight", weight), ("qid", qid)) if value is not None}
    score = scorer(model, X, y, **options)
    if isinstance(score, Mapping):
        raise TypeError(f"scoring returned {score!r}, but a search needs one number")
    return float(score)


def novelty_score(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Compute the score of a novelty detector: with labels ±1 the balanced accuracy, else −|share of outliers − ν|."""
    predictions = np.asarray(model.predict(X))
    weight = np.ones(len(predictions)) if sample_weight is None else sample_weight
    if y is None:
        return -abs(float(np.average(predictions == -1, weights=weight)) - float(prefix_and_machine(model)[1].nu))
    y = np.asarray(y)
    shares = [np.average(predictions[y == label] == label, weights=weight[y == label]) for label in np.unique(y)]
    return float(np.mean(shares))


def _accuracy(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    return float(np.average(np.asarray(model.predict(X)) == np.asarray(y), weights=sample_weight))


def _r2(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    return float(r2_score(y, model.predict(X), sample_weight=sample_weight))


def soft_accuracy(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Compute an accuracy in which a row counts ½ + ½ tanh(margin): about half if it is near the boundary.

    In the ordinary accuracy, rows near the boundary fall on either side by chance, and chance would decide between good
    machines. Margins are divided by the median of their sizes, so that the scale of f has no influence.
    """
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    f, is_class = np.asarray(model.decision_function(X)), np.asarray(model.classes_) == np.asarray(y)[:, None]
    if f.ndim == 1:
        f = np.column_stack([-f, f])
    is_counted = is_class.any(axis=1) & (weight > 0)  # rows of a class without training samples get no credit
    f_true, f_other = (
        np.max(f[is_counted], axis=1, initial=-np.inf, where=m[is_counted]) for m in (is_class, ~is_class)
    )
    unit = weighted_median(np.abs(f_true - f_other), weight[is_counted]) if is_counted.any() else 1.0
    credit = 0.5 + 0.5 * np.tanh((f_true - f_other) / (unit or 1.0))
    return float(credit @ weight[is_counted] / weight.sum())


def balanced_soft_accuracy(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Compute `soft_accuracy` with weights that give all classes the same total."""
    codes = np.unique(y, return_inverse=True)[1]
    weight = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return soft_accuracy(model, X, y, weight / np.bincount(codes, weights=weight)[codes])


SOFT = (soft_accuracy, balanced_soft_accuracy)
# Faster than scikit-learn's scorers, which check their arguments.
_FAST_SCORERS: dict[str, Scorer] = {"accuracy": _accuracy, "r2": _r2}
# The class that make_scorer and scikit-learn's names return: a metric of y and the predictions.
_METRIC_SCORER = type(make_scorer(accuracy_score))


class NeedsModel(Exception):
    """A scorer needs more than predictions for the samples that it was given."""

    def __init__(self) -> None:
        super().__init__("scoring needs more than the predictions for the held-out samples")


def score_of_values(
    scorer: Scorer,
    estimator: Any,
    machine: Any,
    values: Floats,
    classes: Any,
    samples: Callable[[], Any],
    targets_and_weights: tuple[Any, Any],
) -> float:
    """Compute the score of held-out samples from their decision values.

    `machine` is the last step of the estimator, and `samples` returns the held-out samples. Raises NeedsModel if the
    scorer asks for more than predictions, even if it catches that exception.
    """
    values_class = (
        _ClassifierValues if is_classifier(machine) else _RegressorValues if is_regressor(machine) else _NoveltyValues
    )
    needs_no_watch = needs_predictions_only(scorer)
    model = values_class(
        estimator, machine, values, classes, values if needs_no_watch else samples(), watched=not needs_no_watch
    )
    try:
        score = compute_score(scorer, model, model._samples, *targets_and_weights)
    except Exception:
        if model._needs_model:
            raise NeedsModel from None
        raise
    if model._needs_model:
        raise NeedsModel
    return score


class _HeldOutValues:
    """Stand-in for a fitted model that knows only the decision values of the held-out samples.

    With `watched`, the scorer is a user's, and any change of the samples or other use of the model raises NeedsModel.
    """

    __slots__ = ("_classes", "_content", "_estimator", "_machine", "_needs_model", "_samples", "_values")

    def __init__(self, estimator: Any, machine: Any, values: Floats, classes: Any, samples: Any, watched: bool) -> None:
        self._estimator, self._machine, self._values, self._classes = estimator, machine, values, classes
        self._samples, self._needs_model = samples, False
        self._content = pickle.dumps(samples) if watched else None  # a user's scorer may change samples in place

    def _values_at(self, X: Any) -> Floats:
        """Return the decision values if X is the held-out samples, unchanged; else raise NeedsModel."""
        if X is not self._samples or (self._content is not None and pickle.dumps(X) != self._content):
            self._refuse()
        return self._values

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Record that the scorer needs a model, and raise NeedsModel."""
        self._needs_model = True
        raise NeedsModel

    # Attributes cannot be listed here: a user's scorer may use any attribute of any estimator. An AttributeError would
    # not do either: a scorer that catches it, as hasattr does, would go on without the model and return another number.
    # So every access is recorded in `_needs_model`.
    def __getattr__(self, name: str) -> Any:
        """Record that a scorer needs more than predictions, and raise NeedsModel."""
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("decision_function", "predict_proba", "predict_log_proba"):
            getattr(self._estimator, name)  # AttributeError if the estimator has no such method
            return self._refuse
        return self._refuse()

    @property  # type: ignore[misc]  # object.__class__ is writable
    def __class__(self) -> Any:
        """Class that isinstance sees; a user's scorer that checks it needs a model."""
        return type(self) if self._content is None else self._refuse()

    def __sklearn_tags__(self) -> Any:
        return get_tags(self._estimator)

    def __sklearn_is_fitted__(self) -> bool:
        return True


class _ClassifierValues(_HeldOutValues):
    __slots__ = ()

    @property
    def classes_(self) -> Any:
        return self._classes

    @property
    def _has_function_per_class(self) -> bool:
        """True if the decision functions belong to classes: one for two classes, else one per class, none per pair."""
        return len(self._classes) == 2 or self._machine.multiclass != "ovo"

    def decision_function(self, X: Any) -> Floats:
        """Return the held-out decision values in the form that the machine's own method returns."""
        values = self._values_at(X)
        if len(self._classes) == 2:
            return np.asarray(values[:, 0])
        is_one_per_output = self._has_function_per_class or self._machine.decision_function_shape == "ovo"
        return values if is_one_per_output else scores(values, len(self._classes))

    def predict(self, X: Any) -> Any:
        """Predict the classes of the held-out samples."""
        values, k = self._values_at(X), len(self._classes)
        if not self._has_function_per_class:
            values = scores(values, k) if self._machine.break_ties else votes(values, k)[0]
        return self._classes[winner(values)]


class _RegressorValues(_HeldOutValues):
    __slots__ = ()

    def predict(self, X: Any) -> Floats:
        return np.asarray(self._values_at(X)[:, 0])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute `QuantileSVR.score`, which needs predictions only; any other score needs a model."""
        if not isinstance(self._machine, QuantileSVR) or np.size(self._machine.quantiles) > 1:
            self._refuse()
        tau = float(np.ravel(self._machine.quantiles)[0])
        return float(d2_pinball_score(y, self.predict(X), sample_weight=sample_weight, alpha=tau))


class _NoveltyValues(_HeldOutValues):
    __slots__ = ()

    @property
    def nu(self) -> float:
        return float(self._machine.nu)

    def decision_function(self, X: Any) -> Floats:
        return np.asarray(self._values_at(X)[:, 0])

    def predict(self, X: Any) -> Any:
        return np.where(self.decision_function(X) >= 0, 1, -1)
