"""The one fit and predict pipeline of every kernel machine: samples in, dual problems solved and certified,
expansion out.

`fit` works on a copy of the estimator and hands over everything it learnt at its end, so a fit that fails or is
interrupted leaves the estimator as it was.
"""

from __future__ import annotations

import copy
import math
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from mercer.arrays import Floats, Indices, freeze, is_sparse
from mercer.certificates.certificate import Certificate
from mercer.data import samples
from mercer.data.merging import Merged, merge
from mercer.errors import INDEFINITE, NonPSDKernelWarning
from mercer.expansion import Expansion
from mercer.fitting.dual_status import admissible, standing
from mercer.fitting.overflow import expect_finite, proven
from mercer.fitting.telling import CallbackSupport, Progress, with_callbacks
from mercer.fitting.warm_start import Known, Memory, keep, keys_of, targets_of
from mercer.gram.gram import Gram
from mercer.kernels import Kernel, as_kernel, kernel_accepts
from mercer.parameters import iterations, one_of, positive
from mercer.problems.dual_problem import DualProblem
from mercer.solution import Solution, Stop
from mercer.solvers import SOLVERS
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.dual.pairs import Blocks, fits, solve_pairs
from mercer.threads import effective_n_threads

# Sub-problems are solved side by side, each on one thread, from this many per thread on; fewer share the threads.
_TASKS_PER_THREAD = 4


@dataclass(frozen=True, eq=False)
class Task:
    """One dual problem on some of the merged samples, and the function that solves it with a proof."""

    name: str
    rows: Indices
    problem: Any  # a DualProblem, or what `solve` takes
    solve: Callable[..., tuple[Solution, Certificate]] | None = None  # None stands for solve_certified
    blocks: Blocks | None = None  # where `rows` are two of the blocks that all tasks of a machine share, these
    unit: float = 1.0  # of `tol`: what a violation of 1 is worth in this problem's scale


@dataclass(frozen=True, eq=False)
class Training:
    """Whose callbacks watch a training, what the last one left to start from, and whether this one leaves it too."""

    watched_by: Any
    memory: Memory | None = None
    keeps: bool = False


@dataclass(frozen=True, eq=False)
class Solved:
    """Its solution and proof."""

    task: Task
    solution: Solution
    certificate: Certificate


class Machine(CallbackSupport, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """What all kernel machines share; a machine adds its parameters, its problems and its attributes."""

    # --- what a machine provides -----------------------------------------------------------------------------------

    def _target(self, y: Any) -> tuple[Indices | None, Any]:
        """One code per sample, equal where two samples may be merged (None: y plays no part), and what else was learnt
        from y."""
        raise NotImplementedError

    def _weigh(self, target: Any, codes: Indices, weight: Floats) -> Any:
        """The target with what the sample weights add to it."""
        if not weight.any():
            raise ValueError("all sample weights are zero: there is nothing to learn from; give some sample weight")
        return target

    def _tasks(self, merged: Merged, target: Any) -> list[Task]:
        """The dual problems to solve."""
        raise NotImplementedError

    def _conclude(self, merged: Merged, solved: list[Solved], target: Any, X: Any) -> None:
        """Fitted attributes beyond those every machine has."""
        raise NotImplementedError

    # --- the pipeline ----------------------------------------------------------------------------------------------

    @with_callbacks  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on samples X with targets y.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            A list of strings for a string kernel; the square kernel matrix for a precomputed one.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            A weight counts like that many repetitions of its sample; 0 leaves the sample out.

        Returns
        -------
        self
        """
        warm = bool(getattr(self, "warm_start", False))
        memory = getattr(self, "_memory_", None) if warm else None
        return self._become(self._trained(X, y, sample_weight, Training(self, memory, keeps=warm)))

    def _trained(self, X: Any, y: Any, sample_weight: Any, training: Training) -> Self:
        """A trained copy of this estimator."""
        trained = copy.copy(self)
        for name in fitted_names(trained):
            delattr(trained, name)
        trained._train(X, y, sample_weight, training)
        return trained

    def _become(self, trained: Self) -> Self:
        expect_finite(trained)
        for name in fitted_names(self):
            delattr(self, name)
        self.__dict__.update(vars(trained))
        return self

    def _train(self, X: Any, y: Any, sample_weight: Any, training: Training) -> None:
        kernel = self._kernel()
        X = self._samples(X, kernel, reset=True)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        stop, budget, n_threads = self._limits(n)
        check_consistent_length(X, y)
        codes, target = self._target(y)
        codes = np.zeros(n, dtype=np.intp) if codes is None else codes
        weight = samples.weights(sample_weight, len(codes))
        target = self._weigh(target, codes, weight)
        merged = merge(X, codes, weight, identical=kernel.mergeable, n_threads=n_threads)
        tasks = self._tasks(merged, target)
        abreast = len(tasks) >= _TASKS_PER_THREAD * n_threads > _TASKS_PER_THREAD
        if kernel.accepts == "gram":
            K = merged.X if len(merged.rows) == len(X) else merged.X[:, merged.rows]
            gram = Gram(kernel, K + 1.0 if self._with_constant else K, budget)
        else:
            kernel = kernel.bind(merged.X, merged.weight)
            solved_with = kernel + 1.0 if self._with_constant else kernel
            gram = Gram(solved_with, merged.X, budget, 1 if abreast else n_threads)
        if not gram.looks_positive_definite():
            warnings.warn(INDEFINITE.format(kernel=kernel), NonPSDKernelWarning, stacklevel=4)
        if len(tasks) > 1:
            gram.share()
        progress = Progress(training.watched_by, bool(self.verbose), len(tasks), X, y)
        starts: list[Floats | None] = [None] * len(tasks)
        if training.keeps:
            keys, targets = keys_of(merged, kernel.accepts, n_threads), targets_of(merged, y)
            if training.memory is not None:
                starts = [training.memory.start(t.name, t.rows, t.problem, keys, targets) for t in tasks]
        solved = self._solve(tasks, gram, stop, progress, n_threads if abreast and gram.fused else 1, starts)

        self.kernel_ = kernel
        self.certificate_ = Certificate.total([s.certificate for s in solved])
        reasons = [s.solution.stop_reason for s in solved]
        reason = next((reason for reason in reasons if reason != "converged"), "converged")
        self.stop_reason_ = proven(reason, self.certificate_)
        self.converged_ = self.stop_reason_ == "converged"
        self.n_iter_ = freeze(np.array([s.solution.steps for s in solved], dtype=np.int64))
        self._conclude(merged, solved, target, X)
        self.rkhs_norm_ = self._norms(solved)
        plain = [s for s in solved if isinstance(s.task.problem, DualProblem)]
        if plain:
            self._standing_ = standing(merged, solved, len(weight))
            self._b_range_ = admissible(solved)
        if training.keeps:
            solutions = {s.task.name: keep(s.task.rows, s.task.problem, s.solution) for s in plain}
            self._memory_ = Memory(keys, targets, solutions, Known.of(X, y, weight))
        if not self.converged_:
            warnings.warn(self._unfinished(X), ConvergenceWarning, stacklevel=4)
        progress.close(X, y)

    @property
    def _with_constant(self) -> bool:
        """Whether the bias is the weight of a feature that is 1 everywhere, so that problems are solved with k + 1."""
        return bool(getattr(self, "bias", True) == "regularized")

    def _norms(self, solved: list[Solved]) -> Any:
        """‖w‖ of each output, in the scale of the expansion; a number where there is one."""
        sizes = np.asarray(abs(self._expansion_.coefficients).sum(axis=0)).ravel()
        us = [s.solution.u for s in solved if s.solution.u is not None]
        starts = np.cumsum([0, *map(len, us[:-1])])
        coefficients = np.concatenate(
            [s.task.problem.row_coefficients(s.solution.beta, len(u)) for s, u in zip(solved, us, strict=True)]
        )
        energies = np.add.reduceat(coefficients * np.concatenate(us), starts)
        if self._with_constant:  # u was computed with k + 1
            energies -= np.add.reduceat(coefficients, starts) ** 2
        own = np.add.reduceat(np.abs(coefficients), starts)
        norms = np.sqrt(np.maximum(energies, 0.0)) * np.divide(sizes, own, out=np.zeros(len(own)), where=own > 0)
        return float(norms[0]) if len(norms) == 1 else freeze(norms)

    def _solve(
        self,
        tasks: list[Task],
        gram: Gram,
        stop: Stop,
        progress: Progress,
        abreast: int,
        starts: list[Floats | None],
    ) -> list[Solved]:
        """Every task's solution and proof; several tasks at a time where they are many and the core does the work."""
        solver = SOLVERS[one_of("solver", getattr(self, "solver", "auto"), tuple(SOLVERS))]
        cold = progress.silent and all(start is None for start in starts)
        begun = self._at_once(tasks, gram, stop, max(abreast, gram.n_threads)) if cold else {}
        done = {k: Solved(tasks[k], solution, proof) for k, (solution, proof) in begun.items() if proof is not None}
        left = [k for k in range(len(tasks)) if k not in done]

        def solve(k: int) -> Solved:
            task, start, steps = tasks[k], starts[k], 0
            if k in begun:
                start, steps = begun[k][0].beta, begun[k][0].steps
            report = progress.begin(task.name)
            part = gram if len(task.rows) == gram.n and task.blocks is None else gram.view(task.rows)
            if task.solve is not None and solver is not solve_certified:
                raise ValueError(f"solver={self.solver!r} is not available for this machine; use solver='auto'")
            asked = replace(stop, tol=task.unit * stop.tol, max_iter=stop.max_iter - steps)
            solution, proof = (task.solve or solver)(task.problem, part, asked, start, report, self.shrinking)
            progress.end()
            return Solved(task, replace(solution, steps=solution.steps + steps), proof)

        if abreast == 1 or progress.watched:
            done.update(zip(left, map(solve, left), strict=True))
        elif left:
            with ThreadPoolExecutor(abreast) as threads:
                try:
                    done.update(zip(left, threads.map(solve, left), strict=True))
                except BaseException:  # Ctrl-C above all: the others see it before their next outer step
                    progress.cancel()
                    threads.shutdown(cancel_futures=True)
                    raise
        return [done[k] for k in range(len(tasks))]

    def _at_once(
        self, tasks: list[Task], gram: Gram, stop: Stop, n_threads: int
    ) -> dict[int, tuple[Solution, Certificate | None]]:
        """What one call for all tasks that allow it has reached, with the certificates of those that are solved."""
        if getattr(self, "solver", "auto") != "auto" or not gram.fused:
            return {}
        small = [
            (k, task.problem, task.blocks)
            for k, task in enumerate(tasks)
            if task.blocks is not None and fits(task.problem)
        ]
        if len(small) < 2:
            return {}
        which, problems, blocks = zip(*small, strict=True)
        found = solve_pairs(problems, blocks, gram, stop, n_threads)
        return {} if found is None else dict(zip(which, found, strict=True))

    def _decision(self, X: Any) -> Floats:
        """The expansion's outputs at X, one column each."""
        check_is_fitted(self)
        expansion: Expansion = self._expansion_
        X = self._samples(X, expansion.kernel, reset=False)
        if expansion.columns is not None and X.shape[1] != expansion.n_columns:
            raise ValueError(
                f"X has {X.shape[1]} columns, but a precomputed kernel needs the values between the new samples "
                f"and all {expansion.n_columns} training samples"
            )
        return expansion(X, effective_n_threads(self.n_jobs))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for name in fitted_names(self):
            freeze(getattr(self, name))

    # --- files -----------------------------------------------------------------------------------------------------

    def _state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Everything a file must hold: plain values and kernels, and the arrays beside them."""
        check_is_fitted(self)
        fitted: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        for name in fitted_names(self):
            value = getattr(self, name)
            if isinstance(value, Memory):  # the training samples, which a model file does not hold
                continue
            if isinstance(value, Expansion):
                for part in ("vectors", "coefficients", "b", "columns"):
                    _file_away(f"expansion.{part}", getattr(value, part), fitted, arrays)
                fitted["expansion.n_columns"] = value.n_columns
            else:
                _file_away(name, value.to_dict() if isinstance(value, Certificate) else value, fitted, arrays)
        return {"params": self.get_params(deep=False), "fitted": fitted}, arrays

    @classmethod
    def _from_state(cls, header: dict[str, Any], arrays: dict[str, Any]) -> Self:
        """The inverse of `_state`."""
        model = cls(**header["params"])
        values = {**header["fitted"], **{name: freeze(array) for name, array in arrays.items()}}
        expansion = {name.partition(".")[2]: values.pop(name) for name in list(values) if name.startswith("expansion.")}
        for name, value in values.items():
            setattr(model, name, Certificate.from_dict(value) if name == "certificate_" else value)
        model._expansion_ = Expansion(kernel=model.kernel_, **expansion)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        accepts = kernel_accepts(self.kernel)
        tags.input_tags.sparse = accepts == "vectors"
        tags.input_tags.pairwise = accepts == "gram"
        tags.input_tags.string = accepts == "sequences"
        tags.input_tags.two_d_array = accepts != "sequences"
        return tags

    # --- parameters and samples ------------------------------------------------------------------------------------

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of a kernel object: `kernel__gamma`."""
        inner = next((name for name in params if name.startswith("kernel__")), None)
        kernel = params.get("kernel", self.kernel)
        if inner is not None and isinstance(kernel, str):
            raise ValueError(
                f"{inner} is a parameter of a kernel object, but kernel={kernel!r} is a name: set "
                f"{inner.removeprefix('kernel__')} itself, or give an object such as kernel=mercer.kernels.Gaussian()"
            )
        super().set_params(**params)
        return self

    def _kernel(self) -> Kernel:
        return as_kernel(self.kernel, degree=self.degree, gamma=self.gamma, coef0=self.coef0)

    def _limits(self, n: int) -> tuple[Stop, int, int]:
        """When to stop, how many bytes to use, on how many threads."""
        try:
            check_random_state(self.random_state)
        except ValueError as error:
            raise ValueError(f"random_state={self.random_state!r} must be None, an integer or a RandomState") from error
        seconds = math.inf if self.max_time is None else positive("max_time", self.max_time, "None means no limit")
        gap_tol = math.inf if self.gap_tol is None else positive("gap_tol", self.gap_tol, "None asks for no gap")
        stop = Stop(
            tol=positive("tol", self.tol),
            gap_tol=gap_tol,
            max_iter=iterations("max_iter", self.max_iter, max(10_000_000, 100 * n)),
            deadline=time.monotonic() + seconds,
        )
        megabytes = positive("cache_size", self.cache_size, "it is the memory for a fit in MB")
        budget = int(min(megabytes * 1e6, physical_memory() / 2))
        return stop, budget, effective_n_threads(self.n_jobs)

    def _samples(self, X: Any, kernel: Kernel, *, reset: bool) -> Any:
        """X checked and in the form the kernel takes."""
        if kernel.accepts == "sequences":
            return samples.sequences(X)
        X = samples.vectors(self, X, reset=reset)
        if kernel.accepts == "gram":
            if is_sparse(X):
                raise TypeError("a sparse precomputed kernel matrix is not supported; give a dense array")
            return samples.gram_matrix(X) if reset else X
        return X

    def _unfinished(self, X: Any) -> str:
        """What a fit that stopped early reached, and what to do about it."""
        certificate = self.certificate_
        text = (
            f"{type(self).__name__} stopped before tol={self.tol:g} ({self.stop_reason_}): violation "
            f"{certificate.violation:.3g}, gap {certificate.gap:.3g}, {certificate.relative_gap:.1e} of the "
            f"dual value. "
        )
        if self.stop_reason_ == "rounding floor":
            return text + "float64 cannot resolve less here; raise tol, lower C or scale the features"
        if self.stop_reason_ in ("max_iter", "max_time"):
            text += f"Raise {self.stop_reason_}, or help convergence: "
        ratio = _scale_ratio(X)
        if ratio > 100:
            return text + f"the features' scales differ by a factor of {ratio:.1e}; standardise them"
        return text + "lower C, raise tol or scale the features"


def fitted_names(estimator: Any) -> list[str]:
    """The attributes that a fit has set."""
    return [name for name in vars(estimator) if name.endswith("_") and not name.startswith("__")]


def _file_away(name: str, value: Any, plain: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Numeric arrays and CSR matrices go with the arrays, everything else is a plain value."""
    numeric = is_sparse(value) or (isinstance(value, np.ndarray) and value.dtype.kind in "biuf")
    (arrays if numeric else plain)[name] = value


def _scale_ratio(X: Any) -> float:
    """The largest standard deviation of a feature over the smallest that is not zero."""
    if not hasattr(X, "shape"):
        return 1.0
    if is_sparse(X):
        square = np.asarray(X.multiply(X).mean(axis=0)).ravel() - np.asarray(X.mean(axis=0)).ravel() ** 2
        spread = np.sqrt(np.maximum(square, 0.0))
    else:
        spread = X.std(axis=0, dtype=np.float64)
    spread = spread[spread > 0]
    return float(spread.max() / spread.min()) if len(spread) else 1.0


def physical_memory() -> float:
    """Bytes of memory in this computer; infinite where it does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return math.inf
