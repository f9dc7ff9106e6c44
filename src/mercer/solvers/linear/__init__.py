"""Solvers for linear machines, which work on the rows of X without a kernel matrix."""
