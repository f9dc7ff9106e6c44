"""The Laplacian kernel exp(−γ‖x − z‖₁): a product over the features, less smooth than the Gaussian."""

from __future__ import annotations

from typing import Any

from mercer.arrays import Floats
from mercer.kernels.bandwidth import WithGamma
from mercer.kernels.distances import l1_distances
from mercer.kernels.endings import exp_of_minus
from mercer.kernels.kernel import Answer
from mercer.kernels.recipe import Recipe


class Laplacian(WithGamma):
    """exp(−γ‖x − z‖₁).

    Parameters
    ----------
    gamma : float ≥ 0, "scale", "auto" or "median"

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

    def recipe(self) -> Recipe:
        return Recipe("l1", "laplacian", (self._gamma(),))

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
