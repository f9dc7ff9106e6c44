"""Affinities that are mostly zero, as a sparse matrix: one that was given, or that of nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

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


def neighbours(X: Any, n_neighbors: int, weight: Floats, n_jobs: int | None) -> sp.csr_array:
    """Half a unit of affinity from each sample to those nearest to it, itself among them, and from them to it.

    A sample of weight w stands for w copies and takes w places among the nearest, fewer where it is the last.
    """
    kept = np.flatnonzero(weight)
    mass = weight[kept]
    if n_neighbors > mass.sum():
        total = f"n_samples={len(kept)}" if (mass == 1).all() else f"samples of {mass.sum():g} units of weight in all"
        raise ValueError(f"n_neighbors={n_neighbors} are too many for {total}; lower n_neighbors")
    near = NearestNeighbors(n_jobs=n_jobs).fit(X[kept])
    rows, columns, shares = [], [], []
    waiting, count = np.arange(len(weight)), n_neighbors
    while len(waiting):
        count = min(count, len(kept))
        nearest = near.kneighbors(X[waiting], count, return_distance=False)
        places = mass[nearest]
        before = np.cumsum(places, axis=1) - places
        done = (before + places)[:, -1] >= n_neighbors if count < len(kept) else np.ones(len(waiting), dtype=np.bool_)
        share = np.clip(n_neighbors - before, 0.0, places) / places
        at = np.nonzero(done[:, None] & (share > 0))
        rows.append(waiting[at[0]])
        columns.append(kept[nearest[at]])
        shares.append(share[at])
        waiting, count = waiting[~done], 2 * count
    one_way = sp.csr_array((np.concatenate(shares), (np.concatenate(rows), np.concatenate(columns))), 2 * weight.shape)
    return sp.csr_array(0.5 * (one_way + one_way.T))
