"""Base class of least squares machines on landmarks (Nyström), fitted to arrays or to streams of chunks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from mercer.estimators.fitting.families.targets import OutputsMachine, StreamTargets, Targets
from mercer.estimators.fitting.pipeline.fit import Fit, Limits, read_samples
from mercer.estimators.fitting.pipeline.machine import RandomState, kernel_of
from mercer.estimators.fitting.pipeline.state import (
    Array,
    BoundKernel,
    Count,
    IndexArray,
    KernelExpansion,
    Number,
    Text,
    Vectors,
    fitted,
)
from mercer.estimators.fitting.pipeline.task import Solutions, Task, Tasks
from mercer.kernels import Kernel
from mercer.places import cross_for
from mercer.places.expansion import Expansion
from mercer.places.landmarks import Landmarks, draw, leverage_scores
from mercer.places.protocols import Cross
from mercer.problems.least_squares import RidgeProblem
from mercer.runtime.parameters import iterations, one_of, positive
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Data, Weights, freeze, host, matrix_columns, megabytes, n_samples, take
from mercer.samples.chunks import Chunk, Stream, first_chunks, is_stream
from mercer.samples.column_names import adopt_names
from mercer.samples.engine import engine_of
from mercer.samples.merging import keep_unmerged
from mercer.solvers.least_squares.nystrom import PRECONDITIONER_SAMPLES_PER_LANDMARK, cheaper_method, solve_nystrom

# Landmarks per pilot sample; pilot samples estimate the leverage scores by which landmarks are drawn.
_LANDMARKS_PER_PILOT = 4
# Number of M × M matrices that a fit holds at once.
_SQUARE_MATRICES = 5
# Samples are merged, which copies them, if they take at most the memory budget divided by this.
_MERGED_SHARE = 4


# If only rounding is left, a relative gap up to this is reported by the certificate, but not by a warning.
_SURE_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class _Source:
    """All samples in chunks, a uniformly drawn pool of them, and their targets."""

    chunks: Callable[[], Iterable[Chunk]]  # called once for every pass
    pool: Landmarks  # drawn uniformly
    n: int
    weight: float  # total
    target: Targets
    rng: np.random.Generator
    single_pass: bool = False  # True if only one pass is possible
    rows: Any = None  # the caller's row of each sample; None for a stream


@dataclass(eq=False, repr=False)
class LandmarkMachine(OutputsMachine):
    """Base class of machines on landmarks; subclasses add how targets are read and predictions made."""

    _default_steps = 1000  # iterations, each of which is a pass over the samples

    _FITTED = fitted(
        kernel_=BoundKernel(required=True),
        _expansion_=KernelExpansion(required=True),
        dual_coef_=Array("vectors", "outputs"),
        landmarks_=Vectors("vectors"),
        landmark_indices_=IndexArray(),
        n_iter_=Count(),
        method_=Text(),
        jitter_=Number(),
    )

    lam: float = 1.0
    _: KW_ONLY
    n_landmarks: int = 1000
    landmarks: Data | str = "uniform"
    tol: float = 1e-5
    max_iter: int = -1
    random_state: RandomState = None

    _stream_targets: ClassVar[type[StreamTargets]]

    @shared_docs
    def fit(self, X: Data, y: ArrayLike | None = None, sample_weight: Weights = None) -> Self:
        """Fit the machine to samples and targets, or to a stream of them.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features), memory-map, callable or iterator
            Training samples, or a stream. A callable must return at each call a fresh iterator over the same chunks,
            which are tuples (X, y) or (X, y, sample_weight). An iterator of such chunks is read once: its landmarks
            come from its first samples, and the normal equations are accumulated on the way. For a stream, y and
            sample_weight must be None.
        y : array of shape (n_samples,) or, for regression, (n_samples, n_outputs)
            Target values: class labels for a classifier, numbers for a regressor.
        %(repetitions)s
        """
        super().fit(X, y, sample_weight)
        return self

    def _check_parameters(self) -> None:
        positive("lam", self.lam, "lam=0 is least squares without a ridge, which landmarks make singular")
        if self._n_landmarks() < 1:
            raise ValueError(f"n_landmarks={self.n_landmarks!r} must be at least 1")
        if isinstance(self.landmarks, str):
            one_of("landmarks", self.landmarks, ("uniform", "leverage"))

    def _n_landmarks(self) -> int:
        return iterations("n_landmarks", self.n_landmarks, 1000)

    def _merges(self, X: Data, budget: int) -> bool:
        return bool(getattr(X, "nbytes", 0) <= budget // _MERGED_SHARE)

    def _merge_codes(self, target: Targets) -> Any:
        """Return codes that are equal for equal targets, so that equal samples may be merged."""
        if target.codes is not None:
            return target.codes
        values = target.Y[:, 0] if target.Y.shape[1] == 1 else target.Y
        return np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)

    def _input(self, X: Data, y: ArrayLike | None, sample_weight: Weights) -> Fit:
        """Return the input of the fit; for a stream, the samples are a uniformly drawn pool of it."""
        if not is_stream(X):
            return super()._input(X, y, sample_weight)
        if y is not None or sample_weight is not None:
            raise ValueError("a stream carries its own targets and weights: y and sample_weight must be None")
        self._check_parameters()
        kernel = kernel_of(vars(self))
        if kernel.accepts != "vectors":
            raise ValueError(f"a stream holds vectors, but {kernel!r} takes {kernel.accepts}; give all samples at once")
        limits = Limits.of(self, self._max_steps(0))
        source = self._stream_source(X, _generator(limits))
        pool = source.pool
        weight = pool.represented_weight
        merged = keep_unmerged(pool.X, np.zeros(len(pool.index), dtype=np.intp), weight)
        return Fit(X, None, source, weight, merged, kernel.bind(pool.X), False, limits, weight)

    def _tasks(self, fit: Fit) -> Tasks[RidgeProblem]:
        """Choose the landmarks, and return the only task: least squares on K between samples and landmarks."""
        source = fit.target if isinstance(fit.target, _Source) else self._array_source(fit)
        chosen_landmarks = self._choose_landmarks(fit, source)
        landmarks, K = chosen_landmarks.X, None
        if source.rows is not None:
            rows = source.rows[chosen_landmarks.index] if len(chosen_landmarks.index) else chosen_landmarks.index
            self.landmark_indices_ = freeze(rows)
            if fit.precomputed:
                landmarks, K = rows, np.asarray(host(matrix_columns(chosen_landmarks.X, rows)), dtype=np.float64)
        self.landmarks_ = None if fit.precomputed else freeze(host(landmarks))
        assert fit.kernel is not None
        cache_bytes = 0 if source.rows is None else fit.limits.budget // 4
        cross = cross_for(
            fit.kernel, landmarks, source.chunks, cache_bytes, fit.limits.n_threads, K, engine_of(source.pool.X)
        )
        self._check_memory(cross.m, fit.limits.budget)
        _refuse_indefinite(cross)
        sample = None
        if not source.single_pass and cheaper_method(cross, source.n) == "conjugate gradients":
            weight = source.pool.represented_weight  # targets are not needed, only kernel values
            sample = Chunk(source.pool.X, np.zeros((len(weight), source.target.Y.shape[1])), weight)
        solve = partial(solve_nystrom, sample=sample, single_pass=source.single_pass)
        return Tasks([Task("", RidgeProblem(float(self.lam), bool(self.bias)), solve, place=lambda n_threads: cross)])

    def _warn_early(self, reached: str) -> None:
        """Warn, unless only the certificate's bound on rounding is slightly above `tol`."""
        if self.stop_reason_ != "rounding floor" or not self.certificate_.relative_gap <= _SURE_SHARE:
            super()._warn_early(reached)

    def _record_end(self, solved: Solutions[RidgeProblem]) -> None:
        """Set the attributes that say how the fit ended."""
        super()._record_end(solved)
        self.n_iter_ = solved[0].solution.steps

    def _conclude(self, fit: Fit, solved: Solutions[RidgeProblem]) -> None:
        """Set the fitted attributes that only this kind of machine has."""
        solution = solved[0].solution
        self.method_, self.jitter_ = solution.method, solution.jitter
        adopt_names(self, fit.X)
        self.intercept_, self.dual_coef_ = freeze(solution.b), freeze(solution.C)
        self._expansion_ = Expansion(
            kernel=self.kernel_,
            vectors=self.landmarks_,
            coefficients=np.ascontiguousarray(solution.C),
            b=solution.b,
            columns=self.landmark_indices_ if fit.precomputed else None,
            n_columns=fit.n if fit.precomputed else 0,
        )
        self._conclude_targets(fit.target.target if isinstance(fit.target, _Source) else fit.target)

    # --- samples and landmarks -------------------------------------------------------------------------------------

    def _pool_size(self) -> int:
        return PRECONDITIONER_SAMPLES_PER_LANDMARK * self._n_landmarks()

    def _array_source(self, fit: Fit) -> _Source:
        """Return the samples of an array as a single chunk, with a uniformly drawn pool of them."""
        merged, rng = fit.merged, _generator(fit.limits)
        all_samples = Chunk(merged.X, fit.target.Y[merged.first], merged.weight, {})
        pool = draw([all_samples], self._pool_size(), rng)
        n, weight = len(merged.weight), float(merged.weight.sum())
        return _Source(lambda: [all_samples], pool, n, weight, fit.target, rng, rows=merged.first)

    def _stream_source(self, X: Data, rng: np.random.Generator) -> _Source:
        """Read a stream, once or for its pool alone, and return its chunks with the pool and the targets."""
        reader = self._stream_targets()
        stream = Stream(self, X, reader.read)
        first: list[Chunk] = []
        if stream.single_pass:
            if isinstance(self.landmarks, str) and self.landmarks == "leverage":
                raise ValueError(
                    "landmarks='leverage' needs a second look at the samples, and an iterator gives only one; give a "
                    "callable that returns a fresh iterator, or landmarks='uniform'"
                )
            remaining_chunks = stream.chunks()
            first = first_chunks(remaining_chunks, self._pool_size())
        pool = draw(first if stream.single_pass else stream.chunks(), self._pool_size(), rng)
        target = reader.settle()

        def chunks() -> Iterable[Chunk]:
            for chunk in chain(first, remaining_chunks) if stream.single_pass else stream.chunks():
                yield Chunk(chunk.X, reader.encode(chunk.Y), chunk.weight)

        return _Source(chunks, pool, *stream.seen, target, rng, single_pass=stream.single_pass)

    def _choose_landmarks(self, fit: Fit, source: _Source) -> Landmarks:
        """Return the landmarks: the user's own, some of the uniform pool, or samples drawn by leverage scores."""
        kernel, pool, m = fit.kernel, source.pool, self._n_landmarks()
        assert kernel is not None
        if not isinstance(self.landmarks, str):
            if fit.precomputed:
                raise ValueError("with a precomputed kernel, landmarks are drawn; give 'uniform', not samples")
            vectors = self._given_landmarks(kernel)
            return Landmarks(vectors, np.empty(0, dtype=np.intp), np.ones(n_samples(vectors)))
        count = len(pool.index)
        drawn_rows = np.sort(source.rng.choice(count, min(m, count), replace=False))
        uniform = Landmarks(take(pool.X, drawn_rows), pool.index[drawn_rows], pool.represented_weight[drawn_rows])
        if self.landmarks == "uniform" or count <= m:
            return uniform
        if fit.precomputed:
            raise ValueError("landmarks='leverage' is not available with a precomputed kernel; use 'uniform'")
        pilot = take(uniform.X, np.arange(0, len(drawn_rows), _LANDMARKS_PER_PILOT))
        scores = leverage_scores(kernel, pilot, float(self.lam), source.weight, fit.limits.n_threads)
        return draw(source.chunks(), m, source.rng, scores)

    def _given_landmarks(self, kernel: Kernel) -> Any:
        """Return a copy of the caller's landmarks, checked like samples."""
        try:
            landmarks = read_samples(self, self.landmarks, kernel, reset=False)
        except (ValueError, TypeError) as error:
            raise type(error)(f"landmarks are no valid samples (called X here): {error}") from error
        return take(host(landmarks), np.arange(n_samples(landmarks)))

    def _check_memory(self, m: int, budget: int) -> None:
        """Raise MemoryError if the matrices of m landmarks exceed the budget in bytes."""
        needed_bytes = _SQUARE_MATRICES * 8 * m * m
        if needed_bytes > budget:
            raise MemoryError(
                f"{m} landmarks need {megabytes(needed_bytes)} for their matrices, but cache_size={self.cache_size!r} "
                f"allows {megabytes(budget)}; lower n_landmarks to {math.isqrt(budget // (_SQUARE_MATRICES * 8))} or "
                "raise cache_size"
            )


def _generator(limits: Limits) -> np.random.Generator:
    return np.random.default_rng(limits.random.randint(2**31))


def _refuse_indefinite(cross: Cross) -> None:
    """Raise ValueError if K_MM has a negative eigenvalue beyond rounding."""
    if cross.kernel.positive_definite == "yes":
        return
    block = cross.K_MM[:200, :200]
    if float(np.linalg.eigvalsh(block)[0]) < -1e-8 * max(1e-300, float(np.abs(block).max())) * len(block):
        raise ValueError(
            f"{cross.kernel!r} is not positive semi-definite on these samples, so that least squares on landmarks has "
            "no minimum; use a positive definite kernel"
        )
