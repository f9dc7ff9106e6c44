"""Solvers of linear machines, on the rows themselves."""
