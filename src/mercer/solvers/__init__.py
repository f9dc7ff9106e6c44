"""Solvers: functions from a problem and a Gram matrix to a solution."""
