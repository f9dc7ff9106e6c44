"""Learn the weights of a sum of kernels by Newton's method; each step solves the machines at the new weights.

J(θ) = max over β of Σ_t [p'β_t − ½β_t'(Σ_mθ_mK_m + diag d)β_t] is convex, with ∂J/∂θ_m = −½s_m, s_m = Σ_t β_t'K_mβ_t.
As long as no coefficient reaches a bound, or leaves one, its second derivatives are H = U'PU, U = (K_mβ)_m on the free
variables and P the inverse of K_θ + diag d there, kept orthogonal to the equalities.

For p = 1 a barrier −τΣ log θ_m keeps weights on the simplex positive. Its minimum has a gap of at most mτ for m
kernels; whenever it is reached, τ falls. A Newton step θ∘(1 + z) has

    [ΘHΘ + τI] z = ½θ∘s + τ − cθ,    Θ = diag θ

where c keeps the sum of the weights at 1. Without the barrier, weights of kernels that are not needed would reach zero
before the others are right. Where β is not unique at the best weights, as for a kernel of low rank, the path of the
barrier leads to a β that proves these weights optimal.

For p > 1 no weight is zero, and J is smallest on the sphere ‖θ‖_p = 1 where log s_m − (p − 1) log θ_m is the same
number c for all m. By Newton's method for these equations x = log θ moves by the δ with

    [(p − 1 + μ) diag(θ∘s) + 2ΘHΘ] δ = θ∘s∘(log s − (p − 1)x − c)

where c keeps θ on the sphere, and μ = 0 at first. If a step makes J (with its barrier) larger, a shorter one is tried:
a part of the step for p = 1, or a step with μ > 0. The last resort is H = 0 and μ = 2, the closed form of Kloft and
others ("ℓp-norm multiple kernel learning", 2011), which never makes J larger.
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
# Number of step lengths tried before the closed form; the factor from one length to the next (p = 1); the first
# positive μ and the factor from one μ to the next (p > 1).
_TRIALS, _STEP_FACTOR, _FIRST_MU, _MU_FACTOR = 4, 0.25, 0.03, 8.0
# Factor of τ once its minimum is reached; the largest share of a weight that a step may remove (p = 1); the largest
# change of the logarithm of a weight (p > 1).
_TAU_FACTOR, _LARGEST_SHARE, _LARGEST_LOG_STEP = 0.1, 0.95, 12.0
# Smallest weight as a share of the largest, before the last round.
_SMALLEST_SHARE = 1e-15
# With p = 1, weights below each of these thresholds are tried as zeros at the end: a kernel that is not needed costs
# time.
_ZERO_THRESHOLDS = (1e-4, 1e-6, 1e-9)
# Rounds without a smaller gap after which the machines are solved more accurately.
_PATIENCE = 5
# Bytes for the system of free variables that any budget allows: without it, a search for weights easily stalls.
_LEAST_BYTES = 1 << 20


@dataclass(frozen=True, eq=False)
class WeightsTrial:
    """Solved machines at given weights; `solved` holds the caller's own data for the next start."""

    weights: Floats  # v∘θ, with ‖v∘θ‖_p = 1
    certificate: Certificate  # certificate of kernel learning
    machines: tuple[float, float]  # lower and upper bound on J
    s: Floats  # s_m/v_m
    curvature: Callable[[], Floats]  # H/(vv')
    met: bool  # the certificate meets the stopping rule
    proves_weights: bool  # the certificate also proves that no other weights are much better
    solved: Any
    limit: StopReason | None = None  # limit that ended a solve


def curvature(problem: DualProblem, gram: Gram, beta: Floats, parts: Floats) -> Floats:
    """Return H for one machine; `parts` has a column K_mβ for each kernel.

    H = 0 if there are too many free variables for the memory budget and a megabyte, or the system cannot be solved.
    """
    up, low = problem.movable(beta)
    free = np.flatnonzero(up & low)
    m = parts.shape[1]
    if len(free) == 0 or 24 * len(free) ** 2 > max(gram.budget, _LEAST_BYTES):
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
    problem: WeightsProblem, solve_at: Callable[[Floats, Any, float], WeightsTrial]
) -> tuple[WeightsTrial, StopReason, int]:
    """Return the trial with the smallest gap, the stop reason, and the number of rounds.

    `solve_at` takes weights, the `solved` of an earlier trial to start from, and the share of the tolerance to which
    the machines are solved.
    """
    # 1. Start from equal weights.
    p, m = problem.norm, len(problem.scales)
    share, trials, idle_rounds = 0.25, 0, 0
    current = best = solve_at(_normalise_weights(np.ones(m), p), None, share)
    tau = _TAU_FACTOR * _gain(current) / m if p == 1 else 0.0
    for rounds in range(1, _MOST_ROUNDS + 1):
        # 2. Stop if the best trial is good enough, or a limit ended it; solve more accurately after idle rounds.
        if best.met and best.proves_weights:
            return _without_tiny_weights(best, solve_at, share, p), "converged", rounds
        if best.limit is not None:
            return best, "converged" if best.met else best.limit, rounds
        if idle_rounds >= _PATIENCE:
            share, idle_rounds = share / 10, 0
            if share < 1e-7:
                return best, "converged" if best.met else "stalled", rounds
        # 3. Take a Newton step, or a shorter one after trials that failed, and solve the machines there.
        step = _step(current, p, trials, tau)
        if step is None:  # numbers overflow, and no weights can be compared
            return best, "converged" if best.met else "rounding floor", rounds
        trial = solve_at(_normalise_weights(np.maximum(step, _SMALLEST_SHARE), p), current.solved, share)
        # 4. Reject a step that provably makes J with its barrier larger; lower τ once the minimum for it is reached.
        if (
            trial.machines[0] + tau * _barrier(trial) > current.machines[1] + tau * _barrier(current)
            and trials < _TRIALS
        ):
            trials += 1
        else:
            current, trials = trial, 0
            tau *= _TAU_FACTOR if _gain(current) <= 2 * m * tau else 1.0
        # 5. Keep the trial with the smallest gap.
        is_better = trial.certificate.gap < 0.9 * best.certificate.gap
        idle_rounds = 0 if is_better else idle_rounds + 1
        if trial.certificate.gap < best.certificate.gap or trial.limit is not None:
            best = trial if trial.certificate.gap < best.certificate.gap else replace(best, limit=trial.limit)
    return best, "converged" if best.met else "stalled", _MOST_ROUNDS


def _normalise_weights(weights: Floats, p: float) -> Floats:
    """Scale weights to ‖weights‖_p = 1, up to rounding."""
    weights = weights / weights.max()
    return np.ones_like(weights) if p == np.inf else np.asarray(weights / float(np.sum(weights**p)) ** (1 / p))


def _gain(trial: WeightsTrial) -> float:
    """Return the gap of the weights on the simplex: ½(max_m s_m − θ's)."""
    return 0.5 * float(trial.s.max() - trial.weights @ trial.s)


def _barrier(trial: WeightsTrial) -> float:
    """Return the logarithmic barrier −Σ log θ_m."""
    return -float(np.log(trial.weights).sum())


def _step(trial: WeightsTrial, p: float, n_trials: int, tau: float) -> Floats | None:
    """Return the weights after a step, shorter after each of the failed `n_trials`; None if they are not finite."""
    largest, theta = float(trial.s.max()), trial.weights
    if not 0 < largest < np.inf:
        return None
    with np.errstate(all="ignore"):
        s = np.maximum(trial.s / largest, 1e-30)
        weights = _newton_step(trial, s, largest, p, n_trials, tau) if n_trials < _TRIALS else None
        if weights is None or not np.isfinite(weights).all():
            # The closed form of Kloft et al. (2011): H = 0 and μ = 2.
            weights = (theta**2 * s) ** (1 / (p + 1))
    return weights if np.isfinite(weights).all() and weights.max() > 0 else None


def _newton_step(trial: WeightsTrial, s: Floats, largest: float, p: float, n_trials: int, tau: float) -> Floats | None:
    """Return the weights after a Newton step, with all quantities divided by the largest s; None if H overflows."""
    theta, scaled_H = trial.weights, trial.weights[:, None] * (trial.curvature() / largest) * trial.weights
    if not np.isfinite(scaled_H).all():
        return None
    if p == 1:
        tau = tau / largest
        z = _solve_orthogonal(scaled_H + tau * np.eye(len(s)), 0.5 * theta * s + tau, theta, theta)
        return np.asarray(
            theta * (1.0 + _STEP_FACTOR**n_trials * min(1.0, _LARGEST_SHARE / max(float(-z.min()), 1e-300)) * z)
        )
    mu, a = _FIRST_MU * _MU_FACTOR ** (n_trials - 1) if n_trials else 0.0, theta * s
    r = np.log(s) - (p - 1) * np.log(theta)
    delta = _solve_orthogonal(np.diag((p - 1 + mu) * a) + 2 * scaled_H, a * r, a, theta**p)
    return np.asarray(theta * np.exp(np.clip(delta, -_LARGEST_LOG_STEP, _LARGEST_LOG_STEP)))


def _solve_orthogonal(A: Floats, rhs: Floats, shift: Floats, normal: Floats) -> Floats:
    """Return x = A⁻¹(rhs − c·shift), with the c for which x is orthogonal to `normal`."""
    root = np.sqrt(np.maximum(A.diagonal(), 1e-300))  # for a unit diagonal: tiny weights make tiny entries
    scaled, sides = A / root[:, None] / root, np.stack([rhs, shift], axis=1) / root[:, None]
    if not np.isfinite(scaled).all() or not np.isfinite(sides).all():
        return np.full(len(rhs), np.nan)
    solution, correction = (np.linalg.lstsq(scaled, sides)[0] / root[:, None]).T
    return np.asarray(solution - correction * (normal @ solution) / (normal @ correction))


def _without_tiny_weights(
    best: WeightsTrial, solve_at: Callable[[Floats, Any, float], WeightsTrial], share: float, p: float
) -> WeightsTrial:
    """Return the trial with tiny weights set to zero if it still meets the goals, else `best`."""
    n_weights = np.count_nonzero(best.weights)
    for threshold in _ZERO_THRESHOLDS if p == 1 else ():
        weights = np.where(best.weights < threshold, 0.0, best.weights)
        if 0 < np.count_nonzero(weights) < n_weights:
            n_weights = np.count_nonzero(weights)
            trial = solve_at(_normalise_weights(weights, p), best.solved, share)
            if trial.met and trial.proves_weights:
                return trial
    return best
