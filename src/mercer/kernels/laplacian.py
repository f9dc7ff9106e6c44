"""The Laplacian kernel exp(−γ‖x − z‖₁): a product over the features, less smooth than the Gaussian."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.arrays import Floats
from mercer.errors import NotDifferentiableError
from mercer.kernels.bandwidth import WithGamma
from mercer.kernels.distances import l1_distances
from mercer.kernels.endings import exp_of_minus
from mercer.kernels.kernel import Answer, Slope
from mercer.kernels.matrices import check_same_width, row_and_rows
from mercer.kernels.recipe import Recipe
from mercer.kernels.terms import Term, Terms


class Laplacian(WithGamma):
    """exp(−γ‖x − z‖₁).

    Parameters
    ----------
    gamma : float ≥ 0, "scale", "auto" or "median"
        γ, or how it follows from the data: 1/(columns · variance of X), 1/columns, or from the median distance.

    Examples
    --------
    >>> from mercer.kernels import Laplacian
    >>> Laplacian(gamma=0.5)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.3679]])
    """

    positive_definite: Answer = "yes"
    unit_diagonal: Answer = "yes"
    _l1 = True

    def __init__(self, gamma: float | str = "scale") -> None:
        self.gamma = gamma
        self._check()

    def _values(self, X: Any, Z: Any) -> Floats:
        return exp_of_minus(self._gamma(), l1_distances(X, Z))

    def _gradient(self, X: Any, Z: Any, weights: Floats) -> Floats:
        check_same_width(X, Z)
        gamma, out = self._gamma(), np.zeros(X.shape)
        if gamma == 0:
            return out
        weights = -gamma * weights * self._values(X, Z)
        for i, rows, x, z in row_and_rows(X, Z):
            own = weights[i, rows]
            kinks = (x == z) & (own != 0)[:, None]
            if kinks.any():
                j, feature = np.argwhere(kinks)[0]
                raise NotDifferentiableError(
                    "a Laplacian kernel has no derivative where its two samples have a feature in common, but row "
                    f"{i} of X and row {rows.start + j} of Z both have {x[feature]:g} in column {feature}"
                )
            out[i] += own @ np.sign(x - z)
        return out

    def _slopes(self, X: Any, Z: Any) -> Iterator[Slope]:
        distances = l1_distances(X, Z)
        yield "gamma", (), -distances * exp_of_minus(self._gamma(), distances.copy())

    def recipe(self) -> Recipe:
        return Recipe("l1", "laplacian", (self._gamma(),))

    def terms(self) -> Terms:
        return (Term(absolute=self._gamma()),)

    @property
    def _constant(self) -> bool:
        return self.gamma == 0

    @property
    def strictly_positive_definite(self) -> Answer:
        return "no" if self._constant else "yes"

    @property
    def universal(self) -> Answer:
        return self.strictly_positive_definite

    @property
    def differentiable(self) -> Answer:
        return "yes" if self._constant else "no"

    @property
    def lipschitz(self) -> float | None:
        return 0.0 if self._constant else None  # 2 − 2k grows like ‖x − z‖₁, not like its square
