"""A score from the decision values of held-out samples, by a stand-in for the model that it asks.

There is no model: the values come from a fit on kernel values that are shared. So the stand-in says what it knows, the
predictions for the very samples that the score was handed, as long as they are as they were. Asked for anything else,
such as other samples, support vectors or parameters, it says that a model is needed, and the search fits one.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import get_tags

from mercer.arrays import Floats
from mercer.data.labels import scores, votes, winner
from mercer.selection.scoring import Scorer, asks_predictions_only, scored


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

    def __getattr__(self, name: str) -> Any:
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


class _Sides(_HeldOut):
    __slots__ = ()

    @property
    def nu(self) -> float:
        return float(self._machine.nu)

    def decision_function(self, X: Any) -> Floats:
        return np.asarray(self._known(X)[:, 0])

    def predict(self, X: Any) -> Any:
        return np.where(self.decision_function(X) >= 0, 1, -1)
