"""Kernels of histograms and sets: exponential χ² for counts, Tanimoto for shared features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.arrays import Floats, is_sparse
from mercer.errors import NotDifferentiableError
from mercer.kernels.distances import sums_over_features
from mercer.kernels.endings import exp_of_minus
from mercer.kernels.kernel import Answer, Kernel, Slope
from mercer.kernels.matrices import as_matrix, combined, dense, dot, row_and_rows, squared_lengths, widened
from mercer.kernels.sizes import exponents, ordinary, times_power
from mercer.kernels.terms import Term, Terms
from mercer.parameters import not_negative


class Chi2(Kernel):
    """exp(−γ Σ_f (x_f − z_f)² / (x_f + z_f)) for entries ≥ 0, with 0/0 = 0.

    Parameters
    ----------
    gamma : float ≥ 0
        γ.

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

    def bind(self, X: Any, sample_weight: ArrayLike | None = None) -> Kernel:
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
        return exp_of_minus(float(self.gamma), self._distances(X, Z))

    def _distances(self, X: Any, Z: Any) -> Floats:
        if ordinary(X, Z):
            return sums_over_features(_chi2, lambda x, z: (x - z) ** 2 / (x + z), X, Z)
        return sums_over_features(_chi2_of_any_size, _chi2_term, X, Z)

    def _gradient(self, X: Any, Z: Any, weights: Floats) -> Floats:
        weights, out = -float(self.gamma) * weights * self._values(X, Z), np.zeros(X.shape)
        for i, rows, x, z in row_and_rows(X, Z):
            own, total = weights[i, rows], x + z
            nothing = (total == 0) & (own != 0)[:, None]
            if nothing.any():
                j, feature = np.argwhere(nothing)[0]
                raise NotDifferentiableError(
                    f"the chi2 kernel has no derivative where both samples have a 0, but row {i} of X and row "
                    f"{rows.start + j} of Z have one in column {feature}"
                )
            # The derivative of (x − z)²/(x + z), without squares.
            total[total == 0] = 1.0
            out[i] += own @ ((x - z) / total * ((x + 3 * z) / total))
        return out

    def terms(self) -> Terms:
        return (Term(chi2=float(self.gamma)),)

    def _slopes(self, X: Any, Z: Any) -> Iterator[Slope]:
        distances = self._distances(X, Z)
        yield "gamma", (), -distances * exp_of_minus(float(self.gamma), distances.copy())

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
        shared, either = self._shared_and_either(X, Z)
        nothing = either == 0
        np.divide(shared, either, out=shared, where=~nothing)
        shared[nothing] = 1.0
        return shared

    @staticmethod
    def _shared_and_either(X: Any, Z: Any) -> tuple[Floats, Floats]:
        """⟨x, z⟩ and ‖x‖² + ‖z‖² − ⟨x, z⟩, both divided by the square of the longer of the two where squares would
        overflow or underflow; the second is 0 only where both are 0."""
        usual = ordinary(X, Z)
        x, z = X, Z
        if not usual:  # each row by a power of two of its own
            above, beside = (exponents(samples) for samples in (widened(X), widened(Z)))
            x, z = times_power(widened(X), -above), times_power(widened(Z), -beside)
        shared, lengths_x = dot(x, z), squared_lengths(x)
        lengths_z = lengths_x if z is x else squared_lengths(z)
        if usual:
            either = lengths_x[:, None] + lengths_z
        else:
            # A row of zeros has no size: the other one's counts.
            above = np.where(lengths_x > 0, above, -3000)[:, None]
            beside = np.where(lengths_z > 0, beside, -3000)
            larger = np.maximum(above, beside)
            shared = np.ldexp(shared, above + beside - 2 * larger)
            either = np.ldexp(lengths_x[:, None], 2 * (above - larger)) + np.ldexp(lengths_z, 2 * (beside - larger))
        either -= shared
        return shared, either

    def _gradient(self, X: Any, Z: Any, weights: Floats) -> Floats:
        if not ordinary(X, Z):
            raise ValueError(
                "derivatives of the Tanimoto kernel need entries between 1e-114 and 1e114 in size; scale the features"
            )
        shared, either = self._shared_and_either(X, Z)
        empty = (either == 0) & (weights != 0)
        if empty.any():
            i, j = np.argwhere(empty)[0]
            raise NotDifferentiableError(
                f"the Tanimoto kernel is not continuous where both samples are 0, as row {i} of X and row {j} of Z are"
            )
        weights = np.divide(weights, either, out=np.zeros_like(either), where=either > 0)
        values = np.divide(shared, either, out=np.zeros_like(either), where=either > 0)
        own = (2 * weights * values).sum(axis=1)
        return np.asarray(combined(weights * (1 + values), Z) - own[:, None] * dense(widened(X)))


def _chi2_term(x: Floats, z: Floats) -> Floats:
    """(x − z)²/(x + z) of numbers of any size; halves, because a sum of two may overflow."""
    total = 0.5 * x + 0.5 * z
    return np.asarray((x - z) * ((0.5 * x - 0.5 * z) / np.where(total > 0, total, 1.0)))


def _chi2_of_any_size(X: Floats, Z: Floats) -> Floats:
    out = np.zeros((X.shape[0], Z.shape[0]))
    with np.errstate(over="ignore"):
        for i, rows, x, z in row_and_rows(X, Z):
            out[i, rows] = _chi2_term(x, z).sum(axis=1)
    return out


def _chi2(x: Floats, z: Floats) -> Floats:
    # scikit-learn's loop refuses read-only arrays.
    x, z = np.require(x, requirements="W"), np.require(z, requirements="W")
    from sklearn.metrics.pairwise import additive_chi2_kernel  # a second that other kernels need not wait for

    return np.asarray(-additive_chi2_kernel(x, z), dtype=np.float64)
