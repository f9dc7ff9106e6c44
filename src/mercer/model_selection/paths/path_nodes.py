"""The ε-path in C: ordinary fits with a proven bound on the gap between them.

Between two fits at C₀ and C₁ take β = (1 − λ)β₀ + λβ₁ at C = (1 − λ)C₀ + λC₁, and w and b likewise. β is feasible,
and the slack of each sample is at most (1 − λ)ξ₀ + λξ₁. So the gap there is at most

    G(λ) = (1 − λ)²g₀ + λ(1 − λ)h + λ²g₁,   h = 2⟨w₀, w₁⟩ + C₀Ξ₁ + C₁Ξ₀ − p'(β₀ + β₁)

with the gaps g of the two fits and their sums of slacks Ξ at C = 1. G is of second order in the distance of the fits: a
relative gap of ε takes O(1/√ε) fits (Giesen, Mueller, Laue and Swiercy, 2012).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer.model_selection.paths.exact_path import problem_at
from mercer.places.gram import Gram
from mercer.problems.dual_problem import DualProblem
from mercer.samples.arrays import Floats, inner
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.solution import Stop, StopReason

# Share of ε that the gap of a fit may have.
_SHARE_OF_FIT = 0.1
# Tolerance on the violation of a fit; usually the gap decides.
_VIOLATION_TOL = 0.1
# Smallest ratio of the ends of an interval that is still halved: below it, rounding exceeds the gain.
_SMALLEST_RATIO = 1 + 1e-9


@dataclass(frozen=True, eq=False)
class Node:
    """One fit of an ε-path: β, b, u = Kβ, the sum of slacks at C = 1, the gap and the dual value."""

    C: float
    beta: Floats
    b: float
    u: Floats
    slack: float
    gap: float
    dual: float

    @property
    def energy(self) -> float:
        """‖w‖² = β'Kβ."""
        return inner(self.beta, self.u)


@dataclass(eq=False)
class Nodes:
    """The fits of an ε-path, in rising order of C."""

    problem: DualProblem  # at C = 1
    epsilon: float
    constant: bool
    nodes: list[Node] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)  # largest relative gap between a fit and the next
    stop_reason: StopReason = "converged"

    @property
    def start(self) -> float:
        return self.nodes[0].C

    @property
    def end(self) -> float:
        return self.nodes[-1].C

    def columns(self) -> dict[str, Any]:
        """Return the values at the fits, by the names of CPath's attributes."""
        free, bounded, norms, intercepts = [], [], [], []
        for node in self.nodes:
            up, low = problem_at(self.problem, node.C).movable(node.beta)
            used = np.count_nonzero(node.beta)
            free.append(int((up & low).sum()))
            bounded.append(int(used) - free[-1])
            b = float(node.beta.sum()) if self.constant else node.b
            norms.append(np.sqrt(max(0.0, node.energy - (b**2 if self.constant else 0.0))))
            intercepts.append(b)
        with np.errstate(divide="ignore"):
            margin = 1 / np.array(norms)
        return {
            "C_": np.array([node.C for node in self.nodes]),
            "n_free_": np.array(free),
            "n_bounded_": np.array(bounded),
            "margin_": margin,
            "intercept_": np.array(intercepts),
            "gap_": np.array(self.gaps),
        }

    def at(self, C: float) -> tuple[Floats, float, bool]:
        """Return β and b, interpolated between two fits, and True: the gap is proven for every C.

        `Trace.at` returns the same three values; its third one says whether β is optimal to tol.
        """
        all_C = [node.C for node in self.nodes]
        k = min(int(np.searchsorted(all_C, C)), len(all_C) - 1)
        right, left = self.nodes[k], self.nodes[max(k - 1, 0)]
        share = 1.0 if right is left else (C - left.C) / (right.C - left.C)
        return (1 - share) * left.beta + share * right.beta, (1 - share) * left.b + share * right.b, True


def fit_nodes(
    problem: DualProblem, gram: Gram, stop: Stop, begin: float, end: float, epsilon: float, *, constant: bool = False
) -> Nodes:
    """Fit from C = `begin` to `end` so densely that the relative gap is at most ε everywhere between.

    `constant` is True if b is the weight of a constant feature, so that the kernel is k + 1.
    """
    fit_stop = replace(stop, tol=_VIOLATION_TOL, gap_tol=_SHARE_OF_FIT * epsilon)
    path = Nodes(problem, epsilon, constant)

    def fit(C: float, start: Floats | None) -> Node:
        solution, certificate = solve_certified(problem_at(problem, C), gram, fit_stop, start)
        if solution.stop_reason != "converged":
            path.stop_reason = solution.stop_reason
        b = certificate.b[0] if certificate.b else 0.0
        assert solution.u is not None
        residual = problem.p - solution.u - b
        slack = float(np.maximum(residual * problem.upper, residual * problem.lower).sum())
        return Node(C, solution.beta, b, solution.u, slack, certificate.gap, certificate.dual)

    first = fit(begin, None)
    last = fit(end, problem_at(problem, end).nearest_feasible(first.beta * (end / begin)))
    pending, path.nodes = [last], [first]
    while pending:
        left, right = path.nodes[-1], pending[-1]
        gap = largest_gap_between(problem, left, right)
        if gap <= epsilon or right.C <= left.C * _SMALLEST_RATIO or path.stop_reason != "converged":
            path.nodes.append(pending.pop())
            path.gaps.append(gap)
            continue
        C = float(np.sqrt(left.C * right.C))
        share = (C - left.C) / (right.C - left.C)
        start = (1 - share) * left.beta + share * right.beta
        pending.append(fit(C, problem_at(problem, C).nearest_feasible(start)))
    return path


def largest_gap_between(problem: DualProblem, left: Node, right: Node) -> float:
    """Return a bound on the relative gap of every machine interpolated between two fits."""
    mixed_terms = 2 * inner(left.beta, right.u) + left.C * right.slack + right.C * left.slack
    h = mixed_terms - inner(problem.p, left.beta + right.beta)
    # The maximum of G(λ) = (1 − λ)²g₀ + λ(1 − λ)h + λ²g₁ is at λ = 0 or 1, or at its stationary point between them.
    curvature = left.gap - h + right.gap
    stationary_point = (left.gap - 0.5 * h) / curvature if curvature < 0 else 0.0
    lambdas = [0.0, 1.0] + ([stationary_point] if 0 < stationary_point < 1 else [])
    gap = max((1 - s) ** 2 * left.gap + s * (1 - s) * h + s**2 * right.gap for s in lambdas)
    # The dual value is concave in λ, and so at least the smaller one of the two fits.
    return gap / max(min(left.dual, right.dual), float(np.finfo(float).tiny))
