"""Base class of multiple kernel learning: machines that learn the weights of a sum of kernels."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mercer.certificates.certificate import EQUALITY, Certificate
from mercer.certificates.kernel_weights import OPTIMAL, WeightsProblem, certify_kernel_weights, certify_machine
from mercer.estimators.fitting.families.dual_machine import DualMachine
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.reporting import Progress
from mercer.estimators.fitting.pipeline.state import Array, Count, fitted
from mercer.estimators.fitting.pipeline.task import Solutions, Solved, Tasks, solve_tasks
from mercer.kernels import Kernel
from mercer.kernels.names import as_kernel
from mercer.places import Gram
from mercer.places.ball import Ball
from mercer.problems.dual_problem import DualProblem
from mercer.runtime.parameters import real
from mercer.samples import checks
from mercer.samples.arrays import Data, Floats, Weights, freeze
from mercer.samples.engine import on_host
from mercer.solvers.kernel_weights import WeightsTrial, curvature, learn_weights

# Kernel weights are learnt to this fraction of `tol`, since f depends on them less directly than on the coefficients.
_WEIGHTS_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class KernelSum:
    """Several kernels on the samples of a fit, or several precomputed kernel matrices."""

    fit: Fit
    kernels: list[Kernel]  # bound; empty if matrices are given
    matrices: list[Floats]  # precomputed kernel matrices over all rows, if given
    grams: list[Gram]
    stored: list[Floats]  # K of the merged samples, if they fit into memory

    @classmethod
    def of(cls, fit: Fit, count: int, matrices: list[Floats]) -> KernelSum:
        """Split the kernel of a fit into its `count` summands, or take `matrices` as the kernels if there are any."""
        assert fit.kernel is not None
        rows = fit.merged.rows
        if matrices:
            all_rows = len(rows) == fit.n
            full_matrices = [K if all_rows else K[np.ix_(rows, rows)] for K in matrices]
            grams = [fit.gram_of(fit.kernel, K) for K in full_matrices]
            return cls(fit, [], matrices, grams, full_matrices)
        kernels: list[Kernel] = []
        remaining: Any = fit.kernel
        for _ in range(count - 1):  # k1 + k2 + k3 is (k1 + k2) + k3
            remaining, right = remaining.left, remaining.right
            kernels.insert(0, right)
        kernels.insert(0, remaining)
        grams = [fit.gram_of_kernel(kernel) for kernel in kernels]
        n, full_matrices = grams[0].n, []
        if count > 1 and fit.kernel.recipe() is None and 16 * (count + 1) * n**2 <= fit.limits.budget:
            full_matrices = [gram.full() for gram in grams]
        if not all(isinstance(K, np.ndarray) for K in full_matrices):
            full_matrices = []
        return cls(fit, kernels, [], grams, full_matrices)

    def scales(self, normalise: bool) -> Floats:
        """Return the variance of the samples in each kernel's feature space, or ones without `normalise`."""
        if not normalise or len(self.grams) == 1:
            return np.ones(len(self.grams))
        share = self.fit.merged.weight / self.fit.merged.weight.sum()
        mean = [float(share @ gram.diagonal) for gram in self.grams]
        spread = [size - float(share @ gram.product(share)) for size, gram in zip(mean, self.grams, strict=True)]
        pairs = zip(spread, mean, strict=True)
        return np.array([v if v > 1e-9 * size > 0 else size if size > 0 else 1.0 for v, size in pairs])

    def weighted_fit(self, weights: Floats, *, from_samples: bool = False) -> Fit:
        """Return the fit with the weighted sum as its kernel.

        With `from_samples`, K is evaluated from the samples again, without the roundings of a sum of stored matrices.
        """
        assert self.fit.kernel is not None
        used = np.flatnonzero(weights).tolist()
        if self.matrices:
            K, rows = sum(weights[m] * self.matrices[m] for m in used), self.fit.merged.rows
            all_rows = len(rows) == self.fit.n
            fit = replace(self.fit, X=K, merged=replace(self.fit.merged, samples=K if all_rows else K[rows]))
            return fit.with_gram(self.fit.gram_of(self.fit.kernel, K if all_rows else K[np.ix_(rows, rows)]))
        if len(self.kernels) == 1 and weights[0] == 1:
            return self.fit
        kernel = reduce(add, [float(weights[m]) * self.kernels[m] for m in used])
        fit = replace(self.fit, kernel=kernel)
        if self.stored and not from_samples:
            K = sum(weights[m] * self.stored[m] for m in used)
            return fit.with_gram(self.fit.gram_of(as_kernel("precomputed"), K))
        return fit.with_gram(self.fit.gram_of(kernel, self.fit.merged.samples))


@dataclass(eq=False, repr=False)
class MultipleKernelMachine(DualMachine):
    """Base class of machines that solve dual problems with a learnt weighted sum of kernels."""

    _FITTED = fitted(weights_=Array(None, required=True), scales_=Array(None, required=True), n_rounds_=Count())

    _: KW_ONLY
    kernel: Any = ("linear", "poly", "rbf")
    norm: float = 1.0
    normalise: bool = True

    def _given_kernels(self) -> list[Kernel]:
        """Return the kernels that the parameter `kernel` names or holds, as kernel objects."""
        kernels = list(self.kernel) if isinstance(self.kernel, list | tuple) else [self.kernel]
        if not kernels:
            raise ValueError("kernel=[] is empty; give one or more kernels")
        named_parameters = {name: getattr(self, name) for name in ("degree", "gamma", "coef0")}
        return [
            as_kernel(clone(kernel) if isinstance(kernel, Kernel) else kernel, **named_parameters) for kernel in kernels
        ]

    def _kernel(self) -> Kernel:
        return reduce(add, self._given_kernels())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not real("norm", self.norm) >= 1:
            raise ValueError(
                f"norm={self.norm!r} must be at least 1, or inf: below 1 the problem is not convex, and optimality "
                "cannot be proven"
            )
        if not isinstance(self.normalise, bool | np.bool_):
            raise TypeError(f"normalise={self.normalise!r} must be True or False")
        if vars(self).get("bias", True) is not True:
            raise ValueError(f"bias={self.bias!r}: kernel weights are learnt with an unpenalised b; leave bias=True")

    # --- a list of matrices ----------------------------------------------------------------------------------------

    def _input(self, X: Data, y: ArrayLike | None, sample_weight: Weights) -> Fit:
        """Return the input of the fit; with a precomputed kernel, X may hold several kernel matrices."""
        if self._kernel().accepts != "gram":
            return super()._input(X, y, sample_weight)
        matrices = _matrices(X)
        fit = super()._input(matrices[0], y, sample_weight)
        if len(matrices) == 1:
            return fit
        self._matrices = [fit.X]
        for K in matrices[1:]:
            checked_K = checks.vectors(self, K, reset=False)
            checks.check_gram_matrix(checked_K)
            checks.check_same_length(checked_K, fit.X)
            self._matrices.append(checked_K)
        return fit

    def _read_new_samples(self, X: Data) -> Any:
        """Return new samples checked; several kernel matrices are replaced by their weighted sum."""
        check_is_fitted(self)
        if self.kernel_.accepts != "gram":
            return super()._read_new_samples(X)
        matrices = _matrices(X)
        if len(matrices) != len(self.weights_):
            raise ValueError(f"X has {len(matrices)} matrices, but the machine was fitted on {len(self.weights_)}")
        if len(matrices) == 1:
            return super()._read_new_samples(matrices[0])
        used = np.flatnonzero(self.weights_)
        return sum(self.weights_[m] * super(MultipleKernelMachine, self)._read_new_samples(matrices[m]) for m in used)

    # --- the pipeline's hooks --------------------------------------------------------------------------------------

    def _solve(self, fit: Fit, tasks: Tasks[Any], progress: Progress, starts: list[Any]) -> tuple[Fit, Solutions[Any]]:
        """Learn the kernel weights; return the fit with the weighted sum as its kernel, and the solutions with it."""
        kernels = KernelSum.of(fit, len(self._given_kernels()), self.__dict__.pop("_matrices", []))
        problem = WeightsProblem(float(self.norm), kernels.scales(bool(self.normalise)))
        solver = _WeightedSolver(kernels, problem, tasks, progress, starts, self._side_by_side(fit, len(tasks)))
        if len(kernels.grams) == 1:
            trial, rounds = solver.solve_at(np.ones(1), None, 1.0), 1
            reason = trial.limit or ("converged" if trial.met else "rounding floor")
        else:
            trial, reason, rounds = learn_weights(problem, solver.solve_at)
        best: _SolvedAtWeights = trial.solved
        self.weights_, self.scales_ = freeze(best.weights), freeze(problem.scales)
        self.n_rounds_ = rounds
        entry_bounds = [float(gram.entry_bounds.max(initial=0.0)) for gram in kernels.grams]
        self._outcome = problem, best, reason, entry_bounds
        fit = kernels.weighted_fit(best.weights, from_samples=True) if kernels.stored and kernels.kernels else best.fit
        return fit, best.solutions

    def _record_end(self, solved: Solutions[Any]) -> None:
        """Set the attributes of the end of the fit, for the reason why the search for kernel weights ended."""
        super()._record_end(solved)
        reason = self._outcome[2]
        self.stop_reason_, self.converged_, self.fit_status_ = reason, reason == "converged", int(reason != "converged")

    def _conclude(self, fit: Fit, solved: Solutions[Any]) -> None:
        """Set the fitted attributes, with a certificate that covers the kernel weights too."""
        super()._conclude(fit, solved)
        problem, best, _, entry_bounds = self.__dict__.pop("_outcome")
        copy_errors = None
        if not fit.merged.unique:  # the residual of the equality bounds the errors of the coefficients of copies
            parts = self.certificate_.parts or (self.certificate_,)
            copy_errors = sum(part.kkt[EQUALITY] for part in parts) * np.array(entry_bounds)
        self.certificate_ = certify_kernel_weights(self.certificate_, problem, self.weights_, best.s, copy_errors)
        if self.converged_ and not _is_met(fit, solved, self.certificate_):
            self.stop_reason_, self.converged_, self.fit_status_ = "rounding floor", False, 1


@dataclass(frozen=True, eq=False)
class _SolvedAtWeights:
    """Solutions of all problems at kernel weights θ, and the fit with the weighted sum as its kernel."""

    weights: Floats
    fit: Fit
    solutions: Solutions[DualProblem]
    s: Ball  # s_m = Σ β'K_mβ over the problems


@dataclass(frozen=True, eq=False)
class _WeightedSolver:
    """Solver of a fit's problems at given kernel weights."""

    kernels: KernelSum
    problem: WeightsProblem
    tasks: Tasks[DualProblem]
    progress: Progress
    starts: list[Any]
    side_by_side: int

    def solve_at(self, weights: Floats, last: _SolvedAtWeights | None, share: float) -> WeightsTrial:
        """Solve the problems at these weights (times scales), to the fraction `share` of the requested tolerances."""
        theta = weights / self.problem.scales
        fit = self.kernels.weighted_fit(theta)
        starts, steps_taken = self.starts, [0] * len(self.tasks)
        if last is not None:
            starts = [result.solution.beta for result in last.solutions]
            steps_taken = [result.solution.steps for result in last.solutions]
        requested_stop = fit.limits.stop
        inner_stop = replace(
            requested_stop.after(max(steps_taken)),
            tol=share * requested_stop.tol,
            gap_tol=share * requested_stop.gap_tol,
        )
        fit = replace(fit, limits=replace(fit.limits, stop=inner_stop))
        solved = solve_tasks(self.tasks, fit, self.progress, starts, self.side_by_side)
        fit = replace(fit, limits=replace(fit.limits, stop=requested_stop))
        solved_tasks, s = [], []
        for result, steps in zip(solved, steps_taken, strict=True):
            grams = [_view(gram, result.task.rows) for gram in self.kernels.grams]
            proof, u, energies = certify_machine(
                result.task.problem, [g.proof for g in grams], result.solution.beta, theta
            )
            stop = replace(requested_stop, tol=requested_stop.tol * result.task.unit)
            if not stop.met(proof) and any(gram.levels[-1] != np.float64 for gram in grams):
                proof, u, energies = certify_machine(
                    result.task.problem, [g.proof for g in grams], result.solution.beta, theta, exact=True
                )
            solved_tasks.append(
                Solved(result.task, replace(result.solution, u=u, steps=steps + result.solution.steps), proof)
            )
            s.append(energies)
        solutions = Solutions.of(solved_tasks)
        total = Ball(sum(part.value for part in s), sum(part.error for part in s)).rounded(2 * len(s) + 2)
        machines = solutions.certificate
        certificate = certify_kernel_weights(machines, self.problem, theta, total)
        limits = [reason for reason in solutions.reasons if reason in ("max_iter", "max_time")]
        return WeightsTrial(
            weights=weights,
            certificate=certificate,
            machines=(machines.dual, machines.primal),
            s=total.value / self.problem.scales,
            curvature=partial(self._curvature, fit, solutions),
            met=_is_met(fit, solutions, certificate),
            proves_weights=certificate.kkt[OPTIMAL] <= _WEIGHTS_SHARE * requested_stop.tol,
            solved=_SolvedAtWeights(theta, fit, solutions, total),
            limit=limits[0] if limits else None,
        )

    def _curvature(self, fit: Fit, solutions: Solutions[DualProblem]) -> Floats:
        """Return the second derivatives of J by the weights, as `WeightsTrial.curvature` holds them."""
        m = len(self.kernels.grams)
        H = np.zeros((m, m))
        for solution in solutions:
            problem, rows = solution.task.problem, solution.task.rows
            c = problem.row_coefficients(solution.solution.beta, len(rows))
            parts = np.column_stack([_view(gram, rows).product(c) for gram in self.kernels.grams])
            H += curvature(problem, _view(fit.gram(), rows), solution.solution.beta, parts)
        return H / np.outer(self.problem.scales, self.problem.scales)


def _view(gram: Gram, rows: Any) -> Gram:
    return gram if len(rows) == gram.n else gram.view(rows)


def _is_met(fit: Fit, solved: Solutions[Any], certificate: Certificate) -> bool:
    """Return True if every machine and the kernel weights meet `tol` and `gap_tol`."""
    stop, parts = fit.limits.stop, certificate.parts
    machines_meet_tol = all(
        replace(stop, tol=stop.tol * result.task.unit, gap_tol=math.inf).met(part)
        for part, result in zip(parts, solved, strict=True)
    )
    return machines_meet_tol and math.isfinite(certificate.gap) and stop.met(certificate)


def _matrices(matrices: Any) -> list[Any]:
    """Return kernel matrices as a list, from a list or from an array whose last axis numbers them."""
    if getattr(matrices, "ndim", 0) == 3 and not isinstance(matrices, list | tuple):
        return [np.ascontiguousarray(matrices[:, :, m]) for m in range(matrices.shape[2])]
    if isinstance(matrices, list | tuple) and matrices and all(np.ndim(on_host(K)) == 2 for K in matrices):
        return [on_host(K) for K in matrices]
    return [matrices]
