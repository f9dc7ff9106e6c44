"""Checked samples, weights and targets, in the canonical order and form that solvers use."""
