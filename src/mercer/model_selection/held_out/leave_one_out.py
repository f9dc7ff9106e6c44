"""Exact leave-one-out: the decision value of each training sample by the machine that was trained without it.

A sample with α = 0 changes nothing when it is left out. Any other sample is removed from the exact solution by a
homotopy that shrinks its bounds to zero, in which few variables change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from mercer._core import Homotopy
from mercer.estimators.fitting.families.kernel_weights import MultipleKernelMachine
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.reports.coefficients import expansion_of
from mercer.model_selection.paths.exact_solution import ExactSolution, choose_b, exact_solutions
from mercer.places.expansion import Expansion
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Flags, Floats, Indices, freeze, megabytes, sums_by
from mercer.samples.engine import on_host
from mercer.samples.labels import votes, winner
from mercer.solvers.homotopy import solve_exactly, solve_with_smaller_bounds


@dataclass(frozen=True, eq=False, repr=False)
class LeaveOneOutResult:
    """Leave-one-out values of every sample, in the caller's order; NaN for samples of weight zero.

    Attributes
    ----------
    values : array of shape (n_samples,), or (n_samples, n_planes) for several classes
        f(x_i) of the machine trained without sample i.
    predictions : array of shape (n_samples,)
        Class or number that the machine trained without sample i predicts; the first class if sample i has weight zero.
    wrong : array of bool of shape (n_samples,), or None
        Mask of the misclassified samples; None for a regressor.
    residuals : array of shape (n_samples,), or None
        y_i − f(x_i); None for a classifier.
    error : float
        Weighted share of misclassified samples, or weighted mean absolute residual.
    unique : array of bool of shape (n_samples,)
        Whether the machine trained without sample i is the only solution. If no support vector is free, b may be
        anywhere in an interval, and its midpoint is used.
    n_removed : int
        Number of samples that had to be removed from the solution; all others have α = 0.

    Examples
    --------
    See `leave_one_out`.
    """

    values: Floats
    predictions: Any
    wrong: Flags | None
    residuals: Floats | None
    error: float
    unique: Flags
    n_removed: int

    def __repr__(self) -> str:
        quantity = "mean absolute residual" if self.wrong is None else "share of errors"
        return (
            f"LeaveOneOutResult({len(self.predictions)} samples, {quantity} {self.error:.4g}, {self.n_removed} removed)"
        )


def leave_one_out(model: Any, X: Any, y: Any, sample_weight: Any = None) -> LeaveOneOutResult:
    """Compute exact leave-one-out values of a machine with support vectors, at a small part of the cost of n fits.

    The values are those of n fits with the same kernel, C and class weights: parameters that depend on the data, such
    as gamma="scale" or class_weight="balanced", are computed once, from all samples.

    Parameters
    ----------
    model : SVC, SVR, QuantileSVR with one quantile or another machine with one b
        Machine whose parameters define the problem; if it is fitted, its solution is the starting point.
    X : array or CSR matrix of shape (n_samples, n_features)
        Training samples, as given to `fit`.
    y : array of shape (n_samples,)
        Classes or numbers.
    sample_weight : array of shape (n_samples,), optional
        Weights; a sample is left out with all its weight.

    Returns
    -------
    LeaveOneOutResult
        Values, predictions and the error of the samples left out.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SVC, leave_one_out
    >>> X, y = load_iris(return_X_y=True)
    >>> round(leave_one_out(SVC(C=10), X, y).error, 3)
    0.027
    """
    _check_supported(model, np.asarray(on_host(y)))
    fit, solutions = exact_solutions(model, X, y, sample_weight)
    merged, classifies = fit.merged, is_classifier(model)
    refuse_one_sample(len(merged.rows))
    values = np.full((fit.n, len(solutions)), np.nan)
    was_removed, unique = np.zeros(fit.n, dtype=np.bool_), np.ones(fit.n, dtype=np.bool_)
    for k, solution in enumerate(solutions):
        if len(solution.rows) < len(merged.y):  # samples that are not part of this problem need no removal
            values[merged.rows, k] = _decision_values(fit, solution)[merged.member]
        for removal in _removals(fit, solution):
            row, (_, _, value, is_unique) = removal.row, removal.solution()
            values[row, k] = value
            was_removed[row] |= removal.moved
            unique[row] &= is_unique
    if classifies:
        labels = fit.target.labels
        if len(labels) > 2 and not model._function_per_class:
            codes = winner(votes(values[merged.rows], len(labels))[0])
        else:
            codes = winner(values[merged.rows])
        predictions = np.full(fit.n, labels[0], dtype=labels.dtype)
        predictions[merged.rows] = labels[codes]
        is_wrong = np.zeros(fit.n, dtype=np.bool_)
        is_wrong[merged.rows] = codes != merged.y[merged.member]
        losses, residuals = is_wrong.astype(np.float64), None
    else:
        predictions, is_wrong = values[:, 0], None
        residuals = np.asarray(y, dtype=np.float64).ravel() - predictions
        losses = np.abs(residuals)
    weight = fit.weight[merged.rows]
    return LeaveOneOutResult(
        values=freeze(values[:, 0].copy() if len(solutions) == 1 else values),
        predictions=freeze(predictions.copy()),
        wrong=None if is_wrong is None else freeze(is_wrong),
        residuals=None if residuals is None else freeze(residuals),
        error=float(weight @ losses[merged.rows] / weight.sum()),
        unique=freeze(unique),
        n_removed=int(was_removed.sum()),
    )


def refuse_one_sample(n_samples: int) -> None:
    """Raise ValueError if there are fewer than two samples with positive weight."""
    if n_samples < 2:
        raise ValueError(
            f"leaving one out needs at least 2 samples with positive weight, but n_samples = {n_samples}; pass more "
            "samples, or positive weights"
        )


def _check_supported(model: Any, y: Any) -> None:
    """Raise for several outputs or quantiles, and for machines that learn kernel weights from the targets."""
    name = type(model).__name__
    if y.ndim > 1 and y.shape[1] > 1:
        raise ValueError(f"leave_one_out({name}) is for one output; pass the columns of y one by one")
    if isinstance(model, MultipleKernelMachine):
        raise TypeError(
            f"leave_one_out does not support {name}, whose kernel weights change with each sample left out. Use "
            "sklearn.model_selection.cross_val_predict(model, X, y, cv=LeaveOneOut()), which learns them n times; for "
            "fixed weights of a fitted machine, use "
            f"leave_one_out({'SVC' if is_classifier(model) else 'SVR'}(C=model.C, kernel=model.kernel_), X, y)"
        )
    if np.size(getattr(model, "quantiles", 0)) > 1:
        raise ValueError(
            f"leave_one_out({name}) is for one quantile, but quantiles={model.quantiles!r}; use one at a time, such as "
            "quantiles=0.5, or "
            "sklearn.model_selection.cross_val_predict(model, X, y, cv=LeaveOneOut())"
        )


def _decision_values(fit: Fit, solution: ExactSolution) -> Floats:
    """Return f of every merged sample, including those that are not part of the problem."""
    gram = fit.gram()
    coefficients = np.zeros(gram.n)
    coefficients[solution.rows] = sums_by(solution.problem.row, solution.beta, len(solution.rows))
    return np.asarray(gram.product(coefficients) + solution.b)


@dataclass(frozen=True, eq=False)
class _Removal:
    """The exact solution without one of the caller's rows."""

    row: int
    moved: bool  # whether the coefficients differ from those of the solution with all rows
    problem: DualProblem
    exact: Homotopy
    variables: list[int]  # variables of the row's sample
    share: float  # the row's share of the sample's weight

    def solution(self) -> tuple[Floats, float, float, bool]:
        """Return β, the b that a fit without the row would choose, f of the row, and whether b is unique."""
        t, v = self.exact.t, self.variables[0]
        beta = self.exact.beta(t)
        h = self.exact.gradient(t, beta)
        remaining = np.ones(len(h), dtype=np.bool_)
        remaining[self.variables] = self.share < 1
        b, is_unique = choose_b(self.problem, beta, h, remaining)
        return beta, b, float(self.problem.p[v] - h[v] - self.problem.d[v] * beta[v]) + b, is_unique


def _removals(fit: Fit, solution: ExactSolution) -> Iterator[_Removal]:
    """Yield, for each of the caller's rows that is part of the problem, the solution without this row."""
    merged, problem = fit.merged, solution.problem
    index = np.full(len(merged.y), -1)
    index[solution.rows] = np.arange(len(solution.rows))
    beta, has_ridge = solution.beta, bool(problem.d.any())
    variables_of: list[list[int]] = [[] for _ in solution.rows]
    for v, row in enumerate(problem.row.tolist()):
        variables_of[row].append(v)
    for i, sample, share in zip(merged.rows.tolist(), merged.member.tolist(), merged.share.tolist(), strict=True):
        if index[sample] < 0:
            continue
        variables, reduced_problem, homotopy = variables_of[index[sample]], problem, solution.homotopy
        has_coefficient = bool(beta[variables].any())
        if has_coefficient:
            reduced_problem = _without_share(problem, variables, share)
            if has_ridge and share < 1:
                homotopy = solve_exactly(reduced_problem, solution.K, beta)
            else:
                homotopy = solve_with_smaller_bounds(problem, solution.K, solution.homotopy, beta, variables, share)
        yield _Removal(i, has_coefficient, reduced_problem, homotopy, variables, share)


def _without_share(problem: DualProblem, variables: list[int], share: float) -> DualProblem:
    """Return the problem without a share of a sample's weight."""
    lower, upper, d = problem.lower.copy(), problem.upper.copy(), problem.d.copy()
    if share == 1:
        lower[variables] = upper[variables] = 0.0
    else:
        lower[variables] *= 1 - share
        upper[variables] *= 1 - share
        d[variables] /= 1 - share
    return DualProblem(problem.p, lower, upper, d, problem.row, problem.group, problem.totals)


def _check_memory(machine: Any, n: int, n_functions: int) -> None:
    """Raise MemoryError if the n coefficients of this many functions exceed the machine's cache_size."""
    n_bytes = 8 * n * (n_functions + 1)
    if n_bytes > machine.cache_size * 1e6:
        raise MemoryError(
            f"leaving out each of {n_functions} samples takes {megabytes(n_bytes)}, more than "
            f"cache_size={machine.cache_size:g}; use a number of folds, or raise cache_size"
        )


@dataclass(frozen=True, eq=False)
class FunctionsLeftOut:
    """The n exact leave-one-out functions, as an expansion with one output for each distinct function."""

    expansion: Expansion
    output: Indices  # output of the function without each of the caller's rows
    residuals: Floats  # y_i − f₋ᵢ(x_i)
    n_threads: int

    @classmethod
    def of(cls, machine: Any, X: Any, y: Floats, sample_weight: Any) -> FunctionsLeftOut:
        """Compute the functions of a fitted machine with one output from its training samples."""
        fit, (solution,) = exact_solutions(machine, X, y, sample_weight)
        n, values = len(solution.rows), np.zeros(fit.n)
        n_functions = int(np.isin(fit.merged.member, solution.problem.row[np.flatnonzero(solution.beta)]).sum())
        _check_memory(machine, n, n_functions)
        if len(fit.merged.rows) < fit.n:
            raise ValueError("cv='leave-one-out' needs positive weights; remove samples of weight 0")
        output = np.zeros(fit.n, dtype=np.intp)
        coefficients, offsets = [sums_by(solution.problem.row, solution.beta, n)], [solution.b]
        for removal in _removals(fit, solution):
            beta, b, values[removal.row], is_unique = removal.solution()
            # Without a free variable, b may be anywhere in an interval, whose end may come from a sample with α = 0.
            if removal.moved or (not is_unique and b != solution.b):
                _check_memory(machine, n, len(offsets))
                output[removal.row] = len(offsets)
                coefficients.append(sums_by(solution.problem.row, beta, n))
                offsets.append(b)
        table = np.column_stack(coefficients)
        # A regularised b is the weight of a constant feature.
        b_values = np.asarray(table.sum(axis=0) if fit.constant else offsets, dtype=np.float64)
        used = np.flatnonzero(table.any(axis=1))
        expansion = expansion_of(fit, np.ascontiguousarray(table[used]), b_values, used)
        return cls(expansion, output, y - values, fit.limits.n_threads)

    def __call__(self, X: Any) -> Floats:
        """Return the values of all functions, a row for each x and a column for each sample left out."""
        return np.asarray(self.expansion(X, self.n_threads)[:, self.output])
