"""Least squares for one λ, and recursive least squares: samples of a linear kernel that are added and forgotten."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from mercer.arrays import Floats
from mercer.certificates.least_squares import EXACT_GAP
from mercer.data import samples
from mercer.fitting.families.least_squares_machine import LeastSquaresMachine, checked_lam
from mercer.fitting.pipeline.fit import Fit, read_samples
from mercer.fitting.pipeline.limits import Limits
from mercer.fitting.pipeline.state import fitted_names
from mercer.fitting.pipeline.task import Solutions, Solved, Task, Tasks
from mercer.gram.linear_gram import linear_scale
from mercer.gram.sums import Sums
from mercer.parameters import one_of
from mercer.problems.least_squares import LeastSquares, RidgeProblem
from mercer.solvers.least_squares.choose import SOLVERS, solve_least_squares
from mercer.solvers.least_squares.covariance import solve_sums
from mercer.solvers.least_squares.solution import covariance_bytes, memory_error


class RecursiveLeastSquares(LeastSquaresMachine):
    """A machine with a λ of its own; for linear kernels, it can go on from the sums over its samples."""

    def _check_parameters(self) -> None:
        one_of("solver", self.solver, SOLVERS)
        super()._check_parameters()
        self._lam()

    def _lam(self) -> float:
        return checked_lam("lam", self.lam)

    def _tasks(self, fit: Fit) -> Tasks:
        return Tasks([Task("", self._problem(fit, self._lam()), partial(solve_least_squares, solver=self.solver))])

    def _conclude(self, fit: Fit, solved: Solutions) -> None:
        self._conclude_rows(fit, solved[0].solution, self._lam())

    def _learn(self, X: Any, y: Any, sample_weight: Any, sign: int, classes: Any = None) -> Self:
        """Add samples to the sums (sign 1) or take them out (−1), and solve again; all or nothing."""
        trained = copy.copy(self)
        trained._go_on(X, y, sample_weight, sign, classes)
        return self._become(trained)

    def _go_on(self, X: Any, y: Any, sample_weight: Any, sign: int, classes: Any) -> None:
        first = not hasattr(self, "_expansion_")
        if first and sign < 0:
            check_is_fitted(self)
        if not first and not hasattr(self, "_sums_"):
            raise ValueError(
                f"this {type(self).__name__} was fitted with solver {self.solver_!r}, which keeps no sums over the "
                "samples; call partial_fit from the start, or fit with solver='covariance'"
            )
        self._check_parameters()
        kernel = self._kernel()
        X = read_samples(self, X, kernel, reset=first)
        limits = Limits.of(self, self._max_steps(0))
        d = X.shape[1]
        if covariance_bytes(d) > limits.budget:
            raise memory_error(f"the covariance of {d} features", covariance_bytes(d), limits.budget, "fewer features")
        target = self._targets(y, classes)
        check_consistent_length(X, target.Y)
        weight, target = self._weigh(target, target.codes, samples.weights(sample_weight, len(target.Y)))
        sums = self._sums_with(X, target.Y, weight, sign)
        solve = partial(solve_sums, scale=linear_scale(kernel) or 1.0, n_threads=limits.n_threads)
        task = Task("", RidgeProblem(self._lam(), sums.bias), solve)
        solved = Solved(task, *task.solve(task.problem, sums, limits.stop))
        for name in fitted_names(self):
            if name not in ("n_features_in_", "feature_names_in_"):
                delattr(self, name)
        self._record_end(Solutions.of([solved]))
        self._conclude_solution(kernel, solved.solution, self._lam())
        self._conclude_targets(target)
        if not self.converged_:
            self._warn_early(self._forgotten() if sign < 0 else self._unfinished(X))

    def _forgotten(self) -> str:
        return (
            f"{type(self).__name__} has forgotten samples so large that rounding has eaten the digits of what is left: "
            f"its certificate proves a relative gap of {self.certificate_.relative_gap:.1e}, not of {EXACT_GAP:g}; fit "
            "the samples that are left anew"
        )

    def _sums_with(self, X: Any, Y: Floats, weight: Floats, sign: int) -> Sums:
        """The sums over what was learnt before, with these samples or without them."""
        rows = np.flatnonzero(weight > 0)
        sums: Sums | None = getattr(self, "_sums_", None)
        if len(rows):
            if sums is not None and sums.xy.shape[1] != Y.shape[1]:
                raise ValueError(f"y has {Y.shape[1]} outputs, but the samples before had {sums.xy.shape[1]}")
            if sums is not None and sums.bias != bool(self.bias):
                raise ValueError(
                    f"bias={self.bias!r}, but the samples before were learnt with bias={sums.bias}, about "
                    f"{'their mean' if sums.bias else 'zero'}; set it back, or make a new estimator"
                )
            problem = LeastSquares(Y[rows], weight[rows], np.arange(len(rows)), len(rows), bool(self.bias))
            fresh = Sums.of(X[rows] if len(rows) < len(weight) else X, problem)
            sums = fresh if sums is None else sums.plus(fresh) if sign > 0 else sums.minus(fresh)
        if sums is None:
            raise ValueError("all sample weights are zero: there is nothing to learn; give some samples weight")
        return sums


def has_linear_kernel(estimator: Any) -> bool:
    """Whether samples can be added and forgotten, or the AttributeError that says why not."""
    if linear_scale(estimator._kernel()) is None:
        raise AttributeError(
            f"partial_fit and forget need a linear kernel, not {estimator.kernel!r}; fit all samples at once"
        )
    return True
