"""The soft-margin objective of Pegasos, stochastic subgradient descent, for one or more machines on the same samples.

    minimise  F(w) = (λ/2)‖w‖² + Σ p_i max(0, 1 − y_i⟨w, φ(x_i)⟩),    p_i = weight_i / Σ weights

F/λ is ½‖w‖² + Σ C_iξ_i with C_i = p_i/λ, whose dual without bias is: maximise Σα − ½‖Σ α_iy_iφ(x_i)‖² over
0 ≤ α_i ≤ C_i.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mercer.samples.arrays import Floats, Indices, inner


@dataclass(frozen=True, eq=False)
class PegasosProblem:
    """A Pegasos problem: signs ±1 with one row per machine, the weight of every sample, and λ."""

    signs: Floats
    weight: Floats
    lam: float

    @cached_property
    def probability(self) -> Floats:
        """Share p of each sample in the total weight."""
        return np.asarray(self.weight / self.weight.sum())

    def part(self, rows: Indices) -> PegasosProblem:
        """Return the problem of the given samples alone."""
        return replace(self, signs=np.ascontiguousarray(self.signs[:, rows]), weight=self.weight[rows])

    def objective(self, machine: int, square: float, f: Floats) -> float:
        """Return the objective F of one machine, where `square` is ‖w‖² and f are its outputs."""
        hinge = np.maximum(0.0, 1.0 - self.signs[machine] * f)
        return 0.5 * self.lam * square + inner(self.probability, hinge)
