"""Kernels of sums over the features: Laplacian, exponential χ² for histograms, Tanimoto for sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from mercer.kernels.bandwidth import GammaKernel
from mercer.kernels.kernel import Answer, Kernel, Slope
from mercer.kernels.per_feature import HistogramKernel
from mercer.kernels.recipe import Recipe, exp_of_minus
from mercer.kernels.terms import Term, Terms
from mercer.runtime.errors import NotDifferentiableError
from mercer.runtime.parameters import SuggestsParameters, not_negative
from mercer.samples.arrays import Floats, Samples
from mercer.samples.distances import l1_distances, sums_over_features
from mercer.samples.matrices import (
    as_float64,
    check_same_width,
    combined,
    dense,
    dot,
    exponents,
    ordinary,
    row_by_row,
    rows_with_blocks,
    squared_lengths,
    times_power,
)


class DistanceKernel(Kernel):
    """Base class of kernels exp(−γ D(x, z)) of a distance D."""

    positive_definite = unit_diagonal = positive_values = "yes"
    gamma: float | str

    def _gamma(self) -> float:
        self._check()
        return float(self.gamma)

    def _distances(self, X: Samples, Z: Samples) -> Floats:
        """Return D(x_i, z_j) for all pairs of samples."""
        raise NotImplementedError

    def _values(self, X: Samples, Z: Samples) -> Floats:
        return exp_of_minus(self._gamma(), self._distances(X, Z))

    def _slopes(self, X: Samples, Z: Samples) -> Iterator[Slope]:
        """Yield the derivative of a block of K by each real-valued parameter."""
        distances = self._distances(X, Z)
        yield "gamma", (), -distances * exp_of_minus(self._gamma(), distances.copy())

    @property
    def strictly_positive_definite(self) -> Answer:
        return "no" if self.gamma == 0 else "yes"

    @property
    def universal(self) -> Answer:
        return self.strictly_positive_definite


@dataclass(eq=False, repr=False)
class Laplacian(SuggestsParameters, GammaKernel, DistanceKernel):
    """Laplacian kernel exp(−γ‖x − z‖₁).

    Parameters
    ----------
    gamma : float ≥ 0, "scale", "auto" or "median"
        Coefficient γ, or the rule for it: 1/(columns · variance of X), 1/columns, or from the median distance.

    Examples
    --------
    >>> from mercer.kernels import Laplacian
    >>> Laplacian(gamma=0.5)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.3679]])
    """

    gamma: float | str = "scale"

    _l1 = True

    def _distances(self, X: Samples, Z: Samples) -> Floats:
        return l1_distances(X, Z)

    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        """Compute Σ_j weights_ij ∂k(x_i, z_j)/∂x_i."""
        check_same_width(X, Z)
        gamma, out = self._gamma(), np.zeros(X.shape)
        if gamma == 0:
            return out
        weights = -gamma * weights * self._values(X, Z)
        for i, rows, x, z in rows_with_blocks(X, Z):
            row_weights = weights[i, rows]
            kinks = (x == z) & (row_weights != 0)[:, None]
            if kinks.any():
                j, feature = np.argwhere(kinks)[0]
                raise NotDifferentiableError(
                    "a Laplacian kernel has no derivative where its two samples agree in a feature, but row "
                    f"{i} of X and row {rows.start + j} of Z both have {x[feature]:g} in column {feature}"
                )
            out[i] += row_weights @ np.sign(x - z)
        return out

    def recipe(self) -> Recipe:
        return Recipe("l1", "laplacian", (self._gamma(),))

    def terms(self, d: int) -> Terms:
        return (Term(absolute=self._gamma()),)

    @property
    def differentiable(self) -> Answer:
        return "yes" if self.gamma == 0 else "no"

    @property
    def lipschitz(self) -> float | None:
        return 0.0 if self.gamma == 0 else None  # 2 − 2k grows like ‖x − z‖₁, not like its square


@dataclass(eq=False, repr=False)
class Chi2(HistogramKernel, DistanceKernel):
    """Exponential χ² kernel exp(−γ Σ_f (x_f − z_f)² / (x_f + z_f)) for entries ≥ 0, with 0/0 = 0.

    Parameters
    ----------
    gamma : float ≥ 0
        Coefficient γ.

    Examples
    --------
    >>> from mercer.kernels import Chi2
    >>> Chi2(gamma=1.0)([[1.0, 3.0]], [[3.0, 1.0], [1.0, 3.0]]).round(4)  # exp(−2), 1
    array([[0.1353, 1.    ]])
    """

    gamma: float = 1.0

    # Per feature (x − z)²/(x + z) = x + z − 4xz/(x + z), and xz/(x + z) = xz ∫ e^(−tx)e^(−tz) dt has an injective
    # feature map, so that exp of its multiple is universal (Christmann and Steinwart 2010, theorem 2.2).
    differentiable = "no"  # not at 0

    def _check(self) -> None:
        not_negative("gamma", self.gamma)

    def _distances(self, X: Samples, Z: Samples) -> Floats:
        if ordinary(X, Z):
            return sums_over_features(_additive_chi2, lambda x, z: (x - z) ** 2 / (x + z), X, Z)
        return sums_over_features(partial(row_by_row, lambda x, z: _chi2_term(x, z).sum(axis=1)), _chi2_term, X, Z)

    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        """Compute Σ_j weights_ij ∂k(x_i, z_j)/∂x_i."""
        weights, out = -float(self.gamma) * weights * self._values(X, Z), np.zeros(X.shape)
        for i, rows, x, z in rows_with_blocks(X, Z):
            row_weights, total = weights[i, rows], x + z
            both_zero = (total == 0) & (row_weights != 0)[:, None]
            if both_zero.any():
                j, feature = np.argwhere(both_zero)[0]
                raise NotDifferentiableError(
                    f"the chi2 kernel has no derivative where both samples have a 0, but row {i} of X and row "
                    f"{rows.start + j} of Z have one in column {feature}"
                )
            # Derivative of (x − z)²/(x + z), computed without squares.
            total[total == 0] = 1.0
            out[i] += row_weights @ ((x - z) / total * ((x + 3 * z) / total))
        return out

    def terms(self, d: int) -> Terms:
        return (Term(chi2=float(self.gamma)),)


class Tanimoto(Kernel):
    """Tanimoto kernel ⟨x, z⟩ / (‖x‖² + ‖z‖² − ⟨x, z⟩), the Jaccard index of sets given as 0/1 vectors; 1 if both are 0.

    Examples
    --------
    >>> from mercer.kernels import Tanimoto
    >>> Tanimoto()([[1, 1, 0, 0]], [[1, 0, 1, 0]]).round(4)  # one of three is shared
    array([[0.3333]])
    """

    # The kernel is Σ_m ⟨x, z⟩^m / (‖x‖² + ‖z‖²)^m over m ≥ 1, and every term is positive definite.
    positive_definite = strictly_positive_definite = "yes"
    universal: Answer = "no"  # not continuous at 0
    unit_diagonal = "yes"
    differentiable = positive_values = "no"

    def _values(self, X: Samples, Z: Samples) -> Floats:
        intersection, union = self._intersection_and_union(X, Z)
        are_both_zero = union == 0
        np.divide(intersection, union, out=intersection, where=~are_both_zero)
        intersection[are_both_zero] = 1.0
        return intersection

    @staticmethod
    def _intersection_and_union(X: Samples, Z: Samples) -> tuple[Floats, Floats]:
        """Return ⟨x, z⟩ and ‖x‖² + ‖z‖² − ⟨x, z⟩, for sets the sizes of intersection and union.

        The second is 0 only if both samples are 0. If squares would overflow or underflow, both results are divided by
        about the larger of ‖x‖² and ‖z‖².
        """
        is_ordinary = ordinary(X, Z)
        x, z = X, Z
        if not is_ordinary:  # each row is scaled by its own power of two
            power_x, power_z = (exponents(samples) for samples in (as_float64(X), as_float64(Z)))
            x, z = times_power(as_float64(X), -power_x), times_power(as_float64(Z), -power_z)
        intersection, lengths_x = dot(x, z), squared_lengths(x)
        lengths_z = lengths_x if z is x else squared_lengths(z)
        if is_ordinary:
            union = lengths_x[:, None] + lengths_z
        else:
            # A row of zeros has no size, so that the size of the other row counts.
            power_x = np.where(lengths_x > 0, power_x, -3000)[:, None]
            power_z = np.where(lengths_z > 0, power_z, -3000)
            larger = np.maximum(power_x, power_z)
            intersection = np.ldexp(intersection, power_x + power_z - 2 * larger)
            union = np.ldexp(lengths_x[:, None], 2 * (power_x - larger)) + np.ldexp(lengths_z, 2 * (power_z - larger))
        union -= intersection
        return intersection, union

    def _gradient(self, X: Samples, Z: Samples, weights: Floats) -> Floats:
        """Compute Σ_j weights_ij ∂k(x_i, z_j)/∂x_i."""
        if not ordinary(X, Z):
            raise ValueError(
                "derivatives of the Tanimoto kernel need entries between 1e-114 and 1e114 in size; scale the features"
            )
        intersection, union = self._intersection_and_union(X, Z)
        empty = (union == 0) & (weights != 0)
        if empty.any():
            i, j = np.argwhere(empty)[0]
            raise NotDifferentiableError(
                f"the Tanimoto kernel is not continuous where both samples are 0, as row {i} of X and row {j} of Z are"
            )
        weights = np.divide(weights, union, out=np.zeros_like(union), where=union > 0)
        values = np.divide(intersection, union, out=np.zeros_like(union), where=union > 0)
        coefficients_of_x = (2 * weights * values).sum(axis=1)
        return np.asarray(combined(weights * (1 + values), Z) - coefficients_of_x[:, None] * dense(as_float64(X)))


def _chi2_term(x: Floats, z: Floats) -> Floats:
    """Compute (x − z)²/(x + z) for numbers of any size, from their halves, since x + z may overflow."""
    total = 0.5 * x + 0.5 * z
    return np.asarray((x - z) * ((0.5 * x - 0.5 * z) / np.where(total > 0, total, 1.0)))


def _additive_chi2(x: Floats, z: Floats) -> Floats:
    """Return Σ_f (x_f − z_f)²/(x_f + z_f) for all pairs of rows."""
    # scikit-learn's loop refuses read-only arrays.
    x, z = np.require(x, requirements="W"), np.require(z, requirements="W")
    from sklearn.metrics.pairwise import additive_chi2_kernel  # imported here, since the import takes a second

    return np.asarray(-additive_chi2_kernel(x, z), dtype=np.float64)
