"""Rows in chunks, each processed where it is stored: the common part of the engines for files and for Dask clusters."""
