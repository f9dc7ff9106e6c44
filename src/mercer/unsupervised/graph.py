"""Affinities that are mostly zero, as a sparse matrix: one that was given, or that of nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import kneighbors_graph

from mercer.arrays import Floats, Indices
from mercer.expansion import Expansion
from mercer.kernels import as_kernel
from mercer.unsupervised.eigenpairs import leading_of_walk

_ASYMMETRIC_SHARE = 1e-8


@dataclass(frozen=True, eq=False)
class Graph:
    """Samples whose affinities K are sparse; `columns` are their places among the `n_columns` of the caller."""

    K: sp.csr_array
    columns: Indices
    n_columns: int

    @classmethod
    def of(cls, A: Any, kept: Indices) -> Graph:
        """From a square matrix, of which some rows and their columns are taken."""
        if A.shape[0] != A.shape[1]:
            raise ValueError(f"affinities are a square matrix between all training samples, but X has shape {A.shape}")
        odd = float(abs(A - A.T).max())
        if odd > _ASYMMETRIC_SHARE * float(abs(A).max()):
            raise ValueError(
                f"the matrix of affinities is not symmetric: entries differ from their mirror by up to {odd:.3g}; give "
                "(A + A.T) / 2"
            )
        return cls(sp.csr_array(A[kept][:, kept], dtype=np.float64), kept, A.shape[0])

    @property
    def squares(self) -> Floats:
        return np.asarray(self.K.diagonal())

    @property
    def n(self) -> int:
        return int(self.K.shape[0])

    def products(self, C: Floats, some: Indices | None = None) -> Floats:
        return np.asarray(self.K @ C if some is None else self.K[:, some] @ C)

    def eigenpairs(self, scale: Floats, k: int, centre: None, less: Floats) -> tuple[Floats, Floats]:
        """The k largest eigenvalues of S(K − diag(less))S with S = diag(scale), and their vectors."""
        S = sp.diags_array(scale)
        return leading_of_walk(sp.csr_array(S @ (self.K - sp.diags_array(less)) @ S), k)

    def function(self, C: Floats, b: Floats) -> Expansion:
        """What a row of affinities with all training samples becomes."""
        return Expansion(as_kernel("precomputed"), None, np.ascontiguousarray(C), b, self.columns, self.n_columns)


def neighbours(X: Any, n_neighbors: int, n_jobs: int | None) -> sp.csr_array:
    """Half a unit of affinity from each sample to those nearest to it, itself among them, and from them to it."""
    if n_neighbors > X.shape[0]:
        raise ValueError(f"n_neighbors={n_neighbors} are too many for n_samples={X.shape[0]}; lower n_neighbors")
    one_way = sp.csr_array(kneighbors_graph(X, n_neighbors, include_self=True, n_jobs=n_jobs))
    return sp.csr_array(0.5 * (one_way + one_way.T))
