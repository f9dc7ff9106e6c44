"""Exact leave-one-out: what a machine says of each training sample that it was not trained on.

A sample with α = 0 changes nothing when it is left out. Any other one is removed from the exact solution by letting its
bounds shrink to zero, which moves few variables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from mercer._core import Homotopy
from mercer.estimators.fitting.families.kernel_weights import KernelWeights
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.reports.coefficients import expansion_of
from mercer.model_selection.paths.exact_solution import ExactSolution, chosen_b, exact_solutions
from mercer.places.expansion import Expansion
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Flags, Floats, Indices, freeze, megabytes, sums_by
from mercer.samples.engine import on_host
from mercer.samples.labels import votes, winner
from mercer.solvers.homotopy import settled, without


@dataclass(frozen=True, eq=False, repr=False)
class LeaveOneOutResult:
    """What was found for every sample, in the caller's order; NaN for those of weight zero.

    Attributes
    ----------
    values : array of shape (n_samples,), or (n_samples, n_planes) for several classes
        f(x_i) of the machine trained without sample i.
    predictions : array of shape (n_samples,)
        The class, or the number, that this machine predicts; the first class stands for a sample of weight zero.
    wrong : array of bool of shape (n_samples,), or None
        Which samples are misclassified; None for a regressor.
    residuals : array of shape (n_samples,), or None
        y_i − f(x_i); None for a classifier.
    error : float
        The share of misclassified samples, or the mean absolute residual; by weight.
    unique : array of bool of shape (n_samples,)
        Whether the machine without sample i is the only solution. Where no support vector is free, b may be anywhere in
        an interval, and is in its middle.
    n_removed : int
        How many samples had to be removed; the others have α = 0.

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
        what = "mean absolute residual" if self.wrong is None else "share of errors"
        return f"LeaveOneOutResult({len(self.predictions)} samples, {what} {self.error:.4g}, {self.n_removed} removed)"


def leave_one_out(model: Any, X: Any, y: Any, sample_weight: Any = None) -> LeaveOneOutResult:
    """Exact leave-one-out values of a machine with support vectors, at a small part of the cost of n fits.

    They are those of n fits with the same kernel, C and class weights: what is chosen by the data, such as
    gamma="scale" or class_weight="balanced", is chosen once, from all samples.

    Parameters
    ----------
    model : SVC, SVR, QuantileSVR with one quantile or another machine with one b
        Its parameters say what is solved; if it is fitted, its solution is where the exact one is looked for.
    X : array or CSR matrix of shape (n_samples, n_features)
        The training samples, as given to `fit`.
    y : array of shape (n_samples,)
        Their classes, or numbers.
    sample_weight : array of shape (n_samples,), optional
        A sample is left out with all its weight.

    Returns
    -------
    LeaveOneOutResult

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SVC, leave_one_out
    >>> X, y = load_iris(return_X_y=True)
    >>> round(leave_one_out(SVC(C=10), X, y).error, 3)
    0.027
    """
    _refuse(model, np.asarray(on_host(y)))
    fit, solved = exact_solutions(model, X, y, sample_weight)
    merged, classifies = fit.merged, is_classifier(model)
    refuse_one_sample(len(merged.rows))
    values = np.full((fit.n, len(solved)), np.nan)
    removed, unique = np.zeros(fit.n, dtype=np.bool_), np.ones(fit.n, dtype=np.bool_)
    for k, one in enumerate(solved):
        values[merged.rows, k] = _of_others(fit, one)[merged.member] if len(one.rows) < len(merged.y) else np.nan
        for found in _removals(fit, one):
            row, (_, _, own, sole) = found.row, found.solved()
            values[row, k] = own
            removed[row] |= found.moved
            unique[row] &= sole
    if classifies:
        labels, several = fit.target.labels, len(fit.target.labels) > 2
        if several and not model._function_per_class:
            codes = winner(votes(values[merged.rows], len(labels))[0])
        else:
            codes = winner(values[merged.rows])
        predictions = np.full(fit.n, labels[0], dtype=labels.dtype)
        predictions[merged.rows] = labels[codes]
        wrong = np.zeros(fit.n, dtype=np.bool_)
        wrong[merged.rows] = codes != merged.y[merged.member]
        losses, residuals = wrong.astype(np.float64), None
    else:
        predictions, wrong = values[:, 0], None
        residuals = np.asarray(y, dtype=np.float64).ravel() - predictions
        losses = np.abs(residuals)
    weight = fit.weight[merged.rows]
    return LeaveOneOutResult(
        values=freeze(values[:, 0].copy() if len(solved) == 1 else values),
        predictions=freeze(predictions.copy()),
        wrong=None if wrong is None else freeze(wrong),
        residuals=None if residuals is None else freeze(residuals),
        error=float(weight @ losses[merged.rows] / weight.sum()),
        unique=freeze(unique),
        n_removed=int(removed.sum()),
    )


def refuse_one_sample(counted: int) -> None:
    """Raise an error where nothing is left to train on without a sample."""
    if counted < 2:
        raise ValueError(
            f"leaving one out needs at least 2 samples with positive weight, but n_samples = {counted}: without it "
            "there is nothing to learn from; give more samples, or those that there are some weight"
        )


def _refuse(model: Any, y: Any) -> None:
    """Raise for machines that learn more from targets than one exact removal takes back, and for several outputs."""
    name = type(model).__name__
    if y.ndim > 1 and y.shape[1] > 1:
        raise ValueError(
            f"leave_one_out({name}): leaving samples out is for one output; take the columns of y one by one"
        )
    if isinstance(model, KernelWeights):
        raise TypeError(
            f"leave_one_out is not offered for {name}: it learns its kernel weights from all targets, and each sample "
            "that is left out changes them. Use sklearn.model_selection.cross_val_predict(model, X, y, "
            "cv=LeaveOneOut()), which learns them n times; of a fitted machine with its weights as they are, "
            f"leave_one_out({'SVC' if is_classifier(model) else 'SVR'}(C=model.C, kernel=model.kernel_), X, y)"
        )
    if np.size(getattr(model, "quantiles", 0)) > 1:
        raise ValueError(
            f"leave_one_out({name}) is for one quantile, but quantiles={model.quantiles!r}, whose predictions are put "
            "in order together; take them one by one, quantiles=0.5, or use "
            "sklearn.model_selection.cross_val_predict(model, X, y, cv=LeaveOneOut())"
        )


def _of_others(fit: Fit, one: ExactSolution) -> Floats:
    """f of every merged sample, also of those that the problem is not about."""
    gram = fit.gram()
    coefficients = np.zeros(gram.n)
    coefficients[one.rows] = sums_by(one.problem.row, one.beta, len(one.rows))
    return np.asarray(gram.product(coefficients) + one.b)


@dataclass(frozen=True, eq=False)
class _Removal:
    """The exact solution without one of the caller's rows."""

    row: int
    moved: bool  # whether it differs from that with all rows
    problem: DualProblem
    exact: Homotopy
    variables: list[int]  # those of the row's sample
    share: float  # of the sample's weight that the row has

    def solved(self) -> tuple[Floats, float, float, bool]:
        """β, the b that a fit without the row would choose, f of the row itself, and whether both are the only ones."""
        t, v = self.exact.t, self.variables[0]
        beta = self.exact.beta(t)
        h = self.exact.gradient(t, beta)
        among = np.ones(len(h), dtype=np.bool_)
        among[self.variables] = self.share < 1
        b, sole = chosen_b(self.problem, beta, h, among)
        return beta, b, float(self.problem.p[v] - h[v] - self.problem.d[v] * beta[v]) + b, sole


def _removals(fit: Fit, one: ExactSolution) -> Iterator[_Removal]:
    """The solutions without each of the caller's rows that the problem is about."""
    merged, problem = fit.merged, one.problem
    place = np.full(len(merged.y), -1)
    place[one.rows] = np.arange(len(one.rows))
    beta, curved = one.beta, bool(problem.d.any())
    own: list[list[int]] = [[] for _ in one.rows]
    for v, row in enumerate(problem.row.tolist()):
        own[row].append(v)
    for i, sample, share in zip(merged.rows.tolist(), merged.member.tolist(), merged.share.tolist(), strict=True):
        if place[sample] < 0:
            continue
        variables, less, exact = own[place[sample]], problem, one.homotopy
        moved = bool(beta[variables].any())
        if moved:
            less = _with_less(problem, variables, share)
            if curved and share < 1:
                exact = settled(less, one.K, beta)
            else:
                exact = without(problem, one.K, one.homotopy, beta, variables, share)
        yield _Removal(i, moved, less, exact, variables, share)


def _with_less(problem: DualProblem, variables: list[int], share: float) -> DualProblem:
    """The problem with a share of a sample's weight taken away."""
    lower, upper, d = problem.lower.copy(), problem.upper.copy(), problem.d.copy()
    if share == 1:
        lower[variables] = upper[variables] = 0.0
    else:
        lower[variables] *= 1 - share
        upper[variables] *= 1 - share
        d[variables] /= 1 - share
    return DualProblem(problem.p, lower, upper, d, problem.row, problem.group, problem.totals)


def _expect_room(machine: Any, n: int, functions: int) -> None:
    """Raise MemoryError where the coefficients of so many functions exceed the machine's cache."""
    need = 8 * n * (functions + 1)
    if need > machine.cache_size * 1e6:
        raise MemoryError(
            f"leaving out each of {functions} samples that change f takes {megabytes(need)}, but "
            f"cache_size={machine.cache_size:g} allows less; use a number of folds, or raise cache_size"
        )


@dataclass(frozen=True, eq=False)
class FunctionsLeftOut:
    """All n functions that leave one sample out, exactly; one output for each that differs from the others."""

    expansion: Expansion
    output: Indices  # the output without each of the caller's rows
    residuals: Floats  # y_i − f₋ᵢ(x_i)
    n_threads: int

    @classmethod
    def of(cls, machine: Any, X: Any, y: Floats, sample_weight: Any) -> FunctionsLeftOut:
        """From a trained machine of one output and its training samples."""
        fit, (one,) = exact_solutions(machine, X, y, sample_weight)
        n, own = len(one.rows), np.zeros(fit.n)
        moved = int(np.isin(fit.merged.member, one.problem.row[np.flatnonzero(one.beta)]).sum())
        _expect_room(machine, n, moved)
        if len(fit.merged.rows) < fit.n:
            raise ValueError("cv='leave-one-out' needs positive weights; leave samples without weight out")
        output = np.zeros(fit.n, dtype=np.intp)
        coefficients, offsets = [sums_by(one.problem.row, one.beta, n)], [one.b]
        for found in _removals(fit, one):
            beta, b, own[found.row], sole = found.solved()
            # Without a free variable b lies anywhere in an interval, which a sample with α = 0 may bound.
            if found.moved or (not sole and b != one.b):
                _expect_room(machine, n, len(offsets))
                output[found.row] = len(offsets)
                coefficients.append(sums_by(one.problem.row, beta, n))
                offsets.append(b)
        table = np.column_stack(coefficients)
        # A regularised b is the weight of a constant feature.
        each_b = np.asarray(table.sum(axis=0) if fit.constant else offsets, dtype=np.float64)
        used = np.flatnonzero(table.any(axis=1))
        expansion = expansion_of(fit, np.ascontiguousarray(table[used]), each_b, used)
        return cls(expansion, output, y - own, fit.limits.n_threads)

    def __call__(self, X: Any) -> Floats:
        """A row for each x, a column for each sample left out."""
        return np.asarray(self.expansion(X, self.n_threads)[:, self.output])
