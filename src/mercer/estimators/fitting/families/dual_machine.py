"""Machines whose problems are DualProblems: ‖w‖, which samples are free or bounded, and training that goes on from the
last solution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitting.mixins import MachineMethods
from mercer.estimators.fitting.pipeline.fit import Fit, read_samples
from mercer.estimators.fitting.pipeline.machine import CERTIFIED, KernelChoice, Machine, RandomState, Training
from mercer.estimators.fitting.pipeline.reporting import warn_user, with_callbacks
from mercer.estimators.fitting.pipeline.state import (
    Array,
    BoundKernel,
    Count,
    Counts,
    Function,
    IndexArray,
    Number,
    Shape,
    Unsaved,
    Vectors,
    fitted,
)
from mercer.estimators.fitting.pipeline.task import Solutions, Tasks
from mercer.estimators.fitting.pipeline.warm_start import TrainingSet, WarmStart, keys_of, targets_of, task_start
from mercer.estimators.fitting.reports.coefficients import (
    Box,
    allow_for_copies,
    conclude_support,
    expansion_of,
    own_table,
    weight_vector,
)
from mercer.estimators.fitting.reports.dual_margins import bias_intervals, dual_status
from mercer.places import rows_for
from mercer.problems.dual_problem import DualProblem
from mercer.runtime.available import available_if
from mercer.runtime.shared_docs import shared_docs
from mercer.samples import checks as samples
from mercer.samples.arrays import Data, Floats, Indices, Weights, freeze, n_samples, take
from mercer.samples.coefficient_table import Table
from mercer.samples.engine import on_host
from mercer.solvers import SOLVERS
from mercer.solvers.block_steps import unbounded_dual
from mercer.solvers.linear.dual_kernel import linear_problem, solve_by_rows
from mercer.solvers.linear.newton import few_columns
from mercer.solvers.solution import Solve
from mercer.solvers.solver import Solver, choose_solver


def takes_samples(machine: Machine) -> bool:
    """Whether a machine can be given some samples after others; AttributeError, so that `hasattr` says no, if not."""
    if getattr(machine.kernel, "accepts", machine.kernel) in ("gram", "precomputed"):
        raise AttributeError(
            "partial_fit cannot add samples to a precomputed kernel, which needs their values with all others; fit the "
            "larger matrix (SVC and the like: with warm_start=True, the old samples first)"
        )
    return True


@dataclass(eq=False, repr=False)
class DualMachine(MachineMethods, Machine):
    """A machine of dual problems on the Gram matrix of its samples."""

    _FITTED = fitted(
        CERTIFIED,
        kernel_=BoundKernel(required=True),
        _expansion_=Function(required=True),
        shape_fit_=Shape(required=True, unless="_compression_"),
        support_=IndexArray("samples", required=True, unless="_compression_"),
        support_vectors_=Vectors("support"),
        n_support_=Counts(1, "support", required=True, unless="_compression_"),
        dual_coef_=Array("outputs", "support", required=True, unless="_compression_"),
        fit_status_=Count(),
        n_kernel_values_=Count(),
        rkhs_norm_=Number(per_output=True),
        _standing_=Array("samples", "outputs", sparse=True),
        _b_range_=Array("outputs", 2, nan=True),
        _memory_=Unsaved(),
        # LIBSVM's probabilities, which only the command line fits
        probA_=Array("outputs"),
        probB_=Array("outputs", needs="probA_"),
        prob_density_marks_=Array(10),
    )

    _: KW_ONLY
    max_time: float | None = None
    kernel: KernelChoice = "rbf"
    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0
    shrinking: bool = True
    tol: float | None = 1e-3
    gap_tol: float | None = None
    cache_size: float = 1000
    max_iter: int = -1
    solver: str = "auto"
    warm_start: bool = False
    random_state: RandomState = None

    def _solver(self, own: Solver | None = None, solvers: Mapping[str, Solver] = SOLVERS) -> Solve:
        """The solver that `solver` names, with its options; `own` is the only one that a special problem has."""
        chosen = choose_solver(self.solver, solvers, own)
        return partial(chosen, shrinking=bool(self.shrinking))

    def _solver_for(self, fit: Fit, rows: Indices, problem: DualProblem) -> Solve:
        """The solver of the problem on these samples: of a linear kernel on fewer columns than rows it is trained in
        (w, b), where pairs of rows would crawl."""
        linear = None
        if isinstance(self.kernel, str) and self.kernel == "linear" and not fit.constant:
            few = few_columns(len(rows), fit.merged.samples.shape[1]) and self.solver == "auto"
            linear = linear_problem(problem) if few else None
        if linear is None:
            return self._solver()
        X, n_threads = fit.merged.samples, fit.limits.n_threads
        return self._solver(partial(solve_by_rows, linear=linear, rows_of=lambda: rows_for(take(X, rows), n_threads)))

    def _solver_around(self, outer: Solver) -> Solve:
        """A solver that asks the one that `solver` names several times."""
        chosen = choose_solver(self.solver, SOLVERS)
        return partial(outer, inner_solver=chosen, shrinking=bool(self.shrinking))

    # --- the pipeline's hooks --------------------------------------------------------------------------------------

    def _starts(self, fit: Fit, tasks: Tasks[DualProblem], before: WarmStart | None) -> list[Any]:
        if before is None:
            return [None] * len(tasks)
        keys, targets = _keys_and_targets(fit)
        return [before.start(t.name, t.rows, t.problem, keys, targets) for t in tasks]

    def _record_end(self, solved: Solutions[DualProblem]) -> None:
        super()._record_end(solved)
        proof, decided = self.certificate_, "no margin" not in solved.reasons
        if decided and (math.isnan(proof.gap) or not math.isfinite(proof.dual)):
            if proof.gap_measures != "optimality" and not np.isfinite(solved.columns.upper).all():
                raise unbounded_dual()
            raise FloatingPointError(
                "the values of the objective overflow float64, so that nothing can be proven: kernel values, weights "
                "or coefficients are too large together; scale the features or the weights, or lower C"
            )
        self.fit_status_ = int(not self.converged_)

    def _conclude_outputs(self, fit: Fit, solved: Solutions[DualProblem], box: Box, b: Floats) -> None:
        """The fitted attributes of a machine without classes: one output per task, a row of `dual_coef_` each.

        Every task is about all merged samples.
        """
        merged, beta = fit.merged, solved.columns.coefficients.reshape(len(solved), -1)
        self.intercept_ = freeze(b)
        used = np.flatnonzero(beta.any(axis=0))
        self._expansion_ = expansion_of(fit, np.ascontiguousarray(beta[:, used].T), b, used)
        own = beta[:, merged.member]
        if not merged.unique:
            joint = Table.of_array(beta.T)
            parts = own_table(joint, fit, box, lambda: solved.largest_ridge)
            allow_for_copies(self, fit, solved, (joint, parts))
            own = parts.toarray().T
        order = np.flatnonzero(own.any(axis=0))
        conclude_support(self, fit, order)
        self.n_support_ = freeze(np.array([len(order)], dtype=np.int32))
        self.dual_coef_ = freeze(np.ascontiguousarray(own[:, order]))
        self._conclude_duals(fit, solved)

    def _conclude_duals(self, fit: Fit, solved: Solutions[DualProblem], scales: Floats | None = None) -> None:
        """What the duals tell beyond the coefficients, of which the expansion's are `scales` times as large."""
        self.rkhs_norm_ = self._norms(solved, scales)
        status = dual_status(fit.merged, solved, fit.n)
        self._standing_ = freeze(status.matrix())
        self._b_range_ = bias_intervals(solved, status)
        if len(solved) == 1 and fit.kernel_values:  # of several problems, views count their own
            self.n_kernel_values_ = fit.kernel_values

    def _norms(self, solved: Solutions[DualProblem], scales: Floats | None) -> Any:
        """‖w‖ of each output, in the scale of the expansion; a number where there is one."""
        starts, coefficients = solved.columns.row_ends[:-1], solved.columns.coefficients
        energies = np.add.reduceat(coefficients * solved.u, starts)
        if self._constant_feature:  # u was computed with k + 1
            energies -= np.add.reduceat(coefficients, starts) ** 2
        norms = np.sqrt(np.maximum(energies, 0.0)) * (1.0 if scales is None else np.abs(scales))
        return float(norms[0]) if len(norms) == 1 else freeze(norms)

    @property
    def coef_(self) -> Any:
        """w, one row per output, dense whatever the samples are; only for a linear kernel."""
        return weight_vector(self)

    def _keep(self, fit: Fit, solved: Solutions[DualProblem]) -> None:
        keys, targets = _keys_and_targets(fit)
        starts = {
            s.task.name: task_start(s.task.rows, s.task.problem, s.solution)
            for s in solved
            if isinstance(s.task.problem, DualProblem)
        }
        self._memory_ = WarmStart(keys, targets, starts, TrainingSet.of(fit.X, fit.y, fit.sample_weight))

    # --- going on --------------------------------------------------------------------------------------------------

    @available_if(takes_samples)
    @with_callbacks
    @shared_docs
    def partial_fit(self, X: Data, y: ArrayLike | None = None, sample_weight: Weights = None) -> Self:
        """Add samples to those known and train on all of them, from the last solution on.

        %(samples that follow)s
        y : array of shape (n_samples,)
            What to learn of each sample.
        %(given twice)s

        Returns
        -------
        self
        """
        before = self._last_training()
        if before is None:
            return self._become(self._trained(X, y, sample_weight, Training(self, keeps=True, exact=True)))
        X = read_samples(self, X, self._kernel(), reset=False)
        y = None if y is None else column_or_1d(on_host(y), warn=True)
        samples.check_same_length(X, y)
        everything = before.samples.followed_by(X, y, samples.weights(on_host(sample_weight), n_samples(X)))
        return self._go_on(everything, before)

    def forget(self, indices: Any) -> Self:
        """Take samples away from those known, and train on the others, from the last solution on.

        The result is that of `partial_fit` without them. The machine must have kept its samples: train it by
        `partial_fit`, or by `fit` with warm_start=True.

        Parameters
        ----------
        indices : array of int
            Places of the samples in the order in which they came, from 0 on and each once, as in `support_`. Later
            ones move up.

        Returns
        -------
        self
        """
        before: WarmStart | None = getattr(self, "_memory_", None)
        if before is None:
            raise ValueError(
                "there are no samples to forget, since none were kept; train by partial_fit, or by fit with "
                "warm_start=True"
            )
        return self._go_on(before.samples.without(indices, square=self.kernel_.accepts == "gram"), before)

    def for_support_vectors(self) -> Self:
        """A copy of a machine with a precomputed kernel that predicts from the support vectors' columns alone.

        Its `predict` and the like take the values between new samples and those that `support_` names here, in that
        order: K[:, model.support_] in the place of K. It has no other training samples to speak of.
        """
        check_is_fitted(self)
        expansion, n = self._expansion_, len(self.support_)
        if expansion.columns is None:
            raise ValueError(f"{self.kernel_!r} is not precomputed: predict takes samples, and no columns")
        place = np.empty(expansion.n_columns, dtype=np.intp)
        place[self.support_] = np.arange(n)
        made = copy(self)
        made._expansion_ = replace(expansion, columns=place[expansion.columns], n_columns=n)
        made.support_, made.shape_fit_, made.n_features_in_ = freeze(np.arange(n, dtype=np.int32)), (n, n), n
        for name in ("_standing_", "_memory_", "feature_names_in_"):  # of all training samples
            made.__dict__.pop(name, None)
        return made

    def _go_on(self, everything: tuple[Any, Any, Floats], before: WarmStart) -> Self:
        """Train on samples most of which were trained on before."""
        trained = self._trained(*everything, Training(self, before, keeps=True, exact=True))
        if hasattr(self, "feature_names_in_"):
            trained.feature_names_in_ = self.feature_names_in_
        return self._become(trained)

    def _last_training(self) -> WarmStart | None:
        """What partial_fit can add to: None before the first call."""
        before: WarmStart | None = getattr(self, "_memory_", None)
        if before is None and hasattr(self, "_expansion_"):
            warn_user(
                "fit kept no samples that partial_fit could add to, so it starts anew with the given ones; call "
                "partial_fit from the first samples on, or fit with warm_start=True",
                UserWarning,
            )
        return before


def _keys_and_targets(fit: Fit) -> tuple[Any, Any]:
    assert fit.kernel is not None
    return keys_of(fit.merged, fit.kernel.accepts, fit.limits.n_threads), targets_of(fit.merged, fit.y)


# --- what `tol` is measured in ----------------------------------------------------------------------------------------
# 1, in the scale of f, or less where all that f could tell apart is smaller than that. A machine with a penalty C
# measures f in labels ±1 or in the unit of y; for one without C see mercer.solvers.dual.one_class. With targets of size
# 1e-4 an absolute tolerance would be met before training has begun. The unit is never above 1: a fit that converged has
# a violation of at most `tol`.

# A spread below this share of the values is rounding, or near enough that no tolerance relative to it could be met.
_RESOLVED_SHARE = 1e-9
# Weights beyond this, or below its inverse, leave the range of float64 when they are squared.
_LARGEST_WEIGHT = 1e140
# Below this size squares underflow, and no objective tells two models apart.
_SMALLEST = 1e-140


def unit_of_targets(y: Floats, weight: Floats) -> float:
    """The standard deviation of y, at most 1."""
    largest = float(np.abs(y).max())
    if largest < _SMALLEST:
        return 1.0
    scaled, share = y / largest, weight / weight.sum()
    deviation = float(np.sqrt(share @ (scaled - share @ scaled) ** 2))
    return min(1.0, largest * max(deviation, _RESOLVED_SHARE))


def expect_squares(weight: Floats) -> None:
    """Refuse weights whose squares leave the range of float64, in a machine that knows only their proportions."""
    largest = float(weight.max())
    if not 1 / _LARGEST_WEIGHT <= largest <= _LARGEST_WEIGHT:
        raise FloatingPointError(
            f"sample weights of {largest:.3g} leave the range of float64 when they are squared; scale them: only their "
            "proportions matter here"
        )
