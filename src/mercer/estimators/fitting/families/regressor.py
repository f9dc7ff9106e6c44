"""Base classes of regressors, and warnings if C or ε does not match the scale of y."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from mercer.estimators.fitting.families.dual_machine import DualMachine, target_unit
from mercer.estimators.fitting.mixins import RegressorMethods, ScoresR2
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.machine import Machine
from mercer.estimators.fitting.pipeline.state import Array, fitted
from mercer.estimators.fitting.pipeline.task import Solutions, Solved, Task, Tasks
from mercer.estimators.fitting.reports.coefficients import Bounds
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Data, Floats, Indices
from mercer.samples.checks import numbers, target_codes
from mercer.samples.engine import like_input


class Regressor(RegressorMethods, ScoresR2, Machine):
    """Base class of regressors with one target value per sample."""

    _FITTED = fitted(intercept_=Array(1, required=True))

    def _read(self, y: ArrayLike | None) -> tuple[Indices, Floats]:
        """Return codes by which samples with equal (x, y) are merged, and the targets of the caller's rows."""
        target = numbers(y)
        return target_codes(target), target

    @like_input
    def predict(self, X: Data) -> Floats:
        """Predict the target of each sample.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`. For a precomputed kernel, the kernel values with the training samples.

        Returns
        -------
        array of shape (n_samples,)
            Predictions f(x).
        """
        return np.asarray(self._decision(X)[:, 0])


class KernelRegressor(Regressor, DualMachine):
    """Base class of regressors that solve a dual problem; subclasses add parameters and the problem."""

    def _problem(self, fit: Fit, y: Floats, weight: Floats) -> DualProblem:
        """Return the problem on samples with these targets and weights, in the order of the rows of K."""
        raise NotImplementedError

    def _tasks(self, fit: Fit) -> Tasks[DualProblem]:
        """Return the problems to solve, with their solvers."""
        rows = np.arange(len(fit.merged.y))
        y, weight = fit.target[fit.merged.first], fit.merged.weight
        problem = self._problem(fit, y, weight)
        solve = self._solver_for(fit, rows, problem)
        return Tasks([Task("", problem, solve, rows, unit=target_unit(y, weight))])

    def _conclude(self, fit: Fit, solved: Solutions[DualProblem]) -> None:
        """Set the fitted attributes that only this kind of machine has."""

        def box() -> Bounds:
            unit_problem = self._problem(fit, fit.target[:1], np.ones(1))
            return Bounds(float(unit_problem.upper.max()), -float(unit_problem.lower.min()))

        self._conclude_outputs(fit, solved, box, np.array([self._bias(solved[0])]))
        self.n_iter_ = solved[0].solution.steps

    def _remarks(self, fit: Fit, solved: Solutions[DualProblem]) -> Remarks:
        """Return warnings if C or ε does not match the scale of y."""
        target = fit.target[fit.merged.first]
        columns = [target] if target.ndim == 1 else list(target.T)
        return [remark for y, s in zip(columns, solved, strict=False) for remark in self._remarks_on(fit, y, s)]

    def _remarks_on(self, fit: Fit, y: Floats, solved: Solved[DualProblem]) -> Remarks:
        """Return warnings about one column of targets y and its solution."""
        problem, solution = solved.task.problem, solved.solution
        return remarks_on_scale(
            self,
            y,
            solution.beta,
            (problem.lower, problem.upper),
            problem.row,
            lambda: float(np.median(problem.upper) * np.median(np.abs(fit.diagonal))),
            lambda: solution.u if solution.u is not None else y,
        )

    def _bias(self, solved: Solved[DualProblem]) -> float:
        return solved.bias(getattr(self, "bias", True))


Remarks = list[tuple[str, type[Warning]]]

# --- do C and ε match the scale of y? ---------------------------------------------------------------------------------
# C and ε are in the units of y:  |β_i| ≤ C_i,  f(x_i) = Σ_j β_j k(x_i, x_j) + b.  A single sample x changes f(x) by at
# most C·k(x, x). If that is small compared with the spread of y, and all nonzero β are at their bound, f cannot follow
# y, even at the certified optimum: targets in the thousands with C = 1 give R² of about 0. Conversely, if all of y lies
# within the tube, f is constant.

# If the spread of y is within this factor of 1, a small C or a wide tube is taken to be intended.
_USUAL_FACTOR = 5.0
_QUARTILES_APART = 1.349  # standard deviations of a normal distribution


def remarks_on_scale(
    machine: Machine,
    y: Floats,
    beta: Floats,
    box: tuple[Floats, Floats],
    sample: Indices,
    largest_change: Callable[[], float],
    outputs: Callable[[], Floats],
) -> Remarks:
    """Return warnings if C or ε does not match the scale of y.

    `sample` is the index of each variable's sample. `largest_change` computes the largest change of f by a sample of
    median length and weight, and `outputs` computes f − b, both only if they are needed.
    """
    n, (lower, upper) = len(y), box
    is_free = (beta > lower) & (beta < upper) & (beta != 0)
    few_free = max(2, 0.01 * n)  # too few free samples for f to follow y: those that determine b, or one in a hundred
    # With fewer than twenty samples, all may be at their bound legitimately. The cheap test comes first, since
    # quartiles take as long as the steps of a small solve; a sample has at most two variables.
    if n < 20 or np.count_nonzero(is_free) > 2 * few_free or not np.isfinite(upper).all():
        return []
    spread = _spread(y)
    if spread == 0 or not np.isfinite(spread):
        return []
    n_free, n_used = len(np.unique(sample[is_free])), len(np.unique(sample[beta != 0]))
    epsilon = getattr(machine, "epsilon", None)
    if n_used == 0 and epsilon and spread < 1 / _USUAL_FACTOR:
        text = (
            f"all of y lies inside the tube of epsilon={epsilon:g}, so f is constant: half of y lies within "
            f"{spread * _QUARTILES_APART:.2g}. Standardise y (sklearn.compose.TransformedTargetRegressor), or use "
            f"{_suggested_parameters(machine, spread)}"
        )
        return [(text, UserWarning)]
    # A fifth of the samples at their bound is enough for a warning: NuSVR keeps the fraction 1 − ν inside its tube.
    if n_free > few_free or n_used - n_free < 0.2 * n or spread < _USUAL_FACTOR or largest_change() >= spread:
        return []
    f_spread = _spread(outputs())
    if f_spread >= 0.5 * spread:
        return []
    count = f"all {n:,}" if n_used == n else f"{n_used:,} of {n:,}"
    text = (
        f"{count} samples end at their bound, so f hardly follows y: the spread of f is {f_spread:.2g}, and that of y "
        f"is {spread:.2g}. The penalty for errors is too small for targets of this size. Standardise y "
        f"(sklearn.compose.TransformedTargetRegressor), or use {_suggested_parameters(machine, spread)}"
    )
    return [(text, UserWarning)]


def _spread(values: Floats) -> float:
    """Return a robust estimate of the standard deviation, from the quartiles."""
    low, high = np.percentile(values, [25, 75])
    return float(high - low) / _QUARTILES_APART


def _suggested_parameters(machine: Machine, spread: float) -> str:
    """Return, as text, parameters with the effect on y that the present ones would have on y/spread."""
    theta, epsilon = getattr(machine, "theta", None), getattr(machine, "epsilon", None)
    penalty = f"C={machine.C * spread:.2g}" if theta is None else f"theta={theta / spread:.2g}"
    return f"{penalty} and epsilon={epsilon * spread:.2g}" if epsilon else penalty
