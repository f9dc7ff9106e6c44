"""Export of a machine as a C99 file."""
