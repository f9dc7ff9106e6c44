"""Dual problems: what each machine asks the solver to maximise."""

from mercer.problems import quadratic_programs as quadratic_programs
from mercer.problems.dual_problem import DualProblem

__all__ = ["DualProblem"]
