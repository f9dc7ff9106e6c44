"""Exact solutions that follow a parameter: a working set, its factor, and one event after another."""
