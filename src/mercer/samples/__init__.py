"""What users hand over, checked, and put into the one order and form that solvers see."""
