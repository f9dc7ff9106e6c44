"""Which variables a block step should change, in plain NumPy: the worst of both sides alternately.

(Igel, sec. 4.3.2, for blocks.) Without groups there is no b, and h is compared with zero.
"""

import numpy as np

from mercer.problems.dual_problem import violation


def working_set(h, up, low, group, n_groups, size):
    """Positions of at most `size` variables that could take part in an improving step, worst first."""
    _, tops, bottoms = violation(h, up, low, group, n_groups)
    if n_groups == 0:
        gain = np.maximum(np.where(up, h, -np.inf), np.where(low, -h, -np.inf))
        return _top(gain, gain > 0, size)
    ranked = []
    for g in range(n_groups):
        member = group == g
        ranked.append(_top(h, up & member & (h > bottoms[g]), size))
        ranked.append(_top(-h, low & member & (h < tops[g]), size))
    table = np.full((max(len(r) for r in ranked), len(ranked)), -1, dtype=np.intp)
    for k, r in enumerate(ranked):
        table[: len(r), k] = r
    order = table[table >= 0]  # row by row: one from each list in turn
    _, first = np.unique(order, return_index=True)
    return order[np.sort(first)][:size]


def _top(score, eligible, size):
    """The `size` eligible positions of largest score, best first, ties by index."""
    candidates = np.flatnonzero(eligible)
    if len(candidates) > size:
        part = np.argpartition(-score[candidates], size - 1)[:size]
        candidates = np.sort(candidates[part])
    return candidates[np.argsort(-score[candidates], kind="stable")]
