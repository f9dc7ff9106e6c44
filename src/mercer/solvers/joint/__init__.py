"""Solvers for the joint multi-class problem."""
