"""The problems of one fit and how they are solved: one after another, side by side, or many small ones in one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.certificates.certificate import Certificate
from mercer.fitting.fit import Fit
from mercer.fitting.side_by_side import map_side_by_side
from mercer.fitting.telling import Progress
from mercer.solution import Solution, Solve, Stop
from mercer.solvers.dual.pairs import Blocks, fits, solve_pairs


@dataclass(frozen=True, eq=False)
class Task:
    """One problem, the solver it wants, with its options bound, and the place where its data live."""

    name: str
    problem: Any
    solve: Solve
    rows: Any = None  # which of the merged samples it is about; None: all
    blocks: Blocks | None = None  # the two class blocks that make up `rows`, where tasks share such blocks
    unit: float = 1.0  # of `tol`: what a violation of 1 is worth in this problem's scale
    place: Callable[[int], Any] | None = None  # from a number of threads; None: the fit's Gram matrix


@dataclass(frozen=True, eq=False)
class Solved:
    """A task with the solution that was found and its proof."""

    task: Task
    solution: Any
    certificate: Certificate


def solve_tasks(tasks: list[Task], fit: Fit, progress: Progress, starts: list[Any], side_by_side: int) -> list[Solved]:
    """Every task's solution and proof, `side_by_side` of them at a time, each on one thread then."""
    n_threads = 1 if side_by_side > 1 else fit.limits.n_threads
    places = [(task.place or fit.gram)(n_threads) for task in tasks]
    if len(tasks) > 1 and all(task.place is None for task in tasks):
        places[0].share()
        side_by_side = side_by_side if places[0].fused else 1
    cold = progress.silent and all(start is None for start in starts)
    begun = _together(tasks, places[0], fit.limits.stop, max(side_by_side, n_threads)) if cold else {}
    done = {k: Solved(tasks[k], solution, proof) for k, (solution, proof) in begun.items() if proof is not None}
    left = [k for k in range(len(tasks)) if k not in done]

    def solve(k: int) -> Solved:
        task, place, start, steps = tasks[k], places[k], starts[k], 0
        if k in begun:
            start, steps = begun[k][0].beta, begun[k][0].steps
        report = progress.begin(task.name)
        if task.rows is not None and (len(task.rows) < place.n or task.blocks is not None):
            place = place.view(task.rows)
        asked = replace(fit.limits.stop.after(steps), tol=task.unit * fit.limits.stop.tol)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is in the proof, and refused there
            solution, proof = task.solve(task.problem, place, asked, start, report)
        progress.end()
        return Solved(task, replace(solution, steps=solution.steps + steps) if steps else solution, proof)

    if side_by_side == 1 or progress.watched:
        done.update(zip(left, map(solve, left), strict=True))
    else:
        done.update(zip(left, map_side_by_side(solve, left, side_by_side), strict=True))
    return [done[k] for k in range(len(tasks))]


def _together(
    tasks: list[Task], gram: Any, stop: Stop, n_threads: int
) -> dict[int, tuple[Solution, Certificate | None]]:
    """What one call for all small pairs of classes has reached, with the certificates of those that are solved."""
    small = [
        (k, task.problem, task.blocks) for k, task in enumerate(tasks) if task.blocks is not None and fits(task.problem)
    ]
    if len(small) < 2 or not gram.fused:
        return {}
    which, problems, blocks = zip(*small, strict=True)
    found = solve_pairs(problems, blocks, gram, stop, n_threads)
    return {} if found is None else dict(zip(which, found, strict=True))
