"""What classifiers made of hyperplanes tell: margins, slacks and signed distances; with duals, also the hulls."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from mercer.arrays import Flags, Floats, Indices, freeze, is_sparse, n_samples, take
from mercer.data.labels import Pair, between, codes_among, names_of, plane_coefficients, planes
from mercer.expansion import Expansion
from mercer.fitting.dual_status import status_in
from mercer.fitting.fit import read_samples
from mercer.fitting.kinds import has_function_per_class
from mercer.margins import Margins, NearestPoints, SeveralMargins, divide

if TYPE_CHECKING:
    from mercer.certificates.certificate import Certificate


@dataclass(frozen=True, eq=False)
class PlaneDuals:
    """What the dual solution of one plane adds to its margins."""

    alpha_sum: float
    inverse_rho_squared: dict[str, float]  # by formula, beside ‖w‖² itself
    b_interval: tuple[float, float] | None
    statuses: NDArray[np.int8] | None  # of every sample, where these are the training samples


class MarginReport:
    """Margins and signed distances of a classifier with a hyperplane for each output.

    A classifier has its classes, a bias and a norm of w for each plane and the decision values, one column per plane.
    Its planes are those of one class against the rest, unless it says otherwise; one with duals tells about them too.
    """

    classes_: np.ndarray
    intercept_: Floats
    rkhs_norm_: Any  # one number, or one for each plane

    if TYPE_CHECKING:  # the machine's own

        def _decision(self, X: Any) -> Floats: ...

        def predict(self, X: Any) -> np.ndarray: ...

    def _planes(self) -> list[Pair]:
        """The classes on the positive and on the negative side of each plane."""
        return planes(len(self.classes_), against_rest=True)

    def _plane_norms(self) -> Floats:
        """‖w‖ of each plane."""
        return np.atleast_1d(self.rkhs_norm_)

    def _duals(self, X: Any, codes: Indices) -> list[PlaneDuals] | None:
        """What the duals tell of each plane and of these samples; None for a machine that keeps none."""
        return None

    def signed_distance(self, X: Any) -> Floats:
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

    def margins(self, X: Any, y: Any) -> Margins | SeveralMargins:
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
            For several classes, SeveralMargins: a sequence of Margins, one per plane. Which vectors are free, bounded
            or neither is told where X and y are the samples that the machine was fitted on.
        """
        check_is_fitted(self)
        codes = codes_among(self.classes_, y)
        check_consistent_length(X, codes)
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
            )
            parts.append(part)
        if len(parts) == 1:
            return parts[0]
        return SeveralMargins(freeze(self.classes_[codes]), tuple(parts), np.asarray(self.predict(X) != y))


class DualMarginReport(MarginReport):
    """Margins of a machine with α: sums of α, free and bounded vectors, and the nearest points of the hulls."""

    dual_coef_: Floats
    n_support_: Indices
    support_: Indices
    support_vectors_: Any
    shape_fit_: tuple[int, ...]
    kernel_: Any
    certificate_: Any
    _expansion_: Expansion

    def _planes(self) -> list[Pair]:
        # What was fitted counts, not what the parameter says since; a joint machine has a certificate and no status.
        k, per_class = len(self.classes_), has_function_per_class(self)
        found = planes(k, per_class)
        joint = per_class and hasattr(self, "certificate_") and not hasattr(self, "_standing_")
        if k > 2 and (joint or len(found) != len(self.intercept_)):
            raise ValueError(without_planes("multiclass", getattr(self, "multiclass", None), "'ovo' or 'ovr'"))
        return found

    def _plane_norms(self) -> Floats:
        # A fit knows ‖w‖; a model that came from another program's file has to compute it.
        return super()._plane_norms() if hasattr(self, "rkhs_norm_") else self._expansion_.norms()

    def _signed_duals(self, k: int) -> Floats:
        """β of plane k for each of `support_`."""
        return plane_coefficients(self.dual_coef_, self.n_support_, self._planes(), k)

    def _duals(self, X: Any, codes: Indices) -> list[PlaneDuals] | None:
        if hasattr(self, "_compression_"):
            return None
        # A model that another program trained has no status of its duals, nor does a file say where b may lie.
        known = hasattr(self, "_standing_") and self._was_trained_on(X, codes)
        ends: Any = getattr(self, "_b_range_", None)
        found = []
        for k in range(len(self._planes())):
            alpha_sum = float(np.abs(self._signed_duals(k)).sum())
            statuses = status_in(self, k) if known else None
            interval = None if ends is None or np.isnan(ends[k]).any() else (float(ends[k][0]), float(ends[k][1]))
            found.append(PlaneDuals(alpha_sum, self._inverse_rho_squared(k, alpha_sum), interval, statuses))
        return found

    def _inverse_rho_squared(self, k: int, alpha_sum: float) -> dict[str, float]:
        """1/ρ² by each formula from α that holds for this machine; the sums over slacks are the certificate's."""
        C: Any = getattr(self, "C", None)
        if C is None or getattr(self, "bias", True) is not True or not hasattr(self, "certificate_"):
            return {}
        if np.isinf(C):
            return {"Σα": alpha_sum}
        if getattr(self, "slack", "l1") == "l2":
            return {"Σα − Σα²/C": alpha_sum - self._ridge(k, alpha_sum)}
        square = float(self._plane_norms()[k]) ** 2
        return {"Σα − ΣCξ": alpha_sum - (self._certificate_of(k).primal - 0.5 * square)}

    def _ridge(self, k: int, alpha_sum: float) -> float:
        """Σα²/C of a machine with 2-norm slack, of which its dual value tells; 0 of others."""
        if getattr(self, "slack", "l1") != "l2" or np.isinf(getattr(self, "C", 1.0)):
            return 0.0
        square = float(self._plane_norms()[k]) ** 2
        return max(0.0, 2 * (alpha_sum - 0.5 * square - self._certificate_of(k).dual))

    def _certificate_of(self, k: int) -> Certificate:
        whole: Certificate = self.certificate_
        return whole.parts[k] if whole.parts else whole

    def _was_trained_on(self, X: Any, codes: Indices) -> bool:
        """Whether these are the training rows, as far as the support vectors, which are all that matters, tell."""
        if n_samples(X) != self.shape_fit_[0]:
            return False
        expected = np.repeat(np.arange(len(self.classes_)), self.n_support_)
        if not np.array_equal(codes[self.support_], expected):
            return False
        if self.kernel_.accepts == "gram":
            return True
        X = read_samples(self, X, self.kernel_, reset=False)
        return bool(np.all(_same(take(X, self.support_), self.support_vectors_)))

    def nearest_points(self) -> NearestPoints | tuple[NearestPoints, ...]:
        """The nearest points of the classes' hulls, whose perpendicular bisector the plane is parallel to.

        For a hard margin, or where all slacks are zero, these are the convex hulls; otherwise hulls reduced by the
        bounds on α, in which no sample counts for more than 2C_i/Σα. With 2-norm slack they are the hulls in a space in
        which every sample has a coordinate √(1/C_i) of its own, where it has a hard margin.

        Returns
        -------
        NearestPoints, or a tuple of them, one per pair, for several classes
        """
        check_is_fitted(self)
        linear = (recipe := self.kernel_.recipe()) is not None and recipe.linear
        found, norms = [], self._plane_norms()
        for k, pair in enumerate(self._planes()):
            beta = self._signed_duals(k)
            half = 0.5 * float(np.abs(beta).sum())
            if abs(float(beta.sum())) > 1e-6 * half:
                raise ValueError(
                    "nearest_points needs a machine with bias: without one the two classes' α have different sums, "
                    "and w is no difference of two points of the hulls"
                )
            sides = np.stack([np.maximum(beta, 0.0), np.maximum(-beta, 0.0)])
            coefficients = sides / sides.sum(axis=1, keepdims=True)
            found.append(
                NearestPoints(
                    classes=names_of(pair, self.classes_.tolist()),
                    rows=self.support_,
                    coefficients=freeze(coefficients),
                    distance=math.sqrt(float(norms[k]) ** 2 + self._ridge(k, 2.0 * half)) / half,
                    points=freeze(np.asarray(coefficients @ self.support_vectors_)) if linear else None,
                )
            )
        return found[0] if len(found) == 1 else tuple(found)


def without_planes(parameter: str, value: Any, use: str) -> str:
    """Why a joint machine has no margins."""
    return (
        f"{parameter}={value!r} trains all classes jointly: it has no planes between two sides, and so neither margins "
        f"nor nearest points of two hulls; use {parameter}={use}"
    )


def _same(left: Any, right: Any) -> Flags:
    if is_sparse(left) or is_sparse(right):
        if is_sparse(left) and is_sparse(right):
            return np.asarray((left != right).nnz == 0)
        left, right = (part.toarray() if is_sparse(part) else part for part in (left, right))
    return np.asarray(np.asarray(left) == np.asarray(right))
