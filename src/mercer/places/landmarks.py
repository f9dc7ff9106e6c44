"""Landmarks: a few samples that represent all, drawn uniformly or by approximate ridge leverage scores, in one pass.

The ridge leverage score of a sample, ℓ_i = (K(K + λW⁻¹)⁻¹)_ii, says how much the fit at x_i depends on sample i alone.
A pilot set J of m uniformly drawn samples estimates it (Rudi, Calandriello, Carratino and Rosasco, "On fast leverage
score sampling and optimal learning"):

    ℓ_i ≈ (w_i/λ) [k(x_i, x_i) − k_iJ (K_JJ + λ(m/Σw) I)⁻¹ k_Ji]

which is exact if J holds every sample. Samples are drawn without replacement, with probabilities in proportion to
weight times score. Each gets the key log(u)/probability with a random u, and those with the largest keys are drawn
(Efraimidis and Spirakis, 2006), so that a stream is read only once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from mercer import _core
from mercer.kernels import Kernel
from mercer.places.host.prepared import CHUNK_ROWS
from mercer.samples.arrays import Floats, Indices, rows_between, stack, take
from mercer.samples.chunks import Chunk

Score = Callable[[Chunk], Floats]


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Landmarks in the order of the samples, their indices, and the total weight that each one represents."""

    X: Any
    index: Indices
    represented_weight: Floats


def draw(chunks: Iterable[Chunk], m: int, rng: np.random.Generator, score: Score | None = None) -> Landmarks:
    """Draw at most m samples without replacement, with probabilities in proportion to weight, or weight times score."""
    keys, index, chances, weights = np.empty(0), np.empty(0, dtype=np.intp), np.empty(0), np.empty(0)
    X: Any = None
    total_weight, n_seen = 0.0, 0
    for chunk in chunks:
        chance = chunk.weight if score is None else score(chunk)
        with np.errstate(divide="ignore"):
            # −log(−key) instead of the key: the same order, and no overflow for tiny probabilities.
            new_keys = np.log(chance) - np.log(-np.log(1.0 - rng.random(chunk.n)))
        all_keys = np.concatenate([keys, new_keys])
        usable = np.flatnonzero(all_keys > -np.inf)
        best_positions = usable if len(usable) <= m else np.sort(usable[np.argpartition(-all_keys[usable], m - 1)[:m]])
        old_positions, new_positions = (
            best_positions[best_positions < len(keys)],
            best_positions[best_positions >= len(keys)] - len(keys),
        )
        X = take(chunk.X, new_positions) if X is None else stack(take(X, old_positions), take(chunk.X, new_positions))
        keys = all_keys[best_positions]
        index = np.concatenate([index[old_positions], n_seen + new_positions])
        chances = np.concatenate([chances[old_positions], chance[new_positions]])
        weights = np.concatenate([weights[old_positions], chunk.weight[new_positions]])
        total_weight += float(chunk.weight.sum())
        n_seen += chunk.n
    if len(keys) == 0:
        raise ValueError("there is no sample with positive weight to draw landmarks from")
    # A landmark of weight w drawn with probability p represents a weight of w/(m p), scaled to the right total.
    share = weights / np.maximum(chances, np.finfo(float).tiny)
    return Landmarks(X, index, share * (total_weight / float(share.sum())))


def leverage_scores(kernel: Kernel, pilot: Any, lam: float, total_weight: float, n_threads: int = 1) -> Score:
    """Return the function that maps a chunk to weight times leverage score, estimated from the pilot samples."""
    K = kernel(pilot)
    np.fill_diagonal(K, K.diagonal() + lam * len(K) / total_weight)
    if _core.cholesky(K, n_threads) >= 0:
        raise ValueError(
            "the kernel matrix of the pilot samples is not positive semi-definite; draw landmarks uniformly"
        )

    def score(chunk: Chunk) -> Floats:
        out = np.empty(chunk.n)
        for start in range(0, chunk.n, CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            X = rows_between(chunk.X, part)
            projections = solve_triangular(K, kernel(X, pilot).T, lower=True, check_finite=False, overwrite_b=True)
            out[part] = np.maximum(kernel.diag(X) - np.sum(projections**2, axis=0), 0.0)
        return np.asarray(chunk.weight * out / lam)

    return score
