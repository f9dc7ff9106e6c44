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


# --- machines with α: sums of α, free and bounded vectors, and the nearest points of the hulls ----------------------


def dual_planes(machine: Any) -> list[Pair]:
    """The planes of a machine with α as it was fitted, whatever its parameter says since."""
    # A joint machine has a certificate and no status of its duals.
    k, per_class = len(machine.classes_), has_function_per_class(machine)
    found = planes(k, per_class)
    joint = per_class and hasattr(machine, "certificate_") and not hasattr(machine, "_standing_")
    if k > 2 and (joint or len(found) != len(machine.intercept_)):
        raise ValueError(without_planes("multiclass", getattr(machine, "multiclass", None), "'ovo' or 'ovr'"))
    return found


def plane_duals(machine: Any, X: Any, codes: Indices) -> list[PlaneDuals] | None:
    """What α tells of each plane, and of these samples if they are the training samples."""
    if hasattr(machine, "_compression_"):
        return None
    # A model that another program trained has no status of its duals, nor does a file say where b may lie.
    known = hasattr(machine, "_standing_") and _was_trained_on(machine, X, codes)
    ends: Any = getattr(machine, "_b_range_", None)
    found = []
    for k in range(len(machine._planes())):
        alpha_sum = float(np.abs(_signed_duals(machine, k)).sum())
        statuses = status_in(machine, k) if known else None
        interval = None if ends is None or np.isnan(ends[k]).any() else (float(ends[k][0]), float(ends[k][1]))
        found.append(PlaneDuals(alpha_sum, _inverse_rho_squared(machine, k, alpha_sum), interval, statuses))
    return found


def nearest_points(machine: Any) -> NearestPoints | tuple[NearestPoints, ...]:
    """The nearest points of the classes' hulls, of each plane."""
    check_is_fitted(machine)
    linear = (recipe := machine.kernel_.recipe()) is not None and recipe.linear
    found, norms = [], machine._plane_norms()
    for k, pair in enumerate(machine._planes()):
        beta = _signed_duals(machine, k)
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
                classes=names_of(pair, machine.classes_.tolist()),
                rows=machine.support_,
                coefficients=freeze(coefficients),
                distance=math.sqrt(float(norms[k]) ** 2 + _ridge(machine, k, 2.0 * half)) / half,
                points=freeze(np.asarray(coefficients @ machine.support_vectors_)) if linear else None,
            )
        )
    return found[0] if len(found) == 1 else tuple(found)


def _signed_duals(machine: Any, k: int) -> Floats:
    """β of plane k for each of `support_`."""
    return plane_coefficients(machine.dual_coef_, machine.n_support_, machine._planes(), k)


def _inverse_rho_squared(machine: Any, k: int, alpha_sum: float) -> dict[str, float]:
    """1/ρ² by each formula from α that holds for this machine; the sums over slacks are the certificate's."""
    C: Any = getattr(machine, "C", None)
    if C is None or getattr(machine, "bias", True) is not True or not hasattr(machine, "certificate_"):
        return {}
    if np.isinf(C):
        return {"Σα": alpha_sum}
    if getattr(machine, "slack", "l1") == "l2":
        return {"Σα − Σα²/C": alpha_sum - _ridge(machine, k, alpha_sum)}
    square = float(machine._plane_norms()[k]) ** 2
    return {"Σα − ΣCξ": alpha_sum - (_certificate_of(machine, k).primal - 0.5 * square)}


def _ridge(machine: Any, k: int, alpha_sum: float) -> float:
    """Σα²/C of a machine with 2-norm slack, of which its dual value tells; 0 of others."""
    if getattr(machine, "slack", "l1") != "l2" or np.isinf(getattr(machine, "C", 1.0)):
        return 0.0
    square = float(machine._plane_norms()[k]) ** 2
    return max(0.0, 2 * (alpha_sum - 0.5 * square - _certificate_of(machine, k).dual))


def _certificate_of(machine: Any, k: int) -> Certificate:
    whole: Certificate = machine.certificate_
    return whole.parts[k] if whole.parts else whole


def _was_trained_on(machine: Any, X: Any, codes: Indices) -> bool:
    """Whether these are the training rows, as far as the support vectors, which are all that matters, tell."""
    if n_samples(X) != machine.shape_fit_[0]:
        return False
    expected = np.repeat(np.arange(len(machine.classes_)), machine.n_support_)
    if not np.array_equal(codes[machine.support_], expected):
        return False
    if machine.kernel_.accepts == "gram":
        return True
    X = read_samples(machine, X, machine.kernel_, reset=False)
    return bool(np.all(_same(take(X, machine.support_), machine.support_vectors_)))


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
