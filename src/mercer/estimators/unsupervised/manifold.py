"""Kernels deformed by a graph of labelled and unlabelled samples: Laplacian RLS and SVMs with existing estimators.

    ‖f‖̃² = ‖f‖² + τ Σ_ij W_ij (f(x_i) − f(x_j))²/2 = ‖f‖² + τ f'Lf       over all samples of the graph

is the norm of the kernel k̃(x, z) = k(x, z) − k_x'(I + τLK)⁻¹τL k_z (V. Sindhwani, P. Niyogi, M. Belkin, "Beyond the
point cloud", 2005). A machine with k̃ on the labelled samples alone minimises its loss + λ‖f‖² + λτ f'Lf: it is the
Laplacian machine of M. Belkin, P. Niyogi and V. Sindhwani (2006) with γ_A = λ and γ_I = λτ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from sklearn.neighbors import kneighbors_graph

from mercer.kernels import Kernel
from mercer.kernels.names import as_kernel, bound_kernel
from mercer.runtime.parameters import not_negative
from mercer.samples.arrays import Data, Floats
from mercer.samples.matrices import as_matrix, dense


@dataclass(frozen=True, eq=False)
class _DeformedKernel:
    """Function (X, Z) ↦ k̃(X, Z), with the samples of the graph and S = (I + τLK)⁻¹τL."""

    kernel: Kernel
    samples: Any
    S: Floats
    __name__ = "manifold_kernel"

    def __call__(self, X: Any, Z: Any) -> Floats:
        """Return the deformed kernel k̃ between samples."""
        out = self.kernel(X, Z) - self.kernel(X, self.samples) @ self.S @ self.kernel(self.samples, Z)
        return np.asarray(out)


def manifold_kernel(
    X: Data, *, kernel: Any = "rbf", tau: float = 1.0, n_neighbors: int = 6, graph: Any = None
) -> Kernel:
    """Return a kernel deformed by a graph of samples, so that functions change little between neighbours.

    Fitted to the labelled samples, `SVC` with this kernel is the Laplacian SVM, and `RLSClassifier` and `RLSRegressor`
    are Laplacian RLS. The kernel holds a matrix of n_samples² numbers.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Samples of the graph, labelled and unlabelled.
    kernel : Kernel or str, default="rbf"
        Kernel to deform. Data-dependent parameters are computed from X.
    tau : float, default=1.0
        Weight τ of the graph penalty f'Lf relative to ‖f‖².
    n_neighbors : int, default=6
        Number of nearest neighbours to which each sample is connected, with weight 1.
    graph : array or sparse matrix of shape (n_samples, n_samples), optional
        Symmetric nonnegative weights W to use instead of nearest neighbours.

    Returns
    -------
    Kernel
        Deformed kernel k̃.

    See Also
    --------
    transduce : Transductive support vector classification.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.kernels import Gaussian
    >>> from mercer.estimators.unsupervised import manifold_kernel
    >>> turn = np.linspace(0, 2.8, 40)
    >>> X = np.vstack([np.c_[np.cos(turn), np.sin(turn)], np.c_[1 - np.cos(turn), 0.4 - np.sin(turn)]])
    >>> y = np.repeat([0, 1], 40)
    >>> model = SVC(kernel=manifold_kernel(X, kernel=Gaussian(gamma=4.0), tau=10.0)).fit(X[[20, 60]], y[[20, 60]])
    >>> model.score(X, y)
    1.0
    """
    not_negative("tau", tau, "it is the weight of f'Lf")
    samples = as_matrix(X)
    k = bound_kernel(kernel, samples)
    n = samples.shape[0]
    if graph is None:
        neighbours = kneighbors_graph(samples, min(int(n_neighbors), n - 1))
        graph = neighbours.maximum(neighbours.T)
    W = np.asarray(dense(graph), dtype=np.float64)
    if W.shape != (n, n) or not np.isfinite(W).all() or (W < 0).any() or not np.array_equal(W, W.T):
        raise ValueError(f"graph must be a symmetric matrix of {n} × {n} numbers that are finite and not negative")
    L = tau * (np.diag(W.sum(axis=1)) - W)
    S = lu_solve(lu_factor(np.eye(n) + L @ k(samples)), L)
    return as_kernel(_DeformedKernel(k, samples, 0.5 * (S + S.T)))
