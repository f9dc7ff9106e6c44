"""Algorithms that look at one sample at a time, without a bias: the perceptron, and Pegasos (Shalev-Shwartz).

perceptron    if y_i f(x_i) ≤ 0:  α_i ← α_i + 1
Pegasos       if y_i f_t(x_i) < 1:  θ ← θ + y_iφ(x_i), where w_t = θ/(λt) and λ = 1/(Cn); the mean of all w_t comes out

Neither α is feasible for the dual: the perceptron's has no scale, and Pegasos' may exceed C. The recorded dual value is
that of the best multiple of the one, and of the other cut at C, and so a bound from below on the machine's optimum.
"""

from __future__ import annotations

import numpy as np

from mercer.arrays import Floats
from mercer.solvers.pegasos.iterates import draw
from mercer.teaching.record import Trace


def run_perceptron(trace: Trace, tol: float, max_steps: int) -> None:
    """Samples in turn until a whole pass makes no mistake; a step is a mistake."""
    problem = trace.problem
    alpha, f = np.zeros(problem.n), np.zeros(problem.n)
    quiet, i = 0, 0
    while quiet < problem.n and len(trace) < max_steps:
        if problem.y[i] * f[i] <= 0:
            alpha = alpha.copy()
            alpha[i] += 1
            f = f + problem.y[i] * problem.K[i]
            square = float((problem.y * alpha) @ f)
            # The best s for sΣα − ½s²‖w‖²; a w of length 0 allows any, and separates nothing.
            best = alpha.sum() / square if square > 0 else 0.0
            trace.record(alpha, (i,), 1.0, False, feasible=best * alpha)
            quiet = 0
        else:
            quiet += 1
        i = (i + 1) % problem.n
    trace.converged = quiet >= problem.n


def run_pegasos(trace: Trace, tol: float, max_steps: int, seed: int) -> None:
    """Steps on samples that are drawn with replacement, as the notes print them; `alpha` is that of the mean of w_t."""
    problem = trace.problem
    n, lam = problem.n, 1.0 / (problem.C * problem.n)
    theta, total, f = np.zeros(n), np.zeros(n), np.zeros(n)  # θ and Σ θ/t by their α, and θ at the samples
    for t, i in enumerate(draw(seed, np.arange(1.0, n + 1), 0, max_steps).tolist(), 1):
        total = total + theta / t
        hit = problem.y[i] * f[i] < lam * t
        if hit:
            theta = theta.copy()
            theta[i] += 1
            f = f + problem.y[i] * problem.K[i]
        alpha: Floats = total / (lam * t)
        trace.record(alpha, (i,), 1.0 / (lam * t) if hit else 0.0, False, feasible=np.minimum(alpha, problem.C))
        if trace.steps[-1].violation <= tol:
            break
    trace.converged = bool(trace.steps) and trace.steps[-1].violation <= tol
