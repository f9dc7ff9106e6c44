"""Rows in chunks, each computed on by the worker that has it: what a process pool and a cluster share."""
