"""Certificates of multiple kernel learning: weights of a sum of kernels, learnt together with the machine.

With K_θ = Σ_m θ_m K_m, scales v_m > 0, the unit ball of the weights θ ≥ 0, ‖(v_mθ_m)‖_p ≤ 1, and 1/p + 1/q = 1, the
problem of kernel learning is

    minimise over θ  maximise over β  Σ_t [p'β_t − ½β_t'(K_θ + diag d)β_t]

where t runs over the sub-problems (pairs of classes) that share the weights. With s_m = Σ_t β_t'K_mβ_t its dual value
at β is Σ_t [p'β_t − ½β_t'diag(d)β_t] − ½‖(s_m/v_m)‖_q. Its primal value at f = Σ_m θ_mK_mβ + b is that of the machines
with K_θ, where θ/N takes the place of θ if N = ‖(v_mθ_m)‖_p is above 1, which makes ½Σ‖f_m‖²/θ_m N times as large. So

    primal − dual = Σ_t (gap of machine t with K_θ) + ½(‖(s_m/v_m)‖_q − θ's) + ½(N − 1)θ's,    every term ≥ 0

All of it is recomputed from β and θ. Every K_mβ comes with a bound on its rounding, and `gap` is the largest value that
any K_mβ within these bounds gives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mercer.certificates.certificate import EQUALITY, Certificate, weakest_claim
from mercer.certificates.dual import PROOF, certificate_of
from mercer.places.ball import Ball, exact, rounded_up
from mercer.places.gram import BoundedProducts
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats

# Names of the two conditions on weights in `kkt`.
OPTIMAL, INSIDE = "kernel weights: optimality", "kernel weights: norm"
# A dual norm up to this is that of β = 0.
_SMALLEST_NORM = 1e-300


@dataclass(frozen=True, eq=False)
class WeightsProblem:
    """Constraint ‖(v_mθ_m)‖_p ≤ 1 on the kernel weights θ ≥ 0."""

    norm: float  # p
    scales: Floats  # v

    @property
    def dual_exponent(self) -> float:
        """Exponent q of the dual norm, 1/p + 1/q = 1."""
        if self.norm == 1:
            return math.inf
        return 1.0 if self.norm == math.inf else self.norm / (self.norm - 1.0)

    def size(self, weights: Floats) -> float:
        """Return an upper bound on ‖(v_mθ_m)‖_p."""
        return _norm_bound(self.scales * weights, self.norm)

    def dual_size(self, s: Floats) -> float:
        """Return an upper bound on ‖(s_m/v_m)‖_q, for s_m ≥ 0."""
        return _norm_bound(s / self.scales, self.dual_exponent)


def _norm_bound(values: Floats, p: float) -> float:
    """Return an upper bound on ‖values‖_p; each value is ≥ 0 and was rounded once.

    A power errs by less than four units in the last place (glibc: one). An exponent that was rounded changes the norm
    of m numbers by less than one rounding times log m.
    """
    if not np.isfinite(values).all():
        return math.inf
    largest = float(values.max(initial=0.0))
    if not largest > 0 or p == math.inf:
        return float(rounded_up(largest, 4))
    shares = values / largest
    if p == 1:
        return float(rounded_up(largest * math.fsum(shares), 8))
    total = math.fsum(np.power(shares, p).tolist())
    return float(rounded_up(largest * total ** (1.0 / p), 32 + 2 * len(values)))


def certify_machine(
    problem: DualProblem, grams: list[BoundedProducts], beta: Floats, weights: Floats, *, exact: bool = False
) -> tuple[Certificate, Floats, Ball]:
    """Certify one machine with K_θ, and return u = K_θβ and s_m = β'K_mβ of every kernel.

    The dual value belongs to a feasible point near β, no further away than the residual of the equalities. The balls
    s_m hold the values of both points. `exact` computes every K_mβ in the highest precision.
    """
    c = problem.row_coefficients(beta, grams[0].n)
    parts = [gram.product_bound(c, level=gram.levels[-1] if exact else np.float64) for gram in grams]
    with np.errstate(over="ignore", invalid="ignore"):
        u = Ball(np.zeros(len(c)), np.zeros(len(c)))
        for part, weight in zip(parts, weights.tolist(), strict=True):
            if weight:
                u = u + weight * part
        s = Ball(*(np.array(side) for side in zip(*(part.inner(c) for part in parts), strict=True)))
    proofs = [(PROOF[gram.positive_definite], "float64") for gram in grams]
    # |Σ θ_m k_ij| ≤ Σ θ_m r_i r_j ≤ √(Σ θ_m r_i²) √(Σ θ_m r_j²). The code that uses these bounds enlarges their squares
    # by the share 1e-6, so that their roundings need not be counted here.
    squares = sum(weight * gram.entry_bounds**2 for gram, weight in zip(grams, weights.tolist(), strict=True))
    entry_bounds = np.asarray(np.sqrt(squares))
    certificate = certificate_of(problem, beta, u.finite(), entry_bounds, weakest_claim(proofs)[0], "float64")
    equality_error = certificate.kkt[EQUALITY] * len(problem.totals)
    return (
        certificate,
        u.value,
        _widen_squares(s, equality_error * np.array([gram.entry_bounds.max(initial=0.0) for gram in grams])),
    )


def _widen_squares(s: Ball, lengths: Floats) -> Ball:
    """Widen s_m to coefficients that change √s_m by at most `lengths`."""
    with np.errstate(over="ignore", invalid="ignore"):
        change = Ball.within(lengths)
        return s + change * (2.0 * s.sqrt() + change)


def certify_kernel_weights(
    machines: Certificate, problem: WeightsProblem, weights: Floats, s: Ball, length_change: Floats | None = None
) -> Certificate:
    """Return the certificate of kernel learning, from that of all machines with K_θ.

    √s_m may differ by up to `length_change`: coefficients of copies are rounded shares of those that were certified.
    """
    s = s if length_change is None else _widen_squares(s, length_change)
    with np.errstate(over="ignore", invalid="ignore"):
        high, energy = np.maximum(s.high, 0.0), s.inner(weights)
        best, size = problem.dual_size(high), max(problem.size(weights), 1.0)
        gain = (exact(best) - energy).positive().high
        scaling_cost = ((exact(size) - 1.0) * energy.positive()).high if size > 1 else 0.0
        primal = exact(machines.primal) + 0.5 * exact(scaling_cost)
        dual = exact(machines.dual) - 0.5 * exact(gain)
    # At β = 0 all weights are equally good.
    share = 0.0 if best <= _SMALLEST_NORM else gain / best if gain < math.inf else math.inf
    return replace(
        machines,
        primal=primal.high,
        dual=dual.low,
        gap=machines.gap,  # Certificate raises it to primal − dual, which includes the other terms
        violation=max(machines.violation, share),
        kkt={**machines.kkt, OPTIMAL: share, INSIDE: size - 1.0},
        parts=machines.parts or (machines,),
    )
