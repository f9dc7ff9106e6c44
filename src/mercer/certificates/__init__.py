"""Optimality certificates (docs/certificate.md); no other package builds a `Certificate`."""
