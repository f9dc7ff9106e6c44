"""What regression machines of dual problems share: a real target, predictions f(x), several of them for several
tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from mercer.arrays import Floats, Indices
from mercer.data.targets import codes_of, numbers
from mercer.fitting.families.dual_machine import DualMachine
from mercer.fitting.families.units import unit_of_targets
from mercer.fitting.pipeline.attached import RegressorMethods
from mercer.fitting.pipeline.fit import Fit
from mercer.fitting.pipeline.machine import Machine
from mercer.fitting.pipeline.task import Solutions, Solved, Task, Tasks
from mercer.fitting.reports.coefficients import Bounds
from mercer.fitting.reports.price_and_scale import Remarks, remarks_on_scale
from mercer.problems.dual_problem import DualProblem


class Regressor(RegressorMethods, RegressorMixin, Machine):  # type: ignore[misc]  # scikit-learn is untyped
    """A machine whose target is one number per sample."""

    def _read(self, y: Any) -> tuple[Indices, Floats]:
        """Codes with which equal (x, y) merge, and the targets of the caller's rows."""
        target = numbers(y)
        return codes_of(target), target

    def predict(self, X: Any) -> Floats:
        """f(x) of each sample.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`.
        """
        return np.asarray(self._decision(X)[:, 0])


class KernelRegressor(Regressor, DualMachine):
    """A regressor of a dual problem; one adds its parameters and its problem."""

    def _problem(self, fit: Fit, y: Floats, weight: Floats) -> DualProblem:
        """The problem on samples with these targets and weights, in the order of the rows of K."""
        raise NotImplementedError

    def _tasks(self, fit: Fit) -> Tasks:
        rows = np.arange(len(fit.merged.y))
        y, weight = fit.target[fit.merged.first], fit.merged.weight
        problem = self._problem(fit, y, weight)
        solve = self._solver_for(fit, rows, problem)
        return Tasks([Task("", problem, solve, rows, unit=unit_of_targets(y, weight))])

    def _conclude(self, fit: Fit, solved: Solutions) -> None:
        def box() -> Bounds:
            one = self._problem(fit, fit.target[:1], np.ones(1))
            return Bounds(float(one.upper.max()), -float(one.lower.min()))

        self._conclude_outputs(fit, solved, box, np.array([self._bias(solved[0])]))
        self.n_iter_ = solved[0].solution.steps

    def _remarks(self, fit: Fit, solved: Solutions) -> Remarks:
        """Whether C and ε match the size of y."""
        problem, solution, y = solved[0].task.problem, solved[0].solution, fit.target[fit.merged.first]
        return remarks_on_scale(
            self,
            y,
            solution.beta,
            (problem.lower, problem.upper),
            problem.row,
            lambda: float(np.median(problem.upper) * np.median(np.abs(fit.diagonal))),
            lambda: solution.u if solution.u is not None else y,
        )

    def _bias(self, solved: Solved) -> float:
        return solved.bias(getattr(self, "bias", True))
