"""Sparse kernel feature analysis (A. Smola, O. Mangasarian and B. Schölkopf, 1999).

It finds few orthogonal functions that vary most over the data. A direction of kernel PCA combines all samples; the m-th
function here combines m samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mercer.inspection.rkhs import Function
from mercer.kernels.names import bound_kernel
from mercer.runtime.parameters import integer
from mercer.samples.arrays import Data, n_samples, take


def kernel_feature_analysis(
    X: Data,
    n_features: int,
    *,
    kernel: Any = "rbf",
    candidates: int | None = None,
    normalise: bool = True,
    random_state: Any = None,
) -> list[Function]:
    """Find orthogonal functions of large variance over the data by sparse kernel feature analysis.

    Every candidate starts as k(x_j, ·). The one whose values at all samples have the largest standard deviation is
    chosen, and the other candidates are made orthogonal to it in feature space (Smola, Mangasarian and Schölkopf 1999).

    Parameters
    ----------
    X : array, CSR matrix or sequence of samples
        Samples, which include the candidates.
    n_features : int
        Number of functions.
    kernel : Kernel or str, default="rbf"
        The kernel; parameters that depend on data are computed from X.
    candidates : int, optional
        Number of candidates, drawn at random from the samples; by default all samples.
    normalise : bool, default=True
        Whether to divide each candidate by the sum of |coefficients| after every step, as `kfa` of kernlab does.
    random_state : int, RandomState or None
        Seed for drawing the candidates.

    Returns
    -------
    list of mercer.rkhs.Function
        The functions, in the order in which they were chosen. `np.column_stack([f(X) for f in features])` are the
        features of the samples.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inspection.features import kernel_feature_analysis
    >>> X = np.array([[0.0], [0.1], [3.0], [3.1], [9.0]])
    >>> first, second = kernel_feature_analysis(X, 2)
    >>> len(first), len(second)
    (1, 2)
    >>> abs(round(first.inner(second), 12))
    0.0
    """
    k = bound_kernel(kernel, X)
    n = n_samples(X)
    rows = np.arange(n)
    if candidates is not None and candidates < n:
        rows = np.sort(
            check_random_state(random_state).permutation(n)[
                : integer("candidates", candidates, 1, "there must be a candidate")
            ]
        )
    m = min(integer("n_features", n_features, 1, "the number of functions"), len(rows))
    centres = take(X, rows)
    K_all, K = k(centres, X), k(centres)
    # Candidate c is scale[c]·k(x_c, ·) + Σ_j alpha[c, j]·k(x_{chosen j}, ·).
    scale, alpha, chosen_rows = np.ones(len(rows)), np.zeros((len(rows), m)), list[int]()
    functions = []
    for i in range(m):
        # 1. Choose the candidate with the largest standard deviation.
        values = scale[:, None] * K_all + alpha[:, :i] @ K_all[chosen_rows]
        spread = values.std(axis=1)
        spread[chosen_rows] = -1.0
        c = int(np.argmax(spread))
        chosen_rows.append(c)
        coefficients = np.append(alpha[c, :i], scale[c])
        K_chosen = K[np.ix_(chosen_rows, chosen_rows)]
        square = float(coefficients @ K_chosen @ coefficients)
        sizes = np.abs(coefficients)
        if not square > len(rows) * float(np.finfo(float).eps) * float(sizes @ np.abs(K_chosen) @ sizes):
            break  # every candidate is 0 to rounding
        functions.append(Function(take(centres, np.array(chosen_rows)), coefficients, kernel=k))
        # 2. Remove its direction from the other candidates.
        share = (scale * (K[:, chosen_rows] @ coefficients) + alpha[:, : i + 1] @ (K_chosen @ coefficients)) / square
        alpha[:, : i + 1] -= np.outer(share, coefficients)
        if normalise:
            sizes = scale + np.abs(alpha).sum(axis=1)
            scale, alpha = scale / sizes, alpha / sizes[:, None]
    return functions
