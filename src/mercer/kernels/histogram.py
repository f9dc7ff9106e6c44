"""Kernels of histograms and sets: exponential χ² for counts, Tanimoto for shared features."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Floats, is_sparse
from mercer.kernels.distances import sums_over_features
from mercer.kernels.endings import exp_of_minus
from mercer.kernels.kernel import Answer, Kernel
from mercer.kernels.matrices import as_matrix, dot, squared_lengths
from mercer.parameters import not_negative


class Chi2(Kernel):
    """exp(−γ Σ_f (x_f − z_f)² / (x_f + z_f)) for entries ≥ 0, with 0/0 = 0.

    Parameters
    ----------
    gamma : float ≥ 0

    Examples
    --------
    >>> from mercer.kernels import Chi2
    >>> Chi2(gamma=1.0)([[1.0, 3.0]], [[3.0, 1.0], [1.0, 3.0]]).round(4)  # exp(−2), 1
    array([[0.1353, 1.    ]])
    """

    positive_definite: Answer = "yes"
    unit_diagonal: Answer = "yes"
    differentiable: Answer = "no"  # at 0

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma
        self._check()

    def _check(self) -> None:
        not_negative("gamma", self.gamma)

    def bind(self, X: Any, sample_weight: Any = None) -> Kernel:
        self._check()
        self._samples(X)
        return self

    def _samples(self, X: Any) -> Any:
        X = as_matrix(X)
        entries = X.data if is_sparse(X) else X
        if entries.size and entries.min() < 0:
            raise ValueError(
                f"the chi2 kernel compares histograms, whose entries are ≥ 0, but X contains {entries.min():g}; "
                "shift or bin the features, or choose another kernel"
            )
        return X

    def _values(self, X: Any, Z: Any) -> Floats:
        self._check()
        return exp_of_minus(float(self.gamma), sums_over_features(_chi2, lambda x, z: (x - z) ** 2 / (x + z), X, Z))

    # Per feature (x − z)²/(x + z) = x + z − 4xz/(x + z), and xz/(x + z) = xz ∫ e^(−tx)e^(−tz) dt has an injective
    # feature map, so exp of its multiple is universal (Christmann and Steinwart 2010, theorem 2.2).
    @property
    def strictly_positive_definite(self) -> Answer:
        return "yes" if self.gamma > 0 else "no"

    @property
    def universal(self) -> Answer:
        return self.strictly_positive_definite


class Tanimoto(Kernel):
    """⟨x, z⟩ / (‖x‖² + ‖z‖² − ⟨x, z⟩), the Jaccard index of sets given as 0/1 vectors; 1 where both are 0.

    Examples
    --------
    >>> from mercer.kernels import Tanimoto
    >>> Tanimoto()([[1, 1, 0, 0]], [[1, 0, 1, 0]]).round(4)  # one of three is shared
    array([[0.3333]])
    """

    # Σ_m ⟨x, z⟩^m / (‖x‖² + ‖z‖²)^m over m ≥ 1 converges to it, and every term is positive definite.
    positive_definite: Answer = "yes"
    strictly_positive_definite: Answer = "yes"
    universal: Answer = "no"  # not continuous at 0
    unit_diagonal: Answer = "yes"
    differentiable: Answer = "no"

    def _values(self, X: Any, Z: Any) -> Floats:
        shared = dot(X, Z)
        lengths_x = squared_lengths(X)
        lengths_z = lengths_x if Z is X else squared_lengths(Z)
        with np.errstate(over="ignore", invalid="ignore"):
            either = lengths_x[:, None] + lengths_z
            either -= shared
            nothing = either == 0
            np.divide(shared, either, out=shared, where=~nothing)
        shared[nothing] = 1.0
        return shared


def _chi2(x: Floats, z: Floats) -> Floats:
    # scikit-learn's loop refuses read-only arrays.
    x, z = np.require(x, requirements="W"), np.require(z, requirements="W")
    from sklearn.metrics.pairwise import additive_chi2_kernel  # a second that other kernels need not wait for

    return np.asarray(-additive_chi2_kernel(x, z), dtype=np.float64)
