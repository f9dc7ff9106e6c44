"""Kernel values, fields and linear products on the host: NumPy arrays and the C++ core."""
