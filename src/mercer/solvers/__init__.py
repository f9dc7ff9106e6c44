"""Solvers: functions from a problem and the place of its data to a solution and its certificate."""

from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.dual.chunking import solve_by_chunks
from mercer.solvers.dual.qp import solve_by_qp
from mercer.solvers.solver import Solver

# The solvers of a dual problem by the names that users choose from. "auto" is block decomposition, the fastest of them.
SOLVERS: dict[str, Solver] = {
    "auto": solve_certified,
    "decomposition": solve_certified,
    "chunking": solve_by_chunks,
    "qp": solve_by_qp,
}

__all__ = ["SOLVERS"]
