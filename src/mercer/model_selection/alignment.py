"""Kernel target alignment: the similarity of a kernel matrix and the ideal matrix of the targets.

The weights are normalised, p = w/Σw, and ⟨A, B⟩ = Σ_ij p_ip_j A_ijB_ij. Z has one column of ±1 for two classes, one
column for each of several classes, or the numbers themselves; T = ZZ' is the matrix of the targets. With the centred
matrices K̄ = (I − 1p')K(I − p1') and T̄ = (I − 1p')T(I − p1'),

    alignment = ⟨K̄, T̄⟩ / (‖K̄‖‖T̄‖)

which is between 0 and 1 for a positive definite kernel (Cristianini and others, 2002; centred: Cortes and others,
2012).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.kernels.names import KernelLike, as_kernel
from mercer.samples.arrays import Floats, host
from mercer.samples.checks import outputs, weights
from mercer.samples.engine import on_host
from mercer.samples.labels import read_labels, signs


def kernel_alignment(
    X: Any,
    y: ArrayLike,
    *,
    kernel: KernelLike = "rbf",
    centred: bool = True,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the alignment of a kernel with targets; it is 1 if K and the target matrix agree up to a factor.

    Parameters
    ----------
    X : array, CSR matrix or sequence of samples
        Training samples.
    y : array
        Classes, numbers, or rows of numbers. Floats that are not all integers are numbers, not classes.
    kernel : str, Kernel or callable, default="rbf"
        Kernel to judge; "precomputed" if X is the kernel matrix.
    centred : bool, default=True
        Whether both matrices are centred in feature space; if not, kernels with a large constant look alike.
    sample_weight : array, optional
        Weight of each sample.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import kernel_alignment
    >>> from mercer.kernels import Gaussian
    >>> X, y = load_iris(return_X_y=True)
    >>> [round(kernel_alignment(X, y, kernel=Gaussian(gamma=gamma)), 2) for gamma in (0.001, 0.3, 100.0)]
    [0.67, 0.8, 0.13]
    """
    bound_kernel = as_kernel(kernel).bind(X)
    K = np.array(host(X), dtype=np.float64) if bound_kernel.accepts == "gram" else bound_kernel(X)
    Z = target_columns(on_host(y))
    if K.shape != (len(Z), len(Z)):
        raise ValueError(f"y has {len(Z)} targets, but the kernel matrix has the shape {K.shape}")
    return alignment(K, Z, weights(on_host(sample_weight), len(Z)), centred)[0]


def target_columns(y: Any) -> Floats:
    """Return the matrix Z of the targets: numbers as they are, classes as columns of ±1."""
    targets = np.asarray(y)
    if (targets.dtype.kind == "f" and (targets != np.round(targets)).any()) or targets.ndim == 2:
        return outputs(targets)[0]
    labels, codes = read_labels(targets)
    return signs(codes, len(labels))


def alignment(K: Floats, Z: Floats, weight: Floats, centred: bool) -> tuple[float, Floats]:
    """Return the alignment of K with ZZ', and its derivative by each entry of K."""
    p = weight / weight.sum()
    scale = float(np.abs(K).max() * np.square(Z).sum(axis=1).max())
    if centred:
        Z = Z - p @ Z
        mean = K @ p
        K = K - mean[:, None] - mean + p @ mean
    T, pair_weights = Z @ Z.T, np.outer(p, p)
    inner, K_square, T_square = (float((pair_weights * A * B).sum()) for A, B in ((K, T), (K, K), (T, T)))
    if not K_square * T_square > (1e-14 * scale) ** 2:
        raise ValueError("all targets, or all samples in feature space, are equal: there is nothing to align")
    norms = np.sqrt(K_square * T_square)
    gradient = pair_weights * (T - (inner / K_square) * K) / norms
    if centred:
        gradient = (
            gradient
            - np.outer(p, gradient.sum(axis=0))
            - np.outer(gradient.sum(axis=1), p)
            + gradient.sum() * pair_weights
        )
    return float(inner / norms), gradient
