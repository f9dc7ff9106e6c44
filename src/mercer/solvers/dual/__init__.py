"""Solvers for dual problems with one or two variables per sample."""
