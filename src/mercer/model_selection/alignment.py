"""Kernel target alignment: how much a kernel matrix looks like the one that the targets themselves would make.

With shares p = w/Σw, ⟨A, B⟩ = Σ_ij p_ip_j A_ijB_ij, the kernel matrix centred, K̄ = (I − 1p')K(I − p1'), and T̄ that of
the targets T = ZZ', Z having ±1 for two classes, a column for each of several, or the numbers themselves,

    alignment = ⟨K̄, T̄⟩ / (‖K̄‖‖T̄‖)

between 0 and 1 for a positive definite kernel (Cristianini and others, 2002; centred: Cortes and others, 2012).
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
    """The alignment of a kernel with targets: 1 where its matrix is that of the targets, up to a factor.

    Parameters
    ----------
    X : array, CSR matrix or sequence of samples
        The samples.
    y : array
        Their classes, or numbers, or rows of numbers. Numbers that are not whole are no classes.
    kernel : str, Kernel or callable, default="rbf"
        Of which the matrix is judged; "precomputed" if X is the matrix.
    centred : bool, default=True
        Whether both are centred in feature space; without, kernels with a large constant look alike.
    sample_weight : array, optional
        How much each sample counts.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import kernel_alignment
    >>> from mercer.kernels import Gaussian
    >>> X, y = load_iris(return_X_y=True)
    >>> [round(kernel_alignment(X, y, kernel=Gaussian(gamma=gamma)), 2) for gamma in (0.001, 0.3, 100.0)]
    [0.67, 0.8, 0.13]
    """
    bound = as_kernel(kernel).bind(X)
    K = np.array(host(X), dtype=np.float64) if bound.accepts == "gram" else bound(X)
    Z = target_columns(on_host(y))
    if K.shape != (len(Z), len(Z)):
        raise ValueError(f"y has {len(Z)} targets, but the kernel matrix has the shape {K.shape}")
    return alignment(K, Z, weights(on_host(sample_weight), len(Z)), centred)[0]


def target_columns(y: Any) -> Floats:
    """Z: numbers as they are, ±1 for classes."""
    given = np.asarray(y)
    if (given.dtype.kind == "f" and (given != np.round(given)).any()) or given.ndim == 2:
        return outputs(given)[0]
    labels, codes = read_labels(given)
    return signs(codes, len(labels))


def alignment(K: Floats, Z: Floats, weight: Floats, centred: bool) -> tuple[float, Floats]:
    """The alignment, and its derivative by each entry of K."""
    p = weight / weight.sum()
    scale = float(np.abs(K).max() * np.square(Z).sum(axis=1).max())
    if centred:
        Z = Z - p @ Z
        mean = K @ p
        K = K - mean[:, None] - mean + p @ mean
    T, both = Z @ Z.T, np.outer(p, p)
    common, size, target = (float((both * A * B).sum()) for A, B in ((K, T), (K, K), (T, T)))
    if not size * target > (1e-14 * scale) ** 2:
        raise ValueError("all targets, or all samples in feature space, are one point: there is nothing to align")
    length = np.sqrt(size * target)
    slope = both * (T - (common / size) * K) / length
    if centred:
        slope = slope - np.outer(p, slope.sum(axis=0)) - np.outer(slope.sum(axis=1), p) + slope.sum() * both
    return float(common / length), slope
