"""The truth about a C-SVC's answer, in float64 and plain numpy, from its dual coefficients on the user's rows.

With y = ±1 and β_i = y_iα_i the machine maximises Σ y_iβ_i − ½β'Kβ over 0 ≤ y_iβ_i ≤ C_i, Σβ = 0. Its gradient is
h = y − Kβ, and β is optimal exactly when no β that may grow has a larger h than one that may shrink:

    violation = max over {β_i < upper_i} of h_i − min over {β_i > lower_i} of h_i

which needs no bias. Nothing here comes from mercer or from any other competitor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

_ROWS, _COLUMNS = 2048, 4096
# Up to about this much arithmetic, distances come from differences and sums are longer than float64.
_CAREFUL = 2_000_000_000


@dataclass(frozen=True)
class Setting:
    """The problem that everybody is given; kernels are named as in scikit-learn."""

    C: float
    gamma: float
    kernel: str = "rbf"
    degree: int = 3
    coef0: float = 0.0
    tol: float = 1e-3


@dataclass(frozen=True, eq=False)
class Duals:
    """A model's coefficients in LIBSVM's layout (classes − 1 rows), the rows they belong to, and their precision."""

    support: np.ndarray
    coefficients: np.ndarray
    precision: type = np.float64


@dataclass(frozen=True)
class Verdict:
    """The true violation, the dual value, and by how much box and equality are missed."""

    violation: float
    dual: float
    infeasibility: float


def judge(setting: Setting, X: Any, y: np.ndarray, models: Sequence[Duals], C: Any = None) -> list[Verdict]:
    """One verdict per model of the same problem; for several classes sums of values and maxima over the pairs.

    `C` holds one bound per row where they are not all `setting.C`.
    """
    bound = np.broadcast_to(setting.C if C is None else C, len(y)).astype(np.float64)
    split = [_pairs(model, y) for model in models]
    u = products(setting, X, np.column_stack([beta for part in split for _, _, beta in part]))
    verdicts, column = [], 0
    for model, parts in zip(models, split, strict=True):
        found = []
        for rows, sign, beta in parts:
            found.append(_verdict(sign, beta[rows], u[rows, column], bound[rows], model.precision))
            column += 1
        violation, dual, infeasibility = np.array(found).T
        verdicts.append(Verdict(float(violation.max()), float(dual.sum()), float(infeasibility.max())))
    return verdicts


def products(setting: Setting, X: Any, beta: np.ndarray) -> np.ndarray:
    """Kβ for every column of `beta`, from the rows that any of them uses, one block after another."""
    used = np.flatnonzero(beta.any(axis=1))
    work = X.shape[0] * len(used) * (X.shape[1] + 10 * beta.shape[1])
    careful = work <= _CAREFUL and not sp.issparse(X)
    X = X.astype(np.float64)
    if setting.kernel == "rbf" and not sp.issparse(X):
        X = X - X.mean(axis=0)
    u = np.zeros(beta.shape)
    for left in range(0, len(used), _COLUMNS):
        columns = used[left : left + _COLUMNS]
        Z, weights = X[columns], beta[columns]
        for top in range(0, X.shape[0], _ROWS):
            K = kernel_values(setting, X[top : top + _ROWS], Z, careful)
            if careful:
                K = K.astype(np.longdouble)
            u[top : top + _ROWS] += K @ weights
    return u


def kernel_values(setting: Setting, X: Any, Z: Any, careful: bool = False) -> np.ndarray:
    """k(x, z) for all pairs of rows."""
    if setting.kernel == "rbf":
        return np.exp(-setting.gamma * (cdist(X, Z, "sqeuclidean") if careful else _squared_distances(X, Z)))
    inner = _inner(X, Z)
    if setting.kernel == "linear":
        return inner
    value = setting.gamma * inner + setting.coef0
    return {"poly": lambda: value**setting.degree, "sigmoid": lambda: np.tanh(value)}[setting.kernel]()


def _squared_distances(X: Any, Z: Any) -> np.ndarray:
    lengths = [np.asarray(A.multiply(A).sum(axis=1)).ravel() if sp.issparse(A) else (A**2).sum(axis=1) for A in (X, Z)]
    return np.maximum(lengths[0][:, None] + lengths[1] - 2.0 * _inner(X, Z), 0.0)


def _inner(X: Any, Z: Any) -> np.ndarray:
    product = X @ Z.T
    return product.toarray() if sp.issparse(product) else product


def _pairs(model: Duals, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """For each pair of classes: its rows, their signs, and β on all rows, oriented so that y_iβ_i ≥ 0."""
    # A model's vectors come class by class, in the order in which it numbers the classes.
    owner = y[model.support]
    _, first = np.unique(owner, return_index=True)
    classes = owner[np.sort(first)]
    parts = []
    for i, j in combinations(range(len(classes)), 2):
        rows = np.flatnonzero((y == classes[i]) | (y == classes[j]))
        beta = np.zeros(len(y))
        for mine, other in ((i, j - 1), (j, i)):
            here = owner == classes[mine]
            beta[model.support[here]] = model.coefficients[other, here]
        sign = np.where(y == classes[i], 1.0, -1.0)
        if sign @ beta < 0:
            beta = -beta
        parts.append((rows, sign[rows], beta))
    return parts


def _verdict(sign: np.ndarray, beta: np.ndarray, u: np.ndarray, C: np.ndarray, precision: type) -> tuple[float, ...]:
    lower, upper = np.where(sign > 0, 0.0, -C), np.where(sign > 0, C, 0.0)
    h = sign - u
    near = 4 * np.finfo(precision).eps * C  # a bound rounded to the model's precision is still the bound
    violation = h[beta < upper - near].max(initial=-np.inf) - h[beta > lower + near].min(initial=np.inf)
    dual = sign @ beta - 0.5 * (beta @ u)
    outside = np.maximum(lower - beta, beta - upper).max()
    return max(violation, 0.0), dual, max(outside, abs(beta.sum()), 0.0)
