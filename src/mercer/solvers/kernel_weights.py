"""Weights of a sum of kernels: Newton's method, each step a solve of the machines.

J(θ) = max over β of Σ_t [p'β_t − ½β_t'(Σ_mθ_mK_m + diag d)β_t] is convex, with ∂J/∂θ_m = −½s_m, s_m = Σ_t β_t'K_mβ_t.
As long as no coefficient reaches a bound, or leaves one, its second derivatives are H = U'PU, U = (K_mβ)_m on the free
variables and P the inverse of K_θ + diag d there, kept orthogonal to the equalities.

For p = 1 a barrier −τΣ log θ_m keeps weights on the simplex positive. Its minimum has a gap of at most mτ for m
kernels, and τ falls whenever that is reached. A Newton step θ∘(1 + z) has

    [ΘHΘ + τI] z = ½θ∘s + τ − cθ,    Θ = diag θ

where c keeps the sum. Without the barrier, weights of kernels that are not needed would reach zero before the others
are right; and where β is not unique at the best weights, as for a kernel of low rank, the path towards them is what
chooses the β that proves them.

For p > 1 no weight is zero, and J is smallest on the sphere ‖θ‖_p = 1 where log s_m − (p − 1) log θ_m is the same
number c for all m. By Newton's method for these equations x = log θ moves by the δ with

    [(p − 1 + μ) diag(θ∘s) + 2ΘHΘ] δ = θ∘s∘(log s − (p − 1)x − c)

where c keeps θ on the sphere, and μ = 0 at first. A step that makes J (with its barrier) larger is tried again,
shorter: a part of the way, or with μ > 0. The last resort is H = 0 and μ = 2, the closed form of Kloft and others
("ℓp-norm multiple kernel learning", 2011), which never makes J larger.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.certificates.kernel_weights import WeightsProblem
from mercer.places.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats
from mercer.solvers.solution import StopReason

_MOST_ROUNDS = 200
# A step is tried in this many lengths before the closed form is: each this part of the last, or with a μ of this at
# first, and so many times as much.
_TRIALS, _SHORTER, _FIRST, _MORE = 4, 0.25, 0.03, 8.0
# What is left of τ when its minimum is reached, the most that a step may take of a weight, and the most that it may
# change the logarithm of one.
_LEFT, _TAKEN, _LARGEST_STEP = 0.1, 0.95, 12.0
# No weight is smaller than this share of the largest, until the last round.
_LEAST = 1e-15
# Of the 1-norm, weights below these shares are tried as zeros at the end: a kernel that is not needed costs time.
_SPARSE = (1e-4, 1e-6, 1e-9)
# Rounds without a smaller gap after which the machines are solved more exactly.
_PATIENCE = 5


@dataclass(frozen=True, eq=False)
class Found:
    """The machines at some weights: what `solved` holds is the caller's."""

    weights: Floats  # v∘θ, whose norm is 1
    certificate: Certificate  # of kernel learning
    machines: tuple[float, float]  # a lower and an upper bound on J
    s: Floats  # s_m/v_m
    curvature: Callable[[], Floats]  # H/(vv')
    met: bool  # whether all that was asked for is proven
    fine: bool  # whether no other weights are much better, too
    solved: Any
    limit: StopReason | None = None  # that ended a solve


def curvature(problem: DualProblem, gram: Gram, beta: Floats, parts: Floats) -> Floats:
    """H of one machine; `parts` has a column K_mβ for each kernel. Zero where the free variables are too many."""
    up, low = problem.movable(beta)
    free = np.flatnonzero(up & low)
    m = parts.shape[1]
    if len(free) == 0 or 24 * len(free) ** 2 > gram.budget:
        return np.zeros((m, m))
    rows, U = problem.row[free], parts[problem.row[free]]
    Q = gram.block(rows, rows)
    Q[np.diag_indices(len(free))] += problem.d[free] + 1e-10 * float(np.abs(Q.diagonal()).mean() + 1e-300)
    groups = np.unique(problem.group[free])
    E = (problem.group[free][:, None] == groups[groups >= 0]).astype(np.float64)
    try:
        Z = np.linalg.solve(Q, np.hstack([U, E]))
        PU, PE = Z[:, :m], Z[:, m:]
        H = U.T @ PU
        if E.shape[1]:
            H -= (U.T @ PE) @ np.linalg.solve(E.T @ PE, E.T @ PU)
    except np.linalg.LinAlgError:
        return np.zeros((m, m))
    H = 0.5 * (H + H.T)
    return H if np.isfinite(H).all() else np.zeros((m, m))


def learn_weights(
    problem: WeightsProblem, solve_at: Callable[[Floats, Any, float], Found]
) -> tuple[Found, StopReason, int]:
    """The weights with the smallest gap that was reached, why it ended, and the rounds that it took.

    `solve_at` solves the machines with these weights, from what was solved before, to a share of the tolerance.
    """
    p, m = problem.norm, len(problem.scales)
    share, trials, waited = 0.25, 0, 0
    now = best = solve_at(_on_sphere(np.ones(m), p), None, share)
    tau = _LEFT * _gain(now) / m if p == 1 else 0.0
    for rounds in range(1, _MOST_ROUNDS + 1):
        if best.met and best.fine:
            return _sparsest(best, solve_at, share, p), "converged", rounds
        if best.limit is not None:
            return best, "converged" if best.met else best.limit, rounds
        if waited >= _PATIENCE:
            share, waited = share / 10, 0
            if share < 1e-7:
                return best, "converged" if best.met else "stalled", rounds
        step = _step(now, p, trials, tau)
        if step is None:  # numbers beyond float64's, in which no weights are better than others
            return best, "converged" if best.met else "rounding floor", rounds
        trial = solve_at(_on_sphere(np.maximum(step, _LEAST), p), now.solved, share)
        if trial.machines[0] + tau * _barrier(trial) > now.machines[1] + tau * _barrier(now) and trials < _TRIALS:
            trials += 1
        else:
            now, trials = trial, 0
            tau *= _LEFT if _gain(now) <= 2 * m * tau else 1.0
        better = trial.certificate.gap < 0.9 * best.certificate.gap
        waited = 0 if better else waited + 1
        if trial.certificate.gap < best.certificate.gap or trial.limit is not None:
            best = trial if trial.certificate.gap < best.certificate.gap else replace(best, limit=trial.limit)
    return best, "converged" if best.met else "stalled", _MOST_ROUNDS


def _on_sphere(weights: Floats, p: float) -> Floats:
    """‖weights‖_p = 1, to rounding."""
    weights = weights / weights.max()
    return np.ones_like(weights) if p == np.inf else np.asarray(weights / float(np.sum(weights**p)) ** (1 / p))


def _gain(found: Found) -> float:
    """What the best weights of the 1-norm would add to ½θ's."""
    return 0.5 * float(found.s.max() - found.weights @ found.s)


def _barrier(found: Found) -> float:
    return -float(np.log(found.weights).sum())


def _step(now: Found, p: float, trials: int, tau: float) -> Floats | None:
    """The weights after a step, which has been tried so many times in greater lengths; None if they are no numbers."""
    largest, theta = float(now.s.max()), now.weights
    if not 0 < largest < np.inf:
        return None
    with np.errstate(all="ignore"):
        s = np.maximum(now.s / largest, 1e-30)
        moved = _newton_step(now, s, largest, p, trials, tau) if trials < _TRIALS else None
        if moved is None or not np.isfinite(moved).all():
            moved = (theta**2 * s) ** (1 / (p + 1))
    return moved if np.isfinite(moved).all() and moved.max() > 0 else None


def _newton_step(now: Found, s: Floats, largest: float, p: float, trials: int, tau: float) -> Floats | None:
    """Everything divided by the largest s."""
    theta, curved = now.weights, now.weights[:, None] * (now.curvature() / largest) * now.weights
    if not np.isfinite(curved).all():
        return None
    if p == 1:
        tau = tau / largest
        z = _newton(curved + tau * np.eye(len(s)), 0.5 * theta * s + tau, theta, theta)
        return np.asarray(theta * (1.0 + _SHORTER**trials * min(1.0, _TAKEN / max(float(-z.min()), 1e-300)) * z))
    mu, a = _FIRST * _MORE ** (trials - 1) if trials else 0.0, theta * s
    r = np.log(s) - (p - 1) * np.log(theta)
    delta = _newton(np.diag((p - 1 + mu) * a) + 2 * curved, a * r, a, theta**p)
    return np.asarray(theta * np.exp(np.clip(delta, -_LARGEST_STEP, _LARGEST_STEP)))


def _newton(A: Floats, right: Floats, shift: Floats, along: Floats) -> Floats:
    """A⁻¹(right − c·shift) with the c for which it is orthogonal to `along`."""
    root = np.sqrt(np.maximum(A.diagonal(), 1e-300))  # scaled, so that tiny weights do not spoil the others' digits
    scaled, sides = A / root[:, None] / root, np.stack([right, shift], axis=1) / root[:, None]
    if not np.isfinite(scaled).all() or not np.isfinite(sides).all():
        return np.full(len(right), np.nan)
    toward, other = (np.linalg.lstsq(scaled, sides)[0] / root[:, None]).T
    return np.asarray(toward - other * (along @ toward) / (along @ other))


def _sparsest(best: Found, solve_at: Callable[[Floats, Any, float], Found], share: float, p: float) -> Found:
    """The same without kernels that hardly count, if that is proven to be as good as was asked for."""
    tried = np.count_nonzero(best.weights)
    for least in _SPARSE if p == 1 else ():
        kept = np.where(best.weights < least, 0.0, best.weights)
        if 0 < np.count_nonzero(kept) < tried:
            tried = np.count_nonzero(kept)
            trial = solve_at(_on_sphere(kept, p), best.solved, share)
            if trial.met and trial.fine:
                return trial
    return best
