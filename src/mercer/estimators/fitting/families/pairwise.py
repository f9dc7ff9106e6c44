"""Base class of classifiers made of two-class problems, one against one or one against the rest, with votes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from mercer.certificates.hulls import Centring
from mercer.estimators.fitting.families.classifier import Classifier
from mercer.estimators.fitting.families.dual_machine import DualMachine, can_add_samples
from mercer.estimators.fitting.mixins import ClassifierMethods
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.state import Array, Counts, Flag, Labels, fitted, has_function_per_class
from mercer.estimators.fitting.pipeline.task import Solutions, Solved
from mercer.estimators.fitting.reports.coefficients import (
    Box,
    allow_for_copies,
    caller_table,
    conclude_support,
    merged_table,
    table_expansion,
)
from mercer.estimators.fitting.reports.dual_margins import (
    PlaneDuals,
    dual_planes,
    joint_plane_norms,
    nearest_points,
    parameter_at_fit,
    plane_duals,
    plane_norms,
)
from mercer.places import Gram, gram_for
from mercer.problems.dual_problem import DualProblem
from mercer.problems.margins import NearestPoints
from mercer.problems.multiclass import JointProblem
from mercer.runtime.available import available_if
from mercer.runtime.errors import NotSeparableError
from mercer.runtime.parameters import REGULARIZED, one_of
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import (
    Data,
    Floats,
    Indices,
    Weights,
    freeze,
    host,
    is_sparse,
    n_samples,
    row_blocks,
    rows_between,
    take,
)
from mercer.samples.coefficient_table import CoefficientTable
from mercer.samples.engine import in_same_place, like_input
from mercer.samples.labels import Pair, class_pairs, scores, to_dual_coef, winner, wins
from mercer.samples.merging import Merged, conflicting_rows


@dataclass(eq=False, repr=False)
class PairwiseClassifier(ClassifierMethods, Classifier, DualMachine):
    """Base class of classifiers made of two-class machines; subclasses add parameters and problems."""

    _FITTED = fitted(
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

    def _conclude_pairs(
        self, fit: Fit, solved: Solutions[DualProblem], box: Box, b: Floats, scales: Floats | None = None
    ) -> None:
        """Set the fitted attributes; `scales` are factors on the solutions' coefficients, one for each task."""
        table = merged_table(fit.merged, solved)
        by_row = caller_table(table, fit, box, lambda: solved.largest_ridge)
        if scales is not None:
            table, by_row = (part.with_data(part.data * scales[part.indices]) for part in (table, by_row))
        allow_for_copies(self, fit, solved, (table, by_row), scales)
        self._conclude_tables(fit, table, by_row, b)
        self._conclude_duals(fit, solved, scales)

    def _conclude_tables(self, fit: Fit, table: CoefficientTable, by_row: CoefficientTable, b: Floats) -> None:
        """Set the fitted attributes from the coefficients of the merged samples and of the caller's rows."""
        merged, target = fit.merged, fit.target
        used = table.lengths.nonzero()[0]
        used = used[merged.y[used].argsort(kind="stable")]
        self._per_class_ = self._function_per_class
        self.classes_, self.class_weight_, self.intercept_ = target.labels, target.factor, b
        self._expansion_ = table_expansion(fit, table, used, b)

        # From here on indices are the caller's rows, sorted by class.
        codes = merged.y[merged.member]
        order = codes.argsort(kind="stable")
        order = order[by_row.lengths[order] > 0]
        conclude_support(self, fit, order)
        codes = codes[order]
        self.n_support_ = np.bincount(codes, minlength=len(target.labels)).astype(np.int32)
        self.dual_coef_ = to_dual_coef(by_row.take(order), codes, target.pairs, len(target.labels))

    @available_if(can_add_samples)
    @shared_docs
    def partial_fit(  # type: ignore[override]  # as scikit-learn's classifiers take them
        self, X: Data, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: Weights = None
    ) -> Self:
        """Add samples to the training set and fit again, starting from the last solution.

        %(samples that follow)s
        y : array of shape (n_samples,)
            Class labels. The first call must contain at least two classes; others may follow later.
        classes : array, optional
            Labels that may occur; a ValueError is raised for other ones. `classes_` has those that have occurred.
        %(given twice)s

        Returns
        -------
        self
            Fitted estimator.
        """
        if classes is not None:
            unexpected_labels = np.setdiff1d(np.asarray(y).ravel(), np.asarray(classes))
            if len(unexpected_labels):
                expected_text = np.asarray(classes).tolist()
                raise ValueError(f"y holds {unexpected_labels.tolist()}, which are not among classes={expected_text}")
        super().partial_fit(X, y, sample_weight)
        return self

    # --- prediction ------------------------------------------------------------------------------------------------

    @like_input
    def decision_function(self, X: Data) -> Floats:
        """Return the decision values of samples.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`. For a precomputed kernel, the kernel values with the training samples.

        Returns
        -------
        array of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            f(x) for two classes, positive for the second; for more classes, a score for each class ("ovr") or f(x) for
            each pair of classes ("ovo"), according to `decision_function_shape`.
        """
        check_is_fitted(self)
        if len(self.classes_) == 2 or self._function_per_class or self.decision_function_shape == "ovo":
            values = self._decision(X)
            return np.asarray(values[:, 0]) if len(self.classes_) == 2 else values
        return self._by_class(X, scores)

    @like_input
    def predict(self, X: Data) -> np.ndarray:
        """Predict the class of each sample.

        With several classes and a function for each pair, the class with most votes is predicted, the first one in a
        tie; with a function for each class, the class with the largest f(x).

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
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        if len(self.classes_) > 2 and not self._function_per_class:
            values = self._by_class(X, scores if self.break_ties else wins)
        else:
            values = self._decision(X)
        return np.asarray(self.classes_[winner(values)])

    def _by_class(self, X: Data, class_scores: Callable[[Floats, int], Floats]) -> Floats:
        """Return `class_scores` of the values of all pairs, in blocks of rows: there may be half a million pairs."""
        X, k = self._read_new_samples(X), len(self.classes_)
        blocks = row_blocks(n_samples(X), 4 * k * (k - 1))
        parts = [class_scores(self._values(rows_between(X, block)), k) for block in blocks]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    # --- margins ---------------------------------------------------------------------------------------------------

    @property
    def _joint_planes(self) -> bool:
        return len(self.classes_) > 2 and parameter_at_fit(self, "multiclass", "ovo") not in ("ovo", "ovr")

    def _planes(self) -> list[Pair]:
        return class_pairs(len(self.classes_)) if self._joint_planes else dual_planes(self)

    def _plane_norms(self) -> Floats:
        return joint_plane_norms(self) if self._joint_planes else plane_norms(self)

    def _duals(self, X: Data, codes: Indices) -> list[PlaneDuals] | None:
        return None if self._joint_planes else plane_duals(self, X, codes)

    def nearest_points(self) -> NearestPoints | tuple[NearestPoints, ...]:
        """Return the nearest points of the hulls of two classes.

        The separating hyperplane is parallel to their perpendicular bisector. For a hard margin, or if all slacks are
        zero, the hulls are the convex hulls; otherwise they are reduced by the bounds on α, so that no sample counts
        for more than 2C_i/Σα. With 2-norm slack they are the convex hulls in a space with an additional coordinate
        √(1/C_i) for every sample, in which the margin is hard.

        Returns
        -------
        NearestPoints, or for several classes a tuple with one for each pair
            ``classes``, the labels of the first point (positive side) and of the second (negative side); ``rows``, the
            training rows to which the coefficients belong, as in `support_`; ``coefficients``, an array of shape
            (2, n_rows) with two convex combinations; ``distance`` between the points in feature space, 2‖w‖/Σα, which
            is 2ρ if all slacks are zero; and ``points`` of shape (2, n_features) for a linear kernel, else None.
        """
        return nearest_points(self)


# --- the hard margin --------------------------------------------------------------------------------------------------
# Without slack the machine may not exist; NotSeparableError then carries the evidence. A sample with both labels is
# detected before any kernel evaluation. Everything else follows from the bounds of the solver (solvers/dual/hulls.py).


def refuse_both_labels(merged: Merged, n_threads: int) -> None:
    """Raise NotSeparableError if some sample occurs with two labels, which no function separates."""
    groups = conflicting_rows(merged.samples, merged.y, n_threads)
    if groups:
        rows = [merged.rows[np.isin(merged.member, group)] for group in groups]
        raise NotSeparableError(
            f"C=inf, the hard margin, does not exist: rows {rows[0][:6].tolist()} hold the same sample with different "
            f"labels{f', and so do {len(rows) - 1} other groups of rows' if len(rows) > 1 else ''}. Use a finite C, or "
            "correct the labels",
            rows=rows,
        )


def centred_gram(fit: Fit, bias: Any) -> tuple[Callable[[int], Gram] | None, Centring]:
    """Return a Gram matrix of samples centred at their medians, for a linear kernel with an unpenalised bias.

    Centring avoids cancellation if the hulls are far from the origin; medians are robust to outliers. For any other
    kernel or bias, and for sparse samples, the first result is None and the fit's own Gram matrix is used.
    """
    X, kernel = fit.merged.X, fit.kernel
    assert kernel is not None
    recipe = None if fit.precomputed else kernel.recipe()
    if bias is not True or recipe is None or not recipe.linear or is_sparse(X):
        return None, Centring()
    X = np.asarray(host(X), dtype=np.float64)
    centre = np.median(X, axis=0)
    centred = X - centre
    minus_centre = centred - X
    # Exact rounding error of the difference (Knuth's TwoSum).
    rounding_errors = (X - (centred - minus_centre)) - (centre + minus_centre)
    longest_shift = math.sqrt(
        recipe.scale * float(np.max(np.sum(rounding_errors * rounding_errors, axis=1), initial=0.0))
    ) * (1 + 1e-9)

    @lru_cache(maxsize=1)
    def place(n_threads: int) -> Gram:
        return gram_for(kernel, in_same_place(fit.merged.X, centred)[1], fit.limits.budget, n_threads)

    return place, Centring(longest_shift, math.sqrt(recipe.scale) * float(np.linalg.norm(centre)), X.shape[1])


def midpoint_bias(fit: Fit, solved: Solutions[DualProblem]) -> Floats:
    """Return b of each task halfway between the support vectors of both classes, in the arithmetic of prediction.

    The solver's b belongs to centred samples, and moving it to the origin would add the rounding of w times an offset.
    """
    table = merged_table(fit.merged, solved)
    used = np.flatnonzero(table.lengths)
    zeros = np.zeros(len(solved))
    f = table_expansion(fit, table, used, zeros)(take(fit.merged.samples, used), fit.limits.n_threads)
    beta = table.take(used).toarray()
    return np.array([-0.5 * (f[beta[:, k] > 0, k].min() + f[beta[:, k] < 0, k].max()) for k in range(len(solved))])


def refuse_no_margin(fit: Fit, solved: Solutions[DualProblem], solver: str) -> None:
    """Raise NotSeparableError if one of the tasks has no margin, or none that is proven.

    Gaussian and Laplacian kernels separate any two classes of distinct samples: for them, hulls that meet to rounding
    leave separability undecided.
    """
    recipe = None if fit.kernel is None or fit.precomputed else fit.kernel.recipe()
    separates_all = recipe is not None and recipe.ending in ("gaussian", "laplacian")
    for result in solved:
        is_proven = math.isfinite(result.certificate.primal) and result.solution.stop_reason != "no margin"
        if not is_proven:
            raise _no_margin_error(fit, result, separates_all, solver)


def _no_margin_error(fit: Fit, result: Solved[DualProblem], separates: bool, solver: str) -> NotSeparableError:
    """Return the error for a task without a proven margin, with what was proven and what may help."""
    beta, name, reason = result.solution.beta, result.task.name, result.solution.stop_reason
    hulls_meet = reason == "no margin" and not separates
    # With a regularised b the constant feature is part of the space, in which both sides have the same total weight.
    is_through_origin = len(result.task.problem.totals) == 0 and not fit.constant
    values = (result.certificate.primal, result.certificate.dual)
    low, high = (math.sqrt(0.5 / value) if value > 0 else math.inf for value in values)
    weights = [np.maximum(side * beta, 0.0) for side in (1.0, -1.0)]
    totals = [float(np.abs(beta).sum())] * 2 if is_through_origin else [float(weight.sum()) for weight in weights]
    sides = tuple(_combination(fit.merged, result.task.rows, *side) for side in zip(weights, totals, strict=True))
    sizes = " and ".join(str(len(rows)) for rows, _ in sides)
    if hulls_meet:
        intersection = (
            f"Without b a plane passes through the origin of feature space, which lies in the convex hull of {sizes} "
            "samples of the two classes, those of the second mirrored"
            if is_through_origin
            else f"Convex combinations of {sizes} samples of the two classes meet in feature space"
        )
        text = (
            f"C=inf, the hard margin, does not exist for {name}: no margin above {high:.3g}, which float64 cannot tell "
            f"from zero here. {intersection} (`combinations` of this error). Use a finite C, "
            f"{'a bias, ' if is_through_origin else ''}or a richer kernel"
        )
    else:
        default_cure = "Scale the features, raise gamma"
        cure = {
            "max_iter": "Raise max_iter",
            "max_time": "Raise max_time",
            "stalled": default_cure if solver == "auto" else "Use solver='auto'",
        }
        text = (
            f"C=inf, the hard margin: whether {name} can be separated is undecided "
            f"({reason if reason in cure else 'rounding floor'}): the margin lies between {low:.3g} and {high:.3g}. "
            f"{cure.get(reason, default_cure)}, or use a finite C"
        )
    return NotSeparableError(
        text, "not separable" if hulls_meet else "undecided", (0.0 if hulls_meet else low, high), sides
    )


def _combination(merged: Merged, rows: Indices, weight: Floats, total: float) -> tuple[Indices, Floats]:
    """Return the caller's first row of each merged sample with nonzero weight, and its weight relative to the total."""
    part = np.flatnonzero(weight)
    return merged.first[rows[part]], weight[part] / total


# --- one problem over all classes -------------------------------------------------------------------------------------

# True if the multipliers of a sample share its bound.
_SHARED = {"crammer-singer": True, "weston-watkins": False, "crammer_singer": True, "weston_watkins": False}
JOINT = tuple(_SHARED)


def joint_problem(merged: Merged, C: Floats, n_classes: int, multiclass: str, bias: Any) -> JointProblem:
    """Return the joint problem over all samples and classes; `C` holds one bound per merged sample."""
    return JointProblem(
        y=merged.y.astype(np.intp),
        C=C,
        n_classes=n_classes,
        shared=_SHARED[multiclass],
        shift=float(bias in REGULARIZED),
        balanced=bias is True,
    )


def joint_table(solved: Solved[JointProblem]) -> CoefficientTable:
    """Return β of every merged sample (row) for every class (column)."""
    return CoefficientTable.of_array(solved.solution.beta)


def joint_norms(solved: Solved[JointProblem]) -> Any:
    """Return ‖w_k‖ for each class; for two classes, the norm of f_2 − f_1."""
    assert solved.solution.u is not None
    energy = np.sum(outputs(solved.solution.beta.T) * outputs(solved.solution.u.T), axis=1)
    norms = np.sqrt(np.maximum(energy, 0.0))
    return float(norms[0]) if len(norms) == 1 else freeze(norms)


def outputs(values: Any) -> Any:
    """Return values by class, in rows or in a table's columns; for two classes, only those of f = f_2 − f_1."""
    if isinstance(values, CoefficientTable):
        return values if values.n_columns > 2 else CoefficientTable.of_array(outputs(values.toarray().T).T)
    values = np.asarray(values)
    return values if len(values) > 2 else values[[1]] - values[[0]]
