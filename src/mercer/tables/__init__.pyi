"""Names of mercer.tables. The command line reads dialects before it needs NumPy, which formulas load."""

from . import formula as formula
