"""Exact solutions along a homotopy: an active set, its equations, and one event after another."""
