"""Dual quantities of fitted machines: free and bounded samples, the interval of b, Σα, and nearest points of hulls."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer import _core
from mercer.estimators.fitting.pipeline.fit import read_samples
from mercer.estimators.fitting.pipeline.state import has_function_per_class
from mercer.estimators.fitting.pipeline.task import Solutions
from mercer.problems.dual_problem import DualProblem
from mercer.problems.margins import NearestPoints
from mercer.runtime.parameters import bias_kind
from mercer.samples.arrays import Data, Flags, Floats, Indices, freeze, host, is_sparse, n_samples
from mercer.samples.coefficient_table import CoefficientTable
from mercer.samples.labels import Pair, class_pairs, plane_coefficients, planes, side_labels
from mercer.samples.merging import Merged

if TYPE_CHECKING:
    from mercer.certificates.certificate import Certificate
    from mercer.estimators.fitting.pipeline.machine import Machine
    from mercer.places.expansion import Expansion

# Codes of the core for the status of a variable.
FREE: Final = 1
BOUNDED: Final = 2


def dual_status(merged: Merged, solved: Solutions[DualProblem], n: int) -> CoefficientTable:
    """Return FREE or BOUNDED for each of the caller's n rows with β ≠ 0 in a problem (column).

    A row with two variables is FREE if one of them is.
    """
    row_sample = merged.member
    if len(row_sample) < n:
        row_sample = np.full(n, len(merged.y))  # rows of weight zero refer to an empty last row
        row_sample[merged.rows] = merged.member
    columns = solved.columns
    layout = columns.samples, columns.variables, len(merged.y) + 1, row_sample
    return CoefficientTable(*_core.status_by_rows(columns.beta, columns.lower, columns.upper, *layout), len(solved))


def free_vectors(machine: Machine) -> Flags | None:
    """Return for each support vector of a fitted machine whether it is free in some problem.

    None if this is unknown: for a joint machine, or for a model that another program trained.
    """
    status: Any = getattr(machine, "_standing_", None)
    if status is None:
        return None
    return np.asarray((status[machine.support_] == FREE).sum(axis=1) > 0).ravel()


def count_free_and_bounded(machine: Machine) -> tuple[int, int] | None:
    """Return the numbers of support vectors that are free in some problem and bounded in all; None if unknown."""
    free = free_vectors(machine)
    return None if free is None else (int(free.sum()), int((~free).sum()))


def status_in(machine: Machine, k: int) -> NDArray[np.int8]:
    """Return 0, FREE or BOUNDED for every training sample in problem k of a fitted machine."""
    status = machine._standing_[:, [k]]
    return np.asarray(status.toarray() if is_sparse(status) else status).ravel().astype(np.int8)


def n_bounded(machine: Machine, k: int) -> int:
    """Return the number of samples that are bounded in problem k of a fitted machine."""
    return int((status_in(machine, k) == BOUNDED).sum())


def bias_intervals(solved: Solutions[DualProblem], status: CoefficientTable) -> Floats:
    """Return the interval of optimal b for each problem in which no variable is free, NaN for the others."""
    ends, without_free = np.full((len(solved), 2), np.nan), np.ones(len(solved), dtype=bool)
    without_free[status.indices[status.data == FREE]] = False
    if without_free.any():
        without_free &= solved.equalities == 1
    if not without_free.any():
        return ends
    columns, h = solved.columns, solved.gradient
    starts = columns.variables[:-1]
    may_shrink, may_grow = columns.beta > columns.lower, columns.beta < columns.upper
    tops = np.maximum.reduceat(np.where(may_grow, h, -np.inf), starts)
    bottoms = np.minimum.reduceat(np.where(may_shrink, h, np.inf), starts)
    ends[without_free] = np.column_stack([tops, bottoms])[without_free]
    return ends


@dataclass(frozen=True, eq=False)
class PlaneDuals:
    """Dual quantities of one plane, which are reported with its margins."""

    alpha_sum: float
    inverse_rho_squared: dict[str, float]  # by formula, in addition to ‖w‖²
    b_interval: tuple[float, float] | None
    statuses: NDArray[np.int8] | None  # status of every sample, if these are the training samples


def dual_planes(machine: Machine) -> list[Pair]:
    """Return the planes of a machine with α as it was fitted, whatever its parameters are now."""
    k, multiclass = len(machine.classes_), parameter_at_fit(machine, "multiclass", "ovo")
    if k > 2 and multiclass not in ("ovo", "ovr"):
        raise ValueError(
            f"{type(machine).__name__} with multiclass={multiclass!r} trains all classes jointly: its α belong to all "
            "classes, and so there are no hulls of two sides with nearest points; use multiclass='ovo' or 'ovr'"
        )
    return planes(k, has_function_per_class(machine))


def parameter_at_fit(machine: Machine, name: str, default: Any) -> Any:
    """Return a parameter as the fit used it, or its present value for a model of another program.

    The slack of a hard margin is "none".
    """
    recorded_parameters = vars(machine).get("_trained_as_")
    if recorded_parameters is not None:
        return recorded_parameters[name]
    is_hard_slack = name == "slack" and getattr(machine, "C", None) == math.inf
    return "none" if is_hard_slack else getattr(machine, name, default)


def plane_norms(machine: Machine) -> Floats:
    """Return ‖w‖ of each plane; it is computed now if another program trained the model."""
    return np.atleast_1d(machine.rkhs_norm_) if hasattr(machine, "rkhs_norm_") else machine._expansion_.norms()


def joint_plane_norms(machine: Machine) -> Floats:
    """Return ‖w_a − w_b‖ for each pair of classes that were trained jointly."""
    expansion: Expansion = machine._expansion_
    if expansion.vectors is None:
        raise ValueError(
            "the planes between classes trained jointly need the kernel values between the vectors, which are not kept "
            "for a precomputed kernel; pass the samples and a kernel, or use multiclass='ovo' or 'ovr'"
        )
    return expansion.norms(differences=class_pairs(len(machine.classes_)))


def plane_duals(machine: Machine, X: Data, codes: Indices) -> list[PlaneDuals] | None:
    """Return the dual quantities of each plane, and of these samples if they are the training samples."""
    if hasattr(machine, "_compression_"):
        return None
    # A model that another program trained has neither the status of its duals nor the interval of b.
    are_training_samples = hasattr(machine, "_standing_") and _was_trained_on(machine, X, codes)
    ends: Any = getattr(machine, "_b_range_", None)
    duals = []
    for k in range(len(dual_planes(machine))):
        alpha_sum = float(np.abs(_signed_duals(machine, k)).sum())
        statuses = status_in(machine, k) if are_training_samples else None
        interval = None if ends is None or np.isnan(ends[k]).any() else (float(ends[k][0]), float(ends[k][1]))
        duals.append(PlaneDuals(alpha_sum, _inverse_rho_squared(machine, k, alpha_sum), interval, statuses))
    return duals


def nearest_points(machine: Machine) -> NearestPoints | tuple[NearestPoints, ...]:
    """Return the nearest points of the classes' hulls for each plane."""
    check_is_fitted(machine)
    linear = (recipe := machine.kernel_.recipe()) is not None and recipe.linear
    points, norms = [], plane_norms(machine)
    for k, pair in enumerate(dual_planes(machine)):
        beta = _signed_duals(machine, k)
        half_alpha_sum = 0.5 * float(np.abs(beta).sum())
        if abs(float(beta.sum())) > 1e-6 * half_alpha_sum:
            raise ValueError(
                "nearest_points needs a machine with bias: without one the α of the two classes have different sums, "
                "and w is not the difference of two points of the hulls"
            )
        sides = np.stack([np.maximum(beta, 0.0), np.maximum(-beta, 0.0)])
        coefficients = sides / sides.sum(axis=1, keepdims=True)
        points.append(
            NearestPoints(
                classes=side_labels(pair, machine.classes_.tolist()),
                rows=machine.support_,
                coefficients=freeze(coefficients),
                distance=math.sqrt(float(norms[k]) ** 2 + _ridge(machine, k, 2.0 * half_alpha_sum)) / half_alpha_sum,
                points=freeze(np.asarray(coefficients @ machine.support_vectors_)) if linear else None,
            )
        )
    return points[0] if len(points) == 1 else tuple(points)


def _signed_duals(machine: Machine, k: int) -> Floats:
    """Return β of plane k for each of `support_`."""
    return plane_coefficients(machine.dual_coef_, machine.n_support_, dual_planes(machine), k)


def _inverse_rho_squared(machine: Machine, k: int, alpha_sum: float) -> dict[str, float]:
    """Return 1/ρ² by each formula in α that holds for this machine; sums over slacks come from the certificate.

    With a regularised bias the formulas give ‖w‖² + b², the squared norm in the space of k + 1.
    """
    slack = parameter_at_fit(machine, "slack", None)
    if slack is None or not hasattr(machine, "certificate_"):
        return {}
    square = _squared_norm(machine, k)
    forms = {"|w|² + b²": square} if _has_regularised_bias(machine) else {}
    if slack == "none":
        return forms | {"Σα": alpha_sum}
    if slack == "l2":
        return forms | {"Σα − Σα²/C": alpha_sum - _ridge(machine, k, alpha_sum)}
    # The objective of a joint machine with two classes is half that of the binary machine with the penalty 2C.
    is_joint = parameter_at_fit(machine, "multiclass", "ovo") not in ("ovo", "ovr")
    factor, form = (2.0, "Σα − 2ΣCξ") if is_joint else (1.0, "Σα − ΣCξ")
    return forms | {form: alpha_sum - (factor * _certificate_of(machine, k).primal - 0.5 * square)}


def _has_regularised_bias(machine: Machine) -> bool:
    """Return whether the fit added ½b² to the objective."""
    return bool(bias_kind(parameter_at_fit(machine, "bias", True)) == "regularized")


def _squared_norm(machine: Machine, k: int) -> float:
    """Return ‖w‖² of plane k, or ‖w‖² + b² if the bias is regularised."""
    b = float(np.ravel(machine.intercept_)[k]) if _has_regularised_bias(machine) else 0.0
    return float(plane_norms(machine)[k]) ** 2 + b * b


def _ridge(machine: Machine, k: int, alpha_sum: float) -> float:
    """Return Σα²/C of a machine with 2-norm slack, computed from its dual value; 0 for other machines."""
    if parameter_at_fit(machine, "slack", "l1") != "l2":
        return 0.0
    return max(0.0, 2 * (alpha_sum - 0.5 * _squared_norm(machine, k) - _certificate_of(machine, k).dual))


def _certificate_of(machine: Machine, k: int) -> Certificate:
    """Return the certificate of problem k."""
    certificate: Certificate = machine.certificate_
    return certificate.parts[k] if certificate.parts else certificate


def _was_trained_on(machine: Machine, X: Data, codes: Indices) -> bool:
    """Return True if these are the training rows, judged by the support vectors alone."""
    if n_samples(X) != machine.shape_fit_[0]:
        return False
    expected_classes = np.repeat(np.arange(len(machine.classes_)), machine.n_support_)
    if not np.array_equal(codes[machine.support_], expected_classes):
        return False
    if machine.kernel_.accepts == "gram":
        return True
    X = read_samples(machine, X, machine.kernel_, reset=False)
    return bool(np.all(_equal_entries(host(X, machine.support_), machine.support_vectors_)))


def _equal_entries(left: Any, right: Any) -> Flags:
    """Mark the equal entries of two arrays; for two CSR matrices, return one flag for all of them."""
    if is_sparse(left) or is_sparse(right):
        if is_sparse(left) and is_sparse(right):
            return np.asarray((left != right).nnz == 0)
        left, right = (part.toarray() if is_sparse(part) else part for part in (left, right))
    return np.asarray(np.asarray(left) == np.asarray(right))
