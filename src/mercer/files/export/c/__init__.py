"""A machine as a C99 file."""
