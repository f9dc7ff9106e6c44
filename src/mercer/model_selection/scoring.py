"""The score that a search chooses by: which one, what it can be at most, and its value from decision values alone.

Where fits share kernel values there is no model, only the decision values of held-out samples. A stand-in for the model
then says what it knows, the predictions for the very samples that the score was handed, as long as they are as they
were. Asked for anything else, such as other samples, support vectors or parameters, it says that a model is needed, and
the search fits one.
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


def scorer_of(estimator: Any, scoring: Any, labelled: bool) -> Scorer:
    """The function that `scoring` names, or the estimator's own score; `labelled` means that there is a y."""
    if isinstance(scoring, Mapping | list | tuple | set | frozenset):
        raise ValueError(
            f"scoring={scoring!r} is several scores, but a search chooses by one: give one of them, and measure "
            "best_estimator_ by the others"
        )
    if scoring is None and not hasattr(estimator, "score"):
        if not hasattr(_judge(estimator), "nu") and not (labelled and is_outlier_detector(_judge(estimator))):
            raise TypeError(
                f"tune needs scoring=..., since {type(_judge(estimator)).__name__} has no score of its own: give a "
                "function of the model, the samples and y"
            )
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


def scorer_of_queries(scoring: Any) -> Scorer:
    """The score of a ranking within queries: the machine's own, or a function that takes `qid`."""
    if scoring is None:
        return _within_queries
    if not callable(scoring) or type(scoring) is _OF_METRICS:
        raise ValueError(
            f"scoring={scoring!r} compares samples of different queries; leave it out for the share of pairs in the "
            "right order, or give a function of (model, X, y, qid=…)"
        )
    return scoring  # type: ignore[no-any-return]  # the user's


def _within_queries(model: Any, X: Any, y: Any, sample_weight: Any = None, qid: Any = None) -> float:
    while isinstance(model, Pipeline):  # whose own score hands no qid on
        X, model = model[:-1].transform(X), model.steps[-1][1]
    return float(model.score(X, y, sample_weight=sample_weight, qid=qid))


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
    own = {ClassifierMixin.score: "accuracy", ScoresAccuracy.score: "accuracy"}
    own |= {RegressorMixin.score: "r2", ScoresR2.score: "r2"}
    return own.get(_score_of(_judge(estimator)))


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
    return scorer in (*_OWN.values(), *SOFT, inside) or type(scorer) is _OF_METRICS


def scored(scorer: Scorer, model: Any, X: Any, y: Any, weight: Any, qid: Any = None) -> float:
    """The score of held-out samples, weighted if there are weights, and within queries if there are any."""
    options = {name: value for name, value in (("sample_weight", weight), ("qid", qid)) if value is not None}
    found = scorer(model, X, y, **options)
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
        return -abs(float(np.average(found == -1, weights=weight)) - float(prefix_and_machine(model)[1].nu))
    y = np.asarray(y)
    shares = [np.average(found[y == label] == label, weights=weight[y == label]) for label in np.unique(y)]
    return float(np.mean(shares))


def _accuracy(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    return float(np.average(np.asarray(model.predict(X)) == np.asarray(y), weights=sample_weight))


def _r2(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    return float(r2_score(y, model.predict(X), sample_weight=sample_weight))


def soft_accuracy(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """The accuracy of classes, but that a row counts tanh(its margin): next to nothing near the boundary.

    On which side such rows fall is chance, and so is the choice among good machines by that. The unit of margins is
    their median, so that the scale of f has no influence.
    """
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    f, mine = np.asarray(model.decision_function(X)), np.asarray(model.classes_) == np.asarray(y)[:, None]
    if f.ndim == 1:
        f = np.column_stack([-f, f])
    known = mine.any(axis=1) & (weight > 0)  # the others are of classes that training did not have
    own, other = (np.max(f[known], axis=1, initial=-np.inf, where=side[known]) for side in (mine, ~mine))
    unit = weighted_median(np.abs(own - other), weight[known]) if known.any() else 1.0
    right = 0.5 + 0.5 * np.tanh((own - other) / (unit or 1.0))
    return float(right @ weight[known] / weight.sum())


def balanced_soft_accuracy(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """The same, where all classes count alike."""
    place = np.unique(y, return_inverse=True)[1]
    weight = np.ones(len(place)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return soft_accuracy(model, X, y, weight / np.bincount(place, weights=weight)[place])


SOFT = (soft_accuracy, balanced_soft_accuracy)
# Quicker than scikit-learn's, which check their arguments.
_OWN: dict[str, Scorer] = {"accuracy": _accuracy, "r2": _r2}
# What make_scorer makes, and what scikit-learn's names stand for: a metric of y and the predictions.
_OF_METRICS = type(make_scorer(accuracy_score))


class NeedsModel(Exception):
    """A score asks for more than predictions for the samples that it was handed."""

    def __init__(self) -> None:
        super().__init__("scoring asks a model for more than what it predicts for the held-out samples")


def score_of_values(
    scorer: Scorer, estimator: Any, machine: Any, values: Floats, classes: Any, samples: Callable[[], Any], rest: Any
) -> float:
    """The score of held-out samples with these decision values, whose `rest` is their targets and weights.

    `machine` is the last step of the estimator. Raises NeedsModel, also where the score has caught that.
    """
    kind = _Classes if is_classifier(machine) else _Numbers if is_regressor(machine) else _Sides
    known = asks_predictions_only(scorer)
    model = kind(estimator, machine, values, classes, values if known else samples(), watched=not known)
    try:
        score = scored(scorer, model, model._samples, *rest)
    except Exception:
        if model._asked:
            raise NeedsModel from None
        raise
    if model._asked:
        raise NeedsModel
    return score


class _HeldOut:
    __slots__ = ("_asked", "_classes", "_content", "_estimator", "_machine", "_samples", "_values")

    def __init__(self, estimator: Any, machine: Any, values: Floats, classes: Any, samples: Any, watched: bool) -> None:
        self._estimator, self._machine, self._values, self._classes = estimator, machine, values, classes
        self._samples, self._asked = samples, False
        self._content = pickle.dumps(samples) if watched else None  # of a score that may change them in place

    def _known(self, X: Any) -> Floats:
        """The values, if X is the samples that they are of."""
        if X is not self._samples or (self._content is not None and pickle.dumps(X) != self._content):
            self._more()
        return self._values

    def _more(self, *args: Any, **given: Any) -> NoReturn:
        self._asked = True
        raise NeedsModel

    # This cannot be written out as attributes: a score is the user's function, and may ask for any attribute of any
    # estimator. An AttributeError would not do either: a score that catches it, as hasattr does, would go on without
    # the model and return another number. So every name is noted in `_asked`.
    def __getattr__(self, name: str) -> Any:
        """Note that a score asks for more than predictions, and raise NeedsModel."""
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("decision_function", "predict_proba", "predict_log_proba"):  # asked for only to see if it is there
            getattr(self._estimator, name)
            return self._more
        return self._more()

    @property  # type: ignore[misc]  # it may be written to elsewhere
    def __class__(self) -> Any:
        """What isinstance looks at."""
        return type(self) if self._content is None else self._more()

    def __sklearn_tags__(self) -> Any:
        return get_tags(self._estimator)

    def __sklearn_is_fitted__(self) -> bool:
        return True


class _Classes(_HeldOut):
    __slots__ = ()

    @property
    def classes_(self) -> Any:
        return self._classes

    @property
    def _plain(self) -> bool:
        """Whether there is a function per class, or only one."""
        return len(self._classes) == 2 or self._machine.multiclass != "ovo"

    def decision_function(self, X: Any) -> Floats:
        values = self._known(X)
        if len(self._classes) == 2:
            return np.asarray(values[:, 0])
        raw = self._plain or self._machine.decision_function_shape == "ovo"
        return values if raw else scores(values, len(self._classes))

    def predict(self, X: Any) -> Any:
        values, k = self._known(X), len(self._classes)
        if not self._plain:
            values = scores(values, k) if self._machine.break_ties else votes(values, k)[0]
        return self._classes[winner(values)]


class _Numbers(_HeldOut):
    __slots__ = ()

    def predict(self, X: Any) -> Floats:
        return np.asarray(self._known(X)[:, 0])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """`QuantileSVR.score`, which asks for predictions alone; any other needs a model."""
        if not isinstance(self._machine, QuantileSVR) or np.size(self._machine.quantiles) > 1:
            self._more()
        tau = float(np.ravel(self._machine.quantiles)[0])
        return float(d2_pinball_score(y, self.predict(X), sample_weight=sample_weight, alpha=tau))


class _Sides(_HeldOut):
    __slots__ = ()

    @property
    def nu(self) -> float:
        return float(self._machine.nu)

    def decision_function(self, X: Any) -> Floats:
        return np.asarray(self._known(X)[:, 0])

    def predict(self, X: Any) -> Any:
        return np.where(self.decision_function(X) >= 0, 1, -1)
