"""What stochastic subgradient descent has in common on samples at hand and on a stream: from samples to a machine."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mercer.arrays import Floats, Indices, freeze, take
from mercer.data.merging import Merged
from mercer.errors import INDEFINITE, NonPSDKernelWarning
from mercer.expansion import Expansion
from mercer.fitting.kinds import Array, BoundKernel, Count, Labels, Number, Vectors, fitted
from mercer.fitting.limits import physical_memory
from mercer.fitting.machine import Machine
from mercer.gram import Gram, gram_for
from mercer.kernels import Kernel
from mercer.parameters import iterations, one_of, positive
from mercer.problems.pegasos import PegasosProblem
from mercer.solvers.pegasos.draws import validation_part
from mercer.solvers.pegasos.iterates import Iterates
from mercer.solvers.pegasos.spaces import KernelSpace, LinearSpace, Space
from mercer.threads import effective_n_threads


class PegasosMachine(Machine):
    """Parameters, the space that steps are made in, and the attributes they end in."""

    FITTED = fitted(
        kernel_=BoundKernel(required=True),
        classes_=Labels(required=True),
        class_weight_=Array("classes", required=True),
        coef_=Array("outputs", "features", required=True, unless="_expansion_"),
        dual_coef_=Array("outputs", "vectors", needs="_expansion_"),
        support_vectors_=Vectors("vectors"),
        objective_=Number(),
        validation_loss_=Array(None),
        n_iter_=Count(required=True),
        t_=Count(required=True),
        _seed_=Count(required=True),
        _theta_=Array("outputs", "directions", required=True),
        _total_=Array("outputs", "directions", required=True),
        _marks_=Array(2, "outputs", "directions", required=True),
        _norm2_=Array("outputs", required=True),
    )

    classes_: np.ndarray
    class_weight_: Floats

    def _check_parameters(self) -> None:
        positive("lam", self.lam)
        one_of("bias", self.bias, (False, "regularized"))
        one_of("average", self.average, ("all", "suffix", "last"))
        one_of("sampling", self.sampling, ("replacement", "passes"))
        positive("tol", self.tol)
        if positive("validation_fraction", self.validation_fraction) >= 1:
            raise ValueError(f"validation_fraction={self.validation_fraction!r} must be below 1")
        if iterations("n_iter_no_change", self.n_iter_no_change, 5) < 1:
            raise ValueError(f"n_iter_no_change={self.n_iter_no_change!r} must be at least 1")
        iterations("max_iter", self.max_iter, 0)
        deadline_of(self.max_time)
        _budget(self.cache_size)

    def _bound(self, kernel: Kernel, merged: Merged, precomputed: Any = None) -> tuple[Kernel, Gram | None]:
        """The kernel with its numbers, and the Gram matrix that its steps need; the linear form needs none."""
        if self.kernel == "linear":
            return kernel, None
        n_threads = effective_n_threads(self.n_jobs)
        if precomputed is not None:
            K = merged.X if len(merged.rows) == len(precomputed) else merged.X[:, merged.rows]
            gram = gram_for(kernel, K, _budget(self.cache_size))
        else:
            kernel = kernel.bind(merged.X, merged.weight)
            gram = gram_for(kernel, merged.X, _budget(self.cache_size), n_threads)
        if not gram.looks_positive_definite():
            warnings.warn(INDEFINITE.format(kernel=kernel), NonPSDKernelWarning, stacklevel=5)
        return kernel, gram

    def _space(self, merged: Merged, gram: Gram | None, older: int = 0) -> Space:
        bias = self.bias == "regularized"
        if gram is None:
            self._check_memory(merged.X.shape[1])
            return LinearSpace(merged.X, bias=bias)
        u = None
        if older:
            theta = self._theta_
            before = replace(self._expansion_, coefficients=theta.T.copy(), b=float(bias) * theta.sum(axis=1))
            u = np.ascontiguousarray(before(merged.X, gram.n_threads).T)
        return KernelSpace(gram, bias=bias, older=older, u=u)

    def _problem(self, merged: Merged) -> PegasosProblem:
        weight = merged.weight * self.class_weight_[merged.y]
        return PegasosProblem(self._signs(merged.y), weight, float(self.lam))

    def _check_memory(self, d: int) -> None:
        """Refuse more features than the iterates of all machines, five numbers for each, have room for."""
        machines = 1 if len(self.classes_) == 2 else len(self.classes_)
        needed, present = 40.0 * d * machines, physical_memory()
        if needed > present:
            raise MemoryError(
                f"X has {d:,} columns, for which {machines} machines need {needed / 1e9:.0f} GB, but this computer has "
                f"{present / 1e9:.0f} GB; number the features that occur anew, or hash them into fewer columns"
            )

    def _signs(self, codes: Indices) -> Floats:
        """+1 and −1 per machine: the second class against the first, or each of several against the rest."""
        positive_codes = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        return np.array([np.where(codes == code, 1.0, -1.0) for code in positive_codes])

    def _held_out(self, merged: Merged) -> Indices | None:
        """The rows of the validation part."""
        if not self.early_stopping:
            return None
        n = len(merged.y)
        held_out = validation_part(self._seed_, n, self.validation_fraction)
        missing = np.setdiff1d(np.arange(len(self.classes_)), np.delete(merged.y, held_out))
        if len(missing):
            raise ValueError(
                f"with early_stopping {len(held_out)} of {n} distinct samples are left out, and then class "
                f"{self.classes_[missing[0]]!r} has none to learn from; lower validation_fraction"
            )
        return held_out

    def _vectors(self, merged: Merged, rows: Indices, X: Any) -> Any:
        """What an expansion needs of the learnt rows: the samples, or their columns of a precomputed matrix."""
        return merged.rows[rows] if self.kernel_.accepts == "gram" else take(merged.X, rows)

    def _adopt(self, iterates: Iterates, w: Floats, vectors: Any) -> None:
        """Fitted attributes of both ways to train."""
        bias = self.bias == "regularized"
        if vectors is None:
            d = self.n_features_in_
            self.coef_ = freeze(np.ascontiguousarray(w[:, :d]))
            self.intercept_ = freeze(w[:, d].copy() if bias else np.zeros(len(w)))
        else:
            used = np.flatnonzero(iterates.theta.any(axis=0))
            iterates, w = iterates.columns(used), w[:, used]
            self.intercept_ = freeze(float(bias) * w.sum(axis=1))
            self.dual_coef_ = freeze(np.ascontiguousarray(w))
            precomputed = self.kernel_.accepts == "gram"
            self._expansion_ = Expansion(
                kernel=self.kernel_,
                vectors=None if precomputed else take(vectors, used),
                coefficients=np.ascontiguousarray(w.T),
                b=self.intercept_,
                columns=vectors[used] if precomputed else None,
                n_columns=self.n_features_in_ if precomputed else 0,
            )
            if not precomputed:
                self.support_vectors_ = freeze(self._expansion_.vectors)
        self.t_ = iterates.t
        self._theta_, self._total_ = freeze(iterates.theta), freeze(iterates.total)
        self._marks_, self._norm2_ = freeze(iterates.marks), freeze(iterates.norm2)


def seed_of(random_state: Any) -> int:
    try:
        return int(check_random_state(random_state).randint(0, 2**63 - 1, dtype=np.int64))
    except ValueError as error:
        raise ValueError(f"random_state={random_state!r} must be None, an integer or a RandomState") from error


def deadline_of(max_time: Any) -> float:
    seconds = math.inf if max_time is None else positive("max_time", max_time, "None means no limit")
    return time.monotonic() + seconds


def _budget(cache_size: Any) -> int:
    return int(min(positive("cache_size", cache_size, "it is the memory for kernel values in MB") * 1e6, 2**62))
