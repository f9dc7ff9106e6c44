"""Solvers of regularized least squares."""
