"""Rows in chunks, each computed on where it is: what rows in files and a Dask cluster share."""
