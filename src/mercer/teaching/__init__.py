"""Textbook algorithms as printed, on small problems, with a record of every step."""

from mercer.teaching.algorithms import trace
from mercer.teaching.record import Step, Trace

__all__ = ["Step", "Trace", "trace"]
