"""Base class of machines that solve dual problems on a Gram matrix, with warm starts and updates of the samples."""

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
from mercer.estimators.fitting.pipeline.machine import CERTIFIED, FitOptions, KernelChoice, Machine, RandomState
from mercer.estimators.fitting.pipeline.reporting import warn_user, with_callbacks
from mercer.estimators.fitting.pipeline.state import (
    Array,
    BoundKernel,
    Count,
    Counts,
    IndexArray,
    KernelExpansion,
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
    caller_table,
    conclude_support,
    expansion_of,
    weight_vector,
)
from mercer.estimators.fitting.reports.dual_margins import bias_intervals, dual_status
from mercer.places import rows_for
from mercer.problems.dual_problem import DualProblem
from mercer.runtime.available import available_if
from mercer.runtime.shared_docs import shared_docs
from mercer.samples import checks
from mercer.samples.arrays import Data, Floats, Indices, Weights, freeze, n_samples, take
from mercer.samples.coefficient_table import CoefficientTable
from mercer.samples.engine import on_host
from mercer.solvers import SOLVERS
from mercer.solvers.block_steps import unbounded_dual_error
from mercer.solvers.linear.dual_kernel import linear_problem, solve_by_rows
from mercer.solvers.linear.newton import few_columns
from mercer.solvers.solution import Solve
from mercer.solvers.solver import Solver, choose_solver


def can_add_samples(machine: Machine) -> bool:
    """Return True if samples can be added to a machine; otherwise raise AttributeError, so that `hasattr` is False."""
    if getattr(machine.kernel, "accepts", machine.kernel) in ("gram", "precomputed"):
        raise AttributeError(
            "partial_fit cannot add samples to a precomputed kernel, which needs their values with all others; fit the "
            "larger matrix (for SVC and similar machines with warm_start=True and the old samples first)"
        )
    return True


@dataclass(eq=False, repr=False)
class DualMachine(MachineMethods, Machine):
    """Base class of machines that solve dual problems on the Gram matrix of their samples."""

    _FITTED = fitted(
        CERTIFIED,
        kernel_=BoundKernel(required=True),
        _expansion_=KernelExpansion(required=True),
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
        # LIBSVM's probabilities, which are fitted only by the command line
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

    def _solver(self, required: Solver | None = None, solvers: Mapping[str, Solver] = SOLVERS) -> Solve:
        """Return the solver that `solver` names, with options bound; a special problem has one `required` solver."""
        solver = choose_solver(self.solver, solvers, required)
        return partial(solver, shrinking=bool(self.shrinking))

    def _solver_for(self, fit: Fit, rows: Indices, problem: DualProblem) -> Solve:
        """Return the solver of a problem on these samples.

        With a linear kernel and fewer features than samples, it works in (w, b), since decomposition would be slow.
        """
        linear = None
        if isinstance(self.kernel, str) and self.kernel == "linear" and not fit.constant:
            has_few_columns = few_columns(len(rows), fit.merged.samples.shape[1]) and self.solver == "auto"
            linear = linear_problem(problem) if has_few_columns else None
        if linear is None:
            return self._solver()
        X, n_threads = fit.merged.samples, fit.limits.n_threads
        return self._solver(partial(solve_by_rows, linear=linear, rows_of=lambda: rows_for(take(X, rows), n_threads)))

    def _nested_solver(self, outer: Solver) -> Solve:
        """Return `outer` bound to the solver that `solver` names, which `outer` calls several times."""
        solver = choose_solver(self.solver, SOLVERS)
        return partial(outer, inner_solver=solver, shrinking=bool(self.shrinking))

    # --- the pipeline's hooks --------------------------------------------------------------------------------------

    def _starts(self, fit: Fit, tasks: Tasks[DualProblem], last_state: WarmStart | None) -> list[Any]:
        """Return for each task a start from the last solution of its samples, or None."""
        if last_state is None:
            return [None] * len(tasks)
        keys, targets = _keys_and_targets(fit)
        return [last_state.start(t.name, t.rows, t.problem, keys, targets) for t in tasks]

    def _record_end(self, solved: Solutions[DualProblem]) -> None:
        """Set the certificate and the reason of the end; raise if the dual is unbounded or overflows."""
        super()._record_end(solved)
        proof, is_decided = self.certificate_, "no margin" not in solved.reasons
        if is_decided and (math.isnan(proof.gap) or not math.isfinite(proof.dual)):
            if proof.gap_measures != "optimality" and not np.isfinite(solved.columns.upper).all():
                raise unbounded_dual_error()
            raise FloatingPointError(
                "the values of the objective overflow float64, so nothing can be proven: kernel values, weights or "
                "coefficients are too large together; scale the features or the weights, or lower C"
            )
        self.fit_status_ = int(not self.converged_)

    def _conclude_outputs(self, fit: Fit, solved: Solutions[DualProblem], box: Box, b: Floats) -> None:
        """Set the fitted attributes of a machine without classes, where every task uses all merged samples.

        Each task is one output and yields one row of `dual_coef_`.
        """
        merged, beta = fit.merged, solved.columns.coefficients.reshape(len(solved), -1)
        self.intercept_ = b
        used = np.flatnonzero(beta.any(axis=0))
        self._expansion_ = expansion_of(fit, np.ascontiguousarray(beta[:, used].T), b, used)
        by_row = beta[:, merged.member]
        if not merged.unique:
            table = CoefficientTable.of_array(beta.T)
            parts = caller_table(table, fit, box, lambda: solved.largest_ridge)
            allow_for_copies(self, fit, solved, (table, parts))
            by_row = parts.toarray().T
        order = np.flatnonzero(by_row.any(axis=0))
        conclude_support(self, fit, order)
        self.n_support_ = np.array([len(order)], dtype=np.int32)
        self.dual_coef_ = np.ascontiguousarray(by_row[:, order])
        self._conclude_duals(fit, solved)

    def _conclude_duals(self, fit: Fit, solved: Solutions[DualProblem], scales: Floats | None = None) -> None:
        """Set ‖w‖, the status of the samples and the interval of b; `scales` are factors on the solutions' β."""
        self.rkhs_norm_ = self._norms(solved, scales)
        status = dual_status(fit.merged, solved, fit.n)
        self._standing_ = freeze(status.matrix())
        self._b_range_ = bias_intervals(solved, status)
        if len(solved) == 1 and fit.n_kernel_values:  # with several problems, their views of K count
            self.n_kernel_values_ = fit.n_kernel_values

    def _norms(self, solved: Solutions[DualProblem], scales: Floats | None) -> Any:
        """Return ‖w‖ of each output, in the scale of the expansion; a float for a single output."""
        starts, coefficients = solved.columns.row_ends[:-1], solved.columns.coefficients
        energies = np.add.reduceat(coefficients * solved.u, starts)
        if self._constant_feature:  # u was computed with k + 1
            energies -= np.add.reduceat(coefficients, starts) ** 2
        norms = np.sqrt(np.maximum(energies, 0.0)) * (1.0 if scales is None else np.abs(scales))
        return float(norms[0]) if len(norms) == 1 else norms

    @property
    def coef_(self) -> Any:
        """Weights w of the features, one row per output, always dense; only for a linear kernel."""
        return weight_vector(self)

    def _keep_state(self, fit: Fit, solved: Solutions[DualProblem]) -> None:
        """Store the solution of each task, and the samples, for the next fit."""
        keys, targets = _keys_and_targets(fit)
        starts = {
            s.task.name: task_start(s.task.rows, s.task.problem, s.solution)
            for s in solved
            if isinstance(s.task.problem, DualProblem)
        }
        self._memory_ = WarmStart(keys, targets, starts, TrainingSet.of(fit.X, fit.y, fit.sample_weight))

    # --- updates of the samples ------------------------------------------------------------------------------------

    @available_if(can_add_samples)
    @with_callbacks
    @shared_docs
    def partial_fit(self, X: Data, y: ArrayLike | None = None, sample_weight: Weights = None) -> Self:
        """Add samples to the training set and fit again, starting from the last solution.

        %(samples that follow)s
        y : array of shape (n_samples,)
            Target values; ignored by novelty detectors.
        %(given twice)s

        Returns
        -------
        self
            Fitted estimator.
        """
        last_state = self._last_state()
        if last_state is None:
            return self._adopt(self._fit_copy(X, y, sample_weight, FitOptions(self, keep_state=True, exact=True)))
        X = read_samples(self, X, self._kernel(), reset=False)
        y = None if y is None else column_or_1d(on_host(y), warn=True)
        checks.check_same_length(X, y)
        samples = last_state.samples.followed_by(X, y, checks.weights(on_host(sample_weight), n_samples(X)))
        return self._refit(samples, last_state)

    def forget(self, indices: Any) -> Self:
        """Remove samples from the training set and fit again, starting from the last solution.

        The result is that of `partial_fit` without these samples. The machine must have kept its samples: train it by
        `partial_fit`, or by `fit` with warm_start=True.

        Parameters
        ----------
        indices : array of int
            Indices of the samples in the order in which they were given, counted from 0 as in `support_`, each once.
            The indices of later samples decrease accordingly.

        Returns
        -------
        self
            Fitted estimator.
        """
        last_state: WarmStart | None = getattr(self, "_memory_", None)
        if last_state is None:
            raise ValueError(
                "there are no samples to forget, since none were kept; train by partial_fit, or by fit with "
                "warm_start=True"
            )
        return self._refit(
            last_state.samples.without_samples(indices, square=self.kernel_.accepts == "gram"), last_state
        )

    def for_support_vectors(self) -> Self:
        """Return a copy of a machine with a precomputed kernel that needs only the columns of the support vectors.

        The prediction methods of the copy take K[:, model.support_] in place of K: the kernel values between new
        samples and the support vectors of this machine, in the order of `support_`.

        Returns
        -------
        estimator of the same class
            Fitted copy, whose training samples are the support vectors.
        """
        check_is_fitted(self)
        expansion, n = self._expansion_, len(self.support_)
        if expansion.columns is None:
            raise ValueError(f"{self.kernel_!r} is not precomputed: predict takes samples, not columns of a matrix")
        new_column = np.empty(expansion.n_columns, dtype=np.intp)
        new_column[self.support_] = np.arange(n)
        reduced_machine = copy(self)
        reduced_machine._expansion_ = replace(expansion, columns=new_column[expansion.columns], n_columns=n)
        reduced_machine.support_, reduced_machine.shape_fit_, reduced_machine.n_features_in_ = (
            freeze(np.arange(n, dtype=np.int32)),
            (n, n),
            n,
        )
        for name in ("_standing_", "_memory_", "feature_names_in_"):  # attributes that refer to all training samples
            reduced_machine.__dict__.pop(name, None)
        return reduced_machine

    def _refit(self, samples: tuple[Any, Any, Floats], last_state: WarmStart) -> Self:
        """Fit to (X, y, weights), which share most samples with the last fit, starting from its solution."""
        trained_copy = self._fit_copy(*samples, FitOptions(self, last_state, keep_state=True, exact=True))
        if hasattr(self, "feature_names_in_"):
            trained_copy.feature_names_in_ = self.feature_names_in_
        return self._adopt(trained_copy)

    def _last_state(self) -> WarmStart | None:
        """Return the state to which partial_fit adds samples; None before the first call."""
        last_state: WarmStart | None = getattr(self, "_memory_", None)
        if last_state is None and hasattr(self, "_expansion_"):
            warn_user(
                "fit kept no samples that partial_fit could add to, so it starts again with the given ones; call "
                "partial_fit from the first samples on, or fit with warm_start=True",
                UserWarning,
            )
        return last_state


def _keys_and_targets(fit: Fit) -> tuple[Any, Any]:
    """Return the keys by which a warm start recognises the merged samples of a fit, and their targets."""
    assert fit.kernel is not None
    return keys_of(fit.merged, fit.kernel.accepts, fit.limits.n_threads), targets_of(fit.merged, fit.y)


# --- the unit of `tol` ------------------------------------------------------------------------------------------------
# The unit is 1, in the scale of f, or less if the natural scale of f is smaller: a machine with a penalty C measures f
# in labels ±1 or in the unit of y; for machines without C see mercer.solvers.dual.one_class. With targets of size 1e-4
# an absolute tolerance would be met before training has begun. The unit is never above 1, so that a converged fit has a
# violation of at most `tol`.

# A spread below this fraction of the values is rounding, or so close to it that no relative tolerance could be met.
_RESOLVED_SHARE = 1e-9
# The squares of weights above this, or below its inverse, leave the range of float64.
_LARGEST_WEIGHT = 1e140
# Below this size squares underflow, and the objective cannot distinguish two models.
_SMALLEST_TARGET = 1e-140


def target_unit(y: Floats, weight: Floats) -> float:
    """Return the unit of `tol` for targets y: their standard deviation, at most 1."""
    largest = float(np.abs(y).max())
    if largest < _SMALLEST_TARGET:
        return 1.0
    scaled, share = y / largest, weight / weight.sum()
    deviation = float(np.sqrt(share @ (scaled - share @ scaled) ** 2))
    return min(1.0, largest * max(deviation, _RESOLVED_SHARE))


def check_weight_range(weight: Floats) -> None:
    """Raise FloatingPointError for weights whose squares leave the range of float64, if only proportions matter."""
    largest = float(weight.max())
    if not 1 / _LARGEST_WEIGHT <= largest <= _LARGEST_WEIGHT:
        raise FloatingPointError(
            f"sample weights of {largest:.3g} leave the range of float64 when they are squared; scale them: only their "
            "proportions matter here"
        )
