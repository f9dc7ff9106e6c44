"""Solvers of the dual problem with one or two variables per sample."""
