"""Textbook algorithms as printed, with a record of every step, and the quadratic programs that they solve."""

from mercer.problems.quadratic_programs import soft_margin_dual, soft_margin_primal
from mercer.solvers.ipop import ipop
from mercer.teaching.algorithms import steps

__all__ = ["ipop", "soft_margin_dual", "soft_margin_primal", "steps"]
