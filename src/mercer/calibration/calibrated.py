"""What calibrated classifiers and regressors share: a machine trained on all samples, and what is learnt beside it."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from mercer.engine import PlacedSamples, placed
from mercer.fitting.pipeline.machine import ModelMethods, attach_named
from mercer.fitting.reports.notebook import ShowsCertificate
from mercer.held_out.machines import decision_values, weight_option
from mercer.tables.frame import part_of

HELD_OUT = "held-out"


class Calibrated(ModelMethods, ShowsCertificate, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """`estimator`, or one of the `_default` kind, with what `_learn` finds out about it from samples left out.

    `_check_parameters` refuses what `fit` cannot use.
    """

    _default: ClassVar[Any]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the machine on all samples, and learn what it does to others from folds of them.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples in training. Curves of probabilities count them too; intervals count samples.

        Returns
        -------
        self
        """
        self._check_parameters()
        model, frozen = clone(self._given()), isinstance(self.estimator, FrozenEstimator)
        if not frozen:
            model.fit(X, y, **weight_option(model, sample_weight))
        self._learn(model, X, y, sample_weight, HELD_OUT if frozen else self.cv)
        return self

    def calibrate_fitted(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn beside `estimator` itself, which is fitted; `calibrate` of a machine does this."""
        check_is_fitted(self.estimator)
        if hasattr(X, "columns") and not isinstance(placed(X), PlacedSamples):
            decision_values(self.estimator, part_of(X, np.arange(min(1, len(X)))))  # folds would not compare names
        self._learn(self.estimator, X, y, sample_weight, self.cv)
        return self

    def _given(self) -> Any:
        return self._default() if self.estimator is None else self.estimator

    def _inside(self) -> Any:
        return getattr(self, "estimator_", self._given())

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), self._given().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.pairwise = inner.input_tags.sparse, inner.input_tags.pairwise
        return tags


attach_named(Calibrated)
