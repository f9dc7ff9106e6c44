"""Declare which problems a solver refuses, and choose a solver by its name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from mercer.certificates.certificate import Certificate
from mercer.runtime.parameters import one_of
from mercer.solvers.solution import Stop

# A `Solve` that also takes keyword options.
Solver = Callable[..., tuple[Any, Certificate]]
# Function of a problem and its data that returns why a solver refuses them and what to use instead, or None.
Refusal = Callable[[Any, Any], str | None]


def refuses(reason: Refusal) -> Callable[[Solver], Solver]:
    """Make a solver raise a ValueError with the reason for problems that it cannot solve."""

    def declare(solve: Solver) -> Solver:
        @functools.wraps(solve)
        def checked(problem: Any, data: Any, stop: Stop, start: Any = None, **options: Any) -> tuple[Any, Certificate]:
            refusal = reason(problem, data)
            if refusal is not None:
                raise ValueError(refusal)
            return solve(problem, data, stop, start, **options)

        return checked

    return declare


def choose_solver(name: str, solvers: Mapping[str, Solver], special: Solver | None = None) -> Solver:
    """Return the solver of this name; a name such as "chunking:500" also states the rows of a chunk.

    `special` is the only solver of a problem that the usual solvers cannot solve; "auto" chooses it.
    """
    size = name.removeprefix("chunking:") if isinstance(name, str) and name.startswith("chunking:") else None
    if size is not None and not (size.isascii() and size.isdigit() and int(size) > 0):
        raise ValueError(f"solver={name!r} must end in the number of rows of a chunk, such as 'chunking:500'")
    solver = solvers[one_of("solver", name if size is None else "chunking", tuple(solvers))]
    if special is None:
        return solver if size is None else functools.partial(solver, size=int(size))
    if solver is not solvers["auto"]:
        raise ValueError(f"solver={name!r} is not available for this machine; use solver='auto'")
    return special
