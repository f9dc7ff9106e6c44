"""Base classes of classifiers: labels, class weights, hyperplanes, and margins of samples."""

from __future__ import annotations

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
from mercer.samples.engine import like_input, on_host, to_engine
from mercer.samples.labels import (
    Classes,
    Pair,
    class_pairs,
    class_weights,
    pair_members,
    planes,
    read_labels,
    side_labels,
    trained_codes,
    winner,
)


class Classifier(ScoresAccuracy, Machine):
    """Base class of classifiers with a hyperplane for each output, by default of each class against the rest."""

    _function_per_class = True

    def _read(self, y: ArrayLike | None) -> tuple[Indices | None, Any]:
        """Return the class index of each label, and the classes with their planes."""
        labels, codes = read_labels(y)
        return codes, Classes(labels, planes(len(labels), self._function_per_class), np.ones(len(labels)))

    def _weigh(self, target: Any, codes: Indices, weight: Floats) -> tuple[Floats, Any]:
        """Return the sample weights times the class weights, and the classes with these factors."""
        factor = class_weights(getattr(self, "class_weight", None), target.labels, codes, weight)
        return weight, Classes(target.labels, target.pairs, factor)

    def _planes(self) -> list[Pair]:
        """Return the classes on the positive and on the negative side of each plane."""
        return planes(len(self.classes_), against_rest=True)

    def _plane_norms(self) -> Floats:
        """Return ‖w‖ of each plane."""
        return np.atleast_1d(self.rkhs_norm_)

    @property
    def _joint_planes(self) -> bool:
        """True if several classes were trained jointly: the plane of two classes is where their functions are equal."""
        return False

    def _plane_values(self, functions: Floats) -> Floats:
        """Return the value of each plane from those of the functions: f_a − f_b for classes trained jointly."""
        if not self._joint_planes:
            return functions
        first, second = np.array(class_pairs(len(self.classes_))).T
        return np.asarray(functions[..., first] - functions[..., second])

    def _duals(self, X: Data, codes: Indices) -> list[PlaneDuals] | None:
        """Return the dual quantities of each plane on these samples; None for a machine without dual variables."""
        return None

    @like_input
    def signed_distance(self, X: Data) -> Floats:
        """Return the signed distance f(x)/‖w‖ of each sample from the plane f = 0 in feature space.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_planes) for several classes
            Signed distances, in the order of `decision_function_shape="ovo"`. Classes trained jointly have a plane
            f_a = f_b for each pair, in that order. Infinite or NaN if w = 0, since then there is no plane.
        """
        distances = divide(self._plane_values(self._decision(X)), self._plane_norms())
        return distances[:, 0] if distances.shape[1] == 1 else distances

    def margins(self, X: Data, y: ArrayLike) -> Margins | SeveralMargins:
        """Compute functional and geometric margins, slacks, errors and distances of samples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Samples.
        y : array of shape (n_samples,)
            Class labels, among those of the training samples.

        Returns
        -------
        Margins
            Margins and related figures. If X and y are the training samples, they include which samples are free or
            bounded. For several classes the result is a sequence of Margins, one for each plane (``parts``), which also
            has ``labels``; ``errors``, the samples that are misclassified; ``functional_margins`` and
            ``geometric_margins``, for each sample the smallest over the planes that involve its class; and
            ``to_frame()``. Quantities of a single plane belong to its part: ``rho``, ``b``, ``free``, ``bounded`` and
            ``signed_distances``. For classes trained jointly, the part of classes a and b has f = f_a − f_b and no α.
        """
        check_is_fitted(self)
        X = to_engine(X)
        codes = trained_codes(self.classes_, on_host(y))
        check_same_length(X, codes)
        values, duals, labels = self._plane_values(self._decision(X)), self._duals(X, codes), self.classes_.tolist()
        norms, b = self._plane_norms(), self._plane_values(np.asarray(self.intercept_))
        parts = []
        for k, pair in enumerate(self._planes()):
            rows, signs = pair_members(pair, codes)
            norm, dual = float(norms[k]), None if duals is None else duals[k]
            part = Margins(
                classes=side_labels(pair, labels)[::-1],
                rows=rows,
                decision_values=freeze(values[rows, k].copy()),
                signs=freeze(signs),
                rkhs_norm=norm,
                b=float(b[k]),
                alpha_sum=None if dual is None else dual.alpha_sum,
                inverse_rho_squared={"|w|²": norm**2} | ({} if dual is None else dual.inverse_rho_squared),
                b_interval=None if dual is None else dual.b_interval,
                standings=None if dual is None or dual.statuses is None else dual.statuses[rows],
                function=self._DECISION_NAME or "f",
            )
            parts.append(part)
        if len(parts) == 1:
            return parts[0]
        return SeveralMargins(freeze(self.classes_[codes]), tuple(parts), np.asarray(self.predict(X) != y))


class OneAgainstRest(Classifier):
    """Base class of classifiers with a function f for each class against the rest, or a single one for two classes."""

    _FITTED = fitted(classes_=Labels(required=True))

    @like_input
    def decision_function(self, X: Data) -> Floats:
        """Return the decision values f(x) of samples.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`. For a precomputed kernel, the kernel values with the training samples.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_classes) for several classes
            Decision values; for two classes, positive for the second.
        """
        values = self._decision(X)
        return np.asarray(values[:, 0]) if values.shape[1] == 1 else values

    @like_input
    def predict(self, X: Data) -> np.ndarray:
        """Predict the class of each sample.

        With two classes, the second is predicted if f(x) ≥ 0; with more, the first one with the largest f(x).

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`. For a precomputed kernel, the kernel values with the training samples.

        Returns
        -------
        array of shape (n_samples,)
            Class labels.
        """
        check_is_fitted(self)
        return np.asarray(self.classes_[winner(self._decision(X))])

    @property
    def rkhs_norm_(self) -> Any:
        """Norm ‖w‖ of each output, computed on access; a float for a single output."""
        check_is_fitted(self)
        expansion = getattr(self, "_expansion_", None)
        if expansion is None:
            norms = np.linalg.norm(np.atleast_2d(self.coef_), axis=1)  # this machine stores w instead
        elif expansion.vectors is None:
            raise AttributeError(
                "rkhs_norm_ needs the kernel values between the vectors, which are not kept for a precomputed kernel"
            )
        else:
            norms = expansion.norms()
        return float(norms[0]) if len(norms) == 1 else freeze(norms)
