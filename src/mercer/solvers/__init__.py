"""Solvers: functions that take a problem and its data and return a solution with its certificate."""

from functools import partial

from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.dual.chunking import solve_by_chunks
from mercer.solvers.joint.ascent import solve_joint
from mercer.solvers.qp import NAMES, solve_by_qp, solve_joint_by_qp
from mercer.solvers.solver import Solver

# Solvers of a dual problem by the names that users pass. "auto" is block decomposition, the fastest of them.
SOLVERS: dict[str, Solver] = {
    "auto": solve_certified,
    "decomposition": solve_certified,
    "chunking": solve_by_chunks,
    **{name: partial(solve_by_qp, package=package) for name, package in NAMES.items()},
}
# Solvers of a joint multi-class machine by the names that users pass.
JOINT_SOLVERS: dict[str, Solver] = {
    "auto": solve_joint,
    "decomposition": solve_joint,
    **{name: partial(solve_joint_by_qp, package=package) for name, package in NAMES.items()},
}

__all__ = ["JOINT_SOLVERS", "SOLVERS"]
