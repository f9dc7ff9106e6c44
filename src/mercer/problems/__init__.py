"""Dual problems: what each machine asks the solver to maximise."""

from typing import TYPE_CHECKING

from mercer.problems.dual_problem import DualProblem
from mercer.runtime.on_demand import on_demand

__all__ = ["DualProblem"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, {"quadratic_programs": "mercer.problems.quadratic_programs"})
