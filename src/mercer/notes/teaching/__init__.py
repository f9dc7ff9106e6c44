"""Textbook algorithms that record every step, and the quadratic programs that they solve."""

from mercer.notes.teaching.algorithms import steps
from mercer.notes.teaching.plane import Plane
from mercer.notes.teaching.qualification import constraint_qualification
from mercer.notes.teaching.record import SmallProblem
from mercer.problems.quadratic_programs import soft_margin_dual, soft_margin_primal
from mercer.solvers.ipop import ipop

__all__ = [
    "Plane",
    "SmallProblem",
    "constraint_qualification",
    "ipop",
    "soft_margin_dual",
    "soft_margin_primal",
    "steps",
]
