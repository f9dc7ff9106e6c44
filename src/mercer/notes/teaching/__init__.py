"""Textbook algorithms that record every step, and the quadratic programs that they solve."""

from mercer.notes.teaching.algorithms import steps
from mercer.problems.quadratic_programs import soft_margin_dual, soft_margin_primal
from mercer.solvers.ipop import ipop

__all__ = ["ipop", "soft_margin_dual", "soft_margin_primal", "steps"]
