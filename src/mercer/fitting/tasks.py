"""How the problems of one fit are solved: one after another, side by side, or many small ones in one call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.fitting.fit import Fit
from mercer.fitting.side_by_side import map_side_by_side
from mercer.fitting.task import Solutions, Solved, Tasks
from mercer.fitting.telling import Progress


def solve_tasks(tasks: Tasks, fit: Fit, progress: Progress, starts: list[Any], side_by_side: int) -> Solutions:
    """Every task's solution and proof, `side_by_side` of them at a time, each on one thread then."""
    n_threads = 1 if side_by_side > 1 else fit.limits.n_threads
    places = tasks.places(fit, n_threads)
    solutions = Solutions(tasks)
    if tasks.share_gram:
        places[0].share()
        side_by_side = side_by_side if places[0].fused else 1
        if places[0].fused and not progress.watched and all(start is None for start in starts):
            solutions = tasks.in_one_call(places[0], fit, max(side_by_side, n_threads), progress)

    def solve(k: int) -> Solved:
        task, place, start = tasks[k], places[k], starts[k]
        begun, steps = solutions.begun(k)
        report = progress.begin(task.name)
        if task.rows is not None and (len(task.rows) < place.n or task.blocks is not None):
            place = place.view(task.rows)
        limits = fit.limits.stop.after(steps) if steps else fit.limits.stop
        asked = replace(limits, tol=task.unit * limits.tol, alone=len(tasks) == 1)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is in the proof, and refused there
            solution, proof = task.solve(task.problem, place, asked, start if begun is None else begun, report)
        progress.end()
        return Solved(task, replace(solution, steps=solution.steps + steps) if steps else solution, proof)

    left = solutions.left
    alone = side_by_side == 1 or progress.watched
    for k, one in zip(left, map(solve, left) if alone else map_side_by_side(solve, left, side_by_side), strict=True):
        solutions.put(k, one)
    return solutions
