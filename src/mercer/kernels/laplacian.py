"""The Laplacian kernel exp(−γ‖x − z‖₁): a product of one-dimensional ones, less smooth than the Gaussian."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Floats
from mercer.kernels.bandwidth import check_gamma, gamma_of, with_bound_gamma
from mercer.kernels.distances import l1_distances
from mercer.kernels.endings import exp_of_minus
from mercer.kernels.kernel import Answer, Kernel
from mercer.kernels.matrices import n_samples
from mercer.kernels.recipe import Recipe


class Laplacian(Kernel):
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

    def __init__(self, gamma: float | str = "scale") -> None:
        self.gamma = gamma
        check_gamma(gamma)

    def bind(self, X: Any, sample_weight: Any = None) -> Kernel:
        bound: Kernel = with_bound_gamma(self, X, sample_weight, l1=True)
        return bound

    @property
    def bound(self) -> bool:
        return not isinstance(self.gamma, str)

    def _values(self, X: Any, Z: Any) -> Floats:
        return exp_of_minus(gamma_of(self), l1_distances(X, Z))

    def diag(self, X: Any) -> Floats:
        return np.ones(n_samples(X))

    def recipe(self) -> Recipe:
        return Recipe("l1", "laplacian", (gamma_of(self),))

    @property
    def _constant(self) -> bool:
        return self.gamma == 0

    @property
    def strictly_positive_definite(self) -> Answer:
        return "no" if self._constant else "yes"

    @property
    def universal(self) -> Answer:
        return "no" if self._constant else "yes"

    @property
    def differentiable(self) -> Answer:
        return "yes" if self._constant else "no"

    @property
    def lipschitz(self) -> float | None:
        return 0.0 if self._constant else None  # 2 − 2k grows like ‖x − z‖₁, not like its square
