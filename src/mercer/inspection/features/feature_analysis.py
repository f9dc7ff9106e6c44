"""Kernel feature analysis: a few kernel functions, each made orthogonal to those before, that vary most over the data.

A. Smola, O. Mangasarian and B. Schölkopf ("Sparse kernel feature analysis", 1999): where kernel PCA's directions are
combinations of all samples, the m-th of these is one of m samples.
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
    """The features as functions, in the order in which they were found.

    Every candidate starts as k(x_j, ·). The one whose values at all samples have the largest standard deviation is
    taken, and its direction in the kernel's space removed from the others.

    Parameters
    ----------
    X : array, CSR matrix or sequence of samples
        The data, and the candidates among them.
    n_features : int
        How many functions.
    kernel : Kernel or str, default="rbf"
        Parameters that depend on data are read off X.
    candidates : int, optional
        How many samples, drawn at random, are looked at; None: all.
    normalise : bool, default=True
        Divide each candidate by the sum of its coefficients' sizes after every step, as kernlab's `kfa` does.
    random_state : int, RandomState or None
        Of the draw.

    Returns
    -------
    list of mercer.rkhs.Function
        `np.column_stack([f(X) for f in features])` are the samples in these features.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.inspection.features import kernel_feature_analysis
    >>> X = np.array([[0.0], [0.1], [3.0], [3.1], [9.0]])
    >>> found = kernel_feature_analysis(X, 2)
    >>> [len(f.coefficients) for f in found]
    [1, 2]
    >>> abs(round(found[0].inner(found[1]), 12))
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
    m = min(integer("n_features", n_features, 1, "it is the number of functions"), len(rows))
    centres = take(X, rows)
    K_all, K = k(centres, X), k(centres)
    # Candidate c is own[c]·k(x_c, ·) + Σ_j alpha[c, j]·k(x_{chosen j}, ·).
    own, alpha, chosen = np.ones(len(rows)), np.zeros((len(rows), m)), list[int]()
    found = []
    for i in range(m):
        values = own[:, None] * K_all + alpha[:, :i] @ K_all[chosen]
        spread = values.std(axis=1)
        spread[chosen] = -1.0
        c = int(np.argmax(spread))
        chosen.append(c)
        coefficients = np.append(alpha[c, :i], own[c])
        among = K[np.ix_(chosen, chosen)]
        square = float(coefficients @ among @ coefficients)
        sizes = np.abs(coefficients)
        if not square > len(rows) * float(np.finfo(float).eps) * float(sizes @ np.abs(among) @ sizes):
            break  # what is left of every candidate is rounding
        found.append(Function(take(centres, np.array(chosen)), coefficients, kernel=k))
        share = (own * (K[:, chosen] @ coefficients) + alpha[:, : i + 1] @ (among @ coefficients)) / square
        alpha[:, : i + 1] -= np.outer(share, coefficients)
        if normalise:
            sizes = own + np.abs(alpha).sum(axis=1)
            own, alpha = own / sizes, alpha / sizes[:, None]
    return found
