"""How a solver declares what it cannot solve, and how the name that a user gives becomes a solver or an error."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from mercer.certificates.certificate import Certificate
from mercer.runtime.parameters import one_of
from mercer.solvers.solution import Stop

# A `Solve` with keyword options, which are bound by the code that makes the task.
Solver = Callable[..., tuple[Any, Certificate]]
# From a problem and its place to the reason why a solver refuses them and what to use instead, or None.
Refusal = Callable[[Any, Any], str | None]


def refuses(reason: Refusal) -> Callable[[Solver], Solver]:
    """Declare what a solver cannot solve: such a problem raises a ValueError with the reason."""

    def declare(solve: Solver) -> Solver:
        @functools.wraps(solve)
        def checked(problem: Any, place: Any, stop: Stop, start: Any = None, **options: Any) -> tuple[Any, Certificate]:
            why = reason(problem, place)
            if why is not None:
                raise ValueError(why)
            return solve(problem, place, stop, start, **options)

        return checked

    return declare


def choose_solver(asked: str, solvers: Mapping[str, Solver], own: Solver | None = None) -> Solver:
    """The solver of that name, or a special problem's only solver `own`, whose name is "auto"."""
    solver = solvers[one_of("solver", asked, tuple(solvers))]
    if own is None:
        return solver
    if solver is not solvers["auto"]:
        raise ValueError(f"solver={asked!r} is not available for this machine; use solver='auto'")
    return own
