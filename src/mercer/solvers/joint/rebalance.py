"""Removes what is left of the class sums of a joint machine's β, so that β is feasible for free biases.

A move from class p to class q within one sample keeps the sample's own sum. The method of multipliers leaves sums far
below the tolerance. Samples that can move in both directions are used first, because that costs no dual value.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mercer.arrays import Floats, Indices
from mercer.problems.multiclass import JointProblem

# Samples of each class that may move, those with most multipliers first, and the most passes.
_SAMPLES_PER_CLASS = 200
_MAX_PASSES = 10


def rebalanced(problem: JointProblem, beta: Floats) -> Floats:
    """β with Σ_i β_ik = 0 for every class, to rounding, or as close as a few passes come."""
    beta = beta.copy()
    size = max(float(np.abs(beta).sum(axis=0).max(initial=0.0)), float(problem.C.max()))
    negligible = np.finfo(float).eps * size
    for _ in range(_MAX_PASSES):
        if np.abs(beta.sum(axis=0)).max() <= negligible:
            break
        _pass(problem, beta, negligible)
    return beta


def _pass(problem: JointProblem, beta: Floats, negligible: float) -> None:
    """Move surplus from one class to another that lacks it, through samples with enough room."""
    m = problem.n_classes
    capacity, carrier = _capacities(problem, beta)
    # One sample may make several moves. Each gets a share of its room, so that together they stay inside the bounds.
    capacity /= 4 * m
    for _ in range(2 * m):
        sums = beta.sum(axis=0)
        start = int(np.argmax(np.abs(sums)))
        if abs(sums[start]) <= negligible:
            break
        surplus = bool(sums[start] > 0)
        route = _route(capacity if surplus else capacity.T, start, -np.sign(sums[start]) * sums > negligible)
        if route is None:
            break
        edges = [(a, c) if surplus else (c, a) for a, c in pairwise(route)]
        step = min(
            abs(float(sums[start])), abs(float(sums[route[-1]])), *(abs(float(capacity[edge])) for edge in edges)
        )
        for p, q in edges:
            beta[carrier[p, q], p] -= step
            beta[carrier[p, q], q] += step


def _capacities(problem: JointProblem, beta: Floats) -> tuple[Floats, Indices]:
    """For each pair of classes, how much one sample can move from the first to the second, and which sample.

    Negative if the sample could only leave a corner that way, zero if no sample can move at all.
    """
    m = problem.n_classes
    order = np.lexsort((-np.count_nonzero(beta, axis=1), problem.y))
    rank = np.arange(problem.n) - np.searchsorted(problem.y[order], problem.y[order])
    rows = order[rank < _SAMPLES_PER_CLASS]
    y, C, beta = problem.y[rows], problem.C[rows], beta[rows]
    own = np.arange(len(rows)), y
    rise = -beta
    rise[own] = C - beta[own] if problem.shared else np.inf
    fall = np.full_like(beta, np.inf) if problem.shared else beta + C[:, None]
    fall[own] = np.inf
    capacity, carrier = np.zeros((m, m)), np.zeros((m, m), dtype=np.intp)
    for p in range(m):
        room = np.minimum(fall[:, [p]], rise)  # from p to each class
        free = np.minimum(room, np.minimum(fall, rise[:, [p]]))  # and the way back
        best, forced = free.argmax(axis=0), room.argmax(axis=0)
        interior = free[best, np.arange(m)] > 0
        carrier[p] = rows[np.where(interior, best, forced)]
        capacity[p] = np.where(interior, free[best, np.arange(m)], -np.maximum(room[forced, np.arange(m)], 0.0))
        capacity[p, p] = 0.0
    return capacity, carrier


def _route(capacity: Floats, start: int, ends: np.ndarray) -> list[int] | None:
    """The shortest way from `start` to one of `ends` through pairs with room, through free samples if possible."""
    for allowed in (capacity > 0, capacity != 0):
        before, queue = {start: start}, [start]
        for node in queue:
            if ends[node]:
                route = [node]
                while route[-1] != start:
                    route.append(before[route[-1]])
                return route[::-1]
            for neighbour in np.flatnonzero(allowed[node]).tolist():
                if neighbour not in before:
                    before[neighbour] = node
                    queue.append(neighbour)
    return None
