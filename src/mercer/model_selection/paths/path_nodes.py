"""The ε-path in C: ordinary fits with a proven bound on the gap between them.

Between two fits at C₀ and C₁ take β = (1 − λ)β₀ + λβ₁ at C = (1 − λ)C₀ + λC₁, and w and b likewise. β is feasible,
and the slacks of f are at most the mean of the two. So the gap there is at most

    G(λ) = (1 − λ)²g₀ + λ(1 − λ)h + λ²g₁,   h = 2⟨w₀, w₁⟩ + C₀Ξ₁ + C₁Ξ₀ − p'(β₀ + β₁)

with the gaps g and the sums of slacks Ξ at C = 1. It is of second order in the distance of the fits: a relative gap of
ε takes O(1/√ε) of them (Giesen, Mueller, Laue and Swiercy, 2012).
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
_TOL = 0.1
# Smallest ratio of the ends of an interval that is still halved: below it, rounding exceeds the gain.
_NARROWEST = 1 + 1e-9


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
            here = problem_at(self.problem, node.C)
            up, low = here.movable(node.beta)
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
        """Return β and b, interpolated between two fits, and True, because the gap is proven at every C."""
        all_C = [node.C for node in self.nodes]
        k = min(int(np.searchsorted(all_C, C)), len(all_C) - 1)
        right, left = self.nodes[k], self.nodes[max(k - 1, 0)]
        share = 1.0 if right is left else (C - left.C) / (right.C - left.C)
        return (1 - share) * left.beta + share * right.beta, (1 - share) * left.b + share * right.b, True


def nodes_of(
    problem: DualProblem, gram: Gram, stop: Stop, begin: float, end: float, epsilon: float, *, constant: bool = False
) -> Nodes:
    """Fit from C = `begin` to `end` so densely that the relative gap is at most ε everywhere between."""
    fit_stop = replace(stop, tol=_TOL, gap_tol=_SHARE_OF_FIT * epsilon)
    found = Nodes(problem, epsilon, constant)

    def fit(C: float, start: Floats | None) -> Node:
        here = problem_at(problem, C)
        solution, certificate = solve_certified(here, gram, fit_stop, start)
        if solution.stop_reason != "converged":
            found.stop_reason = solution.stop_reason
        b = certificate.b[0] if certificate.b else 0.0
        assert solution.u is not None
        residual = problem.p - solution.u - b
        slack = float(np.maximum(residual * problem.upper, residual * problem.lower).sum())
        return Node(C, solution.beta, b, solution.u, slack, certificate.gap, certificate.dual)

    first = fit(begin, None)
    last = fit(end, problem_at(problem, end).nearest_feasible(first.beta * (end / begin)))
    waiting, found.nodes = [last], [first]
    while waiting:
        left, right = found.nodes[-1], waiting[-1]
        gap = largest_gap_between(problem, left, right)
        if gap <= epsilon or right.C <= left.C * _NARROWEST or found.stop_reason != "converged":
            found.nodes.append(waiting.pop())
            found.gaps.append(gap)
            continue
        C = float(np.sqrt(left.C * right.C))
        share = (C - left.C) / (right.C - left.C)
        start = (1 - share) * left.beta + share * right.beta
        waiting.append(fit(C, problem_at(problem, C).nearest_feasible(start)))
    return found


def largest_gap_between(problem: DualProblem, left: Node, right: Node) -> float:
    """Largest relative gap between two fits."""
    mixed = 2 * inner(left.beta, right.u) + left.C * right.slack + right.C * left.slack
    h = mixed - inner(problem.p, left.beta + right.beta)
    # The maximum of G(λ) = (1 − λ)²g₀ + λ(1 − λ)h + λ²g₁ is at an end, or at its stationary point if that is inside.
    bend = left.gap - h + right.gap
    top = (left.gap - 0.5 * h) / bend if bend < 0 else 0.0
    at = [0.0, 1.0] + ([top] if 0 < top < 1 else [])
    most = max((1 - s) ** 2 * left.gap + s * (1 - s) * h + s**2 * right.gap for s in at)
    # The dual value is concave between the fits, and so at least the smaller of their values.
    return most / max(min(left.dual, right.dual), float(np.finfo(float).tiny))
