"""The fit pipeline of every machine: read samples, solve and certify problems, set fitted attributes."""
