"""Certificates of dual variables α of any origin: another library, a file, a calculation by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mercer.certificates import dual
from mercer.certificates.certificate import Certificate
from mercer.certificates.hulls import certify_hard_margin
from mercer.estimators.fitting.families.dual_machine import DualMachine
from mercer.estimators.fitting.families.kernel_weights import MultipleKernelMachine
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.state import has_function_per_class
from mercer.estimators.fitting.pipeline.task import Solutions, Solved, Task
from mercer.places import BoundedProducts
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Data, Floats, Weights, n_samples, sums_by
from mercer.samples.labels import class_pairs, plane_coefficients
from mercer.samples.merging import Merged
from mercer.solvers.solution import Solution

# Largest violation of bounds and sums by another solver's α, relative to the largest α, that is repaired.
_MISSED_SHARE = 1e-6


def certificate_of_alpha(
    estimator: Any, X: Data, y: ArrayLike | None, alpha: Any, *, sample_weight: Weights = None
) -> Certificate:
    """Certify dual variables α of a machine's problem; `mercer.certify` describes the parameters.

    A solver may return α slightly outside its bounds, or with a sum that is not exactly 0. Two repaired versions are
    certified, the nearest feasible α and the one in which entries within 1e-6 of a bound are moved onto it, and the
    certificate with the smaller gap is returned.
    """
    if not isinstance(estimator, DualMachine):
        if hasattr(estimator, "best_estimator_"):
            raise TypeError(
                f"{type(estimator).__name__} is a search, and α belongs to the machine that it chose: pass its "
                "best_estimator_ to certify"
            )
        raise TypeError(
            f"certify takes a machine of mercer with dual variables α (SVC, NuSVC, SVR, NuSVR, QuantileSVR, "
            f"OneClassSVM, SVDD), then X, y and alpha; not {type(estimator).__name__}"
        )
    if isinstance(estimator, MultipleKernelMachine):
        raise TypeError(
            f"{type(estimator).__name__} learns weights of several kernels, which do not follow from α; use SVC or SVR "
            "with the weighted sum"
        )
    machine = clone(estimator)
    fit = Fit.of(machine, X, y, sample_weight)
    tasks = machine._tasks(fit)
    if not all(isinstance(task.problem, DualProblem) for task in tasks):
        raise ValueError(
            f"certify takes α of a problem for each pair of classes ('ovo') or for each class ('ovr'); "
            f"{type(machine).__name__} with multiclass={machine.multiclass!r} is a joint machine, one problem over all "
            "classes"
        )
    columns = _columns(alpha, n_samples(fit.X), len(tasks))
    solved = [_certify_task(task, fit, column) for task, column in zip(tasks, columns.T, strict=True)]
    machine._record_end(Solutions.of(solved))
    certificate: Certificate = machine.certificate_
    return certificate


def fitted_alpha(machine: Any, X: Data) -> Floats:
    """Return α of a fitted machine as `certificate_of_alpha` takes it: unsigned for classes, a column per problem."""
    check_is_fitted(machine, "dual_coef_")
    coefficients = np.atleast_2d(machine.dual_coef_)
    classes = getattr(machine, "classes_", ())
    if len(classes) > 2 and not has_function_per_class(machine):
        pairs = class_pairs(len(classes))
        planes = [plane_coefficients(coefficients, machine.n_support_, pairs, k) for k in range(len(pairs))]
        coefficients = np.array(planes)
    rows = np.asarray(machine.support_)
    if rows.max(initial=-1) >= n_samples(X):
        raise ValueError(
            f"X has {n_samples(X)} samples, but sample {rows.max()} is a support vector: give the X of the fit"
        )
    alpha = np.zeros((n_samples(X), len(coefficients)))
    alpha[rows] = np.abs(coefficients.T) if len(classes) else coefficients.T
    return alpha


def _columns(alpha: Any, n: int, n_tasks: int) -> Floats:
    """Return α as an array with a column per problem; raise ValueError for another shape or numbers not finite."""
    values = np.asarray(alpha, dtype=np.float64)
    expected_shape = (n,) if n_tasks == 1 else (n, n_tasks)
    if values.shape not in (expected_shape, (n, n_tasks)) or not np.isfinite(values).all():
        columns = "" if n_tasks == 1 else f", and a column for each of the {n_tasks} problems"
        raise ValueError(
            f"alpha must be one finite number for each of the {n} samples{columns}; its shape is {values.shape}"
        )
    return values.reshape(n, n_tasks)


def _certify_task(task: Task[DualProblem], fit: Fit, alpha: Floats) -> Solved[DualProblem]:
    """Return one of the machine's problems with the solution for α and its certificate."""
    problem, merged = task.problem, fit.merged
    given_beta, gram = _beta(problem, merged, task.rows, alpha), fit.gram().view(task.rows)
    proofs = [_proof(problem, gram.proof, beta) for beta in _two_feasible_points(problem, given_beta)]
    solution, proof = min(proofs, key=lambda pair: pair[1].gap)
    return Solved(task, solution, proof)


def _proof(problem: DualProblem, gram: BoundedProducts, beta: Floats) -> tuple[Solution, Certificate]:
    """Certify a feasible β, and return it as a solution with its certificate."""
    if _is_hard(problem):
        proof = certify_hard_margin(problem, gram, beta)
        # β'Kβ = 0 for Σα > 0: there is no margin at all, and no finite bound on ½‖w‖².
        return Solution(beta, 0, "converged" if np.isfinite(proof.dual) else "no margin"), proof
    proof, u = dual.certify_dual(problem, gram, beta)
    return Solution(beta, 0, "converged", u=u), proof


def _is_hard(problem: DualProblem) -> bool:
    """Return True for a hard margin, in which β is bounded only by its sign."""
    return bool(np.isinf(problem.upper - problem.lower).all() and not problem.d.any())


def _beta(problem: DualProblem, merged: Merged, rows: Any, alpha: Floats) -> Floats:
    """Return the problem's variables for α of the caller's rows; raise ValueError if α cannot belong to it."""
    tolerance = _MISSED_SHARE * float(np.abs(alpha).max(initial=0.0))
    index_in_task = np.full(len(merged.weight), -1)
    index_in_task[rows] = np.arange(len(rows))
    row_of = np.full(len(alpha), -1)
    row_of[merged.rows] = index_in_task[merged.member]
    alpha_elsewhere = np.abs(np.where(row_of < 0, alpha, 0.0))
    if alpha_elsewhere.max(initial=0.0) > tolerance:
        i = int(np.argmax(alpha_elsewhere))
        raise ValueError(f"alpha[{i}] = {alpha[i]:.6g} must be 0: its sample has no part in this problem, or no weight")
    sums = sums_by(row_of[row_of >= 0], alpha[row_of >= 0], len(rows))
    # α of a sample with a single variable is given without its sign. The two variables of a regression machine are the
    # positive and the negative part of α.
    signs = np.where((problem.lower < 0) & (problem.upper <= 0), -1.0, 1.0)
    beta = sums[problem.row]
    beta = np.where(signs > 0, np.maximum(beta, 0.0), np.minimum(beta, 0.0)) if problem.twins else signs * beta
    scale = 1.0
    if not problem.p.any() or _is_hard(problem):
        if not beta.any():
            raise ValueError("alpha is 0 everywhere, which gives no function")
        if not _is_hard(problem):
            scale = float(np.abs(problem.totals).sum() / np.abs(beta).sum())
            beta = scale * beta
    distance_outside = np.maximum(problem.lower - beta, beta - problem.upper)
    if distance_outside.max(initial=0.0) > scale * tolerance:
        i = int(np.argmax(distance_outside))
        low, high = problem.lower[i] / scale, problem.upper[i] / scale
        if not problem.twins and signs[i] < 0:
            low, high = -high, -low
        members = np.flatnonzero(row_of == problem.row[i])
        name = f"alpha[{members[0]}]" if len(members) == 1 else f"the sum of alpha over the equal rows {members[:5]}"
        value = alpha[members].sum()
        raise ValueError(
            f"{name} = {value:.6g} lies outside of its box by {distance_outside[i] / scale:.3g}: it must be between "
            f"{low + 0.0:g} and {high + 0.0:g}; does it come from another C or ν, or from opposite labels?"
        )
    return beta


def feasible_points_near(problem: DualProblem, beta: Floats) -> tuple[Floats, ...]:
    """Return feasible points close to β, or none if β misses its bounds or sums by more than rounding."""
    tolerance = _MISSED_SHARE * float(np.abs(beta).max(initial=0.0))
    is_inside = (beta >= problem.lower - tolerance) & (beta <= problem.upper + tolerance)
    try:
        return _two_feasible_points(problem, beta) if is_inside.all() else ()
    except ValueError:
        return ()


def _two_feasible_points(problem: DualProblem, beta: Floats) -> tuple[Floats, Floats]:
    """Return the feasible points nearest to β, and to β with entries close to a bound moved onto it.

    Raise ValueError if sums of β are wrong by more than rounding.
    """
    tolerance = _MISSED_SHARE * float(np.abs(beta).max(initial=0.0))
    for g, total in enumerate(problem.totals.tolist()):
        beta_sum = float(beta[problem.group == g].sum())
        if abs(beta_sum - total) <= tolerance * np.sqrt(len(beta)):
            continue
        if len(problem.totals) == 1 and total == 0:
            raise ValueError(
                f"Σ alpha_i y_i = {beta_sum:.6g} is not 0, as a machine with bias requires; set bias=False if there is "
                "no bias"
            )
        raise ValueError(f"alpha must have the sum {abs(total):.6g} on each side, but one has {abs(beta_sum):.6g}")
    on_bounds = np.where(np.abs(beta - problem.lower) <= tolerance, problem.lower, beta)
    on_bounds = np.where(np.abs(beta - problem.upper) <= tolerance, problem.upper, on_bounds)
    return problem.nearest_feasible(beta), problem.nearest_feasible(on_bounds)
