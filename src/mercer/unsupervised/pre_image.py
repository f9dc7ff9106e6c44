"""Samples for points of feature space: the x whose φ(x) is nearest to P = Σ_j c_j φ(x_j).

A linear kernel has x = Σ_j c_j x_j exactly. For a Gaussian, ‖P − φ(x)‖² is smallest where g(x) = Σ_j c_j k(x_j, x) is
largest, and where its gradient vanishes

    x = Σ_j c_j k(x_j, x) x_j / Σ_j c_j k(x_j, x)        Mika and others, "Kernel PCA and de-noising in feature spaces"

which is iterated from the vector at which g is largest. A step that would lower g is halved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Floats, Indices, row_blocks
from mercer.expansion import Expansion

_MAX_STEPS, _MAX_HALVINGS = 300, 30
# A step of this share of the vectors' spread is the last.
_STEP_SHARE = 1e-9


def pre_images(components: Expansion, mean: Floats, scores: Floats) -> Floats:
    """One row for each row of scores; `mean` are the coefficients of the samples' mean."""
    kernel = components.kernel
    recipe = kernel.recipe() if kernel.accepts == "vectors" else None
    linear = recipe is not None and recipe.inner == "dot" and recipe.ending == "identity" and not recipe.normalise
    if not linear and (recipe is None or recipe.ending != "gaussian" or recipe.inner != "sqdist"):
        raise ValueError(f"samples are found for scores of a linear or a Gaussian kernel, but not of {kernel!r}")
    X = components.vectors
    C = scores @ np.asarray(components.coefficients).T + mean
    if linear:
        return _combined(C, X)
    out = np.empty((len(C), X.shape[1]))
    for some in row_blocks(len(C), 8 * len(mean)):
        out[some] = _fixed_points(kernel, X, C[some])
    return out


def _combined(C: Floats, X: Any) -> Floats:
    return np.asarray((X.T @ C.T).T)  # so that a CSR matrix stands on the left


def _best_vectors(kernel: Any, X: Any, C: Floats) -> Indices:
    """For each row of C, the vector at which g is largest."""
    n = C.shape[1]
    best, largest = np.zeros(len(C), dtype=np.intp), np.full(len(C), -np.inf)
    for some in row_blocks(n, 8 * n):
        values = C @ kernel(X, X[some])
        place = np.argmax(values, axis=1)
        found = values[np.arange(len(C)), place]
        best = np.where(found > largest, some.start + place, best)
        largest = np.maximum(largest, found)
    return best


def _fixed_points(kernel: Any, X: Any, C: Floats) -> Floats:
    best = _best_vectors(kernel, X, C)
    Z = np.asarray(X[best].toarray() if hasattr(X, "toarray") else X[best], dtype=np.float64)
    spread = float(np.abs(Z).max(initial=0.0)) + 1.0
    K = C * kernel(Z, X)
    value = K.sum(axis=1)
    moving = np.arange(len(Z))
    for _ in range(_MAX_STEPS):
        with np.errstate(divide="ignore", invalid="ignore"):
            step = _combined(K[moving], X) / value[moving, None] - Z[moving]
        moving, step = (part[np.abs(step).max(axis=1) > _STEP_SHARE * spread] for part in (moving, step))
        for _ in range(_MAX_HALVINGS):
            trial = C[moving] * kernel(Z[moving] + step, X)
            worse = ~(trial.sum(axis=1) >= value[moving])
            if not worse.any():
                break
            step[worse] *= 0.5
        moving, step, trial = moving[~worse], step[~worse], trial[~worse]
        if len(moving) == 0:
            break
        Z[moving] += step
        K[moving] = trial
        value[moving] = trial.sum(axis=1)
    return Z
