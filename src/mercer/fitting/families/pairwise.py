"""What classifiers made of two-class problems share: labels, one against one or one against the rest, votes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer.arrays import Floats, Indices, freeze, n_samples, row_blocks, take
from mercer.data.labels import Pair, scores, to_dual_coef, winner, wins
from mercer.data.table import Table
from mercer.fitting.families.classifier import Classifier
from mercer.fitting.families.dual_machine import DualMachine
from mercer.fitting.families.stream_checks import takes_samples
from mercer.fitting.pipeline.attached import ClassifierMethods
from mercer.fitting.pipeline.fit import Fit
from mercer.fitting.pipeline.kinds import Array, Counts, Flag, Labels, fitted, has_function_per_class
from mercer.fitting.pipeline.task import Solutions
from mercer.fitting.reports.coefficients import (
    Box,
    allow_for_copies,
    conclude_support,
    merged_table,
    own_table,
    table_expansion,
)
from mercer.fitting.reports.dual_margins import PlaneDuals, dual_planes, nearest_points, plane_duals, plane_norms
from mercer.margins import NearestPoints
from mercer.parameters import one_of


class PairwiseClassifier(ClassifierMethods, Classifier, DualMachine):
    """A classifier of several two-class machines; one adds its parameters and its problems."""

    FITTED = fitted(
        _per_class_=Flag(),
        classes_=Labels(against_rest=None, required=True),
        class_weight_=Array("classes", required=True),
        n_support_=Counts("classes", "support", required=True, unless="_compression_"),
        dual_coef_=Array("planes per vector", "support", required=True, unless="_compression_"),
    )

    _: KW_ONLY
    decision_function_shape: str = "ovr"
    break_ties: bool = False

    @property
    def _function_per_class(self) -> bool:  # type: ignore[override]  # here a parameter says so
        return has_function_per_class(self)

    def _check_parameters(self) -> None:
        one_of("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))

    def _conclude_pairs(self, fit: Fit, solved: Solutions, box: Box, b: Floats, scales: Floats | None = None) -> None:
        """The fitted attributes; `scales` are factors on the solutions' coefficients, one for each task."""
        table = merged_table(fit.merged, solved)
        own = own_table(table, fit, box, lambda: solved.largest_ridge)
        if scales is not None:
            table, own = (part.with_data(part.data * scales[part.indices]) for part in (table, own))
        allow_for_copies(self, fit, solved, (table, own), scales)
        self._conclude_tables(fit, table, own, b)
        self._conclude_duals(fit, solved, scales)

    def _conclude_tables(self, fit: Fit, table: Table, own: Table, b: Floats) -> None:
        """The fitted attributes, from coefficients of the merged samples and of the caller's rows for every output."""
        merged, target = fit.merged, fit.target
        used = np.flatnonzero(table.lengths)
        used = used[np.argsort(merged.y[used], kind="stable")]
        self._per_class_ = self._function_per_class
        self.classes_ = freeze(target.labels)
        self.class_weight_ = freeze(target.factor)
        self.intercept_ = freeze(b)
        self._expansion_ = table_expansion(fit, table, used, b)

        # From here on in the caller's rows: classes come one after another.
        codes = merged.y[merged.member]
        order = np.argsort(codes, kind="stable")
        order = order[own.lengths[order] > 0]
        conclude_support(self, fit, order)
        self.n_support_ = freeze(np.bincount(codes[order], minlength=len(target.labels)).astype(np.int32))
        self.dual_coef_ = freeze(to_dual_coef(own.take(order), codes[order], target.pairs, len(target.labels)))

    @available_if(takes_samples)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add samples to those known and train on all of them, from the last solution on.

        The result is that of `fit` on all samples in the order in which they came, exact to rounding where there are at
        most 2,000 free support vectors and to the tolerance elsewhere, and `support_` counts in that order. The machine
        must therefore keep a copy of all samples; `fit` keeps one only with warm_start=True, and without it the first
        call of partial_fit starts anew, with a warning.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples.
        y : array of shape (n_samples,)
            At least two classes must have come by the end of the first call; others may come later.
        classes : array, optional
            Labels that are expected; another one in y is refused. `classes_` are those that have come so far.
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 equals the sample given twice.

        Returns
        -------
        self
        """
        if classes is not None:
            unexpected = np.setdiff1d(np.asarray(y).ravel(), np.asarray(classes))
            if len(unexpected):
                raise ValueError(f"y holds {unexpected.tolist()}, which are not among classes={list(classes)}")
        super().partial_fit(X, y, sample_weight)
        return self

    # --- prediction ------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """f(x) for two classes; for more, a score per class ("ovr") or a column per pair ("ovo").

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`.
        """
        check_is_fitted(self)
        if len(self.classes_) == 2 or self._function_per_class or self.decision_function_shape == "ovo":
            values = self._decision(X)
            return np.asarray(values[:, 0]) if len(self.classes_) == 2 else values
        return self._by_class(X, scores)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each sample; for several classes the one with most votes, the first of them in a tie, or one
        against the rest the one with the largest f.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`.
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        if len(self.classes_) > 2 and not self._function_per_class:
            values = self._by_class(X, scores if self.break_ties else wins)
        else:
            values = self._decision(X)
        return np.asarray(self.classes_[winner(values)])

    def _by_class(self, X: Any, summed: Callable[[Floats, int], Floats]) -> Floats:
        """One number per class from the values of its pairs, which are not kept: there may be half a million."""
        X, k = self._to_decide(X), len(self.classes_)
        blocks = row_blocks(n_samples(X), 4 * k * (k - 1))
        parts = [summed(self._values(take(X, np.arange(some.start, some.stop))), k) for some in blocks]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    # --- margins ---------------------------------------------------------------------------------------------------

    def _planes(self) -> list[Pair]:
        return dual_planes(self)

    def _plane_norms(self) -> Floats:
        return plane_norms(self)

    def _duals(self, X: Any, codes: Indices) -> list[PlaneDuals] | None:
        return plane_duals(self, X, codes)

    def nearest_points(self) -> NearestPoints | tuple[NearestPoints, ...]:
        """The nearest points of the classes' hulls, whose perpendicular bisector the plane is parallel to.

        For a hard margin, or where all slacks are zero, these are the convex hulls; otherwise hulls reduced by the
        bounds on α, in which no sample counts for more than 2C_i/Σα. With 2-norm slack they are the hulls in a space in
        which every sample has a coordinate √(1/C_i) of its own, where it has a hard margin.

        Returns
        -------
        NearestPoints, or a tuple of them, one per pair, for several classes
        """
        return nearest_points(self)
