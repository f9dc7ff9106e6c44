"""The name of a solver gives the solver, or an error message."""

import numpy as np
import pytest

from mercer.kernels.names import as_kernel
from mercer.places import gram_for
from mercer.solvers import SOLVERS
from mercer.solvers.solution import Stop
from mercer.solvers.solver import choose_solver, refuses
from reference.problems import c_svc


def own(problem, place, stop, start=None):
    return "own"


def test_names_are_those_of_the_table():
    for name, solver in SOLVERS.items():
        assert choose_solver(name, SOLVERS) is solver
    with pytest.raises(ValueError, match=r"solver='smo' must be one of 'auto', 'decomposition', 'chunking', 'qp'"):
        choose_solver("smo", SOLVERS)


def test_a_problem_with_a_solver_of_its_own_has_no_other():
    assert choose_solver("auto", SOLVERS, own) is own
    assert choose_solver("decomposition", SOLVERS, own) is own
    for name in ("chunking", "qp"):
        with pytest.raises(ValueError, match=rf"solver='{name}' is not available for this machine; use solver='auto'"):
            choose_solver(name, SOLVERS, own)


def test_a_refusal_comes_before_the_solver():
    declared = refuses(lambda problem, place: f"{problem} is too large" if problem > 1 else None)(own)
    assert declared(1, None, None) == "own"
    with pytest.raises(ValueError, match="2 is too large"):
        declared(2, None, None)


def test_every_refusal_names_another_solver():
    y = np.array([1.0, -1.0, 1.0, -1.0])
    small = gram_for(as_kernel("precomputed"), np.eye(4), budget=85 * 9)
    with pytest.raises(ValueError, match=r"4 variables.*at most 3 fit.*Use solver='decomposition'"):
        SOLVERS["qp"](c_svc(y, 1.0), small, Stop(tol=1e-3, max_iter=10))
