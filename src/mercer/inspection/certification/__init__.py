"""Proofs for fitted models of any library."""
