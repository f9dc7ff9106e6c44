"""The proof of a kernel machine with any convex loss.

With f = Kc + b, take any points t and g = wℓ′(t). Then −g is a feasible point of the Fenchel dual (with a bias, if
Σg = 0), the Fenchel–Young inequality is tight at t, and with ρ = g + 2λc, which is zero at the optimum,

    primal − dual = Σ w_i [ℓ(f_i) − ℓ(t_i) − ℓ′(t_i)(f_i − t_i)] + ρ'Kρ/4λ,    every term of the sum ≥ 0

In exact arithmetic t = f. Here t is the computed f, and the sum is what its rounding costs. With a bias, two shifts of
t whose Σg have opposite signs, beyond rounding, have a point between them where Σg = 0, since ℓ′ never falls. That is
the dual point: where it lies is not known, but that it is between them is, and that bounds its g.

This difference is what the primal value may be above the optimum. `gap` is larger: `primal` is an upper and `dual` a
lower bound, and what rounding does to both values does not cancel in their difference.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.arrays import Floats, Precision, gamma, inner
from mercer.certificates.certificate import Certificate, Proves
from mercer.certificates.dual import PROOF
from mercer.certificates.least_squares import ABOVE, of_sums
from mercer.gram.gram import Provable
from mercer.losses import Loss, is_known_convex
from mercer.problems.representer import RepresenterProblem

# The relative error of a loss or its derivative at a given float, times a weight.
_LOSS_ERROR = gamma(16)


def certify_representer(
    problem: RepresenterProblem, gram: Provable, c: Floats, b: float, tol: float = 0.0
) -> Certificate:
    """The proof of (c, b), everything recomputed from these alone; as close as it gets if a gap of `tol` depends on it.

    `tol` is a share of the primal value.
    """
    certificate, plain = _certified(problem, gram, c, b, np.float64)
    goal = tol * abs(certificate.primal)
    if gram.levels[-1] != np.float64 and plain <= goal and not certificate.kkt[ABOVE] <= goal:
        certificate, _ = _certified(problem, gram, c, b, gram.levels[-1])
    return certificate


def _certified(
    problem: RepresenterProblem, gram: Provable, c: Floats, b: float, level: Precision
) -> tuple[Certificate, float]:
    """The proof with products of one precision, and the gap as it is computed, without any error."""
    lam, summed = problem.lam, of_sums(len(c))
    u, e = gram.product_bound(c, level=level)
    with np.errstate(over="ignore", invalid="ignore"):
        f = u + b
        e_f = e + gamma(4) * (np.abs(u) + abs(b))
        below, above, shift = _balanced(problem, f)
        rho = 0.5 * (below + above) + 2 * lam * c
        e_rho = 0.5 * (above - below) + (_LOSS_ERROR + gamma(4)) * (np.abs(below) + np.abs(above) + 2 * lam * np.abs(c))
        v, e_v = gram.product_bound(rho, level=level)
        square = inner(rho, v)
        off_square = inner(np.abs(rho), e_v) + 2 * inner(e_rho, np.abs(v) + e_v)
        length = inner(e_rho, gram.reach)
        off_square += length * length + summed * inner(np.abs(rho), np.abs(v))
        # The gradients at the ends of what f and t can be.
        reach = e_f + shift
        lowest, highest = problem.gradient(f - reach), problem.gradient(f + reach)
        steepest = np.maximum(np.abs(lowest), np.abs(highest)) * (1 + _LOSS_ERROR)
        shares = (highest - lowest + 2 * _LOSS_ERROR * steepest) * reach
        gap = (float(shares.sum()) + float(np.maximum(0.0, square + off_square)) / (4 * lam)) * (1 + summed)
        value, energy = problem.value(f), lam * inner(c, u)
        off = inner(steepest, e_f) + lam * inner(np.abs(c), e)
        off = (off + (_LOSS_ERROR + summed) * (abs(value) + lam * inner(np.abs(c), np.abs(u)))) * (1 + summed)
        residual = np.maximum(np.abs(lowest + 2 * lam * c), np.abs(highest + 2 * lam * c))
        residual += 2 * _LOSS_ERROR * (steepest + 2 * lam * np.abs(c))
        sums = max(abs(float(lowest.sum())), abs(float(highest.sum()))) + summed * float(steepest.sum())
    violation = float(residual.max(initial=0.0))
    certificate = Certificate(
        primal=value + energy + off,
        dual=value + energy - off - gap,
        gap=gap,
        violation=violation,
        kkt={
            "stationarity": violation,
            "dual feasibility: equality": sums if problem.bias else 0.0,
            ABOVE: gap,
        },
        proves=_proof(gram.positive_definite, problem.loss),
        precision="float64" if is_known_convex(problem.loss) else "float64, the loss as it computes itself",
        b=(b,),
    )
    return certificate, square / (4 * lam)


def _balanced(problem: RepresenterProblem, f: Floats) -> tuple[Floats, Floats, float]:
    """Two gradients with a dual point between them, and how far from f the points are where they are taken."""
    g = problem.gradient(f)
    if not problem.bias:
        return g, g, 0.0
    summed = of_sums(len(f))
    # The first shift is a rounding of the largest |f|, the next ones eight times the one before. Any shift whose two
    # sums pass the test is right; a larger one only makes the gap wider.
    float64 = np.finfo(float)
    shift, step = 0.0, float(float64.eps) * max(float(np.abs(f).max(initial=0.0)), float(float64.tiny))
    for _ in range(40):
        below, above = (problem.gradient(f - shift), problem.gradient(f + shift)) if shift else (g, g)
        slack = [(_LOSS_ERROR + summed) * float(np.abs(some).sum()) for some in (below, above)]
        if float(below.sum()) + slack[0] <= 0 <= float(above.sum()) - slack[1]:
            return below, above, shift
        shift, step = step, 8.0 * step
    return g, g, np.inf


def _proof(positive_definite: str, loss: Loss) -> Proves:
    """What a gap of zero proves: a loss of the user's is convex on his word alone."""
    proof = PROOF[positive_definite]
    if is_known_convex(loss) or proof == "stationarity":
        return proof
    if proof == "optimality":
        return "optimality if the loss is convex"
    return "optimality if K is positive semi-definite and the loss is convex"


def scale_certificate(certificate: Certificate, factor: float, b: float) -> Certificate:
    """The proof of an objective that is `factor` times the certified one."""
    scaled = {name: factor * getattr(certificate, name) for name in ("primal", "dual", "gap")}
    return replace(certificate, **scaled, b=(b,))
