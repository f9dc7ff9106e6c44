"""Dual problems: what each machine asks the solver to maximise."""

from mercer.problems.dual_problem import DualProblem

__all__ = ["DualProblem"]
