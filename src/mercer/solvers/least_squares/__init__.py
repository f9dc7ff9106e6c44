"""Solvers for regularised least squares."""
