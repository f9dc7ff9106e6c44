"""State that a machine keeps for its next fit: the solution, by sample, and the training samples themselves.

A sample is recognised by a 64-bit hash of its values together with its target, as in merging. The state only provides
a starting point: if two samples were confused, the solver would reach the same solution in a few more steps.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, Indices, freeze, host, is_sparse, matrix_part, stack, take
from mercer.samples.engine import EngineSamples
from mercer.samples.merging import Merged, hash_samples
from mercer.solvers.solution import Solution

Keys = NDArray[np.uint64]

# Odd multipliers that spread small integers over 64 bits (Knuth's golden ratio, and the first of splitmix64).
_TARGET_FACTOR, _COPY_FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Copy of the training samples, in the order in which they were given."""

    X: Any
    y: Any
    weight: Floats

    @classmethod
    def of(cls, X: Any, y: Any, weight: Floats) -> TrainingSet:
        return cls(_private_copy(X), None if y is None else freeze(np.array(y)), freeze(weight.copy()))

    def followed_by(self, X: Any, y: Any, weight: Floats) -> tuple[Any, Any, Floats]:
        """Return X, y and weights of these samples followed by the given ones."""
        targets = None if self.y is None else _concatenate_targets(self.y, np.asarray(y))
        return freeze(stack(self.X, X)), targets, np.concatenate([self.weight, weight])

    def without_samples(self, indices: Any, square: bool) -> tuple[Any, Any, Floats]:
        """Return X, y and weights without the samples at these indices; X is `square` if it is a kernel matrix."""
        n = len(self.weight)
        removed = np.atleast_1d(np.asarray(indices))
        if removed.dtype.kind not in "iu" or removed.ndim != 1:
            raise TypeError(f"indices={indices!r} must be indices of samples, as integers")
        indices_outside = removed[(removed < 0) | (removed >= n)]
        if len(indices_outside):
            last_text = f"; the last is {n - 1}" if (indices_outside < 0).any() else ""
            raise IndexError(
                f"there is no sample {indices_outside[0]} to forget: {n} are known, counted from 0{last_text}"
            )
        counts = np.bincount(removed.astype(np.intp), minlength=n)
        if (counts > 1).any():
            raise ValueError(
                f"sample {np.argmax(counts)} occurs {counts.max()} times in indices, but it can be forgotten only "
                "once; give each index once: np.unique(indices)"
            )
        remaining = np.delete(np.arange(n), removed)
        if len(remaining) == 0:
            raise ValueError("all samples would be forgotten; make a new estimator instead")
        X = matrix_part(self.X, remaining) if square else take(self.X, remaining)
        return freeze(X), None if self.y is None else self.y[remaining], self.weight[remaining]


@dataclass(frozen=True, eq=False)
class TaskStart:
    """Solution of one task, with an entry for each variable."""

    sample: Indices  # merged sample of the variable
    copy: Indices  # number of the variable among those of its sample
    beta: Floats
    bound: Floats  # bound on the side of zero on which β lies


@dataclass(frozen=True, eq=False)
class WarmStart:
    """State that one fit keeps for the next."""

    keys: Keys
    targets: Any
    tasks: dict[str, TaskStart]
    samples: TrainingSet

    def start(self, name: str, rows: Indices, problem: DualProblem, keys: Keys, targets: Any) -> Floats | None:
        """Return a feasible β for a task on the merged samples `rows`, from the last solution of that task, if any.

        If all bounds changed by one factor, as with another C, β is scaled by it: variables at a bound stay there, and
        the equality constraints still hold. Otherwise variables at a bound move to their new bound, the others stay,
        and the result is moved to the nearest β that satisfies the equality constraints.
        """
        last_start = self.tasks.get(name)
        if last_start is None:
            return None
        counterpart = self._counterparts(last_start, rows[problem.row], _copies(problem.row), keys, targets)
        has_counterpart = counterpart >= 0
        beta = np.zeros(problem.n_variables)
        beta[has_counterpart] = last_start.beta[counterpart[has_counterpart]]
        nonzero = np.flatnonzero(beta)
        if len(nonzero) == 0:
            return None
        old_bound = last_start.bound[counterpart[nonzero]]
        new_bound = np.where(beta[nonzero] > 0, problem.upper[nonzero], problem.lower[nonzero])
        has_finite_bounds = np.isfinite(old_bound) & np.isfinite(new_bound)
        factor = new_bound[has_finite_bounds] / old_bound[has_finite_bounds]
        if len(factor) and np.ptp(factor) <= 1e-9 * factor[0]:
            beta *= factor[0]
        else:
            beta[nonzero] = np.where(has_finite_bounds & (beta[nonzero] == old_bound), new_bound, beta[nonzero])
        return problem.nearest_feasible(beta)

    def _counterparts(self, last: TaskStart, sample: Indices, copy: Indices, keys: Keys, targets: Any) -> Indices:
        """Return for each variable of a new task the old variable of the same sample, or −1."""
        try:
            _, codes = np.unique(_concatenate_targets(self.targets, targets), return_inverse=True)
        except TypeError:  # targets changed between numbers and strings, so that no sample has its old target
            return np.full(len(sample), -1, dtype=np.intp)
        old_keys = _combine_keys(self.keys, codes[: len(self.keys)])
        new_keys = _combine_keys(keys, codes[len(self.keys) :])
        old_variables = old_keys[last.sample] + last.copy.astype(np.uint64) * _COPY_FACTOR
        new_variables = new_keys[sample] + copy.astype(np.uint64) * _COPY_FACTOR
        _, old_index, new_index = np.intersect1d(old_variables, new_variables, return_indices=True)
        counterpart = np.full(len(new_variables), -1, dtype=np.intp)
        counterpart[new_index] = old_index
        return counterpart


def keys_of(merged: Merged, accepts: str, n_threads: int) -> Keys:
    """Return a key for each merged sample by which it is recognised; its row index for a precomputed kernel."""
    if accepts == "gram":
        return merged.rows.astype(np.uint64)
    if accepts == "sequences":
        digests = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in host(merged.X)]
        return np.frombuffer(b"".join(digests), dtype=np.uint64)
    return hash_samples(merged.samples, n_threads)


def targets_of(merged: Merged, y: Any) -> Any:
    """Return the target of each merged sample as the caller gave it."""
    if y is None:
        return np.zeros(len(merged.y))
    _, first = np.unique(merged.member, return_index=True)
    return np.asarray(y).ravel()[merged.rows[first]]


def task_start(rows: Indices, problem: DualProblem, solution: Solution) -> TaskStart:
    """Return the solution of a task in the form that a warm start keeps."""
    beta = solution.beta
    bound = np.where(beta > 0, problem.upper, problem.lower)
    return TaskStart(rows[problem.row], _copies(problem.row), beta, bound)


def _copies(row: Any) -> Indices:
    """Return for each variable the number of earlier ones with the same row: 0 and 1 for twins."""
    order = np.argsort(row, kind="stable")
    is_start = np.r_[True, np.diff(row[order]) != 0]
    start = np.maximum.accumulate(np.where(is_start, np.arange(len(row)), 0))
    copies = np.empty(len(row), dtype=np.intp)
    copies[order] = np.arange(len(row)) - start
    return copies


def _combine_keys(keys: Keys, codes: Any) -> Keys:
    """Return hashes of sample and target together, and of the position among equal pairs if there are several."""
    combined_keys = (keys + (codes.astype(np.uint64) + np.uint64(1)) * _TARGET_FACTOR) * _COPY_FACTOR
    _, index = np.unique(combined_keys, return_inverse=True)
    return np.asarray(combined_keys + _copies(index).astype(np.uint64) * _TARGET_FACTOR)


def _concatenate_targets(first: Any, second: Any) -> Any:
    """Concatenate two arrays of targets such that every label keeps its type."""
    are_texts = {array.dtype.kind in "US" for array in (first, second)}
    if len(are_texts) == 2:
        return np.concatenate([first.astype(object), second.astype(object)])
    return np.concatenate([first, second])


def _private_copy(X: Any) -> Any:
    """Return a copy of X, or X itself if it owns its memory and is read-only."""
    if not hasattr(X, "shape"):
        return list(X)
    if isinstance(X, EngineSamples):
        return X.take(np.arange(X.shape[0]))
    parts = (X.data, X.indices, X.indptr) if is_sparse(X) else (X,)
    if all(part.flags.owndata and not part.flags.writeable for part in parts):
        return X
    return freeze(X.copy())
