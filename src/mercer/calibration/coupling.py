"""Class probabilities from the probabilities of pairs of classes (Wu, Lin, Weng 2004, second method).

With r_ij the probability of class i if only i and j were possible, p solves

    minimise  Σ_i Σ_{j≠i} (r_ji p_i − r_ij p_j)²   subject to  Σ_i p_i = 1,

whose solution is never negative. Its matrix Q (Q_ii = Σ_j r_ji², Q_ij = −r_ji r_ij) leads to Q p = constant.
"""

from __future__ import annotations

import numpy as np

from mercer.samples.arrays import Floats, row_blocks

# Smallest probability of a class in a pair, so that Q is not singular; the same number as in LIBSVM.
SMALLEST = 1e-7


def couple(pairs: Floats, n_classes: int) -> Floats:
    """Compute class probabilities from the probability of the first class of every pair (0 1, 0 2, …, 1 2, …).

    Parameters
    ----------
    pairs : array of shape (n_samples, n_classes · (n_classes − 1) / 2)
        P(first class) if only the two classes of a pair were possible.
    n_classes : int
        Number of classes.

    Returns
    -------
    array of shape (n_samples, n_classes)
        Probability of each class.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.calibration import couple
    >>> couple(np.array([[0.5, 2 / 3, 2 / 3]]), 3).round(6)  # 0 and 1 alike, each twice as likely as 2
    array([[0.4, 0.4, 0.2]])
    """
    pairs = np.asarray(pairs, dtype=np.float64)
    if pairs.ndim != 2 or pairs.shape[1] != n_classes * (n_classes - 1) // 2:
        raise ValueError(
            f"pairs has shape {pairs.shape}, but {n_classes} classes need {n_classes * (n_classes - 1) // 2} columns, "
            "one for each pair"
        )
    out = np.empty((len(pairs), n_classes))
    for block in row_blocks(len(pairs), 24 * n_classes * n_classes):
        Q = equations(pairs[block], n_classes)
        # p is (Q + t 11')⁻¹1 up to a factor, for any t > 0; with t = 1 the matrix is far from singular.
        p = np.linalg.solve(Q + 1.0, np.ones((len(Q), n_classes, 1)))[:, :, 0]
        p = np.maximum(p, 0.0)  # negative only by rounding
        out[block] = p / p.sum(axis=1, keepdims=True)
    return out


def equations(pairs: Floats, n_classes: int) -> Floats:
    """Return the matrix Q for every row of pair probabilities."""
    upper, diagonal = np.triu_indices(n_classes, 1), np.arange(n_classes)
    first = np.clip(pairs, SMALLEST, 1.0 - SMALLEST)
    r = np.zeros((len(first), n_classes, n_classes))
    r[:, upper[0], upper[1]] = first
    r[:, upper[1], upper[0]] = 1.0 - first
    Q = -r * r.transpose(0, 2, 1)
    Q[:, diagonal, diagonal] = (r**2).sum(axis=1)
    return Q
