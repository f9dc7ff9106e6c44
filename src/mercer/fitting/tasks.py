"""The problems of one fit and how they are solved: one after another, side by side, or many small ones in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mercer.arrays import is_sparse
from mercer.fitting.fit import Fit
from mercer.fitting.pair_tasks import PairTasks, SolvedPairs
from mercer.fitting.side_by_side import map_side_by_side
from mercer.fitting.task import Solved, Task
from mercer.fitting.telling import Progress
from mercer.solution import Stop
from mercer.solvers.dual.pairs import Together, fitting_pairs, solve_together


def solve_tasks(
    tasks: Sequence[Task], fit: Fit, progress: Progress, starts: list[Any], side_by_side: int
) -> Sequence[Solved]:
    """Every task's solution and proof, `side_by_side` of them at a time, each on one thread then."""
    n_threads = 1 if side_by_side > 1 else fit.limits.n_threads
    pairs = tasks if isinstance(tasks, PairTasks) else None
    places = [fit.gram(n_threads)] * len(tasks) if pairs else [(task.place or fit.gram)(n_threads) for task in tasks]
    if len(tasks) > 1 and (pairs or all(task.place is None for task in tasks)):
        places[0].share()
        side_by_side = side_by_side if places[0].fused else 1
    cold = not progress.watched and all(start is None for start in starts)
    begun: dict[int, Solved] = {}
    done: Any = {}
    left: Any = range(len(tasks))
    if pairs and cold and pairs.together and len(tasks) > 1 and places[0].fused:
        which = fitting_pairs(pairs.problem, pairs.layout, is_sparse(fit.X))
        progress.begin("")(partial("{:,} pairs of classes in one call".format, len(which)))
        found = _together(pairs, which, places[0], fit.limits.stop, max(side_by_side, n_threads))
        if found is not None:
            done = SolvedPairs(pairs, found)
            unsolved = which[~found.solved[which]].tolist()
            left = np.flatnonzero(~found.solved).tolist()
            if found.over:
                done.reasons.update(dict.fromkeys(unsolved, "max_time"))
                left = sorted(set(left) - set(unsolved))
            else:
                begun = {k: done[k] for k in unsolved}

    def solve(k: int) -> Solved:
        task, place, start, steps = tasks[k], places[k], starts[k], 0
        if k in begun:
            start, steps = begun[k].solution.beta, begun[k].solution.steps
        report = progress.begin(task.name)
        if task.rows is not None and (len(task.rows) < place.n or task.blocks is not None):
            place = place.view(task.rows)
        limits = fit.limits.stop
        limits = limits.after(steps) if steps else limits
        asked = replace(limits, tol=task.unit * limits.tol, alone=len(tasks) == 1)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is in the proof, and refused there
            solution, proof = task.solve(task.problem, place, asked, start, report)
        progress.end()
        return Solved(task, replace(solution, steps=solution.steps + steps) if steps else solution, proof)

    keep = done.put if isinstance(done, SolvedPairs) else done.__setitem__
    alone = side_by_side == 1 or progress.watched
    for k, one in zip(left, map(solve, left) if alone else map_side_by_side(solve, left, side_by_side), strict=True):
        keep(k, one)
    return done if isinstance(done, SolvedPairs) else [done[k] for k in range(len(tasks))]


def _together(tasks: PairTasks, which: Any, gram: Any, stop: Stop, n_threads: int) -> Together | None:
    """What one call for these pairs of classes has reached; the others have zeros."""
    if len(which) < 2:
        return None
    problem, layout = tasks.problem, tasks.layout
    if len(which) == layout.n:
        return solve_together(problem, layout, gram, stop, n_threads)
    found = solve_together(problem.some(layout.variables(which)), layout.of_pairs(which), gram, stop, n_threads)
    return None if found is None else found.among(layout, which)
