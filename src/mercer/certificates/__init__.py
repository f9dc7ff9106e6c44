"""Optimality certificates: no other package builds a `Certificate`. docs/certificate.md has the theorem and its bounds."""
