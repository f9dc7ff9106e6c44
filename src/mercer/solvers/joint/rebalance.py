"""Make a joint machine's β feasible for free biases: Σ_i β_ik = 0 for every class k, inside all bounds.

1. A move from class p to class q within one sample, β_ip − t and β_iq + t, keeps the sample's own sum and lowers the
   dual value by t(e_iq − e_ip). The method of multipliers leaves small class sums, which are moved along the cheapest
   routes from classes with a positive sum to classes with a negative one. A move costs nothing in a free sample, and in
   a sample at a bound whose gradient is zero for it.
2. Sums that remain, for example if a limit ended the solve early, are removed by making multipliers smaller. The sums
   A_pq of the multipliers over the samples of class p are a flow from p to q, and a class sum is the flow out of the
   class minus the flow into it. Every flow is a circulation plus routes from classes with a positive sum to classes
   with a negative one. Without these routes it is a circulation, and all class sums are zero.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mercer.problems.multiclass import JointProblem
from mercer.samples.arrays import Floats, Indices, sums_by


def rebalanced(problem: JointProblem, beta: Floats, e: Floats, tol: float) -> Floats:
    """Return β with Σ_i β_ik = 0 for every class, up to rounding.

    `e` is the excess of β; a cost of at most `tol` counts as zero.
    """
    beta = problem.within_bounds(beta)
    for _ in range(50):
        sums = np.abs(beta.sum(axis=0))
        if sums.max() <= rounding_of_sums(problem, beta):
            return beta
        _move_class_sums(problem, beta, e, tol)
        beta = problem.within_bounds(beta)
        if not np.abs(beta.sum(axis=0)).sum() < sums.sum():
            break
    return _reduce_to_circulation(problem, beta)


def rounding_of_sums(problem: JointProblem, beta: Floats) -> float:
    """Return the largest |Σ_i β_ik| of a class that rounding alone may cause, where the exact sum is 0."""
    size = max(float(np.abs(beta).sum(axis=0).max(initial=0.0)), float(problem.C.max()))
    return 16 * float(np.finfo(float).eps) * size


def _move_class_sums(problem: JointProblem, beta: Floats, e: Floats, tol: float) -> None:
    """Move positive class sums to classes with negative sums: along the cheapest route, then along free routes.

    `e` is the excess of β. A sample is used by one route only, because its capacity is not updated.
    """
    capacity, cost, carrier = _carriers(problem, beta, e, tol)
    negligible = 0.25 * rounding_of_sums(problem, beta)
    for _ in range(problem.n_classes**2):
        sums = beta.sum(axis=0)
        route = _cheapest_route(cost, sums > negligible, sums < -negligible)
        if route is None:
            return
        edges = list(pairwise(route))
        step = min(float(sums[route[0]]), -float(sums[route[-1]]), *(float(capacity[edge]) for edge in edges))
        for p, q in edges:
            beta[carrier[p, q], p] -= step
            beta[carrier[p, q], q] += step
        cost[(cost > 0) | np.isin(carrier, [carrier[edge] for edge in edges])] = np.inf


def _carriers(problem: JointProblem, beta: Floats, e: Floats, tol: float) -> tuple[Floats, Floats, Indices]:
    """Return, for each pair of classes, one sample that can move from the first to the second.

    The arrays are the capacity, the cost, and the index of the sample. The sample is the one of largest capacity among
    those that cost nothing, otherwise the cheapest; the cost is infinite if no sample can move.
    """
    m, rows = problem.n_classes, _movers(problem, beta, e)
    y, C, beta, e = problem.y[rows], problem.C[rows], beta[rows], e[rows]
    true_class = np.arange(len(rows)), y
    rise = -beta
    rise[true_class] = C - beta[true_class] if problem.shared else np.inf
    fall = np.full_like(beta, np.inf) if problem.shared else beta + C[:, None]
    fall[true_class] = np.inf
    capacity, cost, carrier = np.zeros((m, m)), np.full((m, m), np.inf), np.zeros((m, m), dtype=np.intp)
    all_classes = np.arange(m)
    for p in range(m):
        capacities = np.minimum(fall[:, [p]], rise)
        costs = np.where(capacities > 0, np.maximum(e - e[:, [p]] - tol, 0.0), np.inf)
        best = np.where(
            (costs == 0).any(axis=0), np.where(costs == 0, capacities, -1.0).argmax(axis=0), costs.argmin(axis=0)
        )
        capacity[p], cost[p], carrier[p] = capacities[best, all_classes], costs[best, all_classes], rows[best]
        cost[p, p] = np.inf
    return capacity, cost, carrier


def _movers(problem: JointProblem, beta: Floats, e: Floats) -> Indices:
    """Return up to 200 samples per class: those with most nonzero β, then those whose next multiplier is nearest."""
    g = np.abs(e - e[np.arange(problem.n), problem.y, None])
    g[np.arange(problem.n), problem.y] = np.inf
    order = np.lexsort((g.min(axis=1), -np.count_nonzero(beta, axis=1), problem.y))
    rank = np.arange(problem.n) - np.searchsorted(problem.y[order], problem.y[order])
    return order[rank < 200]


def _cheapest_route(cost: Floats, starts: np.ndarray, ends: np.ndarray) -> list[int] | None:
    """Return the cheapest route from a start to an end, the shortest of those of equal cost (Dijkstra), or None."""
    m = len(cost)
    distance, edges, previous = np.where(starts, 0.0, np.inf), np.where(starts, 0, m), np.full(m, -1)
    is_unvisited = np.ones(m, dtype=bool)
    while is_unvisited.any():
        node = min(np.flatnonzero(is_unvisited).tolist(), key=lambda k: (distance[k], edges[k]))
        if not np.isfinite(distance[node]):
            return None
        if ends[node]:
            route = [node]
            while previous[route[-1]] >= 0:
                route.append(int(previous[route[-1]]))
            return route[::-1]
        is_unvisited[node] = False
        new_distance, new_edges = distance[node] + cost[node], edges[node] + 1
        is_better = is_unvisited & (
            (new_distance < distance) | ((new_distance == distance) & (new_edges < edges) & np.isfinite(new_distance))
        )
        distance[is_better], edges[is_better], previous[is_better] = new_distance[is_better], new_edges, node
    return None


def _reduce_to_circulation(problem: JointProblem, beta: Floats) -> Floats:
    """Return β with multipliers made smaller, in proportion, so that the flow between classes is a circulation."""
    alpha = np.maximum(-beta, 0.0)
    alpha[np.arange(problem.n), problem.y] = 0.0
    flow = np.stack([sums_by(problem.y, column, problem.n_classes) for column in alpha.T], axis=1)
    remaining, negligible = flow.copy(), 0.25 * rounding_of_sums(problem, beta)
    for _ in range(problem.n_classes**2 + problem.n_classes):  # each route empties an edge or settles a class
        net_flow = remaining.sum(axis=1) - remaining.sum(axis=0)
        route = _cheapest_route(np.where(remaining > 0, 0.0, np.inf), net_flow > negligible, net_flow < -negligible)
        if route is None:
            break
        edges = list(pairwise(route))
        step = min(float(net_flow[route[0]]), -float(net_flow[route[-1]]), *(float(remaining[edge]) for edge in edges))
        for edge in edges:
            remaining[edge] -= step
    share = np.divide(remaining, flow, out=np.ones_like(flow), where=flow > 0)
    return problem.within_bounds(-alpha * share[problem.y])
