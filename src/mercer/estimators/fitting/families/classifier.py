"""What classifiers share: labels and the weights of their classes, planes, and the margins of samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitting.mixins import ScoresAccuracy
from mercer.estimators.fitting.pipeline.machine import Machine
from mercer.estimators.fitting.pipeline.state import Labels, fitted
from mercer.estimators.fitting.reports.dual_margins import PlaneDuals
from mercer.problems.margins import Margins, SeveralMargins, divide
from mercer.samples.arrays import Data, Floats, Indices, freeze
from mercer.samples.checks import check_same_length
from mercer.samples.engine import like_input, on_host, placed
from mercer.samples.labels import (
    Classes,
    Pair,
    between,
    class_weights,
    names_of,
    planes,
    read_labels,
    trained_codes,
    winner,
)


class Classifier(ScoresAccuracy, Machine):
    """A classifier with a hyperplane for each output: of each class against the rest, unless it says otherwise."""

    _function_per_class = True

    def _read(self, y: ArrayLike | None) -> tuple[Indices | None, Any]:
        labels, codes = read_labels(y)
        return codes, Classes(labels, planes(len(labels), self._function_per_class), np.ones(len(labels)))

    def _weigh(self, target: Any, codes: Indices, weight: Floats) -> tuple[Floats, Any]:
        factor = class_weights(getattr(self, "class_weight", None), target.labels, codes, weight)
        return weight, replace(target, factor=factor)

    def _planes(self) -> list[Pair]:
        """The classes on the positive and on the negative side of each plane."""
        return planes(len(self.classes_), against_rest=True)

    def _plane_norms(self) -> Floats:
        """‖w‖ of each plane."""
        return np.atleast_1d(self.rkhs_norm_)

    def _duals(self, X: Data, codes: Indices) -> list[PlaneDuals] | None:
        """What the duals tell of each plane and of these samples; None for a machine that keeps none."""
        return None

    @like_input
    def signed_distance(self, X: Data) -> Floats:
        """f(x)/‖w‖: how far each sample is from the plane f = 0 in feature space, and on which side.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_planes) for several classes
            In the order of `decision_function_shape="ovo"`. Infinite or NaN where w = 0 and there is no plane.
        """
        distances = divide(self._decision(X), self._plane_norms())
        return distances[:, 0] if distances.shape[1] == 1 else distances

    def margins(self, X: Data, y: ArrayLike) -> Margins | SeveralMargins:
        """Functional and geometric margins, slacks, errors and distances of samples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples.
        y : array of shape (n_samples,)
            Labels that the machine knows.

        Returns
        -------
        Margins
            Which vectors are free, bounded or neither is told where X and y are the samples that the machine was fitted
            on. For several classes, a sequence of Margins, one per plane (``parts``). It has also ``labels``,
            ``errors``, which samples are not given their own class, ``functional_margins`` and ``geometric_margins``,
            of each sample the smallest over the planes that involve its class, and ``to_frame()``; ask a part for what
            belongs to one plane: ``rho``, ``b``, ``free``, ``bounded`` and ``signed_distances``.
        """
        check_is_fitted(self)
        X = placed(X)
        codes = trained_codes(self.classes_, on_host(y))
        check_same_length(X, codes)
        values, duals, labels = self._decision(X), self._duals(X, codes), self.classes_.tolist()
        norms = self._plane_norms()
        parts = []
        for k, pair in enumerate(self._planes()):
            rows, signs = between(pair, codes)
            norm, own = float(norms[k]), None if duals is None else duals[k]
            part = Margins(
                classes=names_of(pair, labels)[::-1],
                rows=rows,
                decision_values=freeze(values[rows, k].copy()),
                signs=freeze(signs),
                rkhs_norm=norm,
                b=float(self.intercept_[k]),
                alpha_sum=None if own is None else own.alpha_sum,
                inverse_rho_squared={"|w|²": norm**2} | ({} if own is None else own.inverse_rho_squared),
                b_interval=None if own is None else own.b_interval,
                standings=None if own is None or own.statuses is None else own.statuses[rows],
                function=self._DECISION_NAME or "f",
            )
            parts.append(part)
        if len(parts) == 1:
            return parts[0]
        return SeveralMargins(freeze(self.classes_[codes]), tuple(parts), np.asarray(self.predict(X) != y))


class OneAgainstRest(Classifier):
    """Decisions and margins from `_decision`, whose columns are the classes' f(x), or that of the second of two."""

    _FITTED = fitted(classes_=Labels(required=True))

    @like_input
    def decision_function(self, X: Data) -> Floats:
        """f(x) for two classes, positive for the second; for more, one column per class.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`.
        """
        values = self._decision(X)
        return np.asarray(values[:, 0]) if values.shape[1] == 1 else values

    @like_input
    def predict(self, X: Data) -> np.ndarray:
        """The class of each sample: the second of two where f(x) ≥ 0, of several the first with the largest f(x).

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`.
        """
        check_is_fitted(self)
        return np.asarray(self.classes_[winner(self._decision(X))])

    @property
    def rkhs_norm_(self) -> Any:
        """‖w‖ of each output, computed when it is asked for; a number where there is one."""
        check_is_fitted(self)
        expansion = getattr(self, "_expansion_", None)
        if expansion is None:
            norms = np.linalg.norm(np.atleast_2d(self.coef_), axis=1)  # it keeps w instead
        elif expansion.vectors is None:
            raise AttributeError("rkhs_norm_ needs the kernel between the vectors, which a precomputed matrix hides")
        else:
            norms = expansion.norms()
        return float(norms[0]) if len(norms) == 1 else freeze(norms)
