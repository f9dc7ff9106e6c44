"""Makes a joint machine's β feasible for free biases: Σ_i β_ik = 0 for every class k, inside all bounds.

A move from class p to class q within one sample, β_ip − t and β_iq + t, keeps the sample's own sum and costs the dual
t(e_iq − e_ip). What the method of multipliers leaves of the sums is small, and goes along the cheapest routes from
classes with too much to classes with too little. Free samples cost nothing, and neither do samples at a bound whose
gradient does not care.

What is left, as where a limit ended the solve early, goes by making multipliers smaller. Their sums A_pq over the
samples of class p are a flow from p to q, and the class sums are what leaves a class less what enters it. Every flow is
a circulation plus routes from classes with too much to those with too little, so without these routes it is feasible.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mercer.problems.multiclass import JointProblem
from mercer.samples.arrays import Floats, Indices, sums_by


def rebalanced(problem: JointProblem, beta: Floats, e: Floats, tol: float) -> Floats:
    """β with Σ_i β_ik = 0 for every class, to rounding; `e` is its excess, and a cost up to `tol` is none."""
    beta = problem.within_bounds(beta)
    for _ in range(50):
        sums = np.abs(beta.sum(axis=0))
        if sums.max() <= rounding_of_sums(problem, beta):
            return beta
        _pass(problem, beta, e, tol)
        beta = problem.within_bounds(beta)
        if not np.abs(beta.sum(axis=0)).sum() < sums.sum():
            break
    return _circulation(problem, beta)


def rounding_of_sums(problem: JointProblem, beta: Floats) -> float:
    """What rounding may leave of the class sums."""
    size = max(float(np.abs(beta).sum(axis=0).max(initial=0.0)), float(problem.C.max()))
    return 16 * float(np.finfo(float).eps) * size


def _pass(problem: JointProblem, beta: Floats, e: Floats, tol: float) -> None:
    """Move surplus to classes that lack it: along the cheapest route, and then along others while they cost nothing.

    Each sample is on one route only, since its room is that before the pass.
    """
    capacity, cost, carrier = _carriers(problem, beta, e, tol)
    negligible = 0.25 * rounding_of_sums(problem, beta)
    for _ in range(problem.n_classes**2):
        sums = beta.sum(axis=0)
        route = _cheapest(cost, sums > negligible, sums < -negligible)
        if route is None:
            return
        edges = list(pairwise(route))
        step = min(float(sums[route[0]]), -float(sums[route[-1]]), *(float(capacity[edge]) for edge in edges))
        for p, q in edges:
            beta[carrier[p, q], p] -= step
            beta[carrier[p, q], q] += step
        cost[(cost > 0) | np.isin(carrier, [carrier[edge] for edge in edges])] = np.inf


def _carriers(problem: JointProblem, beta: Floats, e: Floats, tol: float) -> tuple[Floats, Floats, Indices]:
    """For each pair of classes, how much one sample can move from the first to the second, at what cost, and which.

    Of the samples that cost nothing the one with most room, else the cheapest. The cost is infinite if none can move.
    """
    m, rows = problem.n_classes, _movers(problem, beta, e)
    y, C, beta, e = problem.y[rows], problem.C[rows], beta[rows], e[rows]
    own = np.arange(len(rows)), y
    rise = -beta
    rise[own] = C - beta[own] if problem.shared else np.inf
    fall = np.full_like(beta, np.inf) if problem.shared else beta + C[:, None]
    fall[own] = np.inf
    capacity, cost, carrier = np.zeros((m, m)), np.full((m, m), np.inf), np.zeros((m, m), dtype=np.intp)
    every = np.arange(m)
    for p in range(m):
        room = np.minimum(fall[:, [p]], rise)
        price = np.where(room > 0, np.maximum(e - e[:, [p]] - tol, 0.0), np.inf)
        best = np.where((price == 0).any(axis=0), np.where(price == 0, room, -1.0).argmax(axis=0), price.argmin(axis=0))
        capacity[p], cost[p], carrier[p] = room[best, every], price[best, every], rows[best]
        cost[p, p] = np.inf
    return capacity, cost, carrier


def _movers(problem: JointProblem, beta: Floats, e: Floats) -> Indices:
    """At most 200 samples of each class: those with most multipliers, and then those nearest to having another one."""
    g = np.abs(e - e[np.arange(problem.n), problem.y, None])
    g[np.arange(problem.n), problem.y] = np.inf
    order = np.lexsort((g.min(axis=1), -np.count_nonzero(beta, axis=1), problem.y))
    rank = np.arange(problem.n) - np.searchsorted(problem.y[order], problem.y[order])
    return order[rank < 200]


def _cheapest(cost: Floats, starts: np.ndarray, ends: np.ndarray) -> list[int] | None:
    """The cheapest route from one of the starts to one of the ends, and of those that cost the same a shortest one."""
    m = len(cost)
    price, edges, before = np.where(starts, 0.0, np.inf), np.where(starts, 0, m), np.full(m, -1)
    left = np.ones(m, dtype=bool)
    while left.any():
        node = min(np.flatnonzero(left).tolist(), key=lambda k: (price[k], edges[k]))
        if not np.isfinite(price[node]):
            return None
        if ends[node]:
            route = [node]
            while before[route[-1]] >= 0:
                route.append(int(before[route[-1]]))
            return route[::-1]
        left[node] = False
        through, longer = price[node] + cost[node], edges[node] + 1
        better = left & ((through < price) | ((through == price) & (longer < edges) & np.isfinite(through)))
        price[better], edges[better], before[better] = through[better], longer, node
    return None


def _circulation(problem: JointProblem, beta: Floats) -> Floats:
    """β with multipliers made smaller, in proportion, until the flow between classes is a circulation."""
    alpha = np.maximum(-beta, 0.0)
    alpha[np.arange(problem.n), problem.y] = 0.0
    flow = np.stack([sums_by(problem.y, column, problem.n_classes) for column in alpha.T], axis=1)
    left, negligible = flow.copy(), 0.25 * rounding_of_sums(problem, beta)
    for _ in range(problem.n_classes**2 + problem.n_classes):  # each route empties an edge or settles a class
        sums = left.sum(axis=1) - left.sum(axis=0)
        route = _cheapest(np.where(left > 0, 0.0, np.inf), sums > negligible, sums < -negligible)
        if route is None:
            break
        edges = list(pairwise(route))
        step = min(float(sums[route[0]]), -float(sums[route[-1]]), *(float(left[edge]) for edge in edges))
        for edge in edges:
            left[edge] -= step
    share = np.divide(left, flow, out=np.ones_like(flow), where=flow > 0)
    return problem.within_bounds(-alpha * share[problem.y])
