"""Optimality certificates for fitted models of mercer and other libraries."""
